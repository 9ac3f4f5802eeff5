import itertools
import math
import sys

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.core.errors import MissingExtra, UsageError
from perikope.evaluation.measures import significance
from perikope.evaluation.measures.significance import CORRECTIONS, TESTS, compare

every_test = pytest.mark.parametrize("test", TESTS)


def columns(*values: list[float]) -> dict[str, dict[str, float]]:
    return {f"s{number}": {f"q{query}": value for query, value in enumerate(column)} for number, column in enumerate(values)}


def p_of(one: list[float], other: list[float], test: str) -> float:
    return compare(columns(one, other), test=test, correction="none").p["s0", "s1"]


def random_columns(queries: int, systems: int = 2, seed: int = 1) -> list[list[float]]:
    draw = np.random.default_rng(seed)
    return [(draw.random(queries) * 0.5 + 0.04 * number).tolist() for number in range(systems)]


# Of few values, so that there are ties and zeros, and of many.
values = st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0]) | st.floats(0, 1).map(lambda value: round(value, 6))
pairs = st.integers(1, 40).flatmap(lambda size: st.tuples(*[st.lists(values, min_size=size, max_size=size)] * 2))


@every_test
@settings(max_examples=50, deadline=None)
@given(pair=pairs)
def test_p_is_a_probability_and_the_same_both_ways(test: str, pair: tuple[list[float], list[float]]) -> None:
    there, back = p_of(*pair, test=test), p_of(*pair[::-1], test=test)
    assert 0 <= there <= 1
    assert there == pytest.approx(back, abs=1e-12)


@pytest.mark.parametrize("queries", [3, 12, 60, 231])
def test_p_is_that_of_scipy(queries: int) -> None:
    one, other = random_columns(queries)
    assert p_of(one, other, "t") == pytest.approx(scipy.stats.ttest_rel(one, other).pvalue, rel=1e-9)
    assert p_of(one, other, "wilcoxon") == pytest.approx(scipy.stats.wilcoxon(one, other).pvalue, rel=1e-9)
    assert p_of(one, other, "mannwhitney") == pytest.approx(scipy.stats.mannwhitneyu(one, other).pvalue, rel=1e-9)


def plain_randomisation(one: list[float], other: list[float]) -> float:
    differences = [a - b for a, b in zip(one, other, strict=True)]
    ways = list(itertools.product((1, -1), repeat=len(differences)))
    extreme = abs(sum(differences)) - 1e-9
    return sum(abs(sum(map(math.prod, zip(way, differences, strict=True)))) >= extreme for way in ways) / len(ways)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 8).flatmap(lambda size: st.tuples(*[st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.7]), min_size=size, max_size=size)] * 2))
)
def test_randomisation_tries_every_assignment_where_it_can(pair: tuple[list[float], list[float]]) -> None:
    assert p_of(*pair, test="randomisation") == pytest.approx(plain_randomisation(*pair), abs=1e-12)


def test_randomisation_by_sampling_is_near_to_all_assignments(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = random_columns(14)
    exact = p_of(one, other, "randomisation")
    monkeypatch.setattr(significance, "EXACT_QUERIES", 0)
    sampled = p_of(one, other, "randomisation")
    assert sampled != exact
    # Three standard errors of a share of 100,000.
    assert sampled == pytest.approx(exact, abs=3 * math.sqrt(exact * (1 - exact) / significance.TRIALS))


def test_randomisation_is_near_to_that_of_scipy() -> None:
    one, other = random_columns(60)
    theirs = scipy.stats.permutation_test(
        (one, other), lambda a, b, axis: np.mean(a - b, axis=axis), permutation_type="samples", vectorized=True, n_resamples=50_000, rng=0
    )
    assert p_of(one, other, "randomisation") == pytest.approx(theirs.pvalue, abs=0.01)


def test_randomisation_depends_on_the_seed_alone() -> None:
    systems = columns(*random_columns(60, 4))
    first = compare(systems, test="randomisation", seed=7)
    assert first == compare(systems, test="randomisation", seed=7)
    assert first.p != compare(systems, test="randomisation", seed=8).p
    reordered = {name: dict(reversed(by_query.items())) for name, by_query in reversed(systems.items())}
    assert compare(reordered, test="randomisation", seed=7).p == pytest.approx(first.p)
    alone = compare({name: systems[name] for name in ("s0", "s3")}, test="randomisation", correction="none", seed=7)
    assert alone.p["s0", "s3"] == compare(systems, test="randomisation", correction="none", seed=7).p["s0", "s3"]


# What cannot be decided.


@every_test
def test_equal_systems_do_not_differ(test: str) -> None:
    column = random_columns(30)[0]
    assert p_of(column, column, test) == 1
    assert p_of(column, [value + 1e-15 for value in column], test) == pytest.approx(1)
    assert p_of([0.3] * 5, [0.3] * 5, test) == 1
    assert p_of([0.1 + 0.2] * 5, [0.3] * 5, test) == 1


@every_test
def test_one_query_says_nothing(test: str) -> None:
    assert p_of([0.9], [0.1], test) == 1


def test_a_difference_without_variance() -> None:
    one, other = [0.5] * 6, [0.4] * 6
    assert p_of(one, other, "t") == 0
    assert p_of(one, other, "wilcoxon") == pytest.approx(scipy.stats.wilcoxon([0.1] * 6).pvalue)
    assert p_of(one, other, "randomisation") == pytest.approx(2 / 2**6)
    assert 0 < p_of(one, other, "mannwhitney") < 0.01


@every_test
def test_one_query_that_differs(test: str) -> None:
    assert 0.2 <= p_of([0.5, 0.5, 0.5, 0.9], [0.5, 0.5, 0.5, 0.1], test) <= 1


# Corrections and letters.


def test_corrections() -> None:
    p = [0.01, 0.04, 0.03, 0.005]
    assert CORRECTIONS["holm"](p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert CORRECTIONS["bonferroni"](p) == pytest.approx([0.04, 0.16, 0.12, 0.02])
    assert CORRECTIONS["bh"](p) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert CORRECTIONS["none"](p) == p
    assert [correct([]) for correct in CORRECTIONS.values()] == [[]] * 4


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections_by_their_definitions(p: list[float]) -> None:
    assert CORRECTIONS["bh"](p) == pytest.approx(scipy.stats.false_discovery_control(p), abs=1e-12)
    order = sorted(range(len(p)), key=p.__getitem__)
    for rank, number in enumerate(order):
        stepped = max((len(p) - before) * p[order[before]] for before in range(rank + 1))
        assert CORRECTIONS["holm"](p)[number] == pytest.approx(min(1, stepped), abs=1e-12)
    assert all(one <= corrected <= 1 for correct in CORRECTIONS.values() for one, corrected in zip(p, correct(p), strict=True))


def test_letters_name_those_that_a_system_beats() -> None:
    draw = np.random.default_rng(3)
    base = draw.random(40) * 0.2
    near, far, farther = (base + shift + draw.random(40) * 0.01 for shift in (0.0, 0.3, 0.5))
    systems = columns(base.tolist(), farther.tolist(), near.tolist(), far.tolist())
    comparison = compare(systems)
    assert comparison.labels == {"s0": "a", "s1": "b", "s2": "c", "s3": "d"}
    assert comparison.letters == {"s0": "", "s1": "acd", "s2": "a", "s3": "ac"}
    assert comparison.beaten["s3"] == ("s0", "s2")
    assert set(comparison.p) == {(one, other) for one in systems for other in systems if one != other}
    assert (comparison.test, comparison.correction, comparison.alpha) == ("t", "holm", 0.05)
    assert compare(systems, alpha=1e-300).letters == dict.fromkeys(systems, "")


def test_one_system_beats_nobody() -> None:
    comparison = compare(columns([0.5, 0.6]))
    assert comparison.p == {}
    assert comparison.letters == {"s0": ""}


def test_more_correction_never_finds_more() -> None:
    systems = columns(*random_columns(25, 5))
    found = {name: sum(map(len, compare(systems, correction=name, alpha=0.1).beaten.values())) for name in CORRECTIONS}
    assert found["bonferroni"] <= found["holm"] <= found["bh"] <= found["none"]


def test_mann_whitney_does_not_pair_queries() -> None:
    uneven = {"s0": {"seed1": 0.1, "seed2": 0.2, "seed3": 0.15}, "s1": {"run7": 0.8, "run8": 0.9}}
    assert compare(uneven, test="mannwhitney").p["s0", "s1"] == pytest.approx(0.2)
    with pytest.raises(UsageError, match="one system has no value for query 'run7'"):
        compare(uneven)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"test": "z"}, "unknown test 'z'.* valid: t, wilcoxon, mannwhitney, randomisation"),
        ({"correction": "sidak"}, "unknown correction 'sidak'.* valid: holm, bonferroni, bh, none"),
        ({"alpha": 0.0}, "alpha must be between 0 and 1"),
        ({"alpha": float("nan")}, "alpha must be between 0 and 1"),
    ],
)
def test_a_wrong_setting_is_answered_with_what_there_is(asked: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compare(columns([0.1], [0.2]), **asked)  # type: ignore[arg-type]


def test_values_that_are_none_are_refused() -> None:
    with pytest.raises(UsageError, match="s0 for query 'q1' is not a finite number; correct it, or leave the query out"):
        compare(columns([0.1, math.nan], [0.1, 0.2]))
    with pytest.raises(UsageError, match="s0 has no values"):
        compare({"s0": {}})


def test_a_missing_scipy_is_answered_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingExtra, match=r"pip install '.*\[eval\]'"):
        compare(columns(*random_columns(5)))
    assert compare(columns(*random_columns(5)), test="randomisation").p
