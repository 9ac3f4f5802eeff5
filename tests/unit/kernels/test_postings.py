"""Each kernel of inversion equals its plain twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.postings import count_units, invert, sum_runs

units_of_tokens = st.lists(st.lists(st.integers(0, 4), max_size=8), max_size=6)


def flat(units):
    bounds = np.cumsum([0, *map(len, units)]).astype(np.int64)
    return np.array([token for unit in units for token in unit], np.uint32), bounds[:-1], bounds[1:]


@given(units_of_tokens)
def test_invert(units):
    first, unit, frequency = invert(*flat(units), 5)
    for term in range(5):
        expected = [(i, tokens.count(term)) for i, tokens in enumerate(units) if term in tokens and term != 0]
        inside = slice(first[term], first[term + 1])
        assert list(zip(unit[inside].tolist(), frequency[inside].tolist(), strict=True)) == expected


@given(units_of_tokens)
def test_count_units(units):
    holding, occurrences = count_units(*flat(units), 5)
    assert holding.tolist() == [0, *(sum(term in tokens for tokens in units) for term in range(1, 5))]
    assert occurrences.tolist() == [0, *(sum(tokens.count(term) for tokens in units) for term in range(1, 5))]


@given(units_of_tokens, st.data())
def test_sum_runs(units, data):
    document_of_unit = sorted(data.draw(st.lists(st.integers(0, 3), min_size=len(units), max_size=len(units))))
    postings = invert(*flat(units), 5)
    first, document, total, first_unit = sum_runs(*postings, np.array(document_of_unit, np.uint32))
    for term in range(1, 5):
        expected = {}
        for unit, tokens in enumerate(units):
            if term in tokens:
                expected[document_of_unit[unit]] = expected.get(document_of_unit[unit], 0) + tokens.count(term)
        inside = slice(first[term], first[term + 1])
        assert dict(zip(document[inside].tolist(), total[inside].tolist(), strict=True)) == expected
    for posting in range(document.size):
        own = slice(first_unit[posting], first_unit[posting + 1])
        assert {document_of_unit[unit] for unit in postings[1][own]} == {document[posting]}
        assert postings[2][own].sum() == total[posting]
