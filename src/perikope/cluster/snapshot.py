"""The coordinator of a cluster: a snapshot whose segments are on other machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from perikope.cluster.missing import MissingShards
from perikope.cluster.remote import RemoteSegment
from perikope.cluster.shard import COUNTS, ClusterCounts, Description, Message, count_terms, describe
from perikope.core.arrays import Array, Integers
from perikope.core.errors import ShardError
from perikope.index.manifest import Manifest
from perikope.index.reader import Snapshot, TermCache
from perikope.index.segments import Segment
from perikope.index.shards import shard_of, without_shards
from perikope.index.tombstones import NO_COUNTS, Counts

Answer = TypeVar("Answer")


class Shards(Protocol):
    """The shards of a cluster, at one generation, wherever they are."""

    missing: MissingShards
    """The shards that gave no answer when they were last asked."""

    def at(self, manifest: Manifest) -> Shards:
        """The same shards at another generation."""

    def ask(self, messages: Sequence[tuple[int, Message]]) -> list[Any]:
        """The answers of shards, given by number, to messages, in the order of the messages.

        The shards work at the same time. An error of a shard is raised. If shards do not answer, it is a `ShardError`.
        """


class ClusterSnapshot(Snapshot):
    """A cluster whose shards are elsewhere. It has the statistics of the cluster, and no segment.

    Documents are numbered through all shards, as in a snapshot of the same cluster on one machine. A snapshot without
    the `missing` shards is that of a cluster in which these have no documents. It says so, and a document by id that
    would be in one of them is a `ShardError`, since nobody knows whether it exists.
    """

    def __init__(self, folder: Path, manifest: Manifest, shards: Shards, missing: frozenset[int] = frozenset()) -> None:
        self._shards, self._number, self._missing = shards, len(manifest.shards), missing
        self._asked = [number for number in range(self._number) if number not in missing]
        if not self._asked:
            raise ShardError("no shard of the cluster answers", missing)
        self._descriptions: list[Description] = shards.ask([(number, Message(describe, ())) for number in self._asked])
        sizes = [sum(description.documents) for description in self._descriptions]
        self.first_of_shard = np.cumsum([0, *sizes])
        """The number of the first document of each shard that is asked, and at the end the number of documents."""
        super().__init__(folder, without_shards(manifest, missing) if missing else manifest)

    @property
    def missing_shards(self) -> tuple[int, ...]:
        """The numbers of the shards that this snapshot lacks; see `Snapshot.missing_shards`."""
        return tuple(sorted(self._missing))

    def _open_segments(self, opened: Sequence[Segment]) -> list[Segment]:
        return [
            cast(Segment, RemoteSegment(partial(self._ask_one, shard), number, documents))
            for shard, description in zip(self._asked, self._descriptions, strict=True)
            for number, documents in enumerate(description.documents)
        ]

    def _open_terms(self) -> TermCache:
        return _CountsOfTerms(self._count_terms)

    def _count(self) -> tuple[frozenset[str], Counts]:
        own = [description.collection for description in self._descriptions]
        return frozenset[str]().union(*(one.languages_of_text for one in own)), sum((one.totals for one in own), NO_COUNTS)

    @property
    def is_local(self) -> bool:
        """Whether the segments are on this machine: they are not."""
        return False

    @cached_property
    def totals_by_language(self) -> dict[str, Counts]:
        """The counts of the collection in each language; see `Snapshot.totals_by_language`."""
        totals: dict[str, Counts] = {}
        for description in self._descriptions:
            for code, counts in description.collection.totals_by_language.items():
                totals[code] = totals.get(code, NO_COUNTS) + counts
        return {code: counts for code, counts in sorted(totals.items()) if counts.occurrences}

    @cached_property
    def _collection(self) -> ClusterCounts:
        return ClusterCounts(self.totals, self.languages_of_text, self.totals_by_language)

    def ask(self, question: Callable[..., Answer], *given: Any, terms: Sequence[str] = ()) -> list[tuple[int, Answer]]:
        """The answer of each shard to a question; see `Snapshot.ask`."""
        message = self._message(question, given, terms)
        answers = self._shards.ask([(number, message) for number in self._asked])
        return list(zip(self.first_of_shard.tolist(), answers, strict=False))

    def ask_about(
        self, question: Callable[..., Answer], documents: Integers, *given: Any, beside: Sequence[Array] = (), terms: Sequence[str] = ()
    ) -> list[tuple[slice | Integers, Answer]]:
        """The answers of the shards that hold the given documents; see `Snapshot.ask_about`."""
        shard = np.searchsorted(self.first_of_shard, documents, "right") - 1
        asked = np.unique(shard).tolist() or [0]
        rows = [np.flatnonzero(shard == number) for number in asked]
        messages = [
            (
                self._asked[number],
                self._message(question, (documents[at] - self.first_of_shard[number], *(some[at] for some in beside), *given), terms),
            )
            for number, at in zip(asked, rows, strict=True)
        ]
        return list(zip(rows, self._shards.ask(messages), strict=True))

    def find_document(self, id: str) -> int:
        """The number of the live document with this id, or -1 if there is none. Only its shard is asked."""
        number = shard_of(id, self._number)
        if number in self._missing:
            raise ShardError(f"shard {number} of the cluster, which would have document {id!r}, does not answer", [number])
        local: int = self._ask_one(number, Snapshot.find_document, id)
        return local if local < 0 else int(self.first_of_shard[self._asked.index(number)]) + local

    def document_id(self, document: int) -> str:
        """The id of a document."""
        return self._ids(np.array([document]))[0]

    def by_id(self, documents: Integers, groups: Integers) -> Integers:
        """The order of documents by group and, within a group, by id; see `Snapshot.by_id`."""
        ids = self._ids(documents)
        return np.array(sorted(range(documents.size), key=lambda at: (groups[at], ids[at])), np.int64)

    def numbers_of_terms(self, terms: Sequence[str]) -> Integers:
        """The number of each term in each segment; see `Snapshot.numbers_of_terms`."""
        return np.concatenate([numbers for _, numbers in self.ask(_numbers_of_terms, tuple(terms))])

    def _ids(self, documents: Integers) -> list[str]:
        ids = np.empty(documents.size, object)
        for at, answer in self.ask_about(_ids_of, documents):
            ids[at] = answer
        listed: list[str] = ids.tolist()
        return listed

    def _message(self, question: Callable[..., Any], given: tuple[Any, ...], terms: Sequence[str] = ()) -> Message:
        counts = np.ascontiguousarray(self.look_up(terms).counts.T) if terms else None
        return Message(question, given, tuple(terms), counts, self._collection)

    def _ask_one(self, shard: int, question: Callable[..., Any], *given: Any) -> Any:
        return self._shards.ask([(shard, self._message(question, given))])[0]

    def _count_terms(self, terms: Sequence[str]) -> Integers:
        message = Message(count_terms, (tuple(terms),))
        counts: Integers = sum(self._shards.ask([(number, message) for number in self._asked]))
        return counts


class _CountsOfTerms(TermCache):
    """The counts of terms in the whole cluster, which are asked for once."""

    def __init__(self, count: Callable[[Sequence[str]], Integers]) -> None:
        super().__init__([])
        self._read_counts = count

    def _read(self, terms: Sequence[str]) -> Integers:
        return self._read_counts(terms).reshape(len(terms), COUNTS)


def _ids_of(snapshot: Snapshot, documents: Integers) -> list[str]:
    return [snapshot.document_id(document) for document in documents.tolist()]


def _numbers_of_terms(snapshot: Snapshot, terms: Sequence[str]) -> Integers:
    return snapshot.numbers_of_terms(terms)
