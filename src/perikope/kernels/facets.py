"""Check that byte strings are sorted."""

from __future__ import annotations

from perikope.core.arrays import Bytes, Integers
from perikope.kernels.jit import kernel
from perikope.kernels.strings import _less


@kernel
def strictly_rising(start: Integers, end: Integers, data: Bytes) -> bool:
    """Whether each string is greater than the previous one. String `s` is `data[start[s] : end[s]]`."""
    rising = True
    for i in range(1, start.size):
        rising = rising and _less(start, end, data, i - 1, i)
    return rising
