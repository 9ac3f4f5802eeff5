"""Unpack packed vectors, and find the best product of a query token with the vectors of each passage.

An array `rows` has one packed vector per row. A packed vector begins with a head: nothing (float16 values), two bytes
for a scale (int8 values), or two bytes for the number of a centroid and two bytes for a scale (residuals of two bits).
Products are computed from the values after the head. Centroid and scale are applied to each product instead of to each
value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perikope.core.arrays import Bytes, Floats32, Integers, Unsigned16, Unsigned32
from perikope.kernels.jit import kernel

PLAIN, SCALED, CENTRED = 0, 2, 4
"""Length of the head in bytes: of packed vectors in float16, in int8, and with a centroid."""


@kernel
def unpack_residuals(rows: Bytes, values_of_byte: NDArray[np.complex128], vectors: NDArray[np.complex128]) -> None:
    """Unpack residuals of two bits, four per byte, into `vectors`, without scale and centroid.

    `values_of_byte` has the four float32 values of each byte. Four floats are 16 bytes, and are copied as one complex
    number, which is faster.
    """
    for i in range(rows.shape[0]):
        for b in range(rows.shape[1] - CENTRED):
            vectors[i, b] = values_of_byte[rows[i, CENTRED + b]]


@kernel
def unpack_integers(rows: Bytes, vectors: Floats32) -> None:
    """Unpack int8 values into `vectors`, without the scale."""
    for i in range(rows.shape[0]):
        for d in range(rows.shape[1] - SCALED):
            vectors[i, d] = np.float32(np.int8(rows[i, SCALED + d]))


@kernel
def unpack_halves(rows: Unsigned16, bits: Unsigned32, vectors: Floats32) -> None:
    """Unpack float16 values into `vectors`; `bits` is the same memory as 32-bit integers.

    The bits of a float16, moved to their places in a float32, are the value divided by 2^112. The exponent of infinity
    and NaN becomes that of a float32. Both loops are vectorised, which is twice as fast as a table of all values.
    """
    factor = np.float32(2.0**112)
    for i in range(rows.shape[0]):
        for d in range(rows.shape[1]):
            half = np.uint32(rows[i, d])
            sign, rest = (half & np.uint32(0x8000)) << np.uint32(16), (half & np.uint32(0x7FFF)) << np.uint32(13)
            infinite = np.uint32(0x7F800000) if rest >= np.uint32(0x0F800000) else np.uint32(0)
            bits[i, d] = sign | rest | infinite
        for d in range(rows.shape[1]):
            vectors[i, d] = vectors[i, d] * factor


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
    """Raise `best` to the products of query tokens with packed vectors; False if one of them has an unknown centroid.

    `best` has shape (passages, query tokens). `products` has shape (vectors, query tokens): the products with the
    values of the packed vectors `rows`, without centroid and scale. `passage_of_row` has the passage of each packed
    vector. `head` is `PLAIN`, `SCALED` or `CENTRED`. `of_centroid` has shape
    (centroids, query tokens): the products with the centroids. `halves` has the factor that each of the 65,536 bit
    patterns of a scale stands for.
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
    """Raise `best` to the products of query tokens with the centroids of packed vectors, without unpacking these.

    The parameters are as in `best_products`. Returns False if a packed vector has an unknown centroid.
    """
    for i in range(rows.shape[0]):
        passage = passage_of_row[i]
        centroid = np.int64(rows[i, 0]) | np.int64(rows[i, 1]) << 8
        if centroid >= of_centroid.shape[0]:
            return False
        for t in range(of_centroid.shape[1]):
            best[passage, t] = max(best[passage, t], of_centroid[centroid, t])
    return True
