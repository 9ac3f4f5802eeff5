"""How a process of a server opens the indexes that it searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from perikope.search.facade import Index

COUNTED = "counted"
"""The key of facts about an index under which numbers by name are that the server adds up."""
SHARDS = "shards"
"""The key of a status with two numbers per shard: the replicas that answer, and those that have prepared the commit."""


class Opener(Protocol):
    """Opens indexes by name. It is sent to each process of a server.

    `number` counts the commits that the server shows; see `perikope.server.served`.
    """

    def open(self, name: str, number: int) -> Index:
        """An index at the commit with this number, or a later one. Number 0 is the last commit."""

    def show(self, name: str, index: Index, number: int) -> None:
        """Let an open index show the commit with this number, or a later one."""

    def facts(self, name: str, index: Index) -> dict[str, Any]:
        """What the server must count about an index since the last call, as plain data; empty if there is nothing."""

    def status(self, name: str, index: Index, number: int) -> Mapping[str, Any]:
        """Prepare the commit with this number, without waiting. Returns how far this is, and how the index is."""


class FolderOpener:
    """Opens indexes whose files are on this machine."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self._folders = dict(folders)

    def open(self, name: str, number: int) -> Index:
        """The index in a folder at its last commit."""
        return Index.open(self._folders[name])

    def show(self, name: str, index: Index, number: int) -> None:
        """Open the last commit."""
        index.refresh()

    def facts(self, name: str, index: Index) -> dict[str, Any]:
        """Nothing is counted."""
        return {}

    def status(self, name: str, index: Index, number: int) -> Mapping[str, Any]:
        """A commit needs no preparation."""
        return {}
