"""Whether one installation of perikope is slower than another: `python -m benchmarks compare --before PYTHON`.

PYTHON is the interpreter of the other installation, such as ../before/.venv/bin/python. Both do the same work in turns,
and a seed decides which goes first each time. A row gives the median of the ratios after ÷ before, one ratio per query
and turn, with a 95 % interval.

The verdict is about CPU time. In a trial the same installation was on both sides, on two cores with a load of 5: after
20 turns the median ratios of CPU time at 16 points were off by 1.7 % (root mean square), those of wall-clock time by
2.7 %. Geometric means of CPU ratios were off by 2.8 %; ratios of minimum CPU times by 1.9 %, but their intervals were
too narrow. With fewer turns all intervals are too narrow.

fetch    `Index.search` with bm25 in the best 10 and 1000 documents, with 2-5, 10 and 100 words
browse   `Index.search` with each lexical model in 1000 documents, with 4, 10 and 100 words; reading the hits
open     `Index.open` alone, with the first search, and the first search alone
batch    `perikope run` over many topics
build    `perikope index` into a new folder
start    `perikope search --model bm25` with compiled kernels, `perikope --help` and `import perikope`

fetch, browse and open run in one process per installation, which is replaced every five turns. All other parts start a
new process each time. The data are Evidence Inference and ConditionalQA in $PERIKOPE_SHARED_DATA or ../shared/data, or
synthetic documents without them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import SCRATCH, Table, publish, shared_data
from benchmarks.installations import Installation, differing_packages
from benchmarks.programs import documents, texts
from benchmarks.synthetic import LONG, STOP_WORDS

PARTS = ("fetch", "browse", "open", "batch", "build", "start")
LIMIT = 1.05
"""A ratio whose interval reaches above this is named below the tables."""
RESAMPLES = 2000
FETCH_QUERIES, BROWSE_QUERIES = 6, 2
BUILD_DOCUMENTS = 100
BATCH_TOPICS, BATCH_K = 60, 100
STARTS = 3
"""Pairs of processes per turn for the shortest commands."""
OPENINGS = 5
"""Openings per turn."""
TURNS_OF_A_WORKER = 5
"""Where a process finds its memory makes it faster or slower for all of its life, so that several take part."""

NOTES = [
    "CPU: of all processes of the work together; wall: elapsed. Milliseconds are medians, of queries or of processes.",
    "after ÷ before: the median of the ratios of all pairs. interval: 95 %, percentile bootstrap over the turns.",
    "The last column is about CPU: slower or faster where the interval excludes 1. Of many intervals, one in twenty does so by chance.",
]

Cost = tuple[float, float]
"""CPU and wall-clock seconds."""
Work = Callable[[Installation], Cost]


class NotMeasuredError(Exception):
    """An installation refuses the work of a point."""


@dataclass(slots=True)
class Point:
    """A row: pieces of work, such as queries, and what each of them cost before and after in each turn."""

    part: str
    label: str
    works: Sequence[Work]
    every: int = 1
    """The row is measured in every n-th turn only, where this is n."""
    turns: list[list[tuple[Cost, Cost]]] = field(default_factory=list)

    def costs(self, kind: int) -> NDArray[np.float64]:
        """Seconds of CPU (0) or wall (1), shape (turns, pieces of work, 2: before and after)."""
        return np.array(self.turns)[..., kind]


@dataclass(frozen=True, slots=True)
class Ratio:
    """after ÷ before and its 95 % interval."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.3f}"

    def interval(self) -> str:
        return f"{self.low:.3f}–{self.high:.3f}"


def ratio(costs: NDArray[np.float64], seed: int) -> Ratio:
    """The median of after ÷ before, `costs` as in `Point.costs`; whole turns are drawn, as noise hits all of one."""
    ratios = costs[..., 1] / costs[..., 0]
    drawn = np.random.default_rng(seed).integers(0, len(ratios), (RESAMPLES, len(ratios)))
    low, high = np.percentile(np.median(ratios[drawn].reshape(RESAMPLES, -1), axis=1), (2.5, 97.5))
    return Ratio(float(np.median(ratios)), float(low), float(high))


# The work


@dataclass(frozen=True, slots=True)
class Data:
    """What is searched and built: files, and queries by their number of words."""

    title: str
    source: Path
    sample: Path
    batch_source: Path
    topics: Path
    queries: dict[str, list[str]]


def prepare_data(folder: Path, seed: int) -> Data:
    real, batch = shared_data() / "evidence-inference" / "documents.jsonl.gz", shared_data() / "conditionalqa"
    source = real if real.exists() else replace(LONG, documents=1000).file(SCRATCH)
    title = "Evidence Inference" if real.exists() else "synthetic documents of 4,000 words"
    queries = draw(source, FETCH_QUERIES, seed)
    sample, topics = folder / "sample.jsonl", folder / "topics.tsv"
    with open(sample, "w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(document) + "\n" for document in islice(documents(str(source)), BUILD_DOCUMENTS))
    if batch.is_dir():
        lines = (batch / "topics.tsv").read_text(encoding="utf-8").splitlines()[:BATCH_TOPICS]
        batch_source = batch / "documents.jsonl"
    else:
        lines = [f"{number}\t{query}" for number, query in enumerate(draw(source, BATCH_TOPICS, seed)["10"])]
        batch_source = sample
    topics.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Data(title, source, sample, batch_source, topics, queries)


def draw(source: Path, count: int, seed: int) -> dict[str, list[str]]:
    """So many queries of each length, each of distinct words of one document that are no stop words.

    100 words are those with the highest tf·idf; fewer are drawn in proportion to their frequency in the document.
    """
    chance = random.Random(seed)
    stop = set(STOP_WORDS)
    words_of = [
        [word for word in re.findall("[a-z]{3,}", " ".join(texts(found)).lower()) if word not in stop] for found in documents(str(source))
    ]
    frequency = Counter(word for words in words_of for word in set(words))
    long_enough = [words for words in words_of if len(set(words)) >= 100]

    def short(size: int) -> str:
        words = list(chance.choice(long_enough))
        chance.shuffle(words)
        return " ".join(list(dict.fromkeys(words))[:size])

    def telling(size: int) -> str:
        counts = Counter(chance.choice(long_enough))
        weight = {word: number * np.log(len(words_of) / frequency[word]) for word, number in counts.items()}
        return " ".join(sorted(weight, key=lambda word: (-weight[word], word))[:size])

    rules: dict[str, Callable[[], str]] = {
        "2-5": lambda: short(chance.randint(2, 5)),
        "4": lambda: short(4),
        "10": lambda: short(10),
        "100": lambda: telling(100),
    }
    return {length: [rule() for _ in range(count)] for length, rule in rules.items()}


def searching(queries: Sequence[str], *, hits: bool = False, **options: object) -> list[Work]:
    def search(query: str, installation: Installation) -> Cost:
        answer = installation.ask(action="search", query=query, options=options, hits=hits)
        if "problem" in answer:
            raise NotMeasuredError(answer["problem"])
        return answer["cpu"], answer["wall"]

    return [partial(search, query) for query in queries]


def opening(folder: Path, query: str, steps: Sequence[str], *, hits: bool = False) -> list[Work]:
    """Steps in an index that is opened anew, several times per turn, because they are short."""

    def work(installation: Installation) -> Cost:
        index = str(folder / installation.label / "index")
        answer = installation.ask(
            action="first", index=index, query=query, options={"model": "bm25", "k": 10, "documents": 10}, hits=hits, steps=steps
        )
        if "problem" in answer:
            raise NotMeasuredError(answer["problem"])
        return answer["cpu"], answer["wall"]

    return [work] * OPENINGS


def running(command: Callable[[Installation], list[str]], *, starts: int = 1, target: Path | None = None) -> list[Work]:
    """A command in a new process; `target` is what it makes, removed before each start."""

    def work(installation: Installation) -> Cost:
        if target:
            shutil.rmtree(target, ignore_errors=True)
        result = installation.run(command(installation))
        return result.cpu, result.wall

    return [work] * starts


def points_of(parts: Sequence[str], data: Data, folder: Path, models: Sequence[str]) -> list[Point]:
    """All points of the parts; the indexes must have been made by `make_indexes`."""
    found = []
    if "fetch" in parts:
        for length in ("2-5", "10", "100"):
            for most in (10, 1000):
                works = searching(data.queries[length], model="bm25", k=10, documents=most)
                found.append(Point("fetch", f"{length} words, {most} documents", works))
    if "browse" in parts:
        for model in models:
            for length in ("4", "10", "100"):
                works = searching(data.queries[length][:BROWSE_QUERIES], model=model, k=10, documents=1000)
                found.append(Point("browse", f"{model}, {length} words", works))
        works = searching(data.queries["4"][:BROWSE_QUERIES], hits=True, k=10, documents=10)
        found.append(Point("browse", "default model, 10 documents, 10 hits read", works))
    if "open" in parts:
        open_with = partial(opening, folder, data.queries["4"][0])
        found += [
            Point("open", "opening alone", open_with(["open"])),
            Point("open", "opening and first search", open_with(["open", "search"])),
            Point("open", "first search", open_with(["search"])),
            Point("open", "first search, 10 hits read", open_with(["search"], hits=True)),
        ]
    index, batch = (lambda made: str(folder / made.label / "index")), (lambda made: str(folder / made.label / "batch"))
    if "batch" in parts:
        options = ["--out", str(folder / "batch.run"), "-k", str(BATCH_K), "--threads", "1"]
        found.append(Point("batch", "perikope run", running(lambda made: made.command("run", batch(made), str(data.topics), *options)), 2))
    if "build" in parts:
        target = folder / "built"
        command = lambda made: made.command("index", str(data.sample), "--to", str(target))  # noqa: E731
        found.append(Point("build", "perikope index", running(command, target=target), 2))
    if "start" in parts:
        query = data.queries["4"][0]
        found += [
            Point("start", "perikope search", running(lambda made: made.command("search", index(made), query, "--model", "bm25"))),
            Point("start", "perikope --help", running(lambda made: made.command("--help"), starts=STARTS)),
            Point("start", "import perikope", running(lambda made: [made.python, "-P", "-c", "import perikope"], starts=STARTS)),
        ]
    return found


def make_indexes(installation: Installation, data: Data, folder: Path, parts: Sequence[str]) -> None:
    own = folder / installation.label
    own.mkdir()
    installation.run(installation.command("index", str(data.source), "--to", str(own / "index")))
    installation.run(installation.command("compact", str(own / "index")))
    if "batch" in parts:
        installation.run(installation.command("index", str(data.batch_source), "--to", str(own / "batch")))


# The measurement


def start_workers(installations: Sequence[Installation], folder: Path) -> None:
    """Replace the worker processes by new ones that have opened their index."""
    for installation in installations:
        installation.close()
        installation.start()
        answer = installation.ask(action="open", index=str(folder / installation.label / "index"))
        if "problem" in answer:
            raise SystemExit(f"{installation.label}: the index cannot be opened: {answer['problem']}")


def warm(points: Sequence[Point], installations: Sequence[Installation]) -> tuple[list[Point], dict[str, str]]:
    """The points that both installations can do, each done once, and why the others are left out."""
    ready, refused = [], {}
    for point in points:
        for installation in installations:
            try:
                for work in point.works:
                    work(installation)
            except NotMeasuredError as problem:
                name = point.label.partition(",")[0]
                refused[name] = f"{installation.label}: {str(problem).partition(' in /')[0][:100]}"
                break
        else:
            ready.append(point)
    return ready, refused


def alternate(points: Sequence[Point], before: Installation, after: Installation, folder: Path, alternations: int, seed: int) -> None:
    chance = random.Random(seed)
    in_workers = [point for point in points if point.part in ("fetch", "browse", "open")]
    for number in range(alternations):
        print(f"… turn {number + 1} of {alternations}", file=sys.stderr, flush=True)
        if in_workers and number % TURNS_OF_A_WORKER == 0:
            start_workers((before, after), folder)
            warm(in_workers, (before, after))
        for point in (point for point in points if number % point.every == 0):
            turn = []
            for work in point.works:
                order = (before, after) if chance.random() < 0.5 else (after, before)
                cost = {installation.label: work(installation) for installation in order}
                turn.append((cost[before.label], cost[after.label]))
            point.turns.append(turn)


def table_of(part: str, points: Sequence[Point], title: str, seed: int) -> Table:
    columns = ("", "CPU before", "after", "after ÷ before", "interval", "wall before", "after", "after ÷ before", "interval", "")
    table = Table(f"{part}: {title}", columns)
    for point in points:
        row = [point.label]
        for kind in (0, 1):
            costs = point.costs(kind)
            found = ratio(costs, seed)
            before, after = 1000 * np.median(costs, axis=(0, 1))
            row += [f"{before:,.2f}", f"{after:,.2f}", str(found), found.interval()]
        cpu = ratio(point.costs(0), seed)
        marks = ["slower"] * (cpu.low > 1) + ["faster"] * (cpu.high < 1) + [f"above {LIMIT}"] * (cpu.high > LIMIT)
        table.rows.append([*row, ", ".join(marks)])
    logs = np.log([ratio(point.costs(0), seed).middle for point in points])
    table.notes.append(f"Geometric mean of the CPU ratios: {np.exp(logs.mean()):.3f}.")
    return table


def verdict(points: Sequence[Point], seed: int) -> list[str]:
    """The points whose CPU interval reaches above the limit, worst first."""
    found = [(ratio(point.costs(0), seed), point) for point in points]
    above = sorted(((one, point) for one, point in found if one.high > LIMIT), key=lambda pair: -pair[0].low)
    lines = [f"{len(above)} of {len(points)} CPU intervals reach above {LIMIT}; {sum(one.low > 1 for one, _ in above)} of these exclude 1."]
    return lines + [f"  {point.part}, {point.label}: {one} ({one.interval()})" for one, point in above]


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks compare", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--before", required=True, metavar="PYTHON", help="interpreter of the installation to compare with")
    parser.add_argument("--after", default=sys.executable, metavar="PYTHON", help="interpreter of the other one; default: this one")
    parser.add_argument("--parts", default=",".join(PARTS), metavar="NAME,…", help=f"default: {','.join(PARTS)}")
    parser.add_argument("--models", metavar="NAME,…", help="models of browse; default: all that `perikope models` lists")
    parser.add_argument("--alternations", type=int, default=20, metavar="N", help="turns; batch and build take every second; default: 20")
    parser.add_argument("--seed", type=int, default=1, help="of the queries, the order in each turn and the bootstrap; default: 1")
    parser.add_argument("--markdown", metavar="FILE", help="also add the tables to this file")
    options = parser.parse_args(arguments)
    parts = options.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    if options.alternations < 3:
        parser.error("--alternations must be at least 3: an interval needs several turns")
    started = time.perf_counter()
    before, after = Installation("before", options.before), Installation("after", options.after)
    try:
        compare(before, after, parts, options)
    finally:
        before.close()
        after.close()
    print(f"{time.perf_counter() - started:.0f} s in all", file=sys.stderr)


def compare(before: Installation, after: Installation, parts: Sequence[str], options: argparse.Namespace) -> None:
    print(f"{before}\n{after}\nload average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)
    models = options.models.split(",") if options.models else [name for name in before.models() if name in after.models()]
    SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH, prefix="compare-") as name:
        folder = Path(name)
        print("… making the indexes", file=sys.stderr, flush=True)
        data = prepare_data(folder, options.seed)
        for installation in (before, after):
            make_indexes(installation, data, folder, parts)
        print("… warming up; this compiles the kernels of an installation that has not searched yet", file=sys.stderr, flush=True)
        start_workers((before, after), folder)
        points, refused = warm(points_of(parts, data, folder, models), (before, after))
        # Processes that compiled kernels are larger and slower than those that load them; they are not measured.
        alternate(points, before, after, folder, options.alternations, options.seed)
    tables = []
    for part in parts:
        if chosen := [point for point in points if point.part == part]:
            title = {"batch": f"{BATCH_TOPICS} topics", "build": f"{BUILD_DOCUMENTS} documents"}.get(part, data.title)
            tables.append(table_of(part, chosen, f"{title}; ms, {len(chosen[0].turns)} turns", options.seed))
    notes = [*NOTES, *(f"Not measured: {label} ({why})" for label, why in refused.items())]
    if before.facts["folder"] == after.facts["folder"]:
        notes.append("Both are the same installation: the ratios show the noise of the machine.")
    if differing := differing_packages(before, after):
        notes.append(f"Packages differ, which may change how long a start takes: {', '.join(differing)}.")
    if tables:
        tables[-1].notes += notes
    publish(tables, options.markdown)
    print("\n" + "\n".join(verdict(points, options.seed)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
