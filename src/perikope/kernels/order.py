"""Sort numbers from the largest to the smallest, and find the largest ones and those that are equal."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Floats, Integers, Integers32, Mask, Unsigned64
from perikope.kernels.jit import inner, kernel, step

_BITS = np.uint64(11)
_DIGITS = 6
_DIGIT = np.uint64((1 << 11) - 1)
_SIGN = np.uint64(1 << 63)


def falling(value: Floats) -> Integers32:
    """The indexes of numbers from the largest to the smallest; equal numbers stay in their order.

    This is a radix sort by digits of 11 bits, the lowest digit first. 100,000 scores take 2 ms, whatever their
    distribution; a sort by comparison takes 10 ms (measured).
    """
    order: Integers32 = _falling((value + 0.0).view(np.uint64))  # turns -0 into 0
    return order


@kernel
def _falling(bits: Unsigned64) -> Integers32:
    """The same for the bits of the numbers."""
    count = bits.size
    key = np.empty(count, np.uint64)
    order = np.empty(count, np.int32)
    counts = np.zeros((_DIGITS, 1 << 11), np.int32)
    for i in range(count):
        # Keys must decrease as numbers increase. The bits of a negative number do, and its sign bit puts it last.
        # The bits of a positive number increase with it, so they are inverted, except for the sign bit.
        bits_left = bits[i] if bits[i] & _SIGN else ~bits[i] ^ _SIGN
        key[i] = bits_left
        order[i] = i
        for digit in range(_DIGITS):
            counts[digit, bits_left & _DIGIT] += 1
            bits_left >>= _BITS
    other_key = np.empty(count, np.uint64)
    other_order = np.empty(count, np.int32)
    shift = np.uint64(0)
    for digit in range(_DIGITS):
        first = counts[digit]
        if count > 0 and first[(key[0] >> shift) & _DIGIT] < count:  # else all numbers have the same digit
            total = np.int32(0)
            for i in range(first.size):
                total, first[i] = total + first[i], total
            for i in range(count):
                bucket = (key[i] >> shift) & _DIGIT
                at = np.uint32(first[bucket])
                other_key[at] = key[i]
                other_order[at] = order[i]
                first[bucket] += 1
            key, other_key = other_key, key
            order, other_order = other_order, order
        shift += _BITS
    return order


_BUCKETS = 2048
"""Numbers are counted in so many equal parts of their range."""


@kernel
def rows_of_largest(value: Floats, allowed: Mask, most: int) -> Integers:
    """The rows of the `most` largest values, and of all values that equal the smallest of them, in ascending order.

    `allowed` has one flag per row; rows whose flag is false are left out. If it is empty, all rows are allowed. `most`
    must be above 0. Values are counted in equal parts of their range, and only those in the part with the smallest of
    the largest are compared with each other. No loop over all rows has a branch that depends on the values.
    """
    everything = allowed.size == 0
    low, high = np.inf, -np.inf
    for row in range(value.size):
        low, high = min(low, value[row]), max(high, value[row])
    # The number of a part is a truncated product, so it never falls where the value rises.
    scale = (_BUCKETS - 1) / (high - low)
    if not 0 < scale < np.inf:  # all values are equal or too near to each other, or one of them is infinite
        scale = 0.0
    counts = np.zeros(_BUCKETS, np.int64)
    for row in range(value.size):
        counts[_bucket(value[row], low, scale)] += (everything or allowed[row]) & (value[row] == value[row])
    bucket, above = _BUCKETS - 1, np.int64(0)
    while bucket > 0 and above + counts[bucket] < most:
        above += counts[bucket]
        bucket -= 1
    inside = np.empty(counts[bucket] + 1, np.float64)
    count = 0
    for row in range(value.size):
        inside[count] = value[row]
        count += (_bucket(value[row], low, scale) == bucket) & (everything or allowed[row]) & (value[row] == value[row])
    least = _put_largest_first(inside, count, most - above) if above + count >= most else -np.inf
    rows = np.empty(above + count + 1, np.int64)
    at = 0
    for row in range(value.size):
        rows[at] = row
        at += (value[row] >= least) & (everything or allowed[row])
    return rows[:at].copy()


@inner
def _bucket(value: float, low: float, scale: float) -> int:
    """The part of the range in which a value is: 0 for NaN, and for all values if the scale is 0."""
    if scale == 0:
        return 0
    part = (value - low) * scale
    return np.int64(part) if part < _BUCKETS - 1 else _BUCKETS - 1 if part >= _BUCKETS - 1 else 0  # type: ignore[return-value]


@inner
def _put_largest_first(values: Floats, count: int, most: int) -> float:
    """Order the first `count` values so that the `most` largest come first. Returns the smallest of these.

    This is quickselect with the median of three as pivot.
    """
    low, high, wanted = 0, count - 1, most - 1
    while low < high:
        a, b, c = values[low], values[(low + high) >> 1], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        left, right = low, high
        while left <= right:
            while values[left] > pivot:
                left += 1
            while values[right] < pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return values[wanted]


_MANY = 4096
"""More scores than this are sorted by all their bits, since insertion may take long if they are near each other."""
_NOT_A_NUMBER = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def best_first(numbers: Integers, scores: Floats, most: int) -> tuple[Integers, Floats, Integers, Integers]:
    """Sort numbers by their scores, the highest first; equal scores stay in their order. NaN comes last.

    Returns the sorted numbers and scores. Then, for *ties*, which are runs of two or more equal scores: the index of
    each number in a tie, and the index of the first number of its tie. Ties that begin at `most` or later are left out.

    Up to 4,096 scores are sorted by the 22 highest bits of their differences from the highest (radix sort), and then by
    insertion. 1,000 scores take a third of the time of a sort by all bits.
    """
    count = scores.size
    order, key = _roughly_ordered(scores)
    for i in range(1, count):
        row = order[i]
        at = i
        while at > 0 and key[order[at - 1]] > key[row]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = row
    sorted_numbers, sorted_scores = np.empty(count, np.int64), np.empty(count)
    tied, first_of_tie = np.empty(count, np.int64), np.empty(count, np.int64)
    ties = 0
    first = 0
    for i in range(count):
        sorted_numbers[i] = numbers[order[i]]
        sorted_scores[i] = scores[order[i]]
        if i > 0 and sorted_scores[i] == sorted_scores[i - 1]:
            if first < most:
                if i == first + 1:
                    tied[ties] = first
                    first_of_tie[ties] = first
                    ties += 1
                tied[ties] = i
                first_of_tie[ties] = first
                ties += 1
        else:
            first = i
    return sorted_numbers, sorted_scores, tied[:ties], first_of_tie[:ties]


@step
def _roughly_ordered(scores: Floats) -> tuple[Integers32, Unsigned64]:
    """An order in which no score is far from its place, and a key per score, which falls as the score rises."""
    count = scores.size
    key = np.empty(count, np.uint64)
    low, high = _NOT_A_NUMBER, np.uint64(0)
    bits = (scores + 0.0).view(np.uint64)  # turns -0 into 0
    for i in range(count):
        key[i] = _NOT_A_NUMBER if scores[i] != scores[i] else bits[i] if bits[i] & _SIGN else ~bits[i] ^ _SIGN
        low, high = min(low, key[i]), max(high, key[i])
    shift = np.uint64(0)
    digits = _DIGITS
    if count <= _MANY:
        digits = 2
        while count and (high - low) >> shift >= np.uint64(1 << 22):
            shift += np.uint64(1)
    order, other = np.empty(count, np.int32), np.empty(count, np.int32)
    for i in range(count):
        other[i] = i
    for _ in range(digits):
        first = np.zeros((1 << 11) + 1, np.int32)
        for i in range(count):
            first[(((key[i] - low) >> shift) & _DIGIT) + np.uint64(1)] += 1
        for digit in range(1 << 11):
            first[digit + 1] += first[digit]
        for i in range(count):
            digit_of_row = ((key[other[i]] - low) >> shift) & _DIGIT
            order[first[digit_of_row]] = other[i]
            first[digit_of_row] += 1
        order, other = other, order
        shift += _BITS
    return other, key


def ties(scores: Floats, most: int) -> tuple[Integers, Integers]:
    """The ties of falling scores, as `best_first` returns them, by numpy, which need not be compiled."""
    equal = scores[1:] == scores[:-1]
    same_as_before = np.concatenate([[False], equal])
    tie = np.maximum.accumulate(np.where(same_as_before, 0, np.arange(scores.size)))
    tied = np.flatnonzero((same_as_before | np.concatenate([equal, [False]])) & (tie < most))
    return tied, tie[tied]
