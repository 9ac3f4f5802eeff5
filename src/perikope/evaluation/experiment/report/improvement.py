"""The table of the improvement over a reference system in percent, with a star where it is significant."""

from __future__ import annotations

from collections.abc import Sequence

from perikope.evaluation.experiment.extras import ExtraTable, Figure
from perikope.evaluation.experiment.outcome import ComparisonSettings, Outcome, Sweep, SystemOutcome
from perikope.evaluation.experiment.report.tables import change_text, described_test, figure
from perikope.evaluation.measures.significance import CORRECTIONS, compare

STAR = "*"


def improvement_tables(outcome: Outcome) -> list[ExtraTable]:
    """A list of one table with all sweeps that have the reference system; empty if there is nothing to compare."""
    name = outcome.comparison.reference
    rows = [row for sweep in outcome.sweeps if name for row in _rows(outcome, sweep)]
    if not rows:
        return []
    heads = [head for measure in outcome.measures for head in (measure, f"{measure}: change")]
    how = (
        f"Change of the mean over topics against “{name}”, in percent. "
        f"{STAR} marks a system that is significantly better: {described_test(outcome.comparison, 'comparisons with it')}."
    )
    return [ExtraTable(f"Improvement over “{name}”", how, tuple(heads), tuple(rows))]


def _rows(outcome: Outcome, sweep: Sweep) -> list[tuple[str, str, tuple[Figure | None, ...]]]:
    reference = next((system for system in sweep.systems if system.name == outcome.comparison.reference), None)
    systems = [system for system in sweep.systems if not system.table or system is reference]
    if reference is None or len(systems) < 2:
        return []
    columns = [_column(systems, reference, measure, outcome.comparison) for measure in outcome.measures]
    of_sweep = f", {sweep.label}" if len(outcome.sweeps) > 1 else ""
    return [
        ("", f"{system.name}{of_sweep}", tuple(cell for column in columns for cell in column[place]))
        for place, system in enumerate(systems)
    ]


def _column(
    systems: Sequence[SystemOutcome], reference: SystemOutcome, measure: str, settings: ComparisonSettings
) -> list[tuple[Figure, Figure | None]]:
    """For each system, a cell with its mean and a cell with its change in percent."""
    others = [system for system in systems if system is not reference and system.values[measure] and reference.values[measure]]
    # The systems are only compared with the reference, so only these comparisons are corrected for.
    p = [_p(system, reference, measure, settings) for system in others]
    corrected = dict(zip((system.name for system in others), CORRECTIONS[settings.correction](p), strict=True))
    base = reference.mean(measure)
    cells = []
    for system in systems:
        mean = system.mean(measure)
        star = STAR if mean > base and corrected.get(system.name, 1.0) <= settings.alpha else ""
        change = 100 * (mean / base - 1) if base else None
        cells.append((Figure(mean, figure(mean), beats=star), None if change is None else Figure(change, change_text(change))))
    return cells


def _p(system: SystemOutcome, reference: SystemOutcome, measure: str, settings: ComparisonSettings) -> float:
    pair = {"reference": reference.values[measure], "system": system.values[measure]}
    return compare(pair, test=settings.test, correction="none", alpha=settings.alpha).p["reference", "system"]
