"""What re-ranking by stored vectors costs: `python -m benchmarks neural`.

Measured is MaxSim of a query with all passages of 1,000 documents (68 passages of 100 tokens at 128 dimensions, 6.8
million vectors), for each code that vectors are stored in, on one thread and on two, and its parts. The vectors are
random, which does not change the time; those of a hundred documents are repeated ten times, more than any cache holds.
Milliseconds are CPU time of the thread, or wall-clock time with two threads, each the minimum of several rounds,
because the machine may be busy. The loss of each code, and of comparing only the passages that are best by centroids,
is measured on real vectors: see docs/neural.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.common import Table, publish, timed
from perikope.kernels.vectors import best_products
from perikope.neural.maxsim import BLOCK, max_sim, refined_max_sim
from perikope.neural.stores.codebook import CODES, Codebook, CodedDocument, PackedVectors

DOCUMENTS, PASSAGES, TOKENS, DIMENSION = 1000, 68, 100, 128
DIFFERENT = 100
CENTROIDS = 8192
QUERIES = (10, 32)
REFINE = 1000


def unit(generator: np.random.Generator, count: int) -> np.ndarray:
    vectors = generator.standard_normal((count, DIMENSION), np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def synthetic(code: str) -> PackedVectors:
    """Documents as they are found in a store."""
    generator = np.random.default_rng(1)
    book = Codebook.fit(code, DIMENSION, unit(generator, 256))
    if code == "residual":
        book = replace(book, centroids=unit(generator, CENTROIDS))
    count = np.full(PASSAGES, TOKENS, np.uint16)
    position = np.tile(np.arange(TOKENS, dtype=np.uint16), PASSAGES)
    pieces = []
    for _ in range(DIFFERENT):
        rows = book.pack(unit(generator, PASSAGES * TOKENS)) if code != "residual" else residual_rows(generator, book)
        rows.setflags(write=False)  # as what is mapped from a file
        pieces.append(CodedDocument(rows, position, count))
    return PackedVectors.of(book, pieces * (DOCUMENTS // DIFFERENT))


def residual_rows(generator: np.random.Generator, book: Codebook) -> np.ndarray:
    """Rows drawn directly: to find the nearest of so many centroids takes minutes."""
    rows = generator.integers(0, 256, (PASSAGES * TOKENS, book.bytes_per_vector), np.uint8)
    rows[:, :2] = generator.integers(0, CENTROIDS, PASSAGES * TOKENS).astype("<u2")[:, None].view(np.uint8)
    rows[:, 2:4] = np.ones((PASSAGES * TOKENS, 1), "<f2").view(np.uint8)
    return rows


def cpu(action, rounds: int) -> float:
    """Least CPU seconds of this thread over some rounds."""
    best = float("inf")
    for _ in range(rounds):
        started = time.thread_time()
        action()
        best = min(best, time.thread_time() - started)
    return best


def milliseconds(action, rounds: int) -> str:
    return f"{1000 * cpu(action, rounds):,.0f}"


def parts(found: PackedVectors, query: np.ndarray, rounds: int) -> list[str]:
    """Unpacking, products and the best of each passage, each alone, over as many vectors on one thread."""
    book, times = found.codebook, int(found.first_vector_of_document[-1]) // BLOCK
    block, transposed = np.empty((BLOCK, DIMENSION), np.float32), np.ascontiguousarray(query.T)
    products, of_centroid = np.empty((BLOCK, query.shape[0]), np.float32), book.centroids @ transposed
    passage, best = np.repeat(np.arange(PASSAGES), TOKENS)[:BLOCK], np.full((PASSAGES, query.shape[0]), -np.inf, np.float32)
    small = block.reshape(-1, 64, DIMENSION)
    starts = (0, BLOCK, 2 * BLOCK)
    everything = [piece.rows[first : first + BLOCK] for piece in found.documents[:DIFFERENT] for first in starts]

    def over(action):
        return lambda: [action(everything[i % len(everything)]) for i in range(times)]

    return [
        milliseconds(over(lambda rows: book.unpack_values(rows, block)), rounds),
        milliseconds(over(lambda rows: np.matmul(small, transposed, out=products.reshape(*small.shape[:2], -1))), rounds),
        milliseconds(over(lambda rows: best_products(products, rows, book.head, of_centroid, book.scale_of_half, passage, best)), rounds),
    ]


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks neural", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--codes", nargs="+", choices=CODES, default=CODES, metavar="CODE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--markdown", metavar="FILE")
    options = parser.parse_args(arguments)
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        # Threads are counted here, so BLAS must have one; it reads this when numpy is loaded.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([sys.executable, "-m", "benchmarks.neural", *arguments], env=environment, check=True)
        return
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)
    vectors = DOCUMENTS * PASSAGES * TOKENS
    columns = (
        "code",
        "bytes per passage",
        "query tokens",
        "one thread",
        "two",
        "ns a vector",
        "unpack",
        "product",
        "best",
        f"refine {REFINE}",
    )
    table = Table(f"Re-ranking {DOCUMENTS * PASSAGES:,} passages, {vectors:,} vectors: milliseconds", columns)
    for code in options.codes:
        found = synthetic(code)
        for asked in QUERIES:
            query = unit(np.random.default_rng(asked), asked)
            seconds = cpu(lambda query=query, found=found: max_sim(query, found, threads=1), options.rounds)
            refined = "–"
            if code == "residual":
                refined = milliseconds(lambda query=query, found=found: refined_max_sim(query, found, REFINE, threads=1), options.rounds)
            table.rows.append([
                code, str(TOKENS * found.codebook.bytes_per_vector), str(asked), f"{1000 * seconds:,.0f}",
                f"{1000 * timed(lambda query=query, found=found: max_sim(query, found, threads=2), options.rounds)[0]:,.0f}",
                f"{1e9 * seconds / vectors:.0f}", *parts(found, query, options.rounds), refined,
            ])  # fmt: skip
    table.notes.append(f"`refine {REFINE}`: one thread, so many passages compared by vectors, all others by their centroids alone.")
    publish([table], options.markdown)


if __name__ == "__main__":
    main(sys.argv[1:])
