"""Add the contributions of postings to the sums of documents."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Floats, Integers, Unsigned16
from perikope.kernels.fetch_inputs import ContributionTables, SegmentPostings, WindowBuffers
from perikope.kernels.jit import inner, kernel, step
from perikope.kernels.ordered import enlarged, lower_bound
from perikope.kernels.windows import TermLists, Window

FEW = 8
"""Documents are looked up one by one if a list has this many times more postings than there are documents."""


@step
def add_list(
    postings: SegmentPostings, terms: TermLists, tables: ContributionTables, window: Window, at: int, cut: float,
    buffers: WindowBuffers,
) -> None:  # fmt: skip
    """Add list number `at` of the window to the sums, by the fastest loop that the model and the filter allow.

    If `cut` is above 0, documents whose sum is below it may be left out.
    """
    first, end, term = window.first[at], window.end[at], window.term[at]
    documents, frequencies = postings.documents[first:end], postings.frequencies[first:end]
    coefficients = terms.coefficients[term]
    layer = term * tables.layers_per_term
    columns, sums, seen = window.columns, buffers.sums, buffers.seen
    rare = tables.rare_postings
    next_rare = lower_bound(rare, 0, rare.size, first)
    if terms.sums_grow and coefficients.size == 1 and (next_rare == rare.size or rare[next_rare] >= end):
        if cut > 0.0:
            _add_reaching(documents, frequencies, coefficients[0], tables.values[layer], columns, sums, cut)
        elif window.permitted * FEW < window.size:
            _add_allowed(documents, frequencies, coefficients[0], tables.values[layer], columns, sums, window.allowed)
        else:
            _add_all(documents, frequencies, coefficients[0], tables.values[layer], columns, sums)
        return
    table, rows, rare_values = tables.values, tables.rows, tables.rare_values
    for i in range(documents.size):
        document = documents[i]
        sums[document] += contribution(frequencies[i], first + i, columns[document], coefficients, layer, table, rows, rare, rare_values)
        seen[document] = not terms.sums_grow


@step
def add_small(
    postings: SegmentPostings, tables: ContributionTables, coefficients: Floats, layer: int, first: int, end: int, sums_grow: bool,
    sums: Floats, seen: Bytes,
) -> None:  # fmt: skip
    """Add the contributions of the postings from `first` to `end` to the sums of their documents.

    Sets `seen`, unless sums only grow.
    """
    documents, frequencies, columns = postings.documents, postings.frequencies, tables.column_of_document
    values, rows, rare, rare_values = tables.values, tables.rows, tables.rare_postings, tables.rare_values
    next_rare = lower_bound(rare, 0, rare.size, first)
    if sums_grow and coefficients.size == 1 and (next_rare == rare.size or rare[next_rare] >= end):
        _add_all(documents[first:end], frequencies[first:end], coefficients[0], values[layer], columns, sums)
        return
    for posting in range(first, end):
        document = documents[posting]
        sums[document] += contribution(
            frequencies[posting], posting, columns[document], coefficients, layer, values, rows, rare, rare_values
        )
        seen[document] = not sums_grow


@inner
def _add_all(documents: Unsigned16, frequencies: Bytes, coefficient: float, table: Floats, columns: Unsigned16, sums: Floats) -> None:
    """Add the contributions of a list to `sums`, which has one value per document of the window.

    The term must have one coefficient, and the list no rare postings. `table` has the contributions by frequency and
    column. Most time is spent in this loop.
    """
    for i in range(documents.size):
        document = documents[i]
        sums[document] += coefficient * table[frequencies[i], columns[document]]


@inner
def _add_allowed(
    documents: Unsigned16, frequencies: Bytes, coefficient: float, table: Floats, columns: Unsigned16, sums: Floats, allowed: Bytes
) -> None:
    """Add the contributions of a list to `sums` as `_add_all` does, but only for the allowed documents.

    This is faster if few documents are allowed.
    """
    for i in range(documents.size):
        document = documents[i]
        if allowed[document]:
            sums[document] += coefficient * table[frequencies[i], columns[document]]


@inner
def _add_reaching(
    documents: Unsigned16, frequencies: Bytes, coefficient: float, table: Floats, columns: Unsigned16, sums: Floats, cut: float
) -> None:
    """Add the contributions of a list to `sums` as `_add_all` does, but only where the sum is at least `cut`.

    This takes half the time if few sums are.
    """
    for i in range(documents.size):
        document = documents[i]
        if sums[document] >= cut:
            sums[document] += coefficient * table[frequencies[i], columns[document]]


@step
def contribution(
    frequency: int, posting: int, column: int, coefficients: Floats, layer: int, values: Floats, rows: int,
    rare_postings: Integers, rare_values: Floats,
) -> float:  # fmt: skip
    """The contribution of one posting: the sum of its term's coefficients times the values of the term's layers.

    `layer` is the first of these layers.
    """
    value = 0.0
    if frequency >= rows:
        at = lower_bound(rare_postings, 0, rare_postings.size, posting)
        if at < rare_postings.size and rare_postings[at] == posting:
            for j in range(coefficients.size):
                value += coefficients[j] * rare_values[j, at]
    else:
        for j in range(coefficients.size):
            value += coefficients[j] * values[layer + j, frequency, column]
    return value


@kernel
def rare_frequencies(frequencies: Bytes, first: Integers, end: Integers, rows: int) -> tuple[Integers, Integers]:
    """Find the postings whose frequency is at least `rows`.

    `first` and `end` (exclusive) are ranges of postings, one per term. Returns the indexes of these postings, ordered
    by term; and for each term the index of its first one in the first array, with the total number at the end.
    """
    limit = np.uint8(rows)
    postings = np.empty(64, np.int64)
    first_of_term = np.zeros(first.size + 1, np.int64)
    count = 0
    for term in range(first.size):
        at = first[term]
        while at < end[term]:
            stop = min(at + 1024, end[term])
            some = np.uint8(0)
            for i in range(at, stop):  # without a branch, so that many are compared at once
                some |= np.uint8(frequencies[i] >= limit)
            if some:
                if count + 1024 > postings.size:
                    postings = enlarged(postings, count, 2 * postings.size + 1024)
                for i in range(at, stop):
                    if frequencies[i] >= rows:
                        postings[count] = i
                        count += 1
            at = stop
        first_of_term[term + 1] = count
    return postings[:count].copy(), first_of_term
