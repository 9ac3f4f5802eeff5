"""What a join reads of its candidates whatever the query is, kept for the next search with the same candidates.

In a small collection, all documents are candidates of most queries. Reading, numbering and checking their sections and
passages would then be repeated for every topic of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from perikope.browse.listed_terms import MOST_TOKENS, Listed, ListedTerms, TokensOfSegment
from perikope.browse.structure import Units
from perikope.core.arrays import Array, Integers, frozen
from perikope.index.reader import Snapshot

Value = TypeVar("Value")

MOST_KEPT = 1 << 17
"""A set with more passages and sections than this is not kept. The columns of this many take 12 MB."""
_KEY, _LAST, _EXPECTED = "candidates", "last candidates", "expected searches"
_MANY = 64
"""So many searches with the same candidates take as long as listing all their terms."""


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

    def frequencies(self, terms: Integers) -> dict[str, Listed] | None:
        """The frequencies of terms, by kind of units, from lists of all terms; None if their tokens should be read.

        Lists are made when the set is used often. `terms` (segments, terms) has the numbers of the terms.
        """
        listed: ListedTerms | None = self._derived.get("listed terms")
        if listed is None:
            if self._derived.get("uses", 0) < _MANY or not self._can_be_listed:
                return None
            listed = self.once("listed terms", lambda: ListedTerms.of(self.columns, self.tokens))
        return listed.frequencies(terms)

    @property
    def _can_be_listed(self) -> bool:
        # Elements overlap, so a token may be in many of them.
        codes = sum(int((tokens.end_code - tokens.first_code).sum()) for tokens in self.tokens)
        return self.units == "passages" and 0 < codes <= MOST_TOKENS

    def count_use(self, uses: int) -> None:
        """Note that so many searches have these candidates."""
        self._derived["uses"] = self._derived.get("uses", 0) + uses

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
        kept.count_use(1)
        return kept
    found = read(snapshot, numbers, units, tags)
    last = snapshot.derived.get(_LAST)
    if last is not None and np.array_equal(last, numbers) and found.columns["document_of_passage"].size <= MOST_KEPT:
        found.count_use(snapshot.derived.get(_EXPECTED, 0))
        snapshot.derived[_KEY] = found
    snapshot.derived[_LAST] = found.numbers
    return found


def expect_searches(snapshot: Snapshot, number: int) -> None:
    """Announce so many searches. Candidates that two of them have in succession are then expected of the others too."""
    snapshot.derived[_EXPECTED] = number
