"""Find terms by name, and read numbers from columns of 1, 2, 4 or 8 bytes per number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Bytes, Integers, Unsigned32, Unsigned64
from perikope.kernels.jit import inner, kernel, step

BLOCK_SHIFT = 12
"""The binary logarithm of the size of a block, see `index/blocks.py`."""
BLOCK_SOUND, BLOCK_TOUCHED = 1, 2
"""States of blocks."""


class ColumnBlocks(NamedTuple):
    """The blocks of a column, see `index/blocks.py`."""

    state: Bytes
    """One state per block; empty if there is nothing to verify."""
    offset: int
    """Where the column begins in the first block."""


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
    of_order: ColumnBlocks,
    of_ends: ColumnBlocks,
    of_data: ColumnBlocks,
) -> Integers:
    """The number of each wanted name, or -1 if it does not exist; and at the end how many unverified blocks were read.

    Name number n is `data[ends[n - 1] : ends[n]]`. `in_order` has the numbers of all names, sorted by their bytes. The
    wanted names are stored likewise in `wanted` and `wanted_ends`. Blocks that are read and are not `SOUND` become
    `TOUCHED`. If a number or an end is impossible, the last value is -1 and the others mean nothing.
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
            unverified += _touch(of_order, middle * in_order.itemsize, (middle + 1) * in_order.itemsize)
            number = np.int64(in_order[middle])
            if number >= ends.size:
                numbers[wanted_ends.size] = -1
                return numbers
            unverified += _touch(of_ends, (number - 1 if number else number) * ends.itemsize, (number + 1) * ends.itemsize)
            at = np.int64(ends[number - 1]) if number else np.int64(0)
            stop = np.int64(ends[number])
            if not 0 <= at <= stop <= data.size:
                numbers[wanted_ends.size] = -1
                return numbers
            unverified += _touch(of_data, at, stop)
            order = _compare(data[at:stop], wanted[begin:end])
            if order == 0:
                numbers[i] = number
                break
            if order < 0:
                low = middle + 1
            else:
                high = middle
        begin = end
    numbers[wanted_ends.size] = unverified
    return numbers


@step
def _touch(blocks: ColumnBlocks, first: int, end: int) -> int:
    """Touch the blocks of the bytes from `first` to `end` of a column. Returns how many of them were not verified."""
    unverified = 0
    if blocks.state.size and first < end:
        for block in range((blocks.offset + first) >> BLOCK_SHIFT, ((blocks.offset + end - 1) >> BLOCK_SHIFT) + 1):
            if blocks.state[block] != BLOCK_SOUND:
                blocks.state[block] = BLOCK_TOUCHED
                unverified += 1
    return unverified


@step
def _compare(name: Bytes, wanted: Bytes) -> int:
    """-1 if the name comes before the wanted one, 0 if they are equal, 1 if it comes after."""
    for i in range(min(name.size, wanted.size)):
        if name[i] != wanted[i]:
            return -1 if name[i] < wanted[i] else 1
    return 0 if name.size == wanted.size else -1 if name.size < wanted.size else 1
