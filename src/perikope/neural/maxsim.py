"""How alike a query and packed passages are: `Σ_i max_j E_q_i · E_p_j`, a block of vectors at a time.

A block is unpacked into a matrix that stays in the cache, multiplied with the query by BLAS, and reduced to the best of each passage. What
a row has for all of its values (scale, centroid) is put into the products, which are fewer than the values. Documents are compared one
by one, so that a score does not depend on which others are looked into.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from perikope.core.arrays import Floats, Floats32, Integers, Mask
from perikope.core.parallel import usable_cores
from perikope.kernels.vectors import best_centroids, best_products
from perikope.neural.stores.codebook import Codebook, CodedDocument, Found, damaged

BLOCK = 512
"""Vectors at a time: at 128 dimensions a quarter of a megabyte."""
_ALONE = 1 << 18
"""Multiplications up to which OpenBLAS takes one thread. With more it takes all, which wait for one another where cores are busy: measured
on two cores with four programs, two seconds became a hundred. Small products are also the faster ones, since nothing is copied."""
_WORTH_A_THREAD = 1 << 15
"""Vectors below which another thread is not worth its start."""


def max_sim(query: Floats32, found: Found, *, threads: int = 0) -> Floats:
    """`Σ_i max_j E_q_i · E_p_j` of a query with each passage; 0 for a passage without a vector.

    Without `threads` all cores are used by the main thread and one by any other: topics that run side by side have one each.
    """
    return _of_pieces(_Comparison(query, found.codebook).vectors, found, threads)


def refined_max_sim(query: Floats32, found: Found, refine: int, *, threads: int = 0) -> tuple[Floats, Mask]:
    """The same for so many passages only, those that are best by the centroids of their vectors; and which these are.

    (PLAID: Santhanam et al. 2022.) The others keep what they have by centroids, but not more than the least of those that were compared.
    With `refine` 0, and where vectors have no centroids, all are compared.
    """
    if not 0 < refine < found.passages or found.codebook.code != "residual":
        return max_sim(query, found, threads=threads), np.ones(found.passages, bool)
    comparison = _Comparison(query, found.codebook)
    rough = _of_pieces(comparison.centroids, found, threads)
    # With all that are equal to the last: the order of documents in the index is history.
    chosen = rough >= np.partition(rough, found.passages - refine)[found.passages - refine]
    pieces = []
    for number, piece in enumerate(found.pieces):
        own = chosen[found.first_passage_of_piece[number] : found.first_passage_of_piece[number + 1]]
        if own.any():
            kept = np.repeat(own, piece.count)
            pieces.append(CodedDocument(piece.rows[kept], piece.position[kept], piece.count[own]))
    exact = _of_pieces(comparison.vectors, Found.of(found.codebook, pieces), threads)
    scores = np.minimum(rough, exact.min())
    scores[chosen] = exact
    return scores, chosen


class _Comparison:
    """A query, ready to be compared with vectors of a code."""

    def __init__(self, query: Floats32, codebook: Codebook) -> None:
        self._codebook = codebook
        self._query = np.ascontiguousarray(query.T, np.float32)
        self._of_centroid = codebook.centroids @ self._query
        fitting = max(_ALONE // (max(self._query.size, 1)), 1)
        self._at_once = min(1 << fitting.bit_length() - 1, BLOCK)

    def vectors(self, piece: CodedDocument) -> Floats:
        """The scores of a document's passages."""
        book, head = self._codebook, self._codebook.head
        passage_of_row, best = self._empty(piece)
        rows = piece.rows
        # As many small matrices, which are multiplied one by one; what is left over in the last is not looked at.
        blocks = np.zeros((-(-BLOCK // self._at_once), self._at_once, book.dimension), np.float32)
        results = np.empty((*blocks.shape[:2], best.shape[1]), np.float32)
        block, products = blocks.reshape(-1, book.dimension), results.reshape(-1, best.shape[1])
        for start in range(0, rows.shape[0], BLOCK):
            own = rows[start : start + BLOCK]
            count = own.shape[0]
            book.unpack_values(own, block[:count])
            used = -(-count // self._at_once)
            np.matmul(blocks[:used], self._query, out=results[:used])
            if not best_products(
                products[:count], own, head, self._of_centroid, book.scale_of_half, passage_of_row[start : start + count], best
            ):
                raise damaged()
        return _summed(best, piece)

    def centroids(self, piece: CodedDocument) -> Floats:
        """The same by centroids alone."""
        passage_of_row, best = self._empty(piece)
        if not best_centroids(piece.rows, self._of_centroid, passage_of_row, best):
            raise damaged()
        return _summed(best, piece)

    def _empty(self, piece: CodedDocument) -> tuple[Integers, Floats32]:
        passage_of_row = np.repeat(np.arange(piece.count.size), piece.count)
        return passage_of_row, np.full((piece.count.size, self._query.shape[1]), -np.inf, np.float32)


def _summed(best: Floats32, piece: CodedDocument) -> Floats:
    scores: Floats = np.where(piece.count > 0, best.sum(axis=1, dtype=np.float64), 0.0)
    if not np.isfinite(scores).all():
        raise damaged()
    return scores


def _of_pieces(compare: Callable[[CodedDocument], Floats], found: Found, threads: int) -> Floats:
    """The scores of all pieces, one after the other."""
    wanted = threads or (usable_cores() if threading.current_thread() is threading.main_thread() else 1)
    wanted = min(wanted, 1 + int(found.first_of_piece[-1]) // _WORTH_A_THREAD)
    if wanted == 1:
        parts = [compare(piece) for piece in found.pieces]
    else:
        with ThreadPoolExecutor(wanted) as pool:
            parts = list(pool.map(compare, found.pieces))
    return np.concatenate([np.zeros(0), *parts])
