"""Write the folders of a store: codebooks, the vectors of one update, and the locations of documents.

Each function makes a folder under a temporary name. The update gives it its name once everything in it is durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perikope.core.array_files import RowWriter, save_array
from perikope.core.arrays import Bytes, Floats32, Integers, Unsigned16
from perikope.neural.stores.batch import checksum_of
from perikope.neural.stores.codebook import Codebook, CodedDocument
from perikope.neural.stores.store import KEY

KEYS_FILE, ROWS_FILE = "keys.npy", "rows.npy"


@dataclass(frozen=True, slots=True)
class Encoded:
    """The vectors of a passage."""

    matrices: tuple[Floats32, ...]
    """One or more matrices (vectors, dimension) for the same tokens."""
    position: Integers
    """(vectors,) The position of each vector's token in the text."""


def write_codebooks(codebooks: Mapping[str, Codebook], folder: Path) -> None:
    """Write the codebook of each matrix."""
    folder.mkdir()
    for matrix, book in codebooks.items():
        save_array(folder / f"{matrix}-centroids.npy", book.centroids)
        save_array(folder / f"{matrix}-levels.npy", book.levels)


def packed(codebooks: Mapping[str, Codebook], documents: Iterable[Sequence[Encoded]]) -> Iterator[list[CodedDocument]]:
    """Pack the vectors of documents, given as one list of passages per document; see `write_batch`."""
    for passages in documents:
        position: Unsigned16 = np.concatenate([np.zeros(0, np.uint16), *(passage.position for passage in passages)]).astype(np.uint16)
        count: Unsigned16 = np.array([passage.position.size for passage in passages], np.uint16)
        rows = [_packed(book, [passage.matrices[i] for passage in passages]) for i, book in enumerate(codebooks.values())]
        yield [CodedDocument(rows_of_matrix, position, count) for rows_of_matrix in rows]


def write_batch(codebooks: Mapping[str, Codebook], documents: Iterable[Sequence[CodedDocument]], folder: Path) -> None:
    """Write the packed vectors of documents, given as one list per document, with one item per matrix."""
    folder.mkdir()
    positions: list[Unsigned16] = []
    counts: list[Unsigned16] = []
    checksums: list[list[int]] = []
    with ExitStack() as stack:
        writers = {name: stack.enter_context(RowWriter(folder / f"{name}.npy", book.bytes_per_vector)) for name, book in codebooks.items()}
        for coded in documents:
            for writer, of_matrix in zip(writers.values(), coded, strict=True):
                writer.write(of_matrix.rows)
            checksums.append([checksum_of(of_matrix) for of_matrix in coded])
            # All matrices of a document have vectors for the same tokens.
            positions.append(coded[0].position)
            counts.append(coded[0].count)
    first_passage = np.cumsum([0, *(count.size for count in counts)], dtype=np.int64)
    save_array(folder / "positions.npy", np.concatenate([np.zeros(0, np.uint16), *positions]))
    save_array(folder / "counts.npy", np.concatenate([np.zeros(0, np.uint16), *counts]))
    save_array(folder / "documents.npy", first_passage)
    save_array(folder / "checksums.npy", np.array(checksums, np.uint32).reshape(-1, len(codebooks)))


def _packed(book: Codebook, matrices: Sequence[Floats32]) -> Bytes:
    """The packed vectors of a document, whose passages have these matrices."""
    # Passages are packed one by one, so that rounding does not depend on the other passages of the document.
    return np.concatenate([np.zeros((0, book.bytes_per_vector), np.uint8), *map(book.pack, matrices)])


def write_locations(location_of_key: Mapping[bytes, tuple[int, int]], rows_of_segment: Sequence[Integers], folder: Path) -> None:
    """Write the location (file, number in the file) of every document, by key and by segment."""
    folder.mkdir()
    save_array(folder / KEYS_FILE, np.frombuffer(b"".join(location_of_key), np.uint8).reshape(-1, KEY))
    save_array(folder / ROWS_FILE, np.array(list(location_of_key.values()), np.int64).reshape(-1, 2))
    for number, rows in enumerate(rows_of_segment):
        save_array(folder / segment_file(number), rows)


def segment_file(number: int) -> str:
    """The name of the file with the locations of the documents of a segment, by its number in the index."""
    return f"segment-{number}.npy"
