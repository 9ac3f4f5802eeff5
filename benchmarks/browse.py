"""The cost of ranking passages, with one thread and warm caches: `python -m benchmarks browse`.

Measured are the join and every model on all passages of 1,000 synthetic documents of about 4,000 words, cut into
passages of 40 words. The same run measures the alternative without such an index: make a bm25s index of these passages
on the fly and query it. Then come growth with the passages of one document, and a grid over weights. Seconds are CPU
time of the thread, each the minimum of several rounds, because the machine may be busy.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import SCRATCH, Table, publish, shared_data
from benchmarks.queries import draw
from benchmarks.synthetic import Collection, vocabulary
from perikope.browse.matches import Matches, join
from perikope.browse.models import MODELS, Model, parse_model
from perikope.browse.ranking import Ranking, rank
from perikope.browse.signals import Column
from perikope.browse.structure import read_structure
from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import PerikopeError
from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.evaluation.io.topics import read_topics
from perikope.fetch import Candidates
from perikope.fetch.models import parse_fetch_model
from perikope.fetch.search import fetch
from perikope.index.layout import STOP
from perikope.index.reader import Snapshot
from perikope.query.terms import Query, parse_query
from perikope.search.facade import Index

LENGTHS = (4, 10, 100)
K = 1000
COLLECTION = Collection(documents=1000, tokens=4000)
WORDS = 40
SIZES = (100, 1_000, 10_000, 100_000)
SIGMAS = (0.5, 1.0, 2.0, 5.0)
SHARES = [round(0.1 * i, 1) for i in range(11)]


def cpu(action: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """Least CPU milliseconds of this thread over some rounds, and the result."""
    best, result = float("inf"), None
    for _ in range(rounds):
        started = time.thread_time()
        result = action()
        best = min(best, time.thread_time() - started)
    return 1000 * best, result


def synthetic_index() -> tuple[Snapshot, Path]:
    """The collection as one segment; made once."""
    source = COLLECTION.file(SCRATCH)
    folder = SCRATCH / f"browse-{COLLECTION.name}-words{WORDS}"
    try:
        return Snapshot.open(folder), source
    except PerikopeError:  # not there, or of another version
        shutil.rmtree(folder, ignore_errors=True)
        build(str(folder), [str(source)], BuildOptions(segment=f"words:{WORDS}"))
        Index.open(folder).compact()
        return Snapshot.open(folder), source


def queries(snapshot: Snapshot, source: Path, count: int) -> dict[int, list[Query]]:
    """So many queries of each length, words of one document each."""
    drawn = draw(source, snapshot, count)
    terms = {4: [words[:4] for words in drawn["10"]], 10: drawn["10"], 100: drawn["100"]}
    return {length: [_query([f"en:{term}" for term in words]) for words in terms[length]] for length in LENGTHS}


def _query(terms: Sequence[str]) -> Query:
    return Query(" ".join(terms), tuple(terms), (1.0,) * len(terms))


def all_documents(snapshot: Snapshot, query: Query) -> Candidates:
    """Every document, with its fetch score or 0, so that the work is the same for all queries."""
    found = fetch(snapshot, query, parse_fetch_model("bm25"), snapshot.numbers)
    scores = np.zeros(snapshot.numbers)
    scores[found.documents] = found.scores
    return Candidates(np.arange(snapshot.numbers), scores)


def ranked(model: Model, matches: Matches, score: Column, k: int = K) -> Ranking:
    return rank(matches, score, k, matches.id_rank_of_document, matching_only=model.matching_only)


ByLength = dict[int, list[float]]


@dataclass(slots=True)
class Times:
    """Milliseconds by length of the query, one a query."""

    join: ByLength = field(default_factory=lambda: defaultdict(list))
    occurrences: ByLength = field(default_factory=lambda: defaultdict(list))
    model: dict[str, ByLength] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    rank: dict[str, ByLength] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    problems: dict[str, str] = field(default_factory=dict)


def measure(snapshot: Snapshot, wanted: dict[int, list[Query]], models: Sequence[str], rounds: int) -> Times:
    times = Times()
    for length, of_length in wanted.items():
        for query in of_length:
            candidates = all_documents(snapshot, query)
            taken, matches = cpu(lambda query=query, candidates=candidates: join(snapshot, query, candidates), 2 * rounds)
            times.join[length].append(taken)
            times.occurrences[length].append(matches.term_of_occurrence.size)
            matches.id_rank_of_document()  # once a query, whatever the model
            # What a model asks for beyond the join is read in its own time, every round.
            anew = partial(read_structure, snapshot, matches.number_of_document)
            matches = replace(matches, structure=anew)
            for name in models:
                if name not in times.problems:
                    _measure_model(name, matches, length, times, rounds)
    return times


def _measure_model(name: str, matches: Matches, length: int, times: Times, rounds: int) -> None:
    try:
        model = parse_model(name)
        taken, score = cpu(lambda: model.score(matches), rounds)
    except PerikopeError as problem:
        times.problems[name] = str(problem)[:60]
        return
    times.model[name][length].append(taken)
    times.rank[name][length].append(cpu(lambda: ranked(model, matches, score), rounds)[0])


def on_the_fly(snapshot: Snapshot, wanted: dict[int, list[Query]], rounds: int) -> tuple[float, dict[int, list[float]]]:
    """Milliseconds to index all passages with bm25s and to query it; the passages are terms, so nothing is analysed."""
    import bm25s

    passages = [terms for document in range(snapshot.numbers) for terms in _passages(snapshot, document)]

    def index() -> bm25s.BM25:
        peer = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
        peer.index(passages, show_progress=False)
        return peer

    taken, peer = cpu(index, max(1, rounds // 2))
    peer.retrieve([list(wanted[LENGTHS[0]][0].terms)], k=K, show_progress=False, n_threads=0)  # compiles
    asked: dict[int, list[float]] = {length: [] for length in wanted}
    for length, of_length in wanted.items():
        for query in of_length:
            terms = [list(query.terms)]
            ask = lambda terms=terms: peer.retrieve(terms, k=K, show_progress=False, n_threads=0)  # noqa: E731
            asked[length].append(cpu(ask, rounds)[0])
    return taken, asked


def _passages(snapshot: Snapshot, document: int) -> Iterable[list[str]]:
    segment, local = snapshot.locate(document)
    tokens = segment.tokens(local)
    names = np.array([segment.terms.text(int(number)) for number in tokens], object)
    for passage in segment.passages_of(local):
        inside = slice(int(segment["passage.first_token"][passage]), int(segment["passage.end_token"][passage]))
        yield names[inside][tokens[inside] != STOP].tolist()


def _median(values: Sequence[float]) -> str:
    return f"{np.median(values):,.2f}" if len(values) else "–"


def tables_of(snapshot: Snapshot, times: Times, peer: tuple[float, dict[int, list[float]]] | None) -> list[Table]:
    lengths = tuple(times.join)
    columns = [f"{length} terms" for length in lengths]
    about = f"{snapshot.numbers:,} documents, {snapshot.totals.passages:,} passages"
    tokens = sum(int(segment["document.tokens"].sum(dtype=np.int64)) for segment in snapshot.segments)
    table = Table(f"Browse: {about}, {tokens / 1e6:.1f} M tokens; CPU ms, medians", ("", *columns, "", *(f"rank, {c}" for c in columns)))
    empty = [""] * (1 + len(lengths))
    table.rows.append(["occurrences found", *(f"{np.median(times.occurrences[length]):,.0f}" for length in lengths), *empty])
    table.rows.append(["join", *(_median(times.join[length]) for length in lengths), *empty])
    for name, measured in times.model.items():
        if name in times.problems:
            table.rows.append([name, f"n/a ({times.problems[name]})"])
        else:
            row = [*(_median(measured[n]) for n in lengths), "", *(_median(times.rank[name][n]) for n in lengths)]
            table.rows.append([name, *row])
    table.notes += [
        f"Each query is {', '.join(map(str, lengths))} words of one document. rank: the best {K:,} of all passages, ties decided.",
        "Signals and their combination together; explanations are not made. All documents are candidates, whatever they hold.",
        "prox, prox_h and prox_hw include reading the trees of the documents, which no other model asks for.",
    ]
    found = [table]
    if "plm" in times.model and "psg" in times.model and "plm" not in times.problems:
        pairs = Table("plm beside psg: how many times as long", ("", *columns))
        for label, with_join in (("model alone", False), ("join and model", True)):
            ratios = []
            for n in lengths:
                plm, psg = (np.array(times.model[name][n]) + with_join * np.array(times.join[n]) for name in ("plm", "psg"))
                ratios.append(f"{np.median(plm / psg):.1f}")
            pairs.rows.append([label, *ratios])
        found.append(pairs)
    if peer is not None and "bm25" in times.model:
        fly = Table("The same passages ranked by BM25, CPU ms, medians", ("", *columns))
        ours = {n: np.array(times.join[n]) + np.array(times.model["bm25"][n]) + np.array(times.rank["bm25"][n]) for n in lengths}
        theirs = {n: peer[0] + np.array(peer[1][n]) for n in lengths}
        fly.rows += [
            ["perikope: join, bm25 and rank", *(_median(ours[n]) for n in lengths)],
            ["bm25s: index built for the query", *([f"{peer[0]:,.0f}"] * len(lengths))],
            ["bm25s: query", *(_median(peer[1][n]) for n in lengths)],
            ["bm25s ÷ perikope", *(f"{np.median(theirs[n] / ours[n]):,.0f}" for n in lengths)],
            ["bm25s query alone ÷ perikope", *(f"{np.median(np.array(peer[1][n]) / ours[n]):.2f}" for n in lengths)],
        ]
        fly.notes.append("bm25s gets terms: no analysis is counted for it. Its index knows no context, and these documents alone.")
        found.append(fly)
    return found


def growth(rounds: int, sizes: Sequence[int] = SIZES) -> Table:
    """One document of ever more passages, in sections of ten, three levels deep."""
    table = Table(
        "qsf_passage_propagate: passages in one document; CPU ms",
        ("passages", "sections", "join", "signals", "µs per passage", "÷ row before"),
    )
    folder = SCRATCH / f"browse-growth-{'-'.join(map(str, sizes))}"
    try:
        snapshot = Snapshot.open(folder)
    except PerikopeError:
        shutil.rmtree(folder, ignore_errors=True)
        index = Index.create(folder)
        for size in sizes:
            index.add(long_document(size))
        index.commit()
        snapshot = Snapshot.open(folder)
    model, before = parse_model("qsf_passage_propagate"), 0.0
    query = parse_query(" ".join(vocabulary()[[200, 500, 900, 2000]].tolist()), snapshot.analyzer, ["en"])
    for size in sizes:
        candidates = Candidates(np.array([snapshot.find_document(f"{size} passages")]), np.ones(1))
        joined, matches = cpu(lambda candidates=candidates: join(snapshot, query, candidates), 2 * rounds)
        taken, _ = cpu(lambda matches=matches: model.signals(matches), 2 * rounds)
        ratio = f"{taken / before:.1f}" if before else ""
        row = (f"{size:,}", f"{matches.parent_of_section.size:,}", f"{joined:.2f}", f"{taken:.2f}", f"{1000 * taken / size:.2f}", ratio)
        table.rows.append(row)
        before = taken
    table.notes.append("Ten times the passages should take ten times as long; pair by pair it would be a hundred times.")
    return table


def long_document(passages: int, words: int = 20) -> Document:
    chance = np.random.default_rng(passages)
    drawn = vocabulary()[np.minimum(chance.zipf(1.3, passages * words), 5000) - 1]
    texts = iter([" ".join(row) for row in drawn.reshape(passages, words).tolist()])
    builder = TreeBuilder(f"{passages} passages", title="One long document")

    def fill(count: int, depth: int) -> None:
        for at in range(0, count, 10 ** (depth + 1)):
            with builder.span(Kind.SECTION, "sec"):
                builder.title(f"Section {at}")
                inside = min(10 ** (depth + 1), count - at)
                if depth:
                    fill(inside, depth - 1)
                else:
                    for _ in range(inside):
                        builder.passage(next(texts))

    fill(passages, 2)
    return builder.build()


def tuning(rounds: int, most: int | None = None) -> Table | None:
    """A grid over weights and one shape parameter: signals once a topic and shape, then only combining and ranking."""
    data = shared_data() / "conditionalqa"
    if not data.is_dir():
        print(f"no collection at {data}: no tuning grid", file=sys.stderr)
        return None
    folder = SCRATCH / "browse-conditionalqa"
    try:
        snapshot = Snapshot.open(folder)
    except PerikopeError:
        shutil.rmtree(folder, ignore_errors=True)
        build(str(folder), [str(data / "documents.jsonl")])
        snapshot = Snapshot.open(folder)
    topics = read_topics(data / "topics.tsv")[:most]
    shapes = [parse_model(f"qsf_section_propagate(sigma={sigma})") for sigma in SIGMAS]
    settings = [{"alpha": alpha, "beta": beta} for alpha in SHARES for beta in SHARES]
    seconds = dict.fromkeys(("fetch", "join", "signals", "combine", "rank"), 0.0)

    def timed(part: str, action: Callable[[], Any]) -> Any:
        started = time.thread_time()
        result = action()
        seconds[part] += time.thread_time() - started
        return result

    for topic in topics:
        query = parse_query(topic.query, snapshot.analyzer, snapshot.languages)
        found = timed("fetch", lambda query=query: fetch(snapshot, query, parse_fetch_model("bm25"), 1000))
        matches = timed("join", lambda query=query, found=found: join(snapshot, query, found))
        for shape in shapes:
            signals = timed("signals", lambda shape=shape, matches=matches: shape.signals(matches))
            for weights in settings:
                model = replace(shape, parameters={**shape.parameters, **weights})
                score = timed("combine", lambda model=model, signals=signals: model.combine(signals))
                timed("rank", lambda model=model, matches=matches, score=score: ranked(model, matches, score))
    count = len(shapes) * len(settings)
    table = Table(
        f"Tuning grid: {count} settings of qsf_section_propagate over {len(topics)} topics of conditionalqa; CPU seconds, one thread",
        ("", *seconds, "all", "all, signals each time"),
    )
    anew = seconds["fetch"] + count * (seconds["join"] + seconds["signals"] / len(shapes)) + seconds["combine"] + seconds["rank"]
    table.rows.append(["seconds", *(f"{value:.2f}" for value in seconds.values()), f"{sum(seconds.values()):.1f}", f"{anew:.0f}"])
    calls = [1, 1, len(shapes), count, count]
    each = (f"{1e6 * value / len(topics) / number:.0f}" for value, number in zip(seconds.values(), calls, strict=True))
    table.rows.append(["µs per call", *each, "", ""])
    table.notes += [
        f"{len(shapes)} σ × 11 α × 11 β: signals {len(shapes)} times a topic, combined and ranked {count} times.",
        "The last column is computed: join and signals made anew for each setting.",
    ]
    return table


def main(arguments: Sequence[str] = ()) -> None:
    parts = ("models", "growth", "tuning")
    parser = argparse.ArgumentParser(prog="python -m benchmarks browse", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, metavar="PART", help=f"these only: {', '.join(parts)}")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="these models instead of all")
    parser.add_argument("--queries", type=int, default=10, metavar="N", help="of each length")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-peer", action="store_true", help="no bm25s")
    parser.add_argument("--markdown", metavar="FILE")
    options = parser.parse_args(arguments)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)
    if "models" in options.only:
        snapshot, source = synthetic_index()
        wanted = queries(snapshot, source, options.queries)
        ready = [name for name, found in MODELS.items() if found.is_ready]
        times = measure(snapshot, wanted, options.models or [*ready, "plm(kernel=trapezoid)"], options.rounds)
        peer = None if options.without_peer else on_the_fly(snapshot, wanted, options.rounds)
        publish(tables_of(snapshot, times, peer), options.markdown)
    if "growth" in options.only:
        publish([growth(options.rounds)], options.markdown)
    if "tuning" in options.only and (table := tuning(options.rounds)):
        publish([table], options.markdown)


if __name__ == "__main__":
    main(sys.argv[1:])
