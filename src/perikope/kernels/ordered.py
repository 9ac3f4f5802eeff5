"""Steps that several kernels share: binary search, and arrays that grow."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Array
from perikope.kernels.jit import kernel, step


@step
def lower_bound(values: Array, low: int, high: int, wanted: int) -> int:
    """The first index from `low` to below `high` whose value is at least `wanted`, or `high`. Values must rise."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def enlarged(values: Array, used: int, size: int) -> Array:
    """A new array of `size` elements. It begins with the first `used` elements of `values`; the others are not set."""
    larger = np.empty(size, values.dtype)
    larger[:used] = values[:used]
    return larger
