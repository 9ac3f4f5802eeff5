"""Exact ranking of documents: the score of a document is a sum over the postings of the query terms."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from perikope.core.arrays import Array, Floats, Integers, Unsigned16
from perikope.core.checkpoints import checkpoint
from perikope.fetch import Candidates, Summand
from perikope.fetch.filters import Filter, mask
from perikope.fetch.models import Factors, FetchModel, Terms
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.kernels.accumulate import (
    DAMAGED,
    FULL,
    SMALL,
    WINDOW,
    AllowedDocuments,
    BestDocuments,
    ContributionTables,
    SegmentPostings,
    WeightedTerms,
    WindowBuffers,
    allowed_documents,
    best_of_segment,
    best_of_small_segment,
    rare_frequencies,
)
from perikope.kernels.postings import LARGE
from perikope.query.terms import Query

TABLE = 1 << 22
"""Approximate maximum number of entries in a table of document factors (lengths × frequencies).

Factors for larger frequencies are computed per posting.
"""
_FEWEST_ROWS = 16
"""Minimum number of rows (frequencies) of a table."""
_ROWS_BY_FREQUENCY = 64
"""Number of rows (frequencies) of a table for models without document factors."""
_TIES = 1024
"""Room for documents that tie with the last of the best; it is enlarged if there are more."""
_MODELS = 8
"""Number of models whose tables are cached per segment."""


def fetch(snapshot: Snapshot, query: Query, model: FetchModel, documents: int, filter: Filter | None = None) -> Candidates:
    """The best `documents` documents that satisfy the filter. Equal scores are ordered by document id."""
    # In a small collection, the steps of this function take longer than reading postings, so there are few of them.
    rows = snapshot.look_up(query.terms)
    frequency = rows.counts[0]
    # Rare terms first, because skipping saves most for frequent terms. The order is the same in all segments.
    order = frequency.argsort(kind="stable")
    if frequency[order[0]] == 0:
        order = order[frequency[order] > 0]
    rows, weights = rows.at(order), np.array(query.weights)[order]
    names = [query.terms[number] for number in order]
    terms = collection_statistics(snapshot, names, rows.counts, by_language=bool(query.languages))
    most = max(snapshot.numbers, 1)
    search = _Search(model, terms, weights, min(documents, most), most, filter)
    for i, segment in enumerate(snapshot.segments):
        checkpoint("candidates")
        search.add(segment, rows.numbers[i], rows.bounds(i), int(snapshot.first_document[i]))
    numbers, sums = search.best
    candidates = in_order(snapshot, numbers, model.finish(sums, weights, terms), documents)
    if model.definition.finish is not None:
        return candidates
    labels = query.labels(names)
    return replace(candidates, parts_of_score=partial(_parts_of_score, snapshot, model, terms, names, labels, weights))


def collection_statistics(snapshot: Snapshot, names: Sequence[str], counts: Array, *, by_language: bool) -> Terms:
    """The statistics that fetch models need: `counts` of terms, and of the collection, or of the terms' languages.

    The first rows of `counts` are the documents and the occurrences of each term.
    """
    if not by_language:
        return Terms(counts[0], counts[1], snapshot.totals.documents, snapshot.totals.occurrences)
    documents, tokens, _, _ = snapshot.totals_of(names)
    return Terms(counts[0], counts[1], documents, tokens, snapshot.totals.occurrences / max(snapshot.totals.documents, 1))


def _parts_of_score(
    snapshot: Snapshot,
    model: FetchModel,
    terms: Terms,
    names: Sequence[str],
    labels: Sequence[str],
    weights: Floats,
    document: int,
) -> list[Summand]:
    """The contributions to the score of a document.

    There is one per query term in the document and, if the model has a background, one for the document's length.
    """
    segment, local = snapshot.locate(document)
    i = snapshot.segments.index(segment)
    numbers = snapshot.look_up(names).numbers[i]
    held, counts = np.unique(segment.tokens(local), return_counts=True)
    frequency = {int(number): int(count) for number, count in zip(held, counts, strict=True)}
    length = segment["document.length"][local : local + 1]
    parts = []
    for t, (label, number) in enumerate(zip(labels, numbers.tolist(), strict=True)):
        if number >= 0 and number in frequency:
            added = model.contribution(np.array([float(frequency[number])]), length, terms.at(np.array([t])))
            parts.append(Summand(f"{label} occurs {frequency[number]}×", float(weights[t] * added[0]), names[t]))
    background = model.background(length, float(weights.sum()))
    return parts if background is None else [*parts, Summand("smoothing for length", float(background[0]), "")]


class _Search:
    """Collects the best documents, segment by segment."""

    def __init__(self, model: FetchModel, terms: Terms, weights: Floats, documents: int, most: int, filter: Filter | None) -> None:
        self._model, self._terms, self._weights, self._documents, self._filter = model, terms, weights, documents, filter
        factors = model.of_term(terms)
        self._factors = (weights * factors[0])[:, None] if len(factors) == 1 else np.stack([weights * factor for factor in factors], axis=1)
        self._positive = bool((self._factors > 0).all())
        # Room for the best documents, those that tie with the last one, and the candidates of one window.
        room = min(documents + _TIES + WINDOW, most)
        self._numbers = np.empty(room, np.int64)
        self._sums = np.empty(room)
        self._held = 0
        self._threshold = -np.inf

    @property
    def best(self) -> tuple[Integers, Floats]:
        """The numbers and sums of the best documents, unordered, including all documents that tie with the last one."""
        return self._numbers[: self._held], self._sums[: self._held]

    def add(self, segment: Segment, numbers: Integers, bounds: Integers, base: int) -> None:
        """Add the best documents of a segment.

        `numbers` has the number of each term in the segment, or -1. `bounds` has shape (4, terms). Its rows are the
        first list, the end of the lists, the first posting and the end of the postings of each term. `base` is the
        number of the segment's first document in the index.
        """
        segment.posted.require(numbers)
        lengths: _Lengths = segment.remember(_read_lengths, "")
        tables = _tables(segment, lengths, self._model, self._terms)
        if not tables.complete:
            tables = self._with_rare(segment, tables, bounds[2], bounds[3])
        smoothed = self._model.definition.background is not None
        background = self._model.background(lengths.values, float(self._weights.sum())) if smoothed else None
        sums_grow = background is None and tables.positive and self._positive
        if sums_grow:
            self._threshold = max(self._threshold, 0.0)
        upper = self._factors @ tables.contributions.largest
        terms = WeightedTerms(bounds, self._factors, _NONE if background is None else background, sums_grow, upper)
        allowed = _allowed(segment, self._filter)
        state = FULL
        while state == FULL:
            best = BestDocuments(self._numbers, self._sums, self._documents, self._held, self._threshold)
            kernel = best_of_small_segment if segment.documents <= SMALL else best_of_segment
            self._held, self._threshold, state = kernel(lengths.postings, terms, tables.contributions, allowed, base, best, _SPACE.buffers)
            if state == FULL:
                before = np.flatnonzero(self._numbers[: self._held] < base)
                self._numbers, self._sums, self._held = _enlarged(self._numbers, before), _enlarged(self._sums, before), before.size
        if state == DAMAGED:
            raise segment.columns.damaged("has damaged postings")

    def _with_rare(self, segment: Segment, tables: _Tables, first: Integers, end: Integers) -> _Tables:
        """The tables, with the values of those postings of the query whose frequency has no row in the tables."""
        postings, first_rare = rare_frequencies(segment.columns["posting.frequency"], first, end, tables.contributions.rows)
        term = np.repeat(np.arange(first.size), np.diff(first_rare))
        order = np.argsort(postings)
        postings, term = postings[order], term[order]
        frequency = segment.frequencies("posting.frequency", postings).astype(np.float64)
        if tables.of_terms:
            factors: Factors = (self._model.by_frequency(frequency, self._terms.at(term)),)
        else:
            length = segment["document.length"][segment.documents_at(postings)]
            factors = self._model.of_document(frequency, length, self._terms.average_length)
        return tables.with_rare(postings, np.stack(factors))


def _enlarged(values: Array, kept: Integers) -> Array:
    """An array of twice the size that begins with the kept values."""
    larger = np.empty(2 * values.size, values.dtype)
    larger[: kept.size] = values[kept]
    return larger


_NONE = np.zeros(0)
_ALL = allowed_documents(np.zeros(0, np.uint8))


@dataclass(frozen=True, slots=True)
class _Lengths:
    """What the kernel needs of a segment: distinct document lengths, postings, and the tables of recent models."""

    values: Integers
    """The distinct lengths in ascending order. There are at most 65,535, since a segment has fewer than 2³¹ tokens."""
    postings: SegmentPostings
    no_classes: Unsigned16
    """Zeros, aligned with `postings.length_class`."""
    tables: dict[object, _Tables]
    """The tables of the models used last, by model and average length."""


def _read_lengths(segment: Segment, _: str) -> _Lengths:
    values, classes = np.unique(segment["document.length"], return_inverse=True)
    padded = np.zeros(-(-max(segment.documents, 1) // WINDOW) * WINDOW, np.uint16)
    padded[: classes.size] = classes
    first_posting = segment.columns["window.first_posting"]  # `Segment.posted` verifies the offsets of the terms
    postings = SegmentPostings(
        segment.columns["posting.document"], segment.columns["posting.frequency"], segment.columns["window.number"],
        first_posting.view(np.uint8), first_posting.itemsize, padded, segment.documents,
    )  # fmt: skip
    return _Lengths(values.astype(np.int64) if values.size else np.ones(1, np.int64), postings, np.zeros_like(padded), {})


@dataclass(frozen=True, slots=True)
class _Tables:
    """Tables of a model's values by frequency and length.

    There is one layer per factor or, if values do not depend on length, one layer per term.
    """

    contributions: ContributionTables
    positive: bool
    """Whether every value is above 0."""
    of_terms: bool
    """Whether there is one layer per term, not per factor."""
    complete: bool
    """Whether the values of postings whose frequency has no row are included. If not, each query computes them."""

    def with_rare(self, postings: Integers, values: Floats) -> _Tables:
        """The same tables with values, shape (factors, postings), of postings whose frequency has no row."""
        contributions = self.contributions._replace(rare_postings=postings, rare_values=values)
        if not postings.size:
            return replace(self, contributions=contributions, complete=True)
        contributions = contributions._replace(largest=np.maximum(contributions.largest, values.max(axis=1)))
        return replace(self, contributions=contributions, positive=self.positive and bool((values > 0).all()), complete=True)


def _tables(segment: Segment, lengths: _Lengths, model: FetchModel, terms: Terms) -> _Tables:
    if model.definition.by_frequency is not None:
        values = model.by_frequency(np.arange(_ROWS_BY_FREQUENCY)[None, :], terms.at((slice(None), None)))[:, :, None]
        contributions = ContributionTables(values, _ROWS_BY_FREQUENCY, lengths.no_classes, _NO_NUMBERS, _NO_VALUES, np.ones(1), 1)
        return _Tables(contributions, False, True, False)
    name = (model.definition.name, tuple(model.parameters.values()), terms.average_length)
    tables = lengths.tables.get(name)
    if tables is None:
        tables = _factor_tables(segment, lengths, model, terms.average_length)
        while len(lengths.tables) >= _MODELS:
            lengths.tables.pop(next(iter(lengths.tables)), None)
        lengths.tables[name] = tables
    return tables


_NO_NUMBERS = np.zeros(0, np.int64)
_NO_VALUES = np.zeros((0, 0))


def _factor_tables(segment: Segment, lengths: _Lengths, model: FetchModel, average_length: float) -> _Tables:
    rows = min(max(_FEWEST_ROWS, TABLE // lengths.values.size), LARGE)
    with np.errstate(divide="ignore", invalid="ignore"):  # no document has a frequency of 0, but the table has a row for it
        factors = model.of_document(np.arange(rows, dtype=np.float64)[:, None], lengths.values[None, :].astype(np.float64), average_length)
    # There is one row more than is used: if frequencies 0 to 254 have rows, a lookup with 255 stays inside the table.
    values = np.zeros((len(factors), rows + 1, lengths.values.size))
    for layer, factor in zip(values, factors, strict=True):
        layer[1:rows] = np.broadcast_to(factor, (rows, lengths.values.size))[1:]
    used = values[:, 1:rows]
    largest = used.max(axis=(1, 2))
    contributions = ContributionTables(values, rows, lengths.postings.length_class, _NO_NUMBERS, _NO_VALUES, largest, 0)
    tables = _Tables(contributions, bool(used.min() > 0), False, False)
    if rows < LARGE:
        return tables
    postings = segment.large_frequencies()
    segment.columns.require_ranges(("posting.frequency",), postings, postings + 1)
    frequency = segment.frequencies("posting.frequency", postings).astype(np.float64)
    length = segment["document.length"][segment.documents_at(postings)]
    return tables.with_rare(postings, np.stack(model.of_document(frequency, length, average_length)))


def _allowed(segment: Segment, filter: Filter | None) -> AllowedDocuments:
    """The documents of a segment that may be results."""
    if filter is None and not segment.tombstones:
        return _ALL
    last = _LAST_MASK.get(segment)
    if last is None or last[0] != filter:
        allowed = segment.alive if filter is None else mask(segment, filter)
        last = _LAST_MASK[segment] = filter, allowed_documents((allowed & segment.alive if segment.tombstones else allowed).view(np.uint8))
    return last[1]


_LAST_MASK: WeakKeyDictionary[Segment, tuple[Filter | None, AllowedDocuments]] = WeakKeyDictionary()
"""The last filter of each segment, with its mask. The next topic or page usually has the same filter."""


class _Space(threading.local):
    """Buffers of the kernel, one set per thread. Sums are 0 between calls."""

    def __init__(self) -> None:
        self.buffers = WindowBuffers(
            np.zeros(WINDOW), np.zeros(WINDOW, np.uint8), np.empty(WINDOW, np.int64), np.empty(WINDOW), np.empty(WINDOW, np.uint8)
        )


_SPACE = _Space()


def in_order(snapshot: Snapshot, numbers: Integers, scores: Floats, documents: int) -> Candidates:
    """The best `documents` documents by score. Equal scores are ordered by id; ids are read only for equal scores."""
    order = np.argsort(-scores, kind="stable")
    numbers, scores = numbers[order], scores[order]
    equal = scores[1:] == scores[:-1]
    if equal.any():
        # Runs of equal scores are sorted by id. Runs that begin after the best documents need no sorting.
        run = np.concatenate([[0], np.cumsum(~equal)])
        tied = np.concatenate([[False], equal]) | np.concatenate([equal, [False]])
        tied = np.flatnonzero(tied & (run <= run[min(documents, run.size) - 1]))
        numbers[tied] = numbers[tied][snapshot.by_id(numbers[tied], run[tied])]
    return Candidates(numbers[:documents].copy(), scores[:documents].copy())
