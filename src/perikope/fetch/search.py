"""Exact ranking of documents: the score of a document is a sum over the postings of the query terms."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from perikope.core.arrays import Array, Floats, Integers, Unsigned16
from perikope.core.checkpoints import checkpoint
from perikope.fetch import Candidates, Summand, unknown_parts
from perikope.fetch.filters import Filter, mask
from perikope.fetch.models import Factors, FetchModel, Terms
from perikope.index.reader import FoundTerms, Snapshot, TermTable
from perikope.index.segments import Segment
from perikope.kernels.accumulate import DAMAGED, FULL, SMALL, best_of_segment, best_of_small_segment
from perikope.kernels.contributions import rare_frequencies
from perikope.kernels.fetch_inputs import WINDOW, ContributionTables, SegmentPostings, WindowBuffers, allowed_documents
from perikope.kernels.order import best_first, ties
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
"""Number of models whose tables are cached per segment, and whose factors of terms are cached per snapshot."""
_FEW = 64
"""This many documents are sorted by numpy, so that a search of a small index need not compile a kernel for it."""


def fetch(snapshot: Snapshot, query: Query, model: FetchModel, documents: int, filter: Filter | None = None) -> Candidates:
    """The best `documents` documents that satisfy the filter. Equal scores are ordered by document id."""
    # In a small collection, the steps of this function take longer than reading postings, so there are few of them.
    found = snapshot.ask(_best_of_shard, query, model, documents, filter, terms=query.terms)
    numbers, sums = joined_documents(found)
    if model.definition.finish is not None:
        terms = _QueryTerms(snapshot, query, model)
        return in_order(snapshot, numbers, model.finish(sums, terms.weights, terms.statistics), documents)
    return in_order(snapshot, numbers, sums, documents, partial(_parts_of_score, snapshot, query, model))


def _best_of_shard(snapshot: Snapshot, query: Query, model: FetchModel, documents: int, filter: Filter | None) -> tuple[Integers, Floats]:
    """The numbers and sums of the best documents of a shard, unordered, with all that tie with the last one."""
    search = _Search(snapshot, model, _QueryTerms(snapshot, query, model), documents, filter)
    for i, segment in enumerate(snapshot.segments):
        checkpoint("candidates")
        search.add(i, segment)
    return search.best


def joined_documents(found: Sequence[tuple[int, tuple[Integers, Floats]]]) -> tuple[Integers, Floats]:
    """The document numbers and sums that shards have found; each shard's first document has the given number."""
    if len(found) == 1:
        return found[0][1]
    return np.concatenate([base + numbers for base, (numbers, _) in found]), np.concatenate([sums for _, (_, sums) in found])


class _QueryTerms:
    """The terms of a query that occur in the collection, rare terms first, since skipping saves most for frequent ones.

    The order is the same in all segments.
    """

    def __init__(self, snapshot: Snapshot, query: Query, model: FetchModel) -> None:
        self._snapshot, self._query = snapshot, query
        table, rows = snapshot.find_terms(query.terms)
        frequency = table.frequency.take(rows)
        order = frequency.argsort(kind="stable")
        if frequency[order[0]] == 0:
            order = order[frequency[order] > 0]
        self._order = order
        self.table = table
        """The data of terms."""
        self.rows = rows[order]
        """The row of each term in `table`."""
        self.coefficients = _term_factors(snapshot, table, model, by_language=bool(query.languages)).take(self.rows, 0)
        """The model's factors of each term, multiplied by the weight of the term; shape (terms, factors)."""
        if query.weights.count(1.0) < len(query.weights):
            self.coefficients *= self.weights[:, None]

    @property
    def weights(self) -> Floats:
        """The weight of each term in the query."""
        return np.array(self._query.weights)[self._order]

    @property
    def names(self) -> list[str]:
        """The terms."""
        return [self._query.terms[number] for number in self._order.tolist()]

    @property
    def labels(self) -> list[str]:
        """The terms as explanations show them."""
        return self._query.labels(self.names)

    @property
    def statistics(self) -> Terms:
        """The statistics of the terms and of the collection."""
        by_language = bool(self._query.languages)
        return collection_statistics(self._snapshot, self.names, self.table.rows[self.rows].T, by_language=by_language)


def _term_factors(snapshot: Snapshot, table: TermTable, model: FetchModel, *, by_language: bool) -> Floats:
    """The model's factors of all terms in a table, one row per term; they are computed once for each term."""
    key = (model.definition.name, *model.parameters.values(), by_language)
    done, factors = table.derived.get(key, (0, _NO_VALUES))
    known = len(table.row_of_term)
    if done < known:
        names = list(table.row_of_term)[done:known] if by_language else ()
        with np.errstate(divide="ignore", invalid="ignore"):  # the table may have terms that do not occur
            new = np.stack(model.of_term(collection_statistics(snapshot, names, table.rows[done:known].T, by_language=by_language)), axis=1)
        before, factors = factors, np.empty((max(known, 2 * done), new.shape[1]))
        factors[:done] = before[:done].reshape(done, new.shape[1])
        factors[done:known] = new
        while len(table.derived) >= _MODELS and key not in table.derived:
            table.derived.pop(next(iter(table.derived)), None)
        table.derived[key] = known, factors
    found: Floats = factors
    return found


def collection_statistics(snapshot: Snapshot, names: Sequence[str], counts: Array, *, by_language: bool) -> Terms:
    """The statistics that fetch models need: `counts` of terms, and of the collection, or of the terms' languages.

    The first rows of `counts` are the documents and the occurrences of each term.
    """
    if not by_language:
        return Terms(counts[0], counts[1], snapshot.totals.documents, snapshot.totals.occurrences)
    documents, tokens, _, _ = snapshot.totals_of(names)
    return Terms(counts[0], counts[1], documents, tokens, snapshot.totals.occurrences / max(snapshot.totals.documents, 1))


def _parts_of_score(snapshot: Snapshot, query: Query, model: FetchModel, document: int) -> list[Summand]:
    """The contributions to the score of a document.

    There is one per query term in the document and, if the model has a background, one for the document's length.
    """
    query_terms = _QueryTerms(snapshot, query, model)
    names, labels, weights, terms = query_terms.names, query_terms.labels, query_terms.weights, query_terms.statistics
    segment, local = snapshot.locate(document)
    i = snapshot.segments.index(segment)
    numbers = snapshot.numbers_of_terms(names)[i]
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

    def __init__(self, snapshot: Snapshot, model: FetchModel, terms: _QueryTerms, documents: int, filter: Filter | None) -> None:
        self._snapshot, self._model, self._terms, self._filter = snapshot, model, terms, filter
        most = max(snapshot.numbers, 1)
        self._documents = min(documents, most)
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

    def add(self, i: int, segment: Segment) -> None:
        """Add the best documents of segment number `i`."""
        terms, column, base = self._terms, FoundTerms.column(i), int(self._snapshot.first_document[i])
        terms.table.require_postings(i, segment, terms.rows)
        lengths: _Lengths = segment.remember(_read_lengths, "")
        tables = self._tables(segment, lengths, column)
        smoothed = self._model.definition.background is not None
        background = self._model.background(lengths.values, float(terms.weights.sum())) if smoothed else None
        query = terms.table.rows, terms.rows, column + 1, terms.coefficients, _NONE if background is None else background
        allowed = _allowed(segment, self._filter)
        kernel = best_of_small_segment if segment.documents <= SMALL else best_of_segment
        state = FULL
        while state == FULL:
            best = self._numbers, self._sums, self._documents, self._held, self._threshold
            self._held, self._threshold, state = kernel(lengths.postings, query, tables, allowed, base, best, _SPACE.buffers)
            if state == FULL:
                before = np.flatnonzero(self._numbers[: self._held] < base)
                self._numbers, self._sums, self._held = _enlarged(self._numbers, before), _enlarged(self._sums, before), before.size
        if state == DAMAGED:
            raise segment.columns.damaged("has damaged postings")

    def _tables(self, segment: Segment, lengths: _Lengths, column: int) -> tuple[Any, ...]:
        """The values of `ContributionTables`, including all rare postings of the query."""
        totals = self._snapshot.totals
        average_length = totals.occurrences / max(totals.documents, 1)
        tables = _tables(segment, lengths, self._model, self._terms, average_length)
        if not tables.complete:
            first, end = self._terms.table.rows[self._terms.rows, column + 3], self._terms.table.rows[self._terms.rows, column + 4]
            tables = self._with_rare(segment, tables, first, end, average_length)
        return tables.contributions

    def _with_rare(self, segment: Segment, tables: _Tables, first: Integers, end: Integers, average_length: float) -> _Tables:
        """The tables, with the values of those postings of the query whose frequency has no row in the tables."""
        postings, first_rare = rare_frequencies(segment.columns["posting.frequency"], first, end, tables.rows)
        term = np.repeat(np.arange(first.size), np.diff(first_rare))
        order = np.argsort(postings)
        postings, term = postings[order], term[order]
        frequency = segment.frequencies("posting.frequency", postings).astype(np.float64)
        if tables.of_terms:
            factors: Factors = (self._model.by_frequency(frequency, self._terms.statistics.at(term)),)
        else:
            length = segment["document.length"][segment.documents_at(postings)]
            factors = self._model.of_document(frequency, length, average_length)
        return tables.with_rare(postings, np.stack(factors))


def _enlarged(values: Array, kept: Integers) -> Array:
    """An array of twice the size that begins with the kept values."""
    larger = np.empty(2 * values.size, values.dtype)
    larger[: kept.size] = values[kept]
    return larger


_NONE = np.zeros(0)
_ALL = tuple(allowed_documents(np.zeros(0, np.uint8)))


@dataclass(frozen=True, slots=True)
class _Lengths:
    """What the kernel needs of a segment: distinct document lengths, postings, and the tables of recent models."""

    values: Integers
    """The distinct lengths in ascending order. There are at most 65,535, since a segment has fewer than 2³¹ tokens."""
    classes: Unsigned16
    """The index of each document's length in `values`, padded with zeros to a whole number of windows."""
    postings: tuple[Any, ...]
    """The values of `SegmentPostings`."""
    no_classes: Unsigned16
    """Zeros, aligned with `classes`."""
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
    return _Lengths(values.astype(np.int64) if values.size else np.ones(1, np.int64), padded, tuple(postings), np.zeros_like(padded), {})


@dataclass(frozen=True, slots=True)
class _Tables:
    """Tables of a model's values by frequency and length.

    There is one layer per factor or, if values do not depend on length, one layer per term.
    """

    contributions: tuple[Any, ...]
    """The values of `ContributionTables`."""
    rows: int
    """Frequencies from this value on have no row in the tables."""
    of_terms: bool
    """Whether there is one layer per term, not per factor."""
    complete: bool
    """Whether the values of postings whose frequency has no row are included. If not, each query computes them."""

    def with_rare(self, postings: Integers, values: Floats) -> _Tables:
        """The same tables with values, shape (factors, postings), of postings whose frequency has no row."""
        tables = ContributionTables(*self.contributions)._replace(rare_postings=postings, rare_values=values)
        if postings.size:
            positive = tables.positive and bool((values > 0).all())
            tables = tables._replace(largest=np.maximum(tables.largest, values.max(axis=1)), positive=positive)
        return replace(self, contributions=tuple(tables), complete=True)


def _tables(segment: Segment, lengths: _Lengths, model: FetchModel, terms: _QueryTerms, average_length: float) -> _Tables:
    if model.definition.by_frequency is not None:
        values = model.by_frequency(np.arange(_ROWS_BY_FREQUENCY)[None, :], terms.statistics.at((slice(None), None)))[:, :, None]
        tables = ContributionTables(values, _ROWS_BY_FREQUENCY, lengths.no_classes, _NO_NUMBERS, _NO_VALUES, np.ones(1), 1, False)
        return _Tables(tuple(tables), _ROWS_BY_FREQUENCY, True, False)
    name = (model.definition.name, *model.parameters.values(), average_length)
    found = lengths.tables.get(name)
    if found is None:
        found = _factor_tables(segment, lengths, model, average_length)
        while len(lengths.tables) >= _MODELS:
            lengths.tables.pop(next(iter(lengths.tables)), None)
        lengths.tables[name] = found
    return found


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
    contributions = ContributionTables(values, rows, lengths.classes, _NO_NUMBERS, _NO_VALUES, largest, 0, bool(used.min() > 0))
    tables = _Tables(tuple(contributions), rows, False, False)
    if rows < LARGE:
        return tables
    postings = segment.large_frequencies()
    segment.columns.require_ranges(("posting.frequency",), postings, postings + 1)
    frequency = segment.frequencies("posting.frequency", postings).astype(np.float64)
    length = segment["document.length"][segment.documents_at(postings)]
    return tables.with_rare(postings, np.stack(model.of_document(frequency, length, average_length)))


def _allowed(segment: Segment, filter: Filter | None) -> tuple[Any, ...]:
    """The documents of a segment that may be results, as the values of `AllowedDocuments`."""
    if filter is None and not segment.tombstones:
        return _ALL
    last = _LAST_MASK.get(segment)
    if last is None or last[0] != filter:
        allowed = segment.alive if filter is None else mask(segment, filter)
        allowed = allowed & segment.alive if segment.tombstones else allowed
        last = _LAST_MASK[segment] = filter, tuple(allowed_documents(allowed.view(np.uint8)))
    return last[1]


_LAST_MASK: WeakKeyDictionary[Segment, tuple[Filter | None, tuple[Any, ...]]] = WeakKeyDictionary()
"""The last filter of each segment, with its mask. The next topic or page usually has the same filter."""


class _Space(threading.local):
    """Buffers of the kernel, one set per thread. Sums are 0 between calls."""

    def __init__(self) -> None:
        buffers = WindowBuffers(
            np.zeros(WINDOW), np.zeros(WINDOW, np.uint8), np.empty(WINDOW, np.int64), np.empty(WINDOW), np.empty(WINDOW, np.uint8)
        )
        self.buffers = tuple(buffers)


_SPACE = _Space()


def in_order(
    snapshot: Snapshot,
    numbers: Integers,
    scores: Floats,
    documents: int,
    parts_of_score: Callable[[int], Sequence[Summand]] = unknown_parts,
) -> Candidates:
    """The best `documents` documents by score. Equal scores are ordered by id; ids are read only for equal scores."""
    if scores.size <= _FEW:
        order = (-scores).argsort(kind="stable")
        numbers, scores = numbers[order], scores[order]
        tied, tie = ties(scores, documents) if len(set(scores.tolist())) < scores.size else (_NO_NUMBERS, _NO_NUMBERS)
    else:
        numbers, scores, tied, tie = best_first(numbers, scores, documents)
    if tied.size:
        numbers[tied] = numbers[tied][snapshot.by_id(numbers[tied], tie)]
    return Candidates(numbers[:documents], scores[:documents], parts_of_score)
