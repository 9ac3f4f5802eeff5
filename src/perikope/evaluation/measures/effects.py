"""How much two systems differ: mean difference, its confidence interval, effect size and p-value, pair by pair.

>>> better = {"q1": 0.6, "q2": 0.7, "q3": 0.9, "q4": 0.8, "q5": 0.75}
>>> worse = {"q1": 0.4, "q2": 0.55, "q3": 0.65, "q4": 0.6, "q5": 0.6}
>>> [pair] = differences({"psg": worse, "plm": better}, test="t")
>>> pair.one, pair.other, round(pair.difference, 3), round(pair.low, 3), round(pair.high, 3), round(pair.effect, 3)
('plm', 'psg', 0.19, 0.138, 0.242, 4.542)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from perikope.evaluation.measures.significance import CORRECTIONS, ROUNDING, TESTS, Values, check_comparison, columns_by_query, scipy_stats

if TYPE_CHECKING:
    import numpy as np

    from perikope.core.arrays import Floats

RESAMPLES = 10_000
"""Number of resamples of the bootstrap."""
_BLOCK = 1 << 22
"""Number of values that are drawn at once."""

COHEN, RANK_BISERIAL = "Cohen's d", "rank-biserial r"
EFFECTS = {"t": COHEN, "randomisation": COHEN, "wilcoxon": RANK_BISERIAL, "mannwhitney": RANK_BISERIAL}
"""The effect size that belongs to each test."""


@dataclass(frozen=True, slots=True)
class PairDifference:
    """The difference of two systems: the first minus the second."""

    one: str
    other: str
    difference: float
    """The mean of the first system minus the mean of the second."""
    low: float
    """The lower end of the confidence interval of the difference; NaN with one query."""
    high: float
    """The upper end of the confidence interval of the difference; NaN with one query."""
    effect: float
    """The effect size; see `effect_size`. It is infinite if all queries differ by the same amount."""
    p: float
    """The p-value of the two-tailed test, not corrected."""
    corrected_p: float
    """The p-value, corrected for the number of pairs."""

    def reversed(self) -> PairDifference:
        """The second system minus the first."""
        return replace(
            self, one=self.other, other=self.one, difference=-self.difference, low=-self.high, high=-self.low, effect=-self.effect
        )


def differences(
    values: Mapping[str, Mapping[str, float]], *, test: str = "t", correction: str = "holm", alpha: float = 0.05, seed: int = 0
) -> list[PairDifference]:
    """The differences of all pairs of systems, each later system minus each earlier one.

    The parameters are those of `significance.compare`. The confidence level is `1 - alpha`, for each pair on its own:
    the correction applies to p only. With the test `t` the interval is Student's, so it excludes 0 if and only if the
    uncorrected p is below `alpha`. With the other tests it is the percentile bootstrap of the mean difference, with
    10,000 resamples of the queries.
    """
    check_comparison(test, correction, alpha)
    columns = columns_by_query(values, paired=test != "mannwhitney")
    pairs = [(later, earlier) for earlier, later in combinations(columns, 2)]
    raw = list(TESTS[test]([(columns[one], columns[other]) for one, other in pairs], seed))
    corrected = CORRECTIONS[correction](raw)
    return [
        PairDifference(
            one,
            other,
            _mean(columns[one]) - _mean(columns[other]),
            *interval(columns[one], columns[other], test, alpha, seed),
            effect_size(columns[one], columns[other], test),
            p,
            corrected_p,
        )
        for (one, other), p, corrected_p in zip(pairs, raw, corrected, strict=True)
    ]


def effect_size(one: Values, other: Values, test: str) -> float:
    """The effect size that belongs to a test; positive if the first system is better, 0 without a difference.

    - `t` and `randomisation`: Cohen's d of paired values, the mean of the differences divided by their standard
      deviation (Cohen 1988, d_z).
    - `wilcoxon`: the matched-pairs rank-biserial correlation `(W+ - W-) / (W+ + W-)` (Kerby 2014), from -1 to 1. W+ is
      the sum of the ranks of the queries on which the first system is better.
    - `mannwhitney`: the rank-biserial correlation `2 U / (n m) - 1`, from -1 to 1: how much more often a value of the
      first system is the larger one.
    """
    import numpy as np

    first, second = (np.round(np.array(values, float), 12) for values in (one, other))
    if test == "mannwhitney":
        return float(np.sign(first[:, None] - second[None, :]).mean())
    gains = _differences(first, second)
    if not gains.any():
        return 0.0
    if test == "wilcoxon":
        moved = gains[gains != 0]
        ranks = _ranks(np.round(np.abs(moved), 12))
        return float((ranks * np.sign(moved)).sum() / ranks.sum())
    spread = float(gains.std(ddof=1)) if gains.size > 1 and np.ptp(gains) > ROUNDING else 0.0
    return float(gains.mean()) / spread if spread else math.copysign(math.inf, float(gains.mean()))


def interval(one: Values, other: Values, test: str, alpha: float, seed: int) -> tuple[float, float]:
    """The confidence interval of the mean difference; see `differences`. NaN with fewer than two queries."""
    import numpy as np

    first, second = np.array(one, float), np.array(other, float)
    if min(first.size, second.size) < 2:
        return math.nan, math.nan
    draw = np.random.Generator(np.random.PCG64(seed))
    if test == "mannwhitney":
        means = _resampled(first, draw) - _resampled(second, draw)
    else:
        gains = _differences(first, second)
        if test == "t":
            reach = float(scipy_stats().t.ppf(1 - alpha / 2, gains.size - 1)) * float(gains.std(ddof=1)) / math.sqrt(gains.size)
            return float(gains.mean()) - reach, float(gains.mean()) + reach
        means = _resampled(gains, draw)
    low, high = np.quantile(means, [alpha / 2, 1 - alpha / 2]).tolist()
    return low, high


def _resampled(values: Floats, draw: np.random.Generator) -> Floats:
    """The means of random resamples of the values, with replacement."""
    import numpy as np

    rows = max(1, _BLOCK // values.size)
    blocks = [
        values[draw.integers(0, values.size, (min(rows, RESAMPLES - first), values.size))].mean(axis=1)
        for first in range(0, RESAMPLES, rows)
    ]
    return np.concatenate(blocks)


def _differences(first: Floats, second: Floats) -> Floats:
    """The values of the first system minus those of the second, query by query. Rounding errors become 0."""
    import numpy as np

    gains = first - second
    cleaned: Floats = np.where(np.abs(gains) > ROUNDING, gains, 0.0)
    return cleaned


def _ranks(values: Floats) -> Floats:
    """The ranks of values, from 1; equal values share the mean of their ranks."""
    import numpy as np

    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = ((last - counts + 1 + last) / 2)[group]
    return ranks


def _mean(values: Values) -> float:
    return math.fsum(values) / len(values)
