"""Fetchers that do not use the query's words, registered by an entry point `perikope.fetchers`."""

from __future__ import annotations

from typing import Protocol

from perikope.core.arrays import Mask
from perikope.core.registry import Registry
from perikope.fetch import Candidates
from perikope.index.reader import Snapshot


class Fetcher(Protocol):
    """Finds documents."""

    def __call__(self, snapshot: Snapshot, text: str, store: str, most: int, allowed: Mask, /) -> Candidates:
        """The best documents for a text, of those that are allowed, by what a store of the index keeps."""
        ...


FETCHERS: Registry[Fetcher] = Registry("fetcher", "perikope.fetch")
BY_VECTORS = "vectors"
