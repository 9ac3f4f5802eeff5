"""Whether a cluster writes the runs of a single index, and what a query sends: `python -m benchmarks cluster`.

Each collection is indexed once and divided among shards. Every topic is searched in the index and in the cluster, whose
shards answer in this process; all messages are pickled, as between machines. Runs are compared byte by byte. Columns
give questions in sequence (rounds), messages and bytes per query, and the CPU time of a query as a multiple of that in
the index, both measured in turns. The program ends with 1 if a run differs.

Collections are folders of $PERIKOPE_SHARED_DATA or ../shared/data with documents.jsonl or documents.jsonl.gz and TSV
topics.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.cluster import coordinator

from benchmarks.common import Table, publish, shared_data
from perikope.cluster.building import cluster_from
from perikope.evaluation.io.runs import write_run
from perikope.evaluation.io.topics import read_topics
from perikope.search.facade import Index

COLLECTIONS = ("conditionalqa", "evidence-inference", "obliqa")
SEARCHES: dict[str, dict[str, Any]] = {
    "coverage": {"model": "coverage"},
    "bm25": {"model": "bm25"},
    "qsf_section": {"model": "qsf_section"},
    "plm": {"model": "plm"},
    "bo1": {"model": "bm25", "expand": "bo1"},
    "rm3 of passages": {"model": "qsf_v_title", "browse_expand": "rm3"},
    "100 documents": {"model": "coverage", "documents": 100},
    "lm, one per document": {"model": "lm", "fetch": "lm", "one_per": ("document",)},
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collections", nargs="*", default=COLLECTIONS, help="names of folders")
    parser.add_argument("--shards", nargs="*", type=int, default=[1, 3, 7], help="numbers of shards")
    parser.add_argument("--topics", type=int, default=0, help="number of topics; 0 for all")
    parser.add_argument("--markdown", help="add the table to this file")
    options = parser.parse_args(arguments)
    rows, different = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.collections:
            whole, topics = _indexed(name, Path(scratch)), _topics(name)[: options.topics or None]
            for shards in options.shards:
                folder = Path(scratch) / f"{name}-{shards}"
                cluster_from(str(whole.folder), str(folder), shards)
                divided = coordinator(folder)
                for label, search in SEARCHES.items():
                    found = compare(whole, divided, topics, search, Path(scratch))
                    different += not found.same
                    counted = f"{found.rounds:.1f}", f"{found.messages:.1f}", f"{found.sent / 1e3:.0f}", f"{found.received / 1e3:.0f}"
                    ratio = f"{found.seconds[1] / found.seconds[0]:.2f}"
                    rows.append([name, str(shards), label, str(len(topics)), "yes" if found.same else "NO", *counted, ratio])
                    print(*rows[-1], sep="\t", flush=True)
    columns = ["collection", "shards", "search", "topics", "same bytes", "rounds", "messages", "KB sent", "KB received", "CPU time"]
    publish([Table("A cluster and a single index", columns, rows)], options.markdown)
    sys.exit(1 if different else 0)


def _indexed(name: str, scratch: Path) -> Index:
    from perikope.build.indexing import build

    [documents] = (shared_data() / name).glob("documents.jsonl*")
    build(str(scratch / name), [str(documents)])
    return Index.open(scratch / name)


def _topics(name: str) -> list[Any]:
    folder = shared_data() / name
    path = next(path for path in sorted(folder.glob("*topics*.tsv")) if "train" not in path.name)
    return list(read_topics(path))


@dataclass(frozen=True, slots=True)
class Compared:
    """What a search cost in an index and in a cluster, and whether both runs have the same bytes."""

    same: bool
    seconds: tuple[float, float]
    """CPU seconds of all topics in the index, and in the cluster with all shards."""
    rounds: float
    """Questions in sequence per query; then messages, and bytes of questions and answers."""
    messages: float
    sent: float
    received: float


def compare(whole: Index, divided: Index, topics: list[Any], search: dict[str, Any], scratch: Path) -> Compared:
    """Search in an index and in a cluster whose shards answer in this process, in turns."""
    shards: Any = divided.snapshot._shards  # type: ignore[attr-defined]
    seconds = [0.0, 0.0]
    rankings: list[list[Any]] = [[], []]
    for index in (whole, divided):
        index.search(topics[0], k=1000, **search).names()  # kernels are loaded, and statistics gathered
    before = shards.rounds, shards.messages, shards.sent, shards.received
    for topic in topics:
        for i, index in enumerate((whole, divided)):
            began = time.process_time()
            names = index.search(topic, k=1000, **search).names()
            seconds[i] += time.process_time() - began
            rankings[i].append((topic.qid, names))
    after = shards.rounds, shards.messages, shards.sent, shards.received
    runs = [scratch / f"{i}.run" for i in range(2)]
    for path, ranking in zip(runs, rankings, strict=True):
        write_run(path, ranking)
    # Names with scores are compared as well, since a run has rounded scores.
    same = runs[0].read_bytes() == runs[1].read_bytes() and rankings[0] == rankings[1]
    counted = ((last - first) / len(topics) for first, last in zip(before, after, strict=True))
    return Compared(same, (seconds[0], seconds[1]), *counted)


if __name__ == "__main__":
    main()
