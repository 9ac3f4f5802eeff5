"""What `python -m benchmarks whole` runs in a process of each installation. It prints one JSON object.

python whole_worker.py search INDEX TOPICS MODEL QUERIES     CPU milliseconds of each step, per query
python whole_worker.py cold INDEX DOCUMENTS SEED             the first join of scattered documents, files not in memory
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from perikope.browse.matches import join
from perikope.fetch import Candidates
from perikope.query.terms import Query
from perikope.search.facade import Index
from perikope.search.recipes import resolve_options
from perikope.search.steps import search_for

STEPS = ("options", "prepare", "run", "10 hits read")
K = 10


def search(folder: str, topics: str, model: str, queries: int) -> dict[str, Any]:
    index = Index.open(folder)
    lines = Path(topics).read_text(encoding="utf-8").splitlines()
    texts = [line.split("\t")[1] for line in lines[:: max(1, len(lines) // queries)][:queries]]
    options = resolve_options(None, {"k": K} | ({"model": model} if model else {}), None)
    for text in texts:  # loads kernels, and reads what any search of these words reads once
        list(index.search(text, options=options))
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    rows = []
    for text in texts:
        times = [time.thread_time_ns()]
        made = search_for(index.snapshot, text, options)
        times.append(time.thread_time_ns())
        prepared = made.prepare(text)
        times.append(time.thread_time_ns())
        results = made.run(prepared)
        times.append(time.thread_time_ns())
        hits = list(results)
        times.append(time.thread_time_ns())
        rows.append((np.diff(times) / 1e6).tolist())
        del made, prepared, results, hits
    return {"rows": rows, "faults": (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults) / len(texts)}


def cold(folder: str, documents: int, seed: int) -> dict[str, Any]:
    """Kernels are loaded by a join of one document. Then the files are dropped from memory and opened again."""
    chance = np.random.default_rng(seed)
    snapshot = Index.open(folder).snapshot
    terms = tuple(snapshot.segments[0].terms.text(int(number)) for number in chance.integers(50, 3000, 10))
    query = Query(" ".join(terms), terms, (1.0,) * len(terms))
    numbers = np.sort(chance.choice(snapshot.numbers, documents, replace=False))
    few = Candidates(numbers[:50], np.zeros(50))
    join(snapshot, query, few)
    del snapshot
    for path in Path(folder).glob("*.columns"):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    snapshot = Index.open(folder).snapshot
    snapshot.look_up(query.terms)
    read, wall, cpu = _bytes_read(), time.perf_counter(), time.thread_time()
    join(snapshot, query, Candidates(numbers, np.zeros(documents)))
    wall, cpu, read = time.perf_counter() - wall, time.thread_time() - cpu, _bytes_read() - read
    return {"wall": 1000 * wall, "cpu": 1000 * cpu, "megabytes": read / 1e6}


def _bytes_read() -> int:
    """Bytes that this process made the system read from disks."""
    facts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(facts["read_bytes"])


if __name__ == "__main__":
    if sys.argv[1] == "search":
        print(json.dumps(search(*sys.argv[2:5], int(sys.argv[5]))))
    else:
        print(json.dumps(cold(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
