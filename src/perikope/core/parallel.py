"""Runs a function in several threads, and counts the usable cores."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def usable_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def most_workers() -> int:
    """The largest number of processes or threads that this machine is given: four per core, and at least eight."""
    return max(8, 4 * usable_cores())


def limited_workers(asked: int, what: str = "processes") -> int:
    """The number of processes or threads to use if `asked` are asked for. A warning says so if these are fewer."""
    most = most_workers()
    if asked > most:
        warnings.warn(f"{asked} {what} are more than this machine can use; {most} are used (four per core)", stacklevel=3)
    return min(asked, most)


def in_parallel(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[tuple[T, R]]:
    """Yield pairs of an item and `work(item)`, in the order of the items.

    At most about four items per thread are computed ahead. With one thread, the work is done in the calling thread.
    There are at most `most_workers()` threads.
    """
    threads = limited_workers(threads, "threads")
    if threads == 1:
        yield from ((item, work(item)) for item in items)
        return
    waiting: deque[tuple[T, Future[R]]] = deque()
    with ThreadPoolExecutor(threads, "search") as pool:
        try:
            for item in items:
                waiting.append((item, pool.submit(work, item)))
                if len(waiting) > 4 * threads:
                    done, future = waiting.popleft()
                    yield done, future.result()
            while waiting:
                done, future = waiting.popleft()
                yield done, future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
