"""Tasks done by several processes: scoring many settings is Python between short kernels, which threads cannot do."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from perikope.build.workers import die_with_parent, process_context
from perikope.core.errors import PerikopeError

Task = TypeVar("Task")
Result = TypeVar("Result")

_MOST_ON_WINDOWS = 61
"""Largest pool on Windows, which waits for at most 63 handles at a time; the pool itself needs two of them."""

_work: Callable[[Any], Any] | None = None
"""What this process does with a task, where it is a worker."""


def _begin(make: Callable[[Any], Callable[[Any], Any]], setup: Any) -> None:
    global _work
    # An interruption is handled by the process that deals out the work; it ends the workers.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    _work = make(setup)


def _do(task: Any) -> Any:
    assert _work is not None
    return _work(task)


class Pool(Generic[Task, Result]):
    """Does tasks in this process or in worker processes."""

    def __init__(self, work: Callable[[Task], Result] | None, executor: ProcessPoolExecutor | None) -> None:
        self._work, self._executor = work, executor

    def results(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        """Pairs of a task and its result, in the order in which tasks are finished."""
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
            raise PerikopeError("a worker process ended by itself (out of memory?): run again with fewer (--workers)") from None


@contextmanager
def open_pool(
    make: Callable[[Any], Callable[[Task], Result]], setup: Any, workers: int, *, spawned: bool = False
) -> Iterator[Pool[Task, Result]]:
    """A pool of `workers` processes, each of which starts with `make(setup)`; a single worker is this process itself.

    `spawned` starts new processes, because one that has used a GPU cannot be forked; `make` must then be a module's
    function.
    """
    if workers == 1:
        yield Pool(make(setup), None)
        return
    most = _MOST_ON_WINDOWS if sys.platform == "win32" else workers
    context = multiprocessing.get_context("spawn") if spawned else process_context()
    executor = ProcessPoolExecutor(min(workers, most), mp_context=context, initializer=_begin, initargs=(make, setup))
    try:
        yield Pool(None, executor)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
