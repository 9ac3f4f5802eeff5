"""Hash, merge and sort byte strings that are stored one after the other in one array."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Integers, Unsigned64
from perikope.kernels.jit import inner, kernel, step


@kernel
def hash_strings(ends: Unsigned64, data: Bytes) -> Unsigned64:
    """A 64-bit hash of each string (FNV-1a with a final mixing step). String `s` is `data[ends[s - 1] : ends[s]]`."""
    hashes = np.empty(ends.size, np.uint64)
    begin = np.uint64(0)
    for i in range(ends.size):
        code = np.uint64(0xCBF29CE484222325)
        for at in range(begin, ends[i]):
            code = (code ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
        code ^= code >> np.uint64(32)
        hashes[i] = code * np.uint64(0x9E3779B97F4A7C15)
        begin = ends[i]
    return hashes


@kernel
def merge_sorted(order: Integers, first: Integers, start: Integers, end: Integers, data: Bytes) -> tuple[Integers, Integers]:
    """Merge sorted lists of strings.

    String number `s` is `data[start[s] : end[s]]`. The numbers of the strings of list `i` are
    `order[first[i] : first[i + 1]]`. Returns the rank of each string among the distinct strings, and for each rank the
    number of one string with this rank.
    """
    lists = first.size - 1
    head = first[:-1].copy()
    rank = np.empty(start.size, np.int64)
    example = np.empty(start.size, np.int64)
    count = 0
    while True:
        smallest = np.int64(-1)
        for i in range(lists):
            if head[i] < first[i + 1]:
                candidate = order[head[i]]
                if smallest < 0 or _less(start, end, data, candidate, smallest):
                    smallest = candidate
        if smallest < 0:
            return rank, example[:count].copy()
        example[count] = smallest
        for i in range(lists):
            if head[i] < first[i + 1] and not _less(start, end, data, smallest, order[head[i]]):
                rank[order[head[i]]] = count
                head[i] += 1
        count += 1


@inner
def _less(start: Integers, end: Integers, data: Bytes, a: int, b: int) -> bool:
    """Whether string number `a` comes before string number `b`."""
    length = min(end[a] - start[a], end[b] - start[b])
    for i in range(length):
        x, y = data[start[a] + i], data[start[b] + i]
        if x != y:
            return x < y
    return end[a] - start[a] < end[b] - start[b]


@kernel
def pack_strings(ends: Unsigned64, data: Bytes, numbers: Integers, chunks: int) -> Unsigned64:
    """The first `8 · chunks` bytes of chosen strings as numbers of eight bytes, shape (chunks, strings).

    Shorter strings are filled up with zeros. Comparing the numbers of two strings, chunk by chunk, compares these
    bytes. String `s` is `data[ends[s - 1] : ends[s]]`.
    """
    packed = np.zeros((chunks, numbers.size), np.uint64)
    for i in range(numbers.size):
        begin = np.int64(ends[numbers[i] - 1]) if numbers[i] > 0 else np.int64(0)
        length = min(int(ends[numbers[i]]) - int(begin), 8 * chunks)
        for at in range(length):
            packed[at // 8, i] |= np.uint64(data[begin + at]) << np.uint64(56 - 8 * (at % 8))
    return packed


@kernel
def order_runs(groups: Integers, keys: Unsigned64, longest: int) -> Integers:
    """The indexes of all rows, after each run of adjacent rows with the same group is sorted by its keys.

    `keys` has shape (chunks, rows), as from `pack_strings`. The result is empty if a run is longer than `longest`.
    """
    order = np.empty(groups.size, np.int64)
    for i in range(groups.size):
        order[i] = i
    first = 0
    while first < groups.size:
        end = first + 1
        while end < groups.size and groups[end] == groups[first]:
            end += 1
        if end - first > longest:
            return order[:0]
        for i in range(first + 1, end):
            row = order[i]
            at = i
            while at > first and _before(keys, row, order[at - 1]):
                order[at] = order[at - 1]
                at -= 1
            order[at] = row
        first = end
    return order


@step
def _before(keys: Unsigned64, row: int, other: int) -> bool:
    """Whether the keys of `row` come before the keys of `other`."""
    for chunk in range(keys.shape[0]):
        if keys[chunk, row] != keys[chunk, other]:
            return keys[chunk, row] < keys[chunk, other]
    return False


_SPACE, _ASCII = 0x20, 0x80


def are_distinct(text: Bytes, ends: Integers) -> bool:
    """Whether it is certain that lines of text are distinct and ASCII, and that none is empty or holds white space.

    Line i ends before `ends[i]`, with a line break.
    """
    breaks = int(np.count_nonzero(text <= _SPACE))
    if breaks != ends.size or np.diff(ends, prepend=0).min(initial=2) <= 1 or text.max(initial=0) >= _ASCII:
        return False
    return bool(np.unique(hash_strings(ends.astype(np.uint64), text)).size == ends.size)
