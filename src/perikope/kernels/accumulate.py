"""Find the documents of a segment with the highest scores. The result is exact.

The score of a document is a sum over the query's terms. A term adds
`Σ_j coefficient_j · table_j[frequency, column of the document]` to each document that contains it. Terms are added in a
fixed order, rare terms first, so that rounding is the same whichever documents are skipped.

Documents are processed in *windows* of 65,536 documents. A *list* is the postings of one term in one window. In each
window, lists are first added to an array with one sum per document. As soon as a document that is in none of these
lists cannot be among the best, lists are added only to documents that can. If few such *candidates* are left, they are
looked up in the remaining lists. Before each list, candidates that cannot be among the best any more are dropped. If a
filter allows only few documents of a window, these documents are looked up in all lists.

The arguments of `best_of_segment` are the values of NamedTuples that callers reuse: `SegmentPostings` is built once per
segment, `ContributionTables` once per segment and model, `WeightedTerms` once per query and segment, and
`WindowBuffers` once per thread. Callers pass them as plain tuples (`tuple(postings)`), since a NamedTuple takes numba
half a microsecond to recognise, in every call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Bytes, Floats, Integers, Unsigned16
from perikope.kernels.dictionary import read
from perikope.kernels.jit import inner, kernel, step
from perikope.kernels.ordered import enlarged, lower_bound, select, sort_pairs

WINDOW = 1 << 16
"""Number of documents per window."""
SMALL = 1 << 12
"""Maximum number of documents of a segment for `best_of_small_segment`."""
SOUND, DAMAGED, FULL = 0, 1, 2
"""Status that `best_of_segment` returns."""
SLACK = 1e-9
"""Relative tolerance for rounding when a sum of upper bounds is compared with a threshold."""

_SPARSE = 16
"""If a window has this many times more documents than postings, its lists are walked again instead of all its sums."""
_BLOCK = 64
"""Number of documents that are compared with a threshold at once; `_reached` returns one bit for each of them."""
_LOOK = 8
"""Passing over all sums of a window takes as long as adding postings of a window divided by this."""
_FAR = 256
"""Looking up a candidate takes as long as reading this many postings, since what it reads is not in a cache."""
_NEAR = 16
"""Distance from the guessed place of a document in a list at which a search begins."""
_MANY_LEFT = 0.5
"""If the lists left can add more than this share of the threshold, too many documents can still reach it."""
_SAMPLE = 1024
"""Approximate number of sums from which a threshold is guessed."""
_FEW = 8
"""Documents are looked up one by one if a list has this many times more postings than there are documents."""
_SMALLEST = 5e-324
"""The smallest positive number. If sums only grow, every document in a list has at least this sum."""


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


class _Terms(NamedTuple):
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


class _Window(NamedTuple):
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


@kernel
def best_of_segment(
    postings: SegmentPostings, query: WeightedTerms, tables: ContributionTables, allowed: AllowedDocuments, base: int,
    best: BestDocuments, buffers: WindowBuffers,
) -> tuple[int, float, int]:  # fmt: skip
    """Add the best documents of a segment to the best documents so far.

    `base` is the number of the segment's first document. All numbers in `best` must be below `base`.

    Returns the new values of `best.held` and `best.threshold`, and a status. `SOUND` means success. `DAMAGED` means
    that postings lie outside their window or segment. `FULL` means that `best` has no room for the candidates of a
    window, of which there are at most `WINDOW`. The caller must then remove the documents of this segment, whose
    numbers are at least `base`, and call again with more room.
    """
    postings, tables, allowed = SegmentPostings(*postings), ContributionTables(*tables), AllowedDocuments(*allowed)
    query, best, buffers = WeightedTerms(*query), BestDocuments(*best), WindowBuffers(*buffers)
    terms = _terms_of(query, tables)
    next_list = terms.first_list.copy()
    held, threshold = best.held, best.threshold
    if terms.sums_grow:
        threshold = max(threshold, 0.0)
    last = -1
    while True:
        number = _next_window(postings.window_of_list, next_list, terms.end_list)
        if number == WINDOW:
            return held, threshold, SOUND
        if number <= last or number * WINDOW >= postings.count:
            return held, threshold, DAMAGED
        last = number
        window = _open_window(postings, terms, tables, allowed, number, next_list)
        if window.permitted == 0:
            continue
        added = 0
        if window.allowed.size and window.permitted * window.lists * _FEW < window.postings:
            candidates = _choose_allowed(window.allowed, buffers)
        else:
            added, threshold = _add_lists(postings, terms, tables, window, buffers, best.k, held < best.k, threshold)
            if _added_beyond(postings.documents, window, added, buffers):
                buffers.sums[:] = 0.0
                buffers.seen[:] = 0
                return held, threshold, DAMAGED
            candidates = _choose_added(postings.documents, window, added, terms.sums_grow, threshold, buffers)
        candidates = _look_up_lists(postings, terms, tables, window, added, threshold, buffers, candidates)
        _add_background(postings.length_class, query.background, window.base, buffers, candidates)
        if held + candidates > best.documents.size:
            return held, threshold, FULL
        held = _keep_best(buffers, candidates, base + window.base, best, held, threshold)
        if held >= best.k:
            held, lowest = _shrink(best.documents, best.scores, held, best.k)
            threshold = max(threshold, lowest)


@kernel
def best_of_small_segment(
    postings: SegmentPostings, query: WeightedTerms, tables: ContributionTables, allowed: AllowedDocuments, base: int,
    best: BestDocuments, buffers: WindowBuffers,
) -> tuple[int, float, int]:  # fmt: skip
    """Do the same as `best_of_segment`, for a segment of at most `SMALL` documents. The results are equal to the bit.

    All lists are added, since skipping saves nothing in a small segment. This kernel is compiled in a fifth of the
    time, and most first searches need no other.
    """
    postings, tables, allowed = SegmentPostings(*postings), ContributionTables(*tables), AllowedDocuments(*allowed)
    query, best, buffers = WeightedTerms(*query), BestDocuments(*best), WindowBuffers(*buffers)
    first_posting, size = postings.first_posting, postings.posting_size
    sums, seen, mask, background = buffers.sums, buffers.seen, allowed.mask, query.background
    held, threshold = best.held, best.threshold
    if held + postings.count > best.documents.size:
        return held, threshold, FULL
    sums_grow = _sums_grow(query, tables)
    state = SOUND
    for term in range(query.rows.size):
        at, end_list = query.table[query.rows[term], query.column], query.table[query.rows[term], query.column + 1]
        if at >= end_list:
            continue
        first, end = read(first_posting, size, at), read(first_posting, size, at + 1)
        if end_list - at > 1 or postings.window_of_list[at] != 0 or _beyond(postings.documents[first:end], postings.count):
            state = DAMAGED
            break
        _add_small(postings, tables, query.coefficients[term], term * tables.layers_per_term, first, end, sums_grow, sums, seen)
    limit = 2 * (held + best.k) + _BLOCK
    for document in range(postings.count):
        if sums[document] > 0.0 if sums_grow else seen[document] != 0:
            score = sums[document]
            if background.size:
                score += background[postings.length_class[document]]
            if score >= threshold and (mask.size == 0 or mask[document] != 0):
                best.documents[held] = base + document
                best.scores[held] = score
                held += 1
                if held == limit:
                    held, threshold = _shrink(best.documents, best.scores, held, best.k)
                    limit = 2 * held + _BLOCK  # ties with the k-th best stay, and there may be many
            sums[document] = 0.0
            seen[document] = 0
    if held >= best.k:
        held, lowest = _shrink(best.documents, best.scores, held, best.k)
        threshold = max(threshold, lowest)
    return held, threshold, state


@step
def _add_small(
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
        sums[document] += _contribution(
            frequencies[posting], posting, columns[document], coefficients, layer, values, rows, rare, rare_values
        )
        seen[document] = not sums_grow


@step
def _terms_of(query: WeightedTerms, tables: ContributionTables) -> _Terms:
    """The lists of the terms in the segment, and whether and by how much they raise sums."""
    table, rows, column, coefficients = query.table, query.rows, query.column, query.coefficients
    count = rows.size
    first_list, end_list, bounds = np.empty(count, np.int64), np.empty(count, np.int64), np.zeros(count)
    for term in range(count):
        first_list[term] = table[rows[term], column]
        end_list[term] = table[rows[term], column + 1]
        for j in range(coefficients.shape[1]):
            bounds[term] += coefficients[term, j] * tables.largest[j]
    return _Terms(first_list, end_list, coefficients, _sums_grow(query, tables), bounds)


@step
def _sums_grow(query: WeightedTerms, tables: ContributionTables) -> bool:
    """Whether all contributions are positive and there is no background."""
    positive = tables.positive and query.background.size == 0
    for term in range(query.coefficients.shape[0]):
        for j in range(query.coefficients.shape[1]):
            positive &= query.coefficients[term, j] > 0.0
    return positive


@step
def _next_window(window_of_list: Unsigned16, next_list: Integers, end_list: Integers) -> int:
    """The number of the first window in which a term has a list, or `WINDOW` if no term has lists left.

    `next_list` has the next list of each term, and `end_list` one more than its last list.
    """
    number = WINDOW
    for term in range(next_list.size):
        if next_list[term] < end_list[term]:
            number = min(number, np.int64(window_of_list[next_list[term]]))
    return number


@step
def _open_window(
    postings: SegmentPostings, terms: _Terms, tables: ContributionTables, allowed: AllowedDocuments, number: int,
    next_list: Integers,
) -> _Window:  # fmt: skip
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
    return _Window(base, size, columns, here, permitted, lists, total, first, end, term_of_list, bound_from)


@step
def _postings_of(window: _Window, lists: int) -> int:
    """The number of postings in the first `lists` lists of the window."""
    first, end = window.first, window.end
    count = 0
    for at in range(lists):
        count += end[at] - first[at]
    return count


@step
def _added_beyond(documents: Unsigned16, window: _Window, added: int, buffers: WindowBuffers) -> bool:
    """Whether one of the first `added` lists, which have been added, has a document outside the window.

    It would become a result, and its sum would never be reset. Few postings are examined one by one; for many, the sums
    outside the window are.
    """
    if _postings_of(window, added) > WINDOW - window.size:
        some = 0.0
        unseen = np.uint8(0)
        for i in range(window.size, WINDOW):
            some += abs(buffers.sums[i])
            unseen |= buffers.seen[i]
        return some > 0.0 or unseen != 0
    beyond = False
    for at in range(added):
        beyond |= _beyond(documents[window.first[at] : window.end[at]], window.size)
    return beyond


@step
def _beyond(documents: Unsigned16, size: int) -> bool:
    """Whether any document of a list is outside a window of this size."""
    limit = np.int64(size) - 1
    some = np.uint8(0)
    for i in range(documents.size):
        some |= np.uint8(documents[i] > limit)
    return some != 0


@step
def _choose_allowed(allowed: Bytes, buffers: WindowBuffers) -> int:
    """Make all allowed documents candidates, with value 0 and not matched; return their number."""
    chosen = buffers.chosen
    count = 0
    for first in range(0, allowed.size, _BLOCK):
        block = allowed[first : first + _BLOCK]
        some = np.uint8(0)
        for i in range(block.size):  # without a branch, so that many are examined at once
            some |= block[i]
        if some != 0:
            for i in range(block.size):
                if block[i] != 0:
                    chosen[count] = first + i
                    count += 1
    buffers.values[:count] = 0.0
    buffers.matched[:count] = 0
    return count


# Adding lists to the sums of a window


@step
def _add_lists(
    postings: SegmentPostings, terms: _Terms, tables: ContributionTables, window: _Window, buffers: WindowBuffers,
    k: int, first_of_all: bool, threshold: float,
) -> tuple[int, float]:  # fmt: skip
    """Add lists to the sums until it is cheaper to look up candidates in the remaining lists.

    `first_of_all` says that fewer than k documents are held from earlier windows. Returns the number of lists added,
    and the threshold. The threshold is raised if the sums of k documents so far reach a higher one.
    """
    sums, size, bound_from = buffers.sums[: window.size], window.size, window.bound_from
    wanted = k if first_of_all else k * size // postings.count  # at least so many candidates are expected
    may_learn = terms.sums_grow and first_of_all and k < size
    unlearned = bound_from[0] / 3 if wanted * _FAR < window.postings else 0.0  # learn once lists left add no more than this
    uncounted = _MANY_LEFT  # count candidates once lists left add no more than this share of the threshold
    learned = -1  # the number of lists after which the threshold was last learned
    filtered = False  # whether documents that cannot reach the threshold are left out
    added = 0  # postings
    at = 0
    while at < window.lists:
        left = window.postings - added
        if may_learn and 0 < added < left * _LOOK and bound_from[at] < unlearned:
            # Sums only grow, so the k-th best sum so far is already a threshold.
            threshold = max(threshold, _threshold(sums, k, window.allowed))
            unlearned = min(_MANY_LEFT * threshold, bound_from[at] / 2)
            learned = at
        cut = threshold * (1 - SLACK) - bound_from[at] if terms.sums_grow else 0.0
        if cut > 0.0 and added * _SPARSE < size:
            if added * _FAR < left:
                break
        elif cut > 0.0 and bound_from[at] < uncounted * threshold and _LOOK * left > size:
            few = wanted * _FAR < size and not filtered
            possible = 0 if few else _reaching(sums, cut)
            if not few and possible * _FAR < left:
                break
            filtered |= possible * _SPARSE < size
            uncounted /= 2
        _add_list(postings, terms, tables, window, at, cut if filtered else 0.0, buffers)
        added += window.end[at] - window.first[at]
        at += 1
    if may_learn and learned != at and (learned < 0 or k > _BLOCK) and added > max(2 * k, 1024):
        threshold = max(threshold, _threshold(sums, k, window.allowed))
    return at, threshold


@step
def _add_list(
    postings: SegmentPostings, terms: _Terms, tables: ContributionTables, window: _Window, at: int, cut: float,
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
        elif window.permitted * _FEW < window.size:
            _add_allowed(documents, frequencies, coefficients[0], tables.values[layer], columns, sums, window.allowed)
        else:
            _add_all(documents, frequencies, coefficients[0], tables.values[layer], columns, sums)
        return
    table, rows, rare_values = tables.values, tables.rows, tables.rare_values
    for i in range(documents.size):
        document = documents[i]
        sums[document] += _contribution(frequencies[i], first + i, columns[document], coefficients, layer, table, rows, rare, rare_values)
        seen[document] = not terms.sums_grow


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
def _contribution(
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


# The threshold: the minimum sum of a result


@inner
def _reaching(sums: Floats, cut: float) -> int:
    """The number of sums that are at least `cut`. The loop has no branch, so that many sums are compared at once."""
    count = 0
    for i in range(sums.size):
        count += sums[i] >= cut
    return count


_BIT_OF_PRODUCT = np.zeros(64, np.int64)
_DE_BRUIJN = 0x03F79D71B4CB0A89
for _bit in range(64):
    _BIT_OF_PRODUCT[((_DE_BRUIJN << _bit) & ((1 << 64) - 1)) >> 58] = _bit


@step
def _reached(sums: Floats, block: int, cut: float) -> np.uint64:
    """A bit for each of the 64 sums of a block: whether it is at least `cut`. The loop has no branch.

    The last block may go beyond `sums`, but not beyond the buffer of which `sums` is the beginning.
    """
    bits = np.uint64(0)
    for i in range(_BLOCK):
        bits |= np.uint64(sums[_BLOCK * block + i] >= cut) << np.uint64(i)
    return bits


@step
def _lowest_bit(bits: np.uint64) -> int:
    """The number of the lowest bit that is set, by multiplication with a de Bruijn sequence. `bits` must not be 0."""
    return _BIT_OF_PRODUCT[((bits & (~bits + np.uint64(1))) * np.uint64(_DE_BRUIJN)) >> np.uint64(58)]


@inner
def _reaching_allowed(sums: Floats, cut: float, allowed: Bytes) -> int:
    """The number of sums of allowed documents that are at least `cut`."""
    count = 0
    for i in range(sums.size):
        count += (sums[i] >= cut) & (allowed[i] != 0)
    return count


@step
def _highest(sums: Floats, k: int, allowed: Bytes) -> float:
    """The k-th highest sum of allowed documents, or 0 if fewer than k have a positive sum."""
    best = np.empty(2 * k + 2 * _BLOCK)
    held = 0
    threshold = _SMALLEST
    for block in range((sums.size + _BLOCK - 1) // _BLOCK):
        bits = _reached(sums, block, threshold)
        while bits != 0:
            i = _BLOCK * block + _lowest_bit(bits)
            bits &= bits - np.uint64(1)
            if allowed.size == 0 or allowed[i] != 0:
                best[held] = sums[i]
                held += 1
        if held > 2 * k + _BLOCK:
            threshold = select(best, held, held - k)
            for i in range(k):
                best[i] = best[held - k + i]
            held = k
    return select(best, held, held - k) if held >= k else 0.0


@inner
def _threshold(sums: Floats, k: int, allowed: Bytes) -> float:
    """A value that the sums of at least k allowed documents reach, near the k-th highest sum; 0 if none is found.

    For large k, the value is guessed from a sample and then checked, because finding the k-th highest sum exactly takes
    longer than adding up a short query.
    """
    if k <= _BLOCK or sums.size <= 2 * _SAMPLE:
        return _highest(sums, k, allowed)
    step = sums.size // _SAMPLE
    sample = np.empty(2 * _SAMPLE)
    held = 0
    for i in range(0, sums.size, step):
        if allowed.size == 0 or allowed[i] != 0:
            sample[held] = sums[i]
            held += 1
    expected = k / step
    rank = np.int64(expected + 2 * np.sqrt(expected)) + 1
    while rank < held:
        value = select(sample, held, held - rank)
        if value <= 0.0:
            return 0.0
        reaching = _reaching(sums, value) if allowed.size == 0 else _reaching_allowed(sums, value, allowed)
        if reaching >= k:
            return value
        rank *= 2
    return 0.0


# Candidates: the documents that can still be among the best


@step
def _choose_added(documents: Unsigned16, window: _Window, added: int, sums_grow: bool, threshold: float, buffers: WindowBuffers) -> int:
    """Make the documents that can still reach the threshold candidates; return their number.

    The first `added` lists have been added to the sums, and the other lists can add at most their bound. All candidates
    are set to matched. Resets `sums` and `seen` to 0.
    """
    cut = -np.inf
    if sums_grow:
        cut = max(threshold * (1 - SLACK) - window.bound_from[added], _SMALLEST)
    if _postings_of(window, added) * _SPARSE < window.size:
        count = _take_from_lists(documents, window, added, sums_grow, cut, buffers)
    else:
        sums, seen = buffers.sums[: window.size], buffers.seen[: window.size]
        count = _take_from_window(sums, seen, window.allowed, sums_grow, cut, buffers.chosen, buffers.values)
    buffers.matched[:count] = 1
    return count


@step
def _take_from_window(sums: Floats, seen: Bytes, allowed: Bytes, sums_grow: bool, cut: float, chosen: Integers, values: Floats) -> int:
    """Make allowed documents whose sum is at least `cut` candidates; return their number.

    Passes once over all documents of the window, and resets `sums` and `seen` to 0.
    """
    count = 0
    for block in range((sums.size + _BLOCK - 1) // _BLOCK):
        bits = _reached(sums, block, cut)
        while bits != 0:
            i = _BLOCK * block + _lowest_bit(bits)
            bits &= bits - np.uint64(1)
            if (sums_grow or seen[i] != 0) and (allowed.size == 0 or allowed[i] != 0):
                chosen[count] = i
                values[count] = sums[i]
                count += 1
    sums[:] = 0.0
    if not sums_grow:
        seen[:] = 0
    return count


@step
def _take_from_lists(documents: Unsigned16, window: _Window, added: int, sums_grow: bool, cut: float, buffers: WindowBuffers) -> int:
    """Do the same as `_take_from_window` by walking the first `added` lists again.

    This is faster if these lists have few postings.
    """
    sums, seen, allowed, chosen, values = buffers.sums, buffers.seen, window.allowed, buffers.chosen, buffers.values
    count = 0
    for at in range(added):
        for i in range(window.first[at], window.end[at]):
            document = np.int64(documents[i])
            if sums[document] > 0 if sums_grow else seen[document] != 0:
                if sums[document] >= cut and (allowed.size == 0 or allowed[document] != 0):
                    chosen[count] = document
                    values[count] = sums[document]
                    count += 1
                sums[document] = 0.0
                seen[document] = 0
    sort_pairs(chosen, values, count)
    return count


@step
def _look_up_lists(
    postings: SegmentPostings, terms: _Terms, tables: ContributionTables, window: _Window, added: int, threshold: float,
    buffers: WindowBuffers, candidates: int,
) -> int:  # fmt: skip
    """Add the lists after the first `added` to the candidates' values; return the number of candidates left.

    Candidates that cannot reach the threshold are dropped before each list.
    """
    for at in range(added, window.lists):
        if terms.sums_grow and threshold > 0.0:
            candidates = _drop_below(buffers, candidates, threshold * (1 - SLACK) - window.bound_from[at])
        _look_up(postings, terms, tables, window, at, buffers, candidates)
    return candidates


@step
def _drop_below(buffers: WindowBuffers, candidates: int, cut: float) -> int:
    """Drop the candidates whose value is below `cut`; return the number of candidates left."""
    chosen, values, matched = buffers.chosen, buffers.values, buffers.matched
    count = 0
    for i in range(candidates):
        if values[i] >= cut:
            chosen[count] = chosen[i]
            values[count] = values[i]
            matched[count] = matched[i]
            count += 1
    return count


@step
def _look_up(
    postings: SegmentPostings, terms: _Terms, tables: ContributionTables, window: _Window, at: int,
    buffers: WindowBuffers, candidates: int,
) -> None:  # fmt: skip
    """Add the contributions of list number `at` of the window to the values of the candidates; ignore other documents.

    Postings and candidates are both sorted by document, so no search goes back behind the previous one.
    """
    documents, frequencies, columns = postings.documents, postings.frequencies, window.columns
    chosen, values, matched = buffers.chosen, buffers.values, buffers.matched
    term = window.term[at]
    coefficients, layer = terms.coefficients[term], term * tables.layers_per_term
    table, rows, rare, rare_values = tables.values, tables.rows, tables.rare_postings, tables.rare_values
    first, end = window.first[at], window.end[at]
    posting = first
    i = 0
    while i < candidates and posting < end:
        wanted = chosen[i]
        # Documents are spread about evenly, so that most searches read one or two lines of memory.
        guess = max(first + wanted * (end - first) // window.size, posting)
        posting = _seek(documents, posting, end, guess, wanted)
        if posting < end and documents[posting] == wanted:
            column = columns[wanted]
            values[i] += _contribution(frequencies[posting], posting, column, coefficients, layer, table, rows, rare, rare_values)
            matched[i] = 1
            i += 1
        elif posting < end and (end - posting) * _FEW < candidates - i:
            # Few postings against many candidates: skip candidates instead.
            i = lower_bound(chosen, i, candidates, documents[posting])
        else:
            i += 1


@step
def _seek(documents: Unsigned16, at: int, end: int, guess: int, wanted: int) -> int:
    """The first index from `at` on whose document is at least `wanted`, or `end`; fast if it is near `guess`.

    `guess` must be at least `at` and below `end`.
    """
    step = _NEAR
    if documents[guess] < wanted:
        while guess + step < end and documents[guess + step] < wanted:
            guess += step
            step *= 2
        return lower_bound(documents, guess, min(guess + step, end), wanted)
    while guess - step >= at and documents[guess - step] >= wanted:
        guess -= step
        step *= 2
    return lower_bound(documents, max(guess - step, at), guess, wanted)


# The best documents so far


@step
def _add_background(length_class: Unsigned16, background: Floats, base: int, buffers: WindowBuffers, candidates: int) -> None:
    """Add the background of each candidate's length class to its value."""
    if background.size:
        chosen, values = buffers.chosen, buffers.values
        for i in range(candidates):
            values[i] += background[length_class[base + chosen[i]]]


@step
def _keep_best(buffers: WindowBuffers, candidates: int, base: int, best: BestDocuments, held: int, threshold: float) -> int:
    """Add the candidates that matched and reach the threshold to the best documents; return the new `held`.

    `base` is the number of the window's first document.
    """
    chosen, values, matched = buffers.chosen, buffers.values, buffers.matched
    documents, scores = best.documents, best.scores
    for i in range(candidates):
        if matched[i] != 0 and values[i] >= threshold:
            documents[held] = base + chosen[i]
            scores[held] = values[i]
            held += 1
    return held


@step
def _shrink(documents: Integers, scores: Floats, held: int, k: int) -> tuple[int, float]:
    """Keep the k best documents and all that tie with the k-th best; return their number and the lowest score."""
    copy = np.empty(held)
    for i in range(held):
        copy[i] = scores[i]
    threshold = select(copy, held, held - k)
    count = 0
    for i in range(held):
        if scores[i] >= threshold:
            documents[count] = documents[i]
            scores[count] = scores[i]
            count += 1
    return count, threshold


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
