"""A batch: the vectors of the documents that one update of a store has encoded, mapped into memory."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from perikope.core.array_files import StoredArray
from perikope.core.arrays import Bytes, Floats32, Integers, Unsigned16, Unsigned32, frozen
from perikope.neural.stores.codebook import Codebook, CodedDocument, damaged
from perikope.neural.stores.manifest import VECTORS

if TYPE_CHECKING:
    from perikope.neural.stores.store import VectorStore

_AT_ONCE = 1 << 10
"""Vectors that are unpacked together."""


class Batch:
    """The vectors of one update, mapped into memory: packed vectors by matrix, token positions, vectors per passage.

    The vectors of a document are compared with its checksums when they are read for the first time. Files of version 3
    have no checksums of documents. Before all vectors are read together, the hash of their file is compared instead.
    """

    def __init__(self, store: VectorStore, entry: str, widths: Mapping[str, int]) -> None:
        """`entry` is the name of the folder; `widths` has the bytes per vector of each matrix."""
        self._folder = store.folder / entry
        self._count: Unsigned16 = frozen(store.checked(f"{entry}/counts.npy", np.uint16, (None,)))
        self._first_passage: Integers = store.checked(f"{entry}/documents.npy", np.int64, (None,))
        self._first_row = np.concatenate([[0], np.cumsum(self._count, dtype=np.int64)])
        vectors = int(self._first_row[-1])
        self._stored = {
            name: StoredArray(self._folder / f"{name}.npy", np.uint8, (vectors, width), mapped=True) for name, width in widths.items()
        }
        self._hashes = {name: store.hashes[f"{entry}/{name}.npy"] for name in widths}
        self.rows: dict[str, Bytes] = {name: stored.values for name, stored in self._stored.items()}
        self._position: Unsigned16 = StoredArray(self._folder / "positions.npy", np.uint16, (vectors,), mapped=True).values
        if (
            not self._first_passage.size
            or int(self._first_passage[0]) != 0
            or not bool(np.all(np.diff(self._first_passage) >= 0))
            or int(self._first_passage[-1]) != self._count.size
        ):
            raise ValueError("sizes")
        self._checksums: Unsigned32 | None = None
        if f"{entry}/checksums.npy" in store.hashes:
            self._checksums = store.checked(f"{entry}/checksums.npy", np.uint32, (self.documents, len(widths)))
        self._right = np.zeros((self.documents, len(widths)), bool)
        self._whole: Bytes | None = None
        self._largest: float | None = None

    @property
    def documents(self) -> int:
        """The number of documents."""
        return self._first_passage.size - 1

    def document(self, number: int, matrix: str) -> CodedDocument:
        """The packed vectors of a document, by its number in the file."""
        first, end = self._first_passage[number : number + 2].tolist()
        inside = slice(int(self._first_row[first]), int(self._first_row[end]))
        document = CodedDocument(self.rows[matrix][inside], self._position[inside], self._count[first:end])
        column = list(self.rows).index(matrix)
        if self._checksums is not None and not self._right[number, column]:
            if checksum_of(document) != int(self._checksums[number, column]):
                raise damaged(self._folder.parent, f"vectors of a document in {self._folder.name}")
            self._right[number, column] = True
        return document

    @property
    def name(self) -> str:
        """The name of the batch's folder."""
        return self._folder.name

    @property
    def first_passage(self) -> Integers:
        """(documents + 1,) Where the passages of each document begin."""
        return self._first_passage

    @property
    def has_one_vector_each(self) -> bool:
        """Whether every passage has one vector, whose number is then that of the passage."""
        return bool((self._count == 1).all())

    def whole(self) -> Bytes:
        """All packed vectors that passages are ranked by, (vectors, bytes per vector), after the hash was compared."""
        if self._whole is None:
            if self._stored[VECTORS].hash() != self._hashes[VECTORS]:
                raise damaged(self._folder.parent, f"vectors in {self.name}")
            self._whole = self.rows[VECTORS]
        return self._whole

    def largest(self, codebook: Codebook) -> float:
        """An upper limit of the lengths of all vectors that passages are ranked by."""
        if self._largest is None:
            rows, largest = self.whole(), 0.0
            for start in range(0, rows.shape[0], _AT_ONCE):
                vectors: Floats32 = codebook.unpack(rows[start : start + _AT_ONCE])
                largest = max(largest, float(np.einsum("ij,ij->i", vectors, vectors).max()))
            self._largest = 1.001 * largest**0.5
        return self._largest


def checksum_of(document: CodedDocument) -> int:
    """The CRC-32 of the packed vectors of a document, their positions, and the numbers of vectors per passage."""
    checksum = zlib.crc32(np.ascontiguousarray(document.rows).data.cast("B") if document.rows.size else b"")
    checksum = zlib.crc32(np.ascontiguousarray(document.position, "<u2").tobytes(), checksum)
    return zlib.crc32(np.ascontiguousarray(document.count, "<u2").tobytes(), checksum)
