"""Sums that are independent of the order of their summands, to the last bit.

The order of documents in an index is arbitrary, and a sum of floating-point numbers depends on their order. Here, each
value is rounded to a multiple of one power of two, and these multiples are added as integers.
"""

from __future__ import annotations

import math

from perikope.core.arrays import Floats
from perikope.kernels.jit import inner, kernel

_BITS = 61
"""A sum of multiples has at most this number of bits, so that 64-bit integers hold it."""


@kernel
def exact_sum(values: Floats, shift: float) -> float:
    """The sum of `x - shift` over all values x, in any order."""
    largest = 0.0
    for i in range(values.size):
        largest = max(largest, abs(values[i] - shift))
    low, high, back = _scales(largest, values.size)
    total = 0
    for i in range(values.size):
        total += round((values[i] - shift) * low * high)
    return math.ldexp(float(total), back)


@kernel
def exact_squares(values: Floats, mean: float) -> float:
    """The sum of `(x - mean)²` over all values x, in any order."""
    largest = 0.0
    for i in range(values.size):
        largest = max(largest, (values[i] - mean) * (values[i] - mean))
    low, high, back = _scales(largest, values.size)
    total = 0
    for i in range(values.size):
        distance = values[i] - mean
        total += round(distance * distance * low * high)
    return math.ldexp(float(total), back)


@inner
def _scales(largest: float, count: int) -> tuple[float, float, int]:
    """Two powers of two whose product turns values into multiples, and the exponent of the power that turns them back.

    The sum of `count` multiples must fit in `_BITS` bits. There are two factors, because their product may be too large
    for a floating-point number.
    """
    length = 0
    while count >> length:
        length += 1
    exponent = _BITS - length - math.frexp(largest)[1]
    half = exponent // 2
    return math.ldexp(1.0, half), math.ldexp(1.0, exponent - half), -exponent
