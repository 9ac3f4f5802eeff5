"""Text analysis: words with their offsets, and the term of a word in its language.

A word is a run of letters, digits and combining marks of any script. In Han, Hiragana and other scripts written without
spaces, each character is a word. The term of a word is its NFKC case-folded form, stemmed. A stop word has no term but
keeps its position.

Finding words and computing terms are separate steps: positions, passages and highlights need only words, and each
distinct word is analysed once.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Literal

import numpy as np
import Stemmer

from perikope.core.arrays import Bytes, Integers32
from perikope.core.errors import unknown
from perikope.core.reading import read_limited_text
from perikope.kernels.words import find_words
from perikope.text.languages import is_language as is_language
from perikope.text.languages import language_code as language_code

MAX_STOPWORDS = 1 << 20
"""The largest file of stop words, in bytes; the longest known lists have a few thousand words."""

ANALYSIS_VERSION = 1
"""Version of the analysis, recorded in every index; it increases if words are cut or stemmed differently."""

STEMMERS = ("snowball", "porter", "none")

SNOWBALL: Mapping[str, str] = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "da": "danish", "nl": "dutch", "en": "english",
    "eo": "esperanto", "et": "estonian", "fi": "finnish", "fr": "french", "de": "german", "el": "greek", "hi": "hindi",
    "hu": "hungarian", "id": "indonesian", "ga": "irish", "it": "italian", "lt": "lithuanian", "ne": "nepali",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "es": "spanish", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
"""Snowball stemmers by ISO 639-1 language code; words of other languages are not stemmed."""


@lru_cache(maxsize=1)
def word_classes() -> Bytes:
    """The class of every Unicode character, indexed by code point; see `kernels.words` for the classes."""
    table = resources.files("perikope").joinpath("data", "word_classes.txt").read_text("ascii")
    ranges = [line.split() for line in table.splitlines() if not line.startswith("#")]
    firsts = np.array([int(first, 16) for first, _ in ranges])
    values = np.array([0, *(int(value) for _, value in ranges)], np.uint8)
    return np.repeat(values, np.diff(firsts, prepend=0, append=sys.maxunicode + 1))


def word_spans(text: str) -> tuple[Integers32, Integers32]:
    """Two arrays with one item per word: its start and its end (exclusive), in characters.

    >>> [span.tolist() for span in word_spans("a pump")]
    [[0, 2], [1, 6]]
    """
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    starts, ends = find_words(characters, word_classes())
    return starts, ends


def words(text: str) -> list[str]:
    """The words of a text, as written.

    >>> words("Don't over-heat the cœur: 3.5 °C")
    ['Don', 't', 'over', 'heat', 'the', 'cœur', '3', '5', 'C']
    """
    if text.isascii():  # five times faster for short texts
        return _ASCII_WORD.findall(text)
    starts, ends = word_spans(text)
    return [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


_ASCII_WORD = re.compile("[0-9A-Za-z]+")


def fold(word: str) -> str:
    """The form in which words are compared: NFKC-normalised, case-folded, without soft hyphens and joiners.

    >>> fold("STRAẞE"), fold("ﬁlter"), fold("co\\u00adop")
    ('strasse', 'filter', 'coop')
    """
    if word.isascii():
        return word.lower()
    visible = word.translate(_INVISIBLE)
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())


_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200c\u200d\u2060\ufeff"))


def default_stopwords(language: str) -> frozenset[str]:
    """The built-in stop words of a language, in the form of `fold`; empty if there is no list for the language."""
    file = resources.files("perikope").joinpath("data", "stopwords", f"{language}.txt")
    return frozenset(fold(word) for word in file.read_text("utf-8").split()) if file.is_file() else frozenset()


_MOST_KNOWN, _LONG_WORD = 1 << 14, 64
"""The terms of at most this many words per language are remembered, of words with at most this many characters."""


@dataclass(frozen=True, slots=True)
class Analyzer:
    """Turns words into terms. An index records the settings of its analyser, and queries are analysed with them.

    `stopwords` is `default` (the built-in list of each language), `none`, or the stop words themselves.

    >>> Analyzer().term("Couplings", "en"), Analyzer().term("the", "en")
    ('coupl', None)
    >>> Analyzer(stemmer="none").term("Couplings", "en")
    'couplings'
    """

    stemmer: Literal["snowball", "porter", "none"] = "snowball"
    stopwords: Literal["default", "none"] | tuple[str, ...] = "default"
    _rules: dict[str, Callable[[str], str | None]] = field(default_factory=dict, repr=False, compare=False)
    _known: dict[str, dict[str, str | None]] = field(default_factory=dict, repr=False, compare=False)
    """The terms of words that were asked for lately, by language. Words of queries come again."""

    def __post_init__(self) -> None:
        if self.stemmer not in STEMMERS:
            raise unknown("stemmer", self.stemmer, STEMMERS)
        if isinstance(self.stopwords, str) and self.stopwords not in ("default", "none"):
            raise unknown("stop word list", self.stopwords, ["default", "none", "a file"])

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> Analyzer:
        """Create the analyser of an index from the settings that the index recorded."""
        stopwords = settings["stopwords"]
        return cls(settings["stemmer"], tuple(stopwords) if isinstance(stopwords, list) else stopwords)  # type: ignore[arg-type]

    def settings(self) -> dict[str, object]:
        """The settings as a dictionary that an index records; `from_settings` reads it."""
        stopwords = self.stopwords if isinstance(self.stopwords, str) else list(self.stopwords)
        return {"version": ANALYSIS_VERSION, "stemmer": self.stemmer, "stopwords": stopwords}

    def term(self, word: str, language: str) -> str | None:
        """The term of a word in a language (a code such as `en`), or None for a stop word."""
        known = self._known.setdefault(language, {})
        if word in known:
            return known[word]
        rule = self._rules.get(language)
        if rule is None:
            rule = self._rules[language] = self._make_rule(language)
        term = rule(word)
        if len(word) <= _LONG_WORD:
            if len(known) >= _MOST_KNOWN:
                known = self._known[language] = {}
            known[word] = term
        return term

    def stopwords_of(self, language: str) -> frozenset[str]:
        """The stop words of a language, in the form of `fold`."""
        if self.stopwords == "default":
            return default_stopwords(language)
        return frozenset(fold(word) for word in self.stopwords) if self.stopwords != "none" else frozenset()

    def _make_rule(self, language: str) -> Callable[[str], str | None]:
        stop = self.stopwords_of(language)
        # Porter's algorithm is for English; other languages get their Snowball stemmer.
        algorithm = "porter" if self.stemmer == "porter" and language == "en" else SNOWBALL.get(language)
        if self.stemmer == "none" or algorithm is None:
            stem: Callable[[str], str] = str
        else:
            stem = Stemmer.Stemmer(algorithm, maxCacheSize=0).stemWord

        def rule(word: str) -> str | None:
            folded = fold(word)
            return None if folded in stop else stem(folded) or folded

        return rule


def read_stopwords(path: str) -> tuple[str, ...]:
    """Read stop words from a UTF-8 file and return them folded and sorted.

    White space separates words. A `#` begins a comment that ends with the line.
    """
    text = read_limited_text(path, MAX_STOPWORDS, "a list of stop words", "give a text file, or the word default or none")
    return tuple(sorted({fold(word) for line in text.splitlines() for word in line.split("#")[0].split()}))
