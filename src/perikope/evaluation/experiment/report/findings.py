"""The content of a report in all formats: figures, letters of significantly worse systems, and settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from perikope.evaluation.experiment.extras import ExtraFigure, ExtraTable, Figure
from perikope.evaluation.experiment.outcome import Outcome, Sweep, SystemOutcome
from perikope.evaluation.experiment.report.beside import Beside, beside_tables, compare_published
from perikope.evaluation.experiment.report.chosen import chosen_tables
from perikope.evaluation.experiment.report.improvement import improvement_tables
from perikope.evaluation.experiment.report.progressions import progressions
from perikope.evaluation.experiment.report.repetitions import repetition_tables
from perikope.evaluation.experiment.report.tables import clean, counted, described_test, figure, ranges, value_text
from perikope.evaluation.measures.significance import compare, label
from perikope.evaluation.tuning.outcome import TuningOutcome


@dataclass(frozen=True, slots=True)
class Row:
    """The row of a system in a table."""

    letter: str
    """The letter that stands for the system, a for the first one."""
    system: SystemOutcome
    figures: tuple[Figure, ...]
    """One figure per measure."""


@dataclass(frozen=True, slots=True)
class SweepTable:
    """The systems of a sweep that are not in a separate table."""

    label: str
    rows: tuple[Row, ...]

    def topics(self, measures: Iterable[str]) -> tuple[int, ...]:
        """The distinct numbers of topics that the systems were measured on, ascending."""
        return tuple(sorted({len(row.system.values[measure]) for row in self.rows for measure in measures}))


@dataclass(frozen=True, slots=True)
class Overview:
    """A table of the main measure, with one column per sweep."""

    measure: str
    labels: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[Figure | None, ...]], ...]
    """The letter, name and figures of each system. A figure is None if the sweep lacks the system.

    Letters are empty if the sweeps have different systems, because a system then has different letters.
    """


@dataclass(frozen=True, slots=True)
class Findings:
    """An outcome with its tables, ready to be written in any format."""

    outcome: Outcome
    tables: tuple[SweepTable, ...]
    overview: Overview | None
    """None if there are fewer than two sweeps."""
    topics: tuple[str, ...]
    """The number of topics as a phrase, or one phrase per sweep if sweeps have different numbers."""
    legend: str
    """A text that explains figures and letters."""
    extra: tuple[ExtraTable, ...] = ()
    """Tables after those of the sweeps."""
    figures: tuple[ExtraFigure, ...] = ()
    """Figures after all tables."""
    besides: tuple[Beside, ...] = ()
    """Published tables with our values, which are also among `extra`."""


def find(outcome: Outcome, extra: Sequence[ExtraTable] = ()) -> Findings:
    """Make the tables and figures of an outcome. `extra` has further tables."""
    tables = tuple(table for sweep in outcome.sweeps if (table := _table(outcome, sweep)).rows or not sweep.systems)
    topics = _topics(tables, outcome.measures)
    legend = _legend(outcome, topics, any(table.rows for table in tables))
    systems = [(sweep.label, system) for sweep in outcome.sweeps for system in sweep.systems]
    learned = _merged([(sweep, system.name, table) for sweep, system in systems for table in system.tables])
    drawn = _merged([(sweep, system.name, drawing) for sweep, system in systems for drawing in system.figures])
    others = [
        *repetition_tables(outcome), *improvement_tables(outcome), *chosen_tables(outcome), *learned, *extra, *outcome.tables,
    ]  # fmt: skip
    besides = compare_published(outcome, others)
    return Findings(
        outcome,
        tables,
        _overview(outcome, tables),
        topics,
        legend,
        (*others, *beside_tables(besides)),
        (*progressions(outcome), *drawn, *outcome.figures),
        tuple(besides),
    )


Shown = TypeVar("Shown", ExtraTable, ExtraFigure)


def _merged(learned: Sequence[tuple[str, str, Shown]]) -> list[Shown]:
    """The tables or figures of systems, given with the label of the sweep and the name of the system.

    Systems that have learned the same share one table. Titles have the names of the systems and, if a system has
    learned different things in several sweeps, the label of the first sweep.
    """
    merged: list[tuple[Shown, str, list[str]]] = []
    for sweep, name, shown in learned:
        same = next((names for other, _, names in merged if other == shown), None)
        if same is None:
            merged.append((shown, sweep, [name]))
        elif name not in same:
            same.append(name)
    titles = [f"{shown.title}: {'; '.join(names)}" for shown, _, names in merged]
    return [
        replace(shown, title=title if titles.count(title) == 1 else f"{title}, {sweep}")
        for title, (shown, sweep, _) in zip(titles, merged, strict=True)
    ]


def _topics(tables: Sequence[SweepTable], measures: Sequence[str]) -> tuple[str, ...]:
    """The number of topics as one phrase per table, or as one phrase if all tables have the same number.

    If the systems of a table have different numbers of topics, the phrase has the smallest and the largest.
    """
    counts = [table.topics(measures) or (0,) for table in tables] or [(0,)]
    if len(set(counts)) == 1:
        return (_between(counts[0]),)
    return tuple(f"{table.label}: {_between(count)}" for table, count in zip(tables, counts, strict=True))


def _between(counts: Sequence[int]) -> str:
    fewest = f"{counts[0]:,} to " if len(counts) > 1 else ""
    return f"{fewest}{counted(counts[-1], 'topic')}"


def _table(outcome: Outcome, sweep: Sweep) -> SweepTable:
    sweep = replace(sweep, systems=tuple(system for system in sweep.systems if not system.table))
    columns = [_figures(outcome, sweep, measure) for measure in outcome.measures]
    return SweepTable(
        sweep.label,
        tuple(Row(label(number), system, tuple(column[number] for column in columns)) for number, system in enumerate(sweep.systems)),
    )


def _figures(outcome: Outcome, sweep: Sweep, measure: str) -> list[Figure]:
    values = {system.name: system.values[measure] for system in sweep.systems}
    settings = outcome.comparison
    letters: Mapping[str, str] = {}
    if len(values) > 1 and all(values.values()):
        letters = compare(values, test=settings.test, correction=settings.correction, alpha=settings.alpha).letters
    means = [system.mean(measure) for system in sweep.systems]
    best = _best(means)
    return [
        Figure(mean, figure(mean), figure(mean) == best, ranges(letters.get(system.name, "")))
        for mean, system in zip(means, sweep.systems, strict=True)
    ]


def _best(means: Iterable[float]) -> str:
    # Means are compared as printed. Otherwise one of two equal figures could be bold, which would look like an error.
    return figure(max(means, default=0.0))


def _overview(outcome: Outcome, tables: Sequence[SweepTable]) -> Overview | None:
    if len(tables) < 2 or not outcome.measures:
        return None
    columns = [{row.system.name: row.figures[0] for row in table.rows} for table in tables]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows: tuple[tuple[str, str, tuple[Figure | None, ...]], ...]
    if all(list(column) == names for column in columns):
        rows = tuple((label(number), name, tuple(column[name] for column in columns)) for number, name in enumerate(names))
    else:
        bare = [{name: replace(cell, beats="") for name, cell in column.items()} for column in columns]
        rows = tuple(("", name, tuple(column.get(name) for column in bare)) for name in names)
    return Overview(outcome.measures[0], tuple(table.label for table in tables), rows)


def _legend(outcome: Outcome, topics: Sequence[str], is_compared: bool) -> str:
    if not is_compared:
        return "There are no systems."
    means = f"Means over {topics[0]}" if len(topics) == 1 else f"Means over topics ({', '.join(topics)})"
    return (
        f"{means}; the best of each column is bold. Raised letters name the systems that a "
        f"figure beats significantly: {described_test(outcome.comparison, 'pairs')}; "
        "a–d stands for a, b, c and d."
    )


def chosen_text(chosen: Mapping[str, object]) -> str:
    """One line with the chosen value of each parameter.

    >>> chosen_text({"alpha": 0.3, "mu": 1000})
    'alpha = 0.3, mu = 1000'
    """
    return ", ".join(f"{name} = {value_text(value)}" for name, value in chosen.items()) or "nothing"


def tuning_lines(tuned: TuningOutcome) -> list[str]:
    """Lines that describe the tuning: one for all training topics, then one per fold."""
    on = f" on {counted(tuned.topics, 'topic')}" if tuned.topics else ""
    tried = f"{counted(len(tuned.scores), 'setting')} tried for {tuned.measure}{on}"
    spread = f", from {figure(min(tuned.scores))} to {figure(max(tuned.scores))}" if tuned.scores else ""
    lines = [f"{tried}{spread}; the best: {chosen_text(tuned.chosen)}", *([tuned.idle_note] if tuned.idle else [])]
    for number, fold in enumerate(tuned.folds, 1):
        lines.append(
            f"fold {number} ({counted(fold.topics, 'topic')}): {chosen_text(fold.chosen)}; "
            f"{figure(fold.training_score)} on the other folds, {figure(fold.score)} on its own"
        )
    return lines


def remarks(system: SystemOutcome) -> list[str]:
    """The lines below the settings of a system: its tuning, then its notes."""
    return [line for line in (*(tuning_lines(system.tuned) if system.tuned else ()), *system.notes) if clean(line)]
