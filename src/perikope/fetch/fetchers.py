"""Fetchers: other ways to find documents than by the words of the query, such as vectors.

Packages register them with the entry point `perikope.fetchers`.
"""

from __future__ import annotations

from typing import Protocol

from perikope.core.arrays import Mask
from perikope.core.registry import Registry
from perikope.fetch import Candidates
from perikope.index.reader import Snapshot


class Fetcher(Protocol):
    """A function that finds documents for the text of a query."""

    def __call__(self, snapshot: Snapshot, text: str, store: str, most: int, allowed: Mask, /) -> Candidates:
        """The best `most` documents for a text.

        `store` is the name of a store of vectors in the index. `allowed` has one flag per document of the snapshot;
        only documents whose flag is true are returned.
        """
        ...


FETCHERS: Registry[Fetcher] = Registry("fetcher", "perikope.fetch")
BY_VECTORS = "vectors"
"""The name of the fetcher for the option `also_nearest`."""
