"""Arrays in files: `.npy` files of format 1.0 in C order, written once.

numpy's own reader evaluates the header as Python. On a damaged header it raises errors of many kinds, or allocates what
the header asks for. The reader here accepts only the headers that this module writes, and only if the shape fits the
size of the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from perikope.core import files
from perikope.core.arrays import Array, Bytes

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '([<|][uif][1248])', 'fortran_order': False, 'shape': \(([0-9]{1,15}),(?: ([0-9]{1,15}))?\), \} *\n")
_ALIGNMENT = 64
_HEADER_BYTES = 128
"""The size of a header that is written before the shape is known. A header with the largest shape has fewer bytes."""
_PIECE = 1 << 24

Shape = tuple[int | None, ...]
"""The lengths of the axes of an array; None allows any length."""


class StoredArray:
    """An array in a file, which is read or mapped when the object is made. Removing the file later changes nothing."""

    def __init__(self, path: Path, kind: Any, shape: Shape, *, mapped: bool = False) -> None:
        """Open the file and check its header and size.

        `kind` is the type of the values, and `shape` the expected shape. Raises a `ValueError` if the file differs.
        """
        self._bytes: Bytes = np.asarray(np.memmap(path, np.uint8, "r")) if mapped else np.fromfile(path, np.uint8)
        self.values: Array = _values_of(self._bytes, np.dtype(kind), shape)

    def hash(self) -> str:
        """The hash of the file, as `hash_of` computes it."""
        digest = _digest()
        for start in range(0, self._bytes.size, _PIECE):
            digest.update(self._bytes[start : start + _PIECE].data)
        return str(digest.hexdigest())


def _values_of(data: Bytes, kind: np.dtype[Any], shape: Shape) -> Array:
    start = data[:10].tobytes()
    first = 10 + int.from_bytes(start[8:], "little")
    header = _HEADER.fullmatch(data[10:first].tobytes())
    if len(start) != 10 or not start.startswith(_MAGIC) or header is None or first % _ALIGNMENT:
        raise ValueError("header")
    found = tuple(int(length) for length in header.groups()[1:] if length is not None)
    size = kind.itemsize
    for length in found:
        size *= length
    if header[1].decode() != kind.newbyteorder("<").str or first + size != data.size or len(found) != len(shape):
        raise ValueError("shape")
    if any(wanted not in (None, length) for wanted, length in zip(shape, found, strict=True)):
        raise ValueError("shape")
    return data[first:].view(kind).reshape(found)


def save_array(path: Path, values: Array) -> None:
    """Write an array to a new file and sync it, before a manifest names it."""
    with _new(path) as file:
        np.lib.format.write_array(file, np.ascontiguousarray(values), version=(1, 0), allow_pickle=False)


class RowWriter:
    """Writes rows of bytes to a new file, whose number is not known before the end."""

    def __init__(self, path: Path, width: int) -> None:
        self._file = files.NewFile(path)
        self._width = width
        try:
            self._file.write(bytes(_HEADER_BYTES))
        except BaseException:
            self.discard()
            raise

    def write(self, rows: Bytes) -> None:
        """Append rows (rows, width)."""
        self._file.write(rows.tobytes())

    def finish(self) -> None:
        """Write the header with the number of rows, and sync the file."""
        rows = (self._file.size - _HEADER_BYTES) // max(self._width, 1)
        text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows}, {self._width}), }}".encode()
        text = text.ljust(_HEADER_BYTES - len(_MAGIC) - 2 - 1) + b"\n"
        self._file.rewrite_start(_MAGIC + len(text).to_bytes(2, "little") + text)
        self._file.finish()

    def discard(self) -> None:
        """Close the file and remove it."""
        self._file.discard()

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Finish the file, or remove it after an error."""
        if kind is not None:
            self.discard()
            return
        try:
            self.finish()
        except BaseException:
            self.discard()
            raise


@contextmanager
def _new(path: Path) -> Iterator[Any]:
    """A new file that is synced at the end of the `with` block, and removed after an error."""
    file = files.NewFile(path)
    try:
        yield file
        file.finish()
    except BaseException:
        file.discard()
        raise


def hash_of(path: Path) -> str:
    """The BLAKE2 hash of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, _digest).hexdigest()


def _digest() -> Any:
    return hashlib.blake2b(digest_size=16)
