"""Documents by the vectors of their passages; vectors of one's own need no torch."""

from __future__ import annotations

import numpy as np
import pytest

from perikope.core.errors import UsageError
from perikope.neural.models import add_vectors, set_query_encoder
from perikope.search.facade import Index
from tests.support.collections import index_of, plain_document

DOCUMENTS = [
    plain_document("d1", "Pump", "A magnet drives the rotor.", "The seal keeps the fluid inside."),
    plain_document("d2", "Valve", "The valve opens."),
    plain_document("d3", "Heat", "Cold water.", "The rotor is warm."),
    plain_document("d4", "Ice", "Frozen water."),
]


@pytest.fixture(scope="module")
def index():
    found = index_of(DOCUMENTS, [2])
    rows = lambda texts: [[1.0 - text.count("rotor"), 0.1] if "water" in text else [0.0, 1.0] for text in texts]  # noqa: E731
    add_vectors(found, "own", rows, lambda text: np.array([1.0, 0.0]), 2)
    return found


def documents_of(index, *arguments, **options):
    matches = index.search(*arguments, also_nearest="own", **options).matches
    ids = [index._snapshot.document_id(number) for number in matches.number_of_document.tolist()]
    return dict(zip(ids, matches.score_of_document.tolist(), strict=True))


def test_those_with_words_and_as_many_that_are_nearest(index):
    scores = {hit.document: hit.score for hit in index.search("rotor", model="bm25", k=100)}
    assert set(scores) == {"d1", "d3"}
    found = documents_of(index, "rotor")
    assert set(found) == {"d1", "d2", "d3", "d4"}
    assert found["d2"] == found["d4"] == 0
    # d3 is looked into as the nearest, with what its word gives.
    assert documents_of(index, "magnet rotor", documents=1) == {
        id: pytest.approx(documents_of(index, "magnet rotor")[id]) for id in ("d1", "d3")
    }


def test_filters_hold_and_other_candidates_stay(index):
    assert set(documents_of(index, "rotor", filter="id=d1|d4")) == {"d1", "d4"}
    assert set(documents_of(index, "rotor", candidates={"d2": 3.0}, documents=1)) == {"d2", "d3"}
    assert index.search("frozen", also_nearest="own", model="vectors(store=own)", k=1)[0].document in ("d3", "d4")


def test_a_query_whose_words_nobody_has(index):
    assert not len(index.search("submarine", model="bm25"))
    assert documents_of(index, "submarine", documents=2) == {"d3": 0.0, "d4": 0.0}
    assert documents_of(index, "submarin*", syntax="boolean", documents=2) == {"d3": 0.0, "d4": 0.0}


def test_a_store_that_is_not_there(index):
    with pytest.raises(UsageError, match="perikope encode"):
        index.search("rotor", also_nearest="none")


def rows_by_water(texts):
    return [[float("water" in text), float("valve" in text)] for text in texts]


def test_each_open_index_has_its_own_encoder_of_queries():
    first, second = index_of(DOCUMENTS, [2]), index_of(DOCUMENTS, [4])
    add_vectors(first, "same", rows_by_water, lambda text: np.array([1.0, 0.0]), 2)
    add_vectors(second, "same", rows_by_water, lambda text: np.array([0.0, 1.0]), 2)
    again = Index.open(first.folder)
    set_query_encoder(again, "same", lambda text: np.array([0.0, 1.0]))
    asked = {"model": "vectors(store=same)", "also_nearest": "same", "k": 1}
    assert first.search("warm", **asked)[0].document in ("d3", "d4")
    assert second.search("warm", **asked)[0].document == "d2"
    assert again.search("warm", **asked)[0].document == "d2"


def test_an_index_that_is_opened_again_needs_an_encoder_of_queries():
    index = index_of(DOCUMENTS, [4])
    add_vectors(index, "own", rows_by_water, lambda text: np.array([1.0, 0.0]), 2)
    again = Index.open(index.folder)
    for options in ({"model": "vectors(store=own)"}, {"also_nearest": "own"}):
        with pytest.raises(UsageError, match=r"perikope\.neural\.models\.set_query_encoder\(index, 'own', …\)"):
            again.search("rotor", **options)
    set_query_encoder(again, "own", lambda text: np.array([1.0, 0.0]))
    asked = {"model": "vectors(store=own)", "also_nearest": "own"}
    assert again.search("rotor", **asked).names() == index.search("rotor", **asked).names()
    with pytest.raises(UsageError, match="there is no store of vectors 'onw'"):
        set_query_encoder(again, "onw", lambda text: np.array([1.0, 0.0]))


def test_what_encodes_queries_stays_over_commits():
    index = index_of(DOCUMENTS)
    add_vectors(index, "own", lambda texts: [[0.0, 1.0] for _ in texts], lambda text: np.array([1.0, 0.0]), 2)
    other = type(index).open(index.folder)
    index.delete(["d4"])
    index.commit()
    assert set(documents_of(index, "rotor")) >= {"d1", "d3"}
    index.compact()
    assert "own" in index.snapshot.query_encoders
    assert other.refresh()
    assert other.snapshot.query_encoders == {}


def test_the_error_for_missing_vectors_of_ones_own_names_the_function_that_adds_them():
    changed = index_of(DOCUMENTS[:2], [2])
    add_vectors(changed, "own", lambda texts: np.ones((len(texts), 2)), lambda text: np.ones(2), 2)
    changed.add(DOCUMENTS[2:])
    changed.commit()
    with pytest.raises(UsageError, match=r"update the store with perikope\.neural\.models\.add_vectors"):
        changed.search("rotor", model="vectors(store=own)")
