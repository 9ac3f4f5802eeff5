"""Sums in any order equal sums of exact fractions, rounded as the kernel says."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.sums import exact_squares, exact_sum

numbers = st.lists(st.floats(-1e100, 1e100) | st.integers(-100, 100).map(float) | st.floats(-1e-300, 1e-300), max_size=40)


def plain_sum(values):
    """The sum of values, each rounded to a multiple of the power of two for which the sum has at most 61 bits."""
    largest = max((abs(value) for value in values), default=0.0)
    exponent = 61 - len(values).bit_length() - np.frexp(largest)[1].item()
    scale = Fraction(2) ** exponent
    return float(sum(round(Fraction(value) * scale) for value in values) / scale)


@given(numbers, st.randoms(use_true_random=False))
def test_sums_equal_their_plain_versions_in_every_order(values, random):
    array = np.array(values, np.float64)
    shift = values[0] if values else 0.0
    assert exact_sum(array, 0.0) == plain_sum(values)
    assert exact_sum(array, shift) == plain_sum((array - shift).tolist())
    assert exact_squares(array, shift) == plain_sum(((array - shift) ** 2).tolist())
    random.shuffle(values)
    other = np.array(values, np.float64)
    assert exact_sum(other, 0.0) == exact_sum(array, 0.0)
    assert exact_squares(other, shift) == exact_squares(array, shift)


def test_sums_are_as_good_as_those_of_numpy():
    values = np.random.default_rng(1).normal(size=100_000)
    assert exact_sum(values, 0.0) == pytest.approx(values.sum(), rel=1e-9)
    assert exact_squares(values, 0.5) == pytest.approx(((values - 0.5) ** 2).sum(), rel=1e-12)
