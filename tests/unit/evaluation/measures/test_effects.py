"""Effect sizes and confidence intervals, compared with scipy and with plain computations."""

import json
import math
import random
import statistics

import pytest

from perikope.core.errors import UsageError
from perikope.evaluation.measures import effects
from perikope.evaluation.measures.effects import differences, effect_size, interval
from perikope.evaluation.measures.significance import CORRECTIONS, TESTS, compare
from tests.cli.test_commands import run

stats = pytest.importorskip("scipy.stats")


def systems(count=3, queries=25, seed=1):
    """Values with many ties and zeros, as measures have them."""
    draw = random.Random(seed)
    return {f"s{i}": {f"q{j}": round(draw.random() * (1 + 0.2 * i), 1) for j in range(queries)} for i in range(count)}


def column(values, name):
    return [values[name][query] for query in sorted(values[name])]


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("test", TESTS)
def test_p_values_are_those_of_compare(test, correction):
    values = systems()
    comparison = compare(values, test=test, correction=correction)
    raw = compare(values, test=test, correction="none")
    pairs = differences(values, test=test, correction=correction)
    assert [(pair.one, pair.other) for pair in pairs] == [("s1", "s0"), ("s2", "s0"), ("s2", "s1")]
    for pair in pairs:
        assert pair.corrected_p == comparison.p[pair.one, pair.other]
        assert pair.p == raw.p[pair.one, pair.other]
        assert pair.difference == pytest.approx(statistics.fmean(column(values, pair.one)) - statistics.fmean(column(values, pair.other)))
        assert pair.low < pair.difference < pair.high


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_the_interval_of_t_is_that_of_scipy_and_agrees_with_p(alpha):
    for seed in range(20):
        values = systems(2, 12, seed)
        [pair] = differences(values, test="t", alpha=alpha)
        expected = stats.ttest_rel(column(values, "s1"), column(values, "s0")).confidence_interval(1 - alpha)
        assert (pair.low, pair.high) == pytest.approx((expected.low, expected.high))
        assert (pair.low > 0 or pair.high < 0) == (pair.p < alpha)


def test_the_bootstrap_is_near_that_of_scipy():
    import numpy as np

    values = systems(2, 40)
    gains = np.array(column(values, "s1")) - np.array(column(values, "s0"))
    low, high = interval(column(values, "s1"), column(values, "s0"), "wilcoxon", 0.05, 0)
    expected = stats.bootstrap((gains,), np.mean, n_resamples=20_000, method="percentile", random_state=3).confidence_interval
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=0.01)
    assert interval(column(values, "s1"), column(values, "s0"), "randomisation", 0.05, 0) == (low, high), "one seed, one interval"
    apart = interval(column(values, "s1"), column(values, "s0"), "mannwhitney", 0.05, 0)
    spread = math.hypot(*(statistics.stdev(column(values, name)) / math.sqrt(40) for name in ("s0", "s1")))
    assert apart[1] - apart[0] == pytest.approx(2 * 1.96 * spread, rel=0.05), "queries are not paired"


def test_blocks_of_the_bootstrap_do_not_change_it(monkeypatch):
    one, other = column(systems(), "s1"), column(systems(), "s0")
    whole = interval(one, other, "wilcoxon", 0.05, 0)
    monkeypatch.setattr(effects, "_BLOCK", 1000)
    assert interval(one, other, "wilcoxon", 0.05, 0) == pytest.approx(whole)


def test_effect_sizes_are_those_of_plain_computations():
    for seed in range(10):
        values = systems(2, 15, seed)
        one, other = column(values, "s1"), column(values, "s0")
        gains = [round(a - b, 12) for a, b in zip(one, other, strict=True)]
        for test in ("t", "randomisation"):
            assert effect_size(one, other, test) == pytest.approx(statistics.fmean(gains) / statistics.stdev(gains))
        moved = [gain for gain in gains if gain]
        ranks = stats.rankdata([abs(gain) for gain in moved])
        plus = sum(rank for rank, gain in zip(ranks, moved, strict=True) if gain > 0)
        assert effect_size(one, other, "wilcoxon") == pytest.approx((2 * plus - sum(ranks)) / sum(ranks))
        assert plus in (total := [stats.wilcoxon(moved).statistic, sum(ranks) - stats.wilcoxon(moved).statistic]), total
        u = stats.mannwhitneyu(one, other).statistic
        assert effect_size(one, other, "mannwhitney") == pytest.approx(2 * u / (len(one) * len(other)) - 1)


@pytest.mark.parametrize("test", TESTS)
def test_what_cannot_be_measured(test):
    same = {"a": {"1": 0.5, "2": 0.2}, "b": {"1": 0.5, "2": 0.2}}
    [pair] = differences(same, test=test)
    assert (pair.difference, pair.effect, pair.p) == (0, 0, 1)
    [pair] = differences({"a": {"1": 0.5}, "b": {"1": 0.7}}, test=test)
    assert math.isnan(pair.low)
    assert math.isnan(pair.high)
    assert pair.effect > 0


def test_a_constant_difference_has_an_infinite_effect_and_no_width():
    [pair] = differences({"a": {"1": 0.5, "2": 0.2}, "b": {"1": 0.6, "2": 0.3}}, test="t")
    assert (pair.effect, pair.p) == (math.inf, 0)
    assert (pair.low, pair.high) == pytest.approx((0.1, 0.1))
    assert pair.reversed().effect == -math.inf
    with pytest.raises(UsageError, match="alpha must be between 0 and 1"):
        differences(systems(), alpha=2)


def test_the_command_prints_them(tmp_path, capsys):
    qrels = tmp_path / "qrels"
    qrels.write_text("".join(f"{query} 0 d1 1\n" for query in range(6)))
    for name, ranks in (("a", [3, 2, 4, 2, 1, 5]), ("b", [1, 1, 2, 1, 1, 2])):
        lines = [
            f"{query} Q0 {'d1' if rank == at else f'x{rank}'} {rank} {9 - rank} t\n"
            for query, at in enumerate(ranks)
            for rank in range(1, 6)
        ]
        (tmp_path / name).write_text("".join(lines))
    runs = tmp_path / "a", tmp_path / "b"
    [pair] = differences({"a": dict(enumerate([1 / 3, 1 / 2, 1 / 4, 1 / 2, 1, 1 / 5])), "b": dict(enumerate([1, 1, 1 / 2, 1, 1, 1 / 2]))})
    out = run(capsys, "eval", qrels, *runs, "--measures", "RR", "--test", "t")[1].splitlines()
    assert out[-2].split() == ["RR", "difference", "95%", "interval", "Cohen's", "d", "p", "p", "(holm)"]
    shown = [f"{pair.difference:+.4f}", f"[{pair.low:+.4f},", f"{pair.high:+.4f}]", f"{pair.effect:+.3f}", f"{pair.p:.3g}", f"{pair.p:.3g}"]
    assert out[-1].split() == ["b", "-", "a", *shown]
    first = json.loads(run(capsys, "eval", qrels, *runs, "--measures", "RR", "--test", "t", "--json")[1].splitlines()[0])
    against_b = first["differences"]["RR"][str(tmp_path / "b")]
    assert against_b["difference"] == pytest.approx(-pair.difference)
    assert (against_b["low"], against_b["high"]) == pytest.approx((-pair.high, -pair.low))
