"""How a cluster and a single index grow with the collection: `python -m benchmarks growth`.

Synthetic documents are as long as patents (6,150 words each; 2.6 million of them have 16 billion). For each number of
documents, an index and a cluster are built by the command, each in a process of its own, and the same queries are
searched in both. Shards answer in this process, and all messages are pickled, as between machines. CPU times of queries
are measured in turns; those of the cluster are the sum over coordinator and shards. All answers are compared.

Needs per million words about 5 MB of text in .bench, and 6 MB for each of index and cluster while it runs.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.cluster import coordinator

from benchmarks import measure
from benchmarks.cluster import compare
from benchmarks.common import ROOT, SCRATCH, Table, folder_bytes, megabytes, publish
from benchmarks.synthetic import STOP_WORDS, Collection, vocabulary, weights
from perikope.query.topic import Topic
from perikope.search.facade import Index

PATENTS, TOKENS = 2_600_000, 6_150
SHARES = (100, 50, 20)
"""The sizes that are measured, as parts of the whole."""
SEARCHES: dict[str, dict[str, Any]] = {"default": {}, "100 documents": {"documents": 100}, "bm25": {"model": "bm25"}}
WORDS = 4
COLUMNS = (
    "documents", "passages", "search", "same answers", "index: build CPU s", "cluster: build CPU s", "index MB", "cluster MB",
    "index: CPU ms per query", "cluster: CPU ms per query", "ratio", "KB sent", "KB received",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[PATENTS // share for share in SHARES])
    parser.add_argument("--tokens", type=int, default=TOKENS, help="words per document")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--markdown", help="add the table to this file")
    options = parser.parse_args(arguments)
    table, different = Table(f"Growth of an index and of a cluster of {options.shards} shards", COLUMNS), 0
    topics = queries(options.queries)
    for documents in options.documents:
        source = Collection(documents, options.tokens).file(SCRATCH)
        with tempfile.TemporaryDirectory(dir=SCRATCH) as scratch:
            rows, same = measured(source, Path(scratch), options.shards, topics)
        different += not same
        table.rows += rows
        for row in rows:
            print(*row, sep="\t", flush=True)
    table.notes.append(f"{options.tokens} words per document, {options.queries} queries of {WORDS} words, {options.shards} shards")
    publish([table], options.markdown)
    sys.exit(1 if different else 0)


def queries(count: int) -> list[Topic]:
    """Queries of words drawn as the collection draws them, without its stop words."""
    chance, share = np.random.default_rng(1), weights()[len(STOP_WORDS) :]
    drawn = chance.choice(vocabulary()[len(STOP_WORDS) :], (count, WORDS), p=share / share.sum())
    return [Topic(f"q{number}", " ".join(words)) for number, words in enumerate(drawn.tolist())]


def measured(source: Path, scratch: Path, shards: int, topics: list[Topic]) -> tuple[list[list[str]], bool]:
    """The rows of one collection, and whether all answers were the same."""
    index, cluster = scratch / "index", scratch / "cluster"
    built = [
        build("index", str(source), "--to", str(index)),
        build("cluster", "build", str(source), "--to", str(cluster), "--shards", str(shards)),
    ]
    whole, divided, rows, all_same = Index.open(index), coordinator(cluster), [], True
    for label, search in SEARCHES.items():
        found = compare(whole, divided, topics, search, scratch)
        all_same &= found.same
        milliseconds = [1000 * seconds / len(topics) for seconds in found.seconds]
        rows.append(
            [
                str(len(whole)), str(whole.passages), label, "yes" if found.same else "NO", *(f"{one:.0f}" for one in built),
                *(megabytes(folder_bytes(folder)) for folder in (index, cluster)), *(f"{one:.1f}" for one in milliseconds),
                f"{milliseconds[1] / milliseconds[0]:.2f}", f"{found.sent / 1e3:.0f}", f"{found.received / 1e3:.0f}",
            ]
        )  # fmt: skip
    whole.close()
    divided.close()
    shutil.rmtree(index)
    shutil.rmtree(cluster)
    return rows, all_same


def build(*command: str) -> float:
    """The CPU seconds of a command of perikope."""
    result = measure.run([sys.executable, "-m", "perikope", *command], cwd=ROOT)
    if result.problem:
        raise SystemExit(f"{' '.join(command)}: {result.problem}")
    return result.cpu


if __name__ == "__main__":
    main()
