"""Numbers in falling order, as sorting by comparison gives them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.kernels.order import best_first, falling, rows_of_largest

numbers = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, -1.0, 5e-324, -5e-324, np.inf, -np.inf])


@given(st.lists(numbers, max_size=40))
def test_falling(values):
    assert falling(np.array(values, np.float64)).tolist() == sorted(range(len(values)), key=lambda i: -values[i])


def test_falling_of_many_that_are_mostly_equal():
    values = np.random.default_rng(7).integers(-3, 4, 5000) / 7
    assert falling(values).tolist() == np.argsort(-values, kind="stable").tolist()


@given(st.lists(st.tuples(numbers, st.booleans()), max_size=40), st.booleans(), st.integers(1, 45))
def test_rows_of_largest(rows, restricted, most):
    values, allowed = np.array([value for value, _ in rows], np.float64), np.array([flag for _, flag in rows], bool)
    kept = [i for i in range(len(rows)) if allowed[i] or not restricted]
    least = sorted([values[i] for i in kept], reverse=True)[most - 1] if len(kept) >= most else -np.inf
    assert rows_of_largest(values, allowed if restricted else allowed[:0], most).tolist() == [i for i in kept if values[i] >= least]


@given(seed=st.integers(0, 2**32), most=st.integers(1, 6000), digits=st.integers(0, 9), power=st.sampled_from([-300, -5, 1, 150]))
def test_rows_of_largest_of_many(seed, most, digits, power):
    chance = np.random.default_rng(seed)
    values, allowed = np.round(chance.normal(size=5000), digits) * 10.0**power, chance.random(5000) < 0.7
    kept = np.flatnonzero(allowed)
    least = np.sort(values[kept])[-most] if kept.size >= most else -np.inf
    assert rows_of_largest(values, allowed, most).tolist() == kept[values[kept] >= least].tolist()


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from([0, 1, 2, 30, 1000, 5000]),
    kind=st.sampled_from(["few values", "many values", "near each other", "any numbers"]),
    most=st.sampled_from([1, 10, 700]),
)
def test_the_best_are_first_and_ties_are_found(seed, count, kind, most):
    random = np.random.default_rng(seed)
    scores = random.integers(0, 40, count) / 8.0
    if kind == "many values":
        scores = random.random(count) * 30
    elif kind == "near each other":
        scores = np.where(random.random(count) < 0.01, 1e300, 1.0 + random.integers(0, 60, count) * 2.0**-52)
    elif kind == "any numbers":
        special = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1.5], count)
        scores = np.where(random.random(count) < 0.5, special, random.standard_normal(count))
    numbers = random.permutation(count)
    found, sorted_scores, tied, first_of_tie = best_first(numbers, scores, most)
    order = np.argsort(-scores, kind="stable")
    np.testing.assert_array_equal(found, numbers[order])
    np.testing.assert_array_equal(sorted_scores, scores[order])
    expected = []
    for i in range(count):
        first = i
        while first > 0 and sorted_scores[first - 1] == sorted_scores[i]:
            first -= 1
        if first < most and (first < i or (i + 1 < count and sorted_scores[i + 1] == sorted_scores[i])):
            expected.append((i, first))
    assert list(zip(tied.tolist(), first_of_tie.tolist(), strict=True)) == expected
