"""Numbers words and terms while a segment is built."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Integers32, Unsigned32
from perikope.index.layout import STOP
from perikope.kernels.lexicon import EMPTY, TextWords, WordTable, number_words, rehash
from perikope.kernels.words import find_words
from perikope.text.analysis import Analyzer, word_classes


class Lexicon:
    """Maps the words of texts to term numbers. Each distinct word of a language is analysed once."""

    def __init__(self, analyzer: Analyzer, languages: list[str]) -> None:
        self._analyzer = analyzer
        self._languages = languages
        self._term_numbers: dict[str, int] = {"": STOP}
        self._known = 0
        self._table = WordTable(
            np.full(1 << 14, EMPTY, np.int32), np.empty(1 << 16, np.uint32), np.empty(1 << 13, np.int64), np.empty(1 << 13, np.int32)
        )
        self._term_of_word = np.empty(1 << 13, np.uint32)

    @property
    def term_names(self) -> list[bytes]:
        """The names of all terms (`language:term`) in the order of their numbers."""
        return [name.encode("utf-8", "surrogatepass") for name in self._term_numbers]

    @property
    def size(self) -> int:
        """The number of terms, including the stop term."""
        return len(self._term_numbers)

    def words(self, characters: Unsigned32) -> tuple[Integers32, Integers32]:
        """The start and the end (exclusive) of each word, as two arrays of indices into `characters`."""
        starts, ends = find_words(characters, word_classes())
        return starts, ends

    def terms(self, characters: Unsigned32, starts: Integers32, ends: Integers32, languages: Integers32) -> Unsigned32:
        """The term number of each word.

        `languages` has the language of each word, as an index into the list that the constructor was given.
        """
        numbers = np.empty(starts.size, np.int32)
        before = self._known
        words = TextWords(characters, starts, ends, languages)
        done = 0
        while True:
            done, self._known = number_words(words, done, self._table, self._known, numbers)
            if done == starts.size:
                break
            self._grow(int(ends[done] - starts[done]))
        self._resolve(before)
        return self._term_of_word[numbers]

    def _resolve(self, first: int) -> None:
        """Find the terms of the words from number `first` on, which are new."""
        table = self._table
        begin = int(table.end_of_word[first - 1]) if first else 0
        for word in range(first, self._known):
            end = int(table.end_of_word[word])
            text = table.arena[begin:end].tobytes().decode("utf-32-le", "surrogatepass")
            begin = end
            language = self._languages[table.language_of_word[word]]
            term = self._analyzer.term(text, language)
            name = "" if term is None else f"{language}:{term}"
            self._term_of_word[word] = self._term_numbers.setdefault(name, len(self._term_numbers))

    def _grow(self, length: int) -> None:
        """Make room in the tables for one more word; `length` is its length in characters."""
        table = self._table
        used = int(table.end_of_word[self._known - 1]) if self._known else 0
        if used + length > table.arena.size:
            table = table._replace(arena=np.resize(table.arena, 2 * table.arena.size + length))
        if self._known >= table.end_of_word.size:
            size = 2 * table.end_of_word.size
            ends, languages = np.resize(table.end_of_word, size), np.resize(table.language_of_word, size)
            table = table._replace(end_of_word=ends, language_of_word=languages)
            self._term_of_word = np.resize(self._term_of_word, size)
        if self._known >= table.word_of_slot.size // 2:
            table = table._replace(word_of_slot=np.full(2 * table.word_of_slot.size, EMPTY, np.int32))
            rehash(table, self._known)
        self._table = table
