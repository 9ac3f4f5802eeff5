"""Inversion of tokens into postings, and the form in which postings are stored.

Postings are cut into windows of 65,536 documents: inside one a document is two bytes and its frequency one, so nothing
has to be decoded before it is used, and no damaged posting can point outside its window. See ARCHITECTURE.md for what
was measured.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Integers, Unsigned16, Unsigned32, Unsigned64
from perikope.kernels.jit import kernel

WINDOW_BITS = 16
LARGE = 255
"""A frequency of this size or more is stored apart, by the number of its posting."""


@kernel
def invert(tokens: Unsigned32, first_token: Integers, terms: int) -> tuple[Integers, Unsigned32, Unsigned32]:
    """Postings of term → documents: first posting of each term, document and frequency of each posting.

    Token 0 is a stop word and has no postings.
    """
    last_document = np.full(terms, -1, np.int32)
    first_posting = np.zeros(terms + 1, np.int64)
    documents = first_token.size - 1
    for document in range(documents):
        for at in range(first_token[document], first_token[document + 1]):
            term = tokens[at]
            if last_document[term] != document and term != 0:
                last_document[term] = document
                first_posting[term + 1] += 1
    for term in range(terms):
        first_posting[term + 1] += first_posting[term]
    document_of_posting = np.empty(first_posting[terms], np.uint32)
    frequency = np.zeros(first_posting[terms], np.uint32)
    last_document[:] = -1
    posting_of_term = first_posting[:-1].copy() - 1
    for document in range(documents):
        for at in range(first_token[document], first_token[document + 1]):
            term = tokens[at]
            if term == 0:
                continue
            if last_document[term] != document:
                last_document[term] = document
                posting_of_term[term] += 1
                document_of_posting[posting_of_term[term]] = document
            frequency[posting_of_term[term]] += 1
    return first_posting, document_of_posting, frequency


@kernel
def invert_parts(
    tokens: Unsigned32,
    part_of_token: Bytes,
    first_token: Integers,
    first_posting: Integers,
    document_of_posting: Unsigned32,
) -> tuple[Unsigned64, Unsigned32]:
    """The parts of each posting, as a set of bits, and the frequency per part of postings in several parts.

    The frequencies are ordered by posting, then by part.
    """
    parts = np.zeros(document_of_posting.size, np.uint64)
    posting_of_term = first_posting[:-1].copy()
    for document in range(first_token.size - 1):
        for at in range(first_token[document], first_token[document + 1]):
            term = tokens[at]
            if term != 0:
                while document_of_posting[posting_of_term[term]] != document:
                    posting_of_term[term] += 1
                parts[posting_of_term[term]] |= np.uint64(1) << np.uint64(part_of_token[at])
    first_frequency = np.empty(parts.size + 1, np.int64)
    count = 0
    for posting in range(parts.size):
        first_frequency[posting] = count
        count += _stored(parts[posting])
    first_frequency[parts.size] = count
    frequency = np.zeros(count, np.uint32)
    posting_of_term[:] = first_posting[:-1]
    for document in range(first_token.size - 1):
        for at in range(first_token[document], first_token[document + 1]):
            term = tokens[at]
            if term != 0:
                while document_of_posting[posting_of_term[term]] != document:
                    posting_of_term[term] += 1
                posting = posting_of_term[term]
                if first_frequency[posting + 1] > first_frequency[posting]:
                    below = (np.uint64(1) << np.uint64(part_of_token[at])) - np.uint64(1)
                    frequency[first_frequency[posting] + _bits(parts[posting] & below)] += 1
    return parts, frequency


@kernel
def _bits(value: int) -> int:
    count = 0
    value = np.uint64(value)
    while value != np.uint64(0):
        value &= value - np.uint64(1)
        count += 1
    return count


@kernel
def _stored(parts: int) -> int:
    """The number of part frequencies of a posting: none where it occurs in one part only, as its frequency says it."""
    count = _bits(parts)
    return count if count > 1 else 0


@kernel
def count_stored(parts: Unsigned64) -> Integers:
    """The number of part frequencies before each posting."""
    before = np.empty(parts.size + 1, np.int64)
    count = 0
    for posting in range(parts.size):
        before[posting] = count
        count += _stored(parts[posting])
    before[parts.size] = count
    return before


@kernel
def select_part(parts: Unsigned64, frequency: Unsigned32, part_frequency: Unsigned32, part: int) -> Unsigned32:
    """The frequency of each posting in one part; 0 where it does not occur there."""
    wanted = np.uint64(1) << np.uint64(part)
    selected = np.zeros(parts.size, np.uint32)
    at = 0
    for posting in range(parts.size):
        stored = _stored(parts[posting])
        if parts[posting] & wanted:
            if stored == 0:
                selected[posting] = frequency[posting]
            elif at + stored <= part_frequency.size:
                selected[posting] = part_frequency[at + _bits(parts[posting] & (wanted - np.uint64(1)))]
        at += stored
    return selected


@kernel
def count_units(tokens: Unsigned32, unit_first: Integers, unit_end: Integers, terms: int) -> tuple[Integers, Integers]:
    """The number of units (token ranges) that contain each term, and its occurrences in them.

    A token in several units counts in each.
    """
    last_unit = np.full(terms, -1, np.int64)
    units = np.zeros(terms, np.int64)
    occurrences = np.zeros(terms, np.int64)
    for unit in range(unit_first.size):
        for at in range(unit_first[unit], unit_end[unit]):
            term = tokens[at]
            if term != 0:
                occurrences[term] += 1
                if last_unit[term] != unit:
                    last_unit[term] = unit
                    units[term] += 1
    return units, occurrences


@kernel
def cut_windows(first_posting: Integers, document: Unsigned32) -> tuple[Integers, Unsigned16, Integers, Unsigned16]:
    """Postings cut into windows.

    Returns the first window of each term, number and first posting of each window, and documents within windows.
    """
    terms = first_posting.size - 1
    low = np.empty(document.size, np.uint16)
    count = 0
    for term in range(terms):
        current = -1
        for posting in range(first_posting[term], first_posting[term + 1]):
            window = document[posting] >> np.uint32(WINDOW_BITS)
            count += window != current
            current = window
    first_window = np.empty(terms + 1, np.int64)
    number = np.empty(count, np.uint16)
    first_of_window = np.empty(count, np.int64)
    at = 0
    for term in range(terms):
        first_window[term] = at
        current = -1
        for posting in range(first_posting[term], first_posting[term + 1]):
            window = document[posting] >> np.uint32(WINDOW_BITS)
            if window != current:
                number[at] = window
                first_of_window[at] = posting
                at += 1
                current = window
            low[posting] = document[posting] & np.uint32(0xFFFF)
    first_window[terms] = at
    return first_window, number, first_of_window, low


@kernel
def renumber_postings(
    terms: Integers,
    first_posting: Integers,
    document: Unsigned32,
    frequency: Unsigned32,
    new_number: Integers,
    next_posting: Integers,
    new_document: Unsigned32,
    new_frequency: Unsigned32,
    origin: Integers,
) -> None:
    """Append the postings of these terms to the merged ones; documents without a new number (-1) are left out.

    `terms` has the term of each list in the merged postings, or -1 for none; `next_posting` where each term continues;
    `origin` remembers the posting.
    """
    for i in range(terms.size):
        term = terms[i]
        if term < 0:
            continue
        for posting in range(first_posting[i], first_posting[i + 1]):
            number = new_number[document[posting]]
            if number >= 0:
                at = next_posting[term]
                new_document[at] = number
                new_frequency[at] = frequency[posting]
                origin[at] = posting
                next_posting[term] = at + 1
