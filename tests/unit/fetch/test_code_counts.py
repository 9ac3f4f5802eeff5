"""Counts of classification codes at a level, compared with the codes of each document."""

from collections import Counter

import pytest

from perikope.patents.codes import LEVELS, parse_code
from perikope.search.facade import Index

CODES = [["G06F 17/30", "G06F 3/01", "H04L 9/00"], ["G06F0017300000"], ["G06Q 10/00", "not a code"], ["A61K2800"], []]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    index = Index.create(tmp_path_factory.mktemp("codes") / "idx")
    index.add([{"id": f"d{number}", "passages": ["pump"], "metadata": {"ipc": codes, "tag": codes}} for number, codes in enumerate(CODES)])
    index.commit()
    return index.search("pump")


def shortened(text, level):
    code = parse_code(text)
    return text if code is None else code.at(level)


@pytest.mark.parametrize("level", [level for level in LEVELS if level != "full"])
def test_a_document_counts_once_for_each_shortened_code(results, level):
    expected = Counter(code for codes in CODES for code in {shortened(text, level) for text in codes})
    assert list(results.facets("ipc", level=level).items()) == sorted(expected.items(), key=lambda item: (-item[1], item[0]))


def test_subclasses(results):
    assert results.facets("ipc", level="subclass") == {"G06F": 2, "A61K": 1, "G06Q": 1, "H04L": 1, "not a code": 1}


@pytest.mark.parametrize(("field", "level"), [("ipc", "full"), ("tag", "subclass")])
def test_other_values_are_counted_as_they_are(results, field, level):
    assert results.facets(field, level=level) == dict.fromkeys(sorted({text for codes in CODES for text in codes}), 1)
