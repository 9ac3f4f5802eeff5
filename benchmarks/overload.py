"""`perikope cluster serve` at twice the rate that it sustains: `python -m benchmarks overload`.

A collection is divided among shards with two replicas each, on one simulated node of Ray on loopback. The rate that the
server sustains is measured in a closed loop. Then requests come by a Poisson process: at 70 % of this rate, at twice
this rate, and at once at 70 % again. The load generator and Ray run on the same cores as the server.

The program ends with 1 unless, under overload, every request is answered with hits or refused with 503 and Retry-After,
within the time limit of requests; unless none is refused afterwards; and unless the answers are those of the index.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from tests.support.nodes import nodes

from benchmarks.common import SCRATCH, Table, publish, shared_data
from benchmarks.serving import K, load, milliseconds, queries_of, running

NAME = "overload"
TIMEOUT = 10.0
"""Seconds of a request, by default of the server."""
EASY, TWICE = 0.7, 2.0
"""Rates, as multiples of the sustained rate."""
CLOSED = 16
"""Clients of the closed loop."""
COLUMNS = ("", "requests/s", "answers", "refused", "with Retry-After", "p50 ms", "p99 ms", "longest ms", "refused after ms (p50, p99)")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", default="evidence-inference", help="folder of $PERIKOPE_SHARED_DATA or ../shared/data")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120, help="of overload")
    parser.add_argument("--markdown", help="add the table to this file")
    options = parser.parse_args(arguments)
    SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as scratch:
        table, problems = measured(options.collection, Path(scratch), options.shards, options.seconds)
    table.notes += problems or ["every request was answered or refused with Retry-After; none was refused afterwards"]
    publish([table], options.markdown)
    sys.exit(1 if problems else 0)


def measured(collection: str, folder: Path, shards: int, seconds: float) -> tuple[Table, list[str]]:
    """The table, and what was not as it must be."""
    import perikope
    from perikope.build.indexing import build
    from perikope.cluster import on_ray
    from perikope.cluster.building import cluster_from

    [documents] = (shared_data() / collection).glob("documents.jsonl*")
    build(str(folder / "index"), [str(documents)])
    cluster_from(str(folder / "index"), str(folder / "bench"), shards)
    topics = next(path for path in sorted((shared_data() / collection).glob("*topics*.tsv")) if "train" not in path.name)
    queries, paths = queries_of(topics), folder / "paths"
    paths.write_text("\n".join(f"/indexes/bench/search?{urlencode({'query': query, 'k': K})}" for query in queries))
    os.environ.setdefault("RAY_worker_niceness", "0")  # otherwise replicas have a lower priority than the server
    with nodes(1) as ray:
        on_ray.start(folder / "bench", name=NAME)
        arguments = ("--address", ray.address, "--name", NAME, "--cache", "0", "--max-query", "100000", "--timeout", f"{TIMEOUT:g}")
        with running("cluster", "serve", str(folder / "bench"), *arguments) as (port, _):
            load(port, paths, clients=CLOSED, seconds=5)
            best = load(port, paths, clients=CLOSED, seconds=20)
            rate = best["per_second"]
            before = load(port, paths, rate=EASY * rate, clients=64, seconds=20)
            over = load(port, paths, rate=TWICE * rate, clients=256, seconds=seconds, then=(EASY * rate, 20))
            with perikope.Index.open(folder / "index") as whole, perikope.connect(f"http://127.0.0.1:{port}") as served:
                wrong = sum(served.search(query, k=K).names() != whole.search(query, k=K).names() for query in queries[:20])
    table = Table(f"Overload of perikope cluster serve: {collection}, {shards} shards with two replicas", COLUMNS)
    table.rows += [
        _row(f"closed loop, {CLOSED} clients", f"{rate:.1f}", best),
        _row(f"{EASY:.0%} of this rate", f"{EASY * rate:.1f}", before),
        _row(f"twice this rate, for {seconds:g} s", f"{TWICE * rate:.1f}", over),
        _row(f"{EASY:.0%} at once afterwards", f"{EASY * rate:.1f}", over["after"]),
    ]
    table.notes.append(f"{over['per_second']:.1f} answers per second under overload; the load generator used {over['cpu']:.2f} cores")
    slow = [due for due, taken in over["after"]["by_time"] if taken > before["max"]]
    table.notes.append(f"latencies are those before the overload again after {max(slow, default=0):.1f} s")
    return table, [f"FAILED: {problem}" for problem in _problems(over, wrong)]


def _problems(over: dict, wrong: int) -> list[str]:
    refused, others = _refused(over), {status for status in (*over["statuses"], *over["after"]["statuses"]) if status not in ("200", "503")}
    return [
        *([f"statuses {sorted(others)}"] if others else []),
        *(["nothing was refused, so this was no overload"] if not refused else []),
        *([f"{refused - over['told_when']} refusals without Retry-After"] if refused != over["told_when"] else []),
        *([f"an answer came after {over['max']:.1f} s"] if over["max"] > TIMEOUT + 1 else []),
        *([f"{_refused(over['after'])} requests were refused after the overload"] if _refused(over["after"]) else []),
        *([f"{wrong} answers are not those of the index"] if wrong else []),
    ]


def _refused(result: dict) -> int:
    return sum(count for status, count in result["statuses"].items() if status == "503")


def _row(name: str, rate: str, result: dict) -> list[str]:
    refused = f"{milliseconds(result['refused_p50'])}, {milliseconds(result['refused_p99'])}" if _refused(result) else "–"
    times = (milliseconds(result[one]) for one in ("p50", "p99", "max"))
    return [name, rate, str(result["answers"]), str(_refused(result)), str(result["told_when"]), *times, refused]


if __name__ == "__main__":
    main()
