"""Vectors of all passages of an index, computed once, kept compactly and mapped into memory; ranking looks them up.

A store is a folder `neural/NAME` of the index: the encoder that made it, files of vectors for each time that it was brought up to date
(`storing`), and a manifest, replaced atomically. A document is known by the hash of all that its vectors depend on: what is there already
is not encoded again, however the index was merged meanwhile. Where the documents of each segment lie is written down when they are encoded.

What is kept of a passage is its kind: a vector a token (`tokens`), the same as graph attention sees the passage in its document (`context`,
and in late fusion those of the passage alone beside them), one vector (`pooled`), or one that a user brought (`own`).
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
from perikope.neural.stores.codebook import CODES, LEVELS, Codebook, CodedDocument, Found, damaged
from perikope.neural.triples import passages_of, with_path

FOLDER = "neural"
"""Of an index."""
MANIFEST = "store.json"
ENCODER = "encoder"
VERSION = 3
Kind = Literal["tokens", "context", "pooled", "own"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_OPTIONS: Mapping[Kind, str] = {"tokens": "", "context": " --encoder FOLDER", "pooled": " --pooled", "own": " --pooled"}
"""Of `perikope encode`, by what it makes."""
VECTORS, CONTENT = "vectors", "content"
"""The matrices of a passage: those it is ranked by, and in late fusion those of the passage alone."""
KEY = 16
"""Bytes of what a document is known by."""


class VectorStore:
    """The vectors of an index, by segment and document; opened, read, and brought up to date."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.content: dict[str, Any] = json.loads((folder / MANIFEST).read_text("utf-8"))
            if self.content["version"] != VERSION:
                raise InputError(
                    f"is a store of version {self.content['version']!r}, this program reads {VERSION}: make it again", path=folder
                )
            if self.content["code"] not in CODES or self.content["kind"] not in KINDS or VECTORS not in self.content["matrices"]:
                raise ValueError("kind")
            self.hashes: dict[str, str] = dict(self.content["hashes"])
            self.codebooks = {name: self._codebook(name) for name in self.content["matrices"]}
            widths = {name: book.bytes_a_token for name, book in self.codebooks.items()}
            self._files = [_VectorFile(folder / entry, widths) for entry in self.content["files"]]
            self._keys = self._array(self.content["keys"], np.uint8, (None, KEY))
            self._rows_of_key = self._array(self.content["rows"], np.int64, (self._keys.shape[0], 2))
            self._check_rows(self._rows_of_key)
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise damaged(folder, type(error).__name__) from None
        self._rows_of_segment: WeakKeyDictionary[Segment, Integers] = WeakKeyDictionary()

    @classmethod
    def open(cls, index: Path, name: str, kind: Kind = "tokens") -> VectorStore:
        """A store of an index by its name; where it is not there, the error says how one of this kind is made."""
        check_name(name)
        folder = index / FOLDER / name
        if not (folder / MANIFEST).is_file():
            known, make = ", ".join(store_names(index)) or "none", f"perikope encode {index}{_OPTIONS[kind]} --name {name}"
            raise UsageError(f"there is no store of vectors {name!r} in {index} (there are: {known}); make it with `{make}`")
        return cls(folder)

    @property
    def name(self) -> str:
        """That models call for."""
        return self.folder.name

    @property
    def kind(self) -> Kind:
        """What is kept of a passage."""
        found: Kind = self.content["kind"]
        return found

    @property
    def facts(self) -> dict[str, Any]:
        """What made the vectors: the encoder's name, and of `context` its variant and α."""
        return dict(self.content["facts"])

    @property
    def codebook(self) -> Codebook:
        """Of the vectors that passages are ranked by."""
        return self.codebooks[VECTORS]

    @property
    def bytes_a_token(self) -> int:
        """Of all matrices."""
        return sum(book.bytes_a_token for book in self.codebooks.values())

    @property
    def heading_path(self) -> bool:
        """Whether passages were encoded behind the titles above them."""
        return bool(self.content["heading_path"])

    @property
    def encoder(self) -> Path | None:
        """The folder of the encoder; None for vectors that a user brought."""
        return self.folder / ENCODER if (self.folder / ENCODER).is_dir() else None

    @property
    def tokens(self) -> int:
        """How many vectors a matrix has, those of documents that have gone included."""
        return sum(file.rows[VECTORS].shape[0] for file in self._files)

    @property
    def documents(self) -> int:
        """How many documents it knows."""
        return int(self._keys.shape[0])

    @cached_property
    def known(self) -> dict[bytes, tuple[int, int]]:
        """File and number in it of each document, by what it is known by."""
        return {
            key.tobytes(): (file, number) for key, (file, number) in zip(np.asarray(self._keys), self._rows_of_key.tolist(), strict=True)
        }

    def missing(self, snapshot: Snapshot) -> int:
        """How many documents of an index have no vectors here."""
        return sum(int((self.rows_of(snapshot, segment)[segment.alive, 0] < 0).sum()) for segment in snapshot.segments)

    def find(self, snapshot: Snapshot, documents: Integers, matrix: str = VECTORS) -> Found:
        """The vectors of all passages of some documents, by their numbers, in order."""
        pieces = []
        for number in documents.tolist():
            segment, local = snapshot.locate(number)
            file, own = self.rows_of(snapshot, segment)[local].tolist()
            if file < 0:
                raise UsageError(
                    f"the store {self.name!r} has no vectors of document {segment.document_id(local)!r}: "
                    f"the index has changed; bring it up to date with `perikope encode {snapshot.folder} --name {self.name}`"
                )
            pieces.append(self._files[file].document(own, matrix))
        return Found.of(self.codebooks[matrix], pieces)

    def rows_of(self, snapshot: Snapshot, segment: Segment) -> Integers:
        """File and number in it of each document of a segment, or -1."""
        found = self._rows_of_segment.get(segment)
        if found is None:
            found = self._rows_of_segment[segment] = self._locate(snapshot, segment)
        return found

    def _locate(self, snapshot: Snapshot, segment: Segment) -> Integers:
        saved = self._saved_rows(segment)
        found = np.full((segment.documents, 2), -1, np.int64) if saved is None else saved[:, :2].copy()
        unsure = segment.alive.copy()
        if saved is not None:
            # A segment never changes, but what its documents cite may lie in others.
            unsure &= (saved[:, 2] != 0) & (snapshot.manifest.fingerprint != self.content["index"])
        for local in np.flatnonzero(unsure).tolist():
            found[local] = self.known.get(document_key(snapshot, segment, local, self.kind, self.heading_path), (-1, -1))
        return found

    def _saved_rows(self, segment: Segment) -> Integers | None:
        """What was written down when the documents of a segment were encoded: file, number, and whether others matter."""
        entry = self.content["segments"].get(segment.entry["file"])
        if entry is None or entry["checksum"] != segment.entry["checksum"]:
            return None
        try:
            found = self._array(entry["rows"], np.int64, (segment.documents, 3))
            self._check_rows(found[found[:, 0] >= 0])
        except FileNotFoundError:
            return None  # the store was brought up to date meanwhile
        except (OSError, ValueError):
            raise InputError("is damaged (rows of a segment): make it again", path=self.folder) from None
        return found

    def _check_rows(self, rows: Integers) -> None:
        counts = np.array([file.documents for file in self._files], np.int64)
        file, number = rows[:, 0], rows[:, 1]
        if rows.size and (int(file.min()) < 0 or int(file.max()) >= counts.size or int(number.min()) < 0 or np.any(number >= counts[file])):
            raise ValueError("rows")

    def _codebook(self, matrix: str) -> Codebook:
        dimension = int(self.content["dimension"])
        centroids = self._array(f"{matrix}-centroids.npy", np.float32, (None, dimension))
        levels = self._array(f"{matrix}-levels.npy", np.float32, (LEVELS,))
        if not (np.isfinite(centroids).all() and np.isfinite(levels).all()):
            raise ValueError("centroids")
        return Codebook(self.content["code"], dimension, centroids, levels)

    def damaged_files(self) -> list[str]:
        """The files of the store that are not as they were written, or gone; all of them are read."""
        return [name for name, known in self.hashes.items() if not (self.folder / name).is_file() or hash_of(self.folder / name) != known]

    def _array(self, name: str, kind: Any, shape: tuple[int | None, ...]) -> Array:
        # These decide about every vector, and are small: a byte that is wrong is found when the store is opened.
        if name in self.hashes and hash_of(self.folder / name) != self.hashes[name]:
            raise ValueError(name)
        found = np.load(self.folder / name, allow_pickle=False)
        if (
            found.dtype != kind
            or found.ndim != len(shape)
            or any(wanted not in (None, own) for wanted, own in zip(shape, found.shape, strict=True))
        ):
            raise ValueError(name)
        return np.asarray(found)


class _VectorFile:
    """Vectors of some documents: bytes of each matrix, tokens and counts, mapped."""

    def __init__(self, folder: Path, widths: Mapping[str, int]) -> None:
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
        """How many there are."""
        return self._first_passage.size - 1

    def document(self, number: int, matrix: str) -> CodedDocument:
        """What is kept of a document."""
        first, end = self._first_passage[number : number + 2].tolist()
        inside = slice(int(self._first_row[first]), int(self._first_row[end]))
        return CodedDocument(self.rows[matrix][inside], self._position[inside], self._count[first:end])


def _mapped(path: Path) -> Array:
    # As a plain array: kernels are compiled for these.
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def document_key(snapshot: Snapshot, segment: Segment, local: int, kind: Kind, heading_path: bool) -> bytes:
    """A hash of what the vectors of a document depend on: its id, names and texts as they are encoded; of `context` the whole graph."""
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
    """How many stores an index has, and what is wrong with them, a line each; all their files are read."""
    problems = []
    names = store_names(index)
    for name in names:
        folder = index / FOLDER / name
        try:
            wrong = VectorStore(folder).damaged_files()
        except InputError as error:
            problems.append(str(error))
            continue
        problems += [f"{folder / file}: is damaged, or gone" for file in wrong]
        problems += [f"{folder}: remove it, and `perikope encode` again"] if wrong else []
    return len(names), problems


def store_names(index: Path) -> list[str]:
    """The stores of an index."""
    place = index / FOLDER
    return sorted(one.name for one in place.iterdir() if (one / MANIFEST).is_file()) if place.is_dir() else []


def written_passages(snapshot: Snapshot, document: int, heading_path: bool) -> list[str]:
    """The passages of a document as they are encoded."""
    segment, local = snapshot.locate(document)
    return [with_path(path if heading_path else (), text) for _, text, path in passages_of(segment, local, segment.document_id(local))]


def hash_of(path: Path) -> str:
    """The hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
