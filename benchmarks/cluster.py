"""Whether a cluster writes the runs of a single index, and what a query sends: `python -m benchmarks cluster`.

Each collection is indexed once and divided among shards. Every topic is searched in the index and in the cluster, whose
shards answer in this process; all messages are pickled, as between machines. Runs are compared byte by byte. Columns
give questions in sequence (rounds), messages and bytes per query, and the CPU time of a query as a multiple of that in
the index, both measured in turns. The program ends with 1 if a run differs.

With `--ray`, it measures queries per second and CPU time on actors of Ray instead: one replica per shard, all on one
node on loopback. The index and the clusters take turns: each searches some topics one by one, and others in batches of
64 by `search_many`; then the next round begins, with further topics, since an index keeps the candidates of its last
searches. Columns are medians of the rounds and, in brackets, multiples of the index in the same round. Rankings are
compared here as well. CPU time is that of this process and of all replicas.

Collections are folders of $PERIKOPE_SHARED_DATA or ../shared/data with documents.jsonl or documents.jsonl.gz and TSV
topics.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.support.cluster import coordinator
from tests.support.nodes import nodes

from benchmarks.common import Table, publish, shared_data
from perikope.cluster.building import cluster_from
from perikope.evaluation.io.runs import write_run
from perikope.evaluation.io.topics import read_topics
from perikope.search.facade import Index

COLLECTIONS = ("conditionalqa", "evidence-inference", "obliqa")
BATCH = 64
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
    parser.add_argument("--shards", nargs="*", type=int, help="numbers of shards; default: 1 3 7, with --ray 1 2 4")
    parser.add_argument("--ray", action="store_true", help="measure queries per second on actors of Ray")
    parser.add_argument("--rounds", type=int, default=5, help="with --ray")
    parser.add_argument("--topics", type=int, default=0, help="number of topics; 0 for all, with --ray for 64 per round")
    parser.add_argument("--markdown", help="add the table to this file")
    options = parser.parse_args(arguments)
    if options.ray:
        sys.exit(_on_ray(options.collections, options.shards or [1, 2, 4], options.topics, options.rounds, options.markdown))
    rows, different = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.collections:
            whole, topics = _indexed(name, Path(scratch)), _topics(name)[: options.topics or None]
            for shards in options.shards or [1, 3, 7]:
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


def _topics(name: str, *, train: bool = False) -> list[Any]:
    """The topics of a collection, by default without those that are for training."""
    paths = [path for path in sorted((shared_data() / name).glob("*topics*.tsv")) if train or "train" not in path.name]
    return [topic for path in paths for topic in read_topics(path)]


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


def _on_ray(collections: Sequence[str], numbers: Sequence[int], most: int, rounds: int, markdown: str | None) -> int:
    """Measure clusters on Ray beside the index; returns 1 if a ranking differs."""
    os.environ.setdefault("RAY_worker_niceness", "0")  # otherwise replicas have a lower priority than this process
    tables, different = [], 0
    with tempfile.TemporaryDirectory() as scratch, nodes(1):
        from perikope.cluster import on_ray

        for name in collections:
            whole, topics = _indexed(name, Path(scratch)), _topics(name, train=True)
            count = most or BATCH
            if len(topics) < 2 * count * (rounds + 1):
                raise SystemExit(f"{name} has {len(topics)} topics: too few for {rounds} rounds of {count}")
            systems: dict[str, tuple[Index, list[int]]] = {"index": (whole, [])}
            sent = {"index": ("–", "–")}
            for shards in numbers:
                folder = Path(scratch) / f"{name}-{shards}"
                cluster_from(str(whole.folder), str(folder), shards)
                started = on_ray.start(folder, replicas=1, name=folder.name)
                label = f"{shards} shard{'s' * (shards > 1)}"
                systems[label] = started, _processes(folder.name, shards)
                sent[label] = _bytes_of(folder, topics[:count])
            some = [topics[at : at + 2 * count] for at in range(0, 2 * count * (rounds + 1), 2 * count)]
            speeds = [_take_turns(systems, topics) for topics in some][1:]  # the first loads kernels and statistics
            different += sum(not speed.same for one in speeds for speed in one.values())
            tables.append(_speeds(f"{name}: {rounds} rounds of {count} topics one by one, {count} in batches", sent, speeds))
            for shards in numbers:
                on_ray.stop(f"{name}-{shards}")
    publish(tables, markdown)
    return 1 if different else 0


@dataclass(frozen=True, slots=True)
class Speed:
    """One round of one system: topics per second one by one and in batches, and CPU seconds per topic for both."""

    numbers: tuple[float, float, float, float]
    same: bool


def _take_turns(systems: dict[str, tuple[Index, list[int]]], topics: list[Any]) -> dict[str, Speed]:
    """One round."""
    found: dict[str, Speed] = {}
    expected: list[Any] = []
    half = len(topics) // 2
    for name, (index, processes) in systems.items():
        cpu, began = _cpu(processes), time.perf_counter()
        ranked = [index.search(topic).names() for topic in topics[:half]]
        between, middle = _cpu(processes), time.perf_counter()
        for at in range(half, len(topics), BATCH):
            ranked += [results.names() for _, results in index.search_many(topics[at : at + BATCH])]
        ended, end = _cpu(processes), time.perf_counter()
        expected = expected or ranked
        numbers = half / (middle - began), half / (end - middle), (between - cpu) / half, (ended - between) / half
        found[name] = Speed(numbers, ranked == expected)
    return found


def _bytes_of(folder: Path, topics: list[Any]) -> tuple[str, str]:
    """KB that a search of one topic sends, and receives, by the coordinator whose messages are counted."""
    divided = coordinator(folder)
    divided.search(topics[0]).names()  # statistics are gathered
    shards: Any = divided.snapshot._shards  # type: ignore[attr-defined]
    before = shards.sent, shards.received
    for topic in topics:
        divided.search(topic).names()
    sent, received = (
        f"{(after - first) / len(topics) / 1e3:.0f}" for after, first in zip((shards.sent, shards.received), before, strict=True)
    )
    return sent, received


def _speeds(title: str, sent: dict[str, tuple[str, str]], rounds: list[dict[str, Speed]]) -> Table:
    columns = [
        "",
        "same rankings",
        "queries/s, one by one",
        f"queries/s, batches of {BATCH}",
        "CPU ms, one by one",
        f"CPU ms, batches of {BATCH}",
        "KB sent",
        "received",
    ]
    table = Table(title, columns)
    for name in sent:
        cells = []
        for column in range(4):
            value = median(one[name].numbers[column] for one in rounds)
            ratio = median(one[name].numbers[column] / one["index"].numbers[column] for one in rounds)
            cells.append(f"{value * (1 if column < 2 else 1000):.1f} ({ratio:.2f})")
        table.rows.append([name, "yes" if all(one[name].same for one in rounds) else "NO", *cells, *sent[name]])
    return table


def _processes(name: str, shards: int) -> list[int]:
    """The processes of the replicas of a cluster."""
    import ray

    from perikope.cluster import on_ray
    from perikope.cluster.ray_shards import replica_name

    actors = [ray.get_actor(replica_name(name, shard, 0), namespace=on_ray.NAMESPACE) for shard in range(shards)]
    processes: list[int] = ray.get([actor.__ray_call__.remote(lambda replica: os.getpid()) for actor in actors])
    return processes


def _cpu(processes: list[int]) -> float:
    """Seconds of CPU time of this process and of others."""
    ticks = sum(sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13])) for process in processes)
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
