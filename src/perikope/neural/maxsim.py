"""MaxSim of a query with packed passages: `Σ_i max_j E_q_i · E_p_j`, computed in blocks of vectors.

A block is unpacked into a matrix that stays in the cache, multiplied with the query by BLAS, and reduced to the best
product per passage and query token. The scale and centroid of a vector are applied to its products, because there are
fewer products than values. Documents are compared one by one, so that a score does not depend on other candidates.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from perikope.core.arrays import Bytes, Floats, Floats32, Integers, Mask, Unsigned16
from perikope.core.cores import usable_cores
from perikope.kernels.vectors import best_centroids, best_products
from perikope.neural.stores.codebook import Codebook, CodedDocument, PackedVectors, damaged

T = TypeVar("T")
BLOCK = 512
"""Vectors per block. At 128 dimensions, an unpacked block has 256 KiB."""
_ALONE = 1 << 18
"""Maximum multiplications per matrix product. Up to this size OpenBLAS uses one thread. For larger products OpenBLAS
uses all threads, which wait for one another on busy cores. With four programs on two cores, two seconds became a
hundred. Small products are also faster, because OpenBLAS does not copy their matrices."""
_WORTH_A_THREAD = 1 << 15
"""Minimum vectors per additional thread; with fewer, starting the thread costs more than it saves."""


def max_sim(query: Floats32, packed: PackedVectors, *, threads: int = 0) -> Floats:
    """MaxSim scores (passages,) of `query` (query tokens, dimension) with each passage; 0 for one without vectors.

    `threads` is the maximum number of threads. 0 uses all cores if the main thread calls, and one core if another
    thread calls, because topics that run in parallel have one thread each.
    """
    return _of_documents(_Comparison(query, packed.codebook).vectors, packed, threads)


def refined_max_sim(query: Floats32, packed: PackedVectors, refine: int, *, threads: int = 0) -> tuple[Floats, Mask]:
    """Score all passages by the centroids of their vectors, then the best `refine` of them by the vectors themselves.

    The method is PLAID (Santhanam et al. 2022). `query` is (query tokens, dimension). Returns the scores
    (passages,), and a mask (passages,) that is true for passages scored by vectors. These can be more than `refine` if
    scores by centroids are equal. Other passages keep their score by centroids, limited to the smallest score by
    vectors. All passages are scored by vectors if `refine` is 0, if there are no more than `refine` passages, or if the
    code of the vectors has no centroids.
    """
    if not 0 < refine < packed.passages or packed.codebook.code != "residual":
        return max_sim(query, packed, threads=threads), np.ones(packed.passages, bool)
    comparison = _Comparison(query, packed.codebook)
    rough = _of_documents(comparison.centroids, packed, threads)
    # Passages that tie with the last chosen one are included, because the order of documents in the index is arbitrary.
    chosen = rough >= np.partition(rough, packed.passages - refine)[packed.passages - refine]
    documents = []
    for number, document in enumerate(packed.documents):
        chosen_here = chosen[packed.first_passage_of_document[number] : packed.first_passage_of_document[number + 1]]
        if chosen_here.any():
            rows = np.repeat(chosen_here, document.count)
            documents.append(CodedDocument(document.rows[rows], document.position[rows], document.count[chosen_here]))
    exact = _of_documents(comparison.vectors, PackedVectors.of(packed.codebook, documents), threads)
    scores = np.minimum(rough, exact.min())
    scores[chosen] = exact
    return scores, chosen


def products(query: Floats32, codebook: Codebook, pieces: Sequence[Callable[[], Bytes]], *, threads: int = 0) -> Floats:
    """The dot product of one query vector (dimension,) with each packed vector of all pieces, in their order.

    A piece is a function that returns packed vectors (vectors, bytes per vector), so that few are in memory at a time.
    `threads` is as in `max_sim`. The last bits of a product may differ from those of `max_sim`.
    """
    comparison = _Comparison(query.reshape(1, -1), codebook)

    def compare(piece: Callable[[], Bytes]) -> Floats:
        rows = piece()
        ones: Unsigned16 = np.ones(rows.shape[0], np.uint16)
        return comparison.vectors(CodedDocument(rows, ones, ones))

    return np.concatenate([np.zeros(0), *_in_threads(compare, pieces, _threads(threads))])


class _Comparison:
    """Compares one query with the packed vectors of documents. The query is prepared once."""

    def __init__(self, query: Floats32, codebook: Codebook) -> None:
        """Prepare `query` (query tokens, dimension): its products with all centroids of the codebook are computed."""
        self._codebook = codebook
        self._query = np.ascontiguousarray(query.T, np.float32)
        self._of_centroid = codebook.centroids @ self._query
        fitting = max(_ALONE // (max(self._query.size, 1)), 1)
        self._at_once = min(1 << fitting.bit_length() - 1, BLOCK)
        self._buffers = threading.local()

    def vectors(self, document: CodedDocument) -> Floats:
        """The MaxSim scores (passages,) of a document's passages, computed from their vectors."""
        book, head = self._codebook, self._codebook.head
        passage_of_row, best = self._empty(document)
        rows = document.rows
        # A block is several small matrices, which are multiplied one by one. The last matrix may be partly
        # unused; its other products, of vectors of earlier documents, are ignored.
        blocks, results = self._blocks()
        block, products = blocks.reshape(-1, book.dimension), results.reshape(-1, best.shape[1])
        for start in range(0, rows.shape[0], BLOCK):
            rows_of_block = rows[start : start + BLOCK]
            count = rows_of_block.shape[0]
            book.unpack_values(rows_of_block, block[:count])
            used = -(-count // self._at_once)
            np.matmul(blocks[:used], self._query, out=results[:used])
            if not best_products(
                products[:count], rows_of_block, head, self._of_centroid, book.scale_of_half, passage_of_row[start : start + count], best
            ):
                raise damaged()
        return _summed(best, document)

    def _blocks(self) -> tuple[Floats32, Floats32]:
        """A block of unpacked vectors and one of products, both as small matrices; each thread has its own."""
        if not hasattr(self._buffers, "blocks"):
            shape = (-(-BLOCK // self._at_once), self._at_once)
            vectors = np.zeros((*shape, self._codebook.dimension), np.float32)
            self._buffers.blocks = vectors, np.empty((*shape, self._query.shape[1]), np.float32)
        blocks: tuple[Floats32, Floats32] = self._buffers.blocks
        return blocks

    def centroids(self, document: CodedDocument) -> Floats:
        """The MaxSim scores (passages,) of a document's passages, with each vector replaced by its centroid."""
        passage_of_row, best = self._empty(document)
        if not best_centroids(document.rows, self._of_centroid, passage_of_row, best):
            raise damaged()
        return _summed(best, document)

    def _empty(self, document: CodedDocument) -> tuple[Integers, Floats32]:
        """The passage of each packed vector (vectors,), and an array for the best products (passages, query tokens).

        Passages are numbered in the document. The best products start at -inf.
        """
        passage_of_row = np.repeat(np.arange(document.count.size), document.count)
        return passage_of_row, np.full((document.count.size, self._query.shape[1]), -np.inf, np.float32)


def _summed(best: Floats32, document: CodedDocument) -> Floats:
    """The scores (passages,): sums of `best` (passages, query tokens) over query tokens.

    The score of a passage without vectors is 0. Raises an error if a score is not finite, because the store is then
    damaged.
    """
    scores: Floats = np.where(document.count > 0, best.sum(axis=1, dtype=np.float64), 0.0)
    if not np.isfinite(scores).all():
        raise damaged()
    return scores


def _of_documents(compare: Callable[[CodedDocument], Floats], packed: PackedVectors, threads: int) -> Floats:
    """The scores (passages,) of all passages: `compare` is called per document, in several threads if that pays off."""
    workers = min(_threads(threads), 1 + int(packed.first_vector_of_document[-1]) // _WORTH_A_THREAD)
    return np.concatenate([np.zeros(0), *_in_threads(compare, packed.documents, workers)])


def _threads(threads: int) -> int:
    return threads or (usable_cores() if threading.current_thread() is threading.main_thread() else 1)


def _in_threads(compare: Callable[[T], Floats], items: Sequence[T], workers: int) -> list[Floats]:
    if workers == 1 or len(items) < 2:
        return [compare(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(compare, items))
