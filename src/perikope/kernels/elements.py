"""The deepest element of each token, lengths of elements, and overlaps.

Spans are in reading order, parents first, and token ranges count within their document. Of several spans that contain a
token, the deepest is the one with the largest number, because a child comes after its parent. If two passages
overlap, because a text was cut into overlapping windows, the second one is therefore the deepest.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Integers, Integers32, Mask, Unsigned16
from perikope.kernels.jit import inner, kernel
from perikope.kernels.ordered import lower_bound
from perikope.kernels.structure import SECTION
from perikope.kernels.tokens import ESCAPE

NONE = -1
"""Number that stands for no span and no run."""


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
    """Whether the spans of each document form a valid tree.

    The first span must be a section with all tokens of the document, and every other span must have an earlier span as
    parent. Kinds must be below `kinds` and tags below `tags`. Ranges of tokens must not end before they begin or after
    the document. Parents are counted from the document's first span.
    """
    # Each condition is a number that must not be negative. So the loop over spans becomes vector instructions and takes
    # a third of the time.
    worst = np.int64(0)
    for document in range(tokens.size):
        root, end, limit = first_span[document], first_span[document + 1], tokens[document]
        if root == end or parent[root] != -1 or kind[root] != SECTION or first_token[root] != 0 or end_token[root] != limit:
            return False
        first, last, above = first_token[root:end], end_token[root:end], parent[root:end]
        kinds_of_spans, tags_of_spans = kind[root:end], tag[root:end]
        for i in range(end - root):
            worst |= first[i] | (last[i] - first[i]) | (limit - last[i])
            worst |= kinds_of_spans[i] | (kinds - 1 - kinds_of_spans[i]) | tags_of_spans[i] | (tags - 1 - tags_of_spans[i])
        for i in range(1, end - root):
            worst |= above[i] | (i - 1 - above[i])
    return bool(worst >= 0)


@kernel
def deepest_runs(
    first_span: Integers, first_token: Integers, end_token: Integers, chosen: Mask
) -> tuple[Integers, Integers, Integers, Integers]:
    """Find the runs of adjacent tokens that have the same deepest chosen span.

    Returns four arrays: the first token, the end token (exclusive) and the span (or NONE) of each run; and the first
    run of each document, with the number of runs at the end. The runs of a document cover its tokens from the first one
    to the last one in a chosen span. The time is proportional to the number of spans, not of tokens.
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
        # After the last span, one more round closes the spans that are still open.
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
    """The run that contains each position, or NONE after the document's last run. Positions rise within a document."""
    run_of_position = np.empty(position.size, np.int64)
    run_of_position[:] = NONE
    for document in range(first_position.size - 1):
        run = first_run[document]
        for i in range(first_position[document], first_position[document + 1]):
            while run < first_run[document + 1] and run_end[run] <= position[i]:
                run += 1
            if run < first_run[document + 1]:
                run_of_position[i] = run
    return run_of_position


@kernel
def link_runs(run_span: Integers, spans: int) -> tuple[Integers32, Integers32]:
    """For each run, the previous and the next run of the same span, or NONE if there is none.

    A span has several runs if chosen spans lie inside it.
    """
    before = np.empty(run_span.size, np.int32)
    after = np.empty(run_span.size, np.int32)
    last_run = np.empty(spans, np.int32)
    last_run[:] = NONE
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
    """For each range of tokens, the number of tokens that are not stop words. Ranges must be ordered by document."""
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
    """For each tag, the number of wanted tokens that it marks, and the number of its spans with a wanted token.

    A token that several spans with the same tag contain is counted once. The wanted tokens are ranges from
    `wanted_first` to `wanted_end` (exclusive). The ranges of a document rise, do not overlap, and are not empty.
    `first_wanted` has the first range of each document, and at the end the number of ranges.
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
            tag_of_span = tag[span]
            upto = _wanted_before(end_token[span], wanted_first[a:b], before)
            if upto > _wanted_before(first_token[span], wanted_first[a:b], before):
                spans[tag_of_span] += 1
            # Tokens that an earlier span with the same tag marks are not counted again.
            marked[tag_of_span] += max(0, upto - _wanted_before(max(first_token[span], covered_to[tag_of_span]), wanted_first[a:b], before))
            covered_to[tag_of_span] = max(covered_to[tag_of_span], end_token[span])
    return marked, spans


@inner
def _wanted_before(token: int, wanted_first: Integers, before: Integers) -> int:
    """The number of wanted tokens before `token`. `before` has this number for each range's start, then the total."""
    at = lower_bound(wanted_first, 0, wanted_first.size, token)
    return 0 if at == 0 else min(before[at], before[at - 1] + token - wanted_first[at - 1])


@kernel
def without_overlap(row: Integers, first_row: Integers, first_token: Integers, end_token: Integers) -> Mask:
    """One flag per value of `row`: whether the row overlaps no better row of its document that stays.

    `row` has indexes of `first_token` and `end_token`, ordered by document, best first. `first_row` has the index of
    each document's first value in `row`, and at the end the number of values. Rows without tokens always stay.
    """
    stays = np.zeros(row.size, np.bool_)
    staying_first = np.empty(row.size, np.int64)
    staying_end = np.empty(row.size, np.int64)
    for document in range(first_row.size - 1):
        count = 0
        for i in range(first_row[document], first_row[document + 1]):
            first, end = first_token[row[i]], end_token[row[i]]
            if first == end:
                stays[i] = True
                continue
            low = lower_bound(staying_end, 0, count, first + 1)
            if low < count and staying_first[low] < end:
                continue
            for at in range(count, low, -1):
                staying_first[at] = staying_first[at - 1]
                staying_end[at] = staying_end[at - 1]
            staying_first[low], staying_end[low] = first, end
            count += 1
            stays[i] = True
    return stays
