"""Number the distinct words of texts, with an open-addressing hash table over code points.

Two words are the same if they are in the same language and differ at most in the case of A-Z. The caller decides which
term a word becomes, once per distinct word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Integers, Integers32, Unsigned32
from perikope.kernels.jit import kernel, step

EMPTY = -1
_PRIME = np.uint64(0x9E3779B97F4A7C15)


class TextWords(NamedTuple):
    """The words of a text; the last three arrays have one value per word."""

    characters: Unsigned32
    """Code points of the text."""
    starts: Integers32
    """First character of each word."""
    ends: Integers32
    """One more than the last character of each word."""
    languages: Integers32
    """Language of each word, numbered from 0."""


class WordTable(NamedTuple):
    """The words known so far, numbered from 0, and a hash table over them."""

    word_of_slot: Integers32
    """Word in each slot, or `EMPTY`. The number of slots is a power of two; at most half of them are used."""
    arena: Unsigned32
    """Code points of all words one after the other, A-Z as a-z."""
    end_of_word: Integers
    """End (exclusive) of each word in the arena."""
    language_of_word: Integers32
    """Language of each word."""


@kernel
def number_words(words: TextWords, first: int, table: WordTable, known: int, numbers: Integers32) -> tuple[int, int]:
    """Write the number of each word from `first` on to `numbers`, and add new words to the table.

    `known` is the number of words in the table. Returns the index of the first word without a number, and the new
    number of words in the table. Stops early if the table is full; the caller then enlarges it and calls again.
    """
    characters, starts, ends, languages = words
    word_of_slot, arena, end_of_word, language_of_word = table
    mask = np.uint64(word_of_slot.size - 1)
    limit = min(word_of_slot.size // 2, end_of_word.size)
    for at in range(first, starts.size):
        start, end, language = starts[at], ends[at], languages[at]
        slot = _hash(characters, start, end, language) & mask
        while True:
            word = word_of_slot[slot]
            if word == EMPTY:
                used = end_of_word[known - 1] if known else 0
                if known >= limit or used + (end - start) > arena.size:
                    return at, known
                for i in range(start, end):
                    arena[used + i - start] = _lower_case(characters[i])
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
                    same = arena[begin + i] == _lower_case(characters[start + i])
                    i += 1
                if same:
                    numbers[at] = word
                    break
            slot = (slot + np.uint64(1)) & mask
    return starts.size, known


@step
def _lower_case(character: np.uint32) -> np.uint32:
    """The code point in lower case if it is A-Z, else unchanged."""
    return character + np.uint32(32) if np.uint32(65) <= character <= np.uint32(90) else character


@step
def _hash(characters: Unsigned32, start: int, end: int, language: int) -> np.uint64:
    """A 64-bit hash of a word and its language. A-Z and a-z have the same hash."""
    code = np.uint64(language + 1) * _PRIME
    for i in range(start, end):
        code = (code ^ np.uint64(_lower_case(characters[i]))) * _PRIME
        code ^= code >> np.uint64(29)
    return code


@kernel
def rehash(table: WordTable, known: int) -> None:
    """Enter the known words into the slots of the table, which must all be `EMPTY`."""
    word_of_slot, arena, end_of_word, language_of_word = table
    mask = np.uint64(word_of_slot.size - 1)
    for word in range(known):
        begin = end_of_word[word - 1] if word else 0
        slot = _hash(arena, begin, end_of_word[word], language_of_word[word]) & mask
        while word_of_slot[slot] != EMPTY:
            slot = (slot + np.uint64(1)) & mask
        word_of_slot[slot] = word
