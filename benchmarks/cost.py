"""CPU time per query of several models in one run: `python -m benchmarks cost INDEX TOPICS`.

Each query is searched with all models one after the other, in an order that changes from query to query, so that other
load on the computer affects all models alike. A cost is the CPU time of `Index.search` and of reading ten hits, in a
running process. `--command N` also measures N queries per model with the command `perikope search`, start included.

The ratio to `qsf_v_title` is the median over queries of the ratio for the same query; the interval has 95 % of the
medians of bootstrap samples of the queries.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

import perikope as pk
from benchmarks.common import SINGLE, Table, publish
from perikope.evaluation.io.topics import read_topics

REFERENCE = "qsf_v_title"
MODELS = ("bm25", REFERENCE, "coverage", "learned", "best")
"""The models that every index offers; `best` is the default of a search."""


def in_process(index: pk.Index, query: str, model: str) -> float:
    """CPU seconds of one search in this process, with the text and the heading path of ten hits."""
    started = time.process_time()
    for hit in index.search(query, model=model, k=10):
        _ = hit.text, hit.path
    return time.process_time() - started


def as_command(index: str, query: str, model: str) -> float:
    """CPU seconds of one command `perikope search`, start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "perikope", "search", index, query, "--model", model, "--json"]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | SINGLE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def costs(cost: Callable[[str, str], float], models: Sequence[str], queries: Sequence[str], repeat: int) -> np.ndarray:
    """CPU seconds per model and query, shape (models, queries): the least of some repetitions."""
    for model in models:  # compiles kernels and reads files
        cost(queries[0], model)
    least = np.full((len(models), len(queries)), np.inf)
    for _ in range(repeat):
        for number, query in enumerate(queries):
            for at in range(len(models)):
                model = (at + number) % len(models)
                least[model, number] = min(least[model, number], cost(query, models[model]))
    return least


def ratio(of_model: np.ndarray, reference: np.ndarray) -> str:
    """The median ratio, and the interval of 95 % of the medians of bootstrap samples."""
    ratios = of_model / reference
    samples = np.random.default_rng(1).integers(0, ratios.size, (2000, ratios.size))
    low, high = np.percentile(np.median(ratios[samples], axis=1), [2.5, 97.5])
    return f"{np.median(ratios):.2f} ({low:.2f} to {high:.2f})"


def table(title: str, models: Sequence[str], seconds: np.ndarray) -> Table:
    result = Table(title, ("model", "median", "95 %", f"times {REFERENCE}"))
    reference = seconds[list(models).index(REFERENCE)]
    for model, own in zip(models, 1000 * seconds, strict=True):
        result.rows.append((model, f"{np.median(own):.1f}", f"{np.percentile(own, 95):.1f}", ratio(own, 1000 * reference)))
    return result


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks cost", description=__doc__.splitlines()[0])
    parser.add_argument("index", help="folder of the index")
    parser.add_argument("topics", help="file of topics")
    parser.add_argument("--model", action="append", default=[], help='a further model, such as hybrid or learned(name="mine")')
    parser.add_argument("--queries", type=int, default=50, help="number of topics, spread over the file (default: 50)")
    parser.add_argument("--repeat", type=int, default=3, help="searches per query and model, of which the cheapest counts (default: 3)")
    parser.add_argument("--command", type=int, default=0, metavar="N", help="number of topics that are also searched with the command")
    parser.add_argument("--markdown", help="file to which the tables are added")
    options = parser.parse_args(arguments)
    queries = [topic.query for topic in read_topics(options.topics)]
    queries = queries[:: max(len(queries) // options.queries, 1)][: options.queries]
    index, models = pk.Index.open(options.index), [*MODELS, *options.model]
    best = index.search(queries[0], k=1).model
    label = [f"best: {best}" if model == "best" else model for model in models]
    seconds = costs(lambda query, model: in_process(index, query, model), models, queries, options.repeat)
    publish([table(f"CPU milliseconds per query in a running process, {len(queries)} queries", label, seconds)], options.markdown)
    if options.command:
        some = queries[:: max(len(queries) // options.command, 1)][: options.command]
        seconds = costs(lambda query, model: as_command(options.index, query, model), models, some, options.repeat)
        publish([table(f"CPU milliseconds per command perikope search, {len(some)} queries", label, seconds)], options.markdown)
