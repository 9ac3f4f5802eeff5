"""Ranges of row numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perikope.core.arrays import Array


def ranges(first: Array, end: Array) -> Array:
    """Concatenate the ranges of integers from `first[i]` to `end[i]` (exclusive)."""
    counts = end - first
    numbers: Array = np.arange(int(counts.sum())) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    return numbers


def portions(first: Array, chunk: int) -> Iterator[range]:
    """Yield consecutive ranges of groups, such as documents. `first` has the first row of each group, and the end.

    The groups of a range have at most `chunk` rows together, unless it is a single group.
    """
    group, groups = 0, first.size - 1
    while group < groups:
        end = max(group + 1, int(np.searchsorted(first, first.dtype.type(min(int(first[group]) + chunk, int(first[-1]))), "right")) - 1)
        yield range(group, end)
        group = end
