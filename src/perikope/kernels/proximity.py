"""The influence of a Boolean query on the tokens of documents, and its mean over elements, one document at a time.

The query is a program for a stack of influences. An influence has a value for each token of the document, kept with the list of the tokens
that have one above 0: nothing takes time by the tokens of a document but a NOT that stands alone.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Floats, Integers, Integers32
from perikope.kernels.jit import kernel

LEAF, OR_LEAF, OR, AND, AND_NOT, NOT, END_IF_EMPTY = range(7)
"""Put a leaf on the stack · raise the top to a leaf · replace the two on top by their maximum · by their minimum · by the minimum of the
lower and of 1 less the upper · replace the top by 1 less itself, at least 0 · go to a place of the program if the top is 0 everywhere."""


@kernel
def mean_influence(
    program: Integers,
    depth: int,
    first_entry: Integers,
    entry: Integers,
    first_occurrence: Integers,
    position: Integers32,
    run_of_occurrence: Integers,
    table_of_occurrence: Integers,
    group_of_occurrence: Integers,
    groups: int,
    whole_first: Integers,
    whole_end: Integers,
    run_first: Integers,
    run_end: Integers,
    run_before: Integers32,
    run_after: Integers32,
    first_value: Integers,
    value: Floats,
    tokens: Integers,
    first_unit: Integers,
    unit_first: Integers,
    unit_end: Integers,
) -> Floats:
    """For each unit the sum of the query's influence over its tokens ÷ their number.

    A leaf is a list of occurrences, rising. An occurrence gives the tokens of its own element, found through the linked runs, what its
    table says by distance; where `whole_end` is above 0 it gives all tokens from `whole_first` on what its table says of distance 0.
    """
    means = np.zeros(unit_first.size)
    longest = 0
    for document in range(tokens.size):
        longest = max(longest, tokens[document])
    values = np.zeros((depth, longest))
    touched = np.empty((depth, longest), np.int64)
    count = np.zeros(depth, np.int64)
    cursor = first_entry[:-1].copy()
    last_of_group = np.full(groups, -1, np.int64)
    used_groups = np.empty(groups, np.int64)
    for document in range(tokens.size):
        top = -1
        step = 0
        while step < program.shape[0]:
            operation, argument = program[step]
            step += 1
            if operation in (LEAF, OR_LEAF):
                if operation == LEAF:
                    top += 1
                leaf = argument
                at = cursor[leaf]
                while at < first_entry[leaf + 1] and entry[at] < first_occurrence[document]:
                    at += 1
                end = at
                while end < first_entry[leaf + 1] and entry[end] < first_occurrence[document + 1]:
                    end += 1
                # Not moved on: a leaf may stand in the program twice.
                cursor[leaf] = at
                if end > at:
                    count[top] = _spread(
                        entry[at:end], position, run_of_occurrence, table_of_occurrence, group_of_occurrence, whole_first, whole_end,
                        run_first, run_end, run_before, run_after, first_value, value, values[top], touched[top], count[top],
                        last_of_group, used_groups,
                    )  # fmt: skip
            elif operation == OR:
                top -= 1
                for i in range(count[top + 1]):
                    x = touched[top + 1, i]
                    count[top] = _raise(values[top], touched[top], count[top], x, values[top + 1, x])
                    values[top + 1, x] = 0.0
                count[top + 1] = 0
            elif operation in (AND, AND_NOT):
                top -= 1
                left = 0
                for i in range(count[top]):
                    x = touched[top, i]
                    other = values[top + 1, x] if operation == AND else max(0.0, 1.0 - values[top + 1, x])
                    values[top, x] = min(values[top, x], other)
                    if values[top, x] > 0.0:
                        touched[top, left] = x
                        left += 1
                count[top] = left
                for i in range(count[top + 1]):
                    values[top + 1, touched[top + 1, i]] = 0.0
                count[top + 1] = 0
            elif operation == NOT:
                count[top] = 0
                for x in range(tokens[document]):
                    values[top, x] = max(0.0, 1.0 - values[top, x])
                    if values[top, x] > 0.0:
                        touched[top, count[top]] = x
                        count[top] += 1
            elif count[top] == 0:
                step = argument
        if count[0] > 0:
            low, high = tokens[document], np.int64(0)
            for i in range(count[0]):
                low = min(low, touched[0, i])
                high = max(high, touched[0, i] + 1)
            for unit in range(first_unit[document], first_unit[document + 1]):
                # Each unit is added up by itself: from sums up to each token, equal texts would get scores that differ by rounding.
                total = 0.0
                for x in range(max(low, unit_first[unit]), min(high, unit_end[unit])):
                    total += values[0, x]
                if unit_end[unit] > unit_first[unit]:
                    means[unit] = total / (unit_end[unit] - unit_first[unit])
            for i in range(count[0]):
                values[0, touched[0, i]] = 0.0
            count[0] = 0
    return means


@kernel
def _spread(
    entry: Integers,
    position: Integers32,
    run_of_occurrence: Integers,
    table_of_occurrence: Integers,
    group_of_occurrence: Integers,
    whole_first: Integers,
    whole_end: Integers,
    run_first: Integers,
    run_end: Integers,
    run_before: Integers32,
    run_after: Integers32,
    first_value: Integers,
    value: Floats,
    values: Floats,
    touched: Integers,
    count: int,
    last_of_group: Integers,
    used_groups: Integers,
) -> int:
    """Raise values to what the occurrences of a leaf in one document give; returns how many tokens are touched then.

    Of occurrences in the same element with the same table only the nearest counts, so that between two of them each goes half the way:
    what is done grows with the tokens that are reached, however far an occurrence could.
    """
    used = 0
    last_whole = -1
    for i in range(entry.size):
        here = entry[i]
        table, group = table_of_occurrence[here], group_of_occurrence[here]
        first, end = first_value[table], first_value[table + 1]
        if first == end:
            continue
        if whole_end[here] > 0:
            repeated = last_whole >= 0 and whole_first[last_whole] == whole_first[here] and whole_end[last_whole] == whole_end[here]
            if not repeated or table_of_occurrence[last_whole] != table:
                for x in range(whole_first[here], whole_end[here]):
                    count = _raise(values, touched, count, x, value[first])
            last_whole = here
            continue
        low = position[here] - (end - first) + 1
        before = last_of_group[group]
        if before >= 0:
            middle = (np.int64(position[before]) + position[here]) // 2
            high = min(middle, position[before] + (end - first) - 1)
            count = _reach(
                position[before], run_of_occurrence[before], position[before], high, value[first:end],
                run_first, run_end, run_after, values, touched, count,
            )  # fmt: skip
            low = max(low, middle + 1)
        else:
            used_groups[used] = group
            used += 1
        count = _reach(
            position[here], run_of_occurrence[here], low, position[here], value[first:end],
            run_first, run_end, run_before, values, touched, count,
        )  # fmt: skip
        last_of_group[group] = here
    for i in range(used):
        here = last_of_group[used_groups[i]]
        last_of_group[used_groups[i]] = -1
        first, end = first_value[table_of_occurrence[here]], first_value[table_of_occurrence[here] + 1]
        high = position[here] + (end - first) - 1
        count = _reach(
            position[here], run_of_occurrence[here], position[here], high, value[first:end],
            run_first, run_end, run_after, values, touched, count,
        )  # fmt: skip
    return count


@kernel
def _reach(
    position: int,
    run: int,
    low: int,
    high: int,
    table: Floats,
    run_first: Integers,
    run_end: Integers,
    next_run: Integers32,
    values: Floats,
    touched: Integers,
    count: int,
) -> int:
    """Raise the values from `low` to `high` to what an occurrence gives them, in the runs of its own element from its own run on."""
    while run >= 0 and run_first[run] <= high and run_end[run] > low:
        for x in range(max(low, run_first[run]), min(high + 1, run_end[run])):
            count = _raise(values, touched, count, x, table[abs(x - position)])
        run = next_run[run]
    return count


@kernel
def _raise(values: Floats, touched: Integers, count: int, x: int, value: float) -> int:
    """Raise a token's value to another; returns how many tokens are touched then."""
    if values[x] < value:
        if values[x] == 0.0:
            touched[count] = x
            count += 1
        values[x] = value
    return count


@kernel
def group_occurrences(span_of_occurrence: Integers, table_of_occurrence: Integers, spans: int) -> tuple[Integers, int]:
    """A number for each element with a table, of each occurrence, and how many there are."""
    group = np.empty(span_of_occurrence.size, np.int64)
    first_group = np.full(spans, -1, np.int32)
    next_group = np.empty(span_of_occurrence.size, np.int64)
    table_of_group = np.empty(span_of_occurrence.size, np.int64)
    groups = 0
    for i in range(span_of_occurrence.size):
        span = span_of_occurrence[i]
        found = np.int64(first_group[span])
        while found >= 0 and table_of_group[found] != table_of_occurrence[i]:
            found = next_group[found]
        if found < 0:
            found = groups
            table_of_group[found] = table_of_occurrence[i]
            next_group[found] = first_group[span]
            first_group[span] = found
            groups += 1
        group[i] = found
    return group, groups
