"""A store of vectors: the vectors of all passages of an index, computed once, packed, and mapped into memory.

A store is a folder `neural/NAME` of the index. It holds a copy of the encoder, one folder of vectors per update
(`update`), and a manifest that is replaced atomically. The key of a document is a hash of everything that its vectors
depend on. So a document is encoded only once, even if segments are merged. The location of a document's vectors is the
number of a file and the number of the document in this file. Each update saves the locations of all documents by
segment, so that a search does not compute keys.

The kind of a store says which vectors it has: one per token (`tokens`); one per token in the context of the document,
by graph attention (`context`), with late fusion also those of the passage alone; one per passage (`pooled`); or one per
passage that the user supplied (`own`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import numpy as np

from perikope.core.arrays import Array, Bytes, Integers
from perikope.core.errors import InputError, UsageError
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import check_name
from perikope.index.segments import Segment
from perikope.index.vector_stores import FOLDER, MANIFEST, store_names
from perikope.neural.stores.codebook import CODES, LEVELS, MAKE_AGAIN, Codebook, CodedDocument, PackedVectors, damaged
from perikope.neural.triples import passages_of, with_path

ENCODER = "encoder"
VERSION = 3
Kind = Literal["tokens", "context", "pooled", "own"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_OPTIONS: Mapping[Kind, str] = {"tokens": "", "context": " --encoder FOLDER", "pooled": " --pooled", "own": " --pooled"}
"""Options of `perikope encode` that make a store of each kind."""
VECTORS, CONTENT = "vectors", "content"
"""Names of a passage's matrices: the vectors that models rank by and, with late fusion, those of the passage alone."""
KEY = 16
"""Length of a document's key, in bytes."""


class VectorStore:
    """An open store of vectors."""

    def __init__(self, folder: Path) -> None:
        """Open the store in a folder, and check its manifest and small files."""
        self.folder = folder
        try:
            self.content: dict[str, Any] = json.loads((folder / MANIFEST).read_text("utf-8"))
            if self.content["version"] != VERSION:
                raise InputError(f"has version {self.content['version']!r}, this program reads {VERSION}: {MAKE_AGAIN}", path=folder)
            if self.content["code"] not in CODES or self.content["kind"] not in KINDS or VECTORS not in self.content["matrices"]:
                raise ValueError("kind")
            self.hashes: dict[str, str] = dict(self.content["hashes"])
            self.codebooks = {name: self._codebook(name) for name in self.content["matrices"]}
            widths = {name: book.bytes_per_vector for name, book in self.codebooks.items()}
            self._files = [_VectorFile(folder / entry, widths) for entry in self.content["files"]]
            self._keys = self._array(self.content["keys"], np.uint8, (None, KEY))
            self._rows_of_key = self._array(self.content["rows"], np.int64, (self._keys.shape[0], 2))
            self._check_rows(self._rows_of_key)
        except (OSError, KeyError, TypeError, ValueError) as error:
            message = f"is not a store of vectors, or is damaged ({type(error).__name__}): {MAKE_AGAIN}"
            raise InputError(message, path=folder) from None
        self._rows_of_segment: WeakKeyDictionary[Segment, Integers] = WeakKeyDictionary()
        self._missing_in: WeakKeyDictionary[Snapshot, int] = WeakKeyDictionary()

    @classmethod
    def open(cls, index: Path, name: str, kind: Kind = "tokens") -> VectorStore:
        """Open a store of an index by its name; if there is none, the error names the command that makes one."""
        check_name(name)
        folder = index / FOLDER / name
        if not (folder / MANIFEST).is_file():
            known, make = ", ".join(store_names(index)) or "none", f"perikope encode {index}{_OPTIONS[kind]} --name {name}"
            raise UsageError(f"there is no store of vectors {name!r} in {index} (there are: {known}); make it with `{make}`")
        return cls(folder)

    @property
    def name(self) -> str:
        """The name that models use in `store=NAME`."""
        return self.folder.name

    @property
    def kind(self) -> Kind:
        """Which vectors the store has: `tokens`, `context`, `pooled` or `own`."""
        kind: Kind = self.content["kind"]
        return kind

    @property
    def facts(self) -> dict[str, Any]:
        """How the vectors were made: encoder, hash of its weights, runtime, and for `context` the variant and α."""
        return dict(self.content["facts"])

    @property
    def codebook(self) -> Codebook:
        """The codebook of the vectors that passages are ranked by."""
        return self.codebooks[VECTORS]

    @property
    def bytes_per_token(self) -> int:
        """Bytes of the packed vectors of one token, in all matrices."""
        return sum(book.bytes_per_vector for book in self.codebooks.values())

    @property
    def heading_path(self) -> bool:
        """Whether the heading path was prepended to the text of a passage before it was encoded."""
        return bool(self.content["heading_path"])

    @property
    def encoder(self) -> Path | None:
        """The folder of the store's encoder; None if there is none, as for vectors that the user supplied."""
        return self.folder / ENCODER if (self.folder / ENCODER).is_dir() else None

    @property
    def tokens(self) -> int:
        """The number of vectors per matrix: one per token, or one per passage if the kind is `pooled` or `own`.

        Vectors of deleted documents count as long as their file holds vectors of other documents.
        """
        return sum(file.rows[VECTORS].shape[0] for file in self._files)

    @property
    def documents(self) -> int:
        """The number of documents with vectors, as of the last update."""
        return int(self._keys.shape[0])

    @cached_property
    def known(self) -> dict[bytes, tuple[int, int]]:
        """The file of each document and its number in that file, by the document's key."""
        return {
            key.tobytes(): (file, number) for key, (file, number) in zip(np.asarray(self._keys), self._rows_of_key.tolist(), strict=True)
        }

    def missing(self, snapshot: Snapshot) -> int:
        """The number of documents of an index that have no vectors in the store. It is counted once per snapshot."""
        missing = self._missing_in.get(snapshot)
        if missing is None:
            missing = sum(int((self.rows_of(snapshot, segment)[segment.alive, 0] < 0).sum()) for segment in snapshot.segments)
            self._missing_in[snapshot] = missing
        return missing

    def updated_by(self, index: Path) -> str:
        """What adds the missing vectors to the store: a command or, for vectors that the user supplied, a function."""
        return "perikope.neural.models.add_vectors" if self.kind == "own" else f"`perikope encode {index} --name {self.name}`"

    def find(self, snapshot: Snapshot, documents: Integers, matrix: str = VECTORS) -> PackedVectors:
        """The vectors of all passages of some documents, in the order of `documents`.

        `documents` (documents,) are numbers in the snapshot. `matrix` is the name of a matrix of the store.
        """
        coded = []
        for number in documents.tolist():
            segment, local = snapshot.locate(number)
            file, number_in_file = self.rows_of(snapshot, segment)[local].tolist()
            if file < 0:
                raise UsageError(
                    f"the store {self.name!r} has no vectors of document {segment.document_id(local)!r}, because the index has "
                    f"changed; update the store with {self.updated_by(snapshot.folder)}"
                )
            coded.append(self._files[file].document(number_in_file, matrix))
        return PackedVectors.of(self.codebooks[matrix], coded)

    def rows_of(self, snapshot: Snapshot, segment: Segment) -> Integers:
        """The location of each document of a segment: the number of its file, and its number in the file.

        The array is (documents, 2). Both numbers are -1 for a document without vectors.
        """
        rows = self._rows_of_segment.get(segment)
        if rows is None:
            rows = self._rows_of_segment[segment] = self._locate(snapshot, segment)
        return rows

    def _locate(self, snapshot: Snapshot, segment: Segment) -> Integers:
        """Compute `rows_of` from the saved locations of the segment, and by key for documents that may have changed."""
        saved = self._saved_rows(segment)
        rows = np.full((segment.documents, 2), -1, np.int64) if saved is None else saved[:, :2].copy()
        unsure = segment.alive.copy()
        if saved is not None:
            # A segment never changes, but documents cited by its documents may be in other segments.
            unsure &= (saved[:, 2] != 0) & (snapshot.manifest.fingerprint != self.content["index"])
        for local in np.flatnonzero(unsure).tolist():
            rows[local] = self.known.get(document_key(snapshot, segment, local, self.kind, self.heading_path), (-1, -1))
        return rows

    def _saved_rows(self, segment: Segment) -> Integers | None:
        """The saved locations of a segment's documents; None if the store has none for this segment.

        The array is (documents, 3): file, number in the file, and 1 if the vectors depend on other documents, else 0.
        All three are -1 for a document that was deleted before the update.
        """
        entry = self.content["segments"].get(segment.entry["file"])
        if entry is None or entry["checksum"] != segment.entry["checksum"]:
            return None
        try:
            rows = self._array(entry["rows"], np.int64, (segment.documents, 3))
            self._check_rows(rows[rows[:, 0] >= 0])
        except FileNotFoundError:
            return None  # the store was updated meanwhile
        except (OSError, ValueError):
            raise damaged(self.folder, "locations of a segment's documents") from None
        return rows

    def _check_rows(self, rows: Integers) -> None:
        """Raise an error if a location, the first two values of a row, has a file or document that does not exist."""
        counts = np.array([file.documents for file in self._files], np.int64)
        file, number = rows[:, 0], rows[:, 1]
        if rows.size and (int(file.min()) < 0 or int(file.max()) >= counts.size or int(number.min()) < 0 or np.any(number >= counts[file])):
            raise ValueError("rows")

    def _codebook(self, matrix: str) -> Codebook:
        """Read the codebook of a matrix."""
        dimension = int(self.content["dimension"])
        centroids = self._array(f"{matrix}-centroids.npy", np.float32, (None, dimension))
        levels = self._array(f"{matrix}-levels.npy", np.float32, (LEVELS,))
        if not (np.isfinite(centroids).all() and np.isfinite(levels).all()):
            raise ValueError("centroids")
        return Codebook(self.content["code"], dimension, centroids, levels)

    def damaged_files(self) -> list[str]:
        """Names of the files that are missing or have another hash than when they were written; reads all files."""
        return [name for name, known in self.hashes.items() if not (self.folder / name).is_file() or hash_of(self.folder / name) != known]

    def _array(self, name: str, kind: Any, shape: tuple[int | None, ...]) -> Array:
        """Read a file with an array of a given type and shape, where None allows any length of an axis."""
        # All vectors depend on these files, and they are small: their hashes are checked when the store is opened.
        if name in self.hashes and hash_of(self.folder / name) != self.hashes[name]:
            raise ValueError(name)
        array = np.load(self.folder / name, allow_pickle=False)
        if (
            array.dtype != kind
            or array.ndim != len(shape)
            or any(wanted not in (None, length) for wanted, length in zip(shape, array.shape, strict=True))
        ):
            raise ValueError(name)
        return np.asarray(array)


class _VectorFile:
    """The vectors of one update, mapped into memory: packed vectors by matrix, token positions, vectors per passage."""

    def __init__(self, folder: Path, widths: Mapping[str, int]) -> None:
        """`widths` has the bytes per vector of each matrix."""
        self.rows: dict[str, Bytes] = {name: _mapped(folder / f"{name}.npy") for name in widths}
        self._position, self._count = _mapped(folder / "positions.npy"), _mapped(folder / "counts.npy")
        self._first_passage = np.load(folder / "documents.npy", allow_pickle=False).astype(np.int64)
        self._first_row = np.concatenate([[0], np.cumsum(self._count, dtype=np.int64)])
        right = [
            rows.ndim == 2 and rows.dtype == np.uint8 and rows.shape == (int(self._first_row[-1]), widths[name]) and rows.flags.c_contiguous
            for name, rows in self.rows.items()
        ]
        if (
            not all(right)
            or self._count.dtype != np.uint16
            or self._position.dtype != np.uint16
            or self._position.shape != self._first_row[-1:]
            or self._first_passage.ndim != 1
            or int(self._first_passage[0]) != 0
            or not bool(np.all(np.diff(self._first_passage) >= 0))
            or int(self._first_passage[-1]) != self._count.size
        ):
            raise ValueError("sizes")

    @property
    def documents(self) -> int:
        """The number of documents."""
        return self._first_passage.size - 1

    def document(self, number: int, matrix: str) -> CodedDocument:
        """The packed vectors of a document, by its number in the file."""
        first, end = self._first_passage[number : number + 2].tolist()
        inside = slice(int(self._first_row[first]), int(self._first_row[end]))
        return CodedDocument(self.rows[matrix][inside], self._position[inside], self._count[first:end])


def _mapped(path: Path) -> Array:
    # As a plain array, not a `memmap`: kernels are compiled for plain arrays.
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def document_key(snapshot: Snapshot, segment: Segment, local: int, kind: Kind, heading_path: bool) -> bytes:
    """The key of a document: a hash of its id, names and encoded texts of its passages, and for `context` its graph.

    `local` is the number of the document in the segment.
    """
    digest = hashlib.blake2b(digest_size=KEY)
    document = segment.document_id(local)
    pieces: list[str] = [document]
    for name, text, path in passages_of(segment, local, document):
        pieces += [name, with_path(path if heading_path else (), text)]
    for piece in pieces:
        _add(digest, piece.encode("utf-8", "surrogatepass"))
    if kind == "context":
        from perikope.neural.graph import FORWARD, read_graph

        graph = read_graph(snapshot, int(snapshot.first_document[snapshot.segments.index(segment)]) + local)
        for text in graph.texts:
            _add(digest, text.encode("utf-8", "surrogatepass"))
        _add(digest, graph.is_passage.tobytes())
        for relation in FORWARD:
            _add(digest, np.ascontiguousarray(graph.edges[relation], "<i8").tobytes())
    return digest.digest()


def _add(digest: Any, data: bytes) -> None:
    digest.update(len(data).to_bytes(8, "little") + data)


def check_stores(index: Path) -> tuple[int, list[str]]:
    """The number of stores of an index, and one line per problem with them; reads all their files."""
    problems = []
    names = store_names(index)
    for name in names:
        folder = index / FOLDER / name
        try:
            wrong = VectorStore(folder).damaged_files()
        except InputError as error:
            problems.append(str(error))
            continue
        problems += [f"{folder / file}: is damaged or missing" for file in wrong]
        problems += [f"{folder}: {MAKE_AGAIN}"] if wrong else []
    return len(names), problems


def written_passages(snapshot: Snapshot, document: int, heading_path: bool) -> list[str]:
    """The texts of a document's passages as they are encoded, after their heading paths if `heading_path` is true."""
    segment, local = snapshot.locate(document)
    return [with_path(path if heading_path else (), text) for _, text, path in passages_of(segment, local, segment.document_id(local))]


def hash_of(path: Path) -> str:
    """The BLAKE2 hash of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
