"""A Ray cluster of simulated nodes on this machine, bound to loopback."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

os.environ.update(
    RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",  # otherwise Ray replaces loopback addresses, and hangs
    RAY_USAGE_STATS_ENABLED="0",
    RAY_agent_register_timeout_ms="120000",
)


_ATTEMPTS = 2


def why_not_started() -> str:
    """Why tests start no nodes of Ray; empty if they do.

    A dozen processes must start within fixed times, and the tests take two minutes.
    """
    asked = os.environ.get("PERIKOPE_TEST_RAY") == "1"
    return "" if asked else "not tested: clusters on nodes of Ray, unless PERIKOPE_TEST_RAY=1 (make test-cluster)"


def _free_ports() -> dict[str, int]:
    """Ports for the agents of a node. A node does not wait until agents announce given ports."""
    names = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
    sockets = [socket.socket() for _ in names]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = {name: one.getsockname()[1] for name, one in zip(names, sockets, strict=True)}
    for one in sockets:
        one.close()
    return ports


def _patiently(start: Callable[[], Any]) -> Any:
    """What `start` returns. A node gives up after 15 s if its agents have not started, as on a busy machine."""
    for _ in range(_ATTEMPTS):
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    pytest.skip("clusters on Ray are not tested: this machine is too busy to start a node of Ray within 15 s")


class Nodes:
    """A head node, which holds no shards, and further nodes that may be killed."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster: Any = _patiently(
            lambda: Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **self._settings()})
        )
        self.address: str = self._cluster.address
        self.others: list[Any] = []

    @staticmethod
    def _settings() -> dict[str, Any]:
        return {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 80_000_000, **_free_ports()}

    def add(self) -> None:
        """Add a node."""
        self.others.append(_patiently(lambda: self._cluster.add_node(**self._settings())))

    def id_of(self, number: int) -> str:
        """The id by which Ray knows one of the nodes that were added."""
        return str(self.others[number].node_id)

    def kill(self, number: int = 0) -> None:
        """Kill one of the nodes that were added, by default the oldest, with all its processes at once."""
        node = self.others.pop(number)
        _signal(node, signal.SIGKILL)
        self._cluster.remove_node(node, allow_graceful=False)

    def freeze(self, number: int = 0) -> None:
        """Stop all processes of a node that was added: its connections remain, and nothing answers on them."""
        _signal(self.others[number], signal.SIGSTOP)

    def shutdown(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()


def _signal(node: Any, number: signal.Signals) -> None:
    """Send a signal to all processes of a node."""
    processes = [one.process.pid for of_kind in node.all_processes.values() for one in of_kind]
    for parent in processes:  # grows while it is walked
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(OSError):
                processes += map(int, children.read_text().split())
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


@contextmanager
def nodes(count: int) -> Iterator[Nodes]:
    """A Ray cluster with a head and `count - 1` other nodes, to which this process is connected."""
    import ray

    from perikope.cluster.on_ray import join_ray

    started = Nodes()
    try:
        for _ in range(count - 1):
            started.add()
        join_ray(started.address)
        yield started
    finally:
        ray.shutdown()
        started.shutdown()
