"""Start, find and stop a cluster on Ray.

The nodes must see the folder of the cluster under the same path, or it is in an object store. Ray's processes trust
each other: whoever reaches their ports can run code in them. So the ports belong on loopback or a private network; see
docs/cluster.md.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count, takewhile
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # otherwise Ray replaces loopback addresses, and hangs
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray.exceptions import RayError
from ray.util.placement_group import PlacementGroup, placement_group_table
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from perikope.cluster.index import ClusterIndex
from perikope.cluster.locations import is_url
from perikope.cluster.missing import DEADLINE
from perikope.cluster.ray_shards import CONTROL, RayShards, ShardReplica, name_in, replica_name
from perikope.cluster.storage import load_from
from perikope.core.errors import ShardError, UsageError
from perikope.index.manifest import Manifest

NAMESPACE = "perikope"
"""The namespace of all actors."""
STARTING = 120.0
"""Seconds that replicas may take to start."""
MEMORY = 240 << 20
"""Bytes of memory that a replica needs besides its shard, and that Ray reserves for it."""
_REACHED = 2.0
"""Seconds after which an address that does not answer is not reached."""
THREADS = 4
"""The number of questions that a replica answers at the same time."""


def join_ray(address: str = "auto") -> None:
    """Connect this process to a Ray cluster, unless it is connected. `address` is `host:port` or `auto`."""
    if ray.is_initialized():
        _check_joined(address)
    else:
        _check_listening(address)
        try:
            ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
        except ConnectionError:
            raise UsageError(
                f"Ray at {address} does not let this program in: check the address and, if it uses tokens, RAY_AUTH_MODE and "
                "RAY_AUTH_TOKEN_PATH; without Ray, start it with `ray start --head`"
            ) from None


def _check_joined(address: str) -> None:
    """Raise `UsageError` if this process is connected to another Ray cluster: it can be connected to one only."""
    joined = ray.get_runtime_context().gcs_address
    if address != "auto" and _resolved(address) != _resolved(joined):
        raise UsageError(f"this process is connected to Ray at {joined}, and cannot use {address} too: use another process")


def _resolved(address: str) -> tuple[str, str]:
    """Host and port of an address, the host as a number if its name is known."""
    host, _, port = address.rpartition(":")
    with suppress(OSError):
        host = socket.gethostbyname(host)
    return host, port


def _check_listening(address: str) -> None:
    """Raise `UsageError` at once if nobody listens at an address; Ray tries for half a minute."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), _REACHED).close()
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"no Ray cluster at {address} ({reason}): start one with `ray start --head`, or check the address") from None


def start(folder: str | Path, *, replicas: int = 2, name: str = "default", deadline: float = DEADLINE) -> ClusterIndex:
    """Start the replicas of all shards of a cluster in the Ray cluster that this process is connected to.

    The replicas of a shard are placed on different nodes if there are as many. They live until `stop`, and are started
    anew when they or their nodes die.
    """
    place = _place(folder)
    manifest = load_from(place)
    actor = ray.remote(concurrency_groups={CONTROL: 1})(ShardReplica)
    with _without_advice():
        for shard in range(len(manifest.shards)):
            group = _places(name, shard, replicas)
            for replica in range(replicas):
                where = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=replica)
                actor.options(
                    name=replica_name(name, shard, replica), namespace=NAMESPACE, lifetime="detached", max_restarts=-1,
                    max_concurrency=THREADS, num_cpus=0, scheduling_strategy=where, get_if_exists=True,
                ).remote(place, shard)  # fmt: skip
    started = find(place, name=name, deadline=deadline)
    assert isinstance(started.shards, RayShards)
    _wait_until_prepared(started.shards, manifest, replicas)
    return started


@contextmanager
def _without_advice() -> Iterator[None]:
    """Keep Ray from advising against actors whose placement group may be removed before them; `stop` ends both."""
    logger = logging.getLogger("ray.actor")
    keep = lambda record: "placement group" not in record.getMessage()  # noqa: E731
    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)


def _places(name: str, shard: int, replicas: int) -> PlacementGroup:
    """The placement group of a shard, which has a place for each replica.

    If there are enough nodes, the places are on different nodes, also after nodes have died: a replica then waits for a
    node on which the shard has no other replica. Nodes that offer no CPU at the start have none. A place takes memory
    and no CPU, so that tasks which need whole CPUs find as many as before.
    """
    known = f"{_prefix(name)}{shard}"
    try:
        group = ray.util.get_placement_group(known)
    except ValueError:
        nodes = {node["NodeID"]: node["Resources"].get("CPU", 0) > 0 for node in ray.nodes() if node["Alive"]}
        strategy = "STRICT_SPREAD" if sum(nodes.values()) >= replicas else "SPREAD"
        unable = ",".join(node for node, able in nodes.items() if not able)
        where = [{"ray.io/node-id": f"!in({unable})"}] * replicas if unable else None
        places = [{"memory": MEMORY}] * replicas
        return ray.util.placement_group(places, strategy, known, lifetime="detached", bundle_label_selector=where)
    if group.bundle_count < replicas:
        raise UsageError(f"the cluster {name!r} runs with {group.bundle_count} replicas: stop it first, then start it with {replicas}")
    return group


def _wait_until_prepared(shards: RayShards, manifest: Manifest, replicas: int) -> None:
    """Wait until all replicas have opened a generation. Raises their error, or `ShardError` if they do not start."""
    ends = time.monotonic() + STARTING
    while True:
        answered = shards.prepare(manifest)
        if shards.problem is not None:
            raise shards.problem
        if all(ready >= replicas for _, ready in answered):
            return
        if all(alive >= replicas for alive, _ in answered):
            ends = time.monotonic() + STARTING  # they copy files, which may take long
        elif time.monotonic() > ends:
            raise ShardError(
                f"not all replicas have started within {STARTING:g} s: see `ray status`; then end them with `perikope cluster stop`, and "
                "repeat the command"
            )
        time.sleep(0.1)


def _place(folder: str | Path) -> str:
    """The place of a cluster as all nodes name it."""
    return str(folder) if is_url(folder) else str(Path(folder).absolute())


def find(folder: str | Path, *, name: str = "default", deadline: float = DEADLINE, partial: bool = False) -> ClusterIndex:
    """The cluster that was started from a folder under a name.

    A question without an answer after `deadline` seconds is an error. With `partial`, searches leave out such a shard.
    """
    place = _place(folder)
    manifest = load_from(place)
    replicas = [_replicas_of(name, shard) for shard in range(len(manifest.shards))]
    missing = [str(shard) for shard, actors in enumerate(replicas) if not actors]
    if missing:
        raise UsageError(f"no replica of shard {', '.join(missing)} of {place} runs: start it with `perikope cluster start {place}`")
    shards = RayShards(manifest, replicas, deadline=deadline, find=lambda shard, number: _replica(name, shard, number))
    return ClusterIndex(place, shards, manifest, partial=partial)


def find_started(name: str = "", *, deadline: float = DEADLINE, partial: bool = False) -> ClusterIndex:
    """The cluster that was started under a name, which may be left out if only one was; see `find`.

    Its replicas say where its folder is.
    """
    known = _started()
    if not known:
        raise UsageError("no cluster runs in this Ray cluster: start one with `perikope cluster start`")
    if name not in known and (name or len(known) > 1):
        raise UsageError(f"name one of the started clusters, not {name!r}: {', '.join(map(repr, sorted(known)))}")
    name = name or next(iter(known))
    asked = [ray.get_actor(actor, namespace=NAMESPACE).place.remote() for actor in known[name]]
    ends = time.monotonic() + deadline
    while asked:
        ready, asked = ray.wait(asked, timeout=max(ends - time.monotonic(), 0))
        if not ready:
            break
        with suppress(RayError):
            return find(ray.get(ready[0]), name=name, deadline=deadline, partial=partial)
    raise ShardError(f"no replica of {name!r} has answered within {deadline:g} s: see `ray status`")


def stop(name: str = "default") -> int:
    """End all replicas of a cluster, and return their number."""
    actors = _started().get(name, [])
    for actor in actors:
        ray.kill(ray.get_actor(actor, namespace=NAMESPACE), no_restart=True)
    for group in placement_group_table().values():
        if group["name"].startswith(_prefix(name)) and group["state"] != "REMOVED":
            ray.util.remove_placement_group(ray.util.get_placement_group(group["name"]))
    return len(actors)


def _started() -> dict[str, list[str]]:
    """The names of the actors of all started clusters, by the name of the cluster."""
    found: dict[str, list[str]] = {}
    for listed in ray.util.list_named_actors(all_namespaces=True):
        if listed["namespace"] == NAMESPACE and (name := name_in(listed["name"])) is not None:
            found.setdefault(name, []).append(listed["name"])
    return found


def _prefix(name: str) -> str:
    """The beginning of the names of all actors and placement groups of a cluster."""
    return f"perikope {name} shard "


def _replicas_of(name: str, shard: int) -> list[Any]:
    """The actors that hold a shard."""
    return list(takewhile(lambda actor: actor is not None, (_replica(name, shard, number) for number in count())))


def _replica(name: str, shard: int, number: int) -> Any:
    """The actor that is a replica of a shard; None if there is none."""
    try:
        return ray.get_actor(replica_name(name, shard, number), namespace=NAMESPACE)
    except ValueError:
        return None
