"""The documents that are worth looking into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perikope.core.arrays import Floats, Integers


def _unknown(document: int) -> Sequence[tuple[str, float]]:
    return ()


@dataclass(frozen=True, slots=True)
class Candidates:
    """Documents (numbers in the index) to look into, best first, with their scores."""

    documents: Integers
    scores: Floats
    parts_of_score: Callable[[int], Sequence[tuple[str, float]]] = _unknown
    """The contributions to the score of a document, given by its number, each with a label; empty if not known."""

    def __len__(self) -> int:
        return int(self.documents.size)
