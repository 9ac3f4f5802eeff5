"""Ranking: passages in order. Higher scores first; equal scores by document id, then by position. Always the same."""

from __future__ import annotations

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


def rank(
    matches: Matches,
    score: Column,
    k: int,
    place_of_document: NDArray[np.int64],
    *,
    matching_only: bool = False,
    allowed: NDArray[np.bool_] | None = None,
) -> Ranking:
    """The best `k` passages; `place_of_document` has the place of each candidate document in the order of their ids.

    With `matching_only`, passages without a query term are no results; with `allowed`, only these passages are.
    """
    values = score.values
    rows = np.arange(values.size)
    if matching_only or allowed is not None:
        kept = np.ones(values.size, bool) if allowed is None else allowed
        rows = np.flatnonzero(kept & (np.diff(matches.in_passages.first_entry) > 0) if matching_only else kept)
        values = values[rows]
    if values.size > k:
        threshold = np.partition(values, values.size - k)[values.size - k]
        # All that tie with the last one stay until the tie rule has decided between them.
        rows, values = rows[values >= threshold], values[values >= threshold]
    # Rows are in reading order within a document, so they are the last key.
    order = np.lexsort((rows, place_of_document[matches.document_of_passage[rows]], -values))[:k]
    return Ranking(rows[order], values[order])
