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
from perikope.kernels.accumulate import DAMAGED, FULL, WINDOW, best_of_segment, rare_frequencies
from perikope.kernels.postings import LARGE
from perikope.query.terms import Query

TABLE = 1 << 22
"""About how many places a table of document factors may have: lengths times frequencies. Rarer frequencies are computed for each
posting."""
_FEWEST_ROWS = 16
_ROWS_BY_FREQUENCY = 64
_MODELS = 8
"""Of so many models tables are kept."""


def fetch(snapshot: Snapshot, query: Query, model: FetchModel, documents: int, filter: Filter | None = None) -> Candidates:
    """The best `documents` documents of those that satisfy the filter; equal scores are in the order of their ids."""
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
    found, sums = search.best
    candidates = in_order(snapshot, found, model.finish(sums, weights, terms), documents)
    if model.definition.finish is not None:
        return candidates
    names = [query.terms[number] for number in order]
    return replace(candidates, parts_of_score=partial(_parts_of_score, snapshot, model, terms, names, weights))


def _parts_of_score(
    snapshot: Snapshot, model: FetchModel, terms: Terms, names: Sequence[str], weights: Floats, document: int
) -> list[tuple[str, float]]:
    """What each term adds to a document, and what the document has whatever it holds."""
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
        first_window, end_window, first, end = places
        lengths: _Lengths = segment.remember(_read_lengths, "")
        tables = _tables(segment, lengths, self._model, self._terms)
        if tables.rare is None:
            tables = self._with_rare(segment, tables, first, end)
        background = self._model.background(lengths.values, float(self._weights.sum()))
        positive = background is None and tables.positive and self._positive
        if positive:
            self._threshold = max(self._threshold, 0.0)
        first_posting = segment["window.first_posting"]
        space, state = _SPACE, FULL
        while state == FULL:
            self._held, self._threshold, state = best_of_segment(
                segment["posting.document"], segment["posting.frequency"], segment["window.number"],
                first_posting.view(np.uint8), first_posting.itemsize, first_window, end_window,
                self._factors, self._factors @ tables.largest, tables.values, tables.layers(first.size),
                tables.rows, tables.rare_at, tables.rare,
                tables.classes, _NONE if background is None else background, lengths.classes, positive,
                _allowed(segment, self._filter), segment.documents, base, self._documents,
                space.sums, space.seen, space.chosen, space.values, space.hit,
                self._found, self._sums, self._held, self._threshold,
            )  # fmt: skip
            if state == FULL:
                self._found = np.concatenate([self._found, np.empty_like(self._found)])
                self._sums = np.concatenate([self._sums, np.empty_like(self._sums)])
        if state == DAMAGED:
            raise segment.columns.damaged("has damaged postings")

    def _with_rare(self, segment: Segment, tables: _Tables, first: Integers, end: Integers) -> _Tables:
        """The tables with what the query's postings add whose frequency has no row."""
        at, first_rare = rare_frequencies(segment["posting.frequency"], first, end, tables.rows)
        term = np.repeat(np.arange(first.size), np.diff(first_rare))
        order = np.argsort(at)
        at, term = at[order], term[order]
        frequency = segment.frequencies("posting.frequency", at).astype(np.float64)
        if tables.of_terms:
            factors: Factors = (self._model.by_frequency(frequency, self._terms.at(term)),)
        else:
            length = segment["document.length"][segment.documents_at(at)]
            factors = self._model.of_document(frequency, length, self._terms.average_length)
        return tables.with_rare(at, np.stack(factors))


_NONE = np.zeros(0)
_NO_BYTES = np.zeros(0, np.uint8)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """The lengths that a segment's documents have, in order; and for each document, up to a whole window, the number of its own.

    There are at most 65,535, since a segment has fewer than 2³¹ tokens.
    """

    values: Integers
    classes: Unsigned16
    no_classes: Unsigned16
    tables: dict[object, _Tables]
    """Of the models used last."""


def _read_lengths(segment: Segment, _: str) -> _Lengths:
    values, classes = np.unique(segment["document.length"], return_inverse=True)
    padded = np.zeros(-(-max(segment.documents, 1) // WINDOW) * WINDOW, np.uint16)
    padded[: classes.size] = classes
    return _Lengths(values.astype(np.int64) if values.size else np.ones(1, np.int64), padded, np.zeros_like(padded), {})


@dataclass(frozen=True, slots=True)
class _Tables:
    """What a model gives for every frequency and length: a layer for each factor, or for each term where the length does not matter."""

    values: Floats
    rows: int
    """How many frequencies there are, from 0 on."""
    classes: Unsigned16
    largest: Floats
    """Of each factor: a term cannot add more than its own factors times these."""
    positive: bool
    of_terms: bool
    rare_at: Integers
    rare: Floats | None
    """The factors of postings whose frequency has no row, by their numbers; None where they must be looked for."""

    def layers(self, terms: int) -> Integers:
        """The first layer of each term."""
        return np.arange(terms) if self.of_terms else np.zeros(terms, np.int64)

    def with_rare(self, at: Integers, rare: Floats) -> _Tables:
        """The same, with these factors."""
        if not at.size:
            return replace(self, rare_at=at, rare=rare)
        positive = self.positive and bool((rare > 0).all())
        return replace(self, rare_at=at, rare=rare, largest=np.maximum(self.largest, rare.max(axis=1)), positive=positive)


def _tables(segment: Segment, lengths: _Lengths, model: FetchModel, terms: Terms) -> _Tables:
    if model.definition.by_frequency is not None:
        each = Terms(terms.document_frequency[:, None], terms.collection_frequency[:, None], terms.documents, terms.tokens)
        values = model.by_frequency(np.arange(_ROWS_BY_FREQUENCY)[None, :], each)[:, :, None]
        return _Tables(values, _ROWS_BY_FREQUENCY, lengths.no_classes, np.ones(1), False, True, _NO_NUMBERS, None)
    name = (model.definition.name, tuple(model.parameters.values()), terms.average_length)
    found = lengths.tables.get(name)
    if found is None:
        found = _factor_tables(segment, lengths, model, terms.average_length)
        while len(lengths.tables) >= _MODELS:
            lengths.tables.pop(next(iter(lengths.tables)), None)
        lengths.tables[name] = found
    return found


_NO_NUMBERS = np.zeros(0, np.int64)


def _factor_tables(segment: Segment, lengths: _Lengths, model: FetchModel, average_length: float) -> _Tables:
    rows = min(max(_FEWEST_ROWS, TABLE // lengths.values.size), LARGE)
    with np.errstate(divide="ignore", invalid="ignore"):  # no document has a frequency of 0, but the table has a place for it
        factors = model.of_document(np.arange(rows, dtype=np.float64)[:, None], lengths.values[None, :].astype(np.float64), average_length)
    # One row more than is used: where every smaller frequency has a row, no byte leads outside.
    values = np.zeros((len(factors), rows + 1, lengths.values.size))
    for layer, factor in zip(values, factors, strict=True):
        layer[1:rows] = np.broadcast_to(factor, (rows, lengths.values.size))[1:]
    used = values[:, 1:rows]
    tables = _Tables(values, rows, lengths.classes, used.max(axis=(1, 2)), bool(used.min() > 0), False, _NO_NUMBERS, None)
    if rows < LARGE:
        return tables
    at = segment.large_frequencies()
    frequency = segment.frequencies("posting.frequency", at).astype(np.float64)
    return tables.with_rare(
        at, np.stack(model.of_document(frequency, segment["document.length"][segment.documents_at(at)], average_length))
    )


def _allowed(segment: Segment, filter: Filter | None) -> Bytes:
    """Which documents may be found; nothing where all may."""
    if filter is not None:
        last = _LAST_MASK.get(segment)
        if last is None or last[0] != filter:
            allowed = mask(segment, filter)
            last = _LAST_MASK[segment] = filter, (allowed & segment.alive if segment.tombstones else allowed).view(np.uint8)
        return last[1]
    return segment.alive.view(np.uint8) if segment.tombstones else _NO_BYTES


_LAST_MASK: WeakKeyDictionary[Segment, tuple[Filter, Bytes]] = WeakKeyDictionary()
"""A filter is mostly used again: for the next topic, or for the next page."""


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
