"""Run tasks on Ray: those of a build, and those of a pool, such as the topics of an experiment."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from perikope.cluster.spreading import Call
from perikope.core.errors import PerikopeError, UsageError
from perikope.evaluation.pool import Pool

REPEATED = 8
"""How often a task is repeated whose process or node has died."""
_WAITING = 4
"""The number of tasks beyond the processors of the cluster that wait to be started."""


class RayWorkers:
    """The processors of the Ray cluster that this process is connected to; see `perikope.cluster.spreading.Workers`."""

    def run(self, function: Callable[..., Any], calls: Iterable[Call], memory: int) -> Iterator[tuple[int, Any]]:
        """Yield the numbers of calls with their results. At most one task per processor runs at a time.

        A node runs no more tasks than it has memory for.
        """
        _check_memory(memory)
        task = ray.remote(num_cpus=1, memory=memory or None, max_retries=REPEATED)(function)
        open: dict[Any, tuple[int, str]] = {}
        try:
            for number, about, given in calls:
                open[task.remote(*given)] = number, about
                while len(open) >= _processors() + _WAITING:
                    yield from _finished(open)
            while open:
                yield from _finished(open)
        finally:
            for reference in open:  # after an error, or if the caller has stopped
                ray.cancel(reference, force=True)


class RayMachines:
    """The machines of the Ray cluster that this process is connected to; see `perikope.evaluation.pool.Elsewhere`."""

    @property
    def processors(self) -> int:
        """The number of processors of the cluster."""
        return _processors()

    def pool(self, make: Callable[[Any], Callable[[Any], Any]], setup: Any) -> RayPool:
        """A pool of processes that call `make(setup)` once each."""
        return RayPool(make, setup)


class RayPool(Pool[Any, Any]):
    """Does tasks as tasks of Ray. They must see the same files as this process, under the same paths."""

    def __init__(self, make: Callable[[Any], Callable[[Any], Any]], setup: Any) -> None:
        self._work, self._key = ray.put((make, setup)), secrets.token_hex(8)

    def results(self, tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Do tasks and yield pairs of a task and its result, in the order in which tasks finish."""
        known = [*tasks]
        folder = str(Path.cwd())
        calls = ((number, f"task {number}", (self._key, [self._work], folder, task)) for number, task in enumerate(known))
        for number, result in RayWorkers().run(do_task, calls, 0):
            yield known[number], result


_opened: dict[str, Callable[[Any], Any]] = {}
"""The function of the pool that this process did tasks of last."""


def do_task(key: str, work: list[Any], folder: str, task: Any) -> Any:
    """Do a task of a pool, in the folder in which the command runs. `work` has a reference, which is read once."""
    if key not in _opened:
        _opened.clear()
        try:
            os.chdir(folder)
        except OSError:
            raise UsageError(f"{socket.gethostname()} does not see {folder}: all nodes must see it under the same path") from None
        make, setup = ray.get(work[0])
        _opened[key] = make(setup)
    return _opened[key](task)


def _finished(open: dict[Any, tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    """Yield the next calls that have ended, with their results. They are no longer open."""
    for reference in ray.wait([*open], num_returns=1)[0]:
        number, about = open.pop(reference)
        try:
            result = ray.get(reference)
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, PerikopeError) else error from None
        except RayError as error:
            raise PerikopeError(
                f"{about}: its process has died {REPEATED + 1} times ({type(error).__name__}), perhaps without enough memory: see "
                "`ray status`, and repeat the command, which continues"
            ) from None
        yield number, result


def _processors() -> int:
    return int(ray.cluster_resources().get("CPU", 1))


def _check_memory(memory: int) -> None:
    """Raise `UsageError` if no node has the memory for one task: Ray would wait for ever."""
    most = max((node["Resources"].get("memory", 0) for node in ray.nodes() if node["Alive"]), default=0)
    if most < memory:
        raise UsageError(f"no node of Ray has {memory >> 20} MB of memory for a task, at most {int(most) >> 20} MB: lower --memory")
