"""The kernel against its plain twin."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.facets import strictly_rising

strings = st.lists(st.binary(max_size=3), max_size=6)


@given(strings | strings.map(sorted) | strings.map(lambda found: sorted(set(found))))
def test_strictly_rising(strings):
    end = np.cumsum([len(string) for string in strings], dtype=np.int64)
    start = end - np.array([len(string) for string in strings], np.int64)
    assert strictly_rising(start, end, np.frombuffer(b"".join(strings), np.uint8)) == all(a < b for a, b in pairwise(strings))
