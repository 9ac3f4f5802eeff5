"""Searches with the same candidates share what does not depend on the query, and find the same as without."""

import gc
import weakref
from dataclasses import fields

import numpy as np
import pytest

from perikope.browse import candidate_set
from perikope.browse.matches import Matches, Occurrences, join
from perikope.fetch import Candidates
from perikope.query.terms import Query
from perikope.search.facade import Index
from tests.support.collections import plain_document


@pytest.fixture
def index(tmp_path):
    made = Index.create(str(tmp_path / "index"))
    for segment in range(2):
        made.add([plain_document(f"{segment}{n}", f"pump {n}", f"rotor {n}", f"valve of the pump {n % 3}") for n in range(6)])
        made.commit()
    return made


def matches_of(index, word, documents, units="passages"):
    numbers = np.array(documents)
    return join(
        index.snapshot, Query(word, (f"en:{word}",), (1.0,)), Candidates(numbers, np.arange(numbers.size, dtype=float)), units=units
    )


def equal(one, other):
    arrays = [(name, getattr(one, name), getattr(other, name)) for name in (field.name for field in fields(Matches))]
    arrays += [(field.name, *(getattr(matches.occurrences(), field.name) for matches in (one, other))) for field in fields(Occurrences)]
    for name, a, b in arrays:
        if isinstance(a, np.ndarray):
            assert np.array_equal(a, b), name
            assert a.dtype == b.dtype, name
    for frequencies in ("in_documents", "in_passages", "in_titles"):
        a, b = getattr(one, frequencies), getattr(other, frequencies)
        assert all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("first_entry", "term", "count", "unit"))
    assert np.array_equal(one.id_rank_of_document(), other.id_rank_of_document())
    assert np.array_equal(one.structure().parent_of_span, other.structure().parent_of_span)
    assert np.array_equal(one.characters().position_of_occurrence, other.characters().position_of_occurrence)


@pytest.mark.parametrize("units", ["passages", "elements", "documents"])
def test_shared_columns_are_those_read_anew(index, units):
    asked = [("pump", [0, 3, 7]), ("rotor", [0, 3, 7]), ("valv", [0, 3, 7]), ("pump", [3, 7]), ("pump", [0, 3, 7]), ("valv", [0, 3, 7])]
    for word, documents in asked:
        shared = matches_of(index, word, documents, units)
        alone = matches_of(Index.open(index.snapshot.folder), word, documents, units)
        equal(shared, alone)


@pytest.mark.parametrize("words", [["pump"], ["valv", "pump"], ["rotor", "missing", "0", "pump"]])
def test_frequencies_from_lists_are_those_of_the_tokens(index, monkeypatch, words):
    monkeypatch.setattr(candidate_set, "_MANY", 1)
    query = Query(" ".join(words), tuple(f"en:{word}" for word in words), (1.0,) * len(words))
    candidates = Candidates(np.array([1, 3, 7, 11]), np.zeros(4))
    for _ in range(4):
        listed = join(index.snapshot, query, candidates)
    assert "listed terms" in index.snapshot.derived["candidates"]._derived
    equal(listed, join(Index.open(index.snapshot.folder).snapshot, query, candidates))


def test_lists_are_made_for_many_expected_searches_and_few_tokens(index, monkeypatch):
    def listed():
        for _ in range(3):
            matches_of(index, "pump", [0, 1])
        return "listed terms" in index.snapshot.derived["candidates"]._derived

    assert not listed()
    for most, expected in ((1, False), (1 << 20, True)):
        index.snapshot.derived.clear()
        candidate_set.expect_searches(index.snapshot, candidate_set._MANY)
        monkeypatch.setattr(candidate_set, "MOST_TOKENS", most)
        assert listed() == expected


def test_a_set_is_kept_when_it_is_asked_for_again(index):
    def kept():
        return index.snapshot.derived.get("candidates")

    matches_of(index, "pump", [0, 1])
    assert kept() is None
    first = matches_of(index, "rotor", [0, 1])
    assert kept() is not None
    assert matches_of(index, "pump", [0, 1]).length_of_passage is first.length_of_passage
    assert matches_of(index, "pump", [0, 2]).length_of_passage is not first.length_of_passage
    assert matches_of(index, "pump", [0, 1], "documents").length_of_passage is not first.length_of_passage


def test_a_large_set_is_not_kept(index, monkeypatch):
    monkeypatch.setattr(candidate_set, "MOST_KEPT", 1)
    for _ in range(3):
        matches_of(index, "pump", [0, 1])
    assert "candidates" not in index.snapshot.derived


def test_a_kept_set_keeps_no_snapshot(index):
    for _ in range(3):
        matches = matches_of(index, "pump", [0, 1, 8])
        matches.structure()
        matches.id_rank_of_document()
    del matches
    snapshot = Index.open(index.snapshot.folder).snapshot
    for _ in range(3):
        made = join(snapshot, Query("pump", ("en:pump",), (1.0,)), Candidates(np.array([0, 1]), np.zeros(2)))
        made.structure()
    freed = weakref.ref(snapshot)
    gc.disable()
    try:
        del snapshot, made
        assert freed() is None
    finally:
        gc.enable()
