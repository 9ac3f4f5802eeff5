"""Each kernel of positional scoring equals its plain twin: every occurrence at every sample point."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.browse.models.positional import quadrature
from perikope.kernels.positional import (
    REACH,
    Cells,
    PassagePositions,
    WeightedPositions,
    gauss_by_pairs,
    gauss_by_series,
    sum_gauss,
    sum_trapezoid,
    unite_passages,
)

SIGMAS = [1e-300, 1e-3, 0.5, 1.0, 3.0, 10.0, 40.0, 100.0, 500.0, 2000.0, 1e5, 1e300]


def numbers(values):
    return np.array(values, np.int64)


@st.composite
def scenes(draw):
    """Documents with occurrences (positions, weights) and passages (first, last) that may overlap, nest or be empty."""
    documents = []
    for _ in range(draw(st.integers(1, 3))):
        length = draw(st.sampled_from([1, 30, 400, 5000, 40_000]))
        place = st.integers(0, length)
        positions = sorted(draw(st.sets(place, max_size=40)))
        weights = draw(st.lists(st.just(0.0) | st.floats(1e-6, 10), min_size=len(positions), max_size=len(positions)))
        passages = draw(st.lists(st.tuples(place, st.integers(-1, min(length, 300))), max_size=12))
        documents.append((positions, weights, sorted((first, first + more) for first, more in passages)))
    return documents


def columns(documents):
    position = numbers([p for positions, _, _ in documents for p in positions])
    weight = np.array([w for _, weights, _ in documents for w in weights])
    first = numbers([a for _, _, passages in documents for a, _ in passages])
    last = numbers([b for _, _, passages in documents for _, b in passages])
    of_occurrence = numbers(np.cumsum([0, *(len(positions) for positions, _, _ in documents)]))
    of_passage = numbers(np.cumsum([0, *(len(passages) for _, _, passages in documents)]))
    return WeightedPositions(position, weight, of_occurrence), PassagePositions(first, last, of_passage)


def samples(first, last, points):
    return first + np.arange(points + 1) * (last - first) / points


def plain_gauss(positions, weights, passages, sigma, points):
    sums = []
    for first, last in passages:
        if last < first:
            sums.append(0.0)
            continue
        with np.errstate(over="ignore", under="ignore"):
            distance = (samples(first, last, points)[:, None] - np.array(positions)) / sigma
            sums.append(float((np.exp(-(distance**2) / 2) * np.array(weights)).sum()))
    return np.array(sums)


def assert_close(found, expected, weight, points):
    """As exact as the kernels say they are."""
    left_out = (points + 1) * weight * math.exp(-(REACH**2) / 2)
    assert (np.abs(found - expected) <= 2e-10 * expected + left_out).all(), (found, expected)


@settings(max_examples=300)
@given(scenes(), st.sampled_from(SIGMAS), st.sampled_from([1, 2, 3, 20, 50]))
def test_sum_gauss(documents, sigma, points):
    found = sum_gauss(*columns(documents), sigma, quadrature(points))
    expected = [plain_gauss(*document, sigma, points) for document in documents]
    assert np.isfinite(found).all()
    assert_close(found, np.concatenate(expected), sum(sum(weights) for _, weights, _ in documents), points)


@settings(max_examples=200)
@given(scenes(), st.sampled_from([1.0, 10.0, 100.0, 500.0, 2000.0, 1e6]), st.sampled_from([1, 3, 20]))
def test_both_ways_to_sum_gaussians(documents, sigma, points):
    rules = quadrature(points)
    for positions, weights, passages in documents:
        if not positions or not passages:
            continue
        (position, weight, _), (first, last, _) = columns([(positions, weights, passages)])
        expected = plain_gauss(positions, weights, passages, sigma, points)
        by_pairs, by_series = np.zeros(len(passages)), np.zeros(len(passages))
        gauss_by_pairs(position, weight, first, last, sigma, points, by_pairs)
        assert_close(by_pairs, expected, sum(weights), points)
        low = min(positions[0], *first.tolist())
        width = (max(positions[-1], *last.tolist()) - low) / sigma
        rule = numbers([int(np.searchsorted(rules.longest[-1], (b - a) / (2 * sigma))) for a, b in passages])
        cells = Cells(low, width, max(1, math.ceil(width / 0.89)), sigma)
        workspace = np.empty((4, int(rules.count[rule].sum())))
        gauss_by_series(position, weight, first, last, rule, cells, rules, workspace, by_series)
        assert_close(by_series, expected, sum(weights), points)


@pytest.mark.parametrize("points", [1, 2, 5, 20, 200])
def test_a_quadrature_is_exact_for_polynomials_and_good_for_gaussians_as_far_as_it_says(points):
    nodes, shares, counts, longest = quadrature(points)
    at = np.linspace(-1, 1, points + 1)
    for rule, count in enumerate(counts.tolist()):
        own, share = nodes[rule, :count], shares[rule, :count]
        assert (share > 0).all()
        assert np.abs(own).max() <= 1 + 1e-12
        for degree in range(2 * count if rule < len(counts) - 1 else 5):
            assert (share * own**degree).sum() == pytest.approx((at**degree).sum(), abs=1e-10 * (points + 1))
    for row in range(longest.shape[0]):
        assert (np.diff(longest[row]) > 0).all()
        for rule in range(len(counts) - 1):
            half = longest[row, rule]
            for distance in np.linspace(0, row / 2, 7):
                exact = np.exp(-((distance + half * at) ** 2) / 2).sum()
                count = counts[rule]
                found = (shares[rule, :count] * np.exp(-((distance + half * nodes[rule, :count]) ** 2) / 2)).sum()
                assert abs(found - exact) <= 1.1e-10 * exact
    assert np.isinf(longest[:, -1]).all()


def plain_unions(positions, passages):
    holding = [[r for r in passages if r[0] <= p <= r[1]] for p in positions]
    first = [min([p, *(r[0] for r in held)]) for p, held in zip(positions, holding, strict=True)]
    last = [max([p, *(r[1] for r in held)]) for p, held in zip(positions, holding, strict=True)]
    return numbers(first), numbers(last)


def unions(documents):
    (position, _, of_occurrence), (first, last, of_passage) = columns(documents)
    ranges = []
    for document in range(len(documents)):
        own = position[of_occurrence[document] : of_occurrence[document + 1]]
        passages = range(of_passage[document], of_passage[document + 1])
        ranges += [of_occurrence[document] + np.searchsorted(own, [first[p], max(first[p], last[p] + 1)]) for p in passages]
    inside = np.array(ranges, np.int64).reshape(-1, 2)
    return unite_passages(position, inside[:, 0].copy(), inside[:, 1].copy(), first, last)


@settings(max_examples=100)
@given(scenes())
def test_unite_passages(documents):
    found = unions(documents)
    for side in (0, 1):
        expected = [plain_unions(positions, passages)[side] for positions, _, passages in documents]
        assert found[side].tolist() == np.concatenate(expected).tolist()


@settings(max_examples=300)
@given(scenes(), st.sampled_from(SIGMAS[1:-1]), st.sampled_from([1, 3, 20]))
def test_sum_trapezoid(documents, sigma, points):
    (_, weight, of_occurrence), passage_positions = columns(documents)
    found = sum_trapezoid(*unions(documents), weight, of_occurrence, passage_positions, sigma, points)
    expected = []
    for positions, weights, passages in documents:
        begin, end = plain_unions(positions, passages)
        for a, b in passages:
            x = samples(a, b, points)[:, None]
            height = np.maximum(0, 1 - np.maximum(0, np.maximum(begin - x, x - end)) / sigma)
            expected.append(float((height * np.array(weights)).sum()) if b >= a else 0.0)
    longest = max([0, *passage_positions.last.tolist()])
    rounding = 1e-15 * (points + 1) * (1 + longest / sigma) * float(weight.sum())
    assert found == pytest.approx(expected, rel=1e-12, abs=rounding)
    # Where no occurrence reaches, there is nothing, not even rounding.
    assert (found[np.array(expected) == 0] == 0).all()
