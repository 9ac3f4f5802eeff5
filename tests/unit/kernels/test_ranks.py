import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.ranks import count_better


@given(st.data(), st.integers(1, 40))
def test_ranks_are_those_of_the_sorted_rows(data, size):
    # Few values, so that many are equal.
    value = np.array(data.draw(st.lists(st.integers(-2, 2), min_size=size, max_size=size)), np.float64)
    order = np.array(data.draw(st.permutations(range(size))), np.int64)
    eligible = np.array(data.draw(st.one_of(st.just([]), st.lists(st.booleans(), min_size=size, max_size=size))), bool)
    rows = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=5, unique=True)), np.int64)
    first = np.array([data.draw(st.integers(0, row)) for row in rows.tolist()], np.int64)
    end = np.array([data.draw(st.integers(row + 1, size)) for row in rows.tolist()], np.int64)
    most = data.draw(st.integers(1, size))

    ranking = sorted((row for row in range(size) if not eligible.size or eligible[row]), key=lambda row: (-value[row], order[row]))[:most]
    wanted = [ranking.index(row) + 1 if row in ranking else 0 for row in rows.tolist()]
    near = [
        [other for other in ranking if low <= other < high].index(row) + 1 if row in ranking else 0
        for row, low, high in zip(rows.tolist(), first.tolist(), end.tolist(), strict=True)
    ]
    rank, inside = count_better(value, order, eligible, rows, first, end, most)
    assert (rank.tolist(), inside.tolist()) == (wanted, near)
