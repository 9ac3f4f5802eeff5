"""Reads documents, sections, passages, terms and postings from a segment file."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import ref

import numpy as np

from perikope.core.arrays import Array, Floats, Integers
from perikope.core.names import running_number
from perikope.document.tree import Place
from perikope.index.columns import ColumnFile, Expectation, rises
from perikope.index.facets import Facets
from perikope.index.first_touch import FirstTouch, joined_documents, offsets_at, postings_of_terms, trees_of_documents
from perikope.index.layout import MAX_PARTS, OF_PASSAGE, OF_SECTION, OF_SPAN, STOP, has_right_type
from perikope.index.store import Store
from perikope.index.tombstones import MOST, Counts, Tombstones, is_count
from perikope.kernels.dictionary import find_names
from perikope.kernels.names import rows_of_spans
from perikope.kernels.postings import LARGE, WINDOW_BITS, count_stored, select_part
from perikope.kernels.strings import hash_strings
from perikope.kernels.tokens import decode_tokens

Answer = TypeVar("Answer")

_REMEMBERED = 32
"""The number of results that `Segment.remember` keeps. The largest results are masks of one bit per document."""

_COUNTED = ("documents", "tokens", "indexed_tokens", "passages", "passage_tokens")


class Segment:
    """An open segment: an immutable, memory-mapped file of documents.

    Documents are numbered from 0; deleted documents keep their numbers. `entry` is the segment's entry in the manifest.
    """

    def __init__(self, folder: Path, entry: Mapping[str, Any]) -> None:
        self.entry = entry
        self.columns = ColumnFile(folder / entry["file"], entry)
        self._check_facts()
        facts = self.columns.facts
        self.documents: int = facts["documents"]
        self.labels: list[str] = facts["labels"]
        self.parts: list[str] = [self.labels[number] for number in facts["parts"]]
        self.languages: list[str] = facts["languages"]
        """The languages in which there is text."""
        self.terms = self.columns.strings("terms")
        self.document_ids = self.columns.strings("document_ids")
        self.text_store = Store("text", self.columns, self.documents)
        self.record_store = Store("records", self.columns, self.documents)
        self.facets = Facets(self.columns, self.documents)
        self.ids = self.columns.strings("ids")
        """The ids of spans."""
        self._sources, self._source_hashes = self.columns.strings("sources"), self.columns.strings("source_hashes")
        self.joined = joined_documents(self.columns, self.documents)
        """Documents that were verified for a join; `require` them before kernels read their rows."""
        self.trees = trees_of_documents(self.columns, self.documents)
        """Documents whose trees were verified."""
        self.named = FirstTouch(self.documents, self.document_ids.require)
        """Documents whose ids were verified."""
        self.posted = postings_of_terms(self.columns, len(self.terms))
        """Terms whose postings were verified."""
        self._open_tombstones(folder)
        self._check()

    @classmethod
    def open(cls, folder: Path, entry: Mapping[str, Any], opened: Iterable[Segment] = ()) -> Segment:
        """Open the segment of a manifest entry, or take it from the segments that are `opened` already.

        Segment files never change. If only the deleted documents differ, the new segment shares the open file.
        """
        for segment in opened:
            if segment.entry == entry:
                return segment
            if all(segment.entry[name] == entry[name] for name in ("file", "size", "checksum", "documents", "tokens")):
                return segment._with_tombstones(folder, entry)
        return cls(folder, entry)

    def _with_tombstones(self, folder: Path, entry: Mapping[str, Any]) -> Segment:
        """The same segment with the tombstones of another entry. It shares the open file without checking it again."""
        segment = copy(self)
        segment.entry = entry
        segment._open_tombstones(folder)
        return segment

    def _open_tombstones(self, folder: Path) -> None:
        """Set everything that depends on which documents are deleted."""
        deleted = self.entry.get("deleted")
        self.tombstones = Tombstones.open(folder, deleted, self.documents, len(self.terms)) if deleted else None
        self.totals = self._totals()
        self.alive = np.ones(self.documents, bool)
        if self.tombstones:
            self.alive[self.tombstones.documents] = False
        # The cache does not refer to the segment. So the segment and its file are freed as soon as nobody holds them.
        self._remembered = lru_cache(maxsize=_REMEMBERED)(partial(_make, ref(self)))

    def __getitem__(self, column: str) -> Array:
        """A whole column, verified when it is first read. For some rows of a large column, use `rows`."""
        return self.columns.whole(column)

    def rows(self, column: str, first: int, end: int) -> Array:
        """The rows of a column from `first` to `end` (exclusive), verified when they are first read."""
        return self.columns.rows(column, first, end)

    def row(self, column: str, number: int) -> int:
        """One value of a column, verified when it is first read."""
        return self.columns.value(column, number)

    def ask(self, question: Callable[..., Answer], *given: Any) -> Answer:
        """Return `question(segment, *given)`, which is computed where the segment is; see `Snapshot.ask`."""
        return question(self, *given)

    def check_columns(self) -> None:
        """Check all columns now that are otherwise checked when they are first read."""
        for column in self.columns:
            self.columns.whole(column)
        stores = (self.text_store, self.record_store)
        names = (self.terms, self.document_ids, self.ids, self._sources, self._source_hashes)
        for strings in (*names, self.facets.field_names, self.facets.values, *(store.packed for store in stores)):
            _ = strings.ends

    def remember(self, make: Callable[[Segment, Any], Any], key: Hashable) -> Any:
        """Return `make(segment, key)` from a cache of recently used results.

        `make` must always return the same for a key, and the result must not refer to the segment.
        """
        return self._remembered(make, key)

    def _totals(self) -> Counts:
        """The counts of the segment without deleted documents. Tokens are counted without stop words."""
        facts = self.columns.facts
        counts = Counts(self.documents, facts["indexed_tokens"], facts["passages"], facts["passage_tokens"])
        return self._checked(counts - self.tombstones.totals if self.tombstones else counts)

    def find_terms(self, names: Sequence[bytes]) -> Integers:
        """The number of each term (`language:term`) in the segment, or -1 if the segment does not have the term."""
        ends = np.cumsum([len(name) for name in names], dtype=np.int64)
        data = np.frombuffer(b"".join(names), np.uint8)
        verification, columns = self.columns.verification, ("term_of_name", "terms.ends", "terms.bytes")
        if not verification.by_blocks:
            _ = self["term_of_name"], self.terms.ends
        blocks = [verification.blocks_of(column) for column in columns]
        numbers: Integers = find_names(data, ends, self.columns["term_of_name"], self.terms.unverified_ends, self.terms.data, *blocks)
        if numbers[-1]:
            # A damaged name may have led the search astray, so everything that was compared is verified.
            for column in columns:
                verification.require_touched(column)
            if numbers[-1] < 0:
                raise self.columns.damaged("has a damaged dictionary")
        return numbers[:-1]

    def terms_with_prefix(self, prefix: bytes) -> Array:
        """The numbers of the terms whose names begin with `prefix`, in the order of their names."""
        in_order = self["term_of_name"]

        def name(number: int) -> bytes:
            return self.terms[int(number)]

        # UTF-8 never contains the byte 255, so the second bound sorts after every name with the prefix.
        first, end = (bisect_left(in_order, bound, key=name) for bound in (prefix, prefix + b"\xff"))
        return in_order[first:end]

    def term_bounds(self, terms: Integers) -> Integers:
        """The windows and postings of each term, as an array (4, terms).

        The rows are first window, end window, first posting and end posting; ends are exclusive. All are 0 for the term
        number -1. A window is a block of 65,536 document numbers, see `kernels/postings.py`.
        """
        bounds = np.zeros((4, terms.size), np.int64)
        known = np.flatnonzero(terms >= 0)
        if known.size:
            windows = offsets_at(self.columns, "term.first_window", "window.number", terms[known])
            bounds[:2, known] = windows
            bounds[2:, known] = [self._first_postings(window) for window in windows]
            if np.any(bounds[2] > bounds[3]):
                raise self.columns.damaged("has damaged offsets (window.first_posting)")
        return bounds

    def _first_postings(self, windows: Integers) -> Integers:
        """The first posting of each window; windows may be the end of all windows."""
        if self.columns.verification.by_blocks:
            self.columns.require_ranges(("window.first_posting",), windows, windows + 1)
            return self.columns["window.first_posting"][windows].astype(np.int64)
        return self["window.first_posting"][windows].astype(np.int64)

    def numbers(self, column: str, rows: Integers) -> Integers:
        """The values of a column at these rows, which must be verified; the value is 0 if the row is negative."""
        values = self.columns[column]
        if not values.size:
            return np.zeros(rows.size, np.int64)
        return np.where(rows >= 0, values.take(rows, mode="clip"), 0).astype(np.int64)

    def term_counts(self, terms: Integers, bounds: Integers | None = None) -> Integers:
        """The counts of each term without deleted documents, as an array (4, terms).

        The rows are documents, occurrences, passages and occurrences in passages. Pass the `term_bounds` of the terms
        if you have them.
        """
        _, _, first, end = self.term_bounds(terms) if bounds is None else bounds
        known = terms[terms >= 0]
        self.columns.require_ranges(("term.occurrences", "term.passages", "term.passage_occurrences"), known, known + 1)
        counts = np.stack([
            end - first,
            *(self.numbers(f"term.{name}", terms) for name in ("occurrences", "passages", "passage_occurrences")),
        ])  # fmt: skip
        if self.tombstones:
            counts -= self.tombstones.counts(terms)
        if counts.size and (int(counts.min()) < 0 or int(counts.max()) > MOST):
            raise self.columns.damaged("has damaged counts")
        return counts

    def postings(self, term: int) -> tuple[Array, Array]:
        """The live documents that contain a term, in ascending order, and the frequency of the term in each."""
        documents, frequencies, _ = self._postings(term)
        return self._alive(documents, frequencies)

    def first_documents(self, term: int, most: int) -> Integers:
        """The first `most` live documents that contain a term, in ascending order. The other postings are not read."""
        first_posting, found, count = self["window.first_posting"], [np.empty(0, np.int64)], 0
        for window in range(*self._windows(term)):
            at, end = int(first_posting[window]), int(first_posting[window + 1])
            while at < end and count < most:
                postings = np.arange(at, min(at + most, end))
                documents = self.documents_at(postings)
                found.append(documents[self.alive[documents]][: most - count])
                at, count = at + postings.size, count + found[-1].size
        return np.concatenate(found)

    def large_frequencies(self) -> Integers:
        """The numbers of the postings whose frequency is `LARGE` (255) or more, in ascending order."""
        postings = self["posting.frequency.large_at"]
        in_order = not np.any(postings[:-1] >= postings[1:])
        if postings.size and (int(postings[0]) < 0 or int(postings[-1]) >= self._size("posting.document") or not in_order):
            raise self.columns.damaged("has damaged frequencies (posting.frequency)")
        return postings

    def documents_at(self, postings: Integers) -> Integers:
        """The document of each posting; `postings` are numbers of postings in the segment."""
        first_posting = self["window.first_posting"]
        window = np.searchsorted(first_posting, postings.astype(first_posting.dtype), "right") - 1
        self.columns.require_ranges(("window.number",), window, window + 1)
        self.columns.require_ranges(("posting.document",), postings, postings + 1)
        documents = (self.columns["window.number"][window].astype(np.int64) << WINDOW_BITS) | self.columns["posting.document"][postings]
        if documents.size and int(documents.max()) >= self.documents:
            raise self.columns.damaged("has damaged postings")
        return documents

    def weighted_postings(self, term: int, weights: Mapping[str, float]) -> tuple[Integers, Floats]:
        """The live documents that contain a term in some parts, in ascending order, and its weighted frequency in each.

        `weights` has the weight of each part, which multiplies the frequency of the term in this part.
        """
        documents, frequencies, inside = self._postings(term)
        total = np.zeros(documents.size)
        chosen = {part: weight for part, weight in weights.items() if part in self.parts}
        if len(self.parts) == 1:
            total += sum(chosen.values()) * frequencies
        elif chosen:
            first, end = (int(self["window.first_part"][window]) for window in self._windows(term))
            self.columns.verification.require("part_frequency", first, end)
            self.columns.verification.require("posting.parts", inside.start, inside.stop)
            stored = self.frequencies("part_frequency", np.arange(first, end))
            sets = self.part_sets(inside, stored.size)
            for part, weight in chosen.items():
                total += weight * select_part(sets, frequencies, stored, self.parts.index(part))
        documents, total = self._alive(documents[total > 0], total[total > 0])
        return documents.astype(np.int64), total

    def part_sets(self, rows: Array | slice, stored: int) -> Array:
        """The parts of postings, as one set of bits per posting. The rows must be verified.

        `stored` is the number of part frequencies of these postings; sets that contradict it are an error.
        """
        sets = self.columns["posting.parts"][rows].astype(np.uint64)
        highest = np.uint64(len(self.parts) - 1)
        if np.any((sets >> highest) > 1) or np.any(sets == 0) or int(count_stored(sets)[-1]) != stored:
            raise self.columns.damaged("has damaged parts (posting.parts)")
        return sets

    def frequencies(self, name: str, rows: Array) -> Array:
        """The frequencies of a column at these rows, which must be verified.

        Frequencies of `LARGE` (255) or more are read from a second column.
        """
        values = self.columns[name][rows].astype(np.uint32)
        large_rows, large = self[f"{name}.large_at"], self[f"{name}.large"]
        full = np.flatnonzero(values == LARGE)
        at = np.searchsorted(large_rows, rows[full])
        if np.any(at >= min(large_rows.size, large.size)) or np.any(large_rows[np.minimum(at, large_rows.size - 1)] != rows[full]):
            raise self.columns.damaged(f"has damaged frequencies ({name})")
        values[full] = large[at]
        return values

    def tokens(self, document: int) -> Array:
        """The term number of every token of a document, in reading order."""
        first, end = self._slice("document.first_code", document)
        expected = int(self["document.tokens"][document])
        tokens, count = decode_tokens(self.rows("tokens", first, end), expected + 1)
        if count != expected or (count and int(tokens.max()) >= len(self.terms)):
            raise self.columns.damaged(f"has a damaged token stream (document {document})")
        checked: Array = tokens
        return checked

    def document_number(self, id: str) -> int:
        """The number of the live document with this id in the segment, or -1 if there is none."""
        name = id.encode("utf-8", "surrogatepass")
        code = hash_strings(np.array([len(name)], np.uint64), np.frombuffer(name, np.uint8))[0]
        hashes, numbers = self["document_hash"], self["document_of_hash"]
        at = int(np.searchsorted(hashes, code))
        while at < hashes.size and hashes[at] == code:
            number = int(numbers[at])
            if number < self.documents and self.alive[number] and self.document_ids[number] == name:
                return number
            at += 1
        return -1

    def document_id(self, document: int) -> str:
        """The id of a document."""
        return self.document_ids.text(document)

    def text(self, document: int) -> str:
        """The whole text of a document."""
        try:
            return self.text_store[document].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise self.columns.damaged(f"has a damaged text (document {document})") from None

    def record(self, document: int) -> dict[str, Any]:
        """The stored record of a document: metadata, cited documents, references, archive member, places, citations.

        Keys without a value are missing.
        """
        data = self.record_store[document]
        try:
            record: dict[str, Any] = dict(json.loads(data.decode("utf-8", "surrogatepass"))) if data else {}
        except (TypeError, ValueError, RecursionError):
            raise self.columns.damaged(f"has damaged metadata (document {document})") from None
        return record

    def metadata(self, document: int, record: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The metadata of a document. Pass the document's `record` if you have it, so that it is not read again."""
        metadata = (self.record(document) if record is None else record).get("metadata", {})
        if not isinstance(metadata, dict):
            raise self.columns.damaged(f"has damaged metadata (document {document})")
        return metadata

    def places(self, document: int, record: Mapping[str, Any] | None = None) -> dict[int, Place]:
        """The locations of spans in the source file, by span number in the document.

        Empty if the format records none.
        """
        record = self.record(document) if record is None else record
        try:
            places = {int(span): Place(str(path), int(start), int(end)) for span, path, start, end in record.get("places", ())}
            for span, page, *box in record.get("pages", ()):
                place = places.get(int(span), Place("", 0, 0))
                places[int(span)] = replace(place, page=int(page), box=tuple(map(float, box)))
            return places
        except (TypeError, ValueError):
            raise self.columns.damaged(f"has damaged places (document {document})") from None

    def citations(self, document: int, record: Mapping[str, Any] | None = None) -> dict[int, str]:
        """The customary citations of spans, by span number in the document; empty if the format records none."""
        listed = (self.record(document) if record is None else record).get("citations", ())
        try:
            return {int(span): str(citation) for span, citation in listed}
        except (TypeError, ValueError):
            raise self.columns.damaged(f"has damaged citations (document {document})") from None

    def source(self, document: int) -> tuple[str, str]:
        """The file that a document was read from, and the hash of the file's content at that time."""
        number = int(self["document.source"][document])
        return self._sources.text(number), self._source_hashes.text(number)

    def source_name(self, number: int) -> str:
        """The name of a file, by its number in the column `document.source`."""
        return self._sources.text(number)

    @property
    def has_sources(self) -> bool:
        """Whether some document was read from a file."""
        return self._sources.data.size > 0

    def live_sources(self) -> set[str]:
        """The files that the live documents were read from."""
        return {self._sources.text(number) for number in np.unique(self["document.source"][self.alive]).tolist()}

    def passages_of(self, document: int) -> range:
        """The numbers of a document's passages in the segment."""
        return range(*self._slice("document.first_passage", document))

    def sections_of(self, document: int) -> range:
        """The numbers of a document's sections in the segment."""
        return range(*self._slice("document.first_section", document))

    def span_of(self, column: str, document: int, number: int) -> int:
        """The span of a section or passage of a document, as stored in a column of the segment; -1 if there is none.

        `column` has one span per section or passage, such as `passage.span`. `document`, `number` and the returned span
        are numbers in the segment.
        """
        span = self.row(column, number)
        first, end = self._slice("document.first_span", document)
        if span >= end - first:
            raise self.columns.damaged(f"has a damaged column ({column})")
        return first + span if span >= 0 else -1

    def span_id(self, document: int, span: int) -> str | None:
        """The id that a span (numbered in the segment) has in the source, or None if it has no id."""
        first, end = self._slice("document.first_id", document)
        rows = np.flatnonzero(self.rows("id.span", first, end) == span - int(self["document.first_span"][document]))
        return self.ids.text(first + int(rows[0])) if rows.size else None

    def span_ids(self, document: int) -> dict[int, str]:
        """The ids of a document's spans, by the number of the span in the document; spans without an id are missing."""
        first, end = self._slice("document.first_id", document)
        return {span: self.ids.text(row) for span, row in zip(self.rows("id.span", first, end).tolist(), range(first, end), strict=True)}

    def span_namer(self, document: int) -> Callable[[int], str | None]:
        """A function from the number of a span in the document to the id of the span, or to None if it has no id.

        For many spans, this is faster than `span_id`.
        """
        first, end = self._slice("document.first_id", document)
        row_of_span = dict(zip(self.rows("id.span", first, end).tolist(), range(first, end), strict=True))
        return lambda span: self.ids.text(row_of_span[span]) if span in row_of_span else None

    def rows_of_ids(self, documents: Integers, spans: Integers) -> Integers:
        """The row in `ids` of the id of each span, or -1 if it has none. The ids are not verified.

        `documents` has the document of each span, in ascending order. Spans are numbered in their document.
        """
        distinct, document = np.unique(documents, return_inverse=True)
        first, end = (self["document.first_id"][distinct + i].astype(np.int64) for i in (0, 1))
        self.columns.require_ranges(("id.span",), first, end)
        counts = np.diff(np.stack([self["document.first_span"][distinct + i].astype(np.int64) for i in (0, 1)]), axis=0)[0]
        rows: Integers = rows_of_spans(self.columns.numbers("id.span"), first, end, counts, document, spans)
        return rows

    def passage_spans(self, document: int) -> dict[str, int]:
        """The span of each passage of a document (numbered in the document), by the passage's id, in reading order."""
        id_of, first = self.span_namer(document), int(self["document.first_span"][document])
        spans = [self.span_of("passage.span", document, passage) - first for passage in self.passages_of(document)]
        return {id_of(span) or running_number(number): span for number, span in enumerate(spans)}

    def passage_id(self, document: int, passage: int) -> str:
        """The id of a passage (numbered in the segment).

        It is the id in the source or, if there is none, the passage's number in the document, such as `@3`.
        """
        id = self.span_id(document, self.span_of("passage.span", document, passage))
        return id if id is not None else running_number(passage - self.passages_of(document).start)

    def characters(self, span: int) -> slice:
        """The range of characters of a span (numbered in the segment) in the text of its document."""
        return slice(self.row("span.start", span), self.row("span.end", span))

    def label(self, property: str, span: int) -> str:
        """The `tag`, `part` or `language` of a span (numbered in the segment)."""
        number = self.row(f"span.{property}", span)
        if number >= len(self.labels):
            raise self.columns.damaged(f"has a damaged column (span.{property})")
        return self.labels[number]

    def _postings(self, term: int) -> tuple[Array, Array, slice]:
        """The documents and the frequencies of a term's postings, and the range of these postings.

        Includes deleted documents.
        """
        self.posted.require(np.array([term]))
        first_window, end_window = self._windows(term)
        first_posting = self.columns["window.first_posting"][first_window : end_window + 1].astype(np.int64)
        inside = slice(int(first_posting[0]), int(first_posting[-1]))
        high = self.columns["window.number"][first_window:end_window].astype(np.uint32) << np.uint32(WINDOW_BITS)
        documents = np.repeat(high, np.diff(first_posting)) | self.columns["posting.document"][inside]
        if documents.size and int(documents.max()) >= self.documents:
            raise self.columns.damaged("has damaged postings")
        return documents, self.frequencies("posting.frequency", np.arange(inside.start, inside.stop)), inside

    def _alive(self, documents: Array, frequencies: Array) -> tuple[Array, Array]:
        if self.tombstones is None:
            return documents, frequencies
        alive = self.alive[documents]
        return documents[alive], frequencies[alive]

    def _windows(self, term: int) -> tuple[int, int]:
        """The windows of a term whose postings were verified."""
        first, end = self.columns["term.first_window"][term : term + 2].tolist()
        return first, end

    def _size(self, column: str) -> int:
        return int(self.columns[column].size)

    def _slice(self, column: str, number: int) -> tuple[int, int]:
        offsets = self[column]
        return int(offsets[number]), int(offsets[number + 1])

    def _checked(self, counts: Counts) -> Counts:
        if min(counts) < 0 or max(counts) > MOST:
            raise self.columns.damaged("has damaged counts")
        return counts

    def _check_facts(self) -> None:
        facts, entry = self.columns.facts, self.entry
        texts = [facts.get(name) for name in ("labels", "languages")]
        parts = facts.get("parts")
        if (
            not all(is_count(facts.get(name)) for name in _COUNTED)
            or not all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in texts)
            or not isinstance(parts, list)
            or not all(is_count(part) and part < len(facts["labels"]) for part in parts)
            or not 1 <= len({facts["labels"][part] for part in parts}) == len(parts) <= MAX_PARTS
            or (facts["documents"], facts["tokens"]) != (entry["documents"], entry["tokens"])
        ):
            raise self.columns.damaged("has damaged facts")
        for name, values in self.columns.items():
            if not has_right_type(name, values):
                raise self.columns.damaged(f"has a column of the wrong type ({name})")

    def _check(self) -> None:
        """Check the sizes that kernels rely on, and state what is checked when columns are first read.

        This takes the same time for all segments.
        """
        terms = len(self.terms)
        offset_columns = [
            ("document.first_code", "tokens", self.documents),
            ("document.first_span", "span.kind", self.documents),
            ("document.first_section", "section.parent", self.documents),
            ("document.first_passage", "passage.section", self.documents),
            ("document.first_id", "id.span", self.documents),
            ("term.first_window", "window.number", terms),
            ("window.first_posting", "posting.document", self._size("window.number")),
            ("facet.first_value", "facet_values.ends", len(self.facets.field_names)),
            ("facet.first_document", "facet.document", len(self.facets.values)),
        ]
        sizes = [(name, terms) for name in ("term_of_name", "term.occurrences", "term.passages", "term.passage_occurrences")]
        sizes += [(f"document.{name}", self.documents) for name in ("tokens", "length", "source")]
        sizes += [(name, self.documents) for name in ("document_hash", "document_of_hash", "document_ids.ends")]
        sizes += [(f"span.{name}", self._size("span.kind")) for name in OF_SPAN]
        sizes += [(f"section.{name}", self._size("section.parent")) for name in OF_SECTION]
        sizes += [(f"passage.{name}", self._size("passage.section")) for name in OF_PASSAGE]
        sizes += [("posting.frequency", self._size("posting.document")), ("ids.ends", self._size("id.span"))]
        if len(self.parts) > 1:
            offset_columns.append(("window.first_part", "part_frequency", self._size("window.number")))
            sizes += [("posting.parts", self._size("posting.document")), ("document.part_length", self.documents * len(self.parts))]
        for name, target, count in offset_columns:
            values = self.columns[name]
            if values.size != count + 1 or values[0] != 0 or values[-1] != self._size(target):
                raise self.columns.damaged(f"has damaged offsets ({name})")
            self.columns.expect(name, rises, "has damaged offsets")
        for name, count in sizes:
            if self._size(name) != count:
                raise self.columns.damaged(f"has a column of the wrong size ({name})")
        # The stop term has an empty name, so it sorts first. These values are not verified: a block also has values of
        # other columns, and their damage must not keep a segment from being opened.
        if not terms or self.terms.unverified_ends[STOP] or self.columns["term_of_name"][0] != STOP:
            raise self.columns.damaged("has a damaged dictionary (terms.ends or term_of_name)")
        if self._size("passage.section") != self.columns.facts["passages"] or len(self._source_hashes) != len(self._sources):
            raise self.columns.damaged("has damaged documents")
        self.columns.expect("term_of_name", _below(terms), "has a damaged dictionary")
        self.columns.expect("document.source", _below(len(self._sources)), "has damaged documents")
        self.columns.expect("document_of_hash", _below(self.documents), "has damaged documents")
        self.columns.expect("document.tokens", _have_codes, "has damaged documents")
        self.columns.expect("document.length", _are_lengths, "has damaged documents")


def _below(limit: int) -> Expectation:
    """Whether all values of a column are below a limit."""
    return lambda _, values: not values.size or int(values.max()) < limit


def _have_codes(columns: ColumnFile, tokens: Array) -> bool:
    """Whether no document has more tokens than codes of tokens."""
    codes = columns.whole("document.first_code")
    return not np.any(tokens > codes[1:] - codes[:-1])


def _are_lengths(columns: ColumnFile, lengths: Array) -> bool:
    """Whether no document has more indexed tokens than tokens, and all together have those of the facts."""
    return not np.any(lengths > columns.whole("document.tokens")) and int(lengths.sum(dtype=np.int64)) == columns.facts["indexed_tokens"]


def _make(segment: ref[Segment], make: Callable[[Segment, Any], Any], key: Hashable) -> Any:
    held = segment()
    assert held is not None, "whoever asks the cache of a segment holds the segment"
    return make(held, key)
