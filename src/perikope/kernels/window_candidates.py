"""The candidates of a window: the documents that can still be among the best."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Floats, Integers, Unsigned16
from perikope.kernels.contributions import FEW, contribution
from perikope.kernels.fetch_inputs import BestDocuments, ContributionTables, SegmentPostings, WindowBuffers
from perikope.kernels.jit import step
from perikope.kernels.ordered import lower_bound, sort_pairs
from perikope.kernels.seeking import seek
from perikope.kernels.thresholds import BLOCK, SMALLEST, lowest_bit, reached
from perikope.kernels.windows import SLACK, SPARSE, TermLists, Window, postings_of


@step
def choose_allowed(allowed: Bytes, buffers: WindowBuffers) -> int:
    """Make all allowed documents candidates, with value 0 and not matched; return their number."""
    chosen = buffers.chosen
    count = 0
    for first in range(0, allowed.size, BLOCK):
        block = allowed[first : first + BLOCK]
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


@step
def choose_added(documents: Unsigned16, window: Window, added: int, sums_grow: bool, threshold: float, buffers: WindowBuffers) -> int:
    """Make the documents that can still reach the threshold candidates; return their number.

    The first `added` lists have been added to the sums, and the other lists can add at most their bound. All candidates
    are set to matched. Resets `sums` and `seen` to 0.
    """
    cut = -np.inf
    if sums_grow:
        cut = max(threshold * (1 - SLACK) - window.bound_from[added], SMALLEST)
    if postings_of(window, added) * SPARSE < window.size:
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
    for block in range((sums.size + BLOCK - 1) // BLOCK):
        bits = reached(sums, block, cut)
        while bits != 0:
            i = BLOCK * block + lowest_bit(bits)
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
def _take_from_lists(documents: Unsigned16, window: Window, added: int, sums_grow: bool, cut: float, buffers: WindowBuffers) -> int:
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
def look_up_lists(
    postings: SegmentPostings, terms: TermLists, tables: ContributionTables, window: Window, added: int, threshold: float,
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
    postings: SegmentPostings, terms: TermLists, tables: ContributionTables, window: Window, at: int,
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
        posting = seek(documents, posting, end, guess, wanted)
        if posting < end and documents[posting] == wanted:
            column = columns[wanted]
            values[i] += contribution(frequencies[posting], posting, column, coefficients, layer, table, rows, rare, rare_values)
            matched[i] = 1
            i += 1
        elif posting < end and (end - posting) * FEW < candidates - i:
            # Few postings against many candidates: skip candidates instead.
            i = lower_bound(chosen, i, candidates, documents[posting])
        else:
            i += 1


@step
def add_background(length_class: Unsigned16, background: Floats, base: int, buffers: WindowBuffers, candidates: int) -> None:
    """Add the background of each candidate's length class to its value."""
    if background.size:
        chosen, values = buffers.chosen, buffers.values
        for i in range(candidates):
            values[i] += background[length_class[base + chosen[i]]]


@step
def keep_best(buffers: WindowBuffers, candidates: int, base: int, best: BestDocuments, held: int, threshold: float) -> int:
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
