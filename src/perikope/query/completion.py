"""Completions of the word that a user is typing, from the words of the index.

The dictionary of an index contains terms, which are stems: `coupl` for *coupling*. Two kinds of terms have words that
begin with what was typed: those that begin with it themselves, and shorter ones, such as `coupl` for *coupli*. The
words to show are read from some short documents; see `query/word_forms.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from perikope.core.numbers import check_whole
from perikope.index.reader import Snapshot
from perikope.query.language import check_language, searched_languages
from perikope.query.word_forms import forms_by_document
from perikope.text.analysis import SNOWBALL, fold, word_spans

_LONGEST = 64
"""Longer words are not completed, in characters."""
_TYPED = 1000
"""The language and the last word are read from this many last characters of what was typed."""
_ENDING = 8
"""The largest number of letters that a stemmer may have removed from a word; it keeps at least half of them."""
_CANDIDATES = 64
"""The smallest number of terms per segment and language that are compared by their number of documents."""
_READ = 40
"""The largest number of documents that are read in all."""
_READ_PER_TERM = 4
"""The largest number of documents that are read for one term."""
_OCCURRENCES = 8
"""The number of occurrences of a term in a document that are looked at."""


@dataclass(frozen=True, slots=True)
class SuggestedWord:
    """A word of the index that begins with what a user has typed."""

    word: str
    """The word as a document writes it, or in lower case, if the typed word is in lower case."""
    documents: int
    """The number of documents that contain this word or another form of it, such as its plural."""

    def to_dict(self) -> dict[str, Any]:
        """The word as a dictionary that can be written as JSON."""
        return asdict(self)


def complete(snapshot: Snapshot, typed: str, *, k: int = 10, language: str = "") -> tuple[SuggestedWord, ...]:
    """The `k` most frequent words of the index that begin with the last word of a text, most frequent first.

    `language` is that of the text, or `all`; by default it is found as for a query. There is no completion of a stop
    word, of a word of more than 64 letters, or if the text does not end with a letter or digit. Only the 64 terms of
    each segment that have this beginning and occur most often are compared (4 · k if that is more). So a word that is
    rarer in every segment is left out. At most 40 documents are read to find the words.
    """
    check_whole("k", k, 1)
    check_language(snapshot, language)
    word = _last_word(typed[-_TYPED:])
    if not word:
        return ()
    languages = searched_languages(snapshot, typed[-_TYPED:], language).languages
    terms = dict.fromkeys(term for code in languages for term in _terms(snapshot, fold(word), code, max(_CANDIDATES, 4 * k)))
    documents = snapshot.look_up(list(terms)).counts[0].tolist() if terms else []
    ranked = sorted((-count, term) for term, count in zip(terms, documents, strict=True) if count)
    return tuple(_with_forms(snapshot, word, ranked, k))


def _last_word(typed: str) -> str:
    """The word at the end of a text; empty if the text ends with another character or the word is too long."""
    starts, ends = word_spans(typed)
    last = typed[starts[-1] :] if starts.size and ends[-1] == len(typed) else ""
    return last if fold(last) and len(last) <= _LONGEST else ""


def _terms(snapshot: Snapshot, word: str, language: str, most: int) -> Iterable[str]:
    """Yield terms of a language that may have forms that begin with a word in folded form; some have none."""
    analyzer = snapshot.analyzer
    if analyzer.stemmer != "none" and language in SNOWBALL:
        beginnings = (word[:size] for size in range(max(len(word) - _ENDING, len(word) // 2, 1), len(word)))
        yield from (f"{language}:{stem}" for stem in (analyzer.term(word, language) or word, *beginnings))
    for _, terms in snapshot.ask(_most_frequent, f"{language}:{word}", most):
        yield from terms


def _most_frequent(snapshot: Snapshot, prefix: str, most: int) -> list[str]:
    """The `most` most frequent terms with a prefix in each segment."""
    found: list[str] = []
    for segment in snapshot.segments:
        numbers = segment.terms_with_prefix(prefix.encode("utf-8", "surrogatepass"))
        if numbers.size > most:
            # Terms are numbered by descending number of occurrences.
            numbers = np.partition(numbers, most)[:most]
        found += map(segment.terms.text, numbers.tolist())
    return found


def _with_forms(snapshot: Snapshot, word: str, ranked: Iterable[tuple[int, str]], k: int) -> Iterable[SuggestedWord]:
    """Yield words for the first terms that have a form with this beginning; `ranked` are negative counts and terms."""
    left, found = _READ, set[str]()
    for count, term in ranked:
        if len(found) == k or not left:
            break
        for forms in islice(forms_by_document(snapshot, term, _OCCURRENCES), min(_READ_PER_TERM, left)):
            left -= 1
            fitting = _fitting(forms, word)
            if fitting:
                best = max(fitting, key=lambda form: (fitting[form], -len(form), form))
                if best not in found:
                    found.add(best)
                    yield SuggestedWord(best, -count)
                break


def _fitting(forms: Mapping[str, int], word: str) -> Counter[str]:
    """The forms that begin with a word, each with its number of occurrences."""
    fitting = Counter[str]()
    for form, count in forms.items():
        if fold(form).startswith(fold(word)):
            # Queries ignore case, so capital letters are shown only to a user who types them.
            fitting[form.lower() if word == word.lower() else form] += count
    return fitting
