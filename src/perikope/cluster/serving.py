"""Serve a cluster on Ray over HTTP: what the processes of a server do to open it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from perikope.cluster import on_ray
from perikope.cluster.index import ClusterIndex
from perikope.cluster.locations import is_url
from perikope.cluster.ray_shards import Figures, RayShards
from perikope.cluster.storage import load_from
from perikope.cluster.writer import load_cluster
from perikope.core.errors import ShardError, UsageError
from perikope.index import manifest as manifests
from perikope.search.facade import Index
from perikope.server.handler import leave_signals
from perikope.server.opening import COUNTED, SHARDS
from perikope.server.served import PREPARED, READABLE, state_folder


@dataclass(slots=True)
class ClusterOpener:
    """Opens clusters that run on Ray, in each process of a server, which then combines the answers of shards."""

    locations: Mapping[str, str]
    """The folders of the clusters, or their addresses in an object store, by the name of the index."""
    folders: Mapping[str, str]
    """The folders whose manifests the server looks at."""
    states: Path
    """The folder with the manifests of the commits that the server has noticed."""
    address: str
    """The address of Ray."""
    started: str
    """The name under which the clusters were started."""
    deadline: float
    """Seconds until a shard that has not answered is missing."""
    partial: bool = False
    _told: dict[str, Figures] = field(default_factory=dict)
    """What the server was told of the figures of this process, by the name of the index."""

    def open(self, name: str, number: int) -> ClusterIndex:
        """The cluster that was started from a folder, at the commit with this number."""
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "error")  # otherwise each process reports a lost connection for ever
        try:
            on_ray.join_ray(self.address)
            index = on_ray.find(self.locations[name], name=self.started, deadline=self.deadline, partial=self.partial)
        except UsageError as error:
            raise ShardError(f"the shards cannot be reached: {error}") from None
        finally:
            leave_signals()  # Ray takes over SIGTERM
        self.show(name, index, number)
        return index

    def show(self, name: str, index: Index, number: int) -> None:
        """Let a cluster show the commit with this number."""
        assert isinstance(index, ClusterIndex)
        if number:
            index.show(load_cluster(state_folder(self.states, name, number)))

    def facts(self, name: str, index: Index) -> dict[str, Any]:
        """What was counted about questions since the last call."""
        figures = _shards_of(index).figures
        told, self._told[name] = asdict(self._told.get(name, Figures())), replace(figures)
        new = {counted: number - told[counted] for counted, number in asdict(self._told[name]).items() if number != told[counted]}
        return {COUNTED: new} if new else {}

    def status(self, name: str, index: Index, number: int) -> Mapping[str, Any]:
        """Let all replicas open a commit, without waiting.

        It is prepared when all replicas that answer have opened it. Those that do not answer are not waited for.
        """
        copy_manifest(self.locations[name], Path(self.folders[name]))
        shards = _shards_of(index).prepare(load_cluster(state_folder(self.states, name, number)))
        answering = [alive > 0 for alive, _ in shards]
        return {
            SHARDS: shards,
            PREPARED: any(answering) and all(alive == ready for alive, ready in shards),
            READABLE: any(answering) if self.partial else all(answering),
        }


def copy_manifest(location: str, folder: Path) -> None:
    """Let a folder have the manifest of a cluster in an object store, so that the server notices commits there."""
    if is_url(location):
        manifest = load_from(location)
        if not (folder / manifests.FILE).exists() or manifests.load(folder) != manifest:
            manifests.replace(folder, manifest)


def _shards_of(index: Index) -> RayShards:
    assert isinstance(index, ClusterIndex)
    assert isinstance(index.shards, RayShards)
    return index.shards
