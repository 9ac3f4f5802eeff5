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

from perikope.kernels.contributions import FEW, add_list, add_small
from perikope.kernels.dictionary import read
from perikope.kernels.fetch_inputs import (
    WINDOW,
    AllowedDocuments,
    BestDocuments,
    ContributionTables,
    SegmentPostings,
    WeightedTerms,
    WindowBuffers,
)
from perikope.kernels.jit import kernel, step
from perikope.kernels.thresholds import BLOCK, highest, reaching, shrink, threshold_of
from perikope.kernels.window_candidates import add_background, choose_added, choose_allowed, keep_best, look_up_lists
from perikope.kernels.windows import (
    SLACK,
    SPARSE,
    TermLists,
    Window,
    added_beyond,
    is_beyond,
    next_window,
    open_window,
    sums_grow_of,
    terms_of,
)

SMALL = 1 << 12
"""Maximum number of documents of a segment for `best_of_small_segment`."""
SOUND, DAMAGED, FULL = 0, 1, 2
"""Status that `best_of_segment` returns."""
_LOOK = 8
"""Passing over all sums of a window takes as long as adding postings of a window divided by this."""
_FAR = 256
"""Looking up a candidate takes as long as reading this many postings, since what it reads is not in a cache."""
_MANY_LEFT = 0.5
"""If the lists left can add more than this share of the threshold, too many documents can still reach it."""


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
    terms = terms_of(query, tables)
    next_list = terms.first_list.copy()
    held, threshold = best.held, best.threshold
    if terms.sums_grow:
        threshold = max(threshold, 0.0)
    last = -1
    while True:
        number = next_window(postings.window_of_list, next_list, terms.end_list)
        if number == WINDOW:
            return held, threshold, SOUND
        if number <= last or number * WINDOW >= postings.count:
            return held, threshold, DAMAGED
        last = number
        window = open_window(postings, terms, tables, allowed, number, next_list)
        if window.permitted == 0:
            continue
        added = 0
        if window.allowed.size and window.permitted * window.lists * FEW < window.postings:
            candidates = choose_allowed(window.allowed, buffers)
        else:
            added, threshold = _add_lists(postings, terms, tables, window, buffers, best.k, held < best.k, threshold)
            if added_beyond(postings.documents, window, added, buffers):
                buffers.sums[:] = 0.0
                buffers.seen[:] = 0
                return held, threshold, DAMAGED
            candidates = choose_added(postings.documents, window, added, terms.sums_grow, threshold, buffers)
        candidates = look_up_lists(postings, terms, tables, window, added, threshold, buffers, candidates)
        add_background(postings.length_class, query.background, window.base, buffers, candidates)
        if held + candidates > best.documents.size:
            return held, threshold, FULL
        held = keep_best(buffers, candidates, base + window.base, best, held, threshold)
        if held >= best.k:
            held, lowest = shrink(best.documents, best.scores, held, best.k)
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
    sums_grow = sums_grow_of(query, tables)
    state = SOUND
    for term in range(query.rows.size):
        at, end_list = query.table[query.rows[term], query.column], query.table[query.rows[term], query.column + 1]
        if at >= end_list:
            continue
        first, end = read(first_posting, size, at), read(first_posting, size, at + 1)
        if end_list - at > 1 or postings.window_of_list[at] != 0 or is_beyond(postings.documents[first:end], postings.count):
            state = DAMAGED
            break
        add_small(postings, tables, query.coefficients[term], term * tables.layers_per_term, first, end, sums_grow, sums, seen)
    if sums_grow and best.k <= BLOCK:
        whole_blocks = (postings.count + BLOCK - 1) // BLOCK * BLOCK  # sums behind the last document are 0
        threshold = max(threshold, highest(sums[:whole_blocks], best.k, mask))
    limit = 2 * (held + best.k) + BLOCK
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
                    held, threshold = shrink(best.documents, best.scores, held, best.k)
                    limit = 2 * held + BLOCK  # ties with the k-th best stay, and there may be many
            sums[document] = 0.0
            seen[document] = 0
    if held >= best.k:
        held, lowest = shrink(best.documents, best.scores, held, best.k)
        threshold = max(threshold, lowest)
    return held, threshold, state


@step
def _add_lists(
    postings: SegmentPostings, terms: TermLists, tables: ContributionTables, window: Window, buffers: WindowBuffers,
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
            threshold = max(threshold, threshold_of(sums, k, window.allowed))
            unlearned = min(_MANY_LEFT * threshold, bound_from[at] / 2)
            learned = at
        cut = threshold * (1 - SLACK) - bound_from[at] if terms.sums_grow else 0.0
        if cut > 0.0 and added * SPARSE < size:
            if added * _FAR < left:
                break
        elif cut > 0.0 and bound_from[at] < uncounted * threshold and _LOOK * left > size:
            few = wanted * _FAR < size and not filtered
            possible = 0 if few else reaching(sums, cut)
            if not few and possible * _FAR < left:
                break
            filtered |= possible * SPARSE < size
            uncounted /= 2
        add_list(postings, terms, tables, window, at, cut if filtered else 0.0, buffers)
        added += window.end[at] - window.first[at]
        at += 1
    if may_learn and learned != at and (learned < 0 or k > BLOCK) and added > max(2 * k, 1024):
        threshold = max(threshold, threshold_of(sums, k, window.allowed))
    return at, threshold
