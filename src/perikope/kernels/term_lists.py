"""Lists of the units that hold a term, and the frequencies of a query's terms from these lists.

A unit is a passage, a title or a document, as in `kernels.join`. Lists are made once for all terms of some documents.
A query then reads the lists of its terms, and no token of the documents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Integers, Integers32, Unsigned16
from perikope.kernels.jit import kernel
from perikope.kernels.join import TermCounts
from perikope.kernels.ordered import enlarged
from perikope.kernels.tokens import ESCAPE


class ListsOfTerms(NamedTuple):
    """For each term, the units that hold it, in ascending order, with the frequencies."""

    first_entry: Integers
    """Index of each term's first entry, and at the end the number of entries."""
    unit: Integers32
    """Unit of each entry."""
    count: Integers32
    """Occurrences of the term in the unit."""


@kernel
def all_occurrences(
    codes: Unsigned16, first_code: Integers, end_code: Integers, terms: int, base: int
) -> tuple[Integers32, Integers32, Integers]:
    """Find the occurrences of all terms but number 0, which stands for stop words.

    `codes[first_code[d] : end_code[d]]` is the token stream of document d, in a segment with so many `terms`. Returns
    `base` + the number of the term of each occurrence; its position in its document; and for each document the end
    (exclusive) of its occurrences. A damaged code without a term is no occurrence.
    """
    room = 0
    for document in range(first_code.size):
        room += end_code[document] - first_code[document]
    term, position = np.empty(room, np.int32), np.empty(room, np.int32)
    end_of_document = np.empty(first_code.size, np.int64)
    count = 0
    for document in range(first_code.size):
        at, end = first_code[document], end_code[document]
        token = 0
        while at < end:
            number = np.int64(codes[at])
            if number == ESCAPE and at + 2 < end:
                number = np.int64(codes[at + 1]) | (np.int64(codes[at + 2]) << 16)
                at += 2
            if 0 < number < terms:
                term[count] = base + number
                position[count] = token
                count += 1
            at += 1
            token += 1
        end_of_document[document] = count
    return enlarged(term, count, count), enlarged(position, count, count), end_of_document


@kernel
def lists_of_terms(counts: TermCounts, terms: int) -> ListsOfTerms:
    """The lists of all terms, from the frequencies of the terms in each unit. `terms` is the number of terms."""
    first_entry = np.zeros(terms + 2, np.int64)
    for entry in range(counts.term.size):
        first_entry[counts.term[entry] + 2] += 1
    for term in range(terms):
        first_entry[term + 2] += first_entry[term + 1]
    unit, count = np.empty(counts.term.size, np.int32), np.empty(counts.term.size, np.int32)
    for holder in range(counts.first_entry.size - 1):
        for entry in range(counts.first_entry[holder], counts.first_entry[holder + 1]):
            term = counts.term[entry]
            at = first_entry[term + 1]
            unit[at] = holder
            count[at] = counts.count[entry]
            first_entry[term + 1] = at + 1
    return ListsOfTerms(first_entry[:-1], unit, count)


@kernel
def counts_of_terms(
    first_entry: Integers, unit: Integers32, count: Integers32, listed: Integers, term_of_list: Integers, units: int
) -> tuple[Integers, Integers32, Integers32, Integers]:
    """The frequencies of a query's terms in each unit, from some of the lists of `ListsOfTerms`.

    `listed` has the numbers of these lists, and `term_of_list` the index of each one's term in the query, in ascending
    order. `units` is the number of units. Returns the fields of `TermCounts` and the unit of each entry.
    """
    first_of_unit = np.zeros(units + 2, np.int64)
    entries = 0
    for i in range(listed.size):
        first, end = np.uintp(first_entry[listed[i]]), np.uintp(first_entry[listed[i] + 1])
        entries += end - first
        for at in range(first, end):
            first_of_unit[np.uintp(unit[at]) + np.uintp(2)] += 1
    for holder in range(units):
        first_of_unit[holder + 2] += first_of_unit[holder + 1]
    term, frequency = np.empty(entries, np.int32), np.empty(entries, np.int32)
    unit_of_entry = np.empty(entries, np.int64)
    for i in range(listed.size):
        number = np.int32(term_of_list[i])
        for at in range(np.uintp(first_entry[listed[i]]), np.uintp(first_entry[listed[i] + 1])):
            holder = np.uintp(unit[at])
            to = np.uintp(first_of_unit[holder + np.uintp(1)])
            term[to] = number
            frequency[to] = count[at]
            unit_of_entry[to] = holder
            first_of_unit[holder + np.uintp(1)] = to + np.uintp(1)
    return first_of_unit[:-1], term, frequency, unit_of_entry
