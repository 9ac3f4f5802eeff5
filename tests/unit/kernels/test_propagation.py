"""Every flow through the tree equals the one found by walking from each section to each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.propagation import (
    aggregate_children,
    from_ancestors,
    from_ancestors_by_factor,
    from_other_passages,
    from_other_sections,
    from_other_sections_by_factor,
    from_others_in_group,
)

# Zeros, and values so far apart that a difference of sums would lose the small ones.
values = st.sampled_from([0.0, 0.0, 1e-14, 1e-5, 0.3, 0.7, 1.0, 1e6])
weights = st.lists(st.sampled_from([1.0, 0.9, 0.5, 1e-3, 1e-9, 0.0]), max_size=8).map(np.array).map(lambda w: w.astype(np.float64))


@st.composite
def forests(draw):
    """Parents before children: chains, stars and all between, several trees in one array."""
    size = draw(st.integers(0, 24))
    reach = draw(st.integers(1, 24))
    roots = draw(st.booleans())
    parents = [draw(st.integers(-1 if i == 0 or roots else max(0, i - reach), i - 1)) for i in range(size)]
    return np.array(parents, np.int64)


@st.composite
def valued_forests(draw):
    parent = draw(forests())
    return np.array(draw(st.lists(values, min_size=parent.size, max_size=parent.size)), np.float64), parent


@st.composite
def forests_with_passages(draw):
    parent = draw(forests())
    count = draw(st.integers(0, 12)) if parent.size else 0
    sections = draw(st.lists(st.integers(0, max(0, parent.size - 1)), min_size=count, max_size=count))
    return np.array(draw(st.lists(values, min_size=count, max_size=count)), np.float64), np.array(sections, np.int64), parent


def ancestors(parent, section):
    """The section and those above it, nearest first."""
    path = [section]
    while parent[path[-1]] >= 0:
        path.append(int(parent[path[-1]]))
    return path


def distance(parent, first, second):
    """Edges between two sections, None where they are not in one tree."""
    above, other = ancestors(parent, first), ancestors(parent, second)
    common = next((section for section in above if section in other), None)
    return None if common is None else above.index(common) + other.index(common)


def gather(parts, maximum):
    parts = list(parts)
    return max(parts, default=0.0) if maximum else float(np.sum(parts))


def plain_from_others(value, parent, weight, maximum):
    def parts(section):
        for other in range(parent.size):
            steps = distance(parent, section, other)
            if other != section and steps is not None:
                yield value[other] * weight(steps)

    return [gather(parts(section), maximum) for section in range(parent.size)]


def listed(weight):
    return lambda steps: weight[steps] if steps < weight.size else 0.0


@given(valued_forests(), weights, st.booleans())
def test_from_other_sections(forest, weight, maximum):
    value, parent = forest
    expected = plain_from_others(value, parent, listed(weight), maximum)
    assert from_other_sections(value, parent, weight, maximum) == pytest.approx(expected, rel=1e-12, abs=0)


@given(valued_forests(), st.sampled_from([0.0, 0.1, 0.8, 1.0]), st.booleans())
def test_from_other_sections_by_factor(forest, factor, maximum):
    value, parent = forest
    expected = plain_from_others(value, parent, lambda steps: factor**steps, maximum)
    assert from_other_sections_by_factor(value, parent, factor, maximum) == pytest.approx(expected, rel=1e-12, abs=0)


@given(valued_forests(), weights, st.booleans())
def test_from_ancestors(forest, weight, maximum):
    value, parent = forest
    paths = [ancestors(parent, section) for section in range(parent.size)]
    expected = [gather((value[s] * listed(weight)(i) for i, s in enumerate(path)), maximum) for path in paths]
    assert from_ancestors(value, parent, weight, maximum) == pytest.approx(expected, rel=1e-12, abs=0)


@given(valued_forests(), st.sampled_from([0.0, 0.1, 0.8, 1.0]), st.booleans())
def test_from_ancestors_by_factor(forest, factor, maximum):
    value, parent = forest
    paths = [ancestors(parent, section) for section in range(parent.size)]
    expected = [gather((value[s] * factor**i for i, s in enumerate(path)), maximum) for path in paths]
    assert from_ancestors_by_factor(value, parent, factor, maximum) == pytest.approx(expected, rel=1e-12, abs=0)


@given(forests_with_passages(), st.booleans())
def test_from_others_in_group(forest, maximum):
    value, group, parent = forest
    of_group, others = from_others_in_group(value, group, parent.size, maximum)
    assert of_group == pytest.approx([gather(value[group == g], maximum) for g in range(parent.size)], rel=1e-12, abs=0)
    rows = np.arange(value.size)
    expected = [gather(value[(group == group[i]) & (rows != i)], maximum) for i in rows]
    assert others == pytest.approx(expected, rel=1e-12, abs=0)


@given(forests_with_passages(), st.sampled_from([1.0, 0.3, 0.0]), st.booleans(), st.data())
def test_from_other_passages(forest, nearest, maximum, data):
    siblings, section, parent = forest
    elsewhere = np.array(data.draw(st.lists(values, min_size=parent.size, max_size=parent.size)), np.float64)
    others = np.array(data.draw(st.lists(st.integers(0, 5), min_size=parent.size, max_size=parent.size)), np.int64)
    found = from_other_passages(siblings, nearest, elsewhere, section, others, maximum)
    both = [(nearest * own, elsewhere[s]) for own, s in zip(siblings, section, strict=True)]
    expected = [max(pair) if maximum else sum(pair) / max(others[s], 1) for pair, s in zip(both, section, strict=True)]
    assert found == pytest.approx(expected, rel=1e-12, abs=0)


@given(forests_with_passages(), st.booleans())
def test_aggregate_children(forest, maximum):
    value, section_of_passage, parent = forest

    def score(section):
        children = [score(below) for below in np.flatnonzero(parent == section)]
        known = [*value[section_of_passage == section], *(child for child in children if child is not None)]
        return (max(known) if maximum else sum(known) / len(known)) if known else None

    found, count = aggregate_children(value, section_of_passage, parent, maximum)
    expected = [score(section) for section in range(parent.size)]
    assert [None if n == 0 else v for v, n in zip(found.tolist(), count.tolist(), strict=True)] == [
        None if e is None else pytest.approx(e, rel=1e-12, abs=0) for e in expected
    ]
    assert (found[count == 0] == 0).all()


@pytest.mark.parametrize("maximum", [False, True])
def test_a_chain_takes_no_more_memory_than_its_sections(maximum):
    # With one array a section this would need 80 gigabytes.
    sections = 100_000
    value, weight = np.ones(sections), np.array([1.0, 0.5, 0.25])
    found = from_other_sections(value, np.arange(-1, sections - 1), weight, maximum)
    middle = 0.5 if maximum else 1.5
    assert (found[2:-2] == middle).all()
    assert found[0] == found[-1] == (0.5 if maximum else 0.75)
