"""Read ranges of numbers from columns of 1, 2 or 4 bytes per number, and check numbers and ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perikope.core.arrays import Bytes, Integers, Unsigned32
from perikope.kernels.jit import kernel

ONE = np.uintp(1)


@kernel
def owners(first: Integers, end: Integers) -> Integers:
    """For each item of the ranges from `first` to `end` (exclusive), concatenated, the index of its range."""
    count = 0
    for i in range(first.size):
        count += end[i] - first[i]
    owner = np.empty(count, np.int64)
    at = np.uintp(0)
    for i in range(first.size):
        for _ in range(first[i], end[i]):
            owner[at] = i
            at += ONE
    return owner


@kernel
def read_ranges(data: Bytes, size: int, first: Integers, end: Integers) -> Integers:
    """The numbers in several ranges of a column, concatenated.

    `size` is the number of bytes per number, 1, 2 or 4; it is negative if the numbers are signed. Columns are passed as
    bytes, so that the kernel is not compiled for each combination of widths.
    """
    values = np.empty((end - first).sum(), np.int64)
    if size == 1:
        _copy_ranges(data, first, end, values)
    elif size == 2:
        _copy_ranges(data.view(np.uint16), first, end, values)
    elif size == 4:
        _copy_ranges(data.view(np.uint32), first, end, values)
    elif size == -1:
        _copy_ranges(data.view(np.int8), first, end, values)
    elif size == -2:
        _copy_ranges(data.view(np.int16), first, end, values)
    else:
        _copy_ranges(data.view(np.int32), first, end, values)
    return values


@kernel
def _copy_ranges(column: NDArray[np.integer[Any]], first: Integers, end: Integers, values: Integers) -> None:
    at = 0
    for i in range(first.size):
        values[at : at + end[i] - first[i]] = column[first[i] : end[i]]
        at += end[i] - first[i]


@kernel
def read_of_owners(data: Bytes, size: int, first: Integers, owner: Integers, number: Integers) -> Integers:
    """For each i, the number of a column at index `first[owner[i]] + number[i]`.

    The numbers are unsigned. `size` is the number of bytes per number: 1, 2 or 4.
    """
    values = np.empty(owner.size, np.int64)
    if size == 1:
        _pick(data, first, owner, number, values)
    elif size == 2:
        _pick(data.view(np.uint16), first, owner, number, values)
    else:
        _pick(data.view(np.uint32), first, owner, number, values)
    return values


@kernel
def _pick(column: Unsigned32, first: Integers, owner: Integers, number: Integers, values: Integers) -> None:
    for i in range(owner.size):
        values[i] = column[first[owner[i]] + number[i]]


@kernel
def are_below(number: Integers, owner: Integers, limit: Integers) -> bool:
    """Whether every number is from 0 to below the limit of its owner; `owner` has indexes of `limit`."""
    good = True
    for i in range(number.size):
        good &= (number[i] >= 0) & (number[i] < limit[owner[i]])
    return good


@kernel
def are_ranges(first: Integers, end: Integers, length: Integers, owner: Integers, limit: Integers) -> bool:
    """Whether all ranges of tokens, from `first` to `end` (exclusive), are valid.

    A range must not end before it begins, nor after the limit of its owner; `owner` has indexes of `limit`. `length` is
    the number of tokens of a range that are not stop words. It must not be larger than the range.
    """
    good = True
    for i in range(first.size):
        good &= (first[i] <= end[i]) & (end[i] <= limit[owner[i]]) & (length[i] <= end[i] - first[i])
    return good
