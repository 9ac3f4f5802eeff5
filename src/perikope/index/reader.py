"""A snapshot of an index: the segments of one commit, with documents numbered through and exact statistics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.arrays import Integers
from perikope.core.errors import IndexFormatError
from perikope.index import manifest as manifests
from perikope.index.columns import MissingFileError
from perikope.index.manifest import Manifest
from perikope.index.segments import Segment
from perikope.index.tombstones import NO_COUNTS, Counts
from perikope.kernels.strings import order_runs, pack_strings
from perikope.text.analysis import ANALYSIS_VERSION, Analyzer


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the whole collection says of the query's terms; the arrays have one value a term."""

    documents: int
    tokens: int
    passages: int
    passage_tokens: int
    document_frequency: Integers
    collection_frequency: Integers
    passage_frequency: Integers
    passage_collection_frequency: Integers
    """Occurrences inside passages; the collection frequency also counts titles."""


_SHORT_RUN = 24
_LONG_ID = 64
"""Shorter ids are compared as numbers, eight bytes at a time."""

_COUNTS = 4
_OF_SEGMENT = 5


@dataclass(frozen=True, slots=True)
class TermRows:
    """What a snapshot knows of some terms, a column each: the counts and then, for each segment, where the term stands there."""

    rows: Integers

    @property
    def counts(self) -> Integers:
        """Documents, occurrences, passages and occurrences in passages, one value a term."""
        return self.rows[:_COUNTS]

    @property
    def numbers(self) -> Integers:
        """The number of each term in each segment (a row), or -1."""
        return self.rows[_COUNTS::_OF_SEGMENT]

    def places(self, segment: int) -> Integers:
        """First and end window, first and end posting of each term in a segment."""
        first = _COUNTS + segment * _OF_SEGMENT
        return self.rows[first + 1 : first + _OF_SEGMENT]

    def at(self, terms: Integers) -> TermRows:
        """The same for some of the terms."""
        return TermRows(np.ascontiguousarray(self.rows[:, terms]))


class _Rows:
    """The rows of the terms that were looked up last: a dictionary of many segments takes longer to search than postings to add."""

    def __init__(self, segments: Sequence[Segment], most: int = 1 << 14) -> None:
        self._segments = segments
        self._most = most
        self._lock = threading.Lock()
        self._empty()

    def _empty(self) -> None:
        self._known: dict[str, int] = {}
        self._table = np.empty((self._most, _COUNTS + _OF_SEGMENT * len(self._segments)), np.int64)

    def of(self, terms: Sequence[str]) -> Integers:
        known, table = self._known, self._table
        try:
            return table[[known[term] for term in terms]]
        except KeyError:
            return self._find(terms)

    def _find(self, terms: Sequence[str]) -> Integers:
        with self._lock:
            new = [term for term in dict.fromkeys(terms) if term not in self._known]
            rows = self._read(new)
            if len(terms) > self._most:
                return self._read(terms)
            if len(self._known) + len(new) > self._most:
                # Others may still read the old table.
                self._empty()
                new = list(dict.fromkeys(terms))
                rows = self._read(new)
            first = len(self._known)
            self._table[first : first + len(new)] = rows
            self._known.update({term: first + i for i, term in enumerate(new)})
            return self._table[[self._known[term] for term in terms]]

    def _read(self, terms: Sequence[str]) -> Integers:
        names = [term.encode("utf-8", "surrogatepass") for term in terms]
        rows = np.zeros((len(terms), _COUNTS + _OF_SEGMENT * len(self._segments)), np.int64)
        for i, segment in enumerate(self._segments):
            numbers = segment.find_terms(names)
            rows[:, :_COUNTS] += segment.term_counts(numbers).T
            windows = segment.term_windows(numbers)
            places = (numbers, *windows, *(segment.numbers("window.first_posting", window) for window in windows))
            first = _COUNTS + i * _OF_SEGMENT
            rows[:, first : first + _OF_SEGMENT] = np.stack(places, axis=1)
        return rows


class Snapshot:
    """What a reader sees: it stays the same whatever a writer does meanwhile."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        if manifest.analysis.get("version") != ANALYSIS_VERSION:
            found = manifest.analysis.get("version")
            raise IndexFormatError(
                f"{folder} was made with text analysis {found}, this program has {ANALYSIS_VERSION}: build the index again"
            )
        stemmer, stopwords = (manifest.analysis.get(name) for name in ("stemmer", "stopwords"))
        if not all(isinstance(word, str) for word in [stemmer, *(stopwords if isinstance(stopwords, list) else [stopwords])]):
            raise IndexFormatError(f"{folder / manifests.FILE} is damaged: restore it from a copy or build the index again")
        self.analyzer = Analyzer.from_settings(manifest.analysis)
        self.segments = [Segment(folder, entry) for entry in manifest.segments]
        self.first_document = np.cumsum([0, *(segment.documents for segment in self.segments)])
        self._rows = _Rows(self.segments)
        self.query_encoders: dict[str, Callable[[str], Any]] = {}
        """What turns a query into a vector, by the name of a store of vectors; `perikope.neural.models.set_query_encoder` adds to it."""
        held = {language for segment in self.segments for language in segment.columns.facts["languages"]}
        self.languages = [manifest.language, *sorted(held - {manifest.language})]
        self.totals: Counts = sum((segment.totals for segment in self.segments), NO_COUNTS)

    @classmethod
    def open(cls, folder: Path) -> Snapshot:
        """The snapshot of the last commit."""
        while True:
            manifest = manifests.load(folder)
            try:
                return cls(folder, manifest)
            except MissingFileError:
                # A merge may have replaced the segments between reading their names and opening them.
                if manifests.load(folder).generation == manifest.generation:
                    raise

    @property
    def numbers(self) -> int:
        """How many document numbers there are; deleted documents keep theirs until a merge."""
        return int(self.first_document[-1])

    def locate(self, document: int) -> tuple[Segment, int]:
        """The segment of a document and its local number there."""
        number = int(np.searchsorted(self.first_document, document, "right")) - 1
        return self.segments[number], document - int(self.first_document[number])

    def document_id(self, document: int) -> str:
        """The id of a document."""
        segment, local = self.locate(document)
        return segment.document_id(local)

    def by_id(self, documents: Integers, groups: Integers) -> Integers:
        """The order of documents by group (they come in that order already) and, within one, by id."""
        segment_of = np.searchsorted(self.first_document, documents, "right") - 1
        own = [np.flatnonzero(segment_of == i) for i in range(len(self.segments))]
        local = [documents[rows] - self.first_document[i] for i, rows in enumerate(own)]
        longest = max((segment.document_ids.longest(numbers) for segment, numbers in zip(self.segments, local, strict=True)), default=0)
        if longest > _LONG_ID:
            ids = [self.document_id(number) for number in documents.tolist()]
            return np.array(sorted(range(documents.size), key=lambda at: (groups[at], ids[at])), np.int64)
        keys = np.zeros((-(-longest // 8), documents.size), np.uint64)
        for segment, rows, numbers in zip(self.segments, own, local, strict=True):
            names = segment.document_ids
            keys[:, rows] = pack_strings(names.ends, names.data, numbers, keys.shape[0])
        # Mostly few have the same score.
        order: Integers = order_runs(groups, keys, _SHORT_RUN)
        return order if order.size == documents.size else np.lexsort((*keys[::-1], groups)).astype(np.int64)

    def find_document(self, id: str) -> int:
        """The number of a document, or -1."""
        for base, segment in zip(self.first_document.tolist(), self.segments, strict=False):
            local = segment.document_number(id)
            if local >= 0:
                return int(base) + local
        return -1

    def look_up(self, terms: Sequence[str]) -> TermRows:
        """Where terms stand in each segment, and their counts."""
        return TermRows(np.ascontiguousarray(self._rows.of(terms).T))

    def terms_with_prefix(self, prefix: str, most: int) -> tuple[int, list[str]]:
        """How many terms begin so, and which, in the order of their names; where they are more than `most`, no names.

        The number is then that of one segment: others may hold more. Terms of deleted documents count until a merge.
        """
        found = [segment.terms_with_prefix(prefix.encode("utf-8", "surrogatepass")) for segment in self.segments]
        longest = max((numbers.size for numbers in found), default=0)
        if longest > most:
            return longest, []
        names = {segment.terms.text(int(number)) for segment, numbers in zip(self.segments, found, strict=True) for number in numbers}
        return len(names), sorted(names) if len(names) <= most else []

    def statistics(self, terms: Sequence[str]) -> Statistics:
        """Exact counts over all segments."""
        return self.statistics_of(self.look_up(terms))

    def statistics_of(self, terms: TermRows) -> Statistics:
        """The same for terms that were looked up before."""
        return Statistics(*self.totals, *terms.counts)

    def part_statistics(self, terms: Sequence[str], part: str) -> tuple[Integers, Integers]:
        """Of each term: how many documents hold it in a part, and how often they do there in all."""
        counts = np.zeros((2, len(terms)), np.int64)
        for segment, numbers in zip(self.segments, self.look_up(terms).numbers, strict=True):
            for column in np.flatnonzero(numbers >= 0).tolist():
                documents, frequencies = segment.part_postings(int(numbers[column]), part)
                counts[:, column] += documents.size, int(frequencies.sum())
        return counts[0], counts[1]
