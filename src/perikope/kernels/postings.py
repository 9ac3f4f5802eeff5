"""Which documents hold each term, how often, and in which parts? Counting sorts over the token stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perikope.kernels.jit import kernel


@kernel
def invert(
    tokens: NDArray[np.uint32], unit_first: NDArray[np.int64], unit_end: NDArray[np.int64], terms: int
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
    """Postings of term → units (token ranges, in order): first posting of each term, unit and frequency of each posting.

    Token 0 is a stop word and has no postings.
    """
    last_unit = np.full(terms, -1, np.int64)
    first_posting = np.zeros(terms + 1, np.int64)
    for unit in range(unit_first.size):
        for at in range(unit_first[unit], unit_end[unit]):
            term = tokens[at]
            if last_unit[term] != unit and term != 0:
                last_unit[term] = unit
                first_posting[term + 1] += 1
    for term in range(terms):
        first_posting[term + 1] += first_posting[term]
    unit_of_posting = np.empty(first_posting[terms], np.uint32)
    frequency = np.zeros(first_posting[terms], np.uint32)
    last_unit[:] = -1
    next_posting = first_posting[:-1].copy() - 1
    for unit in range(unit_first.size):
        for at in range(unit_first[unit], unit_end[unit]):
            term = tokens[at]
            if term == 0:
                continue
            if last_unit[term] != unit:
                last_unit[term] = unit
                next_posting[term] += 1
                unit_of_posting[next_posting[term]] = unit
            frequency[next_posting[term]] += 1
    return first_posting, unit_of_posting, frequency


@kernel
def count_units(
    tokens: NDArray[np.uint32], unit_first: NDArray[np.int64], unit_end: NDArray[np.int64], terms: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each term: how many units hold it, and how often they do in all (an overlap counts in each unit)."""
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
def sum_runs(
    first_posting: NDArray[np.int64],
    unit_of_posting: NDArray[np.uint32],
    frequency: NDArray[np.uint32],
    document_of_unit: NDArray[np.uint32],
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int64]]:
    """Fold postings of units into postings of documents; the fourth array says where each one's units begin."""
    terms = first_posting.size - 1
    first_document = np.zeros(terms + 1, np.int64)
    documents = np.empty(unit_of_posting.size, np.uint32)
    sums = np.empty(unit_of_posting.size, np.uint32)
    first_unit = np.empty(unit_of_posting.size + 1, np.int64)
    count = 0
    for term in range(terms):
        begin = count
        for posting in range(first_posting[term], first_posting[term + 1]):
            document = document_of_unit[unit_of_posting[posting]]
            if count > begin and documents[count - 1] == document:
                sums[count - 1] += frequency[posting]
            else:
                documents[count] = document
                sums[count] = frequency[posting]
                first_unit[count] = posting
                count += 1
        first_document[term + 1] = count
    first_unit[count] = unit_of_posting.size
    return first_document, documents[:count].copy(), sums[:count].copy(), first_unit[: count + 1].copy()
