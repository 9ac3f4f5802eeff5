"""The stack of sparse influences equals dense ones, token by token."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.kernels.elements import link_runs
from perikope.kernels.proximity import (
    AND,
    AND_NOT,
    END_IF_EMPTY,
    LEAF,
    NOT,
    OR,
    OR_LEAF,
    ElementRuns,
    InfluenceSources,
    InfluenceTables,
    LeafEntries,
    TokenUnits,
    group_occurrences,
    mean_influence,
)

TABLES = [[1.0, 0.5], [1.4, 1.0, 0.6, 0.2], [], [0.3]]
PROGRAMS = [
    [(LEAF, 0)],
    [(LEAF, 0), (LEAF, 1), (AND, 0)],
    [(LEAF, 0), (END_IF_EMPTY, 4), (LEAF, 1), (AND, 0)],
    [(LEAF, 0), (OR_LEAF, 1), (OR_LEAF, 0)],
    [(LEAF, 0), (LEAF, 1), (OR_LEAF, 2), (AND_NOT, 0), (LEAF, 2), (OR, 0)],
    [(LEAF, 0), (NOT, 0), (LEAF, 1), (AND, 0)],
    [(LEAF, 0), (LEAF, 1), (AND, 0), (NOT, 0), (NOT, 0)],
    [(LEAF, 0), (LEAF, 1), (LEAF, 2), (OR, 0), (AND, 0), (LEAF, 0), (OR, 0)],
]


@st.composite
def fields(draw):
    """Documents as the element of each token, and occurrences as (leaves, table, range of a whole element or None)."""
    documents = []
    for _ in range(draw(st.integers(0, 3))):
        elements = draw(st.lists(st.integers(0, 2), min_size=1, max_size=14))
        occurrences = {}
        for place in draw(st.sets(st.integers(0, len(elements) - 1))):
            first = draw(st.integers(0, place))
            whole = (first, draw(st.integers(place + 1, len(elements)))) if draw(st.integers(0, 4)) == 0 else None
            occurrences[place] = (draw(st.sets(st.integers(0, 2), max_size=2)), draw(st.integers(0, len(TABLES) - 1)), whole)
        documents.append((elements, dict(sorted(occurrences.items()))))
    return documents


def dense(elements, occurrences, program):
    """What is on the stack at the end, a value a token."""

    def leaf(number):
        values = np.zeros(len(elements))
        for place, (leaves, table, whole) in occurrences.items():
            for x in range(len(elements)):
                distance = (
                    0 if whole and whole[0] <= x < whole[1] else abs(x - place) if not whole and elements[x] == elements[place] else None
                )
                if number in leaves and distance is not None and distance < len(TABLES[table]):
                    values[x] = max(values[x], TABLES[table][distance])
        return values

    stack = []
    for operation, argument in program:
        if operation == LEAF:
            stack.append(leaf(argument))
        elif operation == OR_LEAF:
            stack[-1] = np.maximum(stack[-1], leaf(argument))
        elif operation == NOT:
            stack[-1] = np.maximum(0.0, 1.0 - stack[-1])
        elif operation != END_IF_EMPTY:
            upper, lower = stack.pop(), stack.pop()
            combine = {OR: np.maximum, AND: np.minimum, AND_NOT: lambda a, b: np.minimum(a, np.maximum(0.0, 1.0 - b))}[operation]
            stack.append(combine(lower, upper))
    return stack[0]


@pytest.mark.parametrize("program", PROGRAMS)
@settings(max_examples=60)
@given(documents=fields(), random=st.randoms(use_true_random=False))
def test_means(program, documents, random):
    runs, first_run, occurrences, first_occurrence, units, first_unit = [], [0], [], [0], [], [0]
    for number, (elements, own) in enumerate(documents):
        for x, element in enumerate(elements):
            if x and elements[x - 1] == element:
                runs[-1][1] = x + 1
            else:
                runs.append([x, x + 1, 3 * number + element])
        base = first_run[-1]
        for place, (leaves, table, whole) in own.items():
            run = next(i for i in range(base, len(runs)) if runs[i][0] <= place < runs[i][1])
            occurrences.append((place, run, table, *(whole or (0, 0)), leaves))
        for _ in range(4):
            first = random.randint(0, len(elements))
            units.append((first, random.randint(first, len(elements))))
        first_run.append(len(runs))
        first_occurrence.append(len(occurrences))
        first_unit.append(len(units))
    run_first, run_end, run_span = (np.array([run[i] for run in runs], np.int64) for i in range(3))
    place, run, table, whole_first, whole_end = (np.array([own[i] for own in occurrences], np.int64) for i in range(5))
    entries = [[i for i, own in enumerate(occurrences) if leaf in own[5]] for leaf in range(3)]
    group, groups = group_occurrences(run_span[run], table, 3 * len(documents))
    pairs = list(zip(run_span[run].tolist(), table.tolist(), strict=True))
    assert groups == len(set(pairs))
    assert all((group[i] == group[j]) == (pairs[i] == pairs[j]) for i in range(len(pairs)) for j in range(i))
    means = mean_influence(
        np.array(program, np.int64), 3,
        LeafEntries(np.cumsum([0, *map(len, entries)]), np.array([i for own in entries for i in own], np.int64)),
        InfluenceSources(np.array(first_occurrence), place.astype(np.int32), run, table, group, groups, whole_first, whole_end),
        ElementRuns(run_first, run_end, *link_runs(run_span, 3 * len(documents))),
        InfluenceTables(np.cumsum([0, *map(len, TABLES)]), np.array([value for own in TABLES for value in own])),
        TokenUnits(
            np.array([len(elements) for elements, _ in documents], np.int64),
            np.array(first_unit), *(np.array([unit[i] for unit in units], np.int64) for i in range(2)),
        ),
    )  # fmt: skip
    expected = []
    for number, (elements, own) in enumerate(documents):
        values = dense(elements, own, program)
        inside = [values[first:end] for first, end in units[first_unit[number] : first_unit[number + 1]]]
        expected += [part.mean() if part.size else 0.0 for part in inside]
    assert means.tolist() == pytest.approx(expected, abs=1e-12)
