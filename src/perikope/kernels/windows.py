"""The windows of a segment in turn: the lists of the query's terms in each, and bounds of what they add."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Bytes, Floats, Integers, Unsigned16
from perikope.kernels.dictionary import read
from perikope.kernels.fetch_inputs import WINDOW, AllowedDocuments, ContributionTables, SegmentPostings, WeightedTerms, WindowBuffers
from perikope.kernels.jit import step

SLACK = 1e-9
"""Relative tolerance for rounding when a sum of upper bounds is compared with a threshold."""
SPARSE = 16
"""If a window has this many times more documents than postings, its lists are walked again instead of all its sums."""


class TermLists(NamedTuple):
    """The terms of a query, with what the kernel has computed about them."""

    first_list: Integers
    """The first list of each term in the segment."""
    end_list: Integers
    """One more than the last list of each term."""
    coefficients: Floats
    """Shape (terms, coefficients): the coefficients of each term."""
    sums_grow: bool
    """Whether all contributions are positive and there is no background. Sums then only grow."""
    bounds: Floats
    """Upper bound of what each term adds to a document, if sums grow; otherwise any values."""


class Window(NamedTuple):
    """One window with its lists, in the order of their terms."""

    base: int
    """First document of the window, counted in the segment."""
    size: int
    """Number of documents in the window."""
    columns: Unsigned16
    """Column of each document in the tables."""
    allowed: Bytes
    """1 for each document of the window that may be a result, else 0; empty if all may."""
    permitted: int
    """Number of documents of the window that may be results."""
    lists: int
    """Number of lists."""
    postings: int
    """Number of postings in all lists."""
    first: Integers
    """Index of the first posting of each list."""
    end: Integers
    """One more than the index of the last posting of each list."""
    term: Integers
    """Index of each list's term."""
    bound_from: Floats
    """Upper bound of what each list and all lists after it together add to a document; 0 at the end.

    It holds only if sums grow.
    """


@step
def terms_of(query: WeightedTerms, tables: ContributionTables) -> TermLists:
    """The lists of the terms in the segment, and whether and by how much they raise sums."""
    table, rows, column, coefficients = query.table, query.rows, query.column, query.coefficients
    count = rows.size
    first_list, end_list, bounds = np.empty(count, np.int64), np.empty(count, np.int64), np.zeros(count)
    for term in range(count):
        first_list[term] = table[rows[term], column]
        end_list[term] = table[rows[term], column + 1]
        for j in range(coefficients.shape[1]):
            bounds[term] += coefficients[term, j] * tables.largest[j]
    return TermLists(first_list, end_list, coefficients, sums_grow_of(query, tables), bounds)


@step
def sums_grow_of(query: WeightedTerms, tables: ContributionTables) -> bool:
    """Whether all contributions are positive and there is no background."""
    positive = tables.positive and query.background.size == 0
    for term in range(query.coefficients.shape[0]):
        for j in range(query.coefficients.shape[1]):
            positive &= query.coefficients[term, j] > 0.0
    return positive


@step
def next_window(window_of_list: Unsigned16, next_list: Integers, end_list: Integers) -> int:
    """The number of the first window in which a term has a list, or `WINDOW` if no term has lists left.

    `next_list` has the next list of each term, and `end_list` one more than its last list.
    """
    number = WINDOW
    for term in range(next_list.size):
        if next_list[term] < end_list[term]:
            number = min(number, np.int64(window_of_list[next_list[term]]))
    return number


@step
def open_window(
    postings: SegmentPostings, terms: TermLists, tables: ContributionTables, allowed: AllowedDocuments, number: int,
    next_list: Integers,
) -> Window:  # fmt: skip
    """Collect the lists of the window with this number, and move `next_list` past them."""
    base = number * WINDOW
    size = min(postings.count - base, WINDOW)
    count = next_list.size
    first, end, term_of_list = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    window_of_list, end_list = postings.window_of_list, terms.end_list
    lists = 0
    total = 0
    for term in range(count):
        if next_list[term] < end_list[term] and window_of_list[next_list[term]] == number:
            first[lists] = read(postings.first_posting, postings.posting_size, next_list[term])
            end[lists] = read(postings.first_posting, postings.posting_size, next_list[term] + 1)
            term_of_list[lists] = term
            total += end[lists] - first[lists]
            next_list[term] += 1
            lists += 1
    bound_from = np.empty(lists + 1)
    bound_from[lists] = 0.0
    for at in range(lists - 1, -1, -1):
        bound_from[at] = bound_from[at + 1] + terms.bounds[term_of_list[at]]
    here = allowed.mask[base : base + size]
    permitted = allowed.in_window[number] if here.size else size
    columns = tables.column_of_document[base : base + WINDOW]
    return Window(base, size, columns, here, permitted, lists, total, first, end, term_of_list, bound_from)


@step
def postings_of(window: Window, lists: int) -> int:
    """The number of postings in the first `lists` lists of the window."""
    first, end = window.first, window.end
    count = 0
    for at in range(lists):
        count += end[at] - first[at]
    return count


@step
def added_beyond(documents: Unsigned16, window: Window, added: int, buffers: WindowBuffers) -> bool:
    """Whether one of the first `added` lists, which have been added, has a document outside the window.

    It would become a result, and its sum would never be reset. Few postings are examined one by one; for many, the sums
    outside the window are.
    """
    if postings_of(window, added) > WINDOW - window.size:
        bits, unseen = buffers.sums[window.size : WINDOW].view(np.int64), buffers.seen[window.size : WINDOW]
        some = np.int64(0)
        for i in range(bits.size):  # the bits are joined, not added as numbers, so that several are joined at once
            some |= bits[i]
        more = np.uint8(0)
        for i in range(unseen.size):
            more |= unseen[i]
        return some != 0 or more != 0
    beyond = False
    for at in range(added):
        beyond |= is_beyond(documents[window.first[at] : window.end[at]], window.size)
    return beyond


@step
def is_beyond(documents: Unsigned16, size: int) -> bool:
    """Whether any document of a list is outside a window of this size."""
    limit = np.int64(size) - 1
    some = np.uint8(0)
    for i in range(documents.size):
        some |= np.uint8(documents[i] > limit)
    return some != 0
