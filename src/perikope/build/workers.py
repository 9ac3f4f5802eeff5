"""Builds segments in several processes.

Each process reads files, analyses texts and writes whole segments. It returns only the manifest entries of its
segments, and the order of their documents. The main process distributes tasks and works on tasks too.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.arrays import Integers
from perikope.core.errors import InputError, PerikopeError, UnreadableFile
from perikope.document.languages import keep_languages
from perikope.document.segmentation import segmenter
from perikope.document.tree import Document
from perikope.formats import Source, documents, format_named
from perikope.index.commit import WrittenSegment
from perikope.index.writer import SegmentBuilder
from perikope.text.analysis import Analyzer, language_code

TASK_BYTES = 4 << 20
"""The approximate size of a task in bytes. A task is the files, or pieces of files, that a worker gets at a time."""

Task = list[Source]
Problem = tuple[str, int | None, str]
"""The path, the line and the reason of a skipped file's error, as they are sent between processes."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The settings that all workers share."""

    folder: Path
    """The folder of the index."""
    analysis: dict[str, Any]
    """The settings of the text analysis, as in the manifest."""
    segment: str
    """How documents are cut into passages; see `perikope.document.segmentation`."""
    languages: tuple[str, ...]
    """The languages whose text is indexed; empty for all languages."""
    memory: int
    """The memory for one segment under construction, in bytes."""
    prefix: str
    """The beginning of the names of new segment files; the number of the worker follows."""


@dataclass(slots=True)
class WorkersOutput:
    """The result of all workers: the new segments, and one error per skipped file."""

    segments: list[WrittenSegment] = field(default_factory=list)
    skipped: list[UnreadableFile] = field(default_factory=list)


def tasks(sources: Iterable[Source], on_problem: Callable[[UnreadableFile], None], size: int = TASK_BYTES) -> Iterator[Task]:
    """Divide sources into tasks of about `size` bytes.

    Large files are cut into pieces, and small files are put together.

    A file that cannot be read is passed to `on_problem`, or raises its error if the user named the file.
    """
    batch: Task = []
    collected = 0
    for source in sources:
        try:
            for piece in _pieces(source, size):
                batch.append(piece)
                collected += size_of(piece)
                if collected >= size:
                    yield batch
                    batch, collected = [], 0
        except UnreadableFile as problem:
            if source.named:
                raise
            on_problem(problem.with_traceback(None))
    if batch:
        yield batch


def _pieces(source: Source, size: int) -> Iterator[Source]:
    """Convert a source into a form that can be sent to a worker.

    A source of more than `size` bytes is cut into pieces if its format allows it.
    """
    split = format_named(source.format).split
    if split is None or (source.portable and size_of(source) < size):
        return iter((source.carried(),))
    return split(source, size)


PACKED = (".gz", ".zip", ".tgz", ".bz2", ".tbz2", ".xz", ".txz")
PACKED_RATIO = 4
"""The assumed ratio of the unpacked to the packed size of a file, for estimates of work and remaining time."""


def preparing(segment: str, languages: Sequence[str]) -> Callable[[Document], Iterator[Document]]:
    """The function that yields a document as it is indexed: text of some languages only, cut into passages.

    It yields nothing for a document without text in these languages.
    """
    cut, codes = segmenter(segment), frozenset(map(language_code, languages))

    def prepare(document: Document) -> Iterator[Document]:
        kept = keep_languages(document, codes) if codes else document
        if kept is not None:
            yield cut(kept)

    return prepare


def size_of(source: Source) -> int:
    """The estimated unpacked size in bytes of a source's content, if it is in memory, or of its file."""
    return len(source.content) if isinstance(source.content, bytes) else file_size(source.path)


def file_size(path: str) -> int:
    """The estimated unpacked size of a file in bytes; 0 if it cannot be read."""
    try:
        return Path(path).stat().st_size * (PACKED_RATIO if path.endswith(PACKED) else 1)
    except OSError:
        return 0


class SegmentWorker:
    """Turns tasks into segments, in the main process or in a worker process."""

    def __init__(self, job: WorkerSettings, name: str) -> None:
        self._job = job
        self._name = name
        self._analyzer = Analyzer.from_settings(job.analysis)
        self._prepare = preparing(job.segment, job.languages)
        self._builder = SegmentBuilder(self._analyzer)
        self._tasks: list[tuple[int, int]] = []
        self._segments: list[WrittenSegment] = []

    def take(self, number: int, task: Task) -> tuple[int, list[Problem]]:
        """Add the documents of a task; returns the number of added documents and the skipped files.

        `number` is the position of the task in the order of all tasks.
        """
        before = len(self._builder)
        skipped: list[Problem] = []
        for source in task:
            try:
                for document in documents(source):
                    for prepared in self._prepare(document):
                        self._builder.add(prepared)
            except UnreadableFile as problem:
                if source.named and not problem.partly:
                    raise
                skipped.append((str(problem.path), problem.line, problem.reason))
        added = len(self._builder) - before
        self._tasks.append((number, added))
        if self._builder.memory > self._job.memory:
            self._flush()
        return added, skipped

    def finish(self) -> list[WrittenSegment]:
        """Write the remaining documents; returns all segments that this worker wrote."""
        self._flush()
        return self._segments

    def _flush(self) -> None:
        if len(self._builder):
            path = self._job.folder / f"{self._name}-{len(self._segments)}.columns"
            order: Integers = np.repeat(*np.array(self._tasks, np.int64).T)
            self._segments.append(WrittenSegment(self._builder.write(path), order))
            self._builder = SegmentBuilder(self._analyzer)
        self._tasks = []


def build_segments(job: WorkerSettings, work: Iterable[Task], workers: int, on_documents: Callable[[int, Task], None]) -> WorkersOutput:
    """Distribute tasks to this process and `workers - 1` others. An error in one process ends all and is raised here.

    This process works too, since the others may take a second to start. After each task, `on_documents` is called with
    the number of documents in the task and the task.
    """
    context = process_context()
    forked = context.get_start_method() == "fork"
    processes = []
    feeders: list[_Feeder] = []
    ours: list[Connection] = []
    local_worker = SegmentWorker(job, f"{job.prefix}0")
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
        # The threads are started after all processes, since a process with threads must not be forked.
        for feeder in feeders:
            feeder.start()
        outcome = WorkersOutput()
        for number, task in enumerate(work):
            if not any(feeder.offer(number, task) for feeder in feeders):
                added, skipped = local_worker.take(number, task)
                outcome.skipped += map(error_of, skipped)
                on_documents(added, task)
            _report(feeders, outcome, on_documents)
        for feeder in feeders:
            feeder.finish()
        outcome.segments += local_worker.finish()
        for feeder in feeders:
            feeder.join()
            outcome.segments += feeder.segments
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


def error_of(problem: Problem) -> UnreadableFile:
    """The error that a worker has sent."""
    path, line, reason = problem
    return UnreadableFile(reason, path=path, line=line)


def _report(feeders: Iterable[_Feeder], outcome: WorkersOutput, on_documents: Callable[[int, Task], None]) -> None:
    """Collect the finished tasks of all workers. If a worker had an error, raise it."""
    for feeder in feeders:
        while feeder.done:
            added, skipped, task = feeder.done.popleft()
            outcome.skipped += map(error_of, skipped)
            on_documents(added, task)
        if feeder.error is not None:
            raise feeder.error


class _Feeder(threading.Thread):
    """The thread that sends tasks to one worker process. One more task waits while the process works."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(daemon=True)
        self.done: deque[tuple[int, list[Problem], Task]] = deque()
        self.segments: list[WrittenSegment] = []
        self.error: PerikopeError | None = None
        self._connection = connection
        self._tasks: queue.Queue[tuple[int, Task] | None] = queue.Queue(maxsize=1)

    def offer(self, number: int, task: Task) -> bool:
        """Accept a task unless another task is waiting; returns whether the task was accepted."""
        try:
            self._tasks.put_nowait((number, task))
        except queue.Full:
            return False
        return True

    def finish(self) -> None:
        """Make the worker write its last segment and end when it has done the waiting task."""
        while self.error is None and self.is_alive():
            try:
                self._tasks.put(None, timeout=0.1)
            except queue.Full:
                continue
            return

    def close(self) -> None:
        """Close the connection, which ends the worker."""
        self._connection.close()

    def run(self) -> None:
        try:
            while (numbered := self._tasks.get()) is not None:
                self._connection.send(numbered)
                added, skipped = self._answer()
                self.done.append((added, skipped, numbered[1]))
            self._connection.send(None)
            self.segments = self._answer()
        except PerikopeError as error:
            self.error = error
        except (EOFError, OSError, TypeError):
            # `close` was called meanwhile, which can cause each of these errors, or the worker process has ended.
            self.error = PerikopeError(
                "a worker process ended unexpectedly (out of memory?): use fewer workers (--workers) or less memory (--memory)"
            )

    def _answer(self) -> Any:
        kind, value = self._connection.recv()
        if kind == "error":
            raise InputError(value)
        return value


def die_with_parent() -> None:
    """On Linux, make the system kill this process when its parent ends, even while it writes a segment."""
    # On other systems a worker ends when it next asks for a task, since the other end of its pipe is closed.
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def process_context() -> Any:
    """The `multiprocessing` context that starts worker processes.

    Forking is fast, while spawning takes about a second per process. Only a process with a single thread may fork,
    since a lock that another thread holds would stay locked in the child. Processes are forked on Linux only.
    """
    forks = hasattr(os, "fork") and threading.active_count() == 1 and sys.platform == "linux"
    return multiprocessing.get_context("fork" if forks else "spawn")


def _work(connection: Connection, job: WorkerSettings, name: str, inherited: list[Connection] | None) -> None:
    """Run a worker process: receive numbered tasks, write segments and send back their manifest entries.

    `inherited` are the parent's ends of the pipes in a forked process, and None in a spawned process.
    """
    if inherited is not None:
        # If these ends stayed open here, this process would not notice that the parent has ended.
        for other in inherited:
            other.close()
        die_with_parent()
    try:
        worker = SegmentWorker(job, name)
        while (numbered := connection.recv()) is not None:
            connection.send(("documents", worker.take(*numbered)))
        connection.send(("segments", worker.finish()))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return  # the main process has stopped and reports why
    except (PerikopeError, OSError, MemoryError) as error:
        connection.send(("error", str(error) or type(error).__name__))
