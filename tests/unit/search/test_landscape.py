"""The relevance landscape of a document, compared with the formula at every position."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.document.tree import Kind
from perikope.query.topic import Topic
from perikope.search.facade import Index
from perikope.text.analysis import word_spans
from tests.support.collections import collections, index_of, plain_document
from tests.support.examples import scaled

WORDS = ["pump", "valve", "rotor", "seal"]


def plain(index, document, groups, sigma):
    """The words of the text with their characters, and the influence at each; a group is the terms of a word."""
    analyzer = index.snapshot.analyzer
    spans = list(zip(*(column.tolist() for column in word_spans(document.text)), strict=True))
    marked = [set() for _ in spans]
    for span in range(len(document.spans)):
        for number, (start, end) in enumerate(spans):
            if document.spans.start[span] <= start and end <= document.spans.end[span]:
                marked[number] = {document.labels[document.spans.language[span]]}
    terms = [
        f"{next(iter(code))}:{analyzer.term(document.text[s:e], next(iter(code)))}" for (s, e), code in zip(spans, marked, strict=True)
    ]
    total, values = 0.0, [0.0] * len(spans)
    for group in groups:
        weights = [
            math.log1p((index.snapshot.totals.documents - n + 0.5) / (n + 0.5))
            for n in index.snapshot.look_up(list(group)).counts[0].tolist()
            if n
        ]
        if weights:
            total += min(weights)
            at = [number for number, term in enumerate(terms) if term in group]
            for x in range(len(spans)):
                nearest = min((abs(x - o) for o in at), default=math.inf)
                values[x] += min(weights) * (math.exp(-(nearest**2) / (2 * sigma**2)) if nearest <= math.ceil(4 * sigma) else 0.0)
    return spans, terms, [value / total if total else 0.0 for value in values]


@settings(max_examples=scaled(60))
@given(collections(), st.sampled_from([0.5, 3.0, 85.0]), st.integers(1, 12), st.sets(st.sampled_from(WORDS), min_size=1))
def test_any_document(documents, sigma, bins, words):
    index = index_of(documents, cuts=[1])
    for document in documents:
        landscape = index.landscape(" ".join(sorted(words)), document.id, bins=bins, sigma=sigma, language="all")
        codes = index.languages
        groups = [{f"{code}:{index.snapshot.analyzer.term(word, code)}" for code in codes} for word in sorted(words)]
        spans, terms, values = plain(index, document, groups, sigma)
        count = min(bins, len(spans))
        assert (landscape.tokens, len(landscape.bins)) == (len(spans), count)
        assert [one.start for one in landscape.bins] == [number * len(spans) // count for number in range(count)]
        for one in landscape.bins:
            inside = values[one.start : one.end]
            assert one.influence == pytest.approx(max(inside), abs=1e-12)
            assert values[one.peak] == pytest.approx(max(inside), abs=1e-12)
            assert (one.first_character, one.end_character) == (spans[one.start][0], spans[one.end - 1][1])
            assert one.peak_character == spans[one.peak][0]
            assert one.passage == passage_at(index, document, spans[(one.start + one.end) // 2])
        found = [(one.position, one.word, one.passage) for one in landscape.occurrences]
        assert found == [
            (number, document.text[start:end], passage_at(index, document, (start, end)))
            for number, ((start, end), term) in enumerate(zip(spans, terms, strict=True))
            if any(term in group for group in groups)
        ]


def passage_at(index, document, span):
    """The id of the passage that contains a range of characters."""
    segment, local = index.snapshot.locate(index.snapshot.find_document(document.id))
    for id, number in segment.passage_spans(local).items():
        if (
            document.spans.kind[number] == Kind.PASSAGE
            and document.spans.start[number] <= span[0]
            and span[1] <= document.spans.end[number]
        ):
            return id
    return ""


@pytest.fixture(scope="module")
def index():
    text = "the pump " + "x " * 50 + "pumps and a valve " + "y " * 50 + "rotor"
    return index_of(
        [plain_document("d1", "Pump", text, "seal"), plain_document("d2", "", "valve valve"), plain_document("d3", "", "other")]
    )


def test_peak_is_where_the_words_meet(index):
    landscape = index.landscape("pump valve", "d1", sigma=5)
    best = max(landscape.bins, key=lambda one: one.influence)
    assert index.get("d1").text[best.peak_character :].startswith(("pumps", "and", "a", "valve"))
    assert [(one.word, one.occurrences) for one in landscape.words] == [("pump", 3), ("valve", 1)]
    assert [(one.word, one.words, one.passage) for one in landscape.occurrences][:2] == [("Pump", (0,), ""), ("pump", (0,), "@1")]
    assert 0.9 < best.influence <= 1


def test_one_word_has_influence_1_where_it_occurs(index):
    landscape = index.landscape("pump", "d1", bins=10_000)
    assert len(landscape.bins) == landscape.tokens
    assert [one.start for one in landscape.bins if one.influence == 1.0] == [one.position for one in landscape.occurrences]
    assert all(0 <= one.influence <= 1 for one in landscape.bins)


def test_a_repeated_word_does_not_outweigh_a_place_where_words_meet():
    index = index_of(
        [
            plain_document("d1", "", "pump " * 30 + "x " * 300 + "pump valve"),
            plain_document("d2", "", "valve"),
            plain_document("d3", "", "x"),
        ]
    )
    landscape = index.landscape("pump valve", "d1", sigma=5)
    assert max(landscape.bins, key=lambda one: one.influence).start > 300


def test_words_that_no_document_contains_have_no_weight(index):
    landscape = index.landscape("pump zeppelin", "d1")
    assert [(one.word, one.idf > 0) for one in landscape.words] == [("pump", True), ("zeppelin", False)]
    assert landscape.bins == index.landscape("pump", "d1").bins
    assert {one.influence for one in index.landscape("zeppelin", "d1").bins} == {0.0}


def test_words_under_not_and_repeated_words_do_not_count(index):
    assert index.landscape("pump pumps -valve", "d1", syntax="boolean").bins == index.landscape("pump", "d1").bins


def test_a_word_in_several_languages_counts_once(tmp_path):
    index = Index.create(tmp_path / "idx")
    index.add([{"id": "en", "language": "en", "passages": ["a pump"]}, {"id": "de", "language": "de", "passages": ["eine Pumpe", "pump"]}])
    index.commit()
    assert max(one.influence for one in index.landscape("pump", "en").bins) == 1.0


def test_synonyms_and_near_words_count_as_the_word(index):
    landscape = index.landscape("pmup", "d1", fuzzy=2)
    assert [one.word for one in landscape.occurrences] == ["Pump", "pump", "pumps"]
    landscape = index.landscape("compressor", "d1", synonyms=["compressor, pump"])
    assert ([one.word for one in landscape.words], max(one.influence for one in landscape.bins)) == (["compressor"], 1.0)


def test_queries_may_be_topics_and_patents(index):
    assert index.landscape(Topic("1", "pump"), "d1") == index.landscape("pump", "d1")
    query = index.patent_query(claims="A pump with a valve.")
    assert [one.occurrences for one in index.landscape(query, "d1").words if one.idf] == [3, 1]


def test_listed_occurrences_are_limited(index):
    landscape = index.landscape("pump", "d1", listed=1)
    assert (len(landscape.occurrences), landscape.all_occurrences, landscape.words[0].occurrences) == (1, 3, 3)
    assert landscape.bins == index.landscape("pump", "d1").bins


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"sigma": 0}, "sigma must be a number above 0"),
        ({"sigma": math.nan}, "sigma must be a number above 0"),
        ({"bins": 0}, "bins must be a whole number of at least 1"),
        ({"listed": -1}, "listed must be a whole number of at least 0"),
        ({"document": "d9"}, "there is no document 'd9'"),
        ({"query": "?"}, "the query is empty"),
    ],
)
def test_mistakes_are_named(index, arguments, complaint):
    with pytest.raises(UsageError, match=complaint):
        index.landscape(**{"query": "pump", "document": "d1", **arguments})


def test_document_without_query_words_is_flat():
    index = index_of([plain_document("d1", "", "the valve"), plain_document("d2", "", "pump")])
    landscape = index.landscape("pump", "d1")
    assert (landscape.tokens, [one.influence for one in landscape.bins], landscape.occurrences) == (2, [0.0, 0.0], ())
    assert json.loads(json.dumps(landscape.to_dict()))["words"] == [{"word": "pump", "idf": landscape.words[0].idf, "occurrences": 0}]
