"""Ranges of row numbers."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Array


def ranges(first: Array, end: Array) -> Array:
    """Concatenate the ranges of integers from `first[i]` to `end[i]` (exclusive)."""
    counts = end - first
    numbers: Array = np.arange(int(counts.sum())) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    return numbers
