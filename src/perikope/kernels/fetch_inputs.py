"""What the kernels of `accumulate` take: postings, tables of contributions, terms, and room for results.

Callers pass the values of NamedTuples as plain tuples; see `accumulate`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Bytes, Floats, Integers, Unsigned16

WINDOW = 1 << 16
"""Number of documents per window."""


class SegmentPostings(NamedTuple):
    """The postings of a segment and the lengths of its documents; the same for every query."""

    documents: Unsigned16
    """Document of each posting, counted from the first document of its window, in ascending order within a list."""
    frequencies: Bytes
    """Term frequency of each posting; 255 stands for 255 or more."""
    window_of_list: Unsigned16
    """Window of each list; the lists of a term are in the order of their windows."""
    first_posting: Bytes
    """Index of the first posting of each list, and at the end the number of postings.

    These are unsigned little-endian numbers of `posting_size` bytes each.
    """
    posting_size: int
    """Bytes per number in `first_posting`: 1, 2, 4 or 8."""
    length_class: Unsigned16
    """Index of each document's length among the distinct lengths; padded with zeros to a whole number of windows."""
    count: int
    """Number of documents in the segment."""


class ContributionTables(NamedTuple):
    """The contribution of a posting by its frequency and its document, before it is multiplied by coefficients."""

    values: Floats
    """Shape (layers, frequencies, columns). A term with c coefficients uses c consecutive layers."""
    rows: int
    """Frequencies 0 to `rows - 1` have a row in `values`. A posting with a larger frequency is *rare*."""
    column_of_document: Unsigned16
    """Column of each document in `values`; padded with zeros to a whole number of windows."""
    rare_postings: Integers
    """Indexes of the rare postings, in ascending order."""
    rare_values: Floats
    """Shape (coefficients, rare postings): the contributions of the rare postings."""
    largest: Floats
    """For each coefficient, the largest value in its layer or layers."""
    layers_per_term: int
    """Term number t uses the layers from `t · layers_per_term` on. 0 means that all terms use the same layers."""
    positive: bool
    """Whether all values are above 0."""


class WeightedTerms(NamedTuple):
    """The terms of a query in one segment, rare terms first."""

    table: Integers
    """Data about many terms, one row per term."""
    rows: Integers
    """The row of each term in `table`."""
    column: int
    """This column of `table` has the first list of each term, and the next column one more than its last list."""
    coefficients: Floats
    """Shape (terms, coefficients): the coefficients of each term."""
    background: Floats
    """A value per length class, which is added to the score of each matching document; empty for none."""


class AllowedDocuments(NamedTuple):
    """The documents of a segment that may be results; two empty arrays if all may."""

    mask: Bytes
    """1 for each document of the segment that may be a result, else 0."""
    in_window: Integers
    """Number of such documents in each window."""


def allowed_documents(mask: Bytes) -> AllowedDocuments:
    """The allowed documents by a mask with one value per document, 0 or 1. An empty mask allows all documents."""
    counts = [np.count_nonzero(mask[first : first + WINDOW]) for first in range(0, mask.size, WINDOW)]
    return AllowedDocuments(mask, np.array(counts, np.int64))


class BestDocuments(NamedTuple):
    """The best documents of the segments so far, in no particular order."""

    documents: Integers
    """Numbers of the documents. Only the first `held` values are set; the others are free room."""
    scores: Floats
    """Score of each document, aligned with `documents`."""
    k: int
    """Number of documents wanted. Documents that tie with the k-th best are kept as well."""
    held: int
    """Number of documents so far."""
    threshold: float
    """Minimum score of further documents."""


class WindowBuffers(NamedTuple):
    """Reusable arrays with room for one value per document of a window.

    `sums` and `seen` must be 0 before a call of `best_of_segment`, and are 0 after it.
    """

    sums: Floats
    """Sum of each document so far."""
    seen: Bytes
    """1 for each document that is in an added list, else 0; used only if sums do not only grow."""
    chosen: Integers
    """The candidates: documents of the window in ascending order. `values` and `matched` are aligned with it."""
    values: Floats
    """Sum of each candidate so far."""
    matched: Bytes
    """1 for each candidate that is in one of the lists so far, else 0."""
