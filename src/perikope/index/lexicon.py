"""The numbers of words and terms while a segment is built."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Integers32, Unsigned32
from perikope.index.layout import STOP
from perikope.kernels.lexicon import EMPTY, number_words, rehash
from perikope.kernels.words import find_words
from perikope.text.analysis import Analyzer, word_classes


class Lexicon:
    """Turns the words of texts into numbers of terms. Each distinct word of a language is analysed once."""

    def __init__(self, analyzer: Analyzer, languages: list[str]) -> None:
        self._analyzer = analyzer
        self._languages = languages
        self._term_numbers: dict[str, int] = {"": STOP}
        self._known = 0
        self._word_of_slot = np.full(1 << 14, EMPTY, np.int32)
        self._arena = np.empty(1 << 16, np.uint32)
        self._end_of_word = np.empty(1 << 13, np.int64)
        self._language_of_word = np.empty(1 << 13, np.int32)
        self._term_of_word = np.empty(1 << 13, np.uint32)

    @property
    def term_names(self) -> list[bytes]:
        """The name of each term, `language:term`, by number."""
        return [name.encode("utf-8", "surrogatepass") for name in self._term_numbers]

    @property
    def size(self) -> int:
        """The number of terms, with the stop term."""
        return len(self._term_numbers)

    def words(self, characters: Unsigned32) -> tuple[Integers32, Integers32]:
        """Start and end of each word, in characters (UTF-32 code points)."""
        starts, ends = find_words(characters, word_classes())
        return starts, ends

    def terms(self, characters: Unsigned32, starts: Integers32, ends: Integers32, languages: Integers32) -> Unsigned32:
        """The term number of each word. `languages` holds one index per word into the list given to the constructor."""
        numbers = np.empty(starts.size, np.int32)
        before = self._known
        done = 0
        while True:
            done, self._known = number_words(
                characters, starts, ends, languages, done,
                self._word_of_slot, self._arena, self._end_of_word, self._language_of_word, self._known, numbers,
            )  # fmt: skip
            if done == starts.size:
                break
            self._grow(int(ends[done] - starts[done]))
        self._resolve(before)
        return self._term_of_word[numbers]

    def _resolve(self, first: int) -> None:
        """Analyse the words from number `first` on."""
        begin = int(self._end_of_word[first - 1]) if first else 0
        for word in range(first, self._known):
            end = int(self._end_of_word[word])
            text = self._arena[begin:end].tobytes().decode("utf-32-le", "surrogatepass")
            begin = end
            language = self._languages[self._language_of_word[word]]
            term = self._analyzer.term(text, language)
            name = "" if term is None else f"{language}:{term}"
            self._term_of_word[word] = self._term_numbers.setdefault(name, len(self._term_numbers))

    def _grow(self, length: int) -> None:
        """Make room for one more word of `length` characters."""
        used = int(self._end_of_word[self._known - 1]) if self._known else 0
        if used + length > self._arena.size:
            self._arena = np.resize(self._arena, 2 * self._arena.size + length)
        if self._known >= self._end_of_word.size:
            self._end_of_word = np.resize(self._end_of_word, 2 * self._end_of_word.size)
            self._language_of_word = np.resize(self._language_of_word, self._end_of_word.size)
            self._term_of_word = np.resize(self._term_of_word, self._end_of_word.size)
        if self._known >= self._word_of_slot.size // 2:
            self._word_of_slot = np.full(2 * self._word_of_slot.size, EMPTY, np.int32)
            rehash(self._arena, self._end_of_word, self._language_of_word, self._known, self._word_of_slot)
