"""Which number has each word of a text? An open-addressing hash table over code points, in plain arrays.

The table tells apart words as written, but for the case of A-Z, within a language; what term a word becomes is decided
outside, once a distinct word.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Integers, Integers32, Unsigned32
from perikope.kernels.jit import kernel

EMPTY = -1
_PRIME = np.uint64(0x9E3779B97F4A7C15)


@kernel
def number_words(
    characters: Unsigned32,
    starts: Integers32,
    ends: Integers32,
    languages: Integers32,
    first: int,
    word_of_slot: Integers32,
    arena: Unsigned32,
    end_of_word: Integers,
    language_of_word: Integers32,
    known: int,
    numbers: Integers32,
) -> tuple[int, int]:
    """Write the number of each word from `first` on; a new word is added to the table.

    Stops early where the table or the arena is full and returns (words done, words known): the caller grows them
    and calls again. `word_of_slot` has a power of two slots and is kept at most half full.
    """
    mask = np.uint64(word_of_slot.size - 1)
    limit = min(word_of_slot.size // 2, end_of_word.size)
    for at in range(first, starts.size):
        start, end, language = starts[at], ends[at], languages[at]
        code = np.uint64(language + 1) * _PRIME
        for i in range(start, end):
            character = np.uint64(characters[i])
            if np.uint64(65) <= character <= np.uint64(90):
                character += np.uint64(32)
            code = (code ^ character) * _PRIME
            code ^= code >> np.uint64(29)
        slot = code & mask
        while True:
            word = word_of_slot[slot]
            if word == EMPTY:
                used = end_of_word[known - 1] if known else 0
                if known >= limit or used + (end - start) > arena.size:
                    return at, known
                for i in range(start, end):
                    character32 = characters[i]
                    arena[used + i - start] = character32 + np.uint32(32) if 65 <= character32 <= 90 else character32
                end_of_word[known] = used + end - start
                language_of_word[known] = language
                word_of_slot[slot] = known
                numbers[at] = known
                known += 1
                break
            if language_of_word[word] == language:
                begin = end_of_word[word - 1] if word else 0
                same = end_of_word[word] - begin == end - start
                i = 0
                while same and i < end - start:
                    character32 = characters[start + i]
                    if 65 <= character32 <= 90:
                        character32 = character32 + np.uint32(32)
                    same = arena[begin + i] == character32
                    i += 1
                if same:
                    numbers[at] = word
                    break
            slot = (slot + np.uint64(1)) & mask
    return starts.size, known


@kernel
def rehash(
    arena: Unsigned32,
    end_of_word: Integers,
    language_of_word: Integers32,
    known: int,
    word_of_slot: Integers32,
) -> None:
    """Enter the known words into an empty table."""
    mask = np.uint64(word_of_slot.size - 1)
    for word in range(known):
        code = np.uint64(language_of_word[word] + 1) * _PRIME
        for i in range(end_of_word[word - 1] if word else 0, end_of_word[word]):
            code = (code ^ np.uint64(arena[i])) * _PRIME
            code ^= code >> np.uint64(29)
        slot = code & mask
        while word_of_slot[slot] != EMPTY:
            slot = (slot + np.uint64(1)) & mask
        word_of_slot[slot] = word
