"""Significance tests between systems, corrected for the number of pairs. Tables show the result as letters.

>>> better = {"q1": 0.6, "q2": 0.7, "q3": 0.9, "q4": 0.8, "q5": 0.75}
>>> worse = {"q1": 0.4, "q2": 0.55, "q3": 0.65, "q4": 0.6, "q5": 0.6}
>>> comparison = compare({"psg": worse, "plm": better}, test="t")
>>> round(comparison.p["plm", "psg"], 6), comparison.letters
(0.000529, {'psg': '', 'plm': 'a'})
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from perikope.core.errors import MissingExtra, UsageError, unknown

if TYPE_CHECKING:
    from perikope.core.arrays import Floats, Integers

Values = Sequence[float]

TRIALS = 100_000
"""Number of random assignments of signs that the randomisation test draws if there are too many to try all."""

EXACT_QUERIES = 16
"""Largest number of queries with a difference for which the randomisation test tries every assignment of signs."""

ROUNDING = 1e-12
"""Smaller differences are treated as 0, because they can result from adding the same numbers in another order."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing systems pair by pair."""

    p: Mapping[tuple[str, str], float]
    """The corrected p-value of the two-tailed test, by pair of systems. Each pair is present in both orders."""
    beaten: Mapping[str, tuple[str, ...]]
    """The systems that each system beats significantly: its mean is higher, and p is at most alpha."""
    labels: Mapping[str, str]
    """The letter of each system: a, b, c … in the order in which systems were given."""
    test: str
    correction: str
    alpha: float

    @property
    def letters(self) -> Mapping[str, str]:
        """For each system, the joined letters of the systems that it beats significantly."""
        return {name: "".join(self.labels[other] for other in others) for name, others in self.beaten.items()}


def compare(
    values: Mapping[str, Mapping[str, float]], *, test: str = "t", correction: str = "holm", alpha: float = 0.05, seed: int = 0
) -> Comparison:
    """Compare every pair of systems. `values` has the values of a measure by system, then by query id.

    - Tests, all two-tailed: `t` (Student's, paired), `wilcoxon` (signed ranks), `randomisation` (Fisher's, of the mean
      difference) and `mannwhitney` (U, which does not pair queries).
    - Corrections for the number of pairs: `holm`, `bonferroni`, `bh` (Benjamini and Hochberg) and `none`.

    With one query or without differences, p is 1. If all queries differ by the same amount, the variance of the t test
    is 0, and p is 0. `seed` is used by the randomisation test.
    """
    check_comparison(test, correction, alpha)
    columns = columns_by_query(values, paired=test != "mannwhitney")
    pairs = list(combinations(columns, 2))
    raw = list(TESTS[test]([(columns[one], columns[other]) for one, other in pairs], seed))
    corrected = dict(zip(pairs, CORRECTIONS[correction](raw), strict=True))
    p = corrected | {(other, one): value for (one, other), value in corrected.items()}
    labels = {name: label(number) for number, name in enumerate(columns)}
    mean = {name: math.fsum(column) / len(column) for name, column in columns.items()}
    beaten = {
        name: tuple(other for other in columns if mean[name] > mean[other] + ROUNDING and p[name, other] <= alpha) for name in columns
    }
    return Comparison(p, beaten, labels, test, correction, alpha)


def check_comparison(test: str, correction: str, alpha: float) -> None:
    """Raise `UsageError` if there is no such test or correction, or if alpha is not between 0 and 1."""
    if test not in TESTS:
        raise unknown("test", test, TESTS)
    if correction not in CORRECTIONS:
        raise unknown("correction", correction, CORRECTIONS)
    if not 0 < alpha < 1:
        raise UsageError(f"alpha must be between 0 and 1, such as 0.05, not {alpha}")


def check_test(test: str) -> None:
    """Raise an error if a test needs a package that is not installed. Call it before a long computation."""
    if test != "randomisation":
        scipy_stats()


def label(number: int) -> str:
    """The letter of the system with this index (from 0). Letters can be joined without spaces.

    >>> [label(number) for number in (0, 25, 26, 51, 52)]
    ['a', 'z', 'A', 'Z', '(53)']
    """
    if number < 26:
        return chr(ord("a") + number)
    return chr(ord("A") + number - 26) if number < 52 else f"({number + 1})"


def columns_by_query(values: Mapping[str, Mapping[str, float]], paired: bool) -> dict[str, list[float]]:
    """The values of each system, sorted by query id, so that results do not depend on the order of files."""
    columns = {}
    queries: set[str] | None = None
    for name, by_query in values.items():
        if not by_query:
            raise UsageError(f"{name} has no values to compare; leave it out")
        wrong = next((qid for qid, value in by_query.items() if not math.isfinite(value)), None)
        if wrong is not None:
            raise UsageError(
                f"the value of {name} for query {wrong!r} is not a finite number; correct it, or leave the query out of all systems"
            )
        if paired and queries is not None and queries != by_query.keys():
            odd = min(queries ^ by_query.keys())
            raise UsageError(
                f"this test pairs values by query, but one system has no value for query {odd!r}; evaluate all systems on the same queries"
            )
        queries = set(by_query)
        columns[name] = [by_query[qid] for qid in sorted(by_query)]
    return columns


Pairs = Sequence[tuple[Values, Values]]


def _t(pairs: Pairs, seed: int) -> Iterator[float]:
    rows = [_differences(pair) for pair in pairs]
    varied = [row for row in rows if len(row) > 1 and max(row) - min(row) > ROUNDING]
    tested = iter(scipy_stats().ttest_1samp(varied, 0.0, axis=1).pvalue.tolist() if varied else ())
    for row in rows:
        if len(row) > 1 and max(row) - min(row) > ROUNDING:
            yield next(tested)
        else:
            yield 0.0 if len(row) > 1 and any(row) else 1.0


def _wilcoxon(pairs: Pairs, seed: int) -> Iterator[float]:
    for differences in map(_differences, pairs):
        # Queries without a difference have no sign.
        moved = [_rounded(difference) for difference in differences if difference]
        yield float(scipy_stats().wilcoxon(moved).pvalue) if moved else 1.0


def _mann_whitney(pairs: Pairs, seed: int) -> Iterator[float]:
    for one, other in pairs:
        columns = [_rounded(value) for value in one], [_rounded(value) for value in other]
        same = len({*columns[0], *columns[1]}) == 1
        yield 1.0 if same else min(1.0, float(scipy_stats().mannwhitneyu(*columns, alternative="two-sided").pvalue))


def _randomisation(pairs: Pairs, seed: int) -> Iterator[float]:
    """Yield the p-value of each pair by Fisher's randomisation test.

    An assignment swaps the values of the two systems for some queries. p is the share of assignments for which the
    means differ at least as much as observed. All assignments are tried if at most `EXACT_QUERIES` queries differ.
    Otherwise, `TRIALS` random ones are drawn, and the observed one is added: `(as extreme + 1) / (drawn + 1)`.
    """
    import numpy as np

    rows = [[difference for difference in _differences(pair) if difference] for pair in pairs]
    many = [row for row in rows if len(row) > EXACT_QUERIES]
    sampled: Iterator[float] = iter(())
    if many:
        # Queries without a difference are kept as zeros, so that one matrix of signs can be used for all pairs.
        table = np.array([_differences(pair) for pair, row in zip(pairs, rows, strict=True) if len(row) > EXACT_QUERIES]).T
        sampled = iter(((_as_extreme(table, _random_signs(table.shape[0], seed)) + 1) / (TRIALS + 1)).tolist())
    for row in rows:
        if len(row) > EXACT_QUERIES:
            yield next(sampled)
        elif row:
            yield float(_as_extreme(np.array(row)[:, None], _all_signs(len(row)))[0] / 2 ** len(row))
        else:
            yield 1.0


def _as_extreme(differences: Floats, blocks: Iterator[Floats]) -> Integers:
    """For each column of differences, the number of assignments whose sum is at least as far from 0 as observed.

    `differences` has the shape (queries, pairs). Each block of `blocks` has one assignment of signs per row, with the
    shape (assignments, queries).
    """
    import numpy as np

    # The threshold is slightly lower, so that rounding errors of sums do not change the result.
    threshold = np.abs(differences.sum(axis=0)) - 1e-9 * np.abs(differences).sum(axis=0)
    counts = np.zeros(differences.shape[1], np.int64)
    for signs in blocks:
        counts += np.count_nonzero(np.abs(signs @ differences) >= threshold, axis=0)
    return counts


def _all_signs(count: int) -> Iterator[Floats]:
    import numpy as np

    numbers = np.arange(2**count)[:, None]
    yield np.where(numbers >> np.arange(count) & 1, 1.0, -1.0)


def _random_signs(count: int, seed: int, block: int = 4096) -> Iterator[Floats]:
    import numpy as np

    draw = np.random.Generator(np.random.PCG64(seed))
    for first in range(0, TRIALS, block):
        size = min(block, TRIALS - first)
        bits = np.unpackbits(draw.integers(0, 256, (size, -(-count // 8)), np.uint8), axis=1, count=count)
        yield bits.astype(np.float64) * 2 - 1


def _differences(pair: tuple[Values, Values]) -> list[float]:
    """The values of the first system minus those of the second, query by query. Rounding errors become 0."""
    differences = [one - other for one, other in zip(*pair, strict=True)]
    return [difference if abs(difference) > ROUNDING else 0.0 for difference in differences]


def _rounded(value: float) -> float:
    # Values are rounded so that rounding errors do not change ranks.
    return round(value, 12)


def scipy_stats() -> Any:
    """The statistics of scipy, which the extra `eval` installs."""
    try:
        from scipy import stats
    except ImportError:
        raise MissingExtra("scipy", "eval") from None
    return stats


def _holm(p: Sequence[float]) -> list[float]:
    """Step-down correction of Holm 1979.

    Of m p-values, the smallest is multiplied by m, the next by m - 1, and so on. None is below the one before it.
    """
    corrected, highest = [1.0] * len(p), 0.0
    for rank, number in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        highest = max(highest, min(1.0, (len(p) - rank) * p[number]))
        corrected[number] = highest
    return corrected


def _benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Step-up correction for the false discovery rate, of Benjamini and Hochberg 1995.

    Of m p-values in ascending order, each is multiplied by m / rank. None is above the one after it.
    """
    corrected, lowest = [1.0] * len(p), 1.0
    for rank, number in reversed(list(enumerate(sorted(range(len(p)), key=p.__getitem__), start=1))):
        lowest = min(lowest, len(p) / rank * p[number])
        corrected[number] = lowest
    return corrected


def _bonferroni(p: Sequence[float]) -> list[float]:
    return [min(1.0, len(p) * value) for value in p]


TESTS: Mapping[str, Callable[[Pairs, int], Iterator[float]]] = {
    "t": _t,
    "wilcoxon": _wilcoxon,
    "mannwhitney": _mann_whitney,
    "randomisation": _randomisation,
}
"""The tests by name. A test takes pairs of columns and a seed, and yields the p-value of each pair."""

CORRECTIONS: Mapping[str, Callable[[Sequence[float]], list[float]]] = {
    "holm": _holm,
    "bonferroni": _bonferroni,
    "bh": _benjamini_hochberg,
    "none": list,
}
"""The corrections by name. A correction takes p-values and returns the corrected values in the same order."""
