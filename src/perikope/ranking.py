"""Ranking: passages in order. Higher scores first; equal scores by document id, then by position. Always the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perikope.matches import Matches
from perikope.signals import Column


@dataclass(frozen=True, slots=True)
class Ranking:
    """The rows of `Matches` that are the result, best first, with their scores."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return int(self.rows.size)


def rank(matches: Matches, score: Column, k: int, document_ids: Sequence[str], *, matching_only: bool = False) -> Ranking:
    """The best `k` passages; `document_ids` has the id of each candidate document.

    With `matching_only`, passages without a query term are no results.
    """
    values = score.values
    rows = np.arange(values.size)
    if matching_only:
        rows = np.flatnonzero(np.diff(matches.in_passages.first_entry) > 0)
        values = values[rows]
    if values.size > k:
        threshold = np.partition(values, values.size - k)[values.size - k]
        # All that tie with the last one stay until the tie rule has decided between them.
        rows, values = rows[values >= threshold], values[values >= threshold]
    rank_of_document = np.empty(len(document_ids), np.int64)
    rank_of_document[sorted(range(len(document_ids)), key=document_ids.__getitem__)] = np.arange(len(document_ids))
    # Rows are in reading order within a document, so they are the last key.
    order = np.lexsort((rows, rank_of_document[matches.document_of_passage[rows]], -values))[:k]
    return Ranking(rows[order], values[order])
