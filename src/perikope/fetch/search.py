"""Exact ranking of documents by the sums over the query's postings."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perikope.fetch import Candidates
from perikope.fetch.filters import Filter, mask
from perikope.fetch.models import FetchModel, Terms
from perikope.index.reader import Snapshot, Statistics
from perikope.index.segments import Segment
from perikope.kernels.accumulate import DAMAGED, FULL, WINDOW, best_of_segment, listed, rare_frequencies
from perikope.kernels.postings import LARGE
from perikope.query.terms import Query

TABLE = 1 << 22
"""About how many places a table of document factors may have: lengths times frequencies. Rarer frequencies are computed for each
posting."""
_FEWEST_ROWS = 16
_ROWS_BY_FREQUENCY = 64
_MODELS = 8
"""Of so many models tables are kept."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def fetch(snapshot: Snapshot, query: Query, model: FetchModel, documents: int, filter: Filter | None = None) -> Candidates:
    """The best `documents` documents of those that satisfy the filter; equal scores are in the order of their ids."""
    rows = snapshot.look_up(query.terms)
    terms = _terms(snapshot.statistics_of(rows))
    weights = np.array(query.weights)
    # Rare terms first: the frequent ones are where skipping pays. A fixed order, whatever the segments.
    order = np.argsort(terms.document_frequency, kind="stable")
    order = order[terms.document_frequency[order] > 0]
    rows = rows.at(order)
    search = _Search(model, terms.at(order), weights[order], min(documents, max(snapshot.numbers, 1)), filter)
    for i, segment in enumerate(snapshot.segments):
        search.add(segment, rows.places(i), int(snapshot.first_document[i]))
    found, sums = search.best
    return in_order(snapshot, found, model.finish(sums, weights, terms), documents)


def _terms(statistics: Statistics) -> Terms:
    return Terms(statistics.document_frequency, statistics.collection_frequency, statistics.documents, statistics.tokens)


class _Search:
    """The best documents of the segments so far."""

    def __init__(self, model: FetchModel, terms: Terms, weights: Floats, documents: int, filter: Filter | None) -> None:
        self._model, self._terms, self._weights, self._documents, self._filter = model, terms, weights, documents, filter
        self._factors = np.stack([weights * factor for factor in model.of_term(terms)], axis=1)
        self._weight = float(weights.sum())
        self._positive = bool(np.all(self._factors > 0))
        self._found = np.empty(2 * documents + 1024, np.int64)
        self._sums = np.empty(2 * documents + 1024)
        self._held = 0
        self._threshold = -np.inf

    @property
    def best(self) -> tuple[Integers, Floats]:
        """The best documents and all that tie with the last, with their sums, in no order."""
        return self._found[: self._held], self._sums[: self._held]

    def add(self, segment: Segment, places: Integers, base: int) -> None:
        """Look at one more segment; `places` are the terms' windows and postings there, `base` is the number of its first document."""
        allowed = _allowed(segment, self._filter)
        lengths: _Lengths = segment.remember(_read_lengths, "")
        tables = _tables(lengths, self._model, self._terms)
        first_window, end_window, first, end = places
        rare_at, first_rare, rare = self._rare(segment, tables.rows, first, end)
        bound = self._factors @ tables.largest
        if rare.size:
            np.maximum.at(bound, np.repeat(np.arange(first.size), np.diff(first_rare)), rare)
        background = self._model.background(lengths.values, self._weight)
        positive = background is None and tables.positive and self._positive
        if positive:
            self._threshold = max(self._threshold, 0.0)
        first_posting = segment["window.first_posting"]
        state = FULL
        while state == FULL:
            self._held, self._threshold, state = best_of_segment(
                segment["posting.document"], segment["posting.frequency"], segment["window.number"],
                first_posting.view(np.uint8), first_posting.itemsize, first_window, end_window,
                self._factors, bound, tables.values, tables.layers(first.size), rare_at, rare, first_rare,
                tables.classes, _NONE if background is None else background, lengths.classes, positive,
                allowed, segment.documents, base, self._documents,
                _SPACE.sums, _SPACE.seen, _SPACE.chosen, _SPACE.values, _SPACE.hit,
                self._found, self._sums, self._held, self._threshold,
            )  # fmt: skip
            if state == FULL:
                self._found = np.concatenate([self._found, np.empty_like(self._found)])
                self._sums = np.concatenate([self._sums, np.empty_like(self._sums)])
        if state == DAMAGED:
            raise segment.columns.damaged("has damaged postings")

    def _rare(self, segment: Segment, rows: int, first: Integers, end: Integers) -> tuple[Integers, Integers, Floats]:
        """The postings whose frequency has no row in the tables, where each term's begin among them, and what each adds."""
        if rows == LARGE:
            places, first_rare = listed(segment["posting.frequency.large_at"], first, end)
        else:
            places, first_rare = rare_frequencies(segment["posting.frequency"], first, end, rows)
        if not places.size:
            return places, first_rare, _NONE
        term = np.repeat(np.arange(first.size), np.diff(first_rare))
        frequency = segment.frequencies("posting.frequency", places).astype(np.float64)
        length = segment["document.length"][segment.documents_at(places)]
        return places, first_rare, self._weights[term] * self._model.contribution(frequency, length, self._terms.at(term))


_NONE = np.zeros(0)
_NO_BYTES = np.zeros(0, np.uint8)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """The lengths that the documents of a segment have, in order; and for each document, up to a whole window, the number of its own
    among them.

    There are at most 65,535, since a segment has fewer than 2³¹ tokens.
    """

    values: Integers
    classes: NDArray[np.uint16]
    no_classes: NDArray[np.uint16]
    tables: dict[object, _Tables]
    """Of the models used last."""


@dataclass(frozen=True, slots=True)
class _Tables:
    """What a model gives for every frequency and length: a layer for each factor, or for each term where the length does not matter."""

    values: Floats
    classes: NDArray[np.uint16]
    largest: Floats
    """Of each factor: a term cannot add more than its own factors times these."""
    positive: bool
    of_terms: bool = False

    @property
    def rows(self) -> int:
        """How many frequencies there are, from 0 on."""
        return int(self.values.shape[1])

    def layers(self, terms: int) -> Integers:
        """The first layer of each term."""
        return np.arange(terms) if self.of_terms else np.zeros(terms, np.int64)


def _read_lengths(segment: Segment, _: str) -> _Lengths:
    values, classes = np.unique(segment["document.length"], return_inverse=True)
    padded = np.zeros(-(-max(segment.documents, 1) // WINDOW) * WINDOW, np.uint16)
    padded[: classes.size] = classes
    return _Lengths(values.astype(np.int64) if values.size else np.ones(1, np.int64), padded, np.zeros_like(padded), {})


def _tables(lengths: _Lengths, model: FetchModel, terms: Terms) -> _Tables:
    if model.definition.by_frequency is not None:
        each = Terms(terms.document_frequency[:, None], terms.collection_frequency[:, None], terms.documents, terms.tokens)
        values = model.by_frequency(np.arange(_ROWS_BY_FREQUENCY)[None, :], each)
        return _Tables(values[:, :, None], lengths.no_classes, np.full(1, np.inf), positive=False, of_terms=True)
    name = (model.definition.name, tuple(model.parameters.values()), terms.average_length)
    found = lengths.tables.get(name)
    if found is None:
        rows = min(max(_FEWEST_ROWS, TABLE // lengths.values.size), LARGE)
        with np.errstate(divide="ignore", invalid="ignore"):  # no document has a frequency of 0, but the table has a place for it
            factors = model.of_document(
                np.arange(rows, dtype=np.float64)[:, None], lengths.values[None, :].astype(np.float64), terms.average_length
            )
        values = np.stack([np.broadcast_to(factor, (rows, lengths.values.size)) for factor in factors])
        values[:, 0, :] = 0.0
        used = values[:, 1:, :]
        found = _Tables(values, lengths.classes, used.max(axis=(1, 2)), bool(used.min() > 0))
        while len(lengths.tables) >= _MODELS:
            lengths.tables.pop(next(iter(lengths.tables)), None)
        lengths.tables[name] = found
    return found


def _allowed(segment: Segment, filter: Filter | None) -> NDArray[np.uint8]:
    """Which documents may be found; nothing where all may."""
    if filter is not None:
        allowed = mask(segment, filter)
        return (allowed & segment.alive if segment.tombstones else allowed).view(np.uint8)
    return segment.alive.view(np.uint8) if segment.tombstones else _NO_BYTES


class _Space(threading.local):
    """Room to work in, one a thread; what is not used between calls is empty."""

    def __init__(self) -> None:
        self.sums, self.seen = np.zeros(WINDOW), np.zeros(WINDOW, np.uint8)
        self.chosen, self.values, self.hit = np.empty(WINDOW, np.int64), np.empty(WINDOW), np.empty(WINDOW, np.uint8)


_SPACE = _Space()


def in_order(snapshot: Snapshot, found: Integers, scores: Floats, documents: int) -> Candidates:
    """The best, equal scores by id; ids are read only where scores are equal."""
    order = np.argsort(-scores, kind="stable")
    found, scores = found[order], scores[order]
    equal = scores[1:] == scores[:-1]
    if equal.any():
        # Runs of equal scores; only those that begin among the best matter.
        run = np.concatenate([[0], np.cumsum(~equal)])
        tied = np.concatenate([[False], equal]) | np.concatenate([equal, [False]])
        tied = np.flatnonzero(tied & (run <= run[min(documents, run.size) - 1]))
        found[tied] = found[tied][snapshot.by_id(found[tied], run[tied])]
    return Candidates(found[:documents].copy(), scores[:documents].copy())
