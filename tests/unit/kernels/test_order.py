"""Numbers in falling order, as sorting by comparison gives them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.order import falling, rows_of_largest

numbers = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, -1.0, 5e-324, -5e-324, np.inf, -np.inf])


@given(st.lists(numbers, max_size=40))
def test_falling(values):
    assert falling(np.array(values, np.float64)).tolist() == sorted(range(len(values)), key=lambda i: -values[i])


def test_falling_of_many_that_are_mostly_equal():
    values = np.random.default_rng(7).integers(-3, 4, 5000) / 7
    assert falling(values).tolist() == np.argsort(-values, kind="stable").tolist()


@given(st.lists(st.tuples(numbers, st.booleans()), max_size=40), st.booleans(), st.integers(1, 45))
def test_rows_of_largest(rows, restricted, most):
    values, allowed = np.array([value for value, _ in rows], np.float64), np.array([flag for _, flag in rows], bool)
    kept = [i for i in range(len(rows)) if allowed[i] or not restricted]
    least = sorted([values[i] for i in kept], reverse=True)[most - 1] if len(kept) >= most else -np.inf
    assert rows_of_largest(values, allowed if restricted else allowed[:0], most).tolist() == [i for i in kept if values[i] >= least]
