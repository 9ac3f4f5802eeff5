"""How often the terms of a query occur in passages, titles and documents, from lists that are made once for all terms.

A join reads the token streams of its candidates. If many queries have the same candidates, it is shorter to list once,
for every term, the units that hold it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Array, Integers, Integers32, Unsigned16, frozen
from perikope.kernels.join import count_terms, occurrences_of_ranges
from perikope.kernels.term_lists import ListsOfTerms, all_occurrences, counts_of_terms, lists_of_terms

MOST_TOKENS = 1 << 21
"""Documents with more codes of tokens than this are not listed. Lists of this many take about 32 MB."""


class TokensOfSegment(NamedTuple):
    """The token streams of the candidates of one segment."""

    segment: int
    """The number of the segment in the index."""
    terms: int
    """The number of terms in the segment."""
    codes: Unsigned16
    """The token codes of the whole segment."""
    first_code: Integers
    end_code: Integers


class Listed(NamedTuple):
    """The fields of `Frequencies`, in their order, and the unit of each entry."""

    first_entry: Integers
    term: Integers32
    frequency: Integers32
    unit: Integers


@dataclass(frozen=True, slots=True)
class ListedTerms:
    """The lists of all terms of some documents."""

    first_list: tuple[int, ...]
    """The number of the list of term 0 of each segment of the index; -1 for a segment without documents of the set."""
    lists: Mapping[str, ListsOfTerms]
    """Lists by the kind of units: `documents`, `passages` and `titles`."""
    units: Mapping[str, int]
    """The number of units of each kind."""

    @classmethod
    def of(cls, columns: Mapping[str, Array], tokens: Sequence[TokensOfSegment]) -> ListedTerms:
        """List the terms of documents, given the columns of `CandidateSet`. Terms are counted as by a join."""
        first_list, bases = [-1] * (tokens[-1].segment + 1), list(accumulate((one.terms for one in tokens), initial=0))
        found = []
        for base, one in zip(bases, tokens, strict=False):
            first_list[one.segment] = base
            found.append(all_occurrences(one.codes, one.first_code, one.end_code, one.terms, base))
        term, position = (frozen(np.concatenate([column[i] for column in found])) for i in (0, 1))
        before = accumulate((one[0].size for one in found), initial=0)
        ends = frozen(np.concatenate([np.zeros(1, np.int64), *(one[2] + count for one, count in zip(found, before, strict=False))]))
        terms = bases[-1]

        def listed(document: Array, first: Array, end: Array) -> ListsOfTerms:
            return counted(*map(frozen, occurrences_of_ranges(position, ends, *map(frozen, (document, first, end)))))

        def counted(first: Integers, end: Integers) -> ListsOfTerms:
            return ListsOfTerms(*map(frozen, lists_of_terms(count_terms(term, first, end, terms), terms)))

        lists = {
            "documents": counted(ends[:-1], ends[1:]),
            "passages": listed(*(columns[f"{name}_of_passage"] for name in ("document", "first_token", "end_token"))),
            "titles": listed(*(columns[f"{name}_of_section"] for name in ("document", "title_first", "title_end"))),
        }
        sizes = columns["length_of_document"].size, columns["document_of_passage"].size, columns["document_of_section"].size
        return cls(tuple(first_list), lists, dict(zip(lists, sizes, strict=True)))

    def frequencies(self, terms: Integers) -> dict[str, Listed]:
        """The frequencies of terms, by kind of units. `terms` (segments, terms) has their numbers in each segment."""
        segments = [number for number, first in enumerate(self.first_list) if first >= 0]
        numbers = terms[segments].T
        listed = (numbers + np.array([self.first_list[number] for number in segments]))[numbers >= 0]
        term = np.nonzero(numbers >= 0)[0]
        return {kind: Listed(*counts_of_terms(*lists, listed, term, self.units[kind])) for kind, lists in self.lists.items()}
