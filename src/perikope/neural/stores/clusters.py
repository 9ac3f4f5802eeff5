"""Clusters of the vectors of a store, by which a search finds the nearest without comparing all of them.

The vectors are divided by the nearest of some centres (k-means). A search reads the clusters whose centres are nearest
to the query, and compares their vectors in 8 bits per value. What it finds are candidates: they are compared again by
the vectors of the store, so every score is exact, and only a document of a cluster that was not read can be missed.

    centres.npy   (clusters, dimension)  the centres
    sizes.npy     (clusters,)            the number of vectors per cluster
    ranges.npy    (2 · dimension,)       the smallest value of each dimension, then the width of its range
    entries.npy   bytes per cluster: the codes of its vectors, then their numbers as int64; both have room for a
                  number of vectors that is a multiple of eight, so that numbers are aligned

Faiss computes the clusters and searches them (Douze et al. 2024, an inverted file with a scalar quantiser). It never
parses a file: we read and check the arrays, and give it the mapped entries with the place and size of each cluster.
Codes may have any value, and numbers are compared with the number of vectors, so that no content of the entries can
make it read outside of them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perikope.core.array_files import RowWriter, StoredArray, save_array
from perikope.core.arrays import Bytes, Floats32, Integers, Mask
from perikope.core.errors import MissingExtra
from perikope.index.layout import offsets
from perikope.neural.stores.cluster_options import CLUSTER_FILES, ClusterOptions
from perikope.neural.stores.codebook import Codebook, damaged
from perikope.neural.stores.manifest import VECTORS

if TYPE_CHECKING:
    from perikope.neural.stores.store import VectorStore

EXTRA = "nearest"
"""The extra that installs faiss."""
CENTRES_FILE, SIZES_FILE, RANGES_FILE, ENTRIES_FILE = CLUSTER_FILES
_ID_BYTES = 8
"""Bytes of the number of a vector; the room of a cluster is a multiple of as many vectors."""
_SAMPLED = 32
"""Vectors per cluster that the centres are computed from."""
_ROUNDS = 8
"""Iterations of k-means."""
_AT_ONCE = 1 << 13
"""Vectors that are unpacked and assigned together."""
_HASHED = 1 << 24
_SEED = 1
_STALE = 0.2
"""Share of vectors from which clusters are made again. Until then, vectors that are in none are all compared."""


def has_faiss() -> bool:
    """Whether clusters can be made and searched."""
    return find_spec("faiss") is not None


@cache
def _faiss() -> Any:
    if not has_faiss():
        raise MissingExtra("faiss", EXTRA)
    import faiss

    return faiss


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let faiss use `count` threads in the calling thread; in forked processes, more than one would wait forever."""
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


class Clusters:
    """The clusters of an open store. All threads may search them at once."""

    def __init__(self, store: VectorStore) -> None:
        """Read and check the clusters of a store; raises `InputError` if they are damaged."""
        try:
            self._open(store)
        except (OSError, KeyError, ValueError):
            raise damaged(store.folder, "clusters") from None

    def _open(self, store: VectorStore) -> None:
        faiss, inside, dimension = _faiss(), store.manifest.clusters, store.codebook.dimension
        centres: Floats32 = store.checked(f"{inside}/{CENTRES_FILE}", np.float32, (None, dimension))
        sizes: Integers = store.checked(f"{inside}/{SIZES_FILE}", np.int64, (centres.shape[0],))
        ranges: Floats32 = store.checked(f"{inside}/{RANGES_FILE}", np.float32, (2 * dimension,))
        self.count, self.vectors = centres.shape[0], sum(store.manifest.clustered.values())
        right = np.isfinite(centres).all() and np.isfinite(ranges).all() and sizes.size > 0 and (sizes >= 0).all()
        if not right or sizes.max() > self.vectors or sum(sizes.tolist()) != self.vectors:
            raise ValueError("sizes")
        room, name = _room(sizes), f"{inside}/{ENTRIES_FILE}"
        width = dimension + _ID_BYTES
        # The size of the file is compared before faiss maps it.
        StoredArray(store.folder / name, np.uint8, (int(room.sum()), width), mapped=True)
        size = (store.folder / name).stat().st_size
        self._lists = _mapped(store.folder / name, size, dimension, sizes, size - width * (room.sum() - np.cumsum(room) + room))
        if _hash_of_mapped(faiss.rev_swig_ptr(self._lists.ptr, size)) != store.hashes[name]:
            raise ValueError(name)
        self._centres = faiss.IndexFlatIP(dimension)
        self._centres.add(centres)
        self._index = faiss.IndexIVFScalarQuantizer(
            self._centres, dimension, self.count, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT, False
        )
        faiss.copy_array_to_vector(np.ascontiguousarray(ranges), self._index.sq.trained)
        self._index.is_trained = True
        self._index.replace_invlists(self._lists, False)
        self._index.ntotal = self.vectors

    def nearest(self, query: Floats32, most: int, read: int, allowed: Bytes | None) -> Integers:
        """The numbers of at most `most` vectors, those with the largest dot product with `query` (dimension,) first.

        The `read` clusters with the nearest centres are read. `allowed` has one bit per vector, the lowest bit of a
        byte first; None allows all.
        """
        faiss = _faiss()
        selector = {} if allowed is None else {"sel": faiss.IDSelectorBitmap(allowed)}
        with _threads(1):
            _, found = self._index.search(query.reshape(1, -1), most, params=faiss.SearchParametersIVF(nprobe=read, **selector))
        numbers: Integers = found[0]
        return numbers[(numbers >= 0) & (numbers < self.vectors)]


def _room(sizes: Integers) -> Integers:
    """The number of vectors that each cluster has room for."""
    room: Integers = -(-sizes // _ID_BYTES) * _ID_BYTES
    return room


def _mapped(path: Path, size: int, dimension: int, sizes: Integers, starts: Integers) -> Any:
    """The entries of all clusters, as faiss reads them; `starts` (clusters,) has the first byte of each."""
    faiss = _faiss()
    lists = faiss.OnDiskInvertedLists()
    lists.nlist, lists.code_size, lists.filename = sizes.size, dimension, str(path)
    lists.read_only, lists.totsize, lists.prefetch_nthread = True, size, 0
    lists.lists.clear()
    for count, room, start in zip(sizes.tolist(), _room(sizes).tolist(), starts.tolist(), strict=True):
        entry = faiss.OnDiskOneList()
        entry.size, entry.capacity, entry.offset = count, room, start
        lists.lists.push_back(entry)
    try:
        lists.do_mmap()
    except RuntimeError:
        raise ValueError(path.name) from None
    return lists


def _hash_of_mapped(data: Bytes) -> str:
    """The hash of mapped bytes, as `hash_of` computes it for their file."""
    digest = hashlib.blake2b(digest_size=16)
    for start in range(0, data.size, _HASHED):
        digest.update(data[start : start + _HASHED].data)
    return digest.hexdigest()


def packed_bits(allowed: Mask) -> Bytes:
    """The flags of vectors as `Clusters.nearest` takes them."""
    return np.packbits(allowed, bitorder="little")


def write_clusters(codebook: Codebook, batches: Sequence[Bytes], options: ClusterOptions, threads: int, folder: Path) -> None:
    """Compute the clusters of packed vectors, and write them to a new folder.

    `batches` has the packed vectors (vectors, bytes per vector) of each batch. They are numbered through.
    """
    faiss, dimension = _faiss(), codebook.dimension
    vectors = sum(rows.shape[0] for rows in batches)
    count = min(options.clusters or round(4 * math.sqrt(vectors)), vectors)
    with _threads(threads):
        sample = _sample(codebook, batches, min(_SAMPLED * count, vectors))
        means = faiss.Kmeans(
            dimension, count, niter=_ROUNDS, spherical=True, seed=_SEED, min_points_per_centroid=1, max_points_per_centroid=_SAMPLED
        )
        means.train(sample)
        quantiser = faiss.ScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_8bit)
        quantiser.train(sample)
        del sample
        centres = faiss.IndexFlatIP(dimension)
        centres.add(means.centroids)
        codes, cluster = np.empty((vectors, dimension), np.uint8), np.empty(vectors, np.int64)
        for start, block in _blocks(codebook, batches):
            inside = slice(start, start + block.shape[0])
            codes[inside] = quantiser.compute_codes(block)
            cluster[inside] = centres.search(block, 1)[1][:, 0]
    # A vector whose product with every centre is the same may have none.
    sizes = np.bincount(np.maximum(cluster, 0, out=cluster), minlength=count)
    folder.mkdir()
    save_array(folder / CENTRES_FILE, means.centroids)
    save_array(folder / SIZES_FILE, sizes)
    save_array(folder / RANGES_FILE, faiss.vector_to_array(quantiser.trained))
    _write_entries(folder / ENTRIES_FILE, codes, np.argsort(cluster, kind="stable"), sizes)


def _write_entries(path: Path, codes: Bytes, order: Integers, sizes: Integers) -> None:
    """Write codes and numbers of vectors by cluster; `order` (vectors,) has the numbers of vectors in this order."""
    width, first = codes.shape[1] + _ID_BYTES, 0
    with RowWriter(path, width) as writer:
        for size, room in zip(sizes.tolist(), _room(sizes).tolist(), strict=True):
            numbers = order[first : first + size]
            entry = np.zeros(room * width, np.uint8)
            entry[: size * codes.shape[1]] = codes[numbers].ravel()
            entry[room * codes.shape[1] :][: size * _ID_BYTES] = numbers.astype("<i8").view(np.uint8)
            writer.write(entry.reshape(room, width))
            first += size


def _sample(codebook: Codebook, batches: Sequence[Bytes], count: int) -> Floats32:
    """Random vectors (count, dimension)."""
    first = offsets(np.array([rows.shape[0] for rows in batches], np.int64))
    chosen = np.sort(np.random.default_rng(_SEED).choice(int(first[-1]), count, replace=False))
    sample, filled = np.empty((count, codebook.dimension), np.float32), 0
    for number, rows in enumerate(batches):
        inside = chosen[np.searchsorted(chosen, first[number]) : np.searchsorted(chosen, first[number + 1])] - first[number]
        for start in range(0, inside.size, _AT_ONCE):
            piece = inside[start : start + _AT_ONCE]
            sample[filled : filled + piece.size] = codebook.unpack(rows[piece])
            filled += piece.size
    return sample


def _blocks(codebook: Codebook, batches: Sequence[Bytes]) -> Iterator[tuple[int, Floats32]]:
    """The unpacked vectors of all batches in blocks, with the number of the first vector of each block."""
    first = 0
    for rows in batches:
        for start in range(0, rows.shape[0], _AT_ONCE):
            yield first + start, codebook.unpack(rows[start : start + _AT_ONCE])
        first += rows.shape[0]


def can_have_clusters(store: VectorStore, options: ClusterOptions) -> bool:
    """Whether a store has one vector per passage, and as many passages as clusters are made for."""
    is_one_each = store.kind in ("pooled", "own") and all(batch.has_one_vector_each for batch in store.batches)
    return is_one_each and store.tokens >= options.clusters_from


def is_stale(clustered: Mapping[str, int], store: VectorStore) -> bool:
    """Whether too many vectors are not in the clusters, or too many in the clusters are of batches that are gone."""
    held = {batch.name: batch.rows[VECTORS].shape[0] for batch in store.batches}
    used = sum(held[name] for name in clustered if name in held)
    return used < (1 - _STALE) * max(store.tokens, sum(clustered.values()), 1)


def covered(clustered: Mapping[str, int], batches: Sequence[str]) -> list[int]:
    """The number of the first vector of each batch in the clusters; -1 for a batch that they do not have."""
    firsts, first = dict[str, int](), 0
    for name, count in clustered.items():
        firsts[name] = first
        first += count
    return [firsts.get(name, -1) for name in batches]
