"""The influence of a Boolean query on the tokens of documents, and its mean over units of text, one document at a time.

The query is a program for a stack of influences. An influence is one value per token of the document, kept with the
list of the tokens whose value is above 0. So the time grows with the tokens that are reached; only a NOT that stands
alone visits every token.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Floats, Integers, Integers32
from perikope.kernels.jit import kernel, step

LEAF, OR_LEAF, OR, AND, AND_NOT, NOT, END_IF_EMPTY = range(7)
"""Operations of a program.

`LEAF` pushes a leaf; `OR_LEAF` raises the top to a leaf. `OR`, `AND` and `AND_NOT` replace the two on top by their
maximum, by their minimum, or by the minimum of the lower and of 1 - the upper. `NOT` replaces the top by 1 - itself, at
least 0. `END_IF_EMPTY` jumps to a step of the program if the top is 0 everywhere.
"""


class LeafEntries(NamedTuple):
    """The occurrences of each leaf of the query."""

    first: Integers
    """First entry of each leaf, and the number of entries."""
    occurrence: Integers
    """Occurrence of each entry; rising within a leaf."""


class InfluenceSources(NamedTuple):
    """Occurrences of query terms, by document and position, and what each of them reaches."""

    first_of_document: Integers
    """First occurrence of each document, and the number of occurrences."""
    position: Integers32
    """Position of each occurrence in its document."""
    run: Integers
    """Run of tokens that contains each occurrence."""
    table: Integers
    """Table that gives each occurrence's influence."""
    group: Integers
    """Group of each occurrence: occurrences of one element with the same table (`group_occurrences`)."""
    groups: int
    """Number of groups."""
    whole_first: Integers
    """First token of the range that an occurrence influences evenly, as one in a title does."""
    whole_end: Integers
    """End of this range; 0 where influence falls with distance."""


class ElementRuns(NamedTuple):
    """Runs of tokens with the same deepest element; the runs of an element are linked."""

    first: Integers
    """First token of each run, in its document."""
    end: Integers
    """End of each run."""
    before: Integers32
    """The run of the same element before each run, or -1."""
    after: Integers32
    """The run of the same element after each run, or -1."""


class InfluenceTables(NamedTuple):
    """Influence by distance in tokens, one table after the other."""

    first: Integers
    """First value of each table, and the number of values."""
    value: Floats
    """Influence at distance 0, 1, 2, … of each table; 0 beyond its end."""


class TokenUnits(NamedTuple):
    """Documents, and the units of text whose mean influence is computed; units may overlap."""

    tokens: Integers
    """Number of tokens of each document."""
    first_of_document: Integers
    """First unit of each document, and the number of units."""
    first: Integers
    """First token of each unit, in its document."""
    end: Integers
    """End of each unit."""


class _Stack(NamedTuple):
    """Influences on the tokens of one document; all values above the top are 0."""

    values: Floats
    """Shape (depth, tokens)."""
    touched: Integers
    """Shape (depth, tokens): the tokens whose value is above 0, in no order."""
    count: Integers
    """Number of these tokens, per level."""


class _Groups(NamedTuple):
    """The groups of occurrences that one leaf has met in a document."""

    last: Integers
    """Last occurrence of each group so far, or -1; -1 everywhere between two leaves."""
    used: Integers
    """The groups met so far."""


@kernel
def mean_influence(
    program: Integers, depth: int, leaves: LeafEntries, sources: InfluenceSources, runs: ElementRuns, tables: InfluenceTables,
    units: TokenUnits,
) -> Floats:  # fmt: skip
    """The mean of the query's influence over the tokens of each unit; 0 for a unit without tokens.

    `program` has shape (steps, 2): operation and argument, which is a leaf or a step. `depth` is the largest height of
    the stack. At the end of the program the stack must have one level. An occurrence influences the tokens of its own
    element by its table.
    """
    means = np.zeros(units.first.size)
    longest = 0
    for document in range(units.tokens.size):
        longest = max(longest, units.tokens[document])
    stack = _Stack(np.zeros((depth, longest)), np.empty((depth, longest), np.int64), np.zeros(depth, np.int64))
    groups = _Groups(np.full(sources.groups, -1, np.int64), np.empty(sources.groups, np.int64))
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
            _clear(stack, 0)
    return means


@step
def _entries_of(leaves: LeafEntries, leaf: int, cursor: Integers, first_of_document: Integers, document: int) -> Integers:
    """The occurrences of a leaf in a document; documents must come in order.

    The cursor stays at their beginning, since a leaf may be in the program twice.
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
    """Raise the level `top` to the level above it, which is cleared."""
    values, touched, count = stack.values, stack.touched, stack.count
    for i in range(count[top + 1]):
        x = touched[top + 1, i]
        count[top] = _raise(values[top], touched[top], count[top], x, values[top + 1, x])
    _clear(stack, top + 1)


@step
def _join_minimum(stack: _Stack, top: int, negated: bool) -> None:
    """Lower the level `top` to the level above it, or with `negated` to 1 - that level, which is cleared."""
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
    """Replace every value p of the level `top` by 1 - p, at least 0."""
    values, touched = stack.values[top], stack.touched[top]
    count = 0
    for x in range(tokens):
        values[x] = max(0.0, 1.0 - values[x])
        if values[x] > 0.0:
            touched[count] = x
            count += 1
    stack.count[top] = count


@kernel
def _clear(stack: _Stack, level: int) -> None:
    """Make all values of a level 0."""
    values, touched = stack.values[level], stack.touched[level]
    for i in range(stack.count[level]):
        values[touched[i]] = 0.0
    stack.count[level] = 0


@step
def _average(values: Floats, touched: Integers, units: TokenUnits, document: int, means: Floats) -> None:
    """Set the means of the units of a document; `touched` are the tokens whose value is above 0."""
    unit_first, unit_end = units.first, units.end
    low, high = values.size, np.int64(0)
    for i in range(touched.size):
        low = min(low, touched[i])
        high = max(high, touched[i] + 1)
    for unit in range(units.first_of_document[document], units.first_of_document[document + 1]):
        # Each unit is summed by itself: with differences of running sums, equal texts would get scores that differ by
        # rounding.
        total = 0.0
        for x in range(max(low, unit_first[unit]), min(high, unit_end[unit])):
            total += values[x]
        if unit_end[unit] > unit_first[unit]:
            means[unit] = total / (unit_end[unit] - unit_first[unit])


@step
def _spread(
    entries: Integers, sources: InfluenceSources, runs: ElementRuns, tables: InfluenceTables, stack: _Stack, top: int, groups: _Groups
) -> None:
    """Raise the level `top` to the influence of some occurrences of one document, in the order of positions.

    In a group only the nearest occurrence counts, so two neighbours of a group each reach half of the way between them.
    The time grows with the tokens that are reached, not with the length of the tables.
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
        low = position[here] - curve.size + 1
        before = groups.last[group]
        if before >= 0:
            middle = (np.int64(position[before]) + position[here]) // 2
            high = min(middle, position[before] + curve.size - 1)
            count = _reach(position[before], run[before], position[before], high, curve, runs, runs.after, values, touched, count)
            low = max(low, middle + 1)
        else:
            groups.used[used] = group
            used += 1
        count = _reach(position[here], run[here], low, position[here], curve, runs, runs.before, values, touched, count)
        groups.last[group] = here
    for i in range(used):
        last = groups.last[groups.used[i]]
        groups.last[groups.used[i]] = -1
        curve = tables.value[first_value[sources.table[last]] : first_value[sources.table[last] + 1]]
        high = position[last] + curve.size - 1
        count = _reach(position[last], run[last], position[last], high, curve, runs, runs.after, values, touched, count)
    stack.count[top] = count


@step
def _is_same_whole(sources: InfluenceSources, one: int, other: int) -> bool:
    """Whether two occurrences give the same influence to the same range; False where the first is -1."""
    return (
        one >= 0
        and sources.whole_first[one] == sources.whole_first[other]
        and sources.whole_end[one] == sources.whole_end[other]
        and sources.table[one] == sources.table[other]
    )


@kernel
def _reach(
    position: int, run: int, low: int, high: int, curve: Floats, runs: ElementRuns, next_run: Integers32,
    values: Floats, touched: Integers, count: int,
) -> int:  # fmt: skip
    """Raise the values of tokens `low` to `high` to an occurrence's influence; return the number of tokens touched.

    Only tokens in its own run, and in the runs that `next_run` links to it, are in its element.
    """
    run_first, run_end = runs.first, runs.end
    while run >= 0 and run_first[run] <= high and run_end[run] > low:
        for x in range(max(low, run_first[run]), min(high + 1, run_end[run])):
            count = _raise(values, touched, count, x, curve[abs(x - position)])
        run = next_run[run]
    return count


@kernel
def _raise(values: Floats, touched: Integers, count: int, x: int, value: float) -> int:
    """Raise the value of token x to another; return the number of tokens touched then."""
    if values[x] < value:
        if values[x] == 0.0:
            touched[count] = x
            count += 1
        values[x] = value
    return count


@kernel
def group_occurrences(span_of_occurrence: Integers, table_of_occurrence: Integers, spans: int) -> tuple[Integers, int]:
    """The group of each occurrence, from 0, and the number of groups; a group has one element and one table."""
    group = np.empty(span_of_occurrence.size, np.int64)
    first_group = np.full(spans, -1, np.int32)
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
