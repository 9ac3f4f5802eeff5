"""Expansion against numbers worked out by hand and against plain twins."""

import math

import numpy as np
import pytest

from perikope.core.errors import UsageError
from perikope.fetch import Candidates
from perikope.fetch.expansion import EXPANSIONS, Feedback, bo1, canonical, expand, rm3
from perikope.query.terms import Query, parse_query
from tests.support.collections import index_of, plain_document


def weights(query):
    return dict(zip(query.terms, query.weights, strict=True))


def test_bo1_gives_the_worked_numbers():
    # N = 1000; the query term occurs 5 times in the feedback (cf 50), a new term twice in two documents (cf 400).
    feedback = Feedback(("en:a", "en:b"), np.array([[3.0, 1], [2, 1]]), np.array([9.0, 9]), np.array([2.0, 1]), np.array([50.0, 400]), 1000)
    expanded = weights(bo1(Query("a", ("en:a",), (1.0,)), feedback))
    assert expanded == pytest.approx({"en:a": 1.575812, "en:b": 0.107158}, abs=1e-6)


def test_bo1_takes_new_terms_only_from_two_documents():
    feedback = Feedback(("en:a", "en:b"), np.array([[3.0, 9], [2, 0]]), np.array([9.0, 9]), np.array([2.0, 1]), np.array([50.0, 400]), 1000)
    assert set(weights(bo1(Query("a", ("en:a",), (1.0,)), feedback))) == {"en:a"}


def test_bo1_scales_by_the_largest_query_frequency():
    feedback = Feedback(("en:a",), np.array([[3.0]]), np.array([9.0]), np.array([2.0]), np.array([50.0]), 1000)
    expanded = weights(bo1(Query("a a b", ("en:a", "en:b"), (2.0, 1.0)), feedback))
    assert expanded["en:b"] == 0.5
    assert expanded["en:a"] > 1


def test_rm3_mixes_the_relevance_model_with_the_query():
    feedback = Feedback(
        ("en:a", "en:b"), np.array([[3.0, 1], [0, 5]]), np.array([10.0, 20]), np.array([3.0, 1]), np.array([50.0, 400]), 1000
    )
    a, b = 0.75 * 3 / 10, 0.75 * 1 / 10 + 0.25 * 5 / 20
    expanded = weights(rm3(Query("a", ("en:a",), (1.0,)), feedback, original=0.6))
    assert expanded == pytest.approx({"en:a": 0.6 + 0.4 * a / (a + b), "en:b": 0.4 * b / (a + b)})
    assert math.isclose(sum(expanded.values()), 1)


@pytest.fixture(scope="module")
def index():
    texts = ["pump rotor rotor", "pump rotor magnet", "pump seal", "valve", "magnet magnet valve"]
    return index_of([plain_document(f"d{i}", "", text) for i, text in enumerate(texts)], [2], stopwords="none")


@pytest.mark.parametrize("name", EXPANSIONS.names())
def test_the_words_come_from_the_best_documents(index, name):
    snapshot = index._snapshot
    query = parse_query("pump", snapshot.analyzer, ["en"])
    candidates = Candidates(np.array([0, 1, 2]), np.array([3.0, 2.0, 1.0]))
    expanded = weights(expand(snapshot, query, candidates, f"{name}(documents=2)"))
    assert "en:rotor" in expanded
    assert "en:seal" not in expanded
    assert "en:valv" not in expanded
    assert max(expanded, key=expanded.get) == "en:pump"


def test_nothing_found_adds_nothing(index):
    snapshot = index._snapshot
    query = parse_query("zeppelin", snapshot.analyzer, ["en"])
    assert expand(snapshot, query, Candidates(np.zeros(0, np.int64), np.zeros(0)), "bo1") == query


def test_search_with_expansion_finds_more(index):
    plain = {hit.document for hit in index.search("rotor", model="bm25")}
    more = {hit.document for hit in index.search("rotor", model="bm25", expand="rm3(documents=2)")}
    assert plain < more


def test_names_and_mistakes(index):
    assert canonical("rm3") == "rm3(documents=10,terms=10,original=0.5)"
    with pytest.raises(UsageError, match="unknown expansion 'bo2'; did you mean 'bo1'"):
        index.search("rotor", expand="bo2")
    with pytest.raises(UsageError, match="out of range"):
        index.search("rotor", expand="bo1(terms=0)")
