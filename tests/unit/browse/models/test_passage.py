"""Passages mixed with the score of their document, for positive and negative scores."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.browse.models import parse_model
from perikope.browse.signals import SMALLEST, fact, share
from perikope.core.errors import UsageError
from tests.support.collections import index_of, plain_document

MIXED = ["psg_doc", "plm(sigma=5)", "psg_neighbor"]


@pytest.fixture(scope="module")
def index():
    texts = {"d1": "pump", "d2": "pump rotor", "d3": "pump rotor seal shaft", "d4": "pump valve valve valve"}
    return index_of([plain_document(id, "Pumps", text, "A shaft.") for id, text in texts.items()])


def check(node):
    assert math.isclose(node.recomputed(), node.value, rel_tol=1e-9, abs_tol=1e-12), node.label
    for child in node.children:
        check(child)


def documents(results):
    return list(dict.fromkeys(hit.document for hit in results))


@pytest.mark.parametrize("model", MIXED)
@pytest.mark.parametrize(
    "scores", [[-1.0, -2.0, -3.0, -4.0], [3.0, 1.0, -1.0, -3.0], [2.0, 1.0, -1.0, -2.5], [1.0, 0.5, 0.0, -1e-9], [-5.0, -5.5, -6.0, -7.0]]
)
def test_the_order_of_documents_is_that_of_their_scores(index, model, scores):
    candidates = dict(zip(["d3", "d1", "d4", "d2"], scores, strict=True))
    name = model.replace("(", "(lam=1,") if "(" in model else f"{model}(lam=1)"
    results = index.search("pump", model=name, candidates=candidates, k=100)
    best = {id: max(hit.score for hit in results if hit.document == id) for id in candidates}
    assert sorted(best, key=best.get, reverse=True) == list(candidates)
    assert min(hit.score for hit in results) >= 0
    for number in range(len(results)):
        check(results.explain(number))


@pytest.mark.parametrize("fetch", ["lm", "bm25(idf=robertson)"])
@pytest.mark.parametrize("model", ["psg_doc(lam=1)", "plm(lam=1)"])
def test_documents_come_as_they_were_fetched(index, fetch, model):
    results = index.search("pump rotor", model=model, fetch=fetch, k=100)
    score = dict(zip(results.matches.number_of_document.tolist(), results.matches.score_of_document.tolist(), strict=True))
    assert min(score.values()) < 0
    ids = [index._snapshot.document_id(number) for number in sorted(score, key=score.get, reverse=True)]
    assert documents(results) == ids


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_shares_follow_the_values_and_add_up(values):
    column = share(fact("x", np.array(values)))
    below = min(values) < 0
    counted = [value - min(values) for value in values] if below else values
    assert np.isfinite(column.values).all()
    if sum(counted) >= max(1e-9 * max(map(abs, values)), SMALLEST):
        assert column.values == pytest.approx(np.array(counted) / sum(counted), rel=1e-6, abs=1e-9)
    assert (np.diff(column.values[np.argsort(values, kind="stable")]) >= 0).all()
    check(column.explain(0))


def test_what_is_not_below_0_is_divided_as_it_is():
    assert share(fact("x", np.array([1.0, 3.0, 0.0]))).values.tolist() == [0.25, 0.75, 0.0]
    assert share(fact("x", np.zeros(2))).values.tolist() == [0.0, 0.0]
    assert share(fact("x", np.full(2, -4.0))).values.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("model", ["lm", "qsf_v", "qsf_v_title", "qsf_section", "qsf_section_propagate", "qsf_passage_propagate"])
def test_smoothing_has_an_end(index, model):
    with pytest.raises(UsageError, match=r"mu=1e\+308 is out of range; it must be in \(0, 1e\+09\]"):
        parse_model(f"{model}(mu=1e308)")
    for mu in ("1e9", "1e-300"):
        assert np.isfinite(index.search("pump rotor", model=f"{model}(mu={mu})").score.values).all()


@pytest.mark.parametrize("fetch", ["lm(mu=1e308)", "sim(mu=1e308)"])
def test_so_has_that_of_documents(index, fetch):
    with pytest.raises(UsageError, match="out of range"):
        index.search("pump", fetch=fetch)
