"""Engines on one collection: their indexes, the processes in which they answer, and what each query takes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import measure, peers
from benchmarks.build import perikope_command
from benchmarks.common import ROOT, SCRATCH, SINGLE, folder_bytes, megabytes
from benchmarks.queries import Queries, draw, write_terms
from perikope.core.errors import IndexFormatError
from perikope.index.reader import Snapshot

FOLDER = SCRATCH / "fetch"
KS = (10, 1000)
BUILD_SECONDS = 20 * 60
WARM_SECONDS = 3.0
"""For each length and k, at least: Java compiles what has run for a while."""

Point = tuple[str, int]
"""A length of queries and a k."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A row of the table: the program in `benchmarks.engines`, its environment, and the name of its index."""

    program: str
    label: str
    peer: str | None = None
    version: str = ""
    interpreter: str = sys.executable
    """Of a row of perikope: another installation may be measured too."""

    @property
    def index(self) -> str:
        return f"{self.program.partition('-')[0]}{self.version}"

    @property
    def is_ours(self) -> bool:
        return self.peer is None

    def command(self, action: str, *paths: Path) -> list[str]:
        interpreter = str(peers.python(self.peer)) if self.peer else self.interpreter
        return [interpreter, "-m", "benchmarks.engines", self.program, action, *map(str, paths)]

    def environment(self) -> dict[str, str]:
        return {**os.environ, **SINGLE, **({"LUCENE_JAR": str(peers.lucene_jar())} if self.peer == "lucene" else {})}


def _peer(program: str, label: str, peer: str) -> Engine:
    pinned = peers.LUCENE_SOURCE if peer == "lucene" else peers.PINNED[peer][0]
    return Engine(program, label, peer, f"-{pinned.partition('==')[2]}")


PERIKOPE = Engine("perikope", "perikope")


def before(python: str) -> Engine:
    """The row of another installation, with an index of its own format."""
    return Engine("perikope", "perikope before", version="-before", interpreter=python)


ENGINES = (
    PERIKOPE,
    _peer("lucene", "Lucene", "lucene"),
    _peer("pisa", "PISA, block-max WAND", "pyterrier-pisa"),
    _peer("pisa-maxscore", "PISA, MaxScore", "pyterrier-pisa"),
    _peer("tantivy", "tantivy", "tantivy"),
    _peer("bm25s", "bm25s", "bm25s"),
)


@dataclass(frozen=True, slots=True)
class Dataset:
    """Files that are one collection; queries are drawn from the first."""

    title: str
    name: str
    sources: tuple[Path, ...]

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    def snapshot(self) -> Snapshot:
        return Snapshot.open(self.folder / PERIKOPE.index)


def built(dataset: Dataset, engine: Engine) -> str:
    """Make the index of an engine where there is none; returns what went wrong, if anything.

    A peer that failed is not tried again before its note (`.problem`) has been removed.
    """
    target = dataset.folder / engine.index
    note, unfinished = target.with_name(f"{target.name}.problem"), target.with_name(f"{target.name}.part")
    if note.exists():
        return note.read_text(encoding="utf-8")
    if target.exists() and (engine != PERIKOPE or _readable(target)):
        return ""
    shutil.rmtree(unfinished, ignore_errors=True)
    dataset.folder.mkdir(parents=True, exist_ok=True)
    print(f"… {dataset.title}: index of {engine.label}", file=sys.stderr, flush=True)
    if engine.is_ours:
        arguments = perikope_command([str(path) for path in dataset.sources], str(unfinished))
        result = measure.run([engine.interpreter, *arguments[1:]], cwd=ROOT)
        if not result.problem:
            # The peers have one segment too.
            result = measure.run([engine.interpreter, "-m", "perikope", "compact", str(unfinished)], cwd=ROOT)
    else:
        terms = dataset.folder / "terms.txt"
        if not terms.exists():
            write_terms(dataset.snapshot(), terms)
        try:
            command, environment = engine.command("build", terms, unfinished), engine.environment()
        except (RuntimeError, OSError) as error:  # could not be installed: tried again next time
            return str(error)
        result = measure.run(command, cwd=ROOT, seconds=BUILD_SECONDS, environment=environment)
    if result.problem:
        if not engine.is_ours:
            note.write_text(result.problem, encoding="utf-8")
        shutil.rmtree(unfinished, ignore_errors=True)
        return result.problem
    shutil.rmtree(target, ignore_errors=True)  # of an older format
    unfinished.rename(target)
    print(
        f"  {result.wall:.0f} s, {result.private / 1e6:,.0f} MB private, {megabytes(folder_bytes(target))} MB", file=sys.stderr, flush=True
    )
    return ""


def _readable(folder: Path) -> bool:
    try:
        Snapshot.open(folder)
    except IndexFormatError:
        return False
    return True


class Server:
    """An engine that answers in a separate process, and the cost of that process."""

    def __init__(self, engine: Engine, index: Path, queries: Path) -> None:
        self.engine = engine
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (lasts as long as the process)
        self.process = subprocess.Popen(
            engine.command("serve", index, queries),
            cwd=ROOT, env=engine.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, start_new_session=True,
        )  # fmt: skip
        self.sampler = measure.Sampler(self.process.pid, measure.memory_limit())
        self.sampler.start()
        self.wall = self.foreign = 0.0
        self.best: dict[Point, NDArray[np.float64]] = {}
        self.hits: dict[Point, list[list[tuple[str, float]]]] = {}
        self.segments: int = self._answer()["segments"]

    def warm(self, point: Point) -> None:
        self.hits[point] = self._ask(point, keep=10)["hits"]
        started = time.perf_counter()
        while self.engine.peer == "lucene" and time.perf_counter() - started < WARM_SECONDS:
            self._ask(point)

    def measure(self, point: Point) -> None:
        started, busy, own = time.perf_counter(), measure.busy(), time.process_time()
        answer = self._ask(point)
        self.wall += time.perf_counter() - started
        self.foreign += measure.busy() - busy - answer["cpu"] - (time.process_time() - own)
        taken = np.array(answer["nanoseconds"]) / 1e6
        self.best[point] = np.minimum(self.best.get(point, taken), taken)

    @property
    def others(self) -> float:
        """Cores that other programs took while this one was measured."""
        return max(0.0, self.foreign / self.wall) if self.wall else 0.0

    def close(self) -> None:
        self.sampler.finished.set()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()

    def _ask(self, point: Point, keep: int = 0) -> dict[str, Any]:
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps({"terms": point[0], "k": point[1], "keep": keep}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._failure() from None
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise self._failure()
        content: dict[str, Any] = json.loads(line)
        return content

    def _failure(self) -> RuntimeError:
        self.process.wait()
        self.sampler.finished.set()
        self.errors.seek(0)
        lines = self.errors.read().decode("utf-8", "replace").strip().splitlines()
        stopped = f"stopped at the {self.sampler.exceeded}" if self.sampler.exceeded else ""
        return RuntimeError(stopped or (lines[-1][:120] if lines else f"exit status {self.process.returncode}"))


@dataclass(slots=True)
class Comparison:
    """What was measured on one collection."""

    dataset: Dataset
    queries: Queries
    points: list[Point]
    servers: list[Server] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    """By the label of the engine."""

    def of(self, program: str) -> Server | None:
        return next((server for server in self.servers if server.engine.program == program), None)


def prepare(dataset: Dataset, engines: Sequence[Engine]) -> dict[str, str]:
    """Make all indexes that are missing; returns what went wrong, by the label of the engine."""
    if problem := built(dataset, PERIKOPE):  # also where it is not asked for: queries and terms come from it
        raise SystemExit(f"perikope cannot index {dataset.title}: {problem}")
    return {engine.label: problem for engine in engines if (problem := built(dataset, engine))}


def compare(
    dataset: Dataset, engines: Sequence[Engine], count: int, rounds: int, queries: Queries | None = None, *, shapes: bool = False
) -> Comparison:
    """All engines on one collection, with queries drawn from it or given. For `shapes` see `draw`."""
    problems = prepare(dataset, engines)
    queries = queries or draw(dataset.sources[0], dataset.snapshot(), count, shapes=shapes)
    comparison = Comparison(dataset, queries, [(length, k) for length in queries for k in KS], problems=problems)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "queries.json")
        file.write_text(json.dumps({length: drawn[:2] for length, drawn in queries.items()}), encoding="utf-8")
        for engine in engines:
            if engine.is_ours and engine.label not in problems:
                _compile(comparison, engine, file)
        file.write_text(json.dumps(queries), encoding="utf-8")
        try:
            _measure(comparison, [engine for engine in engines if engine.label not in comparison.problems], file, rounds)
        finally:
            for server in comparison.servers:
                server.close()
    return comparison


def _compile(comparison: Comparison, engine: Engine, queries: Path) -> None:
    """Let perikope compile its kernels once per installation: the memory of the compiler is not that of a query."""
    with suppress(RuntimeError):  # comes up again where it is measured
        server = Server(engine, comparison.dataset.folder / engine.index, queries)
        for point in comparison.points:
            server.warm(point)
        server.close()


def _measure(comparison: Comparison, engines: Sequence[Engine], queries: Path, rounds: int) -> None:
    print(f"… {comparison.dataset.title}: measuring", file=sys.stderr, flush=True)

    def attempt(server: Server, point: Point, action: str) -> None:
        try:
            getattr(server, action)(point)
        except RuntimeError as error:
            comparison.problems[server.engine.label] = str(error)
            comparison.servers.remove(server)
            server.close()

    for engine in engines:
        try:
            comparison.servers.append(Server(engine, comparison.dataset.folder / engine.index, queries))
        except RuntimeError as error:
            comparison.problems[engine.label] = str(error)
    for point in comparison.points:
        for server in list(comparison.servers):
            attempt(server, point, "warm")
    for point in comparison.points:
        for number in range(rounds):
            turn = number % max(1, len(comparison.servers))  # nobody is always the first, nor always behind the same one
            for server in comparison.servers[turn:] + comparison.servers[:turn]:
                attempt(server, point, "measure")
