"""Steps that several kernels share: binary search, and arrays that grow."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Array, Floats, Integers
from perikope.kernels.jit import inner, step


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


@step
def enlarged(values: Array, used: int, size: int) -> Array:
    """A new array of `size` elements. It begins with the first `used` elements of `values`; the others are not set."""
    larger = np.empty(size, values.dtype)
    for i in range(used):
        larger[i] = values[i]
    return larger


@inner
def select(values: Floats, count: int, index: int) -> float:
    """The value at `index` if the first `count` values were sorted. Moves no smaller value behind it.

    This is Hoare's selection with the median of three as the pivot.
    """
    low, high = 0, count - 1
    while low < high:
        first, middle, last = values[low], values[(low + high) // 2], values[high]
        pivot = max(min(first, middle), min(max(first, middle), last))
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if j < index:
            low = i
        if index < i:
            high = j
    return values[index]


_GAPS = (701, 301, 132, 57, 23, 10, 4, 1)


@inner
def sort_pairs(keys: Integers, values: Floats, count: int) -> None:
    """Sort the first `count` keys, and move each value with its key. Keys are distinct. This is a shell sort."""
    for gap in _GAPS:
        for i in range(gap, count):
            key, value = keys[i], values[i]
            at = i
            while at >= gap and keys[at - gap] > key:
                keys[at] = keys[at - gap]
                values[at] = values[at - gap]
                at -= gap
            keys[at] = key
            values[at] = value
