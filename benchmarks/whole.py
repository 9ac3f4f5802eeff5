"""A whole search, a first search, and a whole run, end to end: `python -m benchmarks whole [--before PYTHON]`.

search  CPU milliseconds of every step of a search on an index of several segments, as a real index has them
cold    the join of scattered documents whose files are not in memory
run     `perikope run` over many topics, from start to end, in one and in two processes, beside bm25s

With --before, another installation does the same in turns, and the tables have both. Data are the collections of
$PERIKOPE_SHARED_DATA or ../shared/data, and synthetic documents for `cold`. Indexes are made once, in .bench, by this
installation.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import ROOT, SCRATCH, Table, publish, shared_data
from benchmarks.peers import python as peer_python
from benchmarks.synthetic import Collection
from benchmarks.whole_worker import STEPS

PARTS = ("search", "cold", "run")
WORKER, PEER = (ROOT / "benchmarks" / name for name in ("whole_worker.py", "bm25s_run.py"))
SEARCHED, RUN = "evidence-inference", "obliqa"
SCATTERED = 1000


def perikope(python: str, *arguments: str) -> list[str]:
    return [python, "-P", "-m", "perikope", *arguments]


def measured(command: Sequence[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a command with all its processes."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def asked(python: str, *arguments: object) -> dict:
    found = subprocess.run([python, "-P", str(WORKER), *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(found.stdout)


def indexed(name: str, segments: int) -> Path:
    """The index of a collection in so many segments, made once."""
    folder = SCRATCH / f"whole-{name}-{segments}"
    if not (folder / "manifest.json").exists():
        with gzip.open(shared_data() / name / "documents.jsonl.gz", "rt", encoding="utf-8") as file:
            lines = file.readlines()
        size = -(-len(lines) // segments)
        for first in range(0, len(lines), size):
            part = SCRATCH / f"whole-part-{first}.jsonl"
            part.write_text("".join(lines[first : first + size]), encoding="utf-8")
            append = ["--append"] if first else []
            subprocess.run(perikope(sys.executable, "index", str(part), "--to", str(folder), "--workers", "1", *append), check=True)
            part.unlink()
    return folder


def search(pythons: dict[str, str], options: argparse.Namespace) -> Table:
    folder, topics = indexed(SEARCHED, options.segments), shared_data() / SEARCHED / "validation-topics.tsv"
    table = Table(
        f"A search on {options.segments} segments: {SEARCHED}; CPU ms, medians of {options.queries} queries, {options.rounds} rounds",
        ("model", "", *STEPS, "all", "page faults"),
    )
    for model in options.models.split(","):
        rows: dict[str, list] = {label: [] for label in pythons}
        faults: dict[str, list] = {label: [] for label in pythons}
        for _ in range(options.rounds):
            for label, python in pythons.items():
                answer = asked(python, "search", folder, topics, "" if model == "default" else model, options.queries)
                rows[label].append(answer["rows"])
                faults[label].append(answer["faults"])
        sums = {}
        for label in pythons:
            best = np.min(rows[label], axis=0)  # of the rounds, per query and step
            sums[label] = np.median(best.sum(axis=1))
            table.rows.append([model, label, *(f"{value:.2f}" for value in np.median(best, axis=0)), f"{sums[label]:.2f}",
                               f"{np.median(faults[label]):.0f}"])  # fmt: skip
        if len(sums) == 2:
            before, after = sums.values()
            table.notes.append(f"{model}: after ÷ before {after / before:.2f}")
    table.notes.append("The least of the rounds per query and step; every query was searched once before.")
    return table


def cold(pythons: dict[str, str], options: argparse.Namespace) -> Table:
    folder = SCRATCH / f"whole-cold-{options.documents}"
    if not (folder / "manifest.json").exists():
        source = Collection(documents=options.documents, tokens=4000).file(SCRATCH)
        subprocess.run(perikope(sys.executable, "index", str(source), "--to", str(folder), "--segment", "words:40"), check=True)
    table = Table(
        f"The first join of {SCATTERED:,} of {options.documents:,} documents of 4,000 words, files not in memory; medians",
        ("", "wall ms", "CPU ms", "MB read"),
    )
    answers: dict[str, list] = {label: [] for label in pythons}
    for seed in range(options.rounds + 2):
        for label, python in pythons.items():
            answers[label].append(asked(python, "cold", folder, SCATTERED, seed))
    for label, found in answers.items():
        table.rows.append([label, *(f"{np.median([one[name] for one in found]):.1f}" for name in ("wall", "cpu", "megabytes"))])
    return table


def run(pythons: dict[str, str], options: argparse.Namespace) -> Table:
    folder, topics, out = indexed(RUN, 1), shared_data() / RUN / "dev-topics.tsv", SCRATCH / "whole.run"
    if options.topics:
        few = SCRATCH / f"whole-topics-{options.topics}.tsv"
        few.write_text("".join(f"{line}\n" for line in topics.read_text(encoding="utf-8").splitlines()[: options.topics]), encoding="utf-8")
        topics = few
    peer, peer_index = str(peer_python("bm25s")), SCRATCH / f"whole-bm25s-{RUN}"
    if not peer_index.exists():
        subprocess.run([peer, str(PEER), "index", str(shared_data() / RUN / "documents.jsonl.gz"), str(peer_index)], check=True)
    commands = {"bm25s, one thread": [peer, str(PEER), "run", str(peer_index), str(topics), str(out), "1000", "0"]}
    for model in options.run_models.split(","):
        for threads in (1, 2):
            for label, python in pythons.items():
                name = f"{model}, {threads} at a time" + f", {label}" * (len(pythons) > 1)
                command = ["run", str(folder), str(topics), "--out", str(out), "-k", "1000", "--threads", str(threads), "--model", model]
                commands[name] = perikope(python, *command)
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            costs[name].append(measured(command))
    least = {name: np.min(cost, axis=0) for name, cost in costs.items()}
    of_peer = least["bm25s, one thread"]
    number = len(topics.read_text(encoding="utf-8").splitlines())
    table = Table(
        f"A run of {number:,} topics, k = 1000, {RUN}; the least of {options.rounds}",
        ("", "wall s", "CPU s", "wall ÷ bm25s", "CPU ÷ bm25s"),
    )
    for name, (wall, cpu) in least.items():
        table.rows.append([name, f"{wall:.1f}", f"{cpu:.1f}", f"{wall / of_peer[0]:.2f}", f"{cpu / of_peer[1]:.2f}"])
    table.notes.append(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}. From the start of the program to the end of the file.")
    return table


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks whole", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", metavar="PYTHON", help="interpreter of another installation, measured in turns with this one")
    parser.add_argument("--parts", default=",".join(PARTS), metavar="NAME,…", help=f"default: {','.join(PARTS)}")
    parser.add_argument("--segments", type=int, default=4, metavar="N", help="of the index that is searched; default: 4")
    parser.add_argument("--models", default="default,bm25", metavar="NAME,…", help="of `search`; default: default,bm25")
    parser.add_argument("--queries", type=int, default=60, metavar="N", help="of `search`; default: 60")
    parser.add_argument("--documents", type=int, default=25_000, metavar="N", help="of the index of `cold`; default: 25000")
    parser.add_argument("--run-models", default="bm25,coverage", metavar="NAME,…", help="of `run`; default: bm25,coverage")
    parser.add_argument("--topics", type=int, default=0, metavar="N", help="of `run`; default: all")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="turns; default: 3")
    parser.add_argument("--markdown", metavar="FILE", help="also add the tables to this file")
    options = parser.parse_args(arguments)
    parts = options.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    SCRATCH.mkdir(exist_ok=True)
    pythons = ({"before": options.before} if options.before else {}) | {"after" if options.before else "perikope": sys.executable}
    measures = {"search": search, "cold": cold, "run": run}
    publish([measures[part](pythons, options) for part in parts], options.markdown)


if __name__ == "__main__":
    main(sys.argv[1:])
