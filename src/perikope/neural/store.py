"""Vectors of all passages of an index, computed once, kept compactly and mapped into memory; ranking looks them up.

A store is a folder `neural/NAME` of the index: the encoder that made it, files of vectors for each time that it was brought up to date,
and a manifest, replaced atomically. A document is known by the hash of its texts: what is there already is not encoded again, however
the index was merged meanwhile. Which vectors a document of a segment has is worked out once a segment and kept.

    float16    2 · d bytes a token
    int8       d bytes and two for the scale
    residual   the nearest of up to 65,536 centroids in two bytes, and of what is left two bits a dimension: d / 4 + 2 bytes,
               34 for d = 128 (Santhanam et al. 2022, ColBERTv2)
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from perikope.errors import InputError, UsageError, unknown
from perikope.index import files
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.neural.triples import passages_of, with_path
from perikope.tables import check_name

FOLDER = "neural"
"""Of an index."""
MANIFEST = "store.json"
ENCODER = "encoder"
VERSION = 1
Code = Literal["float16", "int8", "residual"]
CODES: tuple[Code, ...] = get_args(Code)
LEVELS = 4
"""Of a residual: two bits a dimension."""
_SAMPLE = 1 << 17
_MOST_CENTROIDS = 1 << 13
_ROUNDS = 6
_DOCUMENTS_AT_ONCE = 64

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Encode = Callable[[Sequence[str]], Iterator[tuple[int, Floats, Integers]]]
"""Of texts: the number of each, its vectors, and which tokens they are of; in any order."""


@dataclass(frozen=True)
class Codebook:
    """How vectors become bytes and back; centroids and levels are there for `residual` alone."""

    code: Code
    dimension: int
    centroids: Floats
    levels: Floats
    """The four values of a residual's dimension."""

    @classmethod
    def fit(cls, code: Code, dimension: int, sample: Floats, *, seed: int = 1) -> Codebook:
        """Made for vectors like those of a sample."""
        if code not in CODES:
            raise unknown("code of vectors", code, CODES)
        if code != "residual" or not sample.shape[0]:
            return cls(code, dimension, np.zeros((1 if code == "residual" else 0, dimension), np.float32), np.zeros(LEVELS, np.float32))
        if dimension % 4:
            raise UsageError(f"a residual code needs vectors whose number of values is a multiple of 4, not {dimension}")
        # As ColBERTv2 has it: a number of centroids that grows with the root of the number of vectors, here of the sample.
        count = int(min(_MOST_CENTROIDS, max(1, 2 ** round(np.log2(8 * np.sqrt(sample.shape[0]))), 1), sample.shape[0]))
        centroids = _cluster(sample, count, seed)
        residuals = (sample - centroids[nearest(sample, centroids)]).ravel()
        cuts = np.quantile(residuals, [0.125, 0.375, 0.625, 0.875])
        return cls(code, dimension, centroids, _fit_levels(residuals, cuts.astype(np.float32)))

    @property
    def bytes_a_token(self) -> int:
        """How many bytes a vector takes."""
        return {"float16": 2 * self.dimension, "int8": self.dimension + 2, "residual": self.dimension // 4 + 2}[self.code]

    def pack(self, vectors: Floats) -> NDArray[np.uint8]:
        """Bytes of vectors, a row each."""
        if self.code == "float16":
            return vectors.astype("<f2").view(np.uint8)
        if self.code == "int8":
            scale = np.maximum(np.abs(vectors).max(axis=1, initial=0.0), 1e-8).astype("<f2").astype(np.float32)
            rounded = np.clip(np.rint(vectors * (127 / scale[:, None])), -127, 127).astype(np.int8)
            return np.concatenate([scale.astype("<f2")[:, None].view(np.uint8), rounded.view(np.uint8)], axis=1)
        own = nearest(vectors, self.centroids)
        residuals = vectors - self.centroids[own]
        bits = np.searchsorted((self.levels[1:] + self.levels[:-1]) / 2, residuals).astype(np.uint8)
        four = bits.reshape(bits.shape[0], -1, 4)
        packed = four[:, :, 0] | four[:, :, 1] << 2 | four[:, :, 2] << 4 | four[:, :, 3] << 6
        return np.concatenate([own.astype("<u2")[:, None].view(np.uint8), packed.astype(np.uint8)], axis=1)

    def unpack(self, rows: NDArray[np.uint8]) -> Floats:
        """Vectors of bytes; those of a residual code have length 1 again."""
        if self.code == "float16":
            return np.ascontiguousarray(rows).view("<f2").astype(np.float32)
        head = np.ascontiguousarray(rows[:, :2])
        if self.code == "int8":
            scale = head.view("<f2").astype(np.float32)
            values: Floats = rows[:, 2:].view(np.int8).astype(np.float32) * (scale / np.float32(127))
            return values
        own = head.view("<u2")[:, 0].astype(np.int64)
        if own.size and int(own.max()) >= self.centroids.shape[0]:
            raise InputError("a store of vectors is damaged: make it again")
        found: Floats = self.centroids[own] + self._four_levels[rows[:, 2:]].reshape(rows.shape[0], -1)
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-8)
        return found

    @cached_property
    def _four_levels(self) -> Floats:
        """The four values that a byte stands for."""
        byte = np.arange(256)
        return self.levels[np.stack([byte >> shift & 3 for shift in (0, 2, 4, 6)], axis=1)].astype(np.float32)


def nearest(vectors: Floats, centroids: Floats, *, at_once: int = 1 << 12) -> Integers:
    """The centroid with the largest dot product, for vectors of length 1 the nearest direction."""
    found = np.zeros(vectors.shape[0], np.int64)
    for start in range(0, vectors.shape[0], at_once):
        piece = slice(start, start + at_once)
        found[piece] = (vectors[piece] @ centroids.T).argmax(axis=1)
    return found


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
class Found:
    """The vectors of some passages, one after the other; packed as they lie in the store until they are asked for."""

    codebook: Codebook
    packed: Sequence[NDArray[np.uint8]]
    """Pieces, one a document."""
    tokens: Sequence[Integers]
    """Which token of its text each vector is of, in the same pieces."""
    first_vector: Integers
    """Where each passage's begin; one value more than there are passages."""
    first_of_piece: Integers
    """Where each piece begins; one value more than there are pieces."""

    @classmethod
    def of(cls, codebook: Codebook, pieces: Sequence[tuple[NDArray[np.uint8], Integers, Integers]]) -> Found:
        """Of pieces: bytes and tokens of vectors, and how many each passage has."""
        counts = np.concatenate([np.zeros(0, np.int64), *(count for *_, count in pieces)])
        sizes = np.array([rows.shape[0] for rows, *_ in pieces], np.int64)
        first = [np.concatenate([[0], np.cumsum(column, dtype=np.int64)]) for column in (counts, sizes)]
        return cls(codebook, [rows for rows, *_ in pieces], [tokens for _, tokens, _ in pieces], *first)

    def vectors(self, first: int, end: int) -> Floats:
        """Some of them, from `first` to before `end`."""
        rows = self._some(self.packed, first, end)
        return self.codebook.unpack(
            rows[0] if len(rows) == 1 else np.concatenate([np.zeros((0, self.codebook.bytes_a_token), np.uint8), *rows])
        )

    def positions(self, first: int, end: int) -> Integers:
        """Which tokens of their texts these are of."""
        return np.concatenate([np.zeros(0, np.int64), *self._some(self.tokens, first, end)])

    def _some(self, pieces: Sequence[NDArray[Any]], first: int, end: int) -> list[NDArray[Any]]:
        begin, stop = np.searchsorted(self.first_of_piece, [first, end], "right").tolist()
        numbers = range(begin - 1, min(stop, len(pieces)))
        base = self.first_of_piece
        return [pieces[i][max(first - int(base[i]), 0) : max(end - int(base[i]), 0)] for i in numbers]


class VectorStore:
    """The vectors of an index, by segment and document; opened, read, and brought up to date."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self._content: dict[str, Any] = json.loads((folder / MANIFEST).read_text("utf-8"))
            if self._content["version"] != VERSION or self._content["code"] not in CODES:
                raise InputError(
                    f"is a store of version {self._content['version']!r}, this program reads {VERSION}: make it again", path=folder
                )
            self.codebook = Codebook(
                self._content["code"], int(self._content["dimension"]), *(self._array(f"{name}.npy") for name in ("centroids", "levels"))
            )
            self._files = [_VectorFile(folder / entry, self.codebook.bytes_a_token) for entry in self._content["files"]]
            self._documents = {key: (int(file), int(number)) for key, (file, number) in self._content["documents"].items()}
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"is no store of vectors, or is damaged ({type(error).__name__}): make it again", path=folder) from None
        if self.codebook.centroids.shape[1:] != (self.codebook.dimension,) or self.codebook.levels.shape != (LEVELS,):
            raise InputError("is damaged (centroids): make it again", path=folder)
        self._rows_of_segment = lru_cache(maxsize=64)(self._locate)

    @classmethod
    def open(cls, index: Path, name: str) -> VectorStore:
        """A store of an index by its name."""
        check_name(name)
        folder = index / FOLDER / name
        if not (folder / MANIFEST).is_file():
            known = ", ".join(store_names(index)) or "none"
            raise UsageError(
                f"there is no store of vectors {name!r} in {index} (there are: {known}); make it with `perikope encode {index}`"
            )
        return cls(folder)

    @property
    def heading_path(self) -> bool:
        """Whether passages were encoded behind the titles above them."""
        return bool(self._content["heading_path"])

    @property
    def encoder(self) -> Path | None:
        """The folder of the encoder; None for vectors that a user brought."""
        return self.folder / ENCODER if (self.folder / ENCODER).is_dir() else None

    @property
    def tokens(self) -> int:
        """How many vectors there are, those of documents that have gone included."""
        return sum(file.rows.shape[0] for file in self._files)

    @property
    def documents(self) -> int:
        """How many documents it knows."""
        return len(self._documents)

    def missing(self, snapshot: Snapshot) -> int:
        """How many documents of an index have no vectors here."""
        return sum(int((self._rows_of_segment(segment)[segment.alive, 0] < 0).sum()) for segment in snapshot.segments)

    def find(self, snapshot: Snapshot, documents: Integers) -> Found:
        """The vectors of all passages of some documents, by their numbers, in order."""
        pieces = []
        for number in documents.tolist():
            segment, local = snapshot.locate(number)
            file, own = self._rows_of_segment(segment)[local].tolist()
            if file < 0:
                raise UsageError(
                    f"the store {self.folder.name!r} has no vectors of document {segment.document_id(local)!r}: "
                    f"the index has changed; bring it up to date with `perikope encode {snapshot.folder} --name {self.folder.name}`"
                )
            pieces.append(self._files[file].document(own))
        return Found.of(self.codebook, pieces)

    def _locate(self, segment: Segment) -> NDArray[np.int64]:
        """File and number in it of each document of a segment, or -1."""
        found = np.full((segment.documents, 2), -1, np.int64)
        for local in np.flatnonzero(segment.alive).tolist():
            found[local] = self._documents.get(document_hash(segment, local, self.heading_path), (-1, -1))
        return found

    def _array(self, name: str) -> Floats:
        found: Floats = np.load(self.folder / name, allow_pickle=False).astype(np.float32)
        return found


class _VectorFile:
    """Vectors of some documents: bytes, tokens and counts, mapped."""

    def __init__(self, folder: Path, width: int) -> None:
        self.rows: NDArray[np.uint8] = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        self._position = np.load(folder / "positions.npy", mmap_mode="r", allow_pickle=False)
        self._count = np.load(folder / "counts.npy", mmap_mode="r", allow_pickle=False)
        self._first_passage = np.load(folder / "documents.npy", allow_pickle=False).astype(np.int64)
        self._first_row = np.concatenate([[0], np.cumsum(self._count, dtype=np.int64)])
        rising = bool(np.all(np.diff(self._first_passage) >= 0))
        if (
            self.rows.ndim != 2
            or self.rows.shape[1:] != (width,)
            or self.rows.dtype != np.uint8
            or self._position.shape != self.rows.shape[:1]
            or int(self._first_row[-1]) != self.rows.shape[0]
            or not rising
            or int(self._first_passage[-1]) != self._count.size
        ):
            raise ValueError("sizes")

    def document(self, number: int) -> tuple[NDArray[np.uint8], Integers, Integers]:
        """Bytes and positions of a document's vectors, and how many each passage has."""
        first, end = self._first_passage[number : number + 2].tolist()
        inside = slice(int(self._first_row[first]), int(self._first_row[end]))
        return self.rows[inside], self._position[inside], self._count[first:end]


def document_hash(segment: Segment, local: int, heading_path: bool) -> str:
    """What the vectors of a document depend on: its id and the texts as they are encoded."""
    digest = hashlib.blake2b(digest_size=16)
    for name, text, path in passages_of(segment, local, segment.document_id(local)):
        for piece in (name, with_path(path if heading_path else (), text)):
            data = piece.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def store_names(index: Path) -> list[str]:
    """The stores of an index."""
    place = index / FOLDER
    return sorted(one.name for one in place.iterdir() if (one / MANIFEST).is_file()) if place.is_dir() else []


def update_store(
    snapshot: Snapshot,
    name: str,
    encode: Encode,
    dimension: int,
    *,
    code: Code = "residual",
    heading_path: bool = True,
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
    wanted = {"code": code, "heading_path": heading_path, "dimension": dimension, "facts": dict(facts or {})}
    old = VectorStore(folder) if (folder / MANIFEST).is_file() else None
    if old is not None:
        differing = [key for key, value in wanted.items() if old._content.get(key) != value]
        if differing:
            own = ", ".join(f"{key} {old._content.get(key)!r}" for key in differing)
            raise UsageError(f"the store {name!r} was made differently ({own}); give it another name, or remove {folder}")
    files.make_folder(folder)
    if save_encoder is not None and not (folder / ENCODER).is_dir():
        temporary = folder / f".{ENCODER}.{secrets.token_hex(4)}"
        save_encoder(temporary)
        temporary.replace(folder / ENCODER)
    kept: dict[str, list[int]] = {}
    new: list[tuple[str, Segment, int]] = []
    for segment in snapshot.segments:
        for local in np.flatnonzero(segment.alive).tolist():
            key = document_hash(segment, local, heading_path)
            if old is not None and key in old._documents:
                kept[key] = list(old._documents[key])
            else:
                new.append((key, segment, local))
    entries = list(old._content["files"]) if old is not None else []
    codebook = old.codebook if old is not None else _fit(new, encode, code, dimension, heading_path, seed)
    if old is None:
        for array, values in (("centroids", codebook.centroids), ("levels", codebook.levels)):
            np.save(folder / f"{array}.npy", values)
    if new:
        entry = f"vectors-{secrets.token_hex(8)}"
        for number, key in enumerate(_write(folder / entry, new, encode, codebook, heading_path, on_document)):
            kept[key] = [len(entries), number]
        entries.append(entry)
    # A file that no document uses any more goes; the others keep their order.
    used = sorted({file for file, _ in kept.values()})
    place = {file: number for number, file in enumerate(used)}
    content = {
        "perikope": "vectors",
        "version": VERSION,
        **wanted,
        "files": [entries[file] for file in used],
        "documents": {key: [place[file], number] for key, (file, number) in sorted(kept.items())},
    }
    _replace(folder / MANIFEST, json.dumps(content).encode())
    for number, entry in enumerate(entries):
        if number not in place:
            shutil.rmtree(folder / entry, ignore_errors=True)
    return VectorStore(folder)


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


def _texts(document: tuple[str, Segment, int], heading_path: bool) -> list[str]:
    _, segment, local = document
    return [with_path(path if heading_path else (), text) for _, text, path in passages_of(segment, local, segment.document_id(local))]


def _fit(
    documents: Sequence[tuple[str, Segment, int]], encode: Encode, code: Code, dimension: int, heading_path: bool, seed: int
) -> Codebook:
    """A code for vectors like those of some documents, drawn by chance."""
    if code != "residual":
        return Codebook.fit(code, dimension, np.zeros((0, dimension), np.float32))
    generator = np.random.default_rng(seed)
    sample: list[Floats] = []
    count = 0
    # In the order of hashes: how the index came to be must not decide.
    ordered = sorted(documents, key=lambda document: document[0])
    for number in generator.permutation(len(ordered)).tolist():
        texts = _texts(ordered[number], heading_path)
        chosen = generator.permutation(len(texts))[:32].tolist()
        sample += [vectors for _, vectors, _ in sorted(encode([texts[i] for i in sorted(chosen)]), key=lambda found: found[0])]
        count = sum(vectors.shape[0] for vectors in sample)
        if count >= _SAMPLE:
            break
    return Codebook.fit(code, dimension, np.concatenate(sample)[:_SAMPLE] if count else np.zeros((0, dimension), np.float32), seed=seed)


def _write(
    folder: Path,
    documents: Sequence[tuple[str, Segment, int]],
    encode: Encode,
    codebook: Codebook,
    heading_path: bool,
    on_document: Callable[[int], None],
) -> list[str]:
    """Encode documents into a new folder; returns their hashes in the order they are written."""
    folder.mkdir()
    counts: list[Integers] = []
    positions: list[Integers] = []
    first_passage = [0]
    rows = 0
    try:
        with (folder / "vectors.bin").open("wb") as file:
            for start in range(0, len(documents), _DOCUMENTS_AT_ONCE):
                batch = [_texts(document, heading_path) for document in documents[start : start + _DOCUMENTS_AT_ONCE]]
                flat = [text for texts in batch for text in texts]
                found: list[tuple[NDArray[np.uint8], Integers]] = [
                    (np.zeros((0, codebook.bytes_a_token), np.uint8), np.zeros(0, np.int64))
                ] * len(flat)
                for number, vectors, position in encode(flat):
                    found[number] = codebook.pack(vectors), position
                for packed, position in found:
                    file.write(packed.tobytes())
                    rows += packed.shape[0]
                    positions.append(position)
                counts.append(np.array([packed.shape[0] for packed, _ in found], np.int64))
                for texts in batch:
                    first_passage.append(first_passage[-1] + len(texts))
                    on_document(len(texts))
        _with_header(folder / "vectors.bin", folder / "vectors.npy", (rows, codebook.bytes_a_token))
        np.save(folder / "positions.npy", np.concatenate([np.zeros(0, np.int64), *positions]).astype(np.uint16))
        np.save(folder / "counts.npy", np.concatenate([np.zeros(0, np.int64), *counts]).astype(np.uint16))
        np.save(folder / "documents.npy", np.array(first_passage, np.int64))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return [key for key, _, _ in documents]


def _with_header(data: Path, path: Path, shape: tuple[int, int]) -> None:
    """Bytes as a file that numpy maps."""
    with path.open("wb") as file, data.open("rb") as source:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        shutil.copyfileobj(source, file, 1 << 22)
    data.unlink()
