"""Exact ranking of documents by the sums over the query's postings."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from perikope.core.arrays import Bytes, Floats, Integers, Unsigned16
from perikope.fetch import Candidates
from perikope.fetch.filters import Filter, mask
from perikope.fetch.models import Factors, FetchModel, Terms
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.kernels.accumulate import (
    DAMAGED,
    FULL,
    WINDOW,
    BestDocuments,
    ContributionTables,
    SegmentPostings,
    WeightedTerms,
    WindowBuffers,
    best_of_segment,
    rare_frequencies,
)
from perikope.kernels.postings import LARGE
from perikope.query.terms import Query

TABLE = 1 << 22
"""About the largest table of document factors, lengths × frequencies. Rarer frequencies are computed per posting."""
_FEWEST_ROWS = 16
_ROWS_BY_FREQUENCY = 64
_MODELS = 8
"""Number of models whose tables are kept."""


def fetch(snapshot: Snapshot, query: Query, model: FetchModel, documents: int, filter: Filter | None = None) -> Candidates:
    """The best `documents` documents that satisfy the filter; equal scores are ordered by id."""
    # A query over a small collection takes less time than this function's own steps: they are kept few.
    rows = snapshot.look_up(query.terms)
    frequency = rows.counts[0]
    # Rare terms first: the frequent ones are where skipping pays. A fixed order, whatever the segments.
    order = frequency.argsort(kind="stable")
    if frequency[order[0]] == 0:
        order = order[frequency[order] > 0]
    rows, weights = rows.at(order), np.array(query.weights)[order]
    terms = Terms(rows.counts[0], rows.counts[1], snapshot.totals.documents, snapshot.totals.occurrences)
    search = _Search(model, terms, weights, min(documents, max(snapshot.numbers, 1)), filter)
    for i, segment in enumerate(snapshot.segments):
        search.add(segment, rows.bounds(i), int(snapshot.first_document[i]))
    numbers, sums = search.best
    candidates = in_order(snapshot, numbers, model.finish(sums, weights, terms), documents)
    if model.definition.finish is not None:
        return candidates
    names = [query.terms[number] for number in order]
    return replace(candidates, parts_of_score=partial(_parts_of_score, snapshot, model, terms, names, weights))


def _parts_of_score(
    snapshot: Snapshot, model: FetchModel, terms: Terms, names: Sequence[str], weights: Floats, document: int
) -> list[tuple[str, float]]:
    """What each term adds to a document, and what the document gets by its length alone."""
    segment, local = snapshot.locate(document)
    i = snapshot.segments.index(segment)
    numbers = snapshot.look_up(names).numbers[i]
    held, counts = np.unique(segment.tokens(local), return_counts=True)
    frequency = {int(number): int(count) for number, count in zip(held, counts, strict=True)}
    length = segment["document.length"][local : local + 1]
    parts = []
    for t, (name, number) in enumerate(zip(names, numbers.tolist(), strict=True)):
        if number >= 0 and number in frequency:
            added = model.contribution(np.array([float(frequency[number])]), length, terms.at(np.array([t])))
            parts.append((f"{name.partition(':')[2]!r} occurs {frequency[number]}×", float(weights[t] * added[0])))
    background = model.background(length, float(weights.sum()))
    return parts if background is None else [*parts, ("smoothing for length", float(background[0]))]


class _Search:
    """The best documents of the segments so far."""

    def __init__(self, model: FetchModel, terms: Terms, weights: Floats, documents: int, filter: Filter | None) -> None:
        self._model, self._terms, self._weights, self._documents, self._filter = model, terms, weights, documents, filter
        factors = model.of_term(terms)
        self._factors = (weights * factors[0])[:, None] if len(factors) == 1 else np.stack([weights * factor for factor in factors], axis=1)
        self._positive = bool((self._factors > 0).all())
        self._numbers = np.empty(2 * documents + 1024, np.int64)
        self._sums = np.empty(2 * documents + 1024)
        self._held = 0
        self._threshold = -np.inf

    @property
    def best(self) -> tuple[Integers, Floats]:
        """The best documents and all that tie with the last one, with their sums, in no order."""
        return self._numbers[: self._held], self._sums[: self._held]

    def add(self, segment: Segment, bounds: Integers, base: int) -> None:
        """Add the best documents of a segment.

        `bounds` has the first list, the end of the lists, the first posting and the end of the postings of each term;
        `base` is the number of the segment's first document.
        """
        lengths: _Lengths = segment.remember(_read_lengths, "")
        tables = _tables(segment, lengths, self._model, self._terms)
        if not tables.complete:
            tables = self._with_rare(segment, tables, bounds[2], bounds[3])
        smoothed = self._model.definition.background is not None
        background = self._model.background(lengths.values, float(self._weights.sum())) if smoothed else None
        sums_grow = background is None and tables.positive and self._positive
        if sums_grow:
            self._threshold = max(self._threshold, 0.0)
        terms = WeightedTerms(bounds, self._factors, _NONE if background is None else background, sums_grow)
        allowed = _allowed(segment, self._filter)
        state = FULL
        while state == FULL:
            best = BestDocuments(self._numbers, self._sums, self._documents, self._held, self._threshold)
            self._held, self._threshold, state = best_of_segment(
                lengths.postings, terms, tables.contributions, allowed, base, best, _SPACE.buffers
            )
            if state == FULL:
                self._numbers = np.concatenate([self._numbers, np.empty_like(self._numbers)])
                self._sums = np.concatenate([self._sums, np.empty_like(self._sums)])
        if state == DAMAGED:
            raise segment.columns.damaged("has damaged postings")

    def _with_rare(self, segment: Segment, tables: _Tables, first: Integers, end: Integers) -> _Tables:
        """The tables with the values of the query's postings whose frequency has no row."""
        postings, first_rare = rare_frequencies(segment["posting.frequency"], first, end, tables.contributions.rows)
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


_NONE = np.zeros(0)
_NO_BYTES = np.zeros(0, np.uint8)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """The different lengths of a segment's documents, its postings, and the tables of models."""

    values: Integers
    """The lengths, rising. There are at most 65,535, since a segment has fewer than 2³¹ tokens."""
    postings: SegmentPostings
    no_classes: Unsigned16
    """Zeros, aligned with `postings.length_class`."""
    tables: dict[object, _Tables]
    """Of the models used last."""


def _read_lengths(segment: Segment, _: str) -> _Lengths:
    values, classes = np.unique(segment["document.length"], return_inverse=True)
    padded = np.zeros(-(-max(segment.documents, 1) // WINDOW) * WINDOW, np.uint16)
    padded[: classes.size] = classes
    first_posting = segment["window.first_posting"]
    postings = SegmentPostings(
        segment["posting.document"], segment["posting.frequency"], segment["window.number"],
        first_posting.view(np.uint8), first_posting.itemsize, padded, segment.documents,
    )  # fmt: skip
    return _Lengths(values.astype(np.int64) if values.size else np.ones(1, np.int64), postings, np.zeros_like(padded), {})


@dataclass(frozen=True, slots=True)
class _Tables:
    """A model's values by frequency and length: one layer per factor, or one per term if length does not matter."""

    contributions: ContributionTables
    positive: bool
    """Every value is above 0."""
    of_terms: bool
    """There is one layer per term."""
    complete: bool
    """Whether the values of postings whose frequency has no row are known; they may have to be computed per query."""

    def with_rare(self, postings: Integers, values: Floats) -> _Tables:
        """The same tables with the values of postings whose frequency has no row."""
        contributions = self.contributions._replace(rare_postings=postings, rare_values=values)
        if not postings.size:
            return replace(self, contributions=contributions, complete=True)
        contributions = contributions._replace(largest=np.maximum(contributions.largest, values.max(axis=1)))
        return replace(self, contributions=contributions, positive=self.positive and bool((values > 0).all()), complete=True)


def _tables(segment: Segment, lengths: _Lengths, model: FetchModel, terms: Terms) -> _Tables:
    if model.definition.by_frequency is not None:
        each = Terms(terms.document_frequency[:, None], terms.collection_frequency[:, None], terms.documents, terms.tokens)
        values = model.by_frequency(np.arange(_ROWS_BY_FREQUENCY)[None, :], each)[:, :, None]
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
    # One row more than is used: where every smaller frequency has a row, no byte leads outside.
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
    frequency = segment.frequencies("posting.frequency", postings).astype(np.float64)
    length = segment["document.length"][segment.documents_at(postings)]
    return tables.with_rare(postings, np.stack(model.of_document(frequency, length, average_length)))


def _allowed(segment: Segment, filter: Filter | None) -> Bytes:
    """1 for each document that may be a result, else 0; empty where all may."""
    if filter is not None:
        last = _LAST_MASK.get(segment)
        if last is None or last[0] != filter:
            allowed = mask(segment, filter)
            last = _LAST_MASK[segment] = filter, (allowed & segment.alive if segment.tombstones else allowed).view(np.uint8)
        return last[1]
    return segment.alive.view(np.uint8) if segment.tombstones else _NO_BYTES


_LAST_MASK: WeakKeyDictionary[Segment, tuple[Filter, Bytes]] = WeakKeyDictionary()
"""The last filter of each segment, with its mask: mostly it is used again, for the next topic or page."""


class _Space(threading.local):
    """Room to work in, one per thread; sums are 0 between calls."""

    def __init__(self) -> None:
        self.buffers = WindowBuffers(
            np.zeros(WINDOW), np.zeros(WINDOW, np.uint8), np.empty(WINDOW, np.int64), np.empty(WINDOW), np.empty(WINDOW, np.uint8)
        )


_SPACE = _Space()


def in_order(snapshot: Snapshot, numbers: Integers, scores: Floats, documents: int) -> Candidates:
    """The best documents, equal scores ordered by id; ids are read only where scores are equal."""
    order = np.argsort(-scores, kind="stable")
    numbers, scores = numbers[order], scores[order]
    equal = scores[1:] == scores[:-1]
    if equal.any():
        # Runs of equal scores; only those that begin among the best matter.
        run = np.concatenate([[0], np.cumsum(~equal)])
        tied = np.concatenate([[False], equal]) | np.concatenate([equal, [False]])
        tied = np.flatnonzero(tied & (run <= run[min(documents, run.size) - 1]))
        numbers[tied] = numbers[tied][snapshot.by_id(numbers[tied], run[tied])]
    return Candidates(numbers[:documents].copy(), scores[:documents].copy())
