"""Shards: the folders that hold the segments of a cluster.

The manifest of a cluster is a manifest whose segments lie in the folders of shards: `shard-000/segment-….columns`. So a
snapshot opens a cluster as it opens an index. Each shard has a manifest of its own as well, and can be opened as an
ordinary index. The manifest of the cluster decides: it says which segments of each shard belong to a commit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perikope.core.errors import IndexFormatError, UsageError
from perikope.index import manifest as manifests
from perikope.index.manifest import Manifest

MOST_SHARDS = 1000
"""The largest number of shards of a cluster."""


def shard_of(id: str, shards: int) -> int:
    """The number of the shard that holds the document with this id.

    >>> [shard_of(id, 4) for id in ("d1", "d2", "d3", "d4")]
    [3, 1, 0, 0]
    """
    digest = hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


def folder_of(number: int) -> str:
    """The name of the folder of a shard."""
    return f"shard-{number:03d}"


def joined(shards: Sequence[Manifest], generation: int) -> Manifest:
    """The manifest of the cluster with these shards, which are in the order of their numbers."""
    first = shards[0]
    if any((shard.analysis, shard.language) != (first.analysis, first.language) for shard in shards):
        raise IndexFormatError("the shards have different settings of the text analysis: build the cluster again")
    entries = [_moved(entry, f"{folder_of(number)}/") for number, shard in enumerate(shards) for entry in shard.segments]
    states = [{"generation": shard.generation, "left_out": dict(shard.left_out)} for shard in shards]
    return Manifest(first.analysis, first.language, tuple(entries), generation, shards=tuple(states))


def of_shard(manifest: Manifest, number: int) -> Manifest:
    """The manifest of one shard, as it was when the manifest of the cluster was made."""
    prefix = f"{folder_of(number)}/"
    entries = [_moved(entry, "", prefix) for entry in manifest.segments if entry["file"].startswith(prefix)]
    state = manifest.shards[number]
    return Manifest(manifest.analysis, manifest.language, tuple(entries), state["generation"], state["left_out"])


def segments_of(manifest: Manifest, number: int) -> Manifest:
    """The manifest of a cluster with the segments of one shard only."""
    prefix = f"{folder_of(number)}/"
    return replace(manifest, segments=tuple(entry for entry in manifest.segments if entry["file"].startswith(prefix)))


def without_shards(manifest: Manifest, missing: Collection[int]) -> Manifest:
    """The manifest of a cluster without the segments of some shards."""
    prefixes = tuple(f"{folder_of(number)}/" for number in missing)
    return replace(manifest, segments=tuple(entry for entry in manifest.segments if not entry["file"].startswith(prefixes)))


def files_of(manifest: Manifest) -> frozenset[str]:
    """The names of all files that a manifest names."""
    entries = (part for entry in manifest.segments for part in (entry, entry.get("deleted")) if part is not None)
    return frozenset(entry["file"] for entry in entries)


def check_writable(folder: Path, manifest: Manifest) -> None:
    """Raise `UsageError` if a folder is a cluster, or a shard of one: a writer of an index must not change it."""
    if manifest.shards:
        raise UsageError(
            f"{folder} is a cluster of {len(manifest.shards)} shards: change it with `perikope cluster append`, delete or compact"
        )
    cluster = folder.absolute().parent
    if (cluster / manifests.FILE).exists() and folder.name in _folders(cluster):
        raise UsageError(f"{folder} is a shard of the cluster {cluster}: change the cluster with `perikope cluster`")


def _folders(cluster: Path) -> Iterable[str]:
    try:
        return [folder_of(number) for number in range(len(manifests.load(cluster).shards))]
    except IndexFormatError:
        return []


def _moved(entry: dict[str, Any], prefix: str, before: str = "") -> dict[str, Any]:
    """An entry of a manifest with another folder of its files."""
    moved = {**entry, "file": prefix + entry["file"].removeprefix(before)}
    if "deleted" in entry:
        moved["deleted"] = _moved(entry["deleted"], prefix, before)
    return moved
