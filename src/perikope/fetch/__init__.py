"""Fetching: rank documents, so that only the passages of the best documents are scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from perikope.core.arrays import Floats, Integers


class Summand(NamedTuple):
    """A summand of the score of a document."""

    label: str
    value: float
    term: str
    """The query term that it is due to; empty if it is due to none, as the length of the document."""


def unknown_parts(document: int) -> Sequence[Summand]:
    """The contributions to a score about which nothing is known: none."""
    return ()


@dataclass(frozen=True, slots=True)
class Candidates:
    """The documents whose passages are scored, best first."""

    documents: Integers
    """The numbers of the documents in the index."""
    scores: Floats
    """The score of each document, aligned with `documents`."""
    parts_of_score: Callable[[int], Sequence[Summand]] = unknown_parts
    """A function from a document number to the contributions to its score; empty if they are not known."""

    def __len__(self) -> int:
        return int(self.documents.size)
