"""Snapshots of an index. A snapshot reads the segments of one commit as one collection, with exact statistics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from perikope.core.arrays import Array, Integers
from perikope.core.errors import IndexFormatError
from perikope.core.versions import advice_about_version
from perikope.index import manifest as manifests
from perikope.index.columns import MissingFileError
from perikope.index.languages import counts_by_language
from perikope.index.manifest import Manifest
from perikope.index.segments import Segment
from perikope.index.tombstones import NO_COUNTS, Counts
from perikope.kernels.strings import order_runs, pack_strings
from perikope.text.analysis import ANALYSIS_VERSION, Analyzer

CountOrCounts = int | Integers
"""A count of the whole collection, or one count per term: that of the language of the term."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of the collection and of given terms, without deleted documents.

    The arrays have one value per term. `tokens` and `passage_tokens` do not include stop words.
    """

    documents: CountOrCounts
    tokens: CountOrCounts
    passages: CountOrCounts
    passage_tokens: CountOrCounts
    document_frequency: Integers
    collection_frequency: Integers
    passage_frequency: Integers
    passage_collection_frequency: Integers
    """Occurrences inside passages. The collection frequency also includes occurrences in titles."""
    length_of_documents: float | None = None
    """The average length of documents in tokens of all languages; None for `tokens / documents`.

    The length of a document counts all its languages, so its average does too, even if terms are counted by language.
    """


Number = TypeVar("Number", int, float)
Value = TypeVar("Value", bound=Hashable)
Answer = TypeVar("Answer")


def of_terms(value: Number | Array, terms: Array) -> Number | Array:
    """A value of the whole collection, or the values at the given terms if there is one value per term."""
    return value[terms] if isinstance(value, np.ndarray) else value


_SHORT_RUN = 24
"""Groups of at most this many documents are sorted by insertion."""
_FEW = 64
"""This many documents are sorted by numpy, so that a search of a small index need not compile a kernel for it."""
_LONG_ID = 64
"""Ids of at most this many bytes are compared as integers, eight bytes at a time."""

_FIRST_ROOM = 1 << 8
"""The terms for which a cache of terms has room at first."""
_COUNTS = 4
"""The number of rows of `TermRows` that hold counts of the collection."""
_OF_SEGMENT = 5
"""The number of rows of `TermRows` per segment."""


@dataclass(frozen=True, slots=True)
class TermRows:
    """The data that a snapshot has about terms, as an array with one column per term.

    The first rows are the counts in the collection. Five rows per segment follow: the number of the term in the
    segment, its first and end window, and its first and end posting.
    """

    rows: Integers

    @property
    def counts(self) -> Integers:
        """The counts of each term, as an array (4, terms).

        The rows are documents, occurrences, passages and occurrences in passages.
        """
        return self.rows[:_COUNTS]

    @property
    def numbers(self) -> Integers:
        """The number of each term in each segment, or -1 if the segment lacks it, as an array (segments, terms)."""
        return self.rows[_COUNTS::_OF_SEGMENT]

    def bounds(self, segment: int) -> Integers:
        """The windows and postings of each term in a segment, as an array (4, terms).

        The rows are first window, end window, first posting and end posting. Ends are exclusive.
        """
        first = _COUNTS + segment * _OF_SEGMENT
        return self.rows[first + 1 : first + _OF_SEGMENT]

    def at(self, terms: Integers) -> TermRows:
        """The rows of some of the terms; `terms` are column numbers."""
        return TermRows(np.ascontiguousarray(self.rows[:, terms]))


class TermTable:
    """The data of the terms that were looked up lately, with one row per term: the transpose of `TermRows.rows`.

    Rows are added and never changed. `derived` holds what others computed from the rows, by a key of theirs.
    """

    def __init__(self, segments: int, room: int) -> None:
        """A table of at most `room` terms, with their data in so many segments."""
        self.row_of_term: dict[str, int] = {}
        self.rows: Integers = np.empty((room, _COUNTS + _OF_SEGMENT * segments), np.int64)
        self._sound = [np.zeros(room, bool) for _ in range(segments)]
        """By segment, whether the postings of each row were verified."""
        self.frequency: Integers = np.empty(room, np.int64)
        """The first column of `rows`, the number of documents; numpy reads it in half the time."""
        self.derived: dict[Any, Any] = {}

    def add(self, terms: Sequence[str], rows: Integers) -> None:
        """Add terms that the table lacks, with their rows."""
        first = len(self.row_of_term)
        self.rows[first : first + len(terms)] = rows
        self.frequency[first : first + len(terms)] = rows[:, 0]
        # After the rows, since other threads read the table meanwhile.
        self.row_of_term.update({term: first + i for i, term in enumerate(terms)})

    def require_postings(self, i: int, segment: Segment, rows: Integers) -> None:
        """Verify the postings of the terms in `rows` in segment number `i`, unless this was done."""
        sound = self._sound[i]
        if 0 in sound.take(rows).tobytes():  # a microsecond faster than `all`
            segment.posted.require(self.rows[rows, FoundTerms.column(i)])
            sound[rows] = True


class FoundTerms(NamedTuple):
    """Where the data of terms is, for those who need not copy it."""

    table: TermTable
    numbers: Integers
    """The row of each term in the table."""

    @staticmethod
    def column(segment: int) -> int:
        """The column of a table that has the numbers of terms in a segment; those of `TermRows.bounds` follow it."""
        return _COUNTS + segment * _OF_SEGMENT


class TermCache:
    """A cache of the data of terms, since looking up a term in many segments takes longer than reading its postings.

    It holds at most `most` terms and is emptied when it is full. Its table begins small and doubles: a program that
    opens a snapshot per commit would otherwise allocate and free megabytes each time, which leaves holes in its memory.
    """

    def __init__(self, segments: Sequence[Segment], most: int = 1 << 14) -> None:
        self._segments = segments
        self._most = most
        self._lock = threading.Lock()
        self._table = self._empty(min(_FIRST_ROOM, most))

    def _empty(self, room: int) -> TermTable:
        return TermTable(len(self._segments), room)

    def find(self, terms: Sequence[str]) -> FoundTerms:
        """Look up terms, of which one may occur several times."""
        table = self._table
        row_of_term = table.row_of_term
        try:
            return FoundTerms(table, np.fromiter(map(row_of_term.__getitem__, terms), np.int64, len(terms)))
        except KeyError:
            table = self._with(terms)
        return FoundTerms(table, np.fromiter(map(table.row_of_term.__getitem__, terms), np.int64, len(terms)))

    def _with(self, terms: Sequence[str]) -> TermTable:
        """A table that has all these terms."""
        with self._lock:
            table = self._table
            new = [term for term in dict.fromkeys(terms) if term not in table.row_of_term]
            known = len(table.row_of_term)
            if known + len(new) > self._most:
                # A new table is made, since other threads may still read the old one.
                new = list(dict.fromkeys(terms))
                table = self._empty(max(self._most, len(new)))
            elif known + len(new) > len(table.rows):
                table = self._empty(min(max(2 * len(table.rows), known + len(new)), self._most))
                table.add(list(self._table.row_of_term), self._table.rows[:known])
            table.add(new, self._read(new))
            if len(table.rows) <= self._most:
                self._table = table
            return table

    def _read(self, terms: Sequence[str]) -> Integers:
        return read_terms(self._segments, terms)


def read_terms(segments: Sequence[Segment], terms: Sequence[str]) -> Integers:
    """The rows of terms in a `TermTable` of these segments."""
    names = [term.encode("utf-8", "surrogatepass") for term in terms]
    rows = np.zeros((len(terms), _COUNTS + _OF_SEGMENT * len(segments)), np.int64)
    for i, segment in enumerate(segments):
        numbers = segment.find_terms(names)
        bounds = segment.term_bounds(numbers)
        rows[:, :_COUNTS] += segment.term_counts(numbers, bounds).T
        first = _COUNTS + i * _OF_SEGMENT
        rows[:, first : first + _OF_SEGMENT] = np.stack((numbers, *bounds), axis=1)
    return rows


class Snapshot:
    """The index as one commit left it; later commits do not change it.

    Documents are numbered consecutively through all segments, including deleted documents. Segments that another
    snapshot has `opened` and that did not change are shared with it.

    What a search reads from segments it reads by `ask` and `ask_about`, so that segments may be on other machines; see
    the chapter on clusters in ARCHITECTURE.md.
    """

    def __init__(self, folder: Path, manifest: Manifest, opened: Sequence[Segment] = ()) -> None:
        self.folder = folder
        self.manifest = manifest
        if manifest.analysis.get("version") != ANALYSIS_VERSION:
            version = str(manifest.analysis.get("version"))[:20]
            advice = advice_about_version(manifest.analysis.get("version"), ANALYSIS_VERSION, "build the index again")
            raise IndexFormatError(
                f"{folder} was made with version {version} of the text analysis, this program has version {ANALYSIS_VERSION}: {advice}"
            )
        stemmer, stopwords = (manifest.analysis.get(name) for name in ("stemmer", "stopwords"))
        if not all(isinstance(word, str) for word in [stemmer, *(stopwords if isinstance(stopwords, list) else [stopwords])]):
            raise IndexFormatError(f"{folder / manifests.FILE} is damaged: restore it from a copy or build the index again")
        self.analyzer = Analyzer.from_settings(manifest.analysis)
        self.segments = self._open_segments(opened)
        self.first_document = np.cumsum([0, *(segment.documents for segment in self.segments)])
        self._terms = self._open_terms()
        self.query_encoders: dict[str, Callable[[str], Any]] = {}
        """Functions that encode queries, by the name of the vector store. `perikope.neural.models.set_query_encoder`
        adds one."""
        self.stores: dict[str, tuple[tuple[int, ...], Any]] = {}
        """Open stores of vectors by name, each with what identifies the file of its manifest.

        `perikope.neural.models.open_store` adds them. They are released with the snapshot."""
        self.derived: dict[str, Any] = {}
        """What others have read from the snapshot and keep with it, by a name of theirs. Nothing in it refers to the
        snapshot."""
        self.languages_of_text: frozenset[str]
        """The languages in which there is text, or was before documents were deleted."""
        self.totals: Counts
        """The counts of the collection, without deleted documents."""
        self.languages_of_text, self.totals = self._count()
        self.languages = [manifest.language, *sorted(self.languages_of_text - {manifest.language})]

    @property
    def missing_shards(self) -> tuple[int, ...]:
        """The numbers of the shards of a cluster whose documents this snapshot lacks, because they do not answer."""
        return ()

    def _open_segments(self, opened: Sequence[Segment]) -> list[Segment]:
        return [Segment.open(self.folder, entry, opened) for entry in self.manifest.segments]

    def _open_terms(self) -> TermCache:
        return TermCache(self.segments)

    def ask_all(self, question: Callable[..., Iterable[Value]], *given: Any) -> set[Value]:
        """Everything that the answers of the shards to a question contain; see `ask`."""
        return {value for _, answer in self.ask(question, *given) for value in answer}

    def _count(self) -> tuple[frozenset[str], Counts]:
        """The languages of the text, and the counts of the collection."""
        languages = frozenset(language for segment in self.segments for language in segment.languages)
        return languages, sum((segment.totals for segment in self.segments), NO_COUNTS)

    @property
    def is_local(self) -> bool:
        """Whether the segments are on this machine."""
        return True

    def ask(self, question: Callable[..., Answer], *given: Any, terms: Sequence[str] = ()) -> list[tuple[int, Answer]]:
        """The answer of each shard to a question, with the number of the shard's first document.

        `question` is a function of a module. It is called with the snapshot of a shard and the `given` values, which
        are plain data, as is its answer. An index on this machine is one shard. `terms` are those whose statistics the
        question needs.
        """
        return [(0, question(self, *given))]

    def ask_about(
        self, question: Callable[..., Answer], documents: Integers, *given: Any, beside: Sequence[Array] = (), terms: Sequence[str] = ()
    ) -> list[tuple[slice | Integers, Answer]]:
        """The answers of the shards that hold the given documents, each with the indices of these in `documents`.

        `question` is called with the snapshot of a shard, the numbers of its documents in this snapshot, its part of
        each array in `beside`, and the `given` values; see `ask`. The documents of a shard are in the given order.
        Without documents, one shard is asked about none.
        """
        return [(slice(0, documents.size), question(self, documents, *beside, *given))]

    @classmethod
    def open(cls, folder: Path, before: Snapshot | None = None) -> Snapshot:
        """Open the snapshot of the last commit.

        With the snapshot of an earlier commit, only segments that this one lacks are opened. It is returned itself if
        there was no later commit.
        """
        while True:
            manifest = manifests.load(folder)
            if before is not None and manifest == before.manifest:
                return before
            try:
                return cls(folder, manifest, before.segments if before is not None else ())
            except MissingFileError:
                # A merge may have replaced segments after the manifest was read.
                if manifests.load(folder).generation == manifest.generation:
                    raise

    @property
    def numbers(self) -> int:
        """The number of documents, including deleted documents that no merge has removed yet."""
        return int(self.first_document[-1])

    def locate(self, document: int) -> tuple[Segment, int]:
        """The segment of a document, and the document's number in that segment."""
        number = int(np.searchsorted(self.first_document, document, "right")) - 1
        return self.segments[number], document - int(self.first_document[number])

    def document_id(self, document: int) -> str:
        """The id of a document."""
        segment, local = self.locate(document)
        return segment.document_id(local)

    def by_id(self, documents: Integers, groups: Integers) -> Integers:
        """The order of documents by group and, within a group, by id, as indices into `documents`.

        `groups` has the group of each document and is in ascending order.
        """
        if len(self.segments) == 1:
            rows_of_segment: list[Any] = [slice(None)]
        else:
            segment_of = np.searchsorted(self.first_document, documents, "right") - 1
            rows_of_segment = [np.flatnonzero(segment_of == i) for i in range(len(self.segments))]
        local = [documents[rows] - self.first_document[i] for i, rows in enumerate(rows_of_segment)]
        for segment, numbers in zip(self.segments, local, strict=True):
            segment.named.require(numbers)
        longest = max((segment.document_ids.longest(numbers) for segment, numbers in zip(self.segments, local, strict=True)), default=0)
        if longest > _LONG_ID:
            ids = [self.document_id(number) for number in documents.tolist()]
            return np.array(sorted(range(documents.size), key=lambda at: (groups[at], ids[at])), np.int64)
        keys = np.zeros((-(-longest // 8), documents.size), np.uint64)
        for segment, rows, numbers in zip(self.segments, rows_of_segment, local, strict=True):
            names = segment.document_ids
            keys[:, rows] = pack_strings(names.unverified_ends, names.data, numbers, keys.shape[0])
        # Groups are usually small, since few documents have the same score.
        if documents.size > _FEW:
            order: Integers = order_runs(groups, keys, _SHORT_RUN)
            if order.size == documents.size:
                return order
        return np.lexsort((*keys[::-1], groups)).astype(np.int64)

    def find_document(self, id: str) -> int:
        """The number of the live document with this id, or -1 if there is none."""
        for base, segment in zip(self.first_document.tolist(), self.segments, strict=False):
            local = segment.document_number(id)
            if local >= 0:
                return int(base) + local
        return -1

    def look_up(self, terms: Sequence[str]) -> TermRows:
        """Look up terms (`language:term`): their counts, and their numbers, windows and postings in each segment."""
        table, numbers = self._terms.find(terms)
        return TermRows(np.ascontiguousarray(table.rows[numbers].T))

    def find_terms(self, terms: Sequence[str]) -> FoundTerms:
        """Look up terms as `look_up` does, without a copy of their data."""
        return self._terms.find(terms)

    def terms_with_prefix(self, prefix: str, most: int) -> tuple[int, list[str]]:
        """The number of terms that begin with `prefix`, and their sorted names.

        If there are more than `most` terms, the list of names is empty. If a single segment has more than `most`, the
        number is the largest number in one segment. Terms of deleted documents are included until a merge.
        """
        answers = [answer for _, answer in self.ask(_names_with_prefix, prefix, most)]
        longest = max(longest for longest, _ in answers)
        if longest > most:
            return longest, []
        names = set[str]().union(*(names for _, names in answers))
        return len(names), sorted(names) if len(names) <= most else []

    def numbers_of_terms(self, terms: Sequence[str]) -> Integers:
        """The number of each term in each segment, or -1 if the segment lacks it, as an array (segments, terms)."""
        return self.look_up(terms).numbers

    def statistics(self, terms: Sequence[str]) -> Statistics:
        """The exact statistics of terms (`language:term`) over all segments, without deleted documents."""
        return self.statistics_of(self.look_up(terms))

    def statistics_of(self, terms: TermRows, names: Sequence[str] | None = None) -> Statistics:
        """The exact statistics of terms whose rows `look_up` returned.

        With the `names` of the terms, the collection is counted by language: each term has the counts of its language.
        """
        if names is None:
            return Statistics(*self.totals, *terms.counts)
        documents, tokens, passages, passage_tokens = self.totals_of(names)
        counts = Statistics(documents, tokens, passages, passage_tokens, *terms.counts)
        return replace(counts, length_of_documents=self.totals.occurrences / max(self.totals.documents, 1))

    @cached_property
    def totals_by_language(self) -> dict[str, Counts]:
        """The counts of the collection in each language that has text, without deleted documents.

        They are counted when they are first needed, in time proportional to terms and spans.
        """
        totals: dict[str, Counts] = {}
        for _, counted in self.ask(count_by_language):
            for code, counts in counted:
                totals[code] = totals.get(code, NO_COUNTS) + counts
        return {code: counts for code, counts in sorted(totals.items()) if counts.occurrences}

    def totals_of(self, terms: Sequence[str]) -> Integers:
        """The counts of the collection in the language of each term, as an array (4, terms), in the order of `Counts`.

        A term without a language, such as a classification code, has the counts of the whole collection.
        """
        totals = self.totals_by_language
        counts = [totals.get(term.partition(":")[0], NO_COUNTS) if ":" in term else self.totals for term in terms]
        return np.array(counts, np.int64).reshape(len(terms), _COUNTS).T

    def part_statistics(self, terms: Sequence[str], part: str) -> tuple[Integers, Integers]:
        """The document frequencies and the collection frequencies of terms within one part, as two arrays."""
        none = np.zeros((2, len(terms)), np.int64)
        document_frequency, collection_frequency = sum((counts for _, counts in self.ask(_count_in_part, terms, part)), none)
        return document_frequency, collection_frequency


def _names_with_prefix(snapshot: Snapshot, prefix: str, most: int) -> tuple[int, set[str]]:
    """The largest number of terms with a prefix in one segment, and their names unless these are more than `most`."""
    numbers_by_segment = [segment.terms_with_prefix(prefix.encode("utf-8", "surrogatepass")) for segment in snapshot.segments]
    longest = max((numbers.size for numbers in numbers_by_segment), default=0)
    pairs = zip(snapshot.segments, numbers_by_segment, strict=True) if longest <= most else ()
    return longest, {segment.terms.text(int(number)) for segment, numbers in pairs for number in numbers}


def count_by_language(snapshot: Snapshot) -> list[tuple[str, Counts]]:
    """The counts of each segment by language."""
    return [counted for segment in snapshot.segments for counted in counts_by_language(segment).items()]


def _count_in_part(snapshot: Snapshot, terms: Sequence[str], part: str) -> Integers:
    counts = np.zeros((2, len(terms)), np.int64)
    for segment in snapshot.segments:
        numbers = segment.find_terms([term.encode("utf-8", "surrogatepass") for term in terms])
        for column in np.flatnonzero(numbers >= 0).tolist():
            documents, frequencies = segment.weighted_postings(int(numbers[column]), {part: 1.0})
            counts[:, column] += documents.size, int(frequencies.sum())
    return counts
