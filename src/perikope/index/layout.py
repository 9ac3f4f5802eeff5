"""The columns of a segment and how they are written, for new and for merged segments alike.

Positions and the numbers of spans and sections count from the start of their document, so that merging segments
concatenates these columns unchanged.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.arrays import Array
from perikope.index.columns import ColumnWriter, narrow
from perikope.kernels.postings import LARGE, count_stored, cut_windows
from perikope.kernels.strings import hash_strings

STOP = 0
"""The term of every stop word: it takes a position in the token stream and has no postings."""

MAX_PARTS = 64
"""The number of different parts an index may have: a posting keeps its parts as bits of a 64-bit number."""
TOO_MANY_PARTS = f"there are more than {MAX_PARTS} different parts; a part is a kind of section (abstract, claims), not a name"

OF_SPAN = ("kind", "tag", "parent", "start", "end", "part", "language", "first_token", "end_token")
OF_SECTION = ("span", "parent", "title_span", "title_first", "title_end", "title_length")
OF_PASSAGE = ("span", "section", "first_token", "end_token", "length")
OF_DOCUMENT = ("tokens", "length", "source")
LABELLED = ("span.tag", "span.part", "span.language")
"""Columns whose values are numbers of labels of the segment."""

_SIGNED = ("span.parent", "section.parent", "section.title_span")
"""Columns in which -1 stands for none."""

_EXACT = {
    "tokens": "u2", "window.number": "u2", "posting.document": "u2", "posting.frequency": "u1", "part_frequency": "u1",
    "posting.frequency.large_at": "i8", "posting.frequency.large": "u4", "part_frequency.large_at": "i8", "part_frequency.large": "u4",
    "document_hash": "u8", "document_of_hash": "u4", "term_of_name": "u4",
}  # fmt: skip


_WIDE = ("document.first_", "window.first_", "facet.first_", "term.")


def has_right_type(column: str, values: Array) -> bool:
    """Whether a column has a type that kernels accept: 64 bits are for offsets and counts, others have at most 32."""
    code = values.dtype.str[1:]
    if column in _EXACT or column.endswith(".bytes"):
        return code == _EXACT.get(column, "u1")
    wide = column.endswith(".ends") or column == "posting.parts" or column.startswith(_WIDE)
    return (values.dtype.kind == "u" and (wide or code != "u8")) or (values.dtype.kind == "i" and column in _SIGNED)


OWNED = {"span": OF_SPAN, "section": OF_SECTION, "passage": OF_PASSAGE}
"""The columns of what belongs to a document; `document.first_span` and so on hold the first row of each document."""


def offsets(counts: Array) -> Array:
    """The start of each group of these sizes, and the end of the last: one value more than `counts`."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def ranges(first: Array, end: Array) -> Array:
    """The numbers of the ranges from `first` to `end` (exclusive), concatenated."""
    counts = end - first
    numbers: Array = np.arange(int(counts.sum())) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    return numbers


def write_offsets(writer: ColumnWriter, name: str, counts: Array) -> None:
    """Write counts as a column of offsets."""
    writer.write(name, narrow(offsets(counts)))


def write_document_ids(writer: ColumnWriter, ids: list[bytes]) -> None:
    """Write document ids, and a sorted table of their hashes for look-ups by id."""
    writer.write_strings("document_ids", ids)
    ends = np.cumsum([len(name) for name in ids], dtype=np.uint64)
    hashes = hash_strings(ends, np.frombuffer(b"".join(ids), np.uint8))
    order = np.argsort(hashes, kind="stable")
    writer.write("document_hash", hashes[order])
    writer.write("document_of_hash", order.astype(np.uint32))


class Spool:
    """A column collected in pieces while others are written: in memory up to `limit` bytes, then in an unnamed file."""

    def __init__(self, kind: type[np.generic], folder: Path, limit: int = 1 << 24) -> None:
        self.kind = np.dtype(kind)
        self.length = 0
        self._file = tempfile.SpooledTemporaryFile(max_size=limit, dir=str(folder))  # noqa: SIM115 - closed by `close`

    def append(self, values: Array) -> None:
        """Add a piece."""
        self._file.write(np.ascontiguousarray(values, self.kind).view(np.uint8).data)
        self.length += int(values.size)

    def chunks(self, size: int = 1 << 22) -> Iterator[Array]:
        """Read the values back in pieces of `size` bytes."""
        self._file.seek(0)
        while data := self._file.read(size):
            yield np.frombuffer(data, self.kind)

    def close(self) -> None:
        """Free the memory or remove the file."""
        self._file.close()


class FrequencySpool:
    """Writes frequencies in one byte each; those that do not fit are written to a second column, with their rows."""

    def __init__(self, small: Spool) -> None:
        self._small = small
        self._rows: list[Array] = [np.zeros(0, np.int64)]
        self._values: list[Array] = [np.zeros(0, np.uint32)]

    def append(self, values: Array) -> None:
        """Add frequencies."""
        large = np.flatnonzero(values >= LARGE)
        self._rows.append(large + self._small.length)
        self._values.append(values[large])
        self._small.append(np.minimum(values, LARGE))

    def write(self, name: str, writer: ColumnWriter) -> None:
        """Write the columns of everything added."""
        writer.stream(name, np.uint8, self._small.chunks())
        writer.write(f"{name}.large_at", np.concatenate(self._rows).astype(np.int64))
        writer.write(f"{name}.large", np.concatenate(self._values).astype(np.uint32))


class PostingsWriter:
    """Collects the postings of terms, in the order of terms, and writes them as columns.

    Columns with one value per posting are spooled; those with one value per term or window stay in memory.
    """

    def __init__(self, folder: Path, parts: int) -> None:
        self._folder = folder
        self._spools = contextlib.ExitStack()
        self._documents = self._spool(np.uint16)
        self._frequencies = FrequencySpool(self._spool(np.uint8))
        self._parts = self._spool(part_type(parts)) if parts > 1 else None
        self._part_frequencies = FrequencySpool(self._spool(np.uint8))
        self._part_frequency_count = 0
        self._first_window: list[Array] = [np.zeros(1, np.int64)]
        self._window_number: list[Array] = [np.zeros(0, np.uint16)]
        self._window_first: list[Array] = []
        self._window_first_part: list[Array] = []
        self._windows = 0

    def __enter__(self) -> PostingsWriter:
        return self

    def __exit__(self, *details: object) -> None:
        self._spools.close()

    def _spool(self, kind: type[np.generic]) -> Spool:
        return self._spools.enter_context(contextlib.closing(Spool(kind, self._folder)))

    def append(
        self, first_posting: Array, document: Array, frequency: Array, parts: Array | None = None, part_frequency: Array | None = None
    ) -> None:
        """Add the postings of the next terms.

        `first_posting` holds the first posting of each term and the end of the last. `parts` has one set of bits per
        posting, `part_frequency` the frequencies that `invert_parts` returns; both are None in a segment with one part.
        """
        first_window, number, first_of_window, low = cut_windows(first_posting, document)
        self._first_window.append(first_window[1:] + self._windows)
        self._window_number.append(number)
        self._window_first.append(first_of_window + self._documents.length)
        self._windows += number.size
        self._documents.append(low)
        self._frequencies.append(frequency)
        if self._parts is not None and parts is not None and part_frequency is not None:
            self._window_first_part.append(count_stored(parts)[first_of_window] + self._part_frequency_count)
            self._parts.append(parts)
            self._part_frequencies.append(part_frequency)
            self._part_frequency_count += int(part_frequency.size)

    def write(self, writer: ColumnWriter) -> None:
        """Write the columns of everything added."""
        postings = np.array([self._documents.length], np.int64)
        writer.write("term.first_window", narrow(np.concatenate(self._first_window)))
        writer.write("window.number", np.concatenate(self._window_number))
        writer.write("window.first_posting", narrow(np.concatenate([*self._window_first, postings])))
        writer.stream("posting.document", np.uint16, self._documents.chunks())
        self._frequencies.write("posting.frequency", writer)
        if self._parts is not None:
            end = np.array([self._part_frequency_count], np.int64)
            writer.write("window.first_part", narrow(np.concatenate([*self._window_first_part, end])))
            writer.stream("posting.parts", self._parts.kind, self._parts.chunks())
            self._part_frequencies.write("part_frequency", writer)


def part_type(parts: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type that has one bit per part."""
    return np.uint8 if parts <= 8 else np.uint16 if parts <= 16 else np.uint32 if parts <= 32 else np.uint64
