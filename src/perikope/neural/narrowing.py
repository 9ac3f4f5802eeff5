"""Find the documents that can be among the nearest to a query, in a store with one vector per passage.

All vectors are compared with the query, batch by batch, or those of the nearest clusters if there are clusters. The
caller then compares the documents that are found here by `max_sim`, as it compares any documents. After a comparison of
all vectors, its result is the same as that of all documents. With clusters, documents can be missed, but there are
never fewer than were asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from perikope.core.arrays import Bytes, Floats, Floats32, Integers, Integers32, Mask
from perikope.index.layout import offsets
from perikope.index.reader import Snapshot
from perikope.neural.maxsim import products
from perikope.neural.stores.batch import Batch
from perikope.neural.stores.clusters import Clusters, covered, packed_bits
from perikope.neural.stores.store import VectorStore

_PIECE = 1 << 15
"""Vectors per piece; a thread compares one piece at a time."""
_GATHERED = 0.25
"""Share of the passages of a batch up to which they are gathered; if more of them are allowed, all are compared."""
_FEW = 4
"""With fewer documents than this per document that is wanted, all are compared."""
_MOST_CLUSTERS = 0.25
"""Share of the clusters above which all vectors are compared instead: in their order, they are read faster."""
_ROUNDS = 3
"""How often more passages are taken from the clusters, if they are of too few documents."""
_MARGIN = 0.25
"""Share of more documents than are wanted that is taken from the clusters, because their codes are rounded."""


def narrowed(snapshot: Snapshot, store: VectorStore, query: Floats32, most: int, allowed: Mask) -> Integers:
    """The numbers of documents that can be among the `most` nearest, in ascending order.

    `query` is (dimension,). `allowed` (documents,) is true for documents that may be found. If the passages of the
    store do not have one vector each, these are all allowed documents.
    """
    numbers = np.flatnonzero(allowed)
    if not all(batch.has_one_vector_each for batch in store.batches):
        return numbers
    places = _Places.of(snapshot, store)
    missing = numbers[places.batch[numbers] < 0]
    if missing.size:
        store.find(snapshot, missing[:1])  # raises the error that names the document
    numbers = numbers[places.passages[numbers] > 0]
    if numbers.size <= most:
        return numbers
    options, clusters = store.cluster_options, store.clusters
    if numbers.size > _FEW * most and clusters is not None and int(places.passages[numbers].sum()) >= options.clusters_from:
        near = _by_clusters(places, clusters, query, most, numbers)
        if near is not None:
            return near
    return _by_all(places, query, most, numbers)


@dataclass(slots=True)
class _Places:
    """Where the passages of the documents of a snapshot are in a store."""

    store: VectorStore
    batch: Integers
    """(documents,) The number of the batch; -1 for a document that is deleted or has no vectors."""
    number: Integers
    """(documents,) The number of the document in its batch."""
    passages: Integers
    """(documents,) The number of passages."""
    document_of_entry: Integers32
    """(vectors in the clusters,) The document of each; -1 for vectors that are not used any more."""
    filtered: tuple[Bytes, Bytes, int] | None = None
    """Documents of the last search with clusters, which flags of vectors they gave, and how many."""

    @classmethod
    def of(cls, snapshot: Snapshot, store: VectorStore) -> _Places:
        """The places of a snapshot, which the store keeps."""
        if snapshot not in store.places:
            store.places[snapshot] = cls._computed(snapshot, store)
        places: _Places = store.places[snapshot]
        return places

    @classmethod
    def _computed(cls, snapshot: Snapshot, store: VectorStore) -> _Places:
        rows = [np.where(segment.alive[:, None], store.rows_of(snapshot, segment), -1) for segment in snapshot.segments]
        batch, number = np.concatenate([np.zeros((0, 2), np.int64), *rows]).T.copy()
        passages = np.zeros(batch.size, np.int64)
        document_of_entry = np.full(sum(store.manifest.clustered.values()), -1, np.int32)
        starts = covered(store.manifest.clustered, store.manifest.files)
        for i, opened in enumerate(store.batches):
            documents = np.flatnonzero(batch == i)
            passages[documents] = np.diff(opened.first_passage)[number[documents]]
            if starts[i] >= 0:
                document_of = np.full(opened.documents, -1, np.int32)
                document_of[number[documents]] = documents
                entries = np.repeat(document_of, np.diff(opened.first_passage))
                document_of_entry[starts[i] : starts[i] + entries.size] = entries
        return cls(store, batch, number, passages, document_of_entry)

    def is_clustered(self, numbers: Integers) -> Mask:
        """Whether the vectors of each of these documents are in the clusters."""
        known = np.array([start >= 0 for start in covered(self.store.manifest.clustered, self.store.manifest.files)], bool)
        return known[self.batch[numbers]]

    def allowed_entries(self, numbers: Integers) -> tuple[Bytes, int]:
        """One bit per vector in the clusters, set for those of these documents, and their number.

        Searches with the same filter follow each other, so the last answer is kept.
        """
        flags = np.zeros(self.batch.size + 1, bool)
        flags[numbers] = True
        documents = packed_bits(flags)
        kept = self.filtered
        if kept is None or not np.array_equal(kept[0], documents):
            allowed = flags[self.document_of_entry]  # -1 is the last flag, which is false
            kept = self.filtered = documents, packed_bits(allowed), int(np.count_nonzero(allowed))
        return kept[1], kept[2]


def _by_all(places: _Places, query: Floats32, most: int, numbers: Integers) -> Integers:
    """The documents that are the nearest or nearly so, after a comparison of all vectors of `numbers`."""
    documents, scores, error = [np.zeros(0, np.int64)], [np.zeros(0)], 0.0
    for i, batch in enumerate(places.store.batches):
        here = numbers[places.batch[numbers] == i]
        if here.size:
            here = here[np.argsort(places.number[here], kind="stable")]
            documents.append(here)
            scores.append(_of_batch(places.store, batch, query, places.number[here]))
            error = max(error, _rounding(query, batch.largest(places.store.codebook)))
    all_documents, all_scores = np.concatenate(documents), np.concatenate(scores)
    if all_scores.size <= most:
        return np.sort(all_documents)
    last = np.partition(all_scores, all_scores.size - most)[all_scores.size - most]
    return np.sort(all_documents[all_scores >= last - 2 * error])


def _rounding(query: Floats32, largest: float) -> float:
    """A limit of the difference of two dot products of a query with the same vector, whose length is at most `largest`.

    Each of them differs from the exact product by less than n · 2^-24 of the product of both lengths, after n products
    and sums (Higham 2002, section 3.1); a few more for scales.
    """
    return (query.size + 8) * 2.0**-23 * float(np.linalg.norm(query)) * largest


def _of_batch(store: VectorStore, batch: Batch, query: Floats32, inside: Integers) -> Floats:
    """The largest dot product of `query` with a passage of each document, by ascending numbers in the batch."""
    rows, first, end = batch.whole(), batch.first_passage[inside], batch.first_passage[inside + 1]
    passages = int((end - first).sum())
    pieces: list[Callable[[], Bytes]]
    if passages <= _GATHERED * rows.shape[0]:
        starts = offsets(end - first)
        chosen = np.arange(passages) + np.repeat(first - starts[:-1], end - first)
        pieces = [partial(_rows, rows, chosen[start : start + _PIECE]) for start in range(0, passages, _PIECE)]
        scores: Floats = np.maximum.reduceat(products(query, store.codebook, pieces), starts[:-1])
        return scores
    pieces = [partial(_rows, rows, slice(start, start + _PIECE)) for start in range(0, rows.shape[0], _PIECE)]
    of_all = np.append(products(query, store.codebook, pieces), -np.inf)
    # Every second limit ends a document, so every second result is of the passages between two documents.
    best: Floats = np.maximum.reduceat(of_all, np.stack([first, end], axis=1).ravel())[::2]
    return best


def _rows(rows: Bytes, chosen: Integers | slice) -> Bytes:
    found: Bytes = rows[chosen]
    return found


def _by_clusters(places: _Places, clusters: Clusters, query: Floats32, most: int, numbers: Integers) -> Integers | None:
    """Documents of the nearest clusters, and those that are in no cluster; None if all documents must be compared."""
    options, clustered = places.store.cluster_options, places.is_clustered(numbers)
    inside, outside = numbers[clustered], numbers[~clustered]
    if inside.size <= _FEW * most:
        return None
    allowed, count = places.allowed_entries(inside)
    # A filter leaves a share of the vectors of each cluster: as many more clusters are read.
    read = math.ceil(options.cluster_share * clusters.count * clusters.vectors / count)
    passages = options.cluster_candidates * most
    for _ in range(_ROUNDS):
        if read > _MOST_CLUSTERS * clusters.count:
            return None
        found = places.document_of_entry[clusters.nearest(query, min(passages, clusters.vectors), read, allowed)]
        documents, rank = np.unique(found[found >= 0], return_index=True)
        if documents.size >= most:
            near = documents[np.argsort(rank)][: most + math.ceil(_MARGIN * most)].astype(np.int64)
            return np.sort(np.concatenate([near, _by_all(places, query, most, outside)]))
        read, passages = 2 * read, 4 * passages
    return None
