"""Several processes build segments side by side: each parses, analyses and writes whole segments; only manifest entries come back.

The process that deals out the work takes part in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import queue
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from perikope.core.errors import InputError, PerikopeError, UnreadableFile
from perikope.document.segmentation import segmenter
from perikope.formats import Source, documents, format_named
from perikope.index.writer import SegmentBuilder
from perikope.text.analysis import Analyzer

TASK_BYTES = 4 << 20
"""Of files that a worker gets at a time."""

Task = list[Source]
Problem = tuple[str, str]
"""Path and message of a file that had to be skipped, as they cross processes."""


@dataclass(frozen=True, slots=True)
class Job:
    """What every worker needs to know."""

    folder: Path
    analysis: dict[str, Any]
    segment: str
    memory: int
    prefix: str


@dataclass(slots=True)
class WorkersOutput:
    """What the workers made."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[UnreadableFile] = field(default_factory=list)


def tasks(sources: Iterable[Source], on_problem: Callable[[UnreadableFile], None]) -> Iterator[Task]:
    """Sources dealt out into tasks of about `TASK_BYTES`: lines of large files in chunks, small files together."""
    batch: Task = []
    size = 0
    for source in sources:
        try:
            for piece in _pieces(source):
                batch.append(piece)
                size += size_of(piece)
                if size >= TASK_BYTES:
                    yield batch
                    batch, size = [], 0
        except UnreadableFile as problem:
            if source.named:
                raise
            on_problem(problem.with_traceback(None))
    if batch:
        yield batch


def _pieces(source: Source) -> Iterator[Source]:
    """A source as workers get it: portable, and in pieces where it is large and its format can be cut."""
    split = format_named(source.format).split
    if split is None or (source.portable and size_of(source) < TASK_BYTES):
        return iter((source.carried(),))
    return split(source, TASK_BYTES)


PACKED = (".gz", ".zip", ".tgz", ".bz2", ".tbz2", ".xz", ".txz")
PACKED_RATIO = 4
"""About how much text grows when it is unpacked; for estimates of work and of time left."""


def size_of(source: Source) -> int:
    """About how many bytes a source has unpacked: those it carries, or those of its file."""
    return len(source.content) if isinstance(source.content, bytes) else file_size(source.path)


def file_size(path: str) -> int:
    """About how many bytes a file has unpacked."""
    try:
        return Path(path).stat().st_size * (PACKED_RATIO if path.endswith(PACKED) else 1)
    except OSError:
        return 0


class SegmentWorker:
    """Turns tasks into segments, in this process or in one of its own."""

    def __init__(self, job: Job, name: str) -> None:
        self._job = job
        self._name = name
        self._analyzer = Analyzer.from_settings(job.analysis)
        self._cut = segmenter(job.segment)
        self._builder = SegmentBuilder(self._analyzer)
        self._entries: list[dict[str, Any]] = []

    def take(self, task: Task) -> tuple[int, list[Problem]]:
        """Add the documents of a task; returns how many there were, and what had to be skipped."""
        before = len(self._builder)
        skipped: list[Problem] = []
        for source in task:
            try:
                for document in documents(source):
                    self._builder.add(self._cut(document))
            except UnreadableFile as problem:
                if source.named and not problem.partly:
                    raise
                skipped.append((str(problem.path), str(problem)))
        added = len(self._builder) - before
        if self._builder.memory > self._job.memory:
            self._flush()
        return added, skipped

    def finish(self) -> list[dict[str, Any]]:
        """Write what is left; returns the manifest's entries of all segments."""
        self._flush()
        return self._entries

    def _flush(self) -> None:
        if len(self._builder):
            path = self._job.folder / f"{self._name}-{len(self._entries)}.columns"
            self._entries.append(self._builder.write(path))
            self._builder = SegmentBuilder(self._analyzer)


def build_segments(job: Job, work: Iterable[Task], workers: int, on_documents: Callable[[int, Task], None]) -> WorkersOutput:
    """Deal tasks out to this process and `workers - 1` others; an error in one ends them all and is raised here.

    This process works too: it has everything loaded, and others may take a second to start.
    """
    context = process_context()
    forked = context.get_start_method() == "fork"
    processes = []
    feeders: list[_Feeder] = []
    ours: list[Connection] = []
    own = SegmentWorker(job, f"{job.prefix}0")
    try:
        for number in range(1, workers):
            mine, theirs = context.Pipe()
            ours.append(mine)
            arguments = (theirs, job, f"{job.prefix}{number}", list(ours) if forked else None)
            process = context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
            feeders.append(_Feeder(mine))
        # Only now: a process is not forked while this one has threads.
        for feeder in feeders:
            feeder.start()
        outcome = WorkersOutput()
        for task in work:
            if not any(feeder.offer(task) for feeder in feeders):
                added, skipped = own.take(task)
                outcome.skipped += map(_problem, skipped)
                on_documents(added, task)
            _report(feeders, outcome, on_documents)
        for feeder in feeders:
            feeder.finish()
        outcome.entries += own.finish()
        for feeder in feeders:
            feeder.join()
            outcome.entries += feeder.entries
        _report(feeders, outcome, on_documents)
        return outcome
    finally:
        for feeder in feeders:
            feeder.close()
        for process in processes:
            process.join(timeout=5)
            if process.is_alive():
                process.kill()
                process.join()


def _problem(found: Problem) -> UnreadableFile:
    problem = UnreadableFile(found[1])
    problem.path = found[0]
    return problem


def _report(feeders: Iterable[_Feeder], outcome: WorkersOutput, on_documents: Callable[[int, Task], None]) -> None:
    for feeder in feeders:
        while feeder.done:
            added, skipped, task = feeder.done.popleft()
            outcome.skipped += map(_problem, skipped)
            on_documents(added, task)
        if feeder.error is not None:
            raise feeder.error


class _Feeder(threading.Thread):
    """Keeps one worker process busy: a task in hand, and the next one waiting."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(daemon=True)
        self.done: deque[tuple[int, list[Problem], Task]] = deque()
        self.entries: list[dict[str, Any]] = []
        self.error: PerikopeError | None = None
        self._connection = connection
        self._tasks: queue.Queue[Task | None] = queue.Queue(maxsize=1)

    def offer(self, task: Task) -> bool:
        """Take a task if there is room for it."""
        try:
            self._tasks.put_nowait(task)
        except queue.Full:
            return False
        return True

    def finish(self) -> None:
        """Let the worker write what it has once the waiting task is done."""
        while self.error is None and self.is_alive():
            try:
                self._tasks.put(None, timeout=0.1)
            except queue.Full:
                continue
            return

    def close(self) -> None:
        """Give up on the worker."""
        self._connection.close()

    def run(self) -> None:
        try:
            while (task := self._tasks.get()) is not None:
                self._connection.send(task)
                added, skipped = self._answer()
                self.done.append((added, skipped, task))
            self._connection.send(None)
            self.entries = self._answer()
        except PerikopeError as error:
            self.error = error
        except (EOFError, OSError, TypeError):
            # Closed under our hands by `close` (which shows as any of these), or the other side is gone.
            self.error = PerikopeError("a worker process ended by itself (out of memory?): use fewer (--workers) or less memory (--memory)")

    def _answer(self) -> Any:
        kind, value = self._connection.recv()
        if kind == "error":
            raise InputError(value)
        return value


def die_with_parent() -> None:
    """Have Linux end this process with its parent, also while it writes a segment that nobody will commit."""
    # Elsewhere a worker ends when it next asks for work, since the other end of its pipe is closed.
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def process_context() -> Any:
    """How processes start: forked where this one has a single thread, which is safe and takes no time; else spawned, a second each.

    A fork copies locks in whatever state other threads have them in.
    """
    forks = hasattr(os, "fork") and threading.active_count() == 1 and sys.platform == "linux"
    return multiprocessing.get_context("fork" if forks else "spawn")


def _work(connection: Connection, job: Job, name: str, inherited: list[Connection] | None) -> None:
    """The life of a worker process: tasks come, segments are written, and at the end their entries go back."""
    if inherited is not None:
        # Forked: with the parent's ends open we would not notice its death.
        for other in inherited:
            other.close()
        die_with_parent()
    try:
        worker = SegmentWorker(job, name)
        while (task := connection.recv()) is not None:
            connection.send(("documents", worker.take(task)))
        connection.send(("entries", worker.finish()))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return  # the other side has given up, and says why
    except (PerikopeError, OSError, MemoryError) as error:
        connection.send(("error", str(error) or type(error).__name__))
