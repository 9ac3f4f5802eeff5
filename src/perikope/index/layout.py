"""The columns of a segment, and the functions that write them for new and for merged segments.

Positions, spans and sections are numbered from the start of their document. So a merge concatenates columns with such
numbers unchanged.
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
"""The number of the stop term, which stands for every stop word. It takes positions in the token stream but has no
postings."""

MAX_PARTS = 64
"""The maximum number of different parts in an index: a posting stores its parts as bits of a 64-bit number."""
TOO_MANY_PARTS = f"there are more than {MAX_PARTS} different parts; use parts for kinds of sections (abstract, claims), not for titles"

OF_SPAN = ("kind", "tag", "parent", "start", "end", "part", "language", "first_token", "end_token")
OF_SECTION = ("span", "parent", "title_span", "title_first", "title_end", "title_length")
OF_PASSAGE = ("span", "section", "first_token", "end_token", "length")
OF_DOCUMENT = ("tokens", "length", "source")
LABELLED = ("span.tag", "span.part", "span.language")
"""Columns whose values are numbers of labels. The labels of a segment are its tags, parts and language names."""

_SIGNED = ("span.parent", "section.parent", "section.title_span")
"""Columns in which -1 stands for a missing value."""

_EXACT = {
    "tokens": "u2", "window.number": "u2", "posting.document": "u2", "posting.frequency": "u1", "part_frequency": "u1",
    "posting.frequency.large_at": "i8", "posting.frequency.large": "u4", "part_frequency.large_at": "i8", "part_frequency.large": "u4",
    "document_hash": "u8", "document_of_hash": "u4", "term_of_name": "u4",
}  # fmt: skip

_WIDE = ("document.first_", "window.first_", "facet.first_", "term.")
"""Beginnings of the names of columns that may have 64 bits: offsets and counts."""


def has_right_type(column: str, values: Array) -> bool:
    """Whether a column has a type that kernels accept.

    Offsets, counts, hashes and sets of parts may have 64 bits, other columns at most 32.
    """
    code = values.dtype.str[1:]
    if column in _EXACT or column.endswith(".bytes"):
        return code == _EXACT.get(column, "u1")
    wide = column.endswith(".ends") or column == "posting.parts" or column.startswith(_WIDE)
    return (values.dtype.kind == "u" and (wide or code != "u8")) or (values.dtype.kind == "i" and column in _SIGNED)


OWNED = {"span": OF_SPAN, "section": OF_SECTION, "passage": OF_PASSAGE}
"""The columns with several rows per document, by kind of row. `document.first_span`, `document.first_section` and
`document.first_passage` hold the first row of each document."""


def offsets(counts: Array) -> Array:
    """The offsets of consecutive groups with these sizes: the start of each group, then the end of the last group.

    The result has one value more than `counts`.
    """
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def write_offsets(writer: ColumnWriter, name: str, counts: Array) -> None:
    """Write the offsets of consecutive groups with these sizes as a column."""
    writer.write(name, narrow(offsets(counts)))


def write_document_ids(writer: ColumnWriter, ids: list[bytes]) -> None:
    """Write the document ids, and a sorted table of their hashes for finding documents by id."""
    writer.write_strings("document_ids", ids)
    ends = np.cumsum([len(name) for name in ids], dtype=np.uint64)
    hashes = hash_strings(ends, np.frombuffer(b"".join(ids), np.uint8))
    order = np.argsort(hashes, kind="stable")
    writer.write("document_hash", hashes[order])
    writer.write("document_of_hash", order.astype(np.uint32))


class Spool:
    """Collects a column in pieces while other columns are written.

    The values are kept in memory up to `limit` bytes, then in a temporary file.
    """

    def __init__(self, kind: type[np.generic], folder: Path, limit: int = 1 << 24) -> None:
        self.kind = np.dtype(kind)
        self.length = 0
        self._file = tempfile.SpooledTemporaryFile(max_size=limit, dir=str(folder))  # noqa: SIM115 - closed by `close`

    def append(self, values: Array) -> None:
        """Add values to the column; they are converted to its type."""
        self._file.write(np.ascontiguousarray(values, self.kind).view(np.uint8).data)
        self.length += int(values.size)

    def chunks(self, size: int = 1 << 22) -> Iterator[Array]:
        """Yield all values in pieces of at most `size` bytes."""
        self._file.seek(0)
        while data := self._file.read(size):
            yield np.frombuffer(data, self.kind)

    def close(self) -> None:
        """Free the memory and remove the temporary file."""
        self._file.close()


class FrequencySpool:
    """Collects frequencies, which are stored in one byte each.

    Frequencies of `LARGE` (255) or more are stored in a second column, and their rows in a third.
    """

    def __init__(self, small: Spool) -> None:
        self._small = small
        self._rows: list[Array] = [np.zeros(0, np.int64)]
        self._values: list[Array] = [np.zeros(0, np.uint32)]

    def append(self, values: Array) -> None:
        """Add the frequencies of the next rows."""
        large = np.flatnonzero(values >= LARGE)
        self._rows.append(large + self._small.length)
        self._values.append(values[large])
        self._small.append(np.minimum(values, LARGE))

    def write(self, name: str, writer: ColumnWriter) -> None:
        """Write the three columns of all frequencies added so far."""
        writer.stream(name, np.uint8, self._small.chunks())
        writer.write(f"{name}.large_at", np.concatenate(self._rows).astype(np.int64))
        writer.write(f"{name}.large", np.concatenate(self._values).astype(np.uint32))


class PostingsWriter:
    """Collects the postings of terms, in the order of terms, and writes them as columns.

    Columns with one value per posting may be kept in temporary files. Columns with one value per term or per window
    stay in memory. A window is a block of 65,536 document numbers, see `perikope.kernels.postings`.
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

        `first_posting` has the first posting of each term, then the end of the last term's postings. `document` and
        `frequency` have one value per posting. `parts` has one set of bits per posting, and `part_frequency` the
        frequencies that `invert_parts` returns. Both are None in a segment with one part.
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
        """Write the columns of all postings added so far."""
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
    """The smallest unsigned type that has one bit per part."""
    return np.uint8 if parts <= 8 else np.uint16 if parts <= 16 else np.uint32 if parts <= 32 else np.uint64
