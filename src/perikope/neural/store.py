"""Vectors of all passages of an index, computed once, kept compactly and mapped into memory; ranking looks them up.

A store is a folder `neural/NAME` of the index: the encoder that made it, files of vectors for each time that it was brought up to date,
and a manifest, replaced atomically. A document is known by the hash of all that its vectors depend on: what is there already is not encoded
again, however the index was merged meanwhile. Where the documents of each segment lie is written down when they are encoded.

What is kept of a passage is its kind: a vector a token (`tokens`), the same as graph attention sees the passage in its document (`context`,
and in late fusion those of the passage alone beside them), one vector (`pooled`), or one that a user brought (`own`).

    float16    2 · d bytes a vector
    int8       d bytes and two for the scale
    residual   the nearest of up to 65,536 centroids in two bytes, two for the scale, and of what is left two bits a dimension:
               d / 4 + 4 bytes, 36 for d = 128 (Santhanam et al. 2022, ColBERTv2, whose vectors all have length 1)
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Protocol, get_args
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from perikope.errors import InputError, UsageError, unknown
from perikope.index import files
from perikope.index.commit import take_lock
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.kernels.vectors import CENTRED, PLAIN, SCALED, unpack_halves, unpack_integers, unpack_residuals
from perikope.neural.triples import passages_of, with_path
from perikope.tables import check_name

FOLDER = "neural"
"""Of an index."""
MANIFEST = "store.json"
ENCODER = "encoder"
VERSION = 3
Code = Literal["float16", "int8", "residual"]
CODES: tuple[Code, ...] = get_args(Code)
Kind = Literal["tokens", "context", "pooled", "own"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_OPTIONS: Mapping[Kind, str] = {"tokens": "", "context": " --encoder FOLDER", "pooled": " --pooled", "own": " --pooled"}
"""Of `perikope encode`, by what it makes."""
VECTORS, CONTENT = "vectors", "content"
"""The matrices of a passage: those it is ranked by, and in late fusion those of the passage alone."""
LEVELS = 4
"""Of a residual: two bits a dimension."""
_SAMPLE = 1 << 17
_SAMPLED_PASSAGES = 32
"""Of a document."""
_MOST_CENTROIDS = 1 << 13
_ROUNDS = 6
_DOCUMENTS_AT_ONCE = 64
_KEY = 16
"""Bytes of what a document is known by."""
_LARGEST = 6e4
"""What float16 can hold, about."""

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Encode = Callable[[Sequence[str]], Iterator[tuple[int, Floats, Integers]]]
"""Of texts: the number of each, its vectors, and which tokens they are of; in any order."""

HALVES: Floats = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""The number that each pattern of float16 stands for."""
_OF_INTEGERS: Floats = np.where(np.isfinite(HALVES), HALVES, np.float32(np.inf)).astype(np.float32) / np.float32(127)


@dataclass(frozen=True)
class Codebook:
    """How vectors become bytes and back; centroids and levels are there for `residual` alone."""

    code: Code
    dimension: int
    centroids: Floats
    """Of length 1."""
    levels: Floats
    """The four values of a residual's dimension."""

    @classmethod
    def fit(cls, code: Code, dimension: int, sample: Floats, *, seed: int = 1) -> Codebook:
        """Made for vectors like those of a sample; their lengths do not matter."""
        if code not in CODES:
            raise unknown("code of vectors", code, CODES)
        if code == "residual" and dimension % 4:
            raise UsageError(f"a residual code needs vectors whose number of values is a multiple of 4, not {dimension}")
        directions, lengths = _directions(sample)
        directions = directions[lengths > 0]
        if code != "residual" or not directions.shape[0]:
            return cls(code, dimension, np.zeros((1 if code == "residual" else 0, dimension), np.float32), np.zeros(LEVELS, np.float32))
        # As ColBERTv2 has it: a number of centroids that grows with the root of the number of vectors, here of the sample.
        count = int(min(_MOST_CENTROIDS, max(1, 2 ** round(np.log2(8 * np.sqrt(directions.shape[0])))), directions.shape[0]))
        centroids = _cluster(directions, count, seed)
        residuals = (directions - centroids[nearest(directions, centroids)]).ravel()
        cuts = np.quantile(residuals, [0.125, 0.375, 0.625, 0.875])
        return cls(code, dimension, centroids, _fit_levels(residuals, cuts.astype(np.float32)))

    @property
    def head(self) -> int:
        """How many bytes of a row belong to all of its values."""
        return {"float16": PLAIN, "int8": SCALED, "residual": CENTRED}[self.code]

    @property
    def bytes_a_token(self) -> int:
        """How many bytes a vector takes."""
        return self.head + {"float16": 2 * self.dimension, "int8": self.dimension, "residual": self.dimension // 4}[self.code]

    def pack(self, vectors: Floats) -> Bytes:
        """Bytes of vectors, a row each."""
        if vectors.size and not float(np.abs(vectors).max()) < _LARGEST:
            raise UsageError("vectors must be finite, and their values below 60,000: this encoder gives others")
        if self.code == "float16":
            return vectors.astype("<f2").view(np.uint8)
        if self.code == "int8":
            scale = np.maximum(np.abs(vectors).max(axis=1, initial=0.0), 1e-5).astype("<f2")
            rounded = np.clip(np.rint(vectors * (127 / scale.astype(np.float32)[:, None])), -127, 127).astype(np.int8)
            return np.concatenate([scale[:, None].view(np.uint8), rounded.view(np.uint8)], axis=1)
        directions, lengths = _directions(vectors)
        own = nearest(directions, self.centroids)
        residuals = directions - self.centroids[own]
        bits = np.searchsorted((self.levels[1:] + self.levels[:-1]) / 2, residuals).astype(np.uint8)
        # What comes back is made as long as what was given.
        scale = lengths / np.maximum(np.linalg.norm(self.centroids[own] + self.levels[bits], axis=1), 1e-8)
        four = bits.reshape(bits.shape[0], self.dimension // 4, 4)
        packed = four[:, :, 0] | four[:, :, 1] << 2 | four[:, :, 2] << 4 | four[:, :, 3] << 6
        head = np.stack([own.astype("<u2"), np.minimum(scale, _LARGEST).astype("<f2").view("<u2")], axis=1)
        return np.concatenate([head.view(np.uint8), packed.astype(np.uint8)], axis=1)

    def unpack(self, rows: Bytes) -> Floats:
        """Vectors of bytes."""
        vectors = np.empty((rows.shape[0], self.dimension), np.float32)
        self.unpack_values(rows, vectors)
        if self.head:
            vectors *= self._scales(rows)
        if self.code == "residual":
            own = np.ascontiguousarray(rows[:, :2]).view("<u2")[:, 0].astype(np.int64)
            if own.size and int(own.max()) >= self.centroids.shape[0]:
                raise damaged()
            vectors += self.centroids[own] * self._scales(rows)
        return vectors

    def unpack_values(self, rows: Bytes, vectors: Floats) -> None:
        """What follows the head of each row: without the scale, and of a residual code without the centroid."""
        if self.code == "residual":
            unpack_residuals(rows, self._values_of_byte, vectors.view(np.complex128))
        elif self.code == "int8":
            unpack_integers(rows, vectors)
        else:
            unpack_halves(rows.view("<u2"), HALVES, vectors)

    @property
    def scale_of_half(self) -> Floats:
        """What values are multiplied with, by the two bytes that say so."""
        return _OF_INTEGERS if self.code == "int8" else HALVES

    def _scales(self, rows: Bytes) -> Floats:
        return self.scale_of_half[np.ascontiguousarray(rows[:, self.head - 2 : self.head]).view("<u2")]

    @cached_property
    def _values_of_byte(self) -> NDArray[np.complex128]:
        """The four values that a byte stands for, as one of 16 bytes."""
        byte = np.arange(256)
        four = self.levels[np.stack([byte >> shift & 3 for shift in (0, 2, 4, 6)], axis=1)].astype(np.float32)
        return np.ascontiguousarray(four).view(np.complex128)[:, 0]


def damaged(folder: Path | None = None, what: str = "") -> InputError:
    """The error for a store, or for vectors, that cannot be."""
    told = f" ({what})" if what else ""
    if folder is None:
        return InputError("a store of vectors is damaged: `perikope check INDEX` says which; remove it, and `perikope encode` again")
    return InputError(f"is no store of vectors, or is damaged{told}: remove this folder, and `perikope encode` again", path=folder)


def nearest(vectors: Floats, centroids: Floats, *, at_once: int = 1 << 12) -> Integers:
    """The centroid with the largest dot product, for vectors of length 1 the nearest direction."""
    found = np.zeros(vectors.shape[0], np.int64)
    for start in range(0, vectors.shape[0], at_once):
        piece = slice(start, start + at_once)
        found[piece] = (vectors[piece] @ centroids.T).argmax(axis=1)
    return found


def _directions(vectors: Floats) -> tuple[Floats, Floats]:
    """Vectors of length 1, and the lengths that they had."""
    lengths = np.linalg.norm(vectors, axis=1).astype(np.float32)
    return vectors / np.maximum(lengths, 1e-12)[:, None], lengths


def _cluster(sample: Floats, count: int, seed: int) -> Floats:
    """Spherical k-means: directions around which the vectors lie."""
    generator = np.random.default_rng(seed)
    centroids = sample[np.sort(generator.choice(sample.shape[0], count, replace=False))].copy()
    for _ in range(_ROUNDS):
        own = nearest(sample, centroids)
        order = np.argsort(own, kind="stable")
        used, first = np.unique(own[order], return_index=True)
        sums = np.add.reduceat(sample[order], first, axis=0)
        centroids[used] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-8)
    return centroids


def _fit_levels(residuals: Floats, levels: Floats) -> Floats:
    """The four values with the smallest squared error (Lloyd 1982), from a first guess."""
    for _ in range(12):
        own = np.searchsorted((levels[1:] + levels[:-1]) / 2, residuals)
        count = np.bincount(own, minlength=LEVELS)
        means = np.bincount(own, residuals, minlength=LEVELS) / np.maximum(count, 1)
        levels = np.sort(np.where(count > 0, means, levels)).astype(np.float32)
    return levels


@dataclass(frozen=True, slots=True)
class Piece:
    """The vectors of a document as they lie in the store."""

    rows: Bytes
    position: NDArray[np.uint16]
    """Which token of its text each vector is of."""
    count: NDArray[np.uint16]
    """How many vectors each passage has."""


@dataclass(frozen=True, slots=True)
class Found:
    """The vectors of some passages, document by document; packed until they are asked for."""

    codebook: Codebook
    pieces: Sequence[Piece]
    first_vector: Integers
    """Where each passage's begin; one value more than there are passages."""
    first_of_piece: Integers
    """Where each piece's vectors begin; one value more than there are pieces."""
    first_passage_of_piece: Integers

    @classmethod
    def of(cls, codebook: Codebook, pieces: Sequence[Piece]) -> Found:
        """Of pieces, one a document."""
        counts = np.concatenate([np.zeros(0, np.int64), *(piece.count for piece in pieces)])
        sizes = [np.array([getattr(piece, name).shape[0] for piece in pieces], np.int64) for name in ("rows", "count")]
        return cls(codebook, pieces, *(np.concatenate([[0], np.cumsum(column, dtype=np.int64)]) for column in (counts, *sizes)))

    @property
    def passages(self) -> int:
        """How many there are."""
        return self.first_vector.size - 1

    def vectors(self, passage: int) -> tuple[Floats, Integers]:
        """Those of a passage, and which tokens of its text they are of."""
        number = int(np.searchsorted(self.first_passage_of_piece, passage, "right")) - 1
        first, end = (self.first_vector[passage : passage + 2] - self.first_of_piece[number]).tolist()
        piece = self.pieces[number]
        return self.codebook.unpack(piece.rows[first:end]), piece.position[first:end].astype(np.int64)


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
            self._hashes: dict[str, str] = dict(self.content["hashes"])
            self.codebooks = {name: self._codebook(name) for name in self.content["matrices"]}
            widths = {name: book.bytes_a_token for name, book in self.codebooks.items()}
            self._files = [_VectorFile(folder / entry, widths) for entry in self.content["files"]]
            self._keys = self._array(self.content["keys"], np.uint8, (None, _KEY))
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
        return [name for name, known in self._hashes.items() if not (self.folder / name).is_file() or _hash(self.folder / name) != known]

    def _array(self, name: str, kind: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
        # These decide about every vector, and are small: a byte that is wrong is found when the store is opened.
        if name in self._hashes and _hash(self.folder / name) != self._hashes[name]:
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

    def document(self, number: int, matrix: str) -> Piece:
        """What is kept of a document."""
        first, end = self._first_passage[number : number + 2].tolist()
        inside = slice(int(self._first_row[first]), int(self._first_row[end]))
        return Piece(self.rows[matrix][inside], self._position[inside], self._count[first:end])


def _mapped(path: Path) -> NDArray[Any]:
    # As a plain array: kernels are compiled for these.
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def document_key(snapshot: Snapshot, segment: Segment, local: int, kind: Kind, heading_path: bool) -> bytes:
    """A hash of what the vectors of a document depend on: its id, names and texts as they are encoded; of `context` the whole graph."""
    digest = hashlib.blake2b(digest_size=_KEY)
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


@dataclass(frozen=True, slots=True)
class Encoded:
    """The vectors of a passage: one matrix or several of the same tokens, and which tokens of its text they are of."""

    matrices: tuple[Floats, ...]
    position: Integers


class Source(Protocol):
    """What makes vectors of documents."""

    @property
    def kind(self) -> Kind:
        """What is kept of a passage."""

    @property
    def dimension(self) -> int:
        """How many values a vector has."""

    @property
    def heading_path(self) -> bool:
        """Whether passages are encoded behind the titles above them."""

    @property
    def matrices(self) -> tuple[str, ...]:
        """The names of the matrices of a passage."""

    def encode(self, snapshot: Snapshot, documents: Sequence[int]) -> Iterable[list[Encoded]]:
        """Of documents, by their numbers, in order: the vectors of each passage."""

    def sample(self, snapshot: Snapshot, document: int, passages: Sequence[int]) -> list[Encoded]:
        """The vectors of some passages of a document."""


@dataclass(frozen=True)
class TextSource:
    """Passages that are encoded one by one, by their texts."""

    texts: Encode
    dimension: int
    heading_path: bool = True
    kind: Kind = "tokens"
    matrices: tuple[str, ...] = (VECTORS,)

    def encode(self, snapshot: Snapshot, documents: Sequence[int]) -> Iterable[list[Encoded]]:
        """See `Source`."""
        texts = [self._written(snapshot, document) for document in documents]
        found = self._encoded([text for own in texts for text in own])
        first = np.cumsum([0, *map(len, texts)]).tolist()
        return [found[start:end] for start, end in pairwise(first)]

    def sample(self, snapshot: Snapshot, document: int, passages: Sequence[int]) -> list[Encoded]:
        """See `Source`."""
        texts = self._written(snapshot, document)
        return self._encoded([texts[passage] for passage in passages])

    def _written(self, snapshot: Snapshot, document: int) -> list[str]:
        return written_passages(snapshot, document, self.heading_path)

    def _encoded(self, texts: Sequence[str]) -> list[Encoded]:
        found = [Encoded((np.zeros((0, self.dimension), np.float32),), np.zeros(0, np.int64))] * len(texts)
        for number, vectors, position in self.texts(texts):
            found[number] = Encoded((vectors,), position)
        return found


def written_passages(snapshot: Snapshot, document: int, heading_path: bool) -> list[str]:
    """The passages of a document as they are encoded."""
    segment, local = snapshot.locate(document)
    return [with_path(path if heading_path else (), text) for _, text, path in passages_of(segment, local, segment.document_id(local))]


def update_store(
    snapshot: Snapshot,
    name: str,
    encode: Encode,
    dimension: int,
    *,
    heading_path: bool = True,
    kind: Kind = "tokens",
    **options: Any,
) -> VectorStore:
    """As `update_store_from`, of what encodes texts one by one."""
    return update_store_from(snapshot, name, TextSource(encode, dimension, heading_path, kind), **options)


def update_store_from(
    snapshot: Snapshot,
    name: str,
    source: Source,
    *,
    code: Code = "residual",
    save_encoder: Callable[[Path], None] | None = None,
    facts: Mapping[str, Any] | None = None,
    on_document: Callable[[int], None] = lambda passages: None,
    seed: int = 1,
) -> VectorStore:
    """Make a store, or bring it up to date: documents that it does not know are encoded, those that are gone are forgotten.

    A store keeps the code, the path and the encoder that it was made with; `facts` say which those are, and others are refused. The code is
    fitted to a sample of the vectors of the first time.
    """
    check_name(name)
    folder = snapshot.folder / FOLDER / name
    files.make_folder(folder)
    lock = take_lock(folder, 0.0)
    try:
        return _update(snapshot, folder, source, code, save_encoder, dict(facts or {}), on_document, seed)
    finally:
        os.close(lock)


def _update(
    snapshot: Snapshot,
    folder: Path,
    source: Source,
    code: Code,
    save_encoder: Callable[[Path], None] | None,
    facts: dict[str, Any],
    on_document: Callable[[int], None],
    seed: int,
) -> VectorStore:
    wanted = {
        "kind": source.kind,
        "code": code,
        "heading_path": source.heading_path,
        "dimension": source.dimension,
        "matrices": list(source.matrices),
        "facts": facts,
    }
    old = VectorStore(folder) if (folder / MANIFEST).is_file() else None
    if old is not None and (wrong := [name for name in old.damaged_files() if not name.startswith(f"{ENCODER}/")]):
        raise damaged(folder, ", ".join(wrong[:3]))
    differing = [key for key, value in wanted.items() if old is not None and old.content.get(key) != value]
    if old is not None and differing:
        own = ", ".join(f"{key} {old.content.get(key)!r}" for key in differing)
        raise UsageError(f"the store {folder.name!r} was made differently ({own}); give it another name, or remove {folder}")
    if save_encoder is not None and not (folder / ENCODER).is_dir():
        temporary = folder / f".{ENCODER}.{secrets.token_hex(4)}"
        save_encoder(temporary)
        temporary.replace(folder / ENCODER)
    kept, new, documents_of_segment = _compare(snapshot, source, old)
    entries = list(old.content["files"]) if old is not None else []
    ready: dict[int, list[Encoded]] = {}
    if old is not None:
        codebooks = old.codebooks
    else:
        codebooks, ready = _fit(snapshot, new, source, code, seed)
        for matrix, book in codebooks.items():
            np.save(folder / f"{matrix}-centroids.npy", book.centroids)
            np.save(folder / f"{matrix}-levels.npy", book.levels)
    if new:
        entry = f"batch-{secrets.token_hex(8)}"
        _write(folder / entry, snapshot, list(new.values()), source, codebooks, ready, on_document)
        kept |= {key: (len(entries), number) for number, key in enumerate(new)}
        entries.append(entry)
    # A file that no document uses any more goes; the others keep their order.
    used = sorted({file for file, _ in kept.values()})
    place = {file: number for number, file in enumerate(used)}
    kept = {key: (place[file], number) for key, (file, number) in sorted(kept.items())}
    content = {
        "perikope": "vectors",
        "version": VERSION,
        **wanted,
        "files": [entries[file] for file in used],
        **_write_rows(folder, snapshot, kept, documents_of_segment),
        "index": snapshot.manifest.fingerprint,
    }
    content["hashes"] = _hashes(folder, content, old)
    _replace(folder / MANIFEST, json.dumps(content).encode())
    _tidy(folder, content)
    return VectorStore(folder)


def _write_rows(
    folder: Path, snapshot: Snapshot, kept: Mapping[bytes, tuple[int, int]], documents_of_segment: Sequence[Located]
) -> dict[str, Any]:
    """Write where the vectors of every document lie, by what it is known by and by segment; returns the names for the manifest."""
    stamp = secrets.token_hex(8)
    _save(folder / f"keys-{stamp}.npy", np.frombuffer(b"".join(kept), np.uint8).reshape(-1, _KEY))
    _save(folder / f"rows-{stamp}.npy", np.array(list(kept.values()), np.int64).reshape(-1, 2))
    segments = {}
    for number, (segment, documents) in enumerate(zip(snapshot.segments, documents_of_segment, strict=True)):
        rows = np.full((segment.documents, 3), -1, np.int64)
        for local, (key, alone) in documents.items():
            rows[local] = *kept[key], not alone
        _save(folder / f"segment-{stamp}-{number}.npy", rows)
        segments[segment.entry["file"]] = {"checksum": segment.entry["checksum"], "rows": f"segment-{stamp}-{number}.npy"}
    return {"keys": f"keys-{stamp}.npy", "rows": f"rows-{stamp}.npy", "segments": segments}


def _hashes(folder: Path, content: Mapping[str, Any], old: VectorStore | None) -> dict[str, str]:
    """Of every file that a store is made of; those that were there before have not changed since."""
    names = [content["keys"], content["rows"], *(own["rows"] for own in content["segments"].values())]
    names += [f"{matrix}-{part}.npy" for matrix in content["matrices"] for part in ("centroids", "levels")]
    for inside in (*content["files"], ENCODER):
        names += sorted(f"{inside}/{path.name}" for path in (folder / inside).glob("*") if path.is_file())
    known = {} if old is None else old._hashes
    return {name: known.get(name) or _hash(folder / name) for name in names}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


Located = dict[int, tuple[bytes, bool]]
"""Of the living documents of a segment: what each is known by, and whether it depends on no other document."""


def _compare(
    snapshot: Snapshot, source: Source, old: VectorStore | None
) -> tuple[dict[bytes, tuple[int, int]], dict[bytes, int], list[Located]]:
    """What a store knows already, the numbers of the documents that are new, and the documents of every segment."""
    kept: dict[bytes, tuple[int, int]] = {}
    new: dict[bytes, int] = {}
    of_segment: list[Located] = []
    for base, segment in zip(snapshot.first_document.tolist(), snapshot.segments, strict=False):
        own: Located = {}
        for local in np.flatnonzero(segment.alive).tolist():
            key = document_key(snapshot, segment, local, source.kind, source.heading_path)
            own[local] = key, source.kind != "context" or not segment.record(local).get("cites")
            if old is not None and key in old.known:
                kept[key] = old.known[key]
            else:
                new[key] = base + local
        of_segment.append(own)
    return kept, new, of_segment


def _save(path: Path, values: NDArray[Any]) -> None:
    """Write an array so that it is on disk before anything names it."""
    file = files.NewFile(path)
    try:
        np.lib.format.write_array(file, np.ascontiguousarray(values), allow_pickle=False)
        file.finish()
    except BaseException:
        file.discard()
        raise


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    file = files.NewFile(temporary)
    try:
        file.write(data)
        file.finish()
        files.rename(temporary, path)
    except BaseException:
        file.discard()
        raise
    files.sync_folder(path.parent)


def _tidy(folder: Path, content: Mapping[str, Any]) -> None:
    """Remove what the manifest does not name any more."""
    named = {*content["files"], content["keys"], content["rows"], *(entry["rows"] for entry in content["segments"].values())}
    for path in folder.iterdir():
        if path.name not in named and path.name.startswith(("batch-", "keys-", "rows-", "segment-")):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _fit(
    snapshot: Snapshot, documents: Mapping[bytes, int], source: Source, code: Code, seed: int
) -> tuple[dict[str, Codebook], dict[int, list[Encoded]]]:
    """Codes for vectors like those of some documents, drawn by chance; and what was encoded whole on the way."""
    whole: dict[int, list[Encoded]] = {}
    empty = np.zeros((0, source.dimension), np.float32)
    if code != "residual":
        return {name: Codebook.fit(code, source.dimension, empty) for name in source.matrices}, whole
    generator = np.random.default_rng(seed)
    sample: list[list[Floats]] = [[empty] for _ in source.matrices]
    count = 0
    # In the order of hashes: how the index came to be must not decide.
    ordered = [documents[key] for key in sorted(documents)]
    for place in generator.permutation(len(ordered)).tolist():
        segment, local = snapshot.locate(ordered[place])
        passages = len(segment.passages_of(local))
        chosen = np.sort(generator.permutation(passages)[:_SAMPLED_PASSAGES]).tolist()
        found = source.sample(snapshot, ordered[place], chosen)
        if len(chosen) == passages:
            whole[ordered[place]] = found
        for own, matrices in zip(sample, zip(*(one.matrices for one in found), strict=True), strict=False):
            own += matrices
        count += sum(one.position.size for one in found)
        if count >= _SAMPLE:
            break
    books = [Codebook.fit(code, source.dimension, np.concatenate(own)[:_SAMPLE], seed=seed) for own in sample]
    return dict(zip(source.matrices, books, strict=True)), whole


def _write(
    folder: Path,
    snapshot: Snapshot,
    documents: Sequence[int],
    source: Source,
    codebooks: Mapping[str, Codebook],
    ready: dict[int, list[Encoded]],
    on_document: Callable[[int], None],
) -> None:
    """Encode documents, by their numbers, into a new folder; what is ready is not encoded again."""
    folder.mkdir()
    counts: list[int] = []
    positions: list[Integers] = []
    first_passage = [0]
    try:
        writers = {name: (folder / f"{name}.bin").open("wb") for name in codebooks}
        try:
            for start in range(0, len(documents), _DOCUMENTS_AT_ONCE):
                batch = documents[start : start + _DOCUMENTS_AT_ONCE]
                missing = [document for document in batch if document not in ready]
                fresh = iter(source.encode(snapshot, missing) if missing else ())
                for document in batch:
                    encoded = ready.pop(document) if document in ready else next(fresh)
                    for passage in encoded:
                        for (name, book), vectors in zip(codebooks.items(), passage.matrices, strict=True):
                            writers[name].write(book.pack(vectors).tobytes())
                        positions.append(passage.position)
                        counts.append(passage.position.size)
                    first_passage.append(first_passage[-1] + len(encoded))
                    on_document(len(encoded))
        finally:
            for writer in writers.values():
                writer.close()
        for name, book in codebooks.items():
            _with_header(folder / f"{name}.bin", folder / f"{name}.npy", (sum(counts), book.bytes_a_token))
        _save(folder / "positions.npy", np.concatenate([np.zeros(0, np.int64), *positions]).astype(np.uint16))
        _save(folder / "counts.npy", np.array(counts, np.uint16))
        _save(folder / "documents.npy", np.array(first_passage, np.int64))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _with_header(data: Path, path: Path, shape: tuple[int, int]) -> None:
    """Bytes as a file that numpy maps."""
    file = files.NewFile(path)
    try:
        with data.open("rb") as source:
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})  # type: ignore[arg-type]
            while piece := source.read(1 << 22):
                file.write(piece)
        file.finish()
    except BaseException:
        file.discard()
        raise
    data.unlink()
