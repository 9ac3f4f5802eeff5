"""Tables over the repetitions of systems: mean and standard deviation over seeds, and significant differences.

Systems are compared by the Mann–Whitney U test over seeds, because the distribution of their values is unknown and
the seeds of two systems are not paired. The test can reach p ≤ 0.05 with four seeds per system, but not with three. If
no two systems of a table have enough seeds, systems are compared over topics instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from perikope.evaluation.experiment.extras import ExtraTable, Figure
from perikope.evaluation.experiment.outcome import Outcome, Sweep, SystemOutcome, average
from perikope.evaluation.experiment.report.tables import figure, ranges
from perikope.evaluation.measures.significance import compare, label

ALPHA = 0.05
_OVER_SEEDS = (
    "Mean ± standard deviation over seeds, whose number stands behind the name; letters: significantly better than these systems, "
)
_BY_SEEDS = "Mann–Whitney U test over seeds, p ≤ 0.05, not corrected for the number of pairs."
_BY_TOPICS = "paired t-test over topics, each the mean over seeds, p ≤ 0.05, corrected after Holm: so few seeds cannot tell systems apart."
_BOXES = (
    " The page shows the seeds of each measure as boxes: the middle half with the median; whiskers reach the last seed within 1.5 times "
    "the box; small dots lie beyond, the large one is the mean."
)


def repetition_tables(outcome: Outcome) -> list[ExtraTable]:
    """One table per sweep and title of a table, with the systems that have repetitions."""
    groups = dict.fromkeys(system.table for sweep in outcome.sweeps for system in sweep.systems if system.repetitions)
    tables = (_table(outcome.measures, group, sweep) for group in groups for sweep in outcome.sweeps)
    return [table for table in tables if table.rows]


def _table(measures: Sequence[str], group: str, sweep: Sweep) -> ExtraTable:
    systems = [system for system in sweep.systems if system.repetitions and group in (system.table, *system.also_in)]
    seeds = [len(system.repetitions) for system in systems]
    is_enough = any(2 / math.comb(one + other, one) <= ALPHA for one, other in combinations(seeds, 2))
    columns = [_column(systems, measure, over_seeds=is_enough) for measure in measures]
    rows = tuple(
        (label(number), f"{system.name} ({seeds[number]})", tuple(column[number] for column in columns))
        for number, system in enumerate(systems)
    )
    repeated = [system for system in systems if len(system.repetitions) > 1]
    spread = {measure: {system.name: [*system.mean_by_seed(measure).values()] for system in repeated} for measure in measures if repeated}
    how = _OVER_SEEDS + (_BY_SEEDS if is_enough else _BY_TOPICS) + (_BOXES if spread else "")
    return ExtraTable(f"{group or 'Over seeds'}: {sweep.label}", how, tuple(measures), rows, spread)


def _column(systems: Sequence[SystemOutcome], measure: str, *, over_seeds: bool) -> list[Figure]:
    letters = _letters(systems, measure, over_seeds=over_seeds)
    values = {system.name: [*system.mean_by_seed(measure).values()] for system in systems}
    best = max((average(of_seeds) for of_seeds in values.values()), default=0.0)
    return [deviation_figure(of_seeds, best, ranges(letters.get(name, ""))) for name, of_seeds in values.items()]


def _letters(systems: Sequence[SystemOutcome], measure: str, *, over_seeds: bool) -> Mapping[str, str]:
    """For each system, the letters of the systems that it beats significantly, over seeds or over topics."""
    if len(systems) < 2:
        return {}
    if over_seeds:
        by_seed = {system.name: system.mean_by_seed(measure) for system in systems}
        return compare(by_seed, test="mannwhitney", correction="none", alpha=ALPHA).letters
    by_topic = {system.name: system.values[measure] for system in systems}
    return compare(by_topic, test="t", correction="holm", alpha=ALPHA).letters


def deviation_figure(values: Iterable[float], best: float | None = None, beats: str = "") -> Figure:
    """A cell with the mean and the standard deviation of values; without the deviation if there is one value.

    The mean is marked as the best if it is printed like `best`. `beats` has the letters of significantly worse systems.
    """
    listed = list(values)
    mean = average(listed)
    text = figure(mean)
    if len(listed) > 1:
        text = f"{text} ± {figure(deviation(listed))}"
    return Figure(mean, text, best is not None and figure(mean) == figure(best), beats)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of at least two values, estimated from a sample."""
    mean = average(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
