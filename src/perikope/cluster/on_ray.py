"""Start, find and stop a cluster on Ray.

The nodes must see the folder of the cluster under the same path. Ray's processes trust each other: whoever reaches
their ports can run code in them. So the ports belong on loopback or a private network; see docs/cluster.md.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # otherwise Ray replaces loopback addresses, and hangs
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from perikope.cluster.ray_shards import DEADLINE, RayShards, ShardReplica, replica_name
from perikope.cluster.snapshot import ClusterSnapshot
from perikope.cluster.writer import load_cluster
from perikope.core.errors import UsageError
from perikope.index.info import IndexInfo, describe
from perikope.index.manifest import Manifest
from perikope.index.reader import Snapshot
from perikope.search.facade import Conditions, Index

NAMESPACE = "perikope"
"""The namespace of all actors."""
THREADS = 4
"""The number of questions that a replica answers at the same time."""


class ClusterIndex(Index):
    """An index whose shards are on Ray: the same searches and results, without changes of the index.

    `refresh` shows the last commit. A search uses one generation from its beginning to its end.
    """

    def __init__(self, folder: Path, shards: RayShards, manifest: Manifest) -> None:
        self._shards, self._manifest = shards, manifest
        super().__init__(folder)

    def _open(self) -> Snapshot:
        return ClusterSnapshot(self.folder, self._manifest, self._shards)

    def info(self) -> IndexInfo:
        """What the cluster contains; see `Index.info`. This process reads it from the folder."""
        return describe(Snapshot(self.folder, self.snapshot.manifest))

    def values(self, field: str, *, prefix: str = "", k: int = 20, filter: Conditions = ()) -> dict[str, int]:
        """The most frequent values of a metadata field; see `Index.values`. This process reads them from the folder."""
        with Index.open(self.folder) as on_this_machine:
            return on_this_machine.values(field, prefix=prefix, k=k, filter=filter)

    @property
    def shards(self) -> RayShards:
        """The shards, with what was counted about them."""
        return self._shards

    def refresh(self) -> bool:
        """Search the last commit from now on. Returns whether the cluster has changed."""
        manifest = load_cluster(self.folder)
        if manifest == self.snapshot.manifest:
            return False
        shards = self._shards.at(manifest)
        self._show(ClusterSnapshot(self.folder, manifest, shards))
        self._shards = shards
        return True


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
    actor = ray.remote(ShardReplica)
    for shard in range(len(manifest.shards)):
        for replica in range(replicas):
            where = NodeAffinitySchedulingStrategy(nodes[(shard + replica) % len(nodes)], soft=True)
            actor.options(
                name=replica_name(name, shard, replica), namespace=NAMESPACE, lifetime="detached", max_restarts=-1,
                max_concurrency=THREADS, num_cpus=0, scheduling_strategy=where, get_if_exists=True,
            ).remote(str(place), shard)  # fmt: skip
    return find(place, name=name, deadline=deadline)


def find(folder: str | Path, *, name: str = "default", deadline: float = DEADLINE) -> ClusterIndex:
    """The cluster that was started from a folder under a name."""
    place = Path(folder).absolute()
    manifest = load_cluster(place)
    replicas = [_replicas_of(name, shard) for shard in range(len(manifest.shards))]
    missing = [str(shard) for shard, actors in enumerate(replicas) if not actors]
    if missing:
        raise UsageError(f"no replica of shard {', '.join(missing)} of {place} runs: start it with `perikope cluster start {place}`")
    return ClusterIndex(place, RayShards(manifest, replicas, deadline=deadline), manifest)


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
    actors: list[Any] = []
    while True:
        try:
            actors.append(ray.get_actor(replica_name(name, shard, len(actors)), namespace=NAMESPACE))
        except ValueError:
            return actors
