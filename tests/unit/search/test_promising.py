"""Hits are the same whether all candidates are joined or only those that can have hits."""

import numpy as np
import pytest

from perikope.browse.bounds import best_scores, held_terms
from perikope.browse.models import parse_model
from perikope.search.options import SearchOptions
from perikope.search.steps import Search
from tests.support.collections import index_of

WORDS = [f"w{i}" for i in range(40)]
QUERY = "w0 w1 w2 w5 w11 w30 w39"


def documents(count=400):
    """Documents of few words, so that many scores are equal; titles hold query words too."""
    random = np.random.default_rng(7)
    chance = 1 / np.arange(1, 41)
    chance /= chance.sum()

    def words(size):
        return " ".join(random.choice(WORDS, size, p=chance))

    for number in range(count):
        passages = [words(random.integers(1, 9)) for _ in range(random.integers(1, 7))]
        if number % 50 == 0:
            passages.append("w1 " * 300)  # a frequency that takes more than a byte
        section = {"title": words(2), "passages": passages[1:]}
        part = "abstract" if number % 3 else "body"
        yield {
            "id": f"d{number * 7919 % 1000}",
            "title": words(3),
            "passages": passages[:1],
            "sections": [section],
            "metadata": {"part": part},
        }


@pytest.fixture(scope="module")
def index():
    return index_of(list(documents()), [150, 260])


def searched(index, query, **options):
    """The results of a search, and those of the same search that joins all candidates."""
    search = Search(index.snapshot, SearchOptions(**options))
    prepared = search.prepare(query)
    return search.run(prepared), search.results(prepared, search.rank(search.matches(search.candidates(prepared))))


@pytest.mark.parametrize(
    ("options", "is_shortened"),
    [
        ({}, True),
        ({"model": "bm25"}, True),
        ({"model": "bm25(k1=0,b=1)"}, True),
        ({"model": "coverage(b=1,neighbors=0,document=0)"}, True),
        ({"offset": 5, "k": 3}, True),
        ({"model": "bm25", "offset": 5, "k": 3}, True),
        ({"language": "en"}, True),
        ({"language": "en", "model": "bm25"}, True),
        ({"must_match": True}, False),
        ({"expand": "bo1", "model": "bm25"}, True),
        ({"k": 1000}, False),
        ({"model": "lm"}, False),
        ({"model": "bm25(statistics=candidates)"}, False),
        ({"one_per": ("document",)}, False),
        ({"group_by_document": "score"}, False),
        ({"browse_expand": "bo1"}, False),
        ({"elements": True}, False),
    ],
)
def test_the_hits_are_those_of_all_candidates(index, options, is_shortened):
    some, everything = searched(index, QUERY, **options)
    if is_shortened:
        assert some._ranked.matches.documents < everything.matches.documents / 2
    assert some.names() == everything.names()
    assert some._ranked.ranking.scores.tobytes() == everything.ranking.scores.tobytes()
    assert list(some) == list(everything)
    assert [some.explain(i) for i in range(len(some))] == [everything.explain(i) for i in range(len(some))]
    assert some.notes == everything.notes
    columns = some.signals(), everything.signals()
    assert all(np.array_equal(columns[0][name], columns[1][name]) for name in columns[1])


def test_what_is_about_all_candidates_reads_them_all(index):
    for ask in (
        lambda results: results.document_ranking(),
        lambda results: results.facets("part"),
        lambda results: (results.matches.documents, results.ranking.rows.tolist(), results.score.values.tolist()),
        lambda results: sorted(results.rows_of(["d0#@1", "d919#@1"]).items()),
    ):
        some, everything = searched(index, QUERY)
        before = some.names()
        assert some._ranked.matches.documents < everything.matches.documents
        assert ask(some) == ask(everything)
        assert some.names() == before


@pytest.mark.parametrize("language", ["", "en"])
@pytest.mark.parametrize("query", [QUERY, "w0", "w39 w38 w37", "w1^0.001 w2", "w1 missing"])
@pytest.mark.parametrize(
    "model",
    ["coverage", "coverage(k1=0.1,b=1,titles=0.3,neighbors=1,document=0.2)", "coverage(b=0)", "bm25", "bm25(k1=3,b=1)", "bm25(k1=0)"],
)
def test_a_bound_is_not_below_any_score(index, query, model, language):
    search = Search(index.snapshot, SearchOptions(model=model, language=language))
    fetched = search.candidates(search.prepare(query))
    matches = search.matches(fetched)
    best = np.zeros(matches.documents)
    np.maximum.at(best, matches.document_of_passage, search.model.score(matches).values)
    held = held_terms(index.snapshot, fetched.query, matches.number_of_document)
    bound, of_passage = search.model.bound(held)
    assert (bound * (1 + 1e-9) >= best).all()
    if of_passage is not None:
        scores = best_scores(index.snapshot, fetched.query.terms, matches.number_of_document, of_passage)
        np.testing.assert_allclose(scores[0], best, rtol=1e-12)
        np.testing.assert_allclose(scores[1], search.model.score(matches).values, rtol=1e-12)
    dense = np.zeros(held.frequency.shape)
    counts = matches.in_documents
    dense[counts.term, counts.unit] = counts.count
    np.testing.assert_array_equal(np.where(dense >= 255, 1 << 31, dense), held.frequency)


def test_only_models_whose_scores_do_not_depend_on_other_candidates_are_bounded():
    assert parse_model("coverage").is_bounded
    assert parse_model("bm25").is_bounded
    assert not parse_model("bm25(statistics=candidates)").is_bounded
    assert not parse_model("fuse(models=[bm25,lm],weights=[1,1])").is_bounded
