"""The influence of a Boolean query on the tokens of documents, and its mean over units of text.

The query is a program for a stack machine, which runs once per document. Each level of the stack is an influence: one
value per token of the document, and a list of the tokens whose value is above 0. So the time is proportional to the
number of tokens that occurrences reach. Only the operation `NOT` visits every token.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Floats, Integers, Integers32
from perikope.kernels.jit import inner, kernel, step

LEAF, OR_LEAF, OR, AND, AND_NOT, NOT, END_IF_EMPTY = range(7)
"""Operations of a program. A leaf is a node of the query tree that has occurrences, such as a word.

`LEAF` pushes the influence of a leaf. `OR_LEAF` raises the top level to the influence of a leaf. `OR` and `AND` replace
the two top levels by their maximum or minimum. `AND_NOT` replaces them by the minimum of the lower level and 1 minus
the upper level. `NOT` replaces the top level by 1 minus its values, and at least 0. `END_IF_EMPTY` jumps to a step of
the program if the top level is 0 everywhere.
"""


class LeafEntries(NamedTuple):
    """The occurrences of each leaf of the query."""

    first: Integers
    """Index of each leaf's first entry, and at the end the number of entries."""
    occurrence: Integers
    """Index of the occurrence of each entry, in ascending order within a leaf."""


class InfluenceSources(NamedTuple):
    """Occurrences of query terms, ordered by document and position, and the tokens that each of them influences."""

    first_of_document: Integers
    """Index of each document's first occurrence, and at the end the number of occurrences."""
    position: Integers32
    """Position of each occurrence in its document."""
    run: Integers
    """Index of the run (`ElementRuns`) that contains each occurrence."""
    table: Integers
    """Index of the table (`InfluenceTables`) that has each occurrence's influence by distance."""
    group: Integers
    """Group of each occurrence. The occurrences of a group are in one element and have the same table."""
    groups: int
    """Number of groups."""
    whole_first: Integers
    """First token of the range on which an occurrence, such as one in a title, has the same influence everywhere."""
    whole_end: Integers
    """End of this range (exclusive); 0 if the influence of the occurrence decreases with distance."""


class ElementRuns(NamedTuple):
    """Runs of adjacent tokens with the same deepest element, and links between the runs of an element."""

    first: Integers
    """First token of each run, counted in its document."""
    end: Integers
    """One more than the last token of each run."""
    before: Integers32
    """Index of the previous run of the same element, or -1 if there is none."""
    after: Integers32
    """Index of the next run of the same element, or -1 if there is none."""


class InfluenceTables(NamedTuple):
    """Tables of influence by distance in tokens, concatenated."""

    first: Integers
    """Index of each table's first value, and at the end the number of values."""
    value: Floats
    """Influence at distance 0, 1, 2, …, table by table. Beyond the end of a table, influence is 0."""


class TokenUnits(NamedTuple):
    """Documents, and the units of text whose mean influence is computed; units may overlap."""

    tokens: Integers
    """Number of tokens of each document."""
    first_of_document: Integers
    """Index of each document's first unit, and at the end the number of units."""
    first: Integers
    """First token of each unit, counted in its document."""
    end: Integers
    """One more than the last token of each unit."""


class _Stack(NamedTuple):
    """A stack of influences on the tokens of one document. On levels above the top, all values are 0."""

    values: Floats
    """Shape (levels, tokens): the influence on each token."""
    touched: Integers
    """Shape (levels, tokens): the tokens whose value is above 0, in no particular order."""
    count: Integers
    """Number of tokens in `touched`, per level."""


class _Groups(NamedTuple):
    """Working memory of `_spread`: the groups of occurrences that it has met so far."""

    last: Integers
    """Last occurrence of each group so far, or -1. Between calls, all values are -1."""
    used: Integers
    """The groups met so far."""


@kernel
def mean_influence(
    program: Integers, depth: int, leaves: LeafEntries, sources: InfluenceSources, runs: ElementRuns, tables: InfluenceTables,
    units: TokenUnits,
) -> Floats:  # fmt: skip
    """For each unit, the mean of the query's influence over its tokens; 0 if it has no tokens.

    `program` has shape (steps, 2): operation and argument. The argument of `LEAF` and `OR_LEAF` is a leaf, and that of
    `END_IF_EMPTY` is a step. `depth` is the number of levels that the stack needs. At the end of the program, the stack
    must have one level. An occurrence influences only tokens of its own element, as its table says.
    """
    means = np.zeros(units.first.size)
    longest = 0
    for document in range(units.tokens.size):
        longest = max(longest, units.tokens[document])
    stack = _Stack(np.zeros((depth, longest)), np.empty((depth, longest), np.int64), np.zeros(depth, np.int64))
    groups = _Groups(np.empty(sources.groups, np.int64), np.empty(sources.groups, np.int64))
    groups.last[:] = -1
    cursor = leaves.first[:-1].copy()
    for document in range(units.tokens.size):
        top = -1
        at = 0
        while at < program.shape[0]:
            operation, argument = program[at]
            at += 1
            if operation in (LEAF, OR_LEAF):
                top += operation == LEAF
                entries = _entries_of(leaves, argument, cursor, sources.first_of_document, document)
                if entries.size:
                    _spread(entries, sources, runs, tables, stack, top, groups)
            elif operation == OR:
                top -= 1
                _join_maximum(stack, top)
            elif operation in (AND, AND_NOT):
                top -= 1
                _join_minimum(stack, top, operation == AND_NOT)
            elif operation == NOT:
                _negate(stack, top, units.tokens[document])
            elif stack.count[top] == 0:
                at = argument
        if stack.count[0] > 0:
            _average(stack.values[0], stack.touched[0, : stack.count[0]], units, document, means)
            _clear(stack, np.int64(0))
    return means


@step
def _entries_of(leaves: LeafEntries, leaf: int, cursor: Integers, first_of_document: Integers, document: int) -> Integers:
    """The occurrences of a leaf in a document. Documents must be passed in ascending order.

    `cursor` has the entry of each leaf at which the search starts. It is moved to the leaf's first occurrence in the
    document and not beyond, because a leaf may be in the program twice.
    """
    occurrence, stop = leaves.occurrence, leaves.first[leaf + 1]
    at = cursor[leaf]
    while at < stop and occurrence[at] < first_of_document[document]:
        at += 1
    end = at
    while end < stop and occurrence[end] < first_of_document[document + 1]:
        end += 1
    cursor[leaf] = at
    return occurrence[at:end]


@step
def _join_maximum(stack: _Stack, top: int) -> None:
    """Set the level `top` to the maximum of itself and the level above it, and clear the level above."""
    values, touched, count = stack.values, stack.touched, stack.count
    for i in range(count[top + 1]):
        x = touched[top + 1, i]
        count[top] = _raise(values[top], touched[top], count[top], x, values[top + 1, x])
    _clear(stack, top + 1)


@step
def _join_minimum(stack: _Stack, top: int, negated: bool) -> None:
    """Set the level `top` to the minimum of itself and the level above it, and clear the level above.

    If `negated`, 1 minus the level above is used instead.
    """
    values, touched, count = stack.values, stack.touched, stack.count
    left = 0
    for i in range(count[top]):
        x = touched[top, i]
        other = max(0.0, 1.0 - values[top + 1, x]) if negated else values[top + 1, x]
        values[top, x] = min(values[top, x], other)
        if values[top, x] > 0.0:
            touched[top, left] = x
            left += 1
    count[top] = left
    _clear(stack, top + 1)


@step
def _negate(stack: _Stack, top: int, tokens: int) -> None:
    """Replace every value p of the level `top` by `max(0, 1 - p)`."""
    values, touched = stack.values[top], stack.touched[top]
    count = 0
    for x in range(tokens):
        values[x] = max(0.0, 1.0 - values[x])
        if values[x] > 0.0:
            touched[count] = x
            count += 1
    stack.count[top] = count


@inner
def _clear(stack: _Stack, level: int) -> None:
    """Set all values of a level to 0."""
    values, touched = stack.values[level], stack.touched[level]
    for i in range(stack.count[level]):
        values[touched[i]] = 0.0
    stack.count[level] = 0


@step
def _average(values: Floats, touched: Integers, units: TokenUnits, document: int, means: Floats) -> None:
    """Set the means of the units of a document. `touched` has the tokens whose value is above 0."""
    unit_first, unit_end = units.first, units.end
    low, high = values.size, np.int64(0)
    for i in range(touched.size):
        low = min(low, touched[i])
        high = max(high, touched[i] + 1)
    for unit in range(units.first_of_document[document], units.first_of_document[document + 1]):
        # Each unit is summed separately. With differences of running sums, equal texts would get scores that differ
        # by rounding.
        total = 0.0
        for x in range(max(low, unit_first[unit]), min(high, unit_end[unit])):
            total += values[x]
        if unit_end[unit] > unit_first[unit]:
            means[unit] = total / (unit_end[unit] - unit_first[unit])


@step
def _spread(
    entries: Integers, sources: InfluenceSources, runs: ElementRuns, tables: InfluenceTables, stack: _Stack, top: int, groups: _Groups
) -> None:
    """Raise the level `top` to the influence of some occurrences of one document, ordered by position.

    On a token, only the nearest occurrence of each group has to be considered. So two neighbours in a group each spread
    their influence up to the middle between them. The time is proportional to the number of tokens that are reached,
    not to the length of the tables.
    """
    position, run, first_value = sources.position, sources.run, tables.first
    values, touched, count = stack.values[top], stack.touched[top], stack.count[top]
    used = 0
    last_whole = -1
    for i in range(entries.size):
        here = entries[i]
        table, group = sources.table[here], sources.group[here]
        curve = tables.value[first_value[table] : first_value[table + 1]]
        if curve.size == 0:
            continue
        if sources.whole_end[here] > 0:
            if not _is_same_whole(sources, last_whole, here):
                for x in range(sources.whole_first[here], sources.whole_end[here]):
                    count = _raise(values, touched, count, x, curve[0])
            last_whole = here
            continue
        at = np.int64(position[here])
        low = at - curve.size + 1
        before = groups.last[group]
        if before >= 0:
            near = np.int64(position[before])
            middle = (near + position[here]) // 2
            high = min(middle, near + curve.size - 1)
            count = _reach(near, run[before], near, high, curve, runs, runs.after, values, touched, count)
            low = max(low, middle + 1)
        else:
            groups.used[used] = group
            used += 1
        count = _reach(at, run[here], low, at, curve, runs, runs.before, values, touched, count)
        groups.last[group] = here
    for i in range(used):
        last = groups.last[groups.used[i]]
        groups.last[groups.used[i]] = -1
        curve = tables.value[first_value[sources.table[last]] : first_value[sources.table[last] + 1]]
        at = np.int64(position[last])
        high = at + curve.size - 1
        count = _reach(at, run[last], at, high, curve, runs, runs.after, values, touched, count)
    stack.count[top] = count


@step
def _is_same_whole(sources: InfluenceSources, one: int, other: int) -> bool:
    """Whether two occurrences have the same influence on the same whole range; False if `one` is -1."""
    return (
        one >= 0
        and sources.whole_first[one] == sources.whole_first[other]
        and sources.whole_end[one] == sources.whole_end[other]
        and sources.table[one] == sources.table[other]
    )


@inner
def _reach(
    position: int, run: int, low: int, high: int, curve: Floats, runs: ElementRuns, next_run: Integers32,
    values: Floats, touched: Integers, count: int,
) -> int:  # fmt: skip
    """Raise the values of tokens from `low` to `high` (inclusive) to the influence of one occurrence.

    Only tokens of the same element are raised: those in the occurrence's run, and in the runs that follow it by
    `next_run`. `curve` has the influence by distance. Returns the new number of tokens in `touched`.
    """
    run_first, run_end = runs.first, runs.end
    while run >= 0 and run_first[run] <= high and run_end[run] > low:
        for x in range(max(low, run_first[run]), min(high + 1, run_end[run])):
            count = _raise(values, touched, count, x, curve[abs(x - position)])
        run = next_run[run]
    return count


@inner
def _raise(values: Floats, touched: Integers, count: int, x: int, value: float) -> int:
    """Raise the value of token x to at least `value`. Returns the new number of tokens in `touched`."""
    if values[x] < value:
        if values[x] == 0.0:
            touched[count] = x
            count += 1
        values[x] = value
    return count


@kernel
def group_occurrences(span_of_occurrence: Integers, table_of_occurrence: Integers, spans: int) -> tuple[Integers, int]:
    """The group of each occurrence, from 0, and the number of groups.

    The occurrences of a group are in the same element (span) and have the same table. `spans` is the number of spans.
    """
    group = np.empty(span_of_occurrence.size, np.int64)
    first_group = np.empty(spans, np.int32)
    first_group[:] = -1
    next_group = np.empty(span_of_occurrence.size, np.int64)
    table_of_group = np.empty(span_of_occurrence.size, np.int64)
    groups = 0
    for i in range(span_of_occurrence.size):
        span = span_of_occurrence[i]
        number = np.int64(first_group[span])
        while number >= 0 and table_of_group[number] != table_of_occurrence[i]:
            number = next_group[number]
        if number < 0:
            number = groups
            table_of_group[number] = table_of_occurrence[i]
            next_group[number] = first_group[span]
            first_group[span] = number
            groups += 1
        group[i] = number
    return group, groups
