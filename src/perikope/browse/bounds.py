"""Bounds of what the passages of a document can score, which cost less than a join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Array, Bytes, Floats, Integers, frozen
from perikope.core.checkpoints import checkpoint
from perikope.index.reader import FoundTerms, Snapshot, Statistics
from perikope.kernels.best_passages import SaturatedTerms, best_passages
from perikope.kernels.frequencies import frequencies_in
from perikope.kernels.gather import read_ranges_to
from perikope.kernels.join import scan
from perikope.kernels.postings import LARGE
from perikope.query.terms import Query

_OF_PASSAGE = ("passage.first_token", "passage.end_token", "passage.length")
_UNKNOWN = float(1 << 31)
"""Stands for a frequency of `LARGE` or more. No document has as many tokens."""


@dataclass(frozen=True, slots=True)
class HeldTerms:
    """How often the terms of a query occur in documents."""

    query: Query
    statistics: Statistics
    """Statistics of the collection."""
    frequency: Floats
    """Shape (terms, documents): the number of occurrences of each term in each document, or a larger number."""
    length_of_document: Integers
    """Length of each document in indexed tokens."""

    @property
    def weights(self) -> Floats:
        """The weight of each query term."""
        return np.array(self.query.weights)


class ScoreBound(NamedTuple):
    """An upper bound of the scores of passages by a model in which they do not depend on other documents."""

    of_document: Floats
    """A number per document that the score of none of its passages exceeds."""
    of_passage: SaturatedTerms | None = None
    """The score itself up to rounding, if it has this form; otherwise None."""


def held_terms(snapshot: Snapshot, query: Query, numbers: Integers) -> HeldTerms:
    """Look up the terms of a query in documents, whose numbers must be in ascending order."""
    found, length = np.empty((numbers.size, len(query.terms)), np.uint8), np.empty(numbers.size, np.int64)
    for at, (of_shard, lengths) in snapshot.ask_about(_held_here, numbers, query.terms, terms=query.terms):
        found[at], length[at] = of_shard, lengths
    frequency = np.where(found == LARGE, _UNKNOWN, found).T
    names = query.terms if query.languages else None
    return HeldTerms(query, snapshot.statistics_of(snapshot.look_up(query.terms), names), frequency, length)


def _held_here(snapshot: Snapshot, numbers: Integers, terms: Sequence[str]) -> tuple[Bytes, Integers]:
    """The frequencies of terms in the documents of one shard, shape (documents, terms), and the documents' lengths."""
    table, rows = snapshot.find_terms(terms)
    found = np.zeros((numbers.size, len(terms)), np.uint8)
    length = np.empty(numbers.size, np.int64)
    bounds = np.searchsorted(numbers, snapshot.first_document).tolist()
    for i, segment in enumerate(snapshot.segments):
        own = slice(bounds[i], bounds[i + 1])
        if bounds[i] < bounds[i + 1]:
            column, columns = FoundTerms.column(i), segment.columns
            table.require_postings(i, segment, rows)
            local = numbers[own] - snapshot.first_document[i]
            first_posting = columns["window.first_posting"]
            frequencies_in(
                columns["posting.document"], columns["posting.frequency"], columns["window.number"], first_posting.view(np.uint8),
                first_posting.itemsize, table.rows, rows, column + 1, local, found[own],
            )  # fmt: skip
            length[own] = segment["document.length"][local]
    return found, length


def best_scores(snapshot: Snapshot, terms: Sequence[str], numbers: Integers, score: SaturatedTerms) -> tuple[Floats, Floats]:
    """The score of the best passage of each document, and the scores of all their passages, up to rounding.

    `numbers` must be in ascending order. The best score is at least 0.
    """
    best, scores = np.empty(numbers.size), []
    for at, (of_shard, of_passages) in snapshot.ask_about(_best_here, numbers, tuple(terms), score):
        best[at] = of_shard
        scores.append(of_passages)
    return best, np.concatenate(scores)


def _best_here(snapshot: Snapshot, numbers: Integers, terms: Sequence[str], score: SaturatedTerms) -> tuple[Floats, Floats]:
    """The best scores of the documents of one shard, and those of their passages."""
    of_segment = snapshot.numbers_of_terms(terms)
    best, scores = np.zeros(numbers.size), [np.zeros(0)]
    bounds = np.searchsorted(numbers, snapshot.first_document).tolist()
    for i, segment in enumerate(snapshot.segments):
        if bounds[i] < bounds[i + 1]:
            checkpoint("matches")
            local = numbers[bounds[i] : bounds[i + 1]] - snapshot.first_document[i]
            segment.joined.require(local)
            codes, passages = (segment[f"document.first_{name}"] for name in ("code", "passage"))
            found = scan(segment.columns["tokens"], *_ranges(codes, local), of_segment[i])
            first, end = _ranges(passages, local)
            ends = np.cumsum(end - first)
            columns = np.empty((len(_OF_PASSAGE), int(ends[-1])), np.int64)
            read_ranges_to(columns, [segment.columns.numbers(name) for name in _OF_PASSAGE], first, end)
            best[bounds[i] : bounds[i + 1]], of_passages = best_passages(*found, columns, ends, tuple(score))
            scores.append(of_passages)
    return best, np.concatenate(scores)


def _ranges(offsets: Array, documents: Integers) -> tuple[Integers, Integers]:
    """The first and the end offset (exclusive) of each document's entries."""
    return frozen(offsets[documents].astype(np.int64)), frozen(offsets[documents + 1].astype(np.int64))
