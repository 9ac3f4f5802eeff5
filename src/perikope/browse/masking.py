"""Masks a range of tokens in matches, as if the document did not have these words.

A query that was taken from a document must not find the words that it was taken from. A mask removes them from the
matches of this query only. No document is written again, and the statistics of the collection stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from perikope.browse.matches import Frequencies, Matches, Positions, for_scores
from perikope.core.arrays import Integers
from perikope.core.errors import UsageError
from perikope.index.layout import STOP


@dataclass(frozen=True, slots=True)
class TokenMask:
    """A range of tokens of one document that a query must not find."""

    document: int
    """Number of the document in the index."""
    first_token: int
    """First token of the range, counted in the document."""
    end_token: int
    """One more than the last token of the range."""


def masked(matches: Matches, mask: TokenMask) -> Matches:
    """The matches without the occurrences in a range of tokens; unchanged if its document is no candidate.

    The frequencies in passages, titles and the document decrease, and so do their lengths in indexed tokens. Positions,
    statistics and the scores with which documents were fetched stay the same.
    """
    if matches.all_terms is not None:
        return for_scores(masked(matches.all_terms, mask), matches.query)
    document = int(np.searchsorted(matches.number_of_document, mask.document))
    if document == matches.documents or matches.number_of_document[document] != mask.document:
        return matches
    return _without(matches, document, mask)


def _without(matches: Matches, document: int, mask: TokenMask) -> Matches:
    """The matches without a range of tokens. `document` is the index of its document among the candidates."""
    lost, units = _lost_occurrences(matches, document, mask), _Units.of(matches, document, mask)
    kept = np.ones(matches.term_of_occurrence.size, bool)
    kept[lost] = False
    occurrences = matches.occurrences().only(kept)
    position, term = (column[lost].astype(np.int64) for column in (matches.position_of_occurrence, matches.term_of_occurrence))

    def characters() -> Positions:
        positions = matches.characters()
        return Positions(positions.position_of_occurrence[kept], positions.first_of_passage, positions.last_of_passage)

    length_of_document = matches.length_of_document.copy()
    length_of_document[document] -= units.removed(np.array([mask.first_token]), np.array([mask.end_token]))[0]
    return replace(
        matches,
        length_of_document=length_of_document,
        length_of_passage=_shorter(matches.length_of_passage, units.passage, units.removed(*units.range_of_passage)),
        title_length_of_section=_shorter(matches.title_length_of_section, units.section, units.removed(*units.range_of_title)),
        occurrences=lambda: occurrences,
        in_documents=_less(matches.in_documents, np.full(lost.size, document), term),
        in_passages=_less(matches.in_passages, *_inside(units.passage, units.range_of_passage, position, term)),
        in_titles=_less(matches.in_titles, *_inside(units.section, units.range_of_title, position, term)),
        characters=cache(characters),
    )


def _lost_occurrences(matches: Matches, document: int, mask: TokenMask) -> Integers:
    """The indices of the occurrences in the masked range."""
    first, end = matches.first_occurrence_of_document[document : document + 2].tolist()
    position = matches.position_of_occurrence[first:end]
    inside: Integers = first + np.flatnonzero((position >= mask.first_token) & (position < mask.end_token))
    return inside


@dataclass(frozen=True, slots=True)
class _Units:
    """The passages and sections of one candidate document, with the ranges of tokens of passages and titles."""

    passage: Integers
    """Rows of the document's passages in the matches."""
    range_of_passage: tuple[Integers, Integers]
    section: Integers
    """Rows of the document's sections in the matches."""
    range_of_title: tuple[Integers, Integers]
    removed_before: Integers
    """For each token of the document, the number of masked indexed tokens before it; one value more than tokens."""

    @classmethod
    def of(cls, matches: Matches, document: int, mask: TokenMask) -> _Units:
        if matches.snapshot is None:
            raise UsageError("these matches have no token streams, because they were not read from an index; make them with join()")
        segment, local = matches.snapshot.locate(mask.document)
        indexed = segment.tokens(local) != STOP
        indexed[: mask.first_token] = False
        indexed[mask.end_token :] = False
        passage = np.flatnonzero(matches.document_of_passage == document)
        rows = segment.sections_of(local)
        titles = [segment[f"section.{name}"][rows.start : rows.stop].astype(np.int64) for name in ("title_first", "title_end")]
        return cls(
            passage,
            (matches.first_token_of_passage[passage], matches.end_token_of_passage[passage]),
            np.flatnonzero(matches.document_of_section == document),
            (titles[0], titles[1]),
            np.concatenate([[0], np.cumsum(indexed)]),
        )

    def removed(self, first: Integers, end: Integers) -> Integers:
        """The number of masked indexed tokens in each range of tokens."""
        count: Integers = self.removed_before[end] - self.removed_before[first]
        return count


def _shorter(length: Integers, rows: Integers, removed: Integers) -> Integers:
    shorter = length.copy()
    shorter[rows] -= removed
    return shorter


def _inside(rows: Integers, ranges: tuple[Integers, Integers], position: Integers, term: Integers) -> tuple[Integers, Integers]:
    """Pairs of a row and a term: one per row and occurrence whose position is in the range of tokens of the row."""
    first, end = ranges
    row, occurrence = np.nonzero((position[None, :] >= first[:, None]) & (position[None, :] < end[:, None]))
    return rows[row], term[occurrence]


def _less(frequencies: Frequencies, unit: Integers, term: Integers) -> Frequencies:
    """The frequencies without one occurrence of each given term in its unit. Entries that become 0 are left out."""
    if not unit.size:
        return frequencies
    count = frequencies.count.copy()
    for number, lost in zip(unit.tolist(), term.tolist(), strict=True):
        first, end = frequencies.first_entry[number : number + 2].tolist()
        count[first + int(np.flatnonzero(frequencies.term[first:end] == lost)[0])] -= 1
    kept = count > 0
    first_entry = np.concatenate([[0], np.cumsum(kept)])[frequencies.first_entry]
    return Frequencies(first_entry, frequencies.term[kept], count[kept])
