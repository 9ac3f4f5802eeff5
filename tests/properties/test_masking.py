"""Masked matches equal the matches of an index in which the words were really removed, with the same statistics."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.browse.masking import TokenMask, masked
from perikope.browse.matches import join
from perikope.browse.models import parse_model
from perikope.core.errors import UsageError
from perikope.document.tree import Kind, TreeBuilder
from perikope.fetch import Candidates
from perikope.query.terms import parse_boolean, parse_query
from perikope.text.analysis import Analyzer, words
from tests.support.collections import WORDS, collections, index_of
from tests.support.examples import examples

MODELS = ("coverage", "bm25", "lm", "qsf_v_title", "qsf_section", "psg_neighbor")
ANALYZER = Analyzer()


def cut(document, span, first, end):
    """The document without the words `first` to `end` (exclusive) of one of its spans."""
    builder = TreeBuilder(document.id)
    opened = [0]
    spans = document.spans
    for i in range(1, len(spans)):
        while opened[-1] != spans.parent[i]:
            opened.pop()
            builder.close()
        part, language = document.labels[spans.part[i]], document.labels[spans.language[i]]
        text = document.text_of(i).split()
        if i == span:
            del text[first:end]
            # A builder drops passages without text. A stop word has no term and no length.
            text = text or ["le" if language == "fr" else "the"]
        if spans.kind[i] == Kind.SECTION:
            builder.open(Kind.SECTION, "sec", part=part, language=language)
            opened.append(i)
        elif spans.kind[i] == Kind.TITLE:
            builder.title(" ".join(text))
        else:
            builder.passage(" ".join(text), part=part, language=language)
    while len(opened) > 1:
        opened.pop()
        builder.close()
    return builder.build()


def joined(index, query):
    numbers = np.arange(len(index))
    return join(index.snapshot, query, Candidates(numbers, np.ones(numbers.size)))


def dense(frequencies, terms):
    counts = np.zeros((frequencies.first_entry.size - 1, terms), int)
    counts[frequencies.unit, frequencies.term] = frequencies.count
    return counts.tolist()


@given(collections(), st.data())
@examples(60)
def test_masking_equals_removing(documents, data):
    chosen = data.draw(st.sampled_from(documents))
    leaves = [i for i, kind in enumerate(chosen.spans.kind) if kind in (Kind.TITLE, Kind.PASSAGE)]
    span = data.draw(st.sampled_from(leaves))
    count = len(words(chosen.text_of(span)))
    first = data.draw(st.integers(0, count - 1))
    end = data.draw(st.integers(first + 1, count))
    before = len(words(chosen.text[: chosen.spans.start[span]]))
    text = " ".join(data.draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).filter(lambda drawn: set(drawn) - {"the", "of"})))
    query = parse_query(text, ANALYZER, ["en", "fr"])
    whole, removed = index_of(documents), index_of([cut(d, span, first, end) if d is chosen else d for d in documents])
    number = whole.snapshot.find_document(chosen.id)
    found = masked(joined(whole, query), TokenMask(number, before + first, before + end))
    expected = replace(joined(removed, query), statistics=found.statistics)
    for name in ("length_of_document", "length_of_passage", "title_length_of_section", "term_of_occurrence", "section_of_passage"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    for name in ("first_occurrence_of_document", "first_occurrence_of_passage", "end_occurrence_of_passage"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    for name in ("in_documents", "in_passages", "in_titles"):
        assert dense(getattr(found, name), len(query.terms)) == dense(getattr(expected, name), len(query.terms)), name
    for model in map(parse_model, MODELS):
        assert model.score(found).values == pytest.approx(model.score(expected).values)


def test_a_document_that_is_no_candidate_needs_no_mask():
    builder = TreeBuilder("d1")
    builder.passage("pump")
    matches = joined(index_of([builder.build()]), parse_query("pump", ANALYZER, ["en"]))
    assert masked(matches, TokenMask(7, 0, 1)) is matches


def test_group_terms_and_negated_terms_are_masked_too():
    builder = TreeBuilder("d1")
    builder.passage("pump rotor pump")
    index = index_of([builder.build()])
    query = parse_boolean("pump NOT rotor", ANALYZER, ["en"], lambda prefix, most: (0, []))
    found = masked(joined(index, query), TokenMask(0, 0, 2))
    assert found.in_passages.count.tolist() == [1]
    assert sum(found.with_negated().in_passages.count.tolist()) == 1, "the rotor is masked, and one pump"


def test_matches_without_an_index_cannot_be_masked():
    builder = TreeBuilder("d1")
    builder.passage("pump")
    matches = replace(joined(index_of([builder.build()]), parse_query("pump", ANALYZER, ["en"])), snapshot=None)
    with pytest.raises(UsageError, match="not read from an index"):
        masked(matches, TokenMask(0, 0, 1))
