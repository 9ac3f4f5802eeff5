"""Does tasks in several processes. Threads would not help, because most of the work holds Python's interpreter lock."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar

from perikope.build.workers import die_with_parent, process_context
from perikope.core.cores import usable_cores
from perikope.core.errors import PerikopeError
from perikope.core.parallel import limited_workers

Task = TypeVar("Task")
Result = TypeVar("Result")

_MOST_ON_WINDOWS = 61
"""Maximum number of processes on Windows, which can wait for 63 handles at a time.

The pool itself needs two of them.
"""

_work: Callable[[Any], Any] | None = None
"""The function that does a task; only set in a worker process."""


def _begin(make: Callable[[Any], Callable[[Any], Any]], setup: Any) -> None:
    global _work
    # Workers ignore Ctrl-C. The parent process handles it and ends the workers.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    _work = make(setup)


def _do(task: Any) -> Any:
    assert _work is not None
    return _work(task)


class Pool(ABC, Generic[Task, Result]):
    """Does tasks."""

    @abstractmethod
    def results(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        """Do tasks and yield pairs of a task and its result, in the order in which tasks finish."""
        ...


class Elsewhere(Protocol):
    """Other machines that do tasks."""

    @property
    def processors(self) -> int:
        """The number of tasks that they do at the same time."""
        ...

    def pool(self, make: Callable[[Any], Callable[[Task], Result]], setup: Any) -> Pool[Task, Result]:
        """A pool of processes there. Each calls `make(setup)`, as those of `open_pool` do."""
        ...


_elsewhere: ContextVar[Elsewhere | None] = ContextVar("machines that do tasks", default=None)


@contextmanager
def tasks_done_by(machines: Elsewhere | None) -> Iterator[None]:
    """Inside the block, other machines do the tasks of pools. None means this machine."""
    token = _elsewhere.set(machines)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def default_workers() -> int:
    """The number of processes that do tasks if the user does not say it."""
    machines = _elsewhere.get()
    return usable_cores() if machines is None else machines.processors


class _PoolHere(Pool[Task, Result]):
    """Does tasks in this process, if it has no executor, or in worker processes."""

    def __init__(self, work: Callable[[Task], Result] | None, executor: ProcessPoolExecutor | None) -> None:
        self._work, self._executor = work, executor

    def results(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        if self._executor is None:
            assert self._work is not None
            yield from ((task, self._work(task)) for task in tasks)
            return
        waiting: dict[Future[Result], Task] = {self._executor.submit(_do, task): task for task in tasks}
        try:
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield waiting.pop(future), future.result()
        except BrokenProcessPool:
            raise PerikopeError(
                "a worker process ended unexpectedly (out of memory?); run again with fewer processes (--workers)"
            ) from None


@contextmanager
def open_pool(
    make: Callable[[Any], Callable[[Task], Result]], setup: Any, workers: int, *, spawned: bool = False
) -> Iterator[Pool[Task, Result]]:
    """Open a pool of `workers` processes, at most `most_workers()`. With one worker, tasks are done in this process.

    Inside `tasks_done_by`, other machines do the tasks, with all of their processors, unless processes are spawned.

    Each process calls `make(setup)` once, which returns the function that does a task. With `spawned`, processes are
    spawned and not forked, because a process that has used a GPU cannot be forked. `make` must then be a function at
    module level.
    """
    machines = _elsewhere.get()
    if machines is not None and not spawned:
        yield machines.pool(make, setup)
        return
    workers = limited_workers(workers)
    if workers == 1:
        yield _PoolHere(make(setup), None)
        return
    most = _MOST_ON_WINDOWS if sys.platform == "win32" else workers
    context = multiprocessing.get_context("spawn") if spawned else process_context()
    executor = ProcessPoolExecutor(min(workers, most), mp_context=context, initializer=_begin, initargs=(make, setup))
    try:
        yield _PoolHere(None, executor)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
