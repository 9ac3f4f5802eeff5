"""Numbers in falling order, as sorting by comparison gives them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.order import falling

numbers = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, -1.0, 5e-324, -5e-324, np.inf, -np.inf])


@given(st.lists(numbers, max_size=40))
def test_falling(values):
    assert falling(np.array(values, np.float64)).tolist() == sorted(range(len(values)), key=lambda i: -values[i])


def test_falling_of_many_that_are_mostly_equal():
    values = np.random.default_rng(7).integers(-3, 4, 5000) / 7
    assert falling(values).tolist() == np.argsort(-values, kind="stable").tolist()
