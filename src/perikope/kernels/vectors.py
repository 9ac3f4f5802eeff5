"""Packed vectors: unpacked in blocks that stay in the cache, and the best product of each passage.

A row begins with what belongs to all of its values: nothing (plain float16), two bytes of scale (int8), or two bytes
that number a centroid and two of scale (residual). Products are made of what follows; scale and centroid are put in
afterwards, once a product and not once a value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perikope.core.arrays import Bytes, Floats32, Integers, Unsigned16
from perikope.kernels.jit import kernel

PLAIN, SCALED, CENTRED = 0, 2, 4
"""Number of bytes at the head of a row."""


@kernel
def unpack_residuals(rows: Bytes, values_of_byte: NDArray[np.complex128], vectors: NDArray[np.complex128]) -> None:
    """Unpack values of two bits, four per byte.

    Four floats are moved as one value of 16 bytes, which is a complex number.
    """
    for i in range(rows.shape[0]):
        for b in range(rows.shape[1] - CENTRED):
            vectors[i, b] = values_of_byte[rows[i, CENTRED + b]]


@kernel
def unpack_integers(rows: Bytes, vectors: Floats32) -> None:
    """Unpack signed bytes as whole numbers."""
    for i in range(rows.shape[0]):
        for d in range(rows.shape[1] - SCALED):
            vectors[i, d] = np.float32(np.int8(rows[i, SCALED + d]))


@kernel
def unpack_halves(rows: Unsigned16, halves: Floats32, vectors: Floats32) -> None:
    """Unpack float16 values, by a table of all of them."""
    for i in range(rows.shape[0]):
        for d in range(rows.shape[1]):
            vectors[i, d] = halves[rows[i, d]]


@kernel
def best_products(
    products: Floats32,
    rows: Bytes,
    head: int,
    of_centroid: Floats32,
    halves: Floats32,
    passage_of_row: Integers,
    best: Floats32,
) -> bool:
    """Raise `best` (passages, query tokens) to the products of some rows; False where a row names an unknown centroid.

    `of_centroid` has the products of the query with every centroid, `halves` the number that each pattern of float16
    stands for.
    """
    tokens = products.shape[1]
    for i in range(products.shape[0]):
        passage = passage_of_row[i]
        if head == PLAIN:
            for t in range(tokens):
                best[passage, t] = max(best[passage, t], products[i, t])
            continue
        scale = halves[np.uint16(rows[i, head - 2]) | np.uint16(rows[i, head - 1]) << 8]
        if head == SCALED:
            for t in range(tokens):
                best[passage, t] = max(best[passage, t], products[i, t] * scale)
            continue
        centroid = np.int64(rows[i, 0]) | np.int64(rows[i, 1]) << 8
        if centroid >= of_centroid.shape[0]:
            return False
        for t in range(tokens):
            best[passage, t] = max(best[passage, t], (products[i, t] + of_centroid[centroid, t]) * scale)
    return True


@kernel
def best_centroids(
    rows: Bytes,
    of_centroid: Floats32,
    passage_of_row: Integers,
    best: Floats32,
) -> bool:
    """As `best_products`, with centroids instead of vectors: nothing is unpacked."""
    for i in range(rows.shape[0]):
        passage = passage_of_row[i]
        centroid = np.int64(rows[i, 0]) | np.int64(rows[i, 1]) << 8
        if centroid >= of_centroid.shape[0]:
            return False
        for t in range(of_centroid.shape[1]):
            best[passage, t] = max(best[passage, t], of_centroid[centroid, t])
    return True
