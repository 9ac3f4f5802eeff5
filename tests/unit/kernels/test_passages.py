"""What passages get from their words, their neighbours and their documents equals its plain twin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.passages import beside, likelihoods, sum_documents

values = st.sampled_from([0.0, 1e-9, 0.25, 1.0, 7.5, 1e6])
documents = st.lists(st.lists(values, max_size=6), max_size=4)


def flat(documents):
    first = np.cumsum([0, *(len(document) for document in documents)]).astype(np.int64)
    return np.array([value for document in documents for value in document], np.float64), first


@given(st.lists(st.tuples(st.lists(values, max_size=3), st.integers(0, 50)), max_size=6), st.floats(0.1, 2000), st.floats(-20, 1))
def test_likelihoods(texts, mu, smoothed):
    contribution, first_entry = flat([[min(value, 10.0) for value in own] for own, _ in texts])
    found = likelihoods(first_entry, contribution, np.array([length for _, length in texts], np.int64), mu, smoothed)
    expected = [math.exp(smoothed + sum(min(value, 10.0) for value in own) - math.log(length + mu)) for own, length in texts]
    assert found.tolist() == pytest.approx(expected, rel=1e-12)


@given(documents, st.sampled_from([-1, 1]), st.lists(st.sampled_from([1.0, 0.5, 0.125]), max_size=8))
def test_beside(documents, step, weights):
    value, first_passage = flat(documents)
    found = beside(value, first_passage, step, np.array(weights, np.float64))
    expected = [
        sum(weight * document[i + step * d] for d, weight in enumerate(weights, 1) if 0 <= i + step * d < len(document))
        for document in documents
        for i in range(len(document))
    ]
    assert found.tolist() == pytest.approx(expected, rel=1e-12)


@given(documents)
def test_sum_documents(documents):
    assert sum_documents(*flat(documents)).tolist() == [sum(document) for document in documents]
