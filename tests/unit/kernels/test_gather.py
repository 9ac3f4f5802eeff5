"""Each kernel that gathers what documents own equals its plain twin."""

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels import gather
from perikope.kernels.gather import number_column, owners, read_ranges

columns = st.sampled_from([np.uint8, np.uint16, np.uint32]).flatmap(
    lambda kind: st.lists(st.integers(0, np.iinfo(kind).max), min_size=10, max_size=10).map(lambda values: np.array(values, kind))
)
ranges_in_ten = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)).map(sorted), max_size=5)


signed_columns = st.sampled_from([np.int8, np.int16, np.int32]).flatmap(
    lambda kind: st.lists(st.integers(np.iinfo(kind).min, np.iinfo(kind).max), min_size=10, max_size=10).map(lambda v: np.array(v, kind))
)


@given(columns | signed_columns, ranges_in_ten)
def test_read_ranges_and_their_owners(column, ranges):
    first, end = (np.array([r[i] for r in ranges], np.int64) for i in range(2))
    expected = [int(n) for a, b in ranges for n in column[a:b]]
    for few in (0, 10_000):  # by the kernel, and by numpy
        with mock.patch.object(gather, "_FEW", few):
            assert [values.tolist() for values in read_ranges([number_column(column)] * 2, first, end)] == [expected, expected]
    assert owners(first, end).tolist() == [i for i, (a, b) in enumerate(ranges) for _ in range(a, b)]
