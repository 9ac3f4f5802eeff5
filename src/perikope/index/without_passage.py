"""Documents that have no passage: a search for passages cannot find them, whatever their titles say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perikope.index.reader import Snapshot

MOST_NAMED = 20
"""The number of documents without a passage that are named."""


@dataclass(frozen=True, slots=True)
class WithoutPassage:
    """The documents that have no passage, since they hold titles only. A search for elements finds titles."""

    number: int
    first: tuple[str, ...]
    """The ids of the first of them, at most `MOST_NAMED`."""


def documents_without_passage(snapshot: Snapshot) -> WithoutPassage:
    """The documents of a snapshot that have no passage."""
    number, first = 0, list[str]()
    for segment in snapshot.segments:
        empty = ((np.diff(segment["document.first_passage"].astype(np.int64)) == 0) & segment.alive).nonzero()[0]
        number += empty.size
        first += map(segment.document_id, empty[: MOST_NAMED - len(first)].tolist())
    return WithoutPassage(number, tuple(first))
