"""Compute the ranks of a few rows without sorting: the rank is the number of better rows plus 1."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Floats, Integers, Mask
from perikope.kernels.jit import kernel


@kernel
def count_better(
    value: Floats,
    order: Integers,
    eligible: Mask,
    rows: Integers,
    first: Integers,
    end: Integers,
    most: int,
) -> tuple[Integers, Integers]:
    """The ranks, from 1, of some rows among all eligible rows, and among the eligible rows of a range.

    The range of `rows[i]` is from `first[i]` to `end[i]` (exclusive). Rows with larger values are better; if values are
    equal, those with a smaller `order`. `eligible` has one flag per row; if it is empty, all rows are eligible. Both
    ranks are 0 if the row is not eligible, or if its rank among all rows is larger than `most`.
    """
    rank = np.zeros(rows.size, np.int64)
    inside = np.zeros(rows.size, np.int64)
    everything = eligible.size == 0
    for i in range(rows.size):
        row = rows[i]
        if not (everything or eligible[row]):
            continue
        own_value, own_order = value[row], order[row]
        before = 0
        for other in range(value.size):
            better = value[other] > own_value or (value[other] == own_value and order[other] < own_order)
            before += better and (everything or eligible[other])
        if before < most:
            rank[i] = before + 1
            near = 0
            for other in range(first[i], end[i]):
                better = value[other] > own_value or (value[other] == own_value and order[other] < own_order)
                near += better and (everything or eligible[other])
            inside[i] = near + 1
    return rank, inside
