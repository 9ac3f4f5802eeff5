"""Spans of relevant text in passages, and where passages stand."""

import random

import pytest

from perikope.core.errors import InputError, UsageError
from perikope.evaluation.io.inex import Extract
from perikope.evaluation.io.spans import (
    PassageRanges,
    Span,
    extracts_of,
    is_span,
    judged_passages,
    read_spans,
    relevant_text,
    spans_of_judgements,
)
from tests.support.collections import index_of, structured_document


@pytest.fixture
def document():
    return structured_document()


@pytest.fixture
def ranges(document):
    return PassageRanges(index_of([document]).folder)


def names_and_texts(document):
    """Every passage of a document by its name in files, with its text."""
    from perikope.core.names import passage_name, running_number
    from perikope.document.tree import Kind

    for number, span in enumerate(document.of_kind(Kind.PASSAGE)):
        yield passage_name(document.id, document.span_ids.get(span) or running_number(number)), document.text_of(span)


def test_ranges_are_those_of_the_text(document, ranges):
    found = dict(names_and_texts(document))
    assert found
    for name, text in found.items():
        start, end = ranges(name)
        assert document.text[start:end] == text
    assert ranges(document.id) == (0, len(document.text)) == (0, ranges.length(document.id))


def test_elements_have_ranges_too(document, ranges):
    root = f"{document.id}#/{document.labels[document.spans.tag[0]]}[1]"
    assert ranges(root) == (0, len(document.text))
    with pytest.raises(UsageError, match="has no element '/nothing"):
        ranges(f"{document.id}#/nothing[1]")


def test_spans_become_relevant_text(document, ranges):
    names = [name for name, text in names_and_texts(document) if len(text) >= 6]
    first, _ = ranges(names[0])
    # Overlapping, adjacent, empty, and in any order.
    spans = {"q": [Span(names[0], 4, 6), Span(names[0], 0, 2), Span(names[0], 1, 3), Span(names[0], 3, 3), Span(names[0], 6, 6)]}
    assert relevant_text(spans, ranges)["q"][document.id].ranges == ((first, 3), (first + 4, 2))
    assert relevant_text({"q": [Span(names[0], 0, 2), Span(names[0], 2, 4)]}, ranges)["q"][document.id].ranges == ((first, 4),)
    empty = relevant_text({"q": [Span(names[0], 2, 2)]}, ranges)["q"][document.id]
    assert (empty.ranges, empty.relevant_characters, empty.best_entry_point) == ((), 0, -1)
    whole = relevant_text(spans_of_judgements({"q": {names[0]: 2, names[1]: 0}}), ranges)["q"][document.id]
    assert whole.ranges == ((first, ranges(names[0])[1] - first),)
    assert whole.document_length == len(document.text)


def test_a_ranking_becomes_stretches_of_text(document, ranges):
    ranking = [(name, float(-rank)) for rank, (name, _) in enumerate(names_and_texts(document))]
    random.Random(1).shuffle(ranking)
    for (name, score), extract in zip(ranking, extracts_of(ranking, ranges), strict=True):
        start, end = ranges(name)
        assert extract == Extract(document.id, start, end - start, score)


def test_passages_with_a_span_are_judged_relevant():
    spans = {"q": [Span("d#a", 0, 5), Span("d#a", 7, 7), Span("d#b", 3, 3), Span("d#c")]}
    assert judged_passages(spans) == {"q": {"d#a": 1, "d#b": 0, "d#c": 1}}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("q d#a 1", "expected 4 columns"),
        ("q d#a x 2", "the start must be a whole number"),
        ("q d#a 1 2.5", "the end must be a whole number"),
        ("q d#a -1 2", "the start -1 of a span must be 0 or more"),
        ("q d#a 5 2", "must be 0 or more, and not larger than its end"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, complaint):
    path = tmp_path / "spans.tsv"
    path.write_text(f"q d#a 0 2\n{line}\n")
    with pytest.raises(InputError, match=f"spans.tsv:2: .*{complaint}"):
        read_spans(path)


def test_judgements_of_trec_are_no_spans():
    assert not is_span("1 0 d1#p1 1")
    assert not is_span("1 d#1 0 d2")
    assert is_span("1\td#1\t0\t12")
