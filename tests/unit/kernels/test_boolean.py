"""Each kernel of Boolean matching equals its plain twin."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.boolean import (
    Stretches,
    TermOccurrences,
    TokenRanges,
    both,
    covered,
    either,
    followed,
    held,
    holding,
    phrases,
    reach,
)

DOCUMENTS = 3


def shortest(stretches):
    """Those that hold no other, straight from the definition."""
    found = set(stretches)
    return sorted((s, e) for s, e in found if not any((a, b) != (s, e) and s <= a and b <= e for a, b in found))


stretches = st.tuples(st.integers(0, 12), st.integers(0, 4)).map(lambda pair: (pair[0], pair[0] + pair[1]))
lists = st.lists(st.lists(stretches, max_size=6).map(shortest), min_size=DOCUMENTS, max_size=DOCUMENTS)
ranges = st.lists(st.tuples(st.integers(0, DOCUMENTS - 1), st.integers(0, 14), st.integers(0, 14)), max_size=8)
occurrences = st.lists(st.dictionaries(st.integers(0, 15), st.integers(0, 3)), min_size=DOCUMENTS, max_size=DOCUMENTS)
distances = st.integers(1, 5)


def columns(found):
    flat = [stretch for document in found for stretch in document]
    first = np.cumsum([0, *map(len, found)]).astype(np.int64)
    return Stretches(first, *(np.array([stretch[i] for stretch in flat], np.int64) for i in range(2)))


def by_document(first, start, end):
    pairs = list(zip(start.tolist(), end.tolist(), strict=True))
    return [pairs[a:b] for a, b in itertools.pairwise(first.tolist())]


def tokens(documents):
    """Terms by position, as columns of occurrences."""
    flat = [item for document in documents for item in sorted(document.items())]
    term, position = (np.array([item[i] for item in flat], np.int32) for i in (1, 0))
    return TermOccurrences(term, position, np.cumsum([0, *map(len, documents)]).astype(np.int64))


def hulls(one, other):
    return [(min(a, c), max(b, d)) for (a, b), (c, d) in itertools.product(one, other)]


def near(one, other, distance):
    return [((a, b), (c, d)) for (a, b), (c, d) in itertools.product(one, other) if 0 < c - b <= distance]


@given(lists, lists)
def test_either(one, other):
    assert by_document(*either(columns(one), columns(other))) == [shortest(a + b) for a, b in zip(one, other, strict=True)]


@given(lists, lists)
def test_both(one, other):
    assert by_document(*both(columns(one), columns(other))) == [shortest(hulls(a, b)) for a, b in zip(one, other, strict=True)]


@given(lists, lists, distances)
def test_followed(one, other, distance):
    expected = [shortest((i[0], j[1]) for i, j in near(a, b, distance)) for a, b in zip(one, other, strict=True)]
    assert by_document(*followed(columns(one), columns(other), distance)) == expected


@given(lists, lists, distances)
def test_reach(one, other, distance):
    """The union of what it gives is the union of all pairs."""
    found = by_document(*reach(columns(one), columns(other), distance))
    for reached, a, b in zip(found, one, other, strict=True):
        pairs = [(i[0], j[1]) for i, j in near(a, b, distance)]
        assert set(reached) <= set(pairs)
        assert [start for start, _ in reached] == sorted(start for start, _ in reached)
        assert {x for s, e in reached for x in range(s, e + 1)} == {x for s, e in pairs for x in range(s, e + 1)}


@given(occurrences, st.lists(st.tuples(st.integers(1, 3), st.sets(st.integers(0, 3))), min_size=1, max_size=4))
def test_phrases(documents, words):
    offsets = np.cumsum([step for step, _ in words]) - words[0][0]
    counts = np.array([[term in terms for term in range(4)] for _, terms in words])
    found = by_document(*phrases(tokens(documents), offsets, counts))
    steps = offsets.tolist()
    assert found == [
        [(p, p + steps[-1]) for p in range(16) if all(d.get(p + o, -1) in terms for o, (_, terms) in zip(steps, words, strict=True))]
        for d in documents
    ]


@given(lists, occurrences, st.sets(st.integers(0, 3)))
def test_covered(found, documents, terms):
    counts = np.array([term in terms for term in range(4)])
    flags = covered(columns(found), tokens(documents), counts).tolist()
    assert flags == [
        term in terms and any(s <= position <= e for s, e in document_stretches)
        for document_stretches, document in zip(found, documents, strict=True)
        for position, term in sorted(document.items())
    ]


@given(lists, ranges)
def test_held(found, ranges):
    own = TokenRanges(*(np.array([r[i] for r in ranges], np.int64) for i in range(3)))
    assert held(columns(found), own).tolist() == [any(a <= s and e < b for s, e in found[d]) for d, a, b in ranges]


@given(lists, ranges.map(sorted))
def test_holding(found, ranges):
    own = TokenRanges(*(np.array([r[i] for r in ranges], np.int64) for i in range(3)))
    expected = [any(r == d and a <= s and e < b for r, a, b in ranges) for d, document in enumerate(found) for s, e in document]
    assert holding(columns(found), own).tolist() == expected
