"""Speed of fetching documents, compared with other engines, one thread, warm cache: `python -m benchmarks fetch`.

Every engine has an index of the same terms and gets the same queries, in its own process. The processes take turns:
each runs all queries of one length and one k, then the next round begins, so that noise affects all engines. Each query
runs once to warm up; the best of its rounds counts. Indexes are stored in `.bench/fetch` by collection and version of
the engine, so that only the first run builds them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import SCRATCH, Table, folder_bytes, megabytes, publish, shared_data, timed
from benchmarks.contest import ENGINES, KS, PERIKOPE, Comparison, Dataset, Point, before, compare, prepare
from benchmarks.queries import Queries, document_frequency
from benchmarks.synthetic import LONG, SHORT, Collection

BYTES_A_POSTING = 3
PARTS_OF_LARGE = 13
FACTORS = (1, 4, 16)

NOTES = [
    "median / 99th percentile over the queries, in ms, from the prepared query to numbers and scores of the best k.",
    "others: cores that other programs took meanwhile; where this is not 0.0, the figures are too high and p99 says little.",
    "All engines: one thread, the same terms (perikope's: stopped, stemmed), BM25 with k1 = 1.2 and b = 0.75, no positions read.",
    "perikope: exact scores from frequencies and lengths; ids are read to decide ties. One segment (`perikope compact`).",
    "Lucene, tantivy: lengths rounded to a byte, pruning (block-max); no stored field is read. One segment, where tantivy made one.",
    "Lucene: 9.9.1 of Anserini's jar, on Java 25; called from Python, whose microsecond is counted.",
    "PISA: pruning, lengths exact, an idf that makes nothing of terms in most documents; reads the ids of what it found.",
    "bm25s: numba backend, scores of these parameters kept in the index; terms come as numbers, no look-up.",
]


def real() -> Dataset:
    return Dataset("Evidence Inference", "evidence-inference", (shared_data() / "evidence-inference" / "documents.jsonl.gz",))


def synthetic(title: str, collection: Collection, parts: int = 1) -> Dataset:
    seeds = range(collection.seed, collection.seed + parts)
    sources = tuple(Collection(collection.documents, collection.tokens, seed).file(SCRATCH) for seed in seeds)
    return Dataset(title, collection.name if parts == 1 else f"{collection.name}-{parts}", sources)


def bandwidth() -> tuple[float, float]:
    """Gigabytes a second that one thread reads from memory, and that it copies (read and written)."""
    source = np.ones(125_000_000)
    target = np.empty_like(source)
    target[:] = 0.0
    reading, _ = timed(source.sum, 5)
    copying, _ = timed(lambda: np.copyto(target, source), 5)
    return source.nbytes / reading / 1e9, 2 * source.nbytes / copying / 1e9


def _title(point: Point) -> str:
    return f"{point[0]} terms, k={point[1]}"


def _pair(taken: NDArray[np.float64]) -> str:
    return f"{np.median(taken):.3f} / {np.percentile(taken, 99):.3f}"


def times(comparison: Comparison) -> Table:
    """Median and 99th percentile of every engine at every point, and perikope's median by the fastest peer's."""
    number = len(next(iter(comparison.queries.values())))
    heading = f"{comparison.dataset.title}: ms a query, median / p99 of {number} queries"
    table = Table(heading, ("", *map(_title, comparison.points), "private MB", "others"))
    for server in comparison.servers:
        cells = [_pair(server.best[point]) for point in comparison.points]
        table.rows.append([server.engine.label, *cells, f"{server.sampler.private / 1e6:,.0f}", f"{server.others:.1f}"])
    table.rows += [[label, f"n/a ({problem})"] for label, problem in comparison.problems.items()]
    ours, rivals = comparison.of("perikope"), [server for server in comparison.servers if not server.engine.is_ours]
    for server in comparison.servers:
        if ours and server.engine.is_ours and server is not ours:
            cells = [f"{np.median(ours.best[point]) / np.median(server.best[point]):.2f}" for point in comparison.points]
            table.rows.append([f"perikope ÷ {server.engine.label}", *cells, "", ""])
    if ours and rivals:
        ratios = []
        for point in comparison.points:
            fastest = min(rivals, key=lambda server: float(np.median(server.best[point])))
            ratios.append(f"{np.median(ours.best[point]) / np.median(fastest.best[point]):.2f} ({fastest.engine.label.partition(',')[0]})")
        table.rows.append(["perikope ÷ fastest peer", *ratios, "", ""])
    segments = ", ".join(
        f"{server.engine.index} {server.segments}" for server in comparison.servers if server.engine.program != "pisa-maxscore"
    )
    table.notes += [*NOTES, f"Segments: {segments}."]
    return table


def agreement(comparison: Comparison) -> Table | None:
    """Whether the peers find the same: shared documents of the first ten, and how far bm25s' scores are from ours."""
    ours, rivals = comparison.of("perikope"), [server for server in comparison.servers if server.engine != PERIKOPE]
    points = [point for point in comparison.points if point[1] == KS[0]]
    if not ours or not rivals:
        return None
    table = Table(
        f"{comparison.dataset.title}: do they find the same?", ("of the first 10, shared with perikope", *(f"{p[0]} terms" for p in points))
    )
    for server in rivals:
        pairs = [list(zip(ours.hits[point], server.hits[point], strict=True)) for point in points]
        table.rows.append([server.engine.label, *(f"{np.mean([_shared(a, b) for a, b in found]):.1%}" for found in pairs)])
        if server.engine.program == "bm25s":
            for label, by_score in (("bm25s: largest difference of scores", False), ("… by the score", True)):
                table.rows.append([label, *(f"{max(_apart(a, b, by_score) for a, b in found):.1e}" for found in pairs)])
    table.notes.append(
        "Scores without the factor k1 + 1, rank by rank; bm25s adds up in float32. Of documents with equal scores any may be left out."
    )
    return table


def _shared(ours: list[tuple[str, float]], theirs: list[tuple[str, float]]) -> float:
    return len({name for name, _ in ours} & {name for name, _ in theirs}) / max(1, len(ours))


def _apart(ours: list[tuple[str, float]], theirs: list[tuple[str, float]], by_score: bool) -> float:
    if len(ours) != len(theirs):
        return float("inf")
    return max((abs(a[1] - b[1]) / (a[1] if by_score else 1.0) for a, b in zip(ours, theirs, strict=True)), default=0.0)


def work(comparison: Comparison, speeds: tuple[float, float]) -> Table | None:
    """How much of the index perikope's queries are about, and how fast that is against the memory of the machine."""
    ours = comparison.of("perikope")
    if not ours:
        return None
    snapshot = comparison.dataset.snapshot()
    columns = ("perikope", "postings", "MB", "ms", "ns per posting", "GB/s", "share of bandwidth")
    table = Table(f"{comparison.dataset.title}: work of a query, medians", columns)
    for point in comparison.points:
        postings = np.array([int(document_frequency(snapshot, terms).sum()) for terms in comparison.queries[point[0]]])
        taken = ours.best[point]
        rate = float(np.median(postings * BYTES_A_POSTING / taken / 1e6))
        table.rows.append(
            [
                _title(point),
                f"{np.median(postings):,.0f}",
                f"{np.median(postings) * BYTES_A_POSTING / 1e6:,.3f}",
                f"{np.median(taken):.3f}",
                f"{np.median(taken * 1e6 / postings):.2f}",
                f"{rate:.2f}",
                f"{rate / speeds[0]:.1%}",
            ]
        )
    table.notes += [
        f"postings: the documents of each term of the query, summed, at {BYTES_A_POSTING} bytes each, whether read or passed over.",
        f"Memory of this machine, one thread, 1 GB: {speeds[0]:.1f} GB/s read, {speeds[1]:.1f} GB/s copied (read and written).",
    ]
    return table


def growth(parts: Sequence[Dataset], count: int, rounds: int) -> Table:
    """perikope alone on ever more of the same, with the same queries."""
    measured: list[tuple[Dataset, Comparison]] = []
    queries: Queries | None = None
    for dataset in parts:
        measured.append((dataset, compare(dataset, [PERIKOPE], count, rounds, queries)))
        queries = measured[-1][1].queries
    points = measured[0][1].points
    table = Table("perikope, growth: ms a query, median / p99", ("", "documents", "index MB", *map(_title, points), "private MB", "others"))
    first = measured[0][1].of("perikope")
    for dataset, comparison in measured:
        label, server = f"{len(dataset.sources)}×", comparison.of("perikope")
        if server is None:
            table.rows.append([label, f"n/a ({comparison.problems[PERIKOPE.label]})"])
            continue
        size, documents = folder_bytes(dataset.folder / PERIKOPE.index), dataset.snapshot().totals[0]
        cells = [_pair(server.best[point]) for point in points]
        row = [label, f"{documents:,}", megabytes(size), *cells, f"{server.sampler.private / 1e6:,.0f}", f"{server.others:.1f}"]
        table.rows.append(row)
        if first and first is not server:
            ratios = [f"{np.median(server.best[point]) / np.median(first.best[point]):.2f}" for point in points]
            table.rows.append([f"{label} ÷ 1×", "", "", *ratios, f"{server.sampler.private / first.sampler.private:.2f}", ""])
    table.notes += [
        "The same queries throughout, drawn from the first part; parts differ in their seed only. One segment each (`perikope compact`).",
        "private: peak memory of the process that no file stands behind, Python and compiled code included.",
        "others: cores that other programs took meanwhile.",
    ]
    return table


def main(arguments: Sequence[str] = ()) -> None:
    kinds = ("real", "short", "long", "large", "growth")
    parser = argparse.ArgumentParser(prog="python -m benchmarks fetch", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--collection", nargs="+", choices=(*kinds, "all"), default=["real", "short"], metavar="NAME",
        help="real: Evidence Inference. short: 200,000 synthetic documents of 195 words. long: 50,000 of 4,000 words; peers take\n"
        "minutes to build. large: 2.6 million short ones, perikope alone. growth: 1, 4 and 16 times the short ones, perikope alone.\n"
        "Default: real short",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="the real collection only")
    parser.add_argument("--engines", nargs="+", choices=[engine.program for engine in ENGINES], metavar="NAME",
                        help=f"these only: {', '.join(engine.program for engine in ENGINES)}")  # fmt: skip
    parser.add_argument("--queries", type=int, default=200, metavar="N", help="of each length")
    parser.add_argument("--shapes", action="store_true", help="queries of other kinds: random lengths, rare and frequent words, paragraphs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", metavar="PYTHON",
                        help="interpreter of another installation of perikope, measured too; not for large and growth")  # fmt: skip
    parser.add_argument("--build-only", action="store_true", help="make the indexes and measure nothing")
    parser.add_argument("--markdown", metavar="FILE")
    options = parser.parse_args(arguments)
    wanted = ["real"] if options.quick else list(kinds) if "all" in options.collection else options.collection
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)
    speeds = bandwidth()
    for kind in wanted:
        alone = kind in ("large", "growth")
        rows = [PERIKOPE] if alone else [engine for engine in ENGINES if not options.engines or engine.program in options.engines]
        rows += [before(options.before)] if options.before and not alone else []
        chosen = datasets(kind)
        if not all(path.exists() for dataset in chosen for path in dataset.sources):
            print(f"{chosen[0].title}: not here", file=sys.stderr)
        elif options.build_only:
            for dataset in chosen:
                for label, problem in prepare(dataset, rows).items():
                    print(f"  {label}: {problem}", file=sys.stderr, flush=True)
        elif kind == "growth":
            publish([growth(chosen, options.queries, options.rounds)], options.markdown)
        else:
            comparison = compare(chosen[0], rows, options.queries, options.rounds, shapes=options.shapes)
            tables = [times(comparison), agreement(comparison), work(comparison, speeds)]
            publish([table for table in tables if table], options.markdown)


def datasets(kind: str) -> list[Dataset]:
    if kind == "real":
        return [real()]
    if kind == "short":
        return [synthetic("Synthetic, 200,000 short documents", SHORT)]
    if kind == "long":
        return [synthetic("Synthetic, 50,000 long documents", LONG)]
    if kind == "large":
        return [synthetic("Synthetic, 2.6 million short documents", SHORT, PARTS_OF_LARGE)]
    return [synthetic(f"Synthetic, {factor}×", SHORT, factor) for factor in FACTORS]


if __name__ == "__main__":
    main(sys.argv[1:])
