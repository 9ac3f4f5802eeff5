"""Codes: how vectors of d values are stored as bytes.

float16    2 · d bytes per vector
int8       d bytes, and two bytes for the scale
residual   two bytes for the nearest centroid, two for the scale, and two bits per value for the difference from the
           centroid: d / 4 + 4 bytes, 36 for d = 128 (ColBERTv2: Santhanam et al. 2022, whose vectors have length 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from perikope.core.arrays import Bytes, Floats32, Integers, Unsigned16
from perikope.core.errors import InputError, UsageError, unknown
from perikope.index.layout import offsets
from perikope.kernels.vectors import CENTRED, PLAIN, SCALED, unpack_halves, unpack_integers, unpack_residuals

Code = Literal["float16", "int8", "residual"]
CODES: tuple[Code, ...] = get_args(Code)
LEVELS = 4
"""Values that a residual can take per dimension, which fit two bits."""
_MOST_CENTROIDS = 1 << 13
_ROUNDS = 6
"""Iterations of k-means."""
_LARGEST = 6e4
"""Limit of values in a vector, slightly below the largest float16."""


HALVES: Floats32 = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""(65536,) The value of each bit pattern of float16."""
_OF_INTEGERS: Floats32 = np.where(np.isfinite(HALVES), HALVES, np.float32(np.inf)).astype(np.float32) / np.float32(127)


@dataclass(frozen=True)
class Codebook:
    """Packs vectors into bytes and unpacks them. Centroids and levels are used by `residual` only."""

    code: Code
    dimension: int
    """Values per vector."""
    centroids: Floats32
    """(centroids, dimension), each of length 1."""
    levels: Floats32
    """(4,) The values that a residual can take, in increasing order."""

    @classmethod
    def fit(cls, code: Code, dimension: int, sample: Floats32, *, seed: int = 1) -> Codebook:
        """Fit a codebook to `sample` (vectors, dimension). The lengths of the vectors do not matter.

        `seed` decides the first centroids of the clustering.
        """
        if code not in CODES:
            raise unknown("code of vectors", code, CODES)
        if code == "residual" and dimension % 4:
            raise UsageError(f"the code residual needs a dimension that is a multiple of 4, not {dimension}")
        directions, lengths = _directions(sample)
        directions = directions[lengths > 0]
        if code != "residual" or not directions.shape[0]:
            return cls(code, dimension, np.zeros((1 if code == "residual" else 0, dimension), np.float32), np.zeros(LEVELS, np.float32))
        # As in ColBERTv2, the number of centroids grows with the square root of the number of vectors in the sample.
        count = int(min(_MOST_CENTROIDS, max(1, 2 ** round(np.log2(8 * np.sqrt(directions.shape[0])))), directions.shape[0]))
        centroids = _cluster(directions, count, seed)
        residuals = (directions - centroids[nearest(directions, centroids)]).ravel()
        cuts = np.quantile(residuals, [0.125, 0.375, 0.625, 0.875])
        return cls(code, dimension, centroids, _fit_levels(residuals, cuts.astype(np.float32)))

    @property
    def head(self) -> int:
        """Number of bytes before the values of a packed vector: number of the centroid, if any, then scale, if any."""
        return {"float16": PLAIN, "int8": SCALED, "residual": CENTRED}[self.code]

    @property
    def bytes_per_vector(self) -> int:
        """Bytes of a packed vector."""
        return self.head + {"float16": 2 * self.dimension, "int8": self.dimension, "residual": self.dimension // 4}[self.code]

    def pack(self, vectors: Floats32) -> Bytes:
        """Pack `vectors` (vectors, dimension) into bytes (vectors, bytes per vector)."""
        if vectors.size and not float(np.abs(vectors).max()) < _LARGEST:
            raise UsageError("the vectors cannot be stored: their values must be finite and between -60,000 and 60,000; scale the vectors")
        if self.code == "float16":
            return vectors.astype("<f2").view(np.uint8)
        if self.code == "int8":
            scale = np.maximum(np.abs(vectors).max(axis=1, initial=0.0), 1e-5).astype("<f2")
            rounded = np.clip(np.rint(vectors * (127 / scale.astype(np.float32)[:, None])), -127, 127).astype(np.int8)
            return np.concatenate([scale[:, None].view(np.uint8), rounded.view(np.uint8)], axis=1)
        directions, lengths = _directions(vectors)
        centroid = nearest(directions, self.centroids)
        residuals = directions - self.centroids[centroid]
        bits = np.searchsorted((self.levels[1:] + self.levels[:-1]) / 2, residuals).astype(np.uint8)
        # The scale gives the unpacked vector the length of the original.
        scale = lengths / np.maximum(np.linalg.norm(self.centroids[centroid] + self.levels[bits], axis=1), 1e-8)
        four = bits.reshape(bits.shape[0], self.dimension // 4, 4)
        packed = four[:, :, 0] | four[:, :, 1] << 2 | four[:, :, 2] << 4 | four[:, :, 3] << 6
        head = np.stack([centroid.astype("<u2"), np.minimum(scale, _LARGEST).astype("<f2").view("<u2")], axis=1)
        return np.concatenate([head.view(np.uint8), packed.astype(np.uint8)], axis=1)

    def unpack(self, rows: Bytes) -> Floats32:
        """Unpack the packed vectors `rows` (vectors, bytes per vector) into vectors (vectors, dimension)."""
        vectors = np.empty((rows.shape[0], self.dimension), np.float32)
        self.unpack_values(rows, vectors)
        if self.head:
            vectors *= self._scales(rows)
        if self.code == "residual":
            centroid = np.ascontiguousarray(rows[:, :2]).view("<u2")[:, 0].astype(np.int64)
            if centroid.size and int(centroid.max()) >= self.centroids.shape[0]:
                raise damaged()
            vectors += self.centroids[centroid] * self._scales(rows)
        return vectors

    def unpack_values(self, rows: Bytes, vectors: Floats32) -> None:
        """Unpack the values of the packed vectors `rows` into `vectors` (vectors, dimension).

        `rows` is (vectors, bytes per vector).
        The head is ignored: the scale is not applied, and in the code `residual` the centroid is not added.
        """
        if self.code == "residual":
            unpack_residuals(rows, self._values_of_byte, vectors.view(np.complex128))
        elif self.code == "int8":
            unpack_integers(rows, vectors)
        else:
            unpack_halves(rows.view("<u2"), vectors.view(np.uint32), vectors)

    @property
    def scale_of_half(self) -> Floats32:
        """Lookup table (65536,): the factor of an unpacked vector, by the 16 bits of its float16 scale.

        The factor is the scale for `residual`, and scale / 127 for `int8`. Vectors in `float16` have no scale.
        """
        return _OF_INTEGERS if self.code == "int8" else HALVES

    def _scales(self, rows: Bytes) -> Floats32:
        """The factors (vectors, 1) that multiply the unpacked vectors of `rows` (vectors, bytes per vector)."""
        return self.scale_of_half[np.ascontiguousarray(rows[:, self.head - 2 : self.head]).view("<u2")]

    @cached_property
    def _values_of_byte(self) -> NDArray[np.complex128]:
        """(256,) The four float32 values of each byte, as one complex number of 16 bytes."""
        byte = np.arange(256)
        four = self.levels[np.stack([byte >> shift & 3 for shift in (0, 2, 4, 6)], axis=1)].astype(np.float32)
        return np.ascontiguousarray(four).view(np.complex128)[:, 0]


MAKE_AGAIN = "remove it, and make it again with `perikope encode`, or with `add_vectors` if its vectors are your own"
"""What a user does with a store that cannot be read."""


def damaged(folder: Path | None = None, what: str = "") -> InputError:
    """Make the error for a damaged store; `what` names the damage. Without `folder`, the store is not known."""
    if folder is None:
        return InputError(f"a store of vectors is damaged: find it with `perikope check INDEX`, {MAKE_AGAIN}")
    return InputError(f"is a damaged store of vectors{f' ({what})' if what else ''}: {MAKE_AGAIN}", path=folder)


def nearest(vectors: Floats32, centroids: Floats32, *, at_once: int = 1 << 12) -> Integers:
    """The centroid with the largest dot product per vector, (vectors,); the nearest one for vectors of length 1.

    `vectors` is (vectors, dimension), `centroids` (centroids, dimension); `at_once` vectors are compared per batch.
    """
    numbers = np.zeros(vectors.shape[0], np.int64)
    for start in range(0, vectors.shape[0], at_once):
        batch = slice(start, start + at_once)
        numbers[batch] = (vectors[batch] @ centroids.T).argmax(axis=1)
    return numbers


def _directions(vectors: Floats32) -> tuple[Floats32, Floats32]:
    """`vectors` (vectors, dimension) scaled to length 1, and their original lengths (vectors,)."""
    lengths = np.linalg.norm(vectors, axis=1).astype(np.float32)
    return vectors / np.maximum(lengths, 1e-12)[:, None], lengths


def _cluster(sample: Floats32, count: int, seed: int) -> Floats32:
    """`count` centroids (count, dimension) of `sample` (vectors, dimension) by spherical k-means."""
    generator = np.random.default_rng(seed)
    centroids = sample[np.sort(generator.choice(sample.shape[0], count, replace=False))].copy()
    for _ in range(_ROUNDS):
        centroid = nearest(sample, centroids)
        order = np.argsort(centroid, kind="stable")
        used, first = np.unique(centroid[order], return_index=True)
        sums = np.add.reduceat(sample[order], first, axis=0)
        centroids[used] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-8)
    return centroids


def _fit_levels(residuals: Floats32, levels: Floats32) -> Floats32:
    """The four values (4,) that represent `residuals` (n,) with the smallest squared error (Lloyd 1982).

    `levels` (4,) is the first guess.
    """
    for _ in range(12):
        level = np.searchsorted((levels[1:] + levels[:-1]) / 2, residuals)
        count = np.bincount(level, minlength=LEVELS)
        means = np.bincount(level, residuals, minlength=LEVELS) / np.maximum(count, 1)
        levels = np.sort(np.where(count > 0, means, levels)).astype(np.float32)
    return levels


@dataclass(frozen=True, slots=True)
class CodedDocument:
    """The packed vectors of a document, as they are in the store."""

    rows: Bytes
    """(vectors, bytes per vector) The packed vectors, in the order of passages."""
    position: Unsigned16
    """(vectors,) The position of each vector's token in its text."""
    count: Unsigned16
    """(passages,) The number of vectors per passage."""


@dataclass(frozen=True, slots=True)
class PackedVectors:
    """The packed vectors of the passages of some documents."""

    codebook: Codebook
    documents: Sequence[CodedDocument]
    first_vector: Integers
    """(passages + 1,) Where the vectors of each passage begin."""
    first_vector_of_document: Integers
    """(documents + 1,) Where the vectors of each document begin."""
    first_passage_of_document: Integers
    """(documents + 1,) Where the passages of each document begin."""

    @classmethod
    def of(cls, codebook: Codebook, documents: Sequence[CodedDocument]) -> PackedVectors:
        """The packed vectors of documents in this order; computes where each passage and document begins."""
        counts = np.concatenate([np.zeros(0, np.int64), *(document.count for document in documents)])
        sizes = [np.array([getattr(document, name).shape[0] for document in documents], np.int64) for name in ("rows", "count")]
        return cls(codebook, documents, *(offsets(column) for column in (counts, *sizes)))

    @property
    def passages(self) -> int:
        """The number of passages."""
        return self.first_vector.size - 1

    def vectors(self, passage: int) -> tuple[Floats32, Integers]:
        """The unpacked vectors of a passage (vectors, dimension), and their token positions (vectors,)."""
        number = int(np.searchsorted(self.first_passage_of_document, passage, "right")) - 1
        first, end = (self.first_vector[passage : passage + 2] - self.first_vector_of_document[number]).tolist()
        document = self.documents[number]
        return self.codebook.unpack(document.rows[first:end]), document.position[first:end].astype(np.int64)
