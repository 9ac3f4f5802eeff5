"""Runs a function in several threads or processes, and counts the usable cores."""

from __future__ import annotations

import contextlib
import gc
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
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from perikope.core.cores import usable_cores
from perikope.core.errors import PerikopeError

T = TypeVar("T")
R = TypeVar("R")


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


_BUFFER = 1 << 20
"""Bytes of results that a pipe holds, on systems that let us choose."""
_AHEAD = 4
"""Portions per process that are handed out before the results of earlier portions are used."""


def can_fork() -> bool:
    """Whether `in_processes` may be used: on Linux, in a process with a single thread.

    A lock that another thread holds would stay locked in a forked process.
    """
    return sys.platform == "linux" and threading.active_count() == 1


def in_processes(work: Callable[[Sequence[T]], Iterable[R]], items: Sequence[T], processes: int, portion: int = 1) -> Iterator[tuple[T, R]]:
    """Yield pairs of an item and its result, in the order of the items, computed by forked processes.

    This is for work that holds Python's interpreter lock most of the time. The processes inherit everything that this
    one has opened, such as a mapped index, so only results are copied, and must be picklable. `work` gets up to
    `portion` items and yields one result for each. A process takes the next portion when it has done one, so that all
    end at about the same time. There are at most `most_workers()` processes. Call it only if `can_fork()`.
    """
    processes = limited_workers(processes)
    portion = max(1, min(portion, len(items) // (_AHEAD * processes)))
    portions = [items[at : at + portion] for at in range(0, len(items), portion)]
    with _Processes(work, portions, processes) as running:
        for number, these in enumerate(portions):
            for item in these:
                yield item, running.result(number)
            running.forget(number)
            running.hand_out_next()


class _Processes(Generic[T, R]):
    """Forked processes that compute portions, and their results so far."""

    def __init__(self, work: Callable[[Sequence[T]], Iterable[R]], portions: Sequence[Sequence[T]], processes: int) -> None:
        self._work, self._portions, self._count = work, portions, processes
        self._next = 0
        self._children: list[Any] = []
        self._connections: list[Connection] = []
        self._open: list[Connection] = []
        """The connections of processes that have not done all."""
        self._results: dict[int, deque[_Outcome]] = {}

    def __enter__(self) -> _Processes[T, R]:
        # Numbers of portions in a pipe are a queue: a process takes the next one by reading it.
        self._taking, self._giving = os.pipe()
        for _ in range(_AHEAD * self._count):
            self.hand_out_next()
        context = multiprocessing.get_context("fork")
        # A collection of garbage in a forked process would otherwise write to all memory that it shares.
        gc.freeze()
        try:
            for _ in range(self._count):
                receiving, sending = context.Pipe(duplex=False)
                self._connections.append(receiving)
                _enlarge(sending)
                arguments = self._work, self._portions, self._taking, sending, [self._giving], list(self._connections)
                self._children.append(context.Process(target=_serve, args=arguments, daemon=True))
                self._children[-1].start()
                sending.close()  # so that the end of the process is the end of its results
        finally:
            gc.unfreeze()
        self._open = list(self._connections)
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()
        for end in {self._taking, self._giving} - {-1}:
            os.close(end)
        for child in self._children:
            child.terminate()
            child.join()

    def hand_out_next(self) -> None:
        """Let a process take one more portion. After the last one, no process waits for another."""
        if self._next < len(self._portions):
            os.write(self._giving, self._next.to_bytes(_NUMBER, "little"))
            self._next += 1
        if self._next == len(self._portions) and self._giving >= 0:
            os.close(self._giving)
            self._giving = -1

    def result(self, portion: int) -> R:
        """The next result of a portion. Raises the error that the work raised."""
        while portion not in self._results:
            for connection in wait(self._open):
                self._receive(connection)  # type: ignore[arg-type]
        succeeded, result, caught = self._results[portion].popleft()
        for warning in caught:
            warnings.warn(warning, stacklevel=4)
        if not succeeded:
            raise result
        return result  # type: ignore[no-any-return]

    def forget(self, portion: int) -> None:
        """Forget a portion whose results were used."""
        self._results.pop(portion, None)

    def _receive(self, connection: Connection) -> None:
        try:
            portion, outcomes = connection.recv()
        except EOFError:
            raise PerikopeError("a process ended unexpectedly (out of memory?); try again with --threads 1") from None
        if portion == _ENDED:
            self._open.remove(connection)
        else:
            self._results[portion] = deque(outcomes)


_Outcome = tuple[bool, Any, list[Any]]
"""Whether the work for an item succeeded, its result or the error, and the warnings."""
_ENDED = -1
"""What a process sends instead of the number of a portion when it has done all."""
_NUMBER = 4
"""Bytes of the number of a portion in a pipe. Writing and reading so few is one step."""


def _serve(
    work: Callable[[Sequence[Any]], Iterable[Any]],
    portions: Sequence[Sequence[Any]],
    taking: int,
    sending: Connection,
    unused: list[int],
    inherited: list[Connection],
) -> None:
    """Do portions until none is left, and send each result, or the error, with the warnings that it caused."""
    # The parent handles Ctrl-C. If it has ended, no one must hold the other ends of the pipes: then sending fails.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        other.close()
    for end in unused:
        if end >= 0:
            os.close(end)
    with contextlib.suppress(BrokenPipeError):
        while number := os.read(taking, _NUMBER):
            portion = int.from_bytes(number, "little")
            # One message per portion: for each, a process has to be woken.
            sending.send((portion, list(_outcomes(work, portions[portion]))))
        sending.send((_ENDED, []))


def _outcomes(work: Callable[[Sequence[Any]], Iterable[Any]], items: Sequence[Any]) -> Iterator[_Outcome]:
    """The outcome of each item. An error ends the portion."""
    results = iter(work(items))
    for _ in items:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                outcome: tuple[bool, Any] = True, next(results)
            except Exception as error:
                outcome = False, _sendable(error)
        yield (*outcome, [warning.message for warning in caught])
        if not outcome[0]:
            return


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

        fcntl.fcntl(sending.fileno(), fcntl.F_SETPIPE_SZ, _BUFFER)
