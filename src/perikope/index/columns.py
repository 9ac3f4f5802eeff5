"""The file format of segments: a header, named columns, and a footer that lists the columns and their offsets.

    magic, version                          64 bytes
    column, column, …                       each aligned to 64 bytes, little-endian
    block_checksums                         the checksum of every block of 4,096 bytes before this column
    footer (JSON)                           type, offset, length and checksum per column; facts about the file
    footer offset, length, checksum, magic  the last 28 bytes

All columns of a segment are in one file, so that only one file must be synced, mapped, checked and named in the
manifest. Files of earlier programs have no `block_checksums`; programs that do not know this column ignore it.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from perikope.core import files
from perikope.core.arrays import Array, Integers
from perikope.core.errors import IndexFormatError
from perikope.core.versions import advice_about_version
from perikope.index.blocks import CHECKSUMS, SIZE, BlockHasher, Extent, Verification, damaged
from perikope.index.strings import StringColumns, Strings
from perikope.kernels.gather import NumberColumn, number_column

MAGIC = b"PERIKOPE"
VERSION = 3
_ALIGNMENT = 64
_TAIL = struct.Struct("<QQI8s")
_DTYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8")


def narrow(values: Array) -> Array:
    """Convert integers to the smallest integer type that holds all of them; unsigned unless a value is negative."""
    if not values.size:
        return values.astype(np.uint8)
    low, high = int(values.min()), int(values.max())
    kinds: tuple[type[np.integer[Any]], ...] = (np.int8, np.int16, np.int32) if low < 0 else (np.uint8, np.uint16, np.uint32)
    kind = next((kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max), np.int64 if low < 0 else np.uint64)
    return values.astype(kind)


class ColumnWriter:
    """Writes columns to a new file, one after the other.

    The file is complete only after `close`. Leaving the context without `close` removes the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = files.NewFile(path)
        self._columns: dict[str, dict[str, object]] = {}
        self._blocks = BlockHasher()
        self._closed = False
        try:
            self._put(MAGIC + struct.pack("<I", VERSION))
        except BaseException:
            self._file.discard()
            raise

    def write(self, name: str, values: Array) -> None:
        """Add one column."""
        self.stream(name, values.dtype, [values])

    def stream(self, name: str, kind: np.dtype[Any] | type[np.generic], chunks: Iterable[Array]) -> None:
        """Add one column, given in chunks. The values are converted to the type `kind`."""
        code = np.dtype(kind).str[1:]
        if code not in _DTYPES or name in self._columns:
            raise ValueError(f"cannot write column {name!r} of type {kind}")
        self._put(b"\0" * (-self._file.size % _ALIGNMENT))
        offset, length, checksum = self._file.size, 0, 0
        for chunk in chunks:
            data = np.ascontiguousarray(chunk, np.dtype("<" + code)).view(np.uint8).data
            self._put(data)
            checksum = zlib.crc32(data, checksum)
            length += int(chunk.size)
        self._columns[name] = {"type": code, "offset": offset, "length": length, "checksum": checksum}

    def write_strings(self, name: str, strings: list[bytes]) -> None:
        """Add byte strings as two columns: `NAME.bytes`, and the end offset of each string in `NAME.ends`."""
        self.write(f"{name}.ends", np.cumsum([len(string) for string in strings], dtype=np.uint64))
        self.write(f"{name}.bytes", np.frombuffer(b"".join(strings), np.uint8))

    def close(self, facts: Mapping[str, object]) -> dict[str, Any]:
        """Write the footer and make the file durable; returns its name, size and checksum for the manifest.

        `facts` are stored in the footer.
        """
        self._put(b"\0" * (-self._file.size % _ALIGNMENT))
        self.write(CHECKSUMS, self._blocks.finish())
        footer = json.dumps({"facts": dict(facts), "columns": self._columns}, ensure_ascii=False).encode("utf-8", "surrogatepass")
        offset, checksum = self._file.size, zlib.crc32(footer)
        self._file.write(footer)
        self._file.write(_TAIL.pack(offset, len(footer), checksum, MAGIC))
        self._file.finish()
        self._closed = True
        return {"file": self.path.name, "size": self._file.size, "checksum": checksum}

    def _put(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._blocks.add(data)

    def __enter__(self) -> ColumnWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._closed:
            self._file.discard()


class ColumnFile(Mapping[str, Array]):
    """The columns of a file by name, memory-mapped and read-only.

    The sizes and the footer are checked when the file is opened. The values of columns are verified when they are first
    read by `whole`, `rows` or a string of `strings`. Values that are read by name (`file[name]`) are not verified; call
    `whole` or `require_ranges` before. `expected` is the manifest entry of the file.

    Opening takes time proportional to the number of columns, not to their lengths.
    """

    def __init__(self, path: Path, expected: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self._expectations: dict[str, tuple[Expectation, str]] = {}
        self._checked: set[str] = set()
        self._numbers: dict[str, NumberColumn] = {}
        try:
            with open(path, "rb") as file:
                self.size = os.fstat(file.fileno()).st_size
                if self.size < _ALIGNMENT + _TAIL.size:
                    raise self.damaged("is cut short")
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise MissingFileError(f"{path} is missing: restore it from a copy or build the index again", path) from None
        except OSError as error:
            raise IndexFormatError(f"cannot open {path}: {error.strerror}", path) from None
        magic, version = self._map[: len(MAGIC)], struct.unpack_from("<I", self._map, len(MAGIC))[0]
        if magic != MAGIC:
            raise self.damaged("is not a segment")
        if version != VERSION:
            advice = advice_about_version(version, VERSION, "build the index again")
            raise IndexFormatError(f"{path} has format version {version}, this program reads {VERSION}: {advice}", path)
        offset, length, self.checksum, tail = _TAIL.unpack_from(self._map, self.size - _TAIL.size)
        if tail != MAGIC or offset + length + _TAIL.size != self.size:
            raise self.damaged("is cut short")
        footer = self._map[offset : offset + length]
        if zlib.crc32(footer) != self.checksum:
            raise self.damaged("has a damaged footer")
        if expected is not None and (expected["size"], expected["checksum"]) != (self.size, self.checksum):
            raise self.damaged("is not the file that the manifest names")
        try:
            content = json.loads(footer.decode("utf-8", "surrogatepass"))
            self.facts: dict[str, Any] = dict(content["facts"])
            self._places: dict[str, dict[str, Any]] = dict(content["columns"])
            self._views = {name: self._view(name, place, offset) for name, place in self._places.items()}
            self.verification = self._verification()
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            # The checksum is right, so the wrong footer is not due to damage.
            raise self.damaged("has a forged footer") from None

    def __getitem__(self, name: str) -> Array:
        try:
            return self._views[name]
        except KeyError:
            raise self.damaged(f"lacks the column {name!r}") from None

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._views if name != CHECKSUMS)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def numbers(self, name: str) -> NumberColumn:
        """A column as kernels read it. As with `file[name]`, its values are not verified."""
        if name not in self._numbers:
            if self[name].itemsize not in (1, 2, 4):
                raise self.damaged(f"has a damaged column ({name})")
            self._numbers[name] = number_column(self[name])
        return self._numbers[name]

    def expect(self, name: str, holds: Expectation, damage: str) -> None:
        """State what must hold for the values of a column. It is checked when the column is first read as a whole.

        `damage` says what is wrong otherwise, such as `has damaged offsets`. `holds` must not refer to the file.
        """
        self._expectations[name] = holds, damage

    def whole(self, name: str) -> Array:
        """A whole column, verified and checked. Use it for columns that are read from beginning to end."""
        if name not in self._checked:
            self._check_name(name)
            self.verification.require_column(name)
            holds, damage = self._expectations.get(name, (_anything, ""))
            if not holds(self, self._views[name]):
                raise self.damaged(f"{damage} ({name})")
            self._checked.add(name)
        return self._views[name]

    def value(self, name: str, row: int) -> int:
        """One value of a column, verified."""
        self.verification.require_row(name, row)
        return int(self._views[name][row])

    def rows(self, name: str, first: int, end: int) -> Array:
        """The rows of a column from `first` to `end` (exclusive), verified."""
        self.verification.require(name, first, end)
        return self._views[name][first:end]

    def require_ranges(self, names: tuple[str, ...], first: Integers, end: Integers) -> None:
        """Verify ranges of rows in each of the columns, so that their values can be read by name."""
        self.verification.require_ranges(names, first, end)

    def require_offsets(self, name: str, groups: Integers) -> None:
        """Verify the offsets of these groups and of the next ones; all offsets if the file has no blocks."""
        if self.verification.by_blocks:
            self.verification.require_ranges((name,), groups, groups + 2)
        else:
            self.whole(name)

    def strings(self, name: str, *, verified: bool = True) -> Strings:
        """The byte strings that `ColumnWriter.write_strings` wrote under this name.

        Strings are verified when they are first read, unless `verified` is false because they have checksums of their
        own. Their ends are always verified.
        """
        ends, data = self[f"{name}.ends"], self[f"{name}.bytes"]
        return Strings(ends, data, f"{self.path}: {name}", StringColumns(self.verification, f"{name}.ends", f"{name}.bytes", verified))

    def damaged_columns(self) -> list[str]:
        """The names of columns whose checksum is wrong; reads the whole file."""
        return [name for name in self._views if not self.verification.verify_column(name)]

    def damaged(self, what: str) -> IndexFormatError:
        """Make the error for a file that cannot be used.

        The message is the path followed by `what`, such as `is cut short`.
        """
        return damaged(self.path, what)

    def _check_name(self, name: str) -> None:
        if name not in self._views:
            raise self.damaged(f"lacks the column {name!r}")

    def _verification(self) -> Verification:
        extents = {
            name: Extent(place["offset"], view.itemsize, place["offset"] + view.nbytes, place["checksum"])
            for (name, place), view in zip(self._places.items(), self._views.values(), strict=True)
        }
        checksums = self._views.get(CHECKSUMS)
        if checksums is not None:
            end = extents[CHECKSUMS].offset
            others = (extent.end for name, extent in extents.items() if name != CHECKSUMS)
            if checksums.dtype != np.uint32 or checksums.size != -(-end // SIZE) or max(others, default=0) > end:
                raise self.damaged(f"has a damaged column {CHECKSUMS!r}")
        return Verification(self.path, self._map, extents, checksums)

    def _view(self, name: str, place: Mapping[str, Any], limit: int) -> Array:
        code, offset, length = place["type"], place["offset"], place["length"]
        if code not in _DTYPES or offset % _ALIGNMENT or length < 0 or offset + length * int(code[1:]) > limit:
            raise self.damaged(f"has a damaged column {name!r}")
        return np.frombuffer(self._map, np.dtype("<" + code), length, offset)


Expectation = Callable[[ColumnFile, Array], bool]
"""Whether the values of a column of a file are as they must be."""


def _anything(file: ColumnFile, values: Array) -> bool:
    return True


def rises(_: ColumnFile, values: Array) -> bool:
    """Whether no value is below the value before it."""
    return not np.any(values[:-1] > values[1:])


class MissingFileError(IndexFormatError):
    """A file that the manifest names is missing. It was lost, or a merge removed it after the manifest was read."""
