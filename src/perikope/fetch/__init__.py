"""Which documents are worth looking into?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def _unknown(document: int) -> Sequence[tuple[str, float]]:
    return ()


@dataclass(frozen=True, slots=True)
class Candidates:
    """Documents (numbers in the index) that are looked into, best first, with their scores."""

    documents: NDArray[np.int64]
    scores: NDArray[np.float64]
    parts_of_score: Callable[[int], Sequence[tuple[str, float]]] = _unknown
    """What the score of a document, by its number, is the sum of, in words; nothing where that is not known."""

    def __len__(self) -> int:
        return int(self.documents.size)
