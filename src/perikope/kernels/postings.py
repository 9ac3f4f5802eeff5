"""Invert tokens into postings, and convert postings to the form in which they are stored.

Postings are divided into windows of 65,536 documents. Inside a window, a posting has two bytes for its document and one
byte for its frequency. So postings are used without decoding, and a damaged posting cannot point outside its window.
ARCHITECTURE.md has the measurements.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Integers, Unsigned16, Unsigned32, Unsigned64
from perikope.kernels.jit import inner, kernel

WINDOW_BITS = 16
"""The number of a document, shifted right by this many bits, is the number of its window."""
LARGE = 255
"""Frequencies of at least this value do not fit in one byte and are stored separately."""


@kernel
def invert(tokens: Unsigned32, first_token: Integers, terms: int) -> tuple[Integers, Unsigned32, Unsigned32]:
    """Invert tokens into postings, ordered by term and document.

    `tokens` has the term of each token, and `first_token` the first token of each document, with the number of tokens
    at the end. Returns the index of each term's first posting, with the number of postings at the end; the document of
    each posting; and the term frequency of each posting. Term 0 stands for stop words and has no postings.
    """
    last_document = np.empty(terms, np.int32)
    last_document[:] = -1
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
    posting_of_term = first_posting[:-1].copy()
    for document in range(documents):
        for at in range(first_token[document], first_token[document + 1]):
            term = tokens[at]
            if term == 0:
                continue
            if last_document[term] != document:
                last_document[term] = document
                document_of_posting[posting_of_term[term]] = document
                posting_of_term[term] += 1
            frequency[posting_of_term[term] - 1] += 1
    return first_posting, document_of_posting, frequency


@kernel
def invert_parts(
    tokens: Unsigned32,
    part_of_token: Bytes,
    first_token: Integers,
    first_posting: Integers,
    document_of_posting: Unsigned32,
) -> tuple[Unsigned64, Unsigned32]:
    """Find the document parts in which the term of each posting occurs.

    Returns the parts of each posting, as bits of a number; and the frequency in each part, for postings in several
    parts only, ordered by posting, then by part. `first_posting` and `document_of_posting` come from `invert`.
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
    for term in range(posting_of_term.size):
        posting_of_term[term] = first_posting[term]
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


@inner
def _bits(value: int) -> int:
    """The number of bits that are set."""
    count = 0
    value = np.uint64(value)
    while value != np.uint64(0):
        value &= value - np.uint64(1)
        count += 1
    return count


@inner
def _stored(parts: int) -> int:
    """The number of stored part frequencies of a posting: 0 if it has only one part, which has its whole frequency."""
    count = _bits(parts)
    return count if count > 1 else 0


@kernel
def count_stored(parts: Unsigned64) -> Integers:
    """The number of stored part frequencies before each posting, and at the end their total number."""
    before = np.empty(parts.size + 1, np.int64)
    count = 0
    for posting in range(parts.size):
        before[posting] = count
        count += _stored(parts[posting])
    before[parts.size] = count
    return before


@kernel
def select_part(parts: Unsigned64, frequency: Unsigned32, part_frequency: Unsigned32, part: int) -> Unsigned32:
    """The frequency of each posting in one part, or 0 if its term does not occur in that part.

    `part_frequency` has the part frequencies of these postings only, as `invert_parts` returns them.
    """
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
    """For each term, the number of units that contain it, and the number of its occurrences in all units.

    A unit is a range of tokens from `unit_first` to `unit_end` (exclusive). If units overlap, a token is counted once
    per unit. Term 0 stands for stop words and is not counted.
    """
    last_unit = np.empty(terms, np.int64)
    last_unit[:] = -1
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
    """Divide the postings of each term into lists, one per window in which the term occurs.

    Returns four arrays: the index of each term's first list, with the number of lists at the end; the number of each
    list's window; the index of each list's first posting; and the document of each posting, counted in its window.
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
    """Copy the postings of one segment to the merged postings. Documents without a new number (-1) are left out.

    `terms` has, for each term of the segment, its number in the merged postings, or -1 if it is left out.
    `next_posting` has, for each merged term, the index at which its next posting is written, and is advanced.
    `new_document`, `new_frequency` and `origin` are set: the document, the frequency, and the index of the posting in
    the segment.
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
