"""Several processes build segments side by side: each parses, analyses and writes whole segments; only manifest entries come back.

Processes are spawned, not forked: a fork copies locks and threads in whatever state they are.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from perikope.errors import InputError, PerikopeError, UnreadableFile
from perikope.formats import FORMATS, Source, documents, line_chunks
from perikope.index.writer import SegmentBuilder
from perikope.segment import segmenter
from perikope.text import Analyzer

TASK_BYTES = 4 << 20
"""Of files that a worker gets at a time."""

Task = list[Source]


@dataclass(frozen=True, slots=True)
class Job:
    """What every worker needs to know."""

    folder: Path
    analysis: dict[str, Any]
    segment: str
    memory: int
    prefix: str


@dataclass(slots=True)
class Outcome:
    """What the workers made."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[UnreadableFile] = field(default_factory=list)


def tasks(sources: Iterable[Source]) -> Iterator[Task]:
    """Sources dealt out into tasks of about `TASK_BYTES`: lines of large files in chunks, small files together."""
    batch: Task = []
    size = 0
    for source in sources:
        if FORMATS[source.format].by_lines:
            yield from ([chunk] for chunk in line_chunks(source, TASK_BYTES))
            continue
        carried = source.carried()
        batch.append(carried)
        size += len(carried.content) if isinstance(carried.content, bytes) else _size(carried.path)
        if size >= TASK_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def build_segments(job: Job, work: Iterable[Task], workers: int, on_documents: Callable[[int, Task], None]) -> Outcome:
    """Deal tasks out to `workers` processes; an error in one ends them all and is raised here."""
    context = multiprocessing.get_context("spawn")
    connections: dict[Connection, Any] = {}
    outcome = Outcome()
    try:
        for number in range(workers):
            mine, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, job, f"{job.prefix}{number}"), daemon=True)
            process.start()
            theirs.close()
            connections[mine] = process
        _deal(connections, work, outcome, on_documents)
        for connection in connections:
            connection.send(None)
        for connection in connections:
            outcome.entries += _answer(connection, outcome)
        return outcome
    finally:
        for connection, process in connections.items():
            connection.close()
            process.join(timeout=5)
            if process.is_alive():
                process.kill()
                process.join()


def _deal(connections: Iterable[Connection], work: Iterable[Task], outcome: Outcome, on_documents: Callable[[int, Task], None]) -> None:
    idle = list(connections)
    busy: dict[Connection, Task] = {}

    def collect() -> None:
        for connection in wait(list(busy)):
            assert isinstance(connection, Connection)
            on_documents(_answer(connection, outcome), busy.pop(connection))
            idle.append(connection)

    for task in work:
        # Only to a worker that waits: sending to a busy one would block until it reads.
        while not idle:
            collect()
        connection = idle.pop()
        connection.send(task)
        busy[connection] = task
    while busy:
        collect()


def _answer(connection: Connection, outcome: Outcome) -> Any:
    try:
        kind, value, skipped = connection.recv()
    except EOFError:
        raise PerikopeError("a worker process ended by itself (out of memory?): use fewer (--workers) or less memory (--memory)") from None
    outcome.skipped += [UnreadableFile(message) for message in skipped]
    if kind == "error":
        raise InputError(value)
    return value


def _work(connection: Connection, job: Job, name: str) -> None:
    """A worker's life: tasks come, segments are written, and at the end their entries go back."""
    analyzer = Analyzer.from_settings(job.analysis)
    cut = segmenter(job.segment)
    builder = SegmentBuilder(analyzer)
    entries: list[dict[str, Any]] = []

    def flush() -> None:
        nonlocal builder
        if len(builder):
            entries.append(builder.write(job.folder / f"{name}-{len(entries)}.columns"))
            builder = SegmentBuilder(analyzer)

    skipped: list[str] = []
    try:
        while (task := connection.recv()) is not None:
            before, skipped = len(builder), []
            for source in task:
                try:
                    for document in documents(source):
                        builder.add(cut(document))
                except UnreadableFile as problem:
                    if source.named:
                        raise
                    skipped.append(str(problem))
            added = len(builder) - before
            if builder.memory > job.memory:
                flush()
            connection.send(("documents", added, skipped))
        flush()
        connection.send(("entries", entries, []))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return  # the other side has given up, and says why
    except (PerikopeError, OSError, MemoryError) as error:
        connection.send(("error", str(error) or type(error).__name__, skipped))


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
