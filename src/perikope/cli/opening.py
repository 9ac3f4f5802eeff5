"""Open the index that a command names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perikope.search.facade import Index

_OPEN: ContextVar[tuple[str, Index] | None] = ContextVar("open index", default=None)


def open_index(folder: str) -> Index:
    """Open an index. Inside a server, this is the index that is open already."""
    known = _OPEN.get()
    if known is not None and known[0] == folder:
        return known[1]
    from perikope.cluster.locations import is_url
    from perikope.search.facade import Index

    if is_url(folder):
        from perikope.cluster.storage import StoredCluster

        return Index.open(StoredCluster(folder).copied())
    return Index.open(folder)


@contextmanager
def opened_as(folder: str, index: Index) -> Iterator[None]:
    """Inside the block, the index of a folder is this open one."""
    token = _OPEN.set((folder, index))
    try:
        yield
    finally:
        _OPEN.reset(token)
