"""At which rank does a row stand? Counted without sorting: one more than there are better rows."""

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
    """The rank of each of some rows, from 1, among all that are eligible, and among those from `first` to `end`; 0 beyond `most`.

    Higher values come first, equal ones by `order`. Without any value in `eligible` all rows are.
    """
    rank = np.zeros(rows.size, np.int64)
    inside = np.zeros(rows.size, np.int64)
    everything = eligible.size == 0
    for i in range(rows.size):
        row = rows[i]
        if not (everything or eligible[row]):
            continue
        own, place = value[row], order[row]
        before = 0
        for other in range(value.size):
            better = value[other] > own or (value[other] == own and order[other] < place)
            before += better and (everything or eligible[other])
        if before < most:
            rank[i] = before + 1
            near = 0
            for other in range(first[i], end[i]):
                better = value[other] > own or (value[other] == own and order[other] < place)
                near += better and (everything or eligible[other])
            inside[i] = near + 1
    return rank, inside
