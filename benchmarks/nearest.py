"""What fetching by vectors costs, and what clusters lose: `python -m benchmarks nearest`.

An index has ten passages per document, with one vector of 384 values each, in float16. Measured is the whole fetch of
the nearest 10, 100 and 1000 documents, in three ways: document by document (`by document`), as other stores are
searched; all vectors batch by batch (`all`); and by clusters, with several shares of them. Recall is against `all`,
whose documents and scores must be those of `by document`.

Vectors are made from a mixture (`clustered`: 2,000 centres, noise with a falling spectrum), or from real ones (`real`):
the given stores have vectors of passages, and a made one is the normalised sum of a random passage and a random share
of another. A query is of the same mixture, or the sum of a real passage and half of another. CPU time is that of the
process.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import SCRATCH, Table, publish
from perikope.neural import narrowing, nearest
from perikope.neural.models import add_vectors, open_store, set_query_encoder
from perikope.neural.stores.clusters import has_faiss
from perikope.neural.stores.store import VectorStore
from perikope.search.facade import Index

DIMENSION, PASSAGES = 384, 10
CENTRES, QUERIES = 2000, 20
WANTED = (10, 100, 1000)
AT_ONCE = 1 << 16


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def clustered(count: int, seed: int) -> Iterator[np.ndarray]:
    fixed = np.random.default_rng(1)
    centres = unit(fixed.standard_normal((CENTRES, DIMENSION)))
    spectrum = (np.arange(1, DIMENSION + 1) ** -0.5).astype(np.float32)
    spectrum /= np.linalg.norm(spectrum)
    turned = np.linalg.qr(fixed.standard_normal((DIMENSION, DIMENSION)))[0].astype(np.float32)
    generator = np.random.default_rng(seed)
    for start in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - start)
        noise = (generator.standard_normal((size, DIMENSION), np.float32) * spectrum) @ turned
        yield unit(centres[generator.integers(0, CENTRES, size)] + noise)


def real(stores: Sequence[Path], count: int, seed: int) -> Iterator[np.ndarray]:
    vectors = []
    for folder in stores:
        store = VectorStore(folder)
        vectors += [store.codebook.unpack(batch.whole()) for batch in store.batches]
    known = np.concatenate(vectors)
    generator = np.random.default_rng(seed)
    if count <= known.shape[0]:
        yield known[generator.permutation(known.shape[0])[:count]]
        return
    yield known
    for start in range(known.shape[0], count, AT_ONCE):
        size = min(AT_ONCE, count - start)
        one, other = (known[generator.integers(0, known.shape[0], size)] for _ in range(2))
        yield unit(one + generator.uniform(0, 1, (size, 1)).astype(np.float32) * other)


def made_index(folder: Path, made: Iterator[np.ndarray], count: int) -> tuple[Index, float]:
    """The index with its vectors, and the CPU seconds that clusters took."""
    vectors = np.lib.format.open_memmap(folder.with_suffix(".npy"), "w+", np.float16, (count, DIMENSION))
    first = 0
    for block in made:
        vectors[first : first + block.shape[0]] = block
        first += block.shape[0]
    index = Index.create(folder)
    per_document = min(PASSAGES, max(count // 10_000, 1))
    for start in range(0, count, per_document):
        passages = [{"id": f"p{number}", "text": f"v{number}"} for number in range(start, min(start + per_document, count))]
        index.add([{"id": f"d{start}", "passages": passages}])
    index.commit()

    def encode(texts: Sequence[str]) -> np.ndarray:
        return vectors[[int(text.rpartition("v")[2]) for text in texts]].astype(np.float32)

    add_vectors(index, "own", encode, lambda text: np.zeros(DIMENSION), DIMENSION, clusters={"clusters_from": 1 << 40})
    started = time.process_time()
    add_vectors(index, "own", encode, lambda text: np.zeros(DIMENSION), DIMENSION, clusters={"clusters_from": 1})
    return index, time.process_time() - started


def fetched(index: Index, queries: np.ndarray, most: int) -> tuple[list[list[int]], list[list[float]], float]:
    """The documents and scores of each query, and CPU seconds per query."""
    documents, scores = [], []
    allowed = np.ones(int(index.snapshot.first_document[-1]), bool)
    current = [queries[0]]
    set_query_encoder(index, "own", lambda text: current[0])
    nearest.nearest(index.snapshot, "warm", "own", most, allowed)
    seconds = 0.0
    for query in queries:
        current[0] = query
        started = time.process_time()
        found = nearest.nearest(index.snapshot, "q", "own", most, allowed)
        seconds += time.process_time() - started
        documents.append(found.documents.tolist())
        scores.append(found.scores.tolist())
    return documents, scores, seconds / len(queries)


def measured(table: Table, label: str, index: Index, built: float, queries: np.ndarray, shares: Sequence[float], slow: int) -> None:
    narrowed, by_clusters = narrowing.narrowed, narrowing._by_clusters
    store = open_store(index.snapshot, "own", "own")
    count = store.tokens

    def row(name: str, recall: Sequence[float], seconds: Sequence[float], note: str) -> None:
        cells = (
            [f"{value:.3f}" for value in recall]
            + [f"{1000 * value:,.1f}" for value in seconds]
            + [f"{1 / value:,.0f}" for value in seconds]
        )
        table.rows.append([label, f"{count:,}", name, *cells, note])

    nearest.narrowed = lambda snapshot, store, query, most, allowed: np.flatnonzero(allowed)
    before = [fetched(index, queries[:slow], most) for most in WANTED]
    row("by document", [1.0] * 3, [result[2] for result in before], "")
    nearest.narrowed = narrowed
    narrowing._by_clusters = lambda *arguments: None
    exact = [fetched(index, queries, most) for most in WANTED]
    for slowly, result in zip(before, exact, strict=True):
        assert (slowly[0], slowly[1]) == (result[0][:slow], result[1][:slow])
    row("all", [1.0] * 3, [result[2] for result in exact], f"{store.bytes_per_token * count / 1e6:,.0f} MB mapped")
    narrowing._by_clusters = by_clusters
    if not has_faiss():
        return
    size = sum((store.folder / name).stat().st_size for name in store.manifest.cluster_files)
    for share in shares:
        fell_back = []

        def counting(*arguments, fell_back=fell_back):
            found = by_clusters(*arguments)
            fell_back.append(found is None)
            return found

        narrowing._by_clusters = counting
        object.__setattr__(store.manifest, "cluster_options", {"clusters_from": 1, "cluster_share": share})
        results = [fetched(index, queries, most) for most in WANTED]
        narrowing._by_clusters = by_clusters
        recall = [
            float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(result[0], right[0], strict=True)]))
            for result, right in zip(results, exact, strict=True)
        ]
        note = f"{size / 1e6:,.0f} MB mapped, made in {built:,.0f} s of CPU"
        row(
            f"clusters, share {share:g}",
            recall,
            [result[2] for result in results],
            note + (f"; {sum(fell_back)} compared all" if any(fell_back) else ""),
        )


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks nearest", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--counts", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.01, 0.02, 0.05, 0.1])
    parser.add_argument("--stores", nargs="*", type=Path, default=[], help="Folders of stores with real vectors.")
    parser.add_argument("--only", choices=["clustered", "real"])
    parser.add_argument("--slow", type=int, default=2, help="Queries that are compared document by document.")
    parser.add_argument("--markdown", metavar="FILE")
    options = parser.parse_args(arguments)
    columns = (
        "vectors", "number", "how", *(f"recall@{most}" for most in WANTED), *(f"ms at {most}" for most in WANTED),
        *(f"queries/s at {most}" for most in WANTED), "memory",
    )  # fmt: skip
    table = Table(f"The nearest documents, {QUERIES} queries, {DIMENSION} values", columns)
    for count in options.counts:
        for label in ("clustered", "real"):
            if (options.only or label) != label or (label == "real" and not options.stores):
                continue
            make = (lambda count, seed: real(options.stores, count, seed)) if label == "real" else clustered
            folder = SCRATCH / f"nearest-{label}-{count}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.parent.mkdir(exist_ok=True)
            index, built = made_index(folder, make(count, 2), count)
            queries = np.concatenate(list(make(QUERIES, 3)))[:QUERIES] if label == "clustered" else mixed(options.stores, QUERIES)
            measured(table, label, index, built, queries, options.shares, options.slow)
            print(table.text(), f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            folder.with_suffix(".npy").unlink()
    publish([table], options.markdown)


def mixed(stores: Sequence[Path], count: int) -> np.ndarray:
    """Queries between two real passages, which are in no index."""
    known = np.concatenate(list(real(stores, count, 5)))
    return unit(known + 0.5 * np.roll(known, 1, axis=0))[:count]


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
