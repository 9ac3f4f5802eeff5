"""Which documents are worth looking into?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Candidates:
    """Documents (numbers in the index) that are looked into, best first, with their scores."""

    documents: NDArray[np.int64]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return int(self.documents.size)
