"""Fetchers that do not use the query's words, registered by an entry point `perikope.fetchers`."""

from __future__ import annotations

from typing import Protocol

from perikope.core.arrays import Mask
from perikope.core.registry import Registry
from perikope.fetch import Candidates
from perikope.index.reader import Snapshot


class Fetcher(Protocol):
    """A function that finds documents for a text."""

    def __call__(self, snapshot: Snapshot, text: str, store: str, most: int, allowed: Mask, /) -> Candidates:
        """The best `most` documents for a text among the allowed ones, by a store of the index."""
        ...


FETCHERS: Registry[Fetcher] = Registry("fetcher", "perikope.fetch")
BY_VECTORS = "vectors"
