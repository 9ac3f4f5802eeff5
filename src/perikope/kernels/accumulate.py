"""The documents of a segment with the highest sums over the query's postings; exact, in windows of 65,536 documents.

A term adds `Σ_j coefficient_j · table_j[frequency, column of the document]` to each document that contains it. Terms
come in a fixed order, rare ones first, so that a sum has the same last bit whatever was skipped. A *list* is the
postings of one term in one window.

In each window, lists are added to an array of sums while a document that is in none of them could still be among the
best. After that, only the documents that can still be among the best are looked up in the remaining lists, and fewer
after each list. Where a filter allows few documents of a window, these are looked up in all of its lists.

The arguments of `best_of_segment` are NamedTuples that the caller builds as rarely as possible: `SegmentPostings` once
per segment, `ContributionTables` once per segment and model, `WeightedTerms` once per query and segment,
`WindowBuffers` once per thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Bytes, Floats, Integers, Unsigned16
from perikope.kernels.dictionary import read
from perikope.kernels.jit import kernel, step
from perikope.kernels.ordered import enlarged, lower_bound

WINDOW = 1 << 16
SOUND, DAMAGED, FULL = 0, 1, 2
SLACK = 1e-9
"""Relative room for rounding where a sum of upper bounds is compared with a threshold."""

_SPARSE = 16
"""Where a window has this many times more documents than postings, its lists are walked again, not the window."""
_BLOCK = 64
_SAMPLE = 1024
_FEW = 8
"""Documents are looked up one by one where a list has this many times more postings than there are documents."""
_SMALLEST = 5e-324
"""The smallest positive number: where sums only grow, every document in a list has at least this sum."""


class SegmentPostings(NamedTuple):
    """The postings of a segment and the lengths of its documents; the same for every query."""

    documents: Unsigned16
    """Document of each posting, counted from the first document of its window; rising within a list."""
    frequencies: Bytes
    """Term frequency of each posting; 255 stands for 255 and more."""
    window_of_list: Unsigned16
    """Window of each list; the lists of a term are in the order of their windows."""
    first_posting: Bytes
    """First posting of each list, then the number of postings: unsigned, `posting_size` bytes each, little-endian."""
    posting_size: int
    """Bytes per number in `first_posting`: 1, 2, 4 or 8."""
    length_class: Unsigned16
    """Number of each document's length among the different lengths; padded with zeros to a whole number of windows."""
    count: int
    """Number of documents in the segment."""


class ContributionTables(NamedTuple):
    """What a posting contributes, by its frequency and its document, before its term's coefficients are applied."""

    values: Floats
    """Shape (layers, frequencies, columns). A term with c coefficients uses c consecutive layers."""
    rows: int
    """Number of frequencies, from 0 on, that have a row in `values`."""
    column_of_document: Unsigned16
    """Column of each document; padded with zeros to a whole number of windows."""
    rare_postings: Integers
    """Numbers of the postings whose frequency has no row, rising."""
    rare_values: Floats
    """Shape (coefficients, rare postings): the values of these postings."""
    largest: Floats
    """Largest value of each coefficient's layer or layers: a term can add at most its coefficients times these."""
    layers_per_term: int
    """How many layers further the layers of the next term begin: 0 where all terms use the same layers."""


class WeightedTerms(NamedTuple):
    """The terms of a query in one segment, rare terms first."""

    lists: Integers
    """Shape (2 or more, terms): first list of each term, one more than its last list, and rows that are not read."""
    coefficients: Floats
    """Shape (terms, coefficients)."""
    background: Floats
    """What each matching document gets in addition, by length class; empty for nothing."""
    sums_grow: bool
    """Every contribution is positive and there is no background: sums only grow, and `largest` gives a bound."""


class BestDocuments(NamedTuple):
    """The best documents of the segments so far, in no order."""

    documents: Integers
    """Numbers of documents; the first `held` are set."""
    scores: Floats
    """Score of each document."""
    k: int
    """How many documents are wanted; those that tie with the last of them are kept as well."""
    held: int
    """Number of documents so far."""
    threshold: float
    """Score that a further document must reach."""


class WindowBuffers(NamedTuple):
    """Room to work in, one value per document of a window. `sums` and `seen` are 0 before and after each call."""

    sums: Floats
    """Sum of each document so far."""
    seen: Bytes
    """1 for each document in a list so far, where sums do not only grow."""
    chosen: Integers
    """The candidates: documents of the window, rising. `values` and `matched` are aligned with it."""
    values: Floats
    """Sum of each candidate so far."""
    matched: Bytes
    """1 for each candidate that is in a list so far."""


class _Window(NamedTuple):
    """One window with its lists, which are in the order of their terms."""

    base: int
    """First document of the window, counted in the segment."""
    size: int
    """Number of documents in the window."""
    columns: Unsigned16
    """Column of each document in the tables."""
    allowed: Bytes
    """1 for each document that may be a result, else 0; empty where all may."""
    permitted: int
    """Number of documents that may be a result."""
    lists: int
    """Number of lists."""
    postings: int
    """Number of postings in all lists; -1 where a list is damaged."""
    first: Integers
    """First posting of each list."""
    end: Integers
    """One more than the last posting of each list."""
    term: Integers
    """Term of each list."""
    bound_from: Floats
    """The most that each list and those after it can add to a document; one value more than there are lists."""


@kernel
def best_of_segment(
    postings: SegmentPostings, terms: WeightedTerms, tables: ContributionTables, allowed: Bytes, base: int,
    best: BestDocuments, buffers: WindowBuffers,
) -> tuple[int, float, int]:  # fmt: skip
    """Add the best documents of a segment to the best so far.

    Returns `held`, `threshold` and `SOUND`, `DAMAGED` or `FULL`.

    `allowed` has 1 for each document of the segment that may be a result, else 0, and is empty where all may. `base` is
    the number of the segment's first document; numbers in `best` are below it. `FULL`: there is no room for all
    documents that tie, so those of this segment are removed again, and the caller must call again with more room.
    `DAMAGED`: postings lie outside their window or segment.
    """
    next_list = terms.lists[0].copy()
    held, threshold = best.held, best.threshold
    last = -1
    while True:
        number = _next_window(postings.window_of_list, next_list, terms.lists[1])
        if number == WINDOW:
            return held, threshold, SOUND
        if number <= last or number * WINDOW >= postings.count:
            return held, threshold, DAMAGED
        last = number
        window = _open_window(postings, terms, tables, allowed, number, next_list)
        if window.postings < 0:
            return held, threshold, DAMAGED
        if window.permitted == 0:
            continue
        added = 0
        if allowed.size and window.permitted * window.lists * _FEW < window.postings:
            candidates = _choose_allowed(window.allowed, buffers)
        else:
            added, threshold = _add_lists(postings, terms, tables, window, buffers, best.k, threshold)
            if terms.sums_grow and held < best.k and _postings_of(window, added) > max(2 * best.k, 1024):
                threshold = max(threshold, _threshold(buffers.sums[: window.size], best.k, window.allowed))
            candidates = _choose_added(postings.documents, window, added, terms.sums_grow, threshold, buffers)
        candidates = _look_up_lists(postings, terms, tables, window, added, threshold, buffers, candidates)
        _add_background(postings.length_class, terms.background, window.base, buffers, candidates)
        held, threshold, full = _keep_best(buffers, candidates, base + window.base, best, held, threshold)
        if full:
            return _drop_from(best, held, base), threshold, FULL


@step
def _next_window(window_of_list: Unsigned16, next_list: Integers, end_list: Integers) -> int:
    """The first window that a term has a list in, from its next list on; `WINDOW` where all terms are at their end."""
    number = WINDOW
    for term in range(next_list.size):
        if next_list[term] < end_list[term]:
            number = min(number, np.int64(window_of_list[next_list[term]]))
    return number


@step
def _open_window(
    postings: SegmentPostings, terms: WeightedTerms, tables: ContributionTables, allowed: Bytes, number: int, next_list: Integers
) -> _Window:
    """The lists of a window; moves `next_list` past them."""
    base = number * WINDOW
    size = min(postings.count - base, WINDOW)
    count = next_list.size
    first, end, term_of_list = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    window_of_list, end_list = postings.window_of_list, terms.lists[1]
    lists = 0
    total = 0
    for term in range(count):
        if next_list[term] < end_list[term] and window_of_list[next_list[term]] == number:
            first[lists] = read(postings.first_posting, postings.posting_size, next_list[term])
            end[lists] = read(postings.first_posting, postings.posting_size, next_list[term] + 1)
            term_of_list[lists] = term
            total += end[lists] - first[lists]
            if size < WINDOW and _beyond(postings.documents[first[lists] : end[lists]], size):
                total = -1
                break
            next_list[term] += 1
            lists += 1
    bound_from = np.empty(lists + 1)
    bound_from[lists] = 0.0
    for at in range(lists - 1, -1, -1):
        bound = 0.0
        for j in range(tables.largest.size):
            bound += terms.coefficients[term_of_list[at], j] * tables.largest[j]
        bound_from[at] = bound_from[at + 1] + bound
    here = allowed[base : base + size]
    permitted = _permitted(here) if allowed.size else size
    columns = tables.column_of_document[base : base + WINDOW]
    return _Window(base, size, columns, here, permitted, lists, total, first, end, term_of_list, bound_from)


@step
def _postings_of(window: _Window, lists: int) -> int:
    """The number of postings in the first lists."""
    first, end = window.first, window.end
    count = 0
    for at in range(lists):
        count += end[at] - first[at]
    return count


@kernel
def _beyond(documents: Unsigned16, size: int) -> bool:
    """Whether a document is outside a window of this size, where buffers are not reset."""
    limit = np.uint16(size)
    some = np.uint8(0)
    for i in range(documents.size):
        some |= np.uint8(documents[i] >= limit)
    return some != 0


@kernel
def _permitted(allowed: Bytes) -> int:
    """The number of ones among bytes that are 0 or 1; counting 64 of them in one byte is several times faster."""
    count = 0
    whole = allowed.size - allowed.size % _BLOCK
    for first in range(0, whole, _BLOCK):
        block = allowed[first : first + _BLOCK]
        some = np.uint8(0)
        for i in range(_BLOCK):
            some += block[i]
        count += some
    for i in range(whole, allowed.size):
        count += allowed[i]
    return count


@step
def _choose_allowed(allowed: Bytes, buffers: WindowBuffers) -> int:
    """Make all allowed documents candidates with a sum of 0 that match nothing so far; return their number."""
    chosen = buffers.chosen
    count = 0
    for first in range(0, allowed.size, _BLOCK):
        block = allowed[first : first + _BLOCK]
        if _permitted(block):
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
    postings: SegmentPostings, terms: WeightedTerms, tables: ContributionTables, window: _Window, buffers: WindowBuffers,
    k: int, threshold: float,
) -> tuple[int, float]:  # fmt: skip
    """Add lists to the sums until looking up the remaining documents is cheaper.

    Returns the number of lists added, and the threshold.

    The threshold rises where the sums of k documents so far allow it.
    """
    sums = buffers.sums[: window.size]
    bound_from = window.bound_from
    tried = False
    added = 0  # postings
    next_look = 1
    for at in range(window.lists):
        left = window.postings - added
        # A look at the whole window costs a tenth of adding as many postings. It happens at most once per `size`
        # postings added.
        if terms.sums_grow and added >= next_look and 4 * left > window.size:
            if threshold <= 0.0 and not tried and 3 * bound_from[at] < bound_from[0] and k < window.size:
                # Sums only grow: the k-th best so far is already a threshold.
                tried = True
                threshold = _threshold(sums, k, window.allowed)
            cut = threshold * (1 - SLACK) - bound_from[at]
            if cut > 0.0:
                possible = added
                if added * _SPARSE >= window.size:
                    possible = _reaching(sums, cut)
                    next_look = added + window.size
                if possible * (window.lists - at) * _FEW < left:
                    return at, threshold
        _add_list(postings, terms, tables, window, at, buffers)
        added += window.end[at] - window.first[at]
    return window.lists, threshold


@step
def _add_list(
    postings: SegmentPostings, terms: WeightedTerms, tables: ContributionTables, window: _Window, at: int, buffers: WindowBuffers
) -> None:
    """Add list number `at` to the sums, by the fastest loop that the model and the filter allow."""
    first, end, term = window.first[at], window.end[at], window.term[at]
    documents, frequencies = postings.documents[first:end], postings.frequencies[first:end]
    coefficients = terms.coefficients[term]
    layer = term * tables.layers_per_term
    columns, sums, seen = window.columns, buffers.sums, buffers.seen
    rare = tables.rare_postings
    next_rare = lower_bound(rare, 0, rare.size, first)
    if terms.sums_grow and coefficients.size == 1 and (next_rare == rare.size or rare[next_rare] >= end):
        if window.permitted * _FEW < window.size:
            _add_allowed(documents, frequencies, coefficients[0], tables.values[layer], columns, sums, window.allowed)
        else:
            _add_all(documents, frequencies, coefficients[0], tables.values[layer], columns, sums)
        return
    layers = tables.values[layer : layer + coefficients.size]
    rows, rare_values = tables.rows, tables.rare_values
    for i in range(documents.size):
        document = documents[i]
        sums[document] += _contribution(frequencies[i], first + i, columns[document], coefficients, layers, rows, rare, rare_values)
        seen[document] = not terms.sums_grow


@kernel
def _add_all(documents: Unsigned16, frequencies: Bytes, coefficient: float, table: Floats, columns: Unsigned16, sums: Floats) -> None:
    """Add a list whose frequencies all have rows, for a model with one coefficient: the loop that takes most time."""
    for i in range(documents.size):
        document = documents[i]
        sums[document] += coefficient * table[frequencies[i], columns[document]]


@kernel
def _add_allowed(
    documents: Unsigned16, frequencies: Bytes, coefficient: float, table: Floats, columns: Unsigned16, sums: Floats, allowed: Bytes
) -> None:
    """As `_add_all`, for allowed documents only, which is faster where they are few."""
    for i in range(documents.size):
        document = documents[i]
        if allowed[document]:
            sums[document] += coefficient * table[frequencies[i], columns[document]]


@kernel
def _contribution(
    frequency: int, posting: int, column: int, coefficients: Floats, layers: Floats,
    rows: int, rare_postings: Integers, rare_values: Floats,
) -> float:  # fmt: skip
    """What one posting adds: its term's coefficients times the values of the term's layers."""
    value = 0.0
    if frequency >= rows:
        at = lower_bound(rare_postings, 0, rare_postings.size, posting)
        if at < rare_postings.size and rare_postings[at] == posting:
            for j in range(coefficients.size):
                value += coefficients[j] * rare_values[j, at]
    else:
        for j in range(coefficients.size):
            value += coefficients[j] * layers[j, frequency, column]
    return value


# The threshold that sums must reach


@kernel
def _reaching(sums: Floats, cut: float) -> int:
    """The number of sums that reach the cut; without a branch, so that many are compared at once."""
    count = 0
    for i in range(sums.size):
        count += sums[i] >= cut
    return count


@kernel
def _reaching_allowed(sums: Floats, cut: float, allowed: Bytes) -> int:
    """The number of sums of allowed documents that reach the cut."""
    count = 0
    for i in range(sums.size):
        count += (sums[i] >= cut) & (allowed[i] != 0)
    return count


@kernel
def _highest(sums: Floats, k: int, allowed: Bytes) -> float:
    """The k-th highest sum of allowed documents, or 0 where there are fewer than k."""
    best = np.empty(2 * k + 2 * _BLOCK)
    held = 0
    threshold = _SMALLEST
    for first in range(0, sums.size, _BLOCK):
        if _reaching(sums[first : first + _BLOCK], threshold):
            for i in range(first, min(first + _BLOCK, sums.size)):
                if sums[i] >= threshold and (allowed.size == 0 or allowed[i] != 0):
                    best[held] = sums[i]
                    held += 1
            if held > 2 * k + _BLOCK:
                best[:k] = np.partition(best[:held], held - k)[held - k :]
                held = k
                threshold = best[:k].min()
    return np.partition(best[:held], held - k)[held - k] if held >= k else 0.0


@kernel
def _threshold(sums: Floats, k: int, allowed: Bytes) -> float:
    """A value near the highest that the sums of at least k allowed documents reach; 0 where there are fewer than k.

    For large k it is guessed from a sample and then checked: finding the k-th highest takes longer than adding up a
    short query.
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
        value = np.partition(sample[:held], held - rank)[held - rank]
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

    The first `added` lists are in the sums; the others can add at most their bound.

    All of them have matched. Leaves `sums` and `seen` zero.
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


@kernel
def _take_from_window(sums: Floats, seen: Bytes, allowed: Bytes, sums_grow: bool, cut: float, chosen: Integers, values: Floats) -> int:
    """Make allowed documents whose sum reaches the cut candidates, by one pass over the window; return their number."""
    count = 0
    for first in range(0, sums.size, _BLOCK):
        if _reaching(sums[first : first + _BLOCK], cut):
            for i in range(first, min(first + _BLOCK, sums.size)):
                if sums[i] >= cut and (sums_grow or seen[i] != 0) and (allowed.size == 0 or allowed[i] != 0):
                    chosen[count] = i
                    values[count] = sums[i]
                    count += 1
    sums[:] = 0.0
    if not sums_grow:
        seen[:] = 0
    return count


@step
def _take_from_lists(documents: Unsigned16, window: _Window, added: int, sums_grow: bool, cut: float, buffers: WindowBuffers) -> int:
    """As `_take_from_window`, by walking the first `added` lists again: for windows of which little was touched."""
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
    order = np.argsort(chosen[:count])
    chosen[:count] = chosen[:count][order]
    values[:count] = values[:count][order]
    return count


@step
def _look_up_lists(
    postings: SegmentPostings, terms: WeightedTerms, tables: ContributionTables, window: _Window, added: int, threshold: float,
    buffers: WindowBuffers, candidates: int,
) -> int:  # fmt: skip
    """Add the posting lists after the first `added` to the candidates' values; return the number of candidates left.

    Candidates that cannot reach the threshold are dropped before each list.
    """
    for at in range(added, window.lists):
        if terms.sums_grow and threshold > 0.0:
            candidates = _drop_below(buffers, candidates, threshold * (1 - SLACK) - window.bound_from[at])
        _look_up(postings, terms, tables, window, at, buffers, candidates)
    return candidates


@step
def _drop_below(buffers: WindowBuffers, candidates: int, cut: float) -> int:
    """Keep the candidates whose value reaches the cut; return their number."""
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
    postings: SegmentPostings, terms: WeightedTerms, tables: ContributionTables, window: _Window, at: int,
    buffers: WindowBuffers, candidates: int,
) -> None:  # fmt: skip
    """Add the contributions of posting list number `at` to the values of the candidates; ignore other documents.

    Postings and candidates are both sorted by document, so each search continues where the previous one ended.
    """
    documents, frequencies, columns = postings.documents, postings.frequencies, window.columns
    chosen, values, matched = buffers.chosen, buffers.values, buffers.matched
    term = window.term[at]
    coefficients = terms.coefficients[term]
    layer = term * tables.layers_per_term
    layers = tables.values[layer : layer + coefficients.size]
    rows, rare, rare_values = tables.rows, tables.rare_postings, tables.rare_values
    posting, end = window.first[at], window.end[at]
    i = 0
    while i < candidates and posting < end:
        wanted = chosen[i]
        posting = _gallop(documents, posting, end, wanted)
        if posting < end and documents[posting] == wanted:
            values[i] += _contribution(frequencies[posting], posting, columns[wanted], coefficients, layers, rows, rare, rare_values)
            matched[i] = 1
            i += 1
        elif posting < end and (end - posting) * _FEW < candidates - i:
            # Few postings against many candidates: skip candidates instead.
            i = lower_bound(chosen, i, candidates, documents[posting])
        else:
            i += 1


@step
def _gallop(documents: Unsigned16, at: int, end: int, wanted: int) -> int:
    """The first index from `at` to `end` whose document is at least `wanted`, or `end`; fast where it is near `at`."""
    step = 1
    low = at
    while at + step < end and documents[at + step] < wanted:
        low = at + step
        step *= 2
    return lower_bound(documents, low, min(at + step, end), wanted)


# The best documents so far


@step
def _add_background(length_class: Unsigned16, background: Floats, base: int, buffers: WindowBuffers, candidates: int) -> None:
    """Add what each candidate gets by its length, whatever terms it contains."""
    if background.size:
        chosen, values = buffers.chosen, buffers.values
        for i in range(candidates):
            values[i] += background[length_class[base + chosen[i]]]


@kernel
def _keep_best(
    buffers: WindowBuffers, candidates: int, base: int, best: BestDocuments, held: int, threshold: float
) -> tuple[int, float, bool]:
    """Add the candidates that matched and reach the threshold to the best documents.

    Returns `held`, `threshold`, and whether there is no room.

    `base` is the number of the window's first document.
    """
    chosen, values, matched = buffers.chosen, buffers.values, buffers.matched
    documents, scores, k = best.documents, best.scores, best.k
    for i in range(candidates):
        if matched[i] == 0 or values[i] < threshold:
            continue
        if held == documents.size:
            if held > k:
                held, threshold = _shrink(documents, scores, held, k)
            if 2 * held > documents.size:
                return held, threshold, True
            if values[i] < threshold:
                continue
        documents[held] = base + chosen[i]
        scores[held] = values[i]
        held += 1
    if held > k:
        held, threshold = _shrink(documents, scores, held, k)
    elif held == k:
        threshold = max(threshold, scores[:held].min())
    return held, threshold, False


@kernel
def _shrink(documents: Integers, scores: Floats, held: int, k: int) -> tuple[int, float]:
    """Keep the best k and all that tie with the last of them; return their number and the lowest score."""
    threshold = np.partition(scores[:held], held - k)[held - k]
    count = 0
    for i in range(held):
        if scores[i] >= threshold:
            documents[count] = documents[i]
            scores[count] = scores[i]
            count += 1
    return count, threshold


@step
def _drop_from(best: BestDocuments, held: int, base: int) -> int:
    """Remove the documents from number `base` on; return the number of those that remain."""
    documents, scores = best.documents, best.scores
    count = 0
    for i in range(held):
        if documents[i] < base:
            documents[count] = documents[i]
            scores[count] = scores[i]
            count += 1
    return count


@kernel
def rare_frequencies(frequencies: Bytes, first: Integers, end: Integers, rows: int) -> tuple[Integers, Integers]:
    """The postings of each term whose frequency is at least `rows`: their numbers, and the first of each term.

    `first` and `end` are ranges of postings, one per term. The second array has one value more than there are terms.
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
