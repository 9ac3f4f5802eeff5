"""Write names of passages, and the lines of run files, as bytes.

A run has a thousand lines per topic. In Python, each of them takes longer than everything else a search does for it.
"""

from __future__ import annotations

import math

import numpy as np

from perikope.core.arrays import Bytes, Floats, Floats32, Integers, Mask
from perikope.kernels.gather import ONE, NumberColumn, number_at
from perikope.kernels.jit import inner, kernel

NEWLINE, SPACE, MINUS, POINT, ZERO, AT, HASH, PERCENT, DELETE, LETTER_E, PLUS = b"\n -.0@#%\x7fe+"

MOST_DIGITS = 20
"""The largest number of digits of an integer."""
_LONGEST_SCORE = 16
"""The largest number of characters of a score, as in `-1.23456789e-45`."""

_POWERS = np.array([float(f"1e{power}") for power in range(54)])
"""Powers of ten. Up to 10^22 they are exact."""
_LARGEST = float(np.finfo(np.float32).max)
_EXACT = 12
"""The product of a float32 and this power of ten is exact in float64, as are those with smaller powers."""
_DIGITS = 9
"""Significant digits of scores. Nine digits restore every float32 exactly."""
_DOUBTFUL = 1e-5
"""If a product may be inexact and is this near to the middle of two integers, it is not known how to round it."""


@kernel
def rows_of_spans(column: NumberColumn, first: Integers, end: Integers, spans: Integers, document: Integers, span: Integers) -> Integers:
    """For each pair of a document and one of its spans, the row of a column that holds this span, or -1.

    `column` has numbers of spans, in any order; the rows of document d are those from `first[d]` to `end[d]`
    (exclusive). If several rows hold the same span, the last one counts. `spans` has the number of spans of each
    document. `document` must be in ascending order.
    """
    most = np.int64(0)
    for i in range(spans.size):
        most = max(most, spans[i])
    row_of_span = np.full(most, -1, np.int64)
    rows = np.empty(span.size, np.int64)
    at = 0
    while at < span.size:
        here = document[at]
        for row in range(first[here], end[here]):
            held = number_at(column, row)
            if 0 <= held < spans[here]:
                row_of_span[held] = row
        while at < span.size and document[at] == here:
            rows[at] = row_of_span[span[at]]
            at += 1
        row_of_span[: spans[here]] = -1
    return rows


@kernel
def write_names(
    text: Bytes,
    at: Integers,
    documents: Bytes,
    first_of_document: Integers,
    end_of_document: Integers,
    ids: Bytes,
    first_of_id: Integers,
    end_of_id: Integers,
    number: Integers,
) -> Mask:
    """Write the names of passages, `document#passage` and a line break each, to `text` from the offsets `at` on.

    The ids of documents are ranges of `documents`, those of passages are ranges of `ids`. If a range of `ids` begins
    at -1, the passage has no id and is named by its `number`, from 1, as in `@3`. Returns whether each name is right as
    it is. The others have a character that must be percent-encoded, or may have one that is not ASCII.
    """
    plain = np.empty(at.size, np.bool_)
    for i in range(at.size):
        to = at[i]
        good = True
        for source in range(first_of_document[i], end_of_document[i]):
            text[to] = documents[source]
            good &= _is_plain(documents[source])
            to += 1
        text[to] = HASH
        to += 1
        if first_of_id[i] < 0:
            text[to] = AT
            to = _write_integer(text, to + 1, number[i])
        else:
            for source in range(first_of_id[i], end_of_id[i]):
                text[to] = ids[source]
                good &= _is_plain(ids[source])
                to += 1
        text[to] = NEWLINE
        plain[i] = good
    return plain


@kernel
def copy_lines(text: Bytes, ends: Integers, chosen: Integers) -> tuple[Bytes, Integers]:
    """Some lines of a text, one after the other, and where each of them ends. Line i ends before `ends[i]`."""
    end_of_line = np.empty(chosen.size, np.int64)
    size = np.int64(0)
    for i in range(chosen.size):
        line = chosen[i]
        size += ends[line] - (ends[line - 1] if line > 0 else 0)
        end_of_line[i] = size
    copied = np.empty(size, np.uint8)
    to = np.uintp(0)
    for i in range(chosen.size):
        line = chosen[i]
        for source in range(ends[line - 1] if line > 0 else 0, ends[line]):
            copied[to] = text[source]
            to += ONE
    return copied, end_of_line


@inner
def _is_plain(character: int) -> bool:
    """Whether a byte is ASCII and stays as it is in a name."""
    return SPACE < character < DELETE and character != HASH and character != PERCENT


@inner
def _write_integer(text: Bytes, at: int, number: int) -> int:
    """Write a positive integer to `text` from offset `at` on. Returns the offset after it."""
    digits = 1
    rest = number
    while rest >= 10:
        rest //= 10
        digits += 1
    for i in range(digits):
        text[at + digits - 1 - i] = ZERO + number % 10
        number //= 10
    return at + digits


@kernel
def write_lines(head: Bytes, names: Bytes, ends: Integers, scores: Floats32, tail: Bytes) -> tuple[Bytes, bool]:
    """The lines of a ranking: `head`, a name, its rank from 1, its score with nine significant digits, and `tail`.

    Name i ends before `ends[i]` in `names`, with a line break after it. Scores are written as by `%.9g`. Returns the
    lines, and whether all scores could be written; of a doubtful one, it is not known how it must be rounded.
    """
    room = names.size + ends.size * (head.size + tail.size + MOST_DIGITS + _LONGEST_SCORE + 2)
    text = np.empty(room, np.uint8)
    to = 0
    first = 0
    certain = True
    exponent = 0
    for i in range(ends.size):
        for j in range(head.size):
            text[to + j] = head[j]
        to += head.size
        for source in range(first, ends[i] - 1):
            text[to] = names[source]
            to += 1
        first = ends[i]
        text[to] = SPACE
        to = _write_integer(text, to + 1, i + 1)
        text[to] = SPACE
        score = np.float64(scores[i])
        exponent = _exponent(abs(score), exponent)
        end = _write_score(text, to + 1, score, exponent)
        certain &= end > to
        to = max(end, to)
        for j in range(tail.size):
            text[to + j] = tail[j]
        to += tail.size
    return text[:to].copy(), certain


@kernel
def falling_scores(exact: Floats) -> Floats32:
    """Strictly decreasing float32 values, as `evaluation.io.scores.falling_array` computes them, of finite scores.

    The last value is minus infinity or no number if the values cannot decrease so often.
    """
    falling = np.empty(exact.size, np.float32)
    keys = falling.view(np.int32)
    before = np.int64(1 << 62)
    for i in range(exact.size):
        falling[i] = np.float32(min(max(exact[i], -_LARGEST), _LARGEST))
        bits = np.int64(keys[i])
        key = -(bits & 0x7FFFFFFF) if bits < 0 else bits
        key = min(key, before - 1)
        before = key
        keys[i] = np.int32(key if key >= 0 else (-key) | -(1 << 31))
    return falling


@inner
def _exponent(score: float, guess: int) -> int:
    """The exponent of the first of nine digits of a score. The score before usually has the same: the `guess`."""
    if score == 0 or _POWERS[_DIGITS - 1] <= _scaled(score, guess) < _POWERS[_DIGITS]:
        return guess
    exponent = math.floor(math.log10(score))
    scaled = _scaled(score, exponent)
    if scaled < _POWERS[_DIGITS - 1]:  # the logarithm was rounded up
        return exponent - 1
    return exponent + 1 if scaled >= _POWERS[_DIGITS] else exponent


@inner
def _write_score(text: Bytes, at: int, score: float, exponent: int) -> int:
    """Write a float32 with nine significant digits. Returns the offset after it, or -1 if its rounding is doubtful."""
    if score < 0 or (score == 0 and math.copysign(1.0, score) < 0):
        text[at] = MINUS
        at += 1
        score = -score
    if score == 0:
        text[at] = ZERO
        return at + 1
    scaled = _scaled(score, exponent)
    power = _DIGITS - 1 - exponent
    if (power < 0 or power > _EXACT) and abs(scaled - math.floor(scaled) - 0.5) < _DOUBTFUL:
        return -1
    digits = np.int64(np.rint(scaled))  # to even, as C does
    if digits == 10**_DIGITS:
        digits //= 10
        exponent += 1
    count = _DIGITS
    while digits % 10 == 0:
        digits //= 10
        count -= 1
    if exponent < -4 or exponent >= _DIGITS:
        return _write_scientific(text, at, digits, count, exponent)
    return _write_fixed(text, at, digits, count, exponent)


@inner
def _scaled(score: float, exponent: int) -> float:
    """A score with this exponent, multiplied by a power of ten so that its nine digits are before the point."""
    power = _DIGITS - 1 - exponent
    return score * _POWERS[power] if power >= 0 else score / _POWERS[-power]


@inner
def _write_fixed(text: Bytes, at: int, digits: int, count: int, exponent: int) -> int:
    """Write `count` digits, of which the first one stands for a multiple of 10 ** exponent, as in `0.0123`."""
    whole = max(exponent + 1, 1)
    decimals = max(count - exponent - 1, 0)
    end = at + whole + (decimals + 1 if decimals else 0)
    to = end - 1
    for _ in range(decimals):
        text[to] = ZERO + digits % 10
        digits //= 10
        to -= 1
    if decimals:
        text[to] = POINT
        to -= 1
    for position in range(whole):
        if position < exponent + 1 - count:
            text[to] = ZERO
        else:
            text[to] = ZERO + digits % 10
            digits //= 10
        to -= 1
    return end


@inner
def _write_scientific(text: Bytes, at: int, digits: int, count: int, exponent: int) -> int:
    """The same in scientific notation, as in `1.23e-05`."""
    for i in range(count - 1):
        text[at + count - i] = ZERO + digits % 10
        digits //= 10
    text[at] = ZERO + digits
    if count > 1:
        text[at + 1] = POINT
        at += 1
    at += count
    text[at] = LETTER_E
    text[at + 1] = MINUS if exponent < 0 else PLUS
    text[at + 2] = ZERO + abs(exponent) // 10
    text[at + 3] = ZERO + abs(exponent) % 10
    return at + 4
