"""One segment, opened: its columns by what they say of documents, sections, passages and terms."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.arrays import Array, Integers
from perikope.core.names import running_number
from perikope.document.tree import Place
from perikope.index.columns import ColumnFile
from perikope.index.facets import Facets
from perikope.index.layout import MAX_PARTS, OF_PASSAGE, OF_SECTION, OF_SPAN, STOP, has_right_type
from perikope.index.store import Store
from perikope.index.tombstones import MOST, Counts, Tombstones, is_count
from perikope.kernels.dictionary import find_names, read_all
from perikope.kernels.postings import LARGE, WINDOW_BITS, count_stored, select_part
from perikope.kernels.strings import hash_strings
from perikope.kernels.tokens import decode_tokens

_REMEMBERED = 32
"""Things made of a segment that are kept: masks of filters take a bit a document each."""

_COUNTED = ("documents", "tokens", "indexed_tokens", "passages", "passage_tokens")


class Segment:
    """An immutable, memory-mapped part of an index; documents have local numbers from 0, deleted ones keep theirs."""

    def __init__(self, folder: Path, entry: Mapping[str, Any]) -> None:
        self.entry = entry
        self.columns = ColumnFile(folder / entry["file"], entry)
        self._check_facts()
        facts = self.columns.facts
        self.documents: int = facts["documents"]
        self.labels: list[str] = facts["labels"]
        self.parts: list[str] = [self.labels[number] for number in facts["parts"]]
        self.terms = self.columns.strings("terms")
        self.document_ids = self.columns.strings("document_ids")
        self.text_store = Store("text", self.columns, self.documents)
        self.record_store = Store("records", self.columns, self.documents)
        self.facets = Facets(self.columns, self.documents)
        self._ids = self.columns.strings("ids")
        self._sources, self._source_hashes = self.columns.strings("sources"), self.columns.strings("source_hashes")
        deleted = entry.get("deleted")
        self.tombstones = Tombstones.open(folder, deleted, self.documents, len(self.terms)) if deleted else None
        self.totals = self._totals()
        self.alive = np.ones(self.documents, bool)
        if self.tombstones:
            self.alive[self.tombstones.documents] = False
        self._check()
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._make)

    def __getitem__(self, column: str) -> Array:
        return self.columns[column]

    def remember(self, make: Callable[[Segment, Any], Any], key: Hashable) -> Any:
        """What a function makes of the segment and a key; made once, and kept while it is asked for often."""
        return self._remembered(make, key)

    def _make(self, make: Callable[[Segment, Any], Any], key: Hashable) -> Any:
        return make(self, key)

    def _totals(self) -> Counts:
        """Documents, indexed tokens, passages and tokens in passages, without what was deleted."""
        facts = self.columns.facts
        found = Counts(self.documents, facts["indexed_tokens"], facts["passages"], facts["passage_tokens"])
        return self._checked(found - self.tombstones.totals if self.tombstones else found)

    def find_terms(self, names: Sequence[bytes]) -> Integers:
        """The numbers of terms (`language:term`), or -1."""
        ends = np.cumsum([len(name) for name in names], dtype=np.int64)
        found: Integers = find_names(np.frombuffer(b"".join(names), np.uint8), ends, self["term_of_name"], self.terms.ends, self.terms.data)
        return found

    def terms_with_prefix(self, prefix: bytes) -> Array:
        """The numbers of the terms whose names begin so, in the order of their names."""
        in_order = self["term_of_name"]

        def name(number: int) -> bytes:
            return self.terms[int(number)]

        # No name holds the byte 255: it comes after everything that begins with the prefix.
        first, end = (bisect_left(in_order, wanted, key=name) for wanted in (prefix, prefix + b"\xff"))
        return in_order[first:end]

    def term_windows(self, terms: Integers) -> tuple[Integers, Integers]:
        """First and end window of each term; both 0 where its number is -1."""
        return self.numbers("term.first_window", terms), self.numbers("term.first_window", np.where(terms >= 0, terms + 1, -1))

    def numbers(self, column: str, places: Integers) -> Integers:
        """Some numbers of a column, by their places; 0 where a place is negative."""
        values = self[column]
        found: Integers = read_all(values.view(np.uint8), values.itemsize, places)
        return found

    def term_counts(self, terms: Integers) -> Integers:
        """Of each term documents, occurrences, passages and occurrences in passages (a row each), without what was deleted."""
        first, end = self.term_windows(terms)
        counts = np.stack([
            self.numbers("window.first_posting", end) - self.numbers("window.first_posting", first),
            *(self.numbers(f"term.{name}", terms) for name in ("occurrences", "passages", "passage_occurrences")),
        ])  # fmt: skip
        if self.tombstones:
            counts -= self.tombstones.counts(terms)
        if counts.size and (int(counts.min()) < 0 or int(counts.max()) > MOST):
            raise self.columns.damaged("has damaged counts")
        return counts

    def postings(self, term: int) -> tuple[Array, Array]:
        """Documents that hold a term, in order, and how often."""
        documents, frequencies, _ = self._postings(term)
        return self._alive(documents, frequencies)

    def large_frequencies(self) -> Integers:
        """The postings whose frequency does not fit a byte, in order."""
        at = self["posting.frequency.large_at"]
        if at.size and (int(at[0]) < 0 or int(at[-1]) >= self["posting.document"].size or bool(np.any(at[:-1] >= at[1:]))):
            raise self.columns.damaged("has damaged frequencies (posting.frequency)")
        return at

    def documents_at(self, postings: Integers) -> Integers:
        """The documents of postings."""
        first_posting = self["window.first_posting"]
        window = np.searchsorted(first_posting, postings.astype(first_posting.dtype), "right") - 1
        documents = (self["window.number"][window].astype(np.int64) << WINDOW_BITS) | self["posting.document"][postings]
        if documents.size and int(documents.max()) >= self.documents:
            raise self.columns.damaged("has damaged postings")
        return documents

    def part_postings(self, term: int, part: str) -> tuple[Array, Array]:
        """Documents that hold a term in one part, in order, and how often there."""
        documents, frequencies, inside = self._postings(term)
        if part not in self.parts:
            return documents[:0], frequencies[:0]
        if len(self.parts) > 1:
            first, end = (int(self["window.first_part"][window]) for window in self._windows(term))
            stored = self.frequencies("part_frequency", np.arange(first, end))
            frequencies = select_part(self.part_sets(inside, stored.size), frequencies, stored, self.parts.index(part))
            documents, frequencies = documents[frequencies > 0], frequencies[frequencies > 0]
        return self._alive(documents, frequencies)

    def part_sets(self, rows: Array | slice, stored: int) -> Array:
        """The parts of postings, as bits, of which as many as were stored have a frequency of their own."""
        sets = self["posting.parts"][rows].astype(np.uint64)
        highest = np.uint64(len(self.parts) - 1)
        if np.any((sets >> highest) > 1) or np.any(sets == 0) or int(count_stored(sets)[-1]) != stored:
            raise self.columns.damaged("has damaged parts (posting.parts)")
        return sets

    def frequencies(self, name: str, rows: Array) -> Array:
        """Frequencies of a column, with those that do not fit a byte put in."""
        values = self[name][rows].astype(np.uint32)
        places, large = self[f"{name}.large_at"], self[f"{name}.large"]
        full = np.flatnonzero(values == LARGE)
        at = np.searchsorted(places, rows[full])
        if np.any(at >= min(places.size, large.size)) or np.any(places[np.minimum(at, places.size - 1)] != rows[full]):
            raise self.columns.damaged(f"has damaged frequencies ({name})")
        values[full] = large[at]
        return values

    def tokens(self, document: int) -> Array:
        """The term of every token of a document, in reading order."""
        first, end = self._slice("document.first_code", document)
        wanted = int(self["document.tokens"][document])
        tokens, found = decode_tokens(self["tokens"][first:end], wanted + 1)
        if found != wanted or (found and int(tokens.max()) >= len(self.terms)):
            raise self.columns.damaged(f"has a damaged token stream (document {document})")
        checked: Array = tokens
        return checked

    def document_number(self, id: str) -> int:
        """The local number of a document, or -1."""
        wanted = id.encode("utf-8", "surrogatepass")
        code = hash_strings(np.array([len(wanted)], np.uint64), np.frombuffer(wanted, np.uint8))[0]
        hashes, numbers = self["document_hash"], self["document_of_hash"]
        at = int(np.searchsorted(hashes, code))
        while at < hashes.size and hashes[at] == code:
            number = int(numbers[at])
            if number < self.documents and self.alive[number] and self.document_ids[number] == wanted:
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
        """Metadata, cited documents and internal references of a document."""
        data = self.record_store[document]
        try:
            record: dict[str, Any] = dict(json.loads(data.decode("utf-8", "surrogatepass"))) if data else {}
        except (TypeError, ValueError, RecursionError):
            raise self.columns.damaged(f"has damaged metadata (document {document})") from None
        return record

    def metadata(self, document: int, record: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The metadata of a document; who has its `record` gives it, since reading it takes longest."""
        metadata = (self.record(document) if record is None else record).get("metadata", {})
        if not isinstance(metadata, dict):
            raise self.columns.damaged(f"has damaged metadata (document {document})")
        return metadata

    def places(self, document: int, record: Mapping[str, Any] | None = None) -> dict[int, Place]:
        """Where spans, by their number in the document, stand in the file it was read from; empty where its format has no such places."""
        listed = (self.record(document) if record is None else record).get("places", ())
        try:
            return {int(span): Place(str(path), int(start), int(end)) for span, path, start, end in listed}
        except (TypeError, ValueError):
            raise self.columns.damaged(f"has damaged places (document {document})") from None

    def citations(self, document: int, record: Mapping[str, Any] | None = None) -> dict[int, str]:
        """How people cite spans, by their number in the document; empty where its format does not say."""
        listed = (self.record(document) if record is None else record).get("citations", ())
        try:
            return {int(span): str(citation) for span, citation in listed}
        except (TypeError, ValueError):
            raise self.columns.damaged(f"has damaged citations (document {document})") from None

    def source(self, document: int) -> tuple[str, str]:
        """The file a document came from, and the hash of its content then."""
        number = int(self["document.source"][document])
        return self._sources.text(number), self._source_hashes.text(number)

    def passages_of(self, document: int) -> range:
        """The passages of a document, by their number in the segment."""
        return range(*self._slice("document.first_passage", document))

    def sections_of(self, document: int) -> range:
        """The sections of a document, by their number in the segment."""
        return range(*self._slice("document.first_section", document))

    def span_of(self, column: str, document: int, number: int) -> int:
        """The span that a column of sections or passages names, by its number in the segment; -1 for none."""
        own = int(self[column][number])
        first, end = self._slice("document.first_span", document)
        if own >= end - first:
            raise self.columns.damaged(f"has a damaged column ({column})")
        return first + own if own >= 0 else -1

    def span_id(self, document: int, span: int) -> str | None:
        """The id that the source gave to a span (numbered in the segment), or None."""
        first, end = self._slice("document.first_id", document)
        found = np.flatnonzero(self["id.span"][first:end] == span - int(self["document.first_span"][document]))
        return self._ids.text(first + int(found[0])) if found.size else None

    def span_namer(self, document: int) -> Callable[[int], str | None]:
        """A function that gives the id of a span, by its number in the document, or None; for many spans of one document."""
        first, end = self._slice("document.first_id", document)
        place = dict(zip(self["id.span"][first:end].tolist(), range(first, end), strict=True))
        return lambda span: self._ids.text(place[span]) if span in place else None

    def passage_id(self, document: int, passage: int) -> str:
        """The id of a passage (numbered in the segment): its own, or its running number in the document."""
        own = self.span_id(document, self.span_of("passage.span", document, passage))
        return own if own is not None else running_number(passage - self.passages_of(document).start)

    def characters(self, span: int) -> slice:
        """Where a span (numbered in the segment) stands in its document's text."""
        return slice(int(self["span.start"][span]), int(self["span.end"][span]))

    def label(self, property: str, span: int) -> str:
        """The `tag`, `part` or `language` of a span (numbered in the segment)."""
        number = int(self[f"span.{property}"][span])
        if number >= len(self.labels):
            raise self.columns.damaged(f"has a damaged column (span.{property})")
        return self.labels[number]

    def _postings(self, term: int) -> tuple[Array, Array, slice]:
        first_window, end_window = self._windows(term)
        first_posting = self["window.first_posting"][first_window : end_window + 1].astype(np.int64)
        inside = slice(int(first_posting[0]), int(first_posting[-1]))
        high = self["window.number"][first_window:end_window].astype(np.uint32) << np.uint32(WINDOW_BITS)
        documents = np.repeat(high, np.diff(first_posting)) | self["posting.document"][inside]
        if documents.size and int(documents.max()) >= self.documents:
            raise self.columns.damaged("has damaged postings")
        return documents, self.frequencies("posting.frequency", np.arange(inside.start, inside.stop)), inside

    def _alive(self, documents: Array, frequencies: Array) -> tuple[Array, Array]:
        if self.tombstones is None:
            return documents, frequencies
        alive = self.alive[documents]
        return documents[alive], frequencies[alive]

    def _windows(self, term: int) -> tuple[int, int]:
        return self._slice("term.first_window", term)

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
        """Kernels trust offsets and sizes, so these are checked before one can see them; what they point to is checked on use."""
        terms = len(self.terms)
        ranges = [
            ("document.first_code", "tokens", self.documents),
            ("document.first_span", "span.kind", self.documents),
            ("document.first_section", "section.parent", self.documents),
            ("document.first_passage", "passage.section", self.documents),
            ("document.first_id", "id.span", self.documents),
            ("term.first_window", "window.number", terms),
            ("window.first_posting", "posting.document", self["window.number"].size),
            ("facet.first_value", "facet_values.ends", len(self.facets.field_names)),
            ("facet.first_document", "facet.document", len(self.facets.values)),
        ]
        sizes = [(name, terms) for name in ("term_of_name", "term.occurrences", "term.passages", "term.passage_occurrences")]
        sizes += [(f"document.{name}", self.documents) for name in ("tokens", "length", "source")]
        sizes += [(name, self.documents) for name in ("document_hash", "document_of_hash", "document_ids.ends")]
        sizes += [(f"span.{name}", self["span.kind"].size) for name in OF_SPAN]
        sizes += [(f"section.{name}", self["section.parent"].size) for name in OF_SECTION]
        sizes += [(f"passage.{name}", self["passage.section"].size) for name in OF_PASSAGE]
        sizes += [("posting.frequency", self["posting.document"].size), ("ids.ends", self["id.span"].size)]
        if len(self.parts) > 1:
            ranges.append(("window.first_part", "part_frequency", self["window.number"].size))
            sizes += [("posting.parts", self["posting.document"].size), ("document.part_length", self.documents * len(self.parts))]
        for name, target, count in ranges:
            values = self[name]
            rising = bool(np.all(values[:-1] <= values[1:]))
            if values.size != count + 1 or values[0] != 0 or values[-1] != self[target].size or not rising:
                raise self.columns.damaged(f"has damaged offsets ({name})")
        for name, count in sizes:
            if self[name].size != count:
                raise self.columns.damaged(f"has a column of the wrong size ({name})")
        # The stop term has no name, so it comes first in every order.
        if not terms or self.terms[STOP] or self["term_of_name"][0] != STOP or int(self["term_of_name"].max()) >= terms:
            raise self.columns.damaged("has a damaged dictionary")
        self._check_documents()

    def _check_documents(self) -> None:
        tokens, lengths = self["document.tokens"], self["document.length"]
        codes, sources = self["document.first_code"], len(self._sources)
        if (
            np.any(tokens > codes[1:] - codes[:-1])
            or np.any(lengths > tokens)
            or int(lengths.sum(dtype=np.int64)) != self.columns.facts["indexed_tokens"]
            or self["passage.section"].size != self.columns.facts["passages"]
            or len(self._source_hashes) != sources
            or np.any(self["document.source"] >= sources)
            or np.any(self["document_of_hash"] >= self.documents)
        ):
            raise self.columns.damaged("has damaged documents")
