"""How vectors are kept: as bytes, and what is found of them for some passages.

float16    2 · d bytes a vector
int8       d bytes and two for the scale
residual   the nearest of up to 65,536 centroids in two bytes, two for the scale, and of what is left two bits a dimension:
d / 4 + 4 bytes, 36 for d = 128 (Santhanam et al. 2022, ColBERTv2, whose vectors all have length 1)
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
"""Of a residual: two bits a dimension."""
_MOST_CENTROIDS = 1 << 13
_ROUNDS = 6
_LARGEST = 6e4
"""What float16 can hold, about."""


HALVES: Floats32 = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""The number that each pattern of float16 stands for."""
_OF_INTEGERS: Floats32 = np.where(np.isfinite(HALVES), HALVES, np.float32(np.inf)).astype(np.float32) / np.float32(127)


@dataclass(frozen=True)
class Codebook:
    """How vectors become bytes and back; centroids and levels are there for `residual` alone."""

    code: Code
    dimension: int
    centroids: Floats32
    """Of length 1."""
    levels: Floats32
    """The four values of a residual's dimension."""

    @classmethod
    def fit(cls, code: Code, dimension: int, sample: Floats32, *, seed: int = 1) -> Codebook:
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

    def pack(self, vectors: Floats32) -> Bytes:
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

    def unpack(self, rows: Bytes) -> Floats32:
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

    def unpack_values(self, rows: Bytes, vectors: Floats32) -> None:
        """What follows the head of each row: without the scale, and of a residual code without the centroid."""
        if self.code == "residual":
            unpack_residuals(rows, self._values_of_byte, vectors.view(np.complex128))
        elif self.code == "int8":
            unpack_integers(rows, vectors)
        else:
            unpack_halves(rows.view("<u2"), HALVES, vectors)

    @property
    def scale_of_half(self) -> Floats32:
        """What values are multiplied with, by the two bytes that say so."""
        return _OF_INTEGERS if self.code == "int8" else HALVES

    def _scales(self, rows: Bytes) -> Floats32:
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


def nearest(vectors: Floats32, centroids: Floats32, *, at_once: int = 1 << 12) -> Integers:
    """The centroid with the largest dot product, for vectors of length 1 the nearest direction."""
    found = np.zeros(vectors.shape[0], np.int64)
    for start in range(0, vectors.shape[0], at_once):
        piece = slice(start, start + at_once)
        found[piece] = (vectors[piece] @ centroids.T).argmax(axis=1)
    return found


def _directions(vectors: Floats32) -> tuple[Floats32, Floats32]:
    """Vectors of length 1, and the lengths that they had."""
    lengths = np.linalg.norm(vectors, axis=1).astype(np.float32)
    return vectors / np.maximum(lengths, 1e-12)[:, None], lengths


def _cluster(sample: Floats32, count: int, seed: int) -> Floats32:
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


def _fit_levels(residuals: Floats32, levels: Floats32) -> Floats32:
    """The four values with the smallest squared error (Lloyd 1982), from a first guess."""
    for _ in range(12):
        own = np.searchsorted((levels[1:] + levels[:-1]) / 2, residuals)
        count = np.bincount(own, minlength=LEVELS)
        means = np.bincount(own, residuals, minlength=LEVELS) / np.maximum(count, 1)
        levels = np.sort(np.where(count > 0, means, levels)).astype(np.float32)
    return levels


@dataclass(frozen=True, slots=True)
class CodedDocument:
    """The vectors of a document as they lie in the store."""

    rows: Bytes
    position: Unsigned16
    """Which token of its text each vector is of."""
    count: Unsigned16
    """How many vectors each passage has."""


@dataclass(frozen=True, slots=True)
class Found:
    """The vectors of some passages, document by document; packed until they are asked for."""

    codebook: Codebook
    pieces: Sequence[CodedDocument]
    first_vector: Integers
    """Where each passage's begin; one value more than there are passages."""
    first_of_piece: Integers
    """Where each piece's vectors begin; one value more than there are pieces."""
    first_passage_of_piece: Integers

    @classmethod
    def of(cls, codebook: Codebook, pieces: Sequence[CodedDocument]) -> Found:
        """Of pieces, one a document."""
        counts = np.concatenate([np.zeros(0, np.int64), *(piece.count for piece in pieces)])
        sizes = [np.array([getattr(piece, name).shape[0] for piece in pieces], np.int64) for name in ("rows", "count")]
        return cls(codebook, pieces, *(offsets(column) for column in (counts, *sizes)))

    @property
    def passages(self) -> int:
        """How many there are."""
        return self.first_vector.size - 1

    def vectors(self, passage: int) -> tuple[Floats32, Integers]:
        """Those of a passage, and which tokens of its text they are of."""
        number = int(np.searchsorted(self.first_passage_of_piece, passage, "right")) - 1
        first, end = (self.first_vector[passage : passage + 2] - self.first_of_piece[number]).tolist()
        piece = self.pieces[number]
        return self.codebook.unpack(piece.rows[first:end]), piece.position[first:end].astype(np.int64)
