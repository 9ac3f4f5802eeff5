"""What a join reads of its candidates whatever the query is, kept for the next search with the same candidates.

In a small collection, all documents are candidates of most queries. Reading, numbering and checking their sections and
passages would then be repeated for every topic of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from perikope.browse.structure import Units
from perikope.core.arrays import Array, Integers, Unsigned16, frozen
from perikope.index.reader import Snapshot

Value = TypeVar("Value")

MOST_KEPT = 1 << 17
"""A set with more passages and sections than this is not kept. The columns of this many take 12 MB."""
_KEY, _LAST = "candidates", "last candidates"


class TokensOfSegment(NamedTuple):
    """The token streams of the candidates of one segment."""

    segment: int
    """The number of the segment in the index."""
    codes: Unsigned16
    """The token codes of the whole segment."""
    first_code: Integers
    end_code: Integers


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Documents with the columns of `Matches` that do not depend on a query. Nothing in it refers to the snapshot."""

    numbers: Integers
    """The numbers of the documents in the index, in ascending order."""
    units: Units
    tags: Collection[str] | None
    columns: dict[str, Array]
    """The columns by name, as `assemble` takes them; read-only."""
    parts: tuple[str, ...]
    """The names of the parts of documents."""
    tokens: list[TokensOfSegment]
    """Where the tokens are, for each segment with candidates; empty if the segments are not on this machine."""
    _derived: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for values in (self.numbers, *self.columns.values()):
            frozen(values)

    def once(self, name: str, make: Callable[[], Value]) -> Value:
        """The result of `make()`, which depends on the documents only; it is remembered with the set.

        It must not refer to the snapshot, which would then be freed by the garbage collector only.
        """
        if name not in self._derived:
            self._derived[name] = make()
        value: Value = self._derived[name]
        return value

    def has(self, numbers: Integers, units: Units, tags: Collection[str] | None) -> bool:
        """Whether this is the set of these documents."""
        return self.units == units and self.tags == tags and np.array_equal(self.numbers, numbers)


def candidate_set(
    snapshot: Snapshot,
    numbers: Integers,
    units: Units,
    tags: Collection[str] | None,
    read: Callable[[Snapshot, Integers, Units, Collection[str] | None], CandidateSet],
) -> CandidateSet:
    """The set of these documents: the kept one, or else the result of `read`.

    A set is kept if it is asked for twice in succession, and until another one is. So nothing is kept where every query
    has other candidates.
    """
    kept: CandidateSet | None = snapshot.derived.get(_KEY)
    if kept is not None and kept.has(numbers, units, tags):
        return kept
    found = read(snapshot, numbers, units, tags)
    last = snapshot.derived.get(_LAST)
    if last is not None and np.array_equal(last, numbers) and found.columns["document_of_passage"].size <= MOST_KEPT:
        snapshot.derived[_KEY] = found
    snapshot.derived[_LAST] = found.numbers
    return found
