"""The threshold of a search for the best documents: the minimum sum of a result."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Floats, Integers
from perikope.kernels.jit import inner, step
from perikope.kernels.ordered import select

SMALLEST = 5e-324
"""The smallest positive number. If sums only grow, every document in a list has at least this sum."""
BLOCK = 64
"""Number of documents that are compared with a threshold at once; `reached` returns one bit for each of them."""
_SAMPLE = 1024
"""Approximate number of sums from which a threshold is guessed."""


@inner
def reaching(sums: Floats, cut: float) -> int:
    """The number of sums that are at least `cut`. The loop has no branch, so that many sums are compared at once."""
    count = 0
    for i in range(sums.size):
        count += sums[i] >= cut
    return count


@inner
def _reaching_allowed(sums: Floats, cut: float, allowed: Bytes) -> int:
    """The number of sums of allowed documents that are at least `cut`."""
    count = 0
    for i in range(sums.size):
        count += (sums[i] >= cut) & (allowed[i] != 0)
    return count


@step
def highest(sums: Floats, k: int, allowed: Bytes) -> float:
    """The k-th highest sum of allowed documents, or 0 if fewer than k have a positive sum.

    The k highest so far are kept in order. Few sums are higher than the lowest of them, after the first ones.
    """
    best = np.zeros(k)
    for block in range((sums.size + BLOCK - 1) // BLOCK):
        bits = reached(sums, block, max(best[0], SMALLEST))
        while bits != 0:
            i = BLOCK * block + lowest_bit(bits)
            bits &= bits - np.uint64(1)
            if sums[i] > best[0] and (allowed.size == 0 or allowed[i] != 0):
                at = 1
                while at < k and best[at] < sums[i]:
                    best[at - 1] = best[at]
                    at += 1
                best[at - 1] = sums[i]
    return best[0]


@inner
def threshold_of(sums: Floats, k: int, allowed: Bytes) -> float:
    """A value that the sums of at least k allowed documents reach, near the k-th highest sum; 0 if none is found.

    For large k, the value is guessed from a sample and then checked, because finding the k-th highest sum exactly takes
    longer than adding up a short query.
    """
    if k <= BLOCK:
        return highest(sums, k, allowed)
    step = max(sums.size // _SAMPLE, 1)
    sample = np.empty(2 * _SAMPLE)
    held = 0
    for i in range(0, sums.size, step):
        if allowed.size == 0 or allowed[i] != 0:
            sample[held] = sums[i]
            held += 1
    expected = k / step
    rank = k if step == 1 else np.int64(expected + 2 * np.sqrt(expected)) + 1
    while rank <= held:
        value = select(sample, held, held - rank)
        if value <= 0.0:
            return 0.0
        count = reaching(sums, value) if allowed.size == 0 else _reaching_allowed(sums, value, allowed)
        if count >= k:
            return value
        rank *= 2
    return 0.0


_BIT_OF_PRODUCT = np.zeros(64, np.int64)
_DE_BRUIJN = 0x03F79D71B4CB0A89
for _bit in range(64):
    _BIT_OF_PRODUCT[((_DE_BRUIJN << _bit) & ((1 << 64) - 1)) >> 58] = _bit


@step
def reached(sums: Floats, block: int, cut: float) -> np.uint64:
    """A bit for each of the 64 sums of a block: whether it is at least `cut`. The loop has no branch.

    The last block may go beyond `sums`, but not beyond the buffer of which `sums` is the beginning.
    """
    bits = np.uint64(0)
    for i in range(BLOCK):
        bits |= np.uint64(sums[BLOCK * block + i] >= cut) << np.uint64(i)
    return bits


@step
def lowest_bit(bits: np.uint64) -> int:
    """The number of the lowest bit that is set, by multiplication with a de Bruijn sequence. `bits` must not be 0."""
    return _BIT_OF_PRODUCT[((bits & (~bits + np.uint64(1))) * np.uint64(_DE_BRUIJN)) >> np.uint64(58)]


@step
def shrink(documents: Integers, scores: Floats, held: int, k: int) -> tuple[int, float]:
    """Keep the k best documents and all that tie with the k-th best; return their number and the lowest score."""
    copy = np.empty(held)
    for i in range(held):
        copy[i] = scores[i]
    threshold = select(copy, held, held - k)
    count = 0
    for i in range(held):
        if scores[i] >= threshold:
            documents[count] = documents[i]
            scores[count] = scores[i]
            count += 1
    return count, threshold
