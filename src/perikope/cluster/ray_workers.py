"""Run the tasks of a build on Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from perikope.cluster.spreading import Call
from perikope.core.errors import PerikopeError, UsageError

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
        task = ray.remote(num_cpus=1, memory=memory, max_retries=REPEATED)(function)
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
