"""Expansion from passages equals Bo1 written out over the passages of the candidate documents."""

import math
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.text.analysis import Analyzer
from tests.support.collections import collections, index_of, plain_document
from tests.support.plain import PlainCollection

MODEL = "pl2(statistics=candidates)"


def plain_bo1(query, feedback, passages, terms, *, number_for=None):
    """Amati 2003: `tf log2((1 + P) / P) + log2(1 + P)`, with P the mean number of occurrences of a term per passage.

    With `number_for`, a term is compared with the number of passages that this function returns, and terms for which it
    returns 0 are not added.
    """
    number_for = number_for or (lambda term: len(passages))
    occurrences = Counter(term for passage in passages for term in passage)
    inside = Counter(term for passage in feedback for term in passage)
    holding = Counter(term for passage in feedback for term in set(passage))

    def weigh(frequency, expected):
        return frequency * math.log2((1 + expected) / expected) + math.log2(1 + expected)

    allowed = [term for term in inside if term in query or (holding[term] >= min(2, len(feedback)) and number_for(term))]
    weight = {term: weigh(inside[term], occurrences[term] / number_for(term)) for term in allowed}
    chosen = sorted(weight, key=lambda term: (-weight[term], term))[:terms]
    if not chosen:
        return query
    largest = weigh(inside[chosen[0]], inside[chosen[0]] / number_for(chosen[0]))
    expanded = {term: value / max(query.values()) for term, value in query.items()}
    for term in chosen:
        expanded[term] = expanded.get(term, 0.0) + weight[term] / largest
    return expanded


@settings(max_examples=60)
@given(
    collections(), st.sampled_from(["pump", "rotor magnet", "valve rotor pump"]), st.integers(1, 4), st.integers(1, 4),
    st.sampled_from(["all", "en"]),
)  # fmt: skip
def test_the_expanded_query_is_bo1_over_the_passages_of_the_candidates(documents, query, depth, terms, language):
    index = index_of(documents)
    assume(language == "all" or language in index.snapshot.languages_of_text)
    options = {"language": language, "documents": 2}
    first = index.search(query, model=MODEL, k=depth, **options)
    again = index.search(query, model=MODEL, browse_expand=f"bo1(documents={depth},terms={terms})", **options)
    plain = {one.document.id: one for one in PlainCollection(documents, Analyzer()).documents}
    numbers = first.matches.number_of_document.tolist()
    fetched = [plain[index._snapshot.document_id(number)] for number in numbers]
    passages = {(one.document.id, i): one.of_span(span) for one in fetched for i, span in enumerate(one.passages)}
    feedback = [passages[hit.document, int(hit.passage[1:]) - 1] for hit in first]
    query_terms = dict(zip(first.matches.query.terms, first.matches.query.weights, strict=True))
    codes = [one.document.labels[one.document.spans.language[span]] for one in fetched for span in one.passages]
    by_language = language != "all" and len(index.snapshot.totals_by_language) > 1
    number_for = (lambda term: codes.count("en") if term.startswith("en:") else 0) if by_language else None
    expected = plain_bo1(query_terms, feedback, list(passages.values()), terms, number_for=number_for) if feedback else query_terms
    expanded = again.matches.query
    assert dict(zip(expanded.terms, expanded.weights, strict=True)) == pytest.approx(expected)


@pytest.fixture(scope="module")
def index():
    return index_of([plain_document("d1", "Pumps", "A rotor with a magnet.", "The rotor and its magnet turn.", "A magnet.")])


def test_passages_are_found_by_words_of_better_ones(index):
    assert [hit.passage for hit in index.search("rotor", model="bm25")] == ["@1", "@2"]
    assert {hit.passage for hit in index.search("rotor", model="bm25", browse_expand="bo1")} == {"@1", "@2", "@3"}


def test_how_many_are_asked_for_changes_nothing(index):
    assert index.search("rotor", browse_expand="bo1", k=1).names() == index.search("rotor", browse_expand="bo1", k=3).names()[:1]


def test_the_browse_query_is_the_one_that_is_expanded(index):
    results = index.search("pump", browse_query="rotor", browse_expand="bo1")
    assert results.matches.query.text == "rotor"
    assert set(results.matches.query.terms) == {"en:rotor", "en:magnet"}


def test_all_documents_too(index):
    options = {"model": "bm25", "browse_expand": "bo1"}
    assert index.search("rotor", documents="all", **options).names() == index.search("rotor", **options).names()


def test_elements_and_unknown_names_are_refused(index):
    with pytest.raises(UsageError, match="if elements or documents are ranked"):
        index.search("rotor", elements=True, model="bm25", browse_expand="bo1")
    with pytest.raises(UsageError, match="unknown expansion"):
        index.search("rotor", browse_expand="bo2")
