"""The most frequent values of a metadata field, compared with a count over the metadata of all documents."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.fetch.field_values import _largest, field_values
from perikope.fetch.filters import parse_filter
from perikope.index.facets import metadata_pairs
from perikope.search.facade import Index
from tests.cli.test_commands import fails, run

DOCUMENTS = [
    {"id": f"d{number}", "passages": ["pump"], "metadata": {"year": 2000 + number % 4, "by": names, "number": f"N{number}"}}
    for number, names in enumerate(
        [["Ada", "Bob"], ["ada"], ["Änne", "Bob"], ["Bob"], ["ANNA", "Ada"], [], ["änne"], ["Ada"], ["ß"], ["SSW"], ["Ada", "ada"], ["Bob"]]
    )
]


@pytest.fixture(scope="module", params=[1, 3], ids=["one segment", "three segments"])
def index(request, tmp_path_factory):
    """Documents in one or three segments, of which some are deleted."""
    index = Index.create(tmp_path_factory.mktemp("values") / "idx")
    for first in range(request.param):
        index.add(DOCUMENTS[first :: request.param])
        index.commit()
    index.delete(["d3", "d7"])
    index.commit()
    return index


def plain(index, field, prefix, k, ids):
    """The values by reading the metadata of all documents."""
    counts = Counter()
    for document in index.documents():
        if document.id in ids:
            counts.update({value for name, value in metadata_pairs(document.metadata) if name == field})
    matching = {value: count for value, count in counts.items() if value.casefold().startswith(prefix.casefold())}
    return dict(sorted(matching.items(), key=lambda item: (-item[1], item[0]))[:k])


@pytest.mark.parametrize("filter", [(), "year=2000", "year>=2002", ["year!=2001", "by=*"], "id=d8"])
@pytest.mark.parametrize("prefix", ["", "a", "A", "än", "Bob", "N1", "s", "x"])
@pytest.mark.parametrize("field", ["by", "year", "number"])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_values_are_those_of_the_documents(index, field, prefix, filter, k):
    ids = {document.id for document in index.documents(filter)}
    found = index.values(field, prefix=prefix, k=k, filter=filter)
    assert list(found.items()) == list(plain(index, field, prefix, k, ids).items())


def test_fields_of_files_have_values(tmp_path):
    folder = tmp_path / "docs" / "guide"
    folder.mkdir(parents=True)
    for name in ("a.md", "b.md"):
        (folder / name).write_text("pump")
    index = Index.create(tmp_path / "idx")
    index.sync(tmp_path / "docs")
    assert index.values("folder") == {"guide": 2}
    assert index.values("path", prefix="guide/B") == {"guide/b.md": 1}


def test_documents_are_not_read_without_a_filter_and_deleted_documents(tmp_path, monkeypatch):
    index = Index.create(tmp_path / "idx")
    index.add(DOCUMENTS)
    index.commit()
    monkeypatch.setattr("perikope.index.facets.Facets.documents", None)
    assert index.values("by", k=1) == {"Ada": 4}
    with pytest.raises(TypeError):
        index.values("by", filter="year=2000")


def test_mistakes_are_named(index):
    with pytest.raises(UsageError, match=r"metadata field 'yaer'.*did you mean 'year'"):
        index.values("yaer")
    with pytest.raises(UsageError, match="k must be a whole number of at least 1, not 0"):
        index.values("year", k=0)
    with pytest.raises(UsageError, match="metadata field 'x'"):
        index.values("year", filter="x=1")


def test_snapshot_without_documents_has_no_fields(tmp_path):
    with pytest.raises(UsageError, match="metadata field 'year'"):
        field_values(Index.create(tmp_path / "idx").snapshot, "year")


@given(st.lists(st.integers(0, 5)), st.integers(1, 8))
def test_largest_counts_are_those_of_a_sort(counts, k):
    rows = sorted(range(len(counts)), key=lambda row: (-counts[row], row))[:k]
    assert _largest(np.array(counts, np.int64), k).tolist() == rows


def test_command_prints_a_table_or_json(index, capsys):
    code, out, _ = run(capsys, "info", index.folder, "--values", "by", "--prefix", "a", "--filter", "year>=2002")
    assert (code, [line.split() for line in out.splitlines()]) == (0, [["value", "documents"], ["Ada", "1"], ["ada", "1"]])
    assert run(capsys, "info", index.folder, "--values", "by", "-k", "1", "--json")[1] == '{"Ada": 3}\n'
    fails(capsys, "--prefix and --filter need --values FIELD", "info", index.folder, "--prefix", "a")


def test_conditions_may_be_parsed_filters(index):
    assert index.values("year", filter=parse_filter("year=2000")) == {"2000": 3}
