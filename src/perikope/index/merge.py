"""Merges segments into one, column by column and with bounded memory. Deleted documents are left out.

No text is analysed again. Documents, terms, labels, parts and source files get new numbers, and facets are merged. All
other columns are concatenated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.arrays import Array
from perikope.index import layout
from perikope.index.columns import ColumnWriter, narrow
from perikope.index.facets import merge_facets
from perikope.index.layout import STOP, PostingsWriter, offsets
from perikope.index.ranges import ranges
from perikope.index.segments import Segment
from perikope.index.store import Store, StoreWriter
from perikope.index.tombstones import MOST, NO_COUNTS, Counts
from perikope.kernels.postings import WINDOW_BITS, count_stored, renumber_postings
from perikope.kernels.strings import merge_sorted
from perikope.kernels.tokens import decode_tokens, encode_tokens, map_tokens

_BYTES_PER_POSTING = 64
"""Memory per posting while postings are merged, in bytes."""


def merge(segments: Sequence[Segment], path: Path, memory: int = 1 << 28) -> dict[str, Any]:
    """Merge segments and write the result to `path`; returns its entry for the manifest. `memory` is in bytes."""
    for segment in segments:
        # Checksums are verified before copying, since a copy of damaged data would have a valid checksum.
        for column in segment.columns.damaged_columns():
            raise segment.columns.damaged(f"is damaged in column {column!r}")
    return _Merge(segments, memory).write(path)


class _Merge:
    """The state of one merge: the new numbers of labels, parts, terms and documents."""

    def __init__(self, segments: Sequence[Segment], memory: int) -> None:
        self.segments = segments
        self.chunk = max(memory // _BYTES_PER_POSTING, 1 << 12)
        self.alive = [np.flatnonzero(segment.alive) for segment in segments]
        self.documents = sum(alive.size for alive in self.alive)
        self.labels: dict[str, int] = {}
        self.label_maps = [np.array([self._label(label) for label in segment.labels]) for segment in segments]
        self.parts = list(dict.fromkeys(part for segment in segments for part in segment.parts))
        if len(self.parts) > layout.MAX_PARTS:
            raise segments[0].columns.damaged(f"and the segments to merge have more than {layout.MAX_PARTS} parts together")
        self._merge_terms()

    def write(self, path: Path) -> dict[str, Any]:
        totals: Counts = sum((segment.totals for segment in self.segments), NO_COUNTS)
        with ColumnWriter(path) as writer:
            self._write_structure(writer)
            self._write_terms(writer)
            self._write_postings(writer)
            tokens = self._write_tokens(writer)
            self._write_names(writer)
            merge_facets(writer, [segment.facets for segment in self.segments], self._new_documents(), self.chunk)
            for name in ("text", "records"):
                self._write_store(name, writer)
            facts = {
                "documents": self.documents, "tokens": tokens, "indexed_tokens": totals.occurrences, "passages": totals.passages,
                "passage_tokens": totals.passage_occurrences, "labels": list(self.labels),
                "parts": [self.labels[part] for part in self.parts],
                "languages": sorted({language for segment in self.segments for language in segment.columns.facts["languages"]}),
            }  # fmt: skip
            return {**writer.close(facts), "documents": self.documents, "tokens": tokens}

    def _label(self, label: str) -> int:
        return self.labels.setdefault(label, len(self.labels))

    def _merge_terms(self) -> None:
        """Give terms new numbers: 0 to the stop term, then ascending by decreasing collection frequency.

        Terms that only deleted documents contain are left out.
        """
        segments = self.segments
        for segment in segments:
            if np.any(np.bincount(segment["term_of_name"], minlength=len(segment.terms)) != 1):
                raise segment.columns.damaged("has a damaged dictionary")
        base = offsets(np.array([len(segment.terms) for segment in segments]))
        byte_base = offsets(np.array([segment.terms.data.size for segment in segments]))
        ends = np.concatenate([s.terms.ends.astype(np.int64) + byte_base[i] for i, s in enumerate(segments)])
        starts = np.concatenate([np.concatenate([[byte_base[i]], ends[base[i] : base[i + 1] - 1]]) for i in range(len(segments))])
        data = np.concatenate([segment.terms.data for segment in segments])
        by_name = np.concatenate([segment["term_of_name"].astype(np.int64) + base[i] for i, segment in enumerate(segments)])
        merged_term, example = merge_sorted(by_name, base, starts, ends, data)

        counts = np.zeros((4, example.size), np.int64)
        self.documents_of_term: list[Array] = []
        for i, segment in enumerate(segments):
            counts_in_segment = _term_counts(segment)
            counts[:, merged_term[base[i] : base[i + 1]]] += counts_in_segment
            self.documents_of_term.append(counts_in_segment[0])
        live = np.flatnonzero(counts[1] > 0)
        live = live[live != STOP]  # the merged number of the stop term is 0 too, since its empty name sorts first
        order = np.concatenate([[STOP], live[np.argsort(-counts[1, live], kind="stable")]])
        number = np.full(example.size, -1, np.int64)
        number[order] = np.arange(order.size)
        self.counts = counts[:, order]
        self.names = [data[starts[e] : ends[e]].tobytes() for e in example[order].tolist()]
        self.term_of_name = number[number >= 0]
        self.new_term = [number[merged_term[base[i] : base[i + 1]]] for i in range(len(segments))]

    def _write_terms(self, writer: ColumnWriter) -> None:
        writer.write_strings("terms", self.names)
        writer.write("term_of_name", self.term_of_name.astype(np.uint32))
        for row, name in ((1, "occurrences"), (2, "passages"), (3, "passage_occurrences")):
            writer.write(f"term.{name}", narrow(self.counts[row]))

    def _write_structure(self, writer: ColumnWriter) -> None:
        for kind, names in layout.OWNED.items():
            rows_and_counts = [_live_rows(segment, kind, alive) for segment, alive in zip(self.segments, self.alive, strict=True)]
            layout.write_offsets(writer, f"document.first_{kind}", np.concatenate([counts for _, counts in rows_and_counts]))
            for name in names:
                self._write_rows(writer, f"{kind}.{name}", [rows for rows, _ in rows_and_counts])
        for name in ("tokens", "length"):
            self._write_rows(writer, f"document.{name}", list(self.alive))
        if len(self.parts) > 1:
            writer.write("document.part_length", narrow(np.concatenate([self._part_lengths(i) for i in range(len(self.segments))]).ravel()))

    def _write_rows(self, writer: ColumnWriter, column: str, rows: Sequence[Array | slice]) -> None:
        """Concatenate rows of a column from all segments, in the widest type of the segments.

        `rows` has one selection of rows per segment.
        """
        labelled = column in layout.LABELLED
        # Labels get new numbers, which may need a wider type than every single segment has.
        kind = np.min_scalar_type(len(self.labels)) if labelled else np.result_type(*(segment[column].dtype for segment in self.segments))

        def pieces() -> Iterator[Array]:
            for i, segment in enumerate(self.segments):
                values = segment[column][rows[i]]
                for first in range(0, values.size, 1 << 20):
                    piece = values[first : first + (1 << 20)]
                    if labelled and int(piece.max()) >= len(segment.labels):
                        raise segment.columns.damaged(f"has a damaged column ({column})")
                    yield self.label_maps[i][piece] if labelled else piece

        writer.stream(column, kind, pieces())

    def _part_lengths(self, i: int) -> Array:
        """The number of tokens (without stop words) of each live document of segment `i` in each merged part.

        The array has the shape (live documents, merged parts).
        """
        segment, alive = self.segments[i], self.alive[i]
        lengths = np.zeros((alive.size, len(self.parts)), np.int64)
        columns = [self.parts.index(part) for part in segment.parts]
        if len(segment.parts) > 1:
            lengths[:, columns] = segment["document.part_length"].reshape(segment.documents, len(segment.parts))[alive]
        else:
            lengths[:, columns[0]] = segment["document.length"][alive]
        return lengths

    def _write_postings(self, writer: ColumnWriter) -> None:
        terms = len(self.names)
        old_term = [_inverse(new, terms) for new in self.new_term]
        new_document = self._new_documents()
        before = offsets(self.counts[0])
        first = 0
        with PostingsWriter(writer.path.parent, len(self.parts)) as out:
            while first < terms:
                # The next step moves as many terms as the memory allows, but at least one.
                end = max(first + 1, int(np.searchsorted(before, before[first] + self.chunk, "right")) - 1)
                self._move_postings(out, slice(first, end), old_term, new_document)
                first = end
            out.write(writer)

    def _new_documents(self) -> list[Array]:
        """One array per segment: the new number of each document, or -1 if the document was deleted."""
        numbers, base = [], 0
        for segment, alive in zip(self.segments, self.alive, strict=True):
            number = np.full(segment.documents, -1, np.int64)
            number[alive] = base + np.arange(alive.size)
            numbers.append(number)
            base += alive.size
        return numbers

    def _move_postings(self, out: PostingsWriter, terms: slice, old_term: list[Array], new_document: list[Array]) -> None:
        """Collect the postings of a range of merged terms from all segments and append them to `out`.

        `old_term` has one array per segment: the number of each merged term in the segment, or -1. `new_document` is
        the result of `_new_documents`.
        """
        first_posting = offsets(self.counts[0, terms])
        count = int(first_posting[-1])
        document, frequency = np.empty(count, np.uint32), np.empty(count, np.uint32)
        parts: Array = np.zeros(count if len(self.parts) > 1 else 0, np.uint64)
        pieces: list[tuple[Array, Array, Array]] = []
        next_posting = first_posting[:-1].copy()
        for i, segment in enumerate(self.segments):
            old_terms = old_term[i][terms]
            present = np.flatnonzero(old_terms >= 0)
            source = _SourcePostings(segment, old_terms[present])
            alive = offsets(new_document[i][source.document] >= 0)
            if np.any(np.diff(alive[source.first_posting]) != self.documents_of_term[i][old_terms[present]]):
                raise segment.columns.damaged("has damaged postings or tombstones")
            origin = np.full(count, -1, np.int64)
            renumber_postings(
                present, source.first_posting, source.document, source.frequency, new_document[i], next_posting, document, frequency, origin
            )
            if len(self.parts) > 1:
                moved = np.flatnonzero(origin >= 0)
                pieces.append((moved, *source.parts([self.parts.index(part) for part in segment.parts], origin[moved])))
        if len(self.parts) > 1:
            out.append(first_posting, document, frequency, *_assemble_parts(parts, frequency, pieces))
        else:
            out.append(first_posting, document, frequency)

    def _write_tokens(self, writer: ColumnWriter) -> int:
        counts: list[Array] = []
        total = 0

        def pieces() -> Iterator[Array]:
            nonlocal total
            for segment, alive, new_term in zip(self.segments, self.alive, self.new_term, strict=True):
                tokens_of = segment["document.tokens"][alive].astype(np.int64)
                renumber = np.where(new_term >= 0, new_term, STOP).astype(np.uint32)
                first = 0
                before = offsets(tokens_of)
                while first < alive.size:
                    end = max(first + 1, int(np.searchsorted(before, before[first] + self.chunk, "right")) - 1)
                    tokens = _tokens_of(segment, alive[first:end])
                    if tokens.size != before[end] - before[first] or not map_tokens(tokens, renumber):
                        raise segment.columns.damaged("has a damaged token stream")
                    codes, first_code = encode_tokens(tokens, offsets(tokens_of[first:end]))
                    counts.append(np.diff(first_code))
                    total += int(tokens.size)
                    first = end
                    yield codes

        writer.stream("tokens", np.uint16, pieces())
        layout.write_offsets(writer, "document.first_code", np.concatenate([*counts, np.zeros(0, np.int64)]))
        return total

    def _write_names(self, writer: ColumnWriter) -> None:
        pairs = list(zip(self.segments, self.alive, strict=True))
        for segment in self.segments:
            segment.document_ids.require_range(range(segment.documents))
        layout.write_document_ids(writer, [segment.document_ids[document] for segment, alive in pairs for document in alive.tolist()])
        rows_and_counts = [_live_rows(segment, "id", alive) for segment, alive in pairs]
        layout.write_offsets(writer, "document.first_id", np.concatenate([counts for _, counts in rows_and_counts]))
        self._write_rows(writer, "id.span", [rows for rows, _ in rows_and_counts])
        ids = [(segment.columns.strings("ids"), rows) for segment, (rows, _) in zip(self.segments, rows_and_counts, strict=True)]
        for names, _ in ids:
            names.require_range(range(len(names)))
        writer.write_strings("ids", [names[row] for names, rows in ids for row in np.arange(len(names))[rows].tolist()])
        sources: dict[tuple[bytes, bytes], int] = {}
        numbers = []
        for segment, alive in pairs:
            names, hashes = segment.columns.strings("sources"), segment.columns.strings("source_hashes")
            used, inverse = np.unique(segment["document.source"][alive], return_inverse=True)
            numbers.append(np.array([sources.setdefault((names[s], hashes[s]), len(sources)) for s in used.tolist()], np.int64)[inverse])
        writer.write("document.source", narrow(np.concatenate(numbers)))
        writer.write_strings("sources", [name for name, _ in sources])
        writer.write_strings("source_hashes", [code for _, code in sources])

    def _write_store(self, name: str, writer: ColumnWriter) -> None:
        store = StoreWriter()

        def steps() -> Iterator[None]:
            for segment in self.segments:
                source = segment.text_store if name == "text" else segment.record_store
                for block in range(source.blocks):
                    _copy_block(source, block, segment.alive, store)
                    yield

        store.stream(name, writer, steps())


class _SourcePostings:
    """The decoded postings of some terms of a segment, including postings of deleted documents."""

    def __init__(self, segment: Segment, terms: Array) -> None:
        self.segment = segment
        first_window, end_window = (segment["term.first_window"][terms + i].astype(np.int64) for i in (0, 1))
        windows = ranges(first_window, end_window)
        self._windows = windows
        window_first, window_end = (segment["window.first_posting"][windows + i].astype(np.int64) for i in (0, 1))
        self._rows = ranges(window_first, window_end)
        high = segment["window.number"][windows].astype(np.uint32) << np.uint32(WINDOW_BITS)
        self.document = np.repeat(high, window_end - window_first) | segment["posting.document"][self._rows]
        if self.document.size and int(self.document.max()) >= segment.documents:
            raise segment.columns.damaged("has damaged postings")
        self.frequency = segment.frequencies("posting.frequency", self._rows)
        of_term = segment["window.first_posting"].astype(np.int64, copy=False)
        self.first_posting = offsets(of_term[end_window] - of_term[first_window])

    def parts(self, numbers: list[int], chosen: Array) -> tuple[Array, Array]:
        """The parts of the chosen postings, and the part frequencies of the postings that have several parts.

        The parts of a posting are a set of bits, numbered as in the merged segment. `numbers` has the merged number of
        each part of this segment. `chosen` are indices of postings.
        """
        segment = self.segment
        if len(segment.parts) == 1:
            return np.full(chosen.size, 1 << numbers[0], np.uint64), np.zeros(0, np.uint32)
        first, end = (segment["window.first_part"][self._windows + i].astype(np.int64) for i in (0, 1))
        stored = segment.frequencies("part_frequency", ranges(first, end))
        old = segment.part_sets(self._rows, stored.size)
        before = count_stored(old)
        values = stored[ranges(before[chosen], before[chosen + 1])]
        bits = (old[chosen][:, None] >> np.arange(len(numbers), dtype=np.uint64)) & np.uint64(1)
        new = (bits << np.array(numbers, np.uint64)).sum(axis=1, dtype=np.uint64)
        return new, _reordered(values, bits.astype(bool), numbers)


def _reordered(values: Array, bits: Array, numbers: list[int]) -> Array:
    """Sort part frequencies, within each posting, by the merged numbers of the parts.

    `bits` is a boolean array (postings, parts of the segment): whether a posting has a part.
    """
    several = bits.sum(axis=1) > 1
    dense = np.zeros((int(several.sum()), bits.shape[1]), np.uint32)
    dense[bits[several]] = values
    order = np.argsort(numbers)
    reordered: Array = dense[:, order][bits[several][:, order]]
    return reordered


def _assemble_parts(parts: Array, frequency: Array, pieces: list[tuple[Array, Array, Array]]) -> tuple[Array, Array]:
    """Put the parts and part frequencies of postings from several segments into the merged order of postings.

    Each piece has three arrays: merged postings of one segment, their parts, and their part frequencies. `parts` is
    filled and returned, with the merged part frequencies.
    """
    for moved, new, _ in pieces:
        parts[moved] = new
    before = count_stored(parts)
    merged = np.zeros(int(before[-1]), np.uint32)
    for moved, _, values in pieces:
        merged[ranges(before[moved], before[moved + 1])] = values
    return parts, merged


def _term_counts(segment: Segment) -> Array:
    """The counts of every term of a segment without deleted documents, as an array (4, terms).

    The rows are documents, occurrences, passages and occurrences in passages.
    """
    first_window = segment["term.first_window"].astype(np.int64)
    counts = np.stack([
        np.diff(segment["window.first_posting"].astype(np.int64)[first_window]),
        *(segment[f"term.{name}"].astype(np.int64) for name in ("occurrences", "passages", "passage_occurrences")),
    ])  # fmt: skip
    if segment.tombstones:
        for row, name in enumerate(("documents", "occurrences", "passages", "passage_occurrences")):
            counts[row, segment.tombstones.terms] -= segment.tombstones.deltas[name].astype(np.int64)
    if np.any(counts < 0) or np.any(counts > MOST):
        raise segment.columns.damaged("has damaged counts")
    return counts


def _live_rows(segment: Segment, kind: str, alive: Array) -> tuple[Array | slice, Array]:
    """The rows of live documents in the columns of `kind` (such as `span`), and the number of rows per live document.

    If no document is deleted, the rows are a slice, which avoids a copy.
    """
    first = segment[f"document.first_{kind}"].astype(np.int64)
    if segment.tombstones is None:
        return slice(None), np.diff(first)
    return ranges(first[alive], first[alive + 1]), first[alive + 1] - first[alive]


def _inverse(new_term: Array, terms: int) -> Array:
    """The number of each merged term in a segment, or -1 if the segment does not have the term.

    `new_term` has the merged number of each term of the segment, or -1; `terms` is how many merged terms there are.
    """
    old = np.full(terms, -1, np.int64)
    known = np.flatnonzero(new_term >= 0)
    old[new_term[known]] = known
    return old


def _tokens_of(segment: Segment, documents: Array) -> Array:
    """The tokens of documents, concatenated. `documents` are in ascending order; adjacent ones are decoded together."""
    codes, counts = segment["document.first_code"], segment["document.tokens"]
    pieces = []
    for run in np.split(documents, np.flatnonzero(np.diff(documents) != 1) + 1):
        first, end = int(run[0]), int(run[-1]) + 1
        expected = int(counts[first:end].sum(dtype=np.int64))
        pieces.append(decode_tokens(segment["tokens"][int(codes[first]) : int(codes[end])], expected)[0])
    return np.concatenate(pieces)


def _copy_block(source: Store, block: int, alive: Array, target: StoreWriter) -> None:
    """Copy the strings of live documents in a block. If all are alive, the block is copied without decompressing it."""
    data, strings = source.raw_block(block)
    if alive[strings.start : strings.stop].all():
        target.append_block(data, source.lengths(strings))
    else:
        for number in strings:
            if alive[number]:
                target.append(source[number])
