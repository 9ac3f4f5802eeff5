"""Ranks of rows, counted without sorting: one more than the number of better rows."""

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
    """The rank of some rows, from 1, among all eligible rows and among those from `first` to `end`; 0 beyond `most`.

    Higher values come first, equal ones by `order`. Without any value in `eligible` all rows are.
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
