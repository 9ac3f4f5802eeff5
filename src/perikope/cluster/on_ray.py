"""Start, find and stop a cluster on Ray.

The nodes must see the folder of the cluster under the same path. Ray's processes trust each other: whoever reaches
their ports can run code in them. So the ports belong on loopback or a private network; see docs/cluster.md.
"""

from __future__ import annotations

import os
from itertools import count, takewhile
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # otherwise Ray replaces loopback addresses, and hangs
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from perikope.cluster.index import ClusterIndex
from perikope.cluster.missing import DEADLINE
from perikope.cluster.ray_shards import CONTROL, RayShards, ShardReplica, replica_name
from perikope.cluster.writer import load_cluster
from perikope.core.errors import UsageError

NAMESPACE = "perikope"
"""The namespace of all actors."""
THREADS = 4
"""The number of questions that a replica answers at the same time."""


def join_ray(address: str = "auto") -> None:
    """Connect this process to a Ray cluster, unless it is connected. `address` is `host:port` or `auto`."""
    if not ray.is_initialized():
        try:
            ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
        except ConnectionError:
            raise UsageError(f"no Ray cluster at {address}: start one with `ray start --head`, or check the address") from None


def start(folder: str | Path, *, replicas: int = 2, name: str = "default", deadline: float = DEADLINE) -> ClusterIndex:
    """Start the replicas of all shards of a cluster in the Ray cluster that this process is connected to.

    The replicas of a shard are placed on different nodes if there are as many. They live until `stop`, and are started
    anew when they or their nodes die.
    """
    place = Path(folder).absolute()
    manifest = load_cluster(place)
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    actor = ray.remote(concurrency_groups={CONTROL: 1})(ShardReplica)
    for shard in range(len(manifest.shards)):
        for replica in range(replicas):
            where = NodeAffinitySchedulingStrategy(nodes[(shard + replica) % len(nodes)], soft=True)
            actor.options(
                name=replica_name(name, shard, replica), namespace=NAMESPACE, lifetime="detached", max_restarts=-1,
                max_concurrency=THREADS, num_cpus=0, scheduling_strategy=where, get_if_exists=True,
            ).remote(str(place), shard)  # fmt: skip
    return find(place, name=name, deadline=deadline)


def find(folder: str | Path, *, name: str = "default", deadline: float = DEADLINE, partial: bool = False) -> ClusterIndex:
    """The cluster that was started from a folder under a name.

    A question without an answer after `deadline` seconds is an error. With `partial`, searches leave out such a shard.
    """
    place = Path(folder).absolute()
    manifest = load_cluster(place)
    replicas = [_replicas_of(name, shard) for shard in range(len(manifest.shards))]
    missing = [str(shard) for shard, actors in enumerate(replicas) if not actors]
    if missing:
        raise UsageError(f"no replica of shard {', '.join(missing)} of {place} runs: start it with `perikope cluster start {place}`")
    shards = RayShards(manifest, replicas, deadline=deadline, find=lambda shard, number: _replica(name, shard, number))
    return ClusterIndex(place, shards, manifest, partial=partial)


def stop(name: str = "default") -> int:
    """End all replicas of a cluster, and return their number."""
    ended = 0
    for listed in ray.util.list_named_actors(all_namespaces=True):
        if listed["namespace"] == NAMESPACE and listed["name"].startswith(f"perikope {name} shard "):
            ray.kill(ray.get_actor(listed["name"], namespace=NAMESPACE), no_restart=True)
            ended += 1
    return ended


def _replicas_of(name: str, shard: int) -> list[Any]:
    """The actors that hold a shard."""
    return list(takewhile(lambda actor: actor is not None, (_replica(name, shard, number) for number in count())))


def _replica(name: str, shard: int, number: int) -> Any:
    """The actor that is a replica of a shard; None if there is none."""
    try:
        return ray.get_actor(replica_name(name, shard, number), namespace=NAMESPACE)
    except ValueError:
        return None
