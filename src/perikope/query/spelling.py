"""Words of the index that are near a word by edit distance: corrections of typing mistakes, and fuzzy terms.

The dictionary of an index contains terms, which are stems: `magnet` for *magnetic*. The mistake may be in the ending,
where the stemmer does not recognise it any more (*magneticc*). Terms are therefore also compared with the beginning of
the word. A term is *plausible* if it is the stem of itself with the rest of the word: for *mganetic* and the term
`magnet`, the stem of *magnetic* is this term. For other terms, and for the form that is shown to the user, documents
are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from perikope.core.arrays import Unsigned32
from perikope.index.reader import Snapshot
from perikope.kernels.spelling import near_names
from perikope.query.word_forms import forms_by_document
from perikope.text.analysis import SNOWBALL, fold

MAX_EDITS = 2
"""The largest number of edits between two words that are near."""
_SHORT = 4
"""Words of at most this many letters have at most one edit."""
_SHORTEST = 3
"""Shorter words have no near words, since most other short words would be near."""
_LONGEST = 64
"""Longer words have no near words."""
_ENDING = 8
"""The largest number of letters that a stemmer may have removed from a word."""
_READ = 40
"""The largest number of documents that are read for one word and language."""
_READ_PER_TERM = 6
"""The largest number of documents that are read for one term."""


@dataclass(frozen=True, slots=True)
class NearWord:
    """A word of the index that is near another word."""

    form: str
    """The word as a document writes it, or in lower case, if the other word is in lower case."""
    term: str
    """The term of the word, such as `en:pump`; empty for a stop word."""
    edits: int
    """The number of edits between the two words."""
    documents: int
    """The number of documents that contain the term."""


@dataclass(frozen=True, slots=True)
class _NearTerm:
    term: str
    edits: int
    """The number of edits of the beginning of the word, and one more for an ending that does not fit to the term."""
    plausible: bool
    documents: int


def edits_of(word: str) -> int:
    """The number of edits within which words are near a word: 1 up to four letters, else 2; 0 for very short words.

    >>> edits_of("on"), edits_of("pump"), edits_of("pumps")
    (0, 1, 2)
    """
    size = len(fold(word))
    return 0 if not _SHORTEST <= size <= _LONGEST else 1 if size <= _SHORT else MAX_EDITS


def near_words(snapshot: Snapshot, word: str, languages: Sequence[str], most: int) -> list[NearWord]:
    """The `most` words of the index that are nearest to a word, by number of edits, then by number of documents.

    Words with digits have no near words, since a number or code is not a typing mistake of another one.
    """
    limit, folded = edits_of(word), fold(word)
    if not limit or not folded.isalpha():
        return []
    near: dict[str, NearWord] = {}
    for language in languages:
        for found in (*_stop_words(snapshot, folded, language), *_words(snapshot, folded, language, limit, most)):
            # Queries ignore case, so a capital letter would only distract from the correction.
            found = replace(found, form=found.form.lower()) if word == folded else found
            near[found.form] = min(found, near.get(found.form, found), key=_order)
    return sorted(near.values(), key=_order)[:most]


def near_terms(snapshot: Snapshot, word: str, language: str, limit: int) -> list[str]:
    """The terms of a language that are at most `limit` edits away from a word, nearest first."""
    folded = fold(word)
    if not 0 < len(folded) <= _LONGEST:
        return []
    terms = [near.term for near in _terms(snapshot, folded, language, limit) if near.plausible]
    in_documents = [near.term for near in _words(snapshot, folded, language, limit, _READ)]
    return list(dict.fromkeys((*terms, *in_documents)))


def _order(word: NearWord) -> tuple[int, int, str]:
    return word.edits, -word.documents, word.form


def _terms(snapshot: Snapshot, word: str, language: str, limit: int) -> list[_NearTerm]:
    """The terms of a language whose words may be near a word in folded form, most likely first."""
    analyzer = snapshot.analyzer
    stem = analyzer.term(word, language) or word
    stemmed = analyzer.stemmer != "none" and language in SNOWBALL
    patterns = [(word, min(_ENDING, len(word) - 1) if stemmed else 0)]
    if not word.startswith(stem):
        patterns.append((stem, 0))
    edits: dict[str, tuple[int, bool]] = {}
    for _, answer in snapshot.ask(_near_names, patterns, stem, language, limit):
        for name, found in answer.items():
            edits[name] = min(found, edits.get(name, found))
    names = list(edits)
    documents = snapshot.look_up(names).counts[0].tolist() if names else []
    near = [_NearTerm(name, edits[name][0], not edits[name][1], count) for name, count in zip(names, documents, strict=True) if count]
    return sorted(near, key=lambda term: (term.edits, -term.documents, term.term))


def _near_names(
    snapshot: Snapshot, patterns: Sequence[tuple[str, int]], stem: str, language: str, limit: int
) -> dict[str, tuple[int, bool]]:
    """The terms of a shard other than `stem` that are near a pattern, up to an ending of the given length.

    Each has its number of edits, and whether it does not fit the ending.
    """
    analyzer = snapshot.analyzer
    edits: dict[str, tuple[int, bool]] = {}
    prefix = f"{language}:"
    for segment in snapshot.segments:
        numbers = segment.terms_with_prefix(prefix.encode())
        segment.terms.require_range(range(len(segment.terms)))
        for pattern, ending in patterns:
            near, *columns = near_names(_code_points(pattern), limit, ending, numbers, len(prefix), segment.terms.ends, segment.terms.data)
            names = segment.terms.texts(numbers[near])
            for name, distance, left_out in zip(names, *(column.tolist() for column in columns), strict=True):
                term = name[len(prefix) :]
                rest = pattern[len(pattern) - left_out :]
                fits = not rest or analyzer.term(term + rest, language) == term
                if term != stem and distance + (not fits) <= limit:
                    edits[name] = min((distance + (not fits), not fits), edits.get(name, (limit + 1, True)))
    return edits


def _words(snapshot: Snapshot, word: str, language: str, limit: int, most: int) -> list[NearWord]:
    """The words of a language that are near a word in folded form, found in documents with near terms."""
    found: list[NearWord] = []
    documents_left = _READ
    for near in _terms(snapshot, word, language, limit):
        if not near.term.partition(":")[2].isalpha():
            continue
        if documents_left <= 0 or sum(known.edits <= near.edits for known in found) >= most:
            break
        best = limit + 1, ""
        for forms in islice(forms_by_document(snapshot, near.term), min(_READ_PER_TERM, documents_left)):
            documents_left -= 1
            best = min(best, *((_edits(word, fold(form), limit), form) for form in forms))
            if best[0] <= near.edits:
                break
        if best[0] <= limit:
            found.append(NearWord(best[1], near.term, best[0], near.documents))
    return found


def _stop_words(snapshot: Snapshot, word: str, language: str) -> list[NearWord]:
    """The stop words of a language in which two letters of a word are swapped, as in *teh*.

    The dictionary does not contain stop words. Other edits would turn many rare short words into stop words.
    """
    swapped = (word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1))
    stop_words = snapshot.analyzer.stopwords_of(language)
    return [NearWord(stop, "", 1, snapshot.totals.documents) for stop in swapped if stop in stop_words]


def _edits(one: str, other: str, limit: int) -> int:
    """The number of edits between two words, or `limit + 1` if it is larger than `limit`."""
    name = other.encode("utf-8", "surrogatepass")
    # All arrays are read-only, as those of an index are, so that the kernel is compiled once.
    ends = np.frombuffer(len(name).to_bytes(8, "little"), np.uint64)
    edits = near_names(_code_points(one), limit, 0, _FIRST, 0, ends, np.frombuffer(name, np.uint8))[1]
    return int(edits[0]) if edits.size else limit + 1


_FIRST = np.frombuffer(bytes(4), np.uint32)


def _code_points(text: str) -> Unsigned32:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
