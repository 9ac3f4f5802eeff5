"""The kernel of landscapes, compared with a plain double loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.core.arrays import frozen
from perikope.kernels.landscape import add_nearest


@given(
    st.integers(1, 60).flatmap(lambda tokens: st.tuples(st.just(tokens), st.lists(st.sets(st.integers(0, tokens - 1)), max_size=4))),
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
)
def test_each_position_has_the_nearest_occurrence_of_each_word(given_words, falling):
    tokens, words = given_words
    by_distance = np.array(sorted(falling, reverse=True))
    weight = np.arange(1.0, len(words) + 1)
    expected = np.zeros(tokens)
    for word, positions in enumerate(words):
        for x in range(tokens):
            values = [by_distance[abs(x - at)] for at in positions if abs(x - at) < by_distance.size]
            expected[x] += weight[word] * max(values, default=0.0)
    position = np.array([at for positions in words for at in sorted(positions)], np.int64)
    first = np.cumsum([0, *map(len, words)])
    found = add_nearest(*(frozen(column) for column in (position, first, weight, by_distance)), tokens)
    assert np.allclose(found, expected, rtol=1e-12, atol=0)
