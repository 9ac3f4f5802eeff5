"""Corrections of query words that no document contains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from perikope.index.reader import Snapshot
from perikope.query.spelling import near_words
from perikope.query.terms import Query
from perikope.text.analysis import fold, word_spans

MOST = 3
"""The largest number of corrections of one word."""
_MOST_WORDS = 8
"""The largest number of words of a query that are corrected."""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The words of a query that no document contains, and words of the index that may be meant."""

    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each word of the query that no document contains, the nearest words of the index, nearest first.

    A word without near words has none. Words with digits, words of one or two letters and words under NOT are left out.
    """
    query: str = ""
    """The query with the nearest word in place of each of these words; empty if there is no correction."""

    def __bool__(self) -> bool:
        return bool(self.query)

    @property
    def note(self) -> str:
        """A sentence for the user; empty if there is no correction."""
        missing = [word for word, near in self.words.items() if near]
        listed = ", ".join(f'"{word}"' for word in missing)
        return f'no document contains {listed}. Did you mean "{self.query}"?' if self.query else ""


def suggest(snapshot: Snapshot, queries: Iterable[Query]) -> Suggestions:
    """Corrections for queries. The corrected query is the first one.

    A query without missing words costs a look-up of its terms, which a search has looked up before. A missing word
    costs a scan of the dictionary.
    """
    given = list(queries)
    missing = list(dict.fromkeys(written for query in given for written in _missing(snapshot, query)))[:_MOST_WORDS]
    corrections = {word: _corrections(snapshot, word, terms) for word, terms in missing}
    return Suggestions(corrections, _corrected(given[0].text, corrections) if any(corrections.values()) else "")


def _missing(snapshot: Snapshot, query: Query) -> list[tuple[str, tuple[str, ...]]]:
    """The words of a query that no document contains, as written, each with its terms."""
    words = [word for word, negated in query.given_words() if not negated and word.written and word.terms]
    terms = [term for word in words for term in word.terms]
    known = {term for term, count in zip(terms, snapshot.look_up(terms).counts[0].tolist(), strict=True) if count} if terms else set()
    return [(word.written, word.terms) for word in words if known.isdisjoint(word.terms)]


def _corrections(snapshot: Snapshot, word: str, terms: tuple[str, ...]) -> tuple[str, ...]:
    languages = list(dict.fromkeys(term.partition(":")[0] for term in terms))
    return tuple(near.form for near in near_words(snapshot, word, languages, MOST))


def _corrected(text: str, corrections: Mapping[str, tuple[str, ...]]) -> str:
    """A text with the first correction in place of each corrected word. Empty if the text has none of the words."""
    by_form = {fold(word): near[0] for word, near in corrections.items() if near}
    starts, ends = (column.tolist() for column in word_spans(text))
    pieces, done = [], 0
    for start, end in zip(starts, ends, strict=True):
        if correction := by_form.get(fold(text[start:end])):
            pieces += [text[done:start], correction]
            done = end
    return "".join([*pieces, text[done:]]) if pieces else ""
