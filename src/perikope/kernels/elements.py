"""Which element holds each token, how long are elements, and which of them overlap?

Spans are in reading order, parents first, and token ranges count within their document. Of several spans that hold a token the deepest is
the one with the largest number: a child comes after its parent, and of two windows that overlap the second counts.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Integers, Integers32, Mask, Unsigned16
from perikope.kernels.jit import kernel
from perikope.kernels.structure import SECTION
from perikope.kernels.tokens import ESCAPE

NONE = -1


@kernel
def are_trees(
    first_span: Integers,
    kind: Integers,
    tag: Integers,
    parent: Integers,
    first_token: Integers,
    end_token: Integers,
    tokens: Integers,
    kinds: int,
    tags: int,
) -> bool:
    """Whether the first span of every document is a section that holds all its tokens, and the others are below one that came before.

    Kinds and tags must be of those that there are, and ranges of tokens end in the document and not before they begin; parents count
    from the document's first span.
    """
    # Each condition is a number that must not be negative, so that a loop over spans is vector instructions: a third of the time.
    worst = np.int64(0)
    for document in range(tokens.size):
        root, end, limit = first_span[document], first_span[document + 1], tokens[document]
        if root == end or parent[root] != -1 or kind[root] != SECTION or first_token[root] != 0 or end_token[root] != limit:
            return False
        first, last, above = first_token[root:end], end_token[root:end], parent[root:end]
        own_kind, own_tag = kind[root:end], tag[root:end]
        for i in range(end - root):
            worst |= first[i] | (last[i] - first[i]) | (limit - last[i])
            worst |= own_kind[i] | (kinds - 1 - own_kind[i]) | own_tag[i] | (tags - 1 - own_tag[i])
        for i in range(1, end - root):
            worst |= above[i] | (i - 1 - above[i])
    return bool(worst >= 0)


@kernel
def deepest_runs(
    first_span: Integers, first_token: Integers, end_token: Integers, chosen: Mask
) -> tuple[Integers, Integers, Integers, Integers]:
    """Runs of tokens with the same deepest one among the chosen spans: first and end token, span (or NONE), where each document's begin.

    The runs of a document lie side by side from its first token to the last that a chosen span holds. Takes time by spans, not by tokens.
    """
    capacity = 1
    for span in range(chosen.size):
        capacity += 2 * chosen[span]
    run_first = np.empty(capacity, np.int64)
    run_end = np.empty(capacity, np.int64)
    run_span = np.empty(capacity, np.int64)
    first_run = np.zeros(first_span.size, np.int64)
    still_open = np.empty(capacity, np.int64)
    runs = 0
    for document in range(first_span.size - 1):
        depth = 0
        at = 0
        # After the last span one more round closes what is open.
        for span in range(first_span[document], first_span[document + 1] + 1):
            last = span == first_span[document + 1]
            if not last and (not chosen[span] or first_token[span] >= end_token[span]):
                continue
            start = np.int64(1 << 62) if last else max(first_token[span], at)
            while depth > 0 and end_token[still_open[depth - 1]] <= start:
                inner = still_open[depth - 1]
                if end_token[inner] > at:
                    run_first[runs], run_end[runs], run_span[runs] = at, end_token[inner], inner
                    runs += 1
                    at = end_token[inner]
                depth -= 1
            if last:
                break
            if start > at:
                run_first[runs], run_end[runs], run_span[runs] = at, start, still_open[depth - 1] if depth > 0 else NONE
                runs += 1
                at = start
            still_open[depth] = span
            depth += 1
        first_run[document + 1] = runs
    return run_first[:runs], run_end[:runs], run_span[:runs], first_run


@kernel
def runs_of_positions(position: Integers32, first_position: Integers, run_end: Integers, first_run: Integers) -> Integers:
    """The run that holds each position, or NONE behind the last; the positions of a document rise."""
    found = np.full(position.size, NONE, np.int64)
    for document in range(first_position.size - 1):
        run = first_run[document]
        for i in range(first_position[document], first_position[document + 1]):
            while run < first_run[document + 1] and run_end[run] <= position[i]:
                run += 1
            if run < first_run[document + 1]:
                found[i] = run
    return found


@kernel
def link_runs(run_span: Integers, spans: int) -> tuple[Integers32, Integers32]:
    """The run before and the run after each with the same span, or NONE: an element goes on behind the elements in it."""
    before = np.empty(run_span.size, np.int32)
    after = np.empty(run_span.size, np.int32)
    last_run = np.full(spans, NONE, np.int32)
    for run in range(run_span.size):
        span = run_span[run]
        before[run] = last_run[span] if span >= 0 else NONE
        after[run] = NONE
        if before[run] >= 0:
            after[before[run]] = run
        if span >= 0:
            last_run[span] = run
    return before, after


@kernel
def count_indexed(
    codes: Unsigned16,
    first_code: Integers,
    end_code: Integers,
    document_of_range: Integers,
    first_token: Integers,
    end_token: Integers,
) -> Integers:
    """How many tokens of each range are no stop words; ranges are in order of document and end no later than its codes."""
    longest = 0
    for document in range(first_code.size):
        longest = max(longest, end_code[document] - first_code[document])
    indexed_before = np.zeros(longest + 1, np.int32)
    length = np.zeros(document_of_range.size, np.int64)
    document = -1
    for i in range(document_of_range.size):
        if document_of_range[i] != document:
            document = document_of_range[i]
            at = first_code[document]
            token = 0
            indexed = 0
            while at < end_code[document]:
                indexed += codes[at] != 0
                token += 1
                indexed_before[token] = indexed
                at += 1
                if codes[at - 1] == ESCAPE:
                    at += 2
            indexed_before[token + 1 : end_code[document] - first_code[document] + 1] = indexed
        length[i] = indexed_before[end_token[i]] - indexed_before[first_token[i]]
    return length


@kernel
def count_marked(
    first_span: Integers,
    tag: Integers,
    first_token: Integers,
    end_token: Integers,
    tags: int,
    first_wanted: Integers,
    wanted_first: Integers,
    wanted_end: Integers,
) -> tuple[Integers, Integers]:
    """How many of the wanted tokens each tag marks, each token once, and how many spans with the tag hold one of them.

    The wanted ranges of a document rise, do not overlap, and are not empty.
    """
    marked = np.zeros(tags, np.int64)
    spans = np.zeros(tags, np.int64)
    covered_to = np.zeros(tags, np.int64)
    longest = 1
    for document in range(first_wanted.size - 1):
        longest = max(longest, first_wanted[document + 1] - first_wanted[document] + 1)
    before = np.zeros(longest, np.int64)
    for document in range(first_span.size - 1):
        a, b = first_wanted[document], first_wanted[document + 1]
        if a == b:
            continue
        for i in range(a, b):
            before[i - a + 1] = before[i - a] + wanted_end[i] - wanted_first[i]
        for span in range(first_span[document], first_span[document + 1]):
            covered_to[tag[span]] = 0
        for span in range(first_span[document], first_span[document + 1]):
            own = tag[span]
            upto = _wanted_before(end_token[span], wanted_first[a:b], before)
            if upto > _wanted_before(first_token[span], wanted_first[a:b], before):
                spans[own] += 1
            # A span in one with the same tag marks nothing that is not marked already.
            marked[own] += max(0, upto - _wanted_before(max(first_token[span], covered_to[own]), wanted_first[a:b], before))
            covered_to[own] = max(covered_to[own], end_token[span])
    return marked, spans


@kernel
def _wanted_before(token: int, wanted_first: Integers, before: Integers) -> int:
    """How many wanted tokens come before a token; `before` has their number before each range, and at last before the end."""
    low, high = 0, wanted_first.size
    while low < high:
        middle = (low + high) // 2
        if wanted_first[middle] < token:
            low = middle + 1
        else:
            high = middle
    return 0 if low == 0 else min(before[low], before[low - 1] + token - wanted_first[low - 1])


@kernel
def without_overlap(row: Integers, first_row: Integers, first_token: Integers, end_token: Integers) -> Mask:
    """Which rows stay where each that overlaps an earlier one of its document goes; `row` has them by document, best first."""
    kept = np.zeros(row.size, np.bool_)
    taken_first = np.empty(row.size, np.int64)
    taken_end = np.empty(row.size, np.int64)
    for document in range(first_row.size - 1):
        taken = 0
        for i in range(first_row[document], first_row[document + 1]):
            first, end = first_token[row[i]], end_token[row[i]]
            if first == end:
                kept[i] = True
                continue
            low, high = 0, taken
            while low < high:
                middle = (low + high) // 2
                if taken_end[middle] <= first:
                    low = middle + 1
                else:
                    high = middle
            if low < taken and taken_first[low] < end:
                continue
            for place in range(taken, low, -1):
                taken_first[place] = taken_first[place - 1]
                taken_end[place] = taken_end[place - 1]
            taken_first[low], taken_end[low] = first, end
            taken += 1
            kept[i] = True
    return kept
