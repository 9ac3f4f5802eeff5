"""Runs a function in several threads or processes, and counts the usable cores."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from perikope.core.errors import PerikopeError

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


_AHEAD = 1 << 20
"""Bytes of results that a process may compute ahead, on systems that let us choose."""


def can_fork() -> bool:
    """Whether `in_processes` may be used: on Linux, in a process with a single thread.

    A lock that another thread holds would stay locked in a forked process.
    """
    return sys.platform == "linux" and threading.active_count() == 1


def in_processes(work: Callable[[T], R], items: Sequence[T], processes: int) -> Iterator[tuple[T, R]]:
    """Yield pairs of an item and `work(item)`, in the order of the items, computed by forked processes.

    This is for work that holds Python's interpreter lock most of the time. The processes inherit everything that this
    one has opened, such as a mapped index, so only results are copied, and must be picklable. Each process does every
    n-th item. There are at most `most_workers()` processes. Call it only if `can_fork()`.
    """
    context = multiprocessing.get_context("fork")
    connections: list[Connection] = []
    children: list[Any] = []
    try:
        for number in range(processes := limited_workers(processes)):
            receiving, sending = context.Pipe(duplex=False)
            connections.append(receiving)
            _enlarge(sending)
            arguments = work, items[number::processes], sending, list(connections)
            children.append(context.Process(target=_serve, args=arguments, daemon=True))
            children[-1].start()
            sending.close()  # so that the end of the process is the end of its results
        for item, connection in zip(items, cycle(connections), strict=False):
            yield item, _received(connection)
    finally:
        for connection in connections:
            connection.close()
        for child in children:
            child.terminate()
            child.join()


def _serve(work: Callable[[Any], Any], items: Sequence[Any], sending: Connection, inherited: list[Connection]) -> None:
    """Do the items of one process, and send each result, or the error, with the warnings that it caused."""
    # The parent handles Ctrl-C. If it has ended, no one must hold the other end of the pipe: then sending fails.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        other.close()
    with contextlib.suppress(BrokenPipeError):
        for item in items:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    outcome: tuple[bool, Any] = True, work(item)
                except Exception as error:
                    outcome = False, _sendable(error)
            sending.send((*outcome, [warning.message for warning in caught]))


def _received(connection: Connection) -> Any:
    try:
        succeeded, result, caught = connection.recv()
    except EOFError:
        raise PerikopeError("a process ended unexpectedly (out of memory?); try again with --threads 1") from None
    for warning in caught:
        warnings.warn(warning, stacklevel=3)
    if not succeeded:
        raise result
    return result


def _sendable(error: Exception) -> Exception:
    """The error, or another one with the same message if this one cannot be copied to another process."""
    try:
        copied = pickle.loads(pickle.dumps(error))
    except Exception:  # whatever the constructor of a foreign error raises
        copied = None
    return error if type(copied) is type(error) and str(copied) == str(error) else PerikopeError(f"{type(error).__name__}: {error}")


def _enlarge(sending: Connection) -> None:
    """Enlarge the buffer of a pipe, so that a process need not wait until its last result is read."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(sending.fileno(), fcntl.F_SETPIPE_SZ, _AHEAD)
