"""Tables of tuned parameters: the values that were tried, and those that were chosen for each system."""

from __future__ import annotations

from collections.abc import Sequence

from perikope.evaluation.experiment.extras import ExtraTable, Figure
from perikope.evaluation.experiment.outcome import Outcome, Sweep, SystemOutcome
from perikope.evaluation.experiment.report.tables import ordered, value_text

LISTED = 12
"""Number of values of a parameter that are listed. Of more values, the first, the second and the last are shown."""


def chosen_tables(outcome: Outcome) -> list[ExtraTable]:
    """One table per sweep in which systems were tuned, with one row per tuned system and one column per parameter."""
    tables = (_table(sweep) for sweep in outcome.sweeps)
    return [table for table in tables if table.rows]


def _table(sweep: Sweep) -> ExtraTable:
    tuned = [(system, system.tuned) for system in sweep.systems if system.tuned is not None and system.tuned.parameters]
    columns = tuple(dict.fromkeys(parameter for _, outcome in tuned for parameter in outcome.parameters))
    rows = tuple(("", system.name, tuple(_cell(outcome.chosen.get(column)) for column in columns)) for system, outcome in tuned)
    how = "The setting with the best mean over all training topics. "
    how += f"Values tried: {'; '.join(f'{column} {_tried(column, [system for system, _ in tuned])}' for column in columns)}."
    return ExtraTable(f"Chosen parameters: {sweep.label}", how, columns, rows)


def _cell(value: object) -> Figure | None:
    if value is None:
        return None
    number = float(value) if isinstance(value, (int, float)) else 0.0
    return Figure(number, value_text(value))


def _tried(parameter: str, systems: Sequence[SystemOutcome]) -> str:
    """The values of a parameter that were tried for any of the systems, in ascending order."""
    values = set()
    for system in systems:
        tuned = system.tuned
        if tuned is not None and parameter in tuned.parameters:
            values |= {setting[tuned.parameters.index(parameter)] for setting in tuned.settings}
    texts = list(dict.fromkeys(value_text(value) for value in sorted(values, key=ordered)))
    return ", ".join(texts) if len(texts) <= LISTED else f"{texts[0]}, {texts[1]} … {texts[-1]} ({len(texts)} values)"
