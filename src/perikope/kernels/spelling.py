"""Find the names that are near a word, by the number of edits that turn one into the other.

An edit inserts, removes or replaces one character, or swaps two adjacent characters. No part of a word is edited twice
(optimal string alignment).
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Integers, Integers32, Unsigned32, Unsigned64
from perikope.kernels.jit import kernel


@kernel
def near_names(
    word: Unsigned32, limit: int, tail: int, numbers: Unsigned32, skip: int, ends: Unsigned64, data: Bytes
) -> tuple[Integers32, Integers32, Integers32]:
    """The names that at most `limit` edits turn into the word, or into the word without up to `tail` last characters.

    `word` has code points. Name number n is the UTF-8 text `data[ends[n - 1] : ends[n]]`, without its first `skip`
    bytes. Only the names `numbers` are compared. Returns for each near name its index in `numbers`, the smallest number
    of edits, and the number of characters that were left out of the word; of several such numbers, the smallest.
    """
    size = word.size
    index, edits, left_out = np.empty(numbers.size, np.int32), np.empty(numbers.size, np.int32), np.empty(numbers.size, np.int32)
    found = 0
    in_word = np.zeros(256, np.bool_)
    for character in word:
        in_word[character & 255] = True
    name = np.empty(size + limit, np.uint32)
    rows = np.empty((3, size + 1), np.int64)
    for i in range(numbers.size):
        number = np.int64(numbers[i])
        at = (np.int64(ends[number - 1]) if number else np.int64(0)) + skip
        end = np.int64(ends[number])
        # Each character that the word lacks costs an edit, and so does each character more or less.
        length, lacking = 0, 0
        while at < end and length < size + limit and lacking <= limit:
            first = np.uint32(data[at])
            more = 0 if first < 0x80 else 1 if first < 0xE0 else 2 if first < 0xF0 else 3
            character = first if more == 0 else first & np.uint32(0x3F >> more)
            for k in range(1, 1 + min(more, int(end - 1 - at))):
                character = (character << np.uint32(6)) | np.uint32(data[at + k] & 0x3F)
            at += 1 + more
            lacking += not in_word[character & 255]
            name[length] = character
            length += 1
        if at < end or lacking > limit or length < size - tail - limit:
            continue
        best, kept = _prefix_distance(word, name[:length], limit, max(size - tail, 0), rows)
        if best <= limit:
            index[found], edits[found], left_out[found] = i, best, size - kept
            found += 1
    return index[:found].copy(), edits[:found].copy(), left_out[:found].copy()


@kernel
def _prefix_distance(word: Unsigned32, name: Unsigned32, limit: int, least: int, rows: Integers) -> tuple[int, int]:
    """The smallest number of edits that turn `name` into one of the first parts of `word`, and the length of this part.

    The parts have `least` or more characters; of several, the longest is returned. Numbers above `limit` are returned
    as `limit + 1`. `rows` are three buffers with one number more than the word has characters.
    """
    size, beyond = word.size, limit + 1
    for j in range(size + 1):
        rows[0, j] = min(j, beyond)
    for i in range(1, name.size + 1):
        row, before, twice_before = i % 3, (i - 1) % 3, (i - 2) % 3
        # Characters that are more than `limit` positions apart cannot correspond.
        low, high = max(1, i - limit), min(size, i + limit)
        rows[row, low - 1] = min(i, beyond) if low == 1 else beyond
        smallest = rows[row, low - 1]
        for j in range(low, high + 1):
            same = name[i - 1] == word[j - 1]
            value = rows[before, j - 1] + (0 if same else 1)
            value = min(value, rows[row, j - 1] + 1)
            if j < i + limit:
                value = min(value, rows[before, j] + 1)
            if i > 1 and j > 1 and name[i - 1] == word[j - 2] and name[i - 2] == word[j - 1]:
                value = min(value, rows[twice_before, j - 2] + 1)
            rows[row, j] = min(value, beyond)
            smallest = min(smallest, rows[row, j])
        if high < size:
            rows[row, high + 1] = beyond
        if smallest > limit:
            return beyond, size
    best, kept = beyond, size
    last = name.size % 3
    for j in range(min(size, name.size + limit), max(least, name.size - limit, 0) - 1, -1):
        if rows[last, j] < best:
            best, kept = rows[last, j], j
    return best, kept
