"""Read ranges of numbers from columns of 1, 2 or 4 bytes per number, and check numbers and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perikope.core.arrays import Array, Bytes, Integers, Unsigned16, Unsigned32, frozen
from perikope.kernels.jit import inner, kernel

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


class NumberColumn(NamedTuple):
    """A column of integers, as a view of one of three types; the views of the other two types are empty.

    All columns have this type, so a kernel that reads columns is compiled once, not once per width and sign.
    """

    bytes: Bytes
    shorts: Unsigned16
    words: Unsigned32
    size: int
    """Bytes per number: 1, 2 or 4."""
    sign: int
    """The sign bit of the numbers, or 0 if they are unsigned."""


_NO_NUMBERS: tuple[Array, ...] = np.zeros(0, np.uint8), np.zeros(0, np.uint16), np.zeros(0, np.uint32)


def number_column(column: Array) -> NumberColumn:
    """A column whose numbers have 1, 2 or 4 bytes, signed or unsigned, as kernels read it."""
    one, two, four = (frozen(column.view(none.dtype) if column.itemsize == none.itemsize else none.view()) for none in _NO_NUMBERS)
    sign = 1 << (8 * column.itemsize - 1) if column.dtype.kind == "i" else 0
    return NumberColumn(one, two, four, column.itemsize, sign)


_FEW = 4096
"""If this many numbers or fewer are read, numpy is as fast as a kernel, and need not be compiled."""


def read_ranges(columns: Sequence[NumberColumn], first: Integers, end: Integers) -> list[Integers]:
    """For each column, the numbers in several ranges, concatenated."""
    count = int((end - first).sum())
    values = [np.empty(count, np.int64) for _ in columns]
    read_ranges_to(values, columns, first, end)
    return values


def read_ranges_to(values: Iterable[Integers], columns: Iterable[NumberColumn], first: Integers, end: Integers) -> None:
    """Read the numbers in several ranges of each column, concatenated, to one array of `values` per column."""
    length = end - first
    count = int(length.sum())
    if count > _FEW:
        for to, column in zip(values, columns, strict=True):
            _read_ranges(column, first, end, to)
        return
    inside = np.arange(count) + np.repeat(end - length.cumsum(), length)
    for to, column in zip(values, columns, strict=True):
        to[:] = (column.bytes, column.shorts, column.words)[column.size >> 1][inside]
        if column.sign:
            to[:] = (to ^ column.sign) - column.sign


@kernel
def _read_ranges(column: NumberColumn, first: Integers, end: Integers, values: Integers) -> None:
    if column.size == 1:
        _copy_ranges(column.bytes, column.sign, first, end, values)
    elif column.size == 2:
        _copy_ranges(column.shorts, column.sign, first, end, values)
    else:
        _copy_ranges(column.words, column.sign, first, end, values)


@inner
def _copy_ranges(column: NDArray[np.integer[Any]], sign: int, first: Integers, end: Integers, values: Integers) -> None:
    at = 0
    for i in range(first.size):
        given, to = column[first[i] : end[i]], values[at : at + end[i] - first[i]]
        for j in range(given.size):
            to[j] = (np.int64(given[j]) ^ sign) - sign
        at += given.size


@inner
def number_at(column: NumberColumn, row: int) -> int:
    """One number of a column."""
    if column.size == 1:
        number = np.int64(column.bytes[row])
    elif column.size == 2:
        number = np.int64(column.shorts[row])
    else:
        number = np.int64(column.words[row])
    return (number ^ column.sign) - column.sign  # type: ignore[return-value]
