"""How much does a term say about a unit of text that holds it? The formulas, for documents and passages alike.

Each is a function of arrays that broadcast: frequency of the term in the unit, length of the unit, and the statistics of
the term over all units of the same sort. Fetch applies them to documents, the context-free models to passages.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def idf(units: int, holding: NDArray[Any]) -> Floats:
    """BM25's inverse document frequency as Lucene has it, never negative: `ln(1 + (N - n + 0.5) / (n + 0.5))`."""
    result: Floats = np.log1p((units - holding + 0.5) / (holding + 0.5))
    return result


def bm25(frequency: NDArray[Any], length: NDArray[Any], average_length: float, k1: float, b: float) -> Floats:
    """BM25's saturation of frequency by length: `tf (k1 + 1) / (tf + k1 (1 - b + b l / avg))`.

    Robertson, Walker, Jones, Hancock-Beaulieu and Gatford, Okapi at TREC-3, 1994.

    >>> float(bm25(np.array(3), np.array(120), 100.0, 1.2, 0.75).round(6))
    1.506849
    """
    result: Floats = frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * length / max(average_length, 1e-9)))
    return result
