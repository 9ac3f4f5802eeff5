"""A shard as the coordinator of a search sees it: it answers questions, with the statistics of the whole cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.arrays import Array, Integers
from perikope.index.manifest import Manifest
from perikope.index.reader import Snapshot, TermCache, TermRows, count_by_language, read_terms
from perikope.index.segments import Segment
from perikope.index.shards import segments_of
from perikope.index.tombstones import Counts

COUNTS = 4
"""The number of counts of a term: documents, occurrences, passages, occurrences in passages."""


@dataclass(frozen=True, slots=True)
class ClusterCounts:
    """The statistics of a collection that do not depend on a query."""

    totals: Counts
    languages_of_text: frozenset[str]
    totals_by_language: Mapping[str, Counts]


@dataclass(frozen=True, slots=True)
class Description:
    """What the coordinator knows of a shard: the documents of each segment, and the statistics of this shard alone."""

    documents: tuple[int, ...]
    collection: ClusterCounts


@dataclass(frozen=True, slots=True)
class Message:
    """A question to a shard, with all that it needs besides the shard."""

    question: Callable[..., Any]
    given: tuple[Any, ...]
    terms: tuple[str, ...] = ()
    counts: Integers | None = None
    """The counts of the terms in the whole cluster, as an array (terms, 4); None if the question needs none."""
    collection: ClusterCounts | None = None
    """The statistics of the whole cluster; None for questions about this shard alone."""


_given_counts: ContextVar[Mapping[str, Array]] = ContextVar("counts of terms in the whole cluster")
"""The counts of terms that came with the question which is being answered."""


class _TermsOfCluster(TermCache):
    """The data of terms in a shard, with their counts in the whole cluster, which a commit changes."""

    def _read(self, terms: Sequence[str]) -> Integers:
        rows, counts = read_terms(self._segments, terms), _given_counts.get()
        for row, term in zip(rows, terms, strict=True):
            row[:COUNTS] = counts[term]
        return rows


class ShardSnapshot(Snapshot):
    """The segments of one shard, which count terms and documents as the whole cluster does.

    A question that reads counts of terms must name the terms, since the shard knows no other counts.
    """

    def __init__(self, folder: Path, manifest: Manifest, number: int, opened: Sequence[Segment] = ()) -> None:
        """Open shard `number` of the cluster with this manifest; its folder is the folder of the cluster."""
        super().__init__(folder, segments_of(manifest, number), opened)
        self._own_terms = TermCache(self.segments)
        self._own = ClusterCounts(self.totals, self.languages_of_text, {})

    def _open_terms(self) -> TermCache:
        return _TermsOfCluster(self.segments)

    @cached_property
    def description(self) -> Description:
        """What the coordinator needs to know of this shard."""
        by_language: dict[str, Counts] = {}
        for code, counts in count_by_language(self):
            by_language[code] = by_language[code] + counts if code in by_language else counts
        own = ClusterCounts(self._own.totals, self._own.languages_of_text, by_language)
        return Description(tuple(segment.documents for segment in self.segments), own)

    def numbers_of_terms(self, terms: Sequence[str]) -> Integers:
        """The number of each term in each segment; see `Snapshot.numbers_of_terms`. Needs no counts of the cluster."""
        table, rows = self._own_terms.find(terms)
        return TermRows(np.ascontiguousarray(table.rows[rows].T)).numbers

    def answer(self, message: Message) -> Any:
        """The answer to a question of the coordinator."""
        if message.collection is not None:
            self._join(message.collection)
        given = _given_counts.set(dict(zip(message.terms, message.counts, strict=True)) if message.counts is not None else {})
        try:
            return message.question(self, *message.given)
        finally:
            _given_counts.reset(given)

    def _join(self, collection: ClusterCounts) -> None:
        """Take over the statistics of the whole cluster, which are the same in every message."""
        if self.totals is collection.totals:
            return
        self.totals, self.languages_of_text = collection.totals, collection.languages_of_text
        self.languages = [self.manifest.language, *sorted(self.languages_of_text - {self.manifest.language})]
        self.__dict__["totals_by_language"] = dict(collection.totals_by_language)


def describe(shard: ShardSnapshot) -> Description:
    """The description of a shard."""
    return shard.description


def count_terms(shard: ShardSnapshot, terms: Sequence[str]) -> Integers:
    """The counts of terms in a shard, as an array (terms, 4)."""
    return read_terms(shard.segments, terms)[:, :COUNTS]
