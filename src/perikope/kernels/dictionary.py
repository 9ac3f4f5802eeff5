"""Find terms by name, and read numbers from columns of 1, 2, 4 or 8 bytes per number."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Integers, Unsigned32, Unsigned64
from perikope.kernels.jit import inner, kernel, step

BLOCK_SHIFT = 12
"""The binary logarithm of the size of a block, see `index/blocks.py`."""
BLOCK_SOUND, BLOCK_TOUCHED = 1, 2
"""States of blocks."""


@inner
def read(data: Bytes, size: int, index: int) -> int:
    """The unsigned number at an index of a column; `size` is the number of bytes per number: 1, 2, 4 or 8.

    Columns come as bytes, so that a kernel is not compiled for each width.
    """
    value: int = np.int64(0)
    for i in range(size):
        value |= np.int64(data[index * size + i]) << (8 * i)
    return value


@kernel
def find_names(
    wanted: Bytes,
    wanted_ends: Integers,
    in_order: Unsigned32,
    ends: Unsigned64,
    data: Bytes,
    state: Bytes,
    offset: int,
) -> Integers:
    """The number of each wanted name, or -1 if it does not exist; and at the end how many unverified names were read.

    Name number n is `data[ends[n - 1] : ends[n]]`. `in_order` has the numbers of all names, sorted by their bytes. The
    wanted names are stored likewise in `wanted` and `wanted_ends`. `state` has one value per block of `data`, which
    begins `offset` bytes after the start of the first block; see `index/blocks.py`. Blocks that are read and are not
    `SOUND` become `TOUCHED`. An empty `state` leaves this out.
    """
    numbers = np.empty(wanted_ends.size + 1, np.int64)
    unverified = np.int64(0)
    begin = np.int64(0)
    for i in range(wanted_ends.size):
        numbers[i] = -1
        end = wanted_ends[i]
        low, high = 0, in_order.size
        while low < high:
            middle = (low + high) // 2
            if state.size:
                unverified += _touch(in_order[middle], ends, state, offset)
            order = _compare(in_order[middle], ends, data, wanted, begin, end)
            if order == 0:
                numbers[i] = in_order[middle]
                break
            if order < 0:
                low = middle + 1
            else:
                high = middle
        begin = end
    numbers[wanted_ends.size] = unverified
    return numbers


@step
def _touch(number: int, ends: Unsigned64, state: Bytes, offset: int) -> int:
    """Touch the blocks of the name with this number. Returns how many of them were not verified."""
    at = offset + (np.int64(ends[np.int64(number) - 1]) if number else np.int64(0))
    last = offset + np.int64(ends[np.int64(number)]) - 1
    unverified = 0
    for block in range(at >> BLOCK_SHIFT, (last >> BLOCK_SHIFT) + 1 if last >= at else 0):
        if state[block] != BLOCK_SOUND:
            state[block] = BLOCK_TOUCHED
            unverified += 1
    return unverified


@step
def _compare(number: int, ends: Unsigned64, data: Bytes, wanted: Bytes, begin: int, end: int) -> int:
    """-1 if the name with this number comes before `wanted[begin:end]`, 0 if they are equal, 1 if it comes after."""
    at = np.int64(ends[np.int64(number) - 1]) if number else np.int64(0)
    stop = np.int64(ends[np.int64(number)])
    at_wanted = begin
    while at < stop and at_wanted < end:
        if data[at] != wanted[at_wanted]:
            return -1 if data[at] < wanted[at_wanted] else 1
        at += 1
        at_wanted += 1
    if at == stop:
        return 0 if at_wanted == end else -1
    return 1
