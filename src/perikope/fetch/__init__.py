"""Fetching: rank documents, so that only the passages of the best documents are scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perikope.core.arrays import Floats, Integers


def _unknown(document: int) -> Sequence[tuple[str, float]]:
    return ()


@dataclass(frozen=True, slots=True)
class Candidates:
    """The documents whose passages are scored, best first."""

    documents: Integers
    """The numbers of the documents in the index."""
    scores: Floats
    """The score of each document, aligned with `documents`."""
    parts_of_score: Callable[[int], Sequence[tuple[str, float]]] = _unknown
    """A function from a document number to the contributions to its score, as pairs of label and value.

    The result is empty if the contributions are not known.
    """

    def __len__(self) -> int:
        return int(self.documents.size)
