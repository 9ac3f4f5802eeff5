"""Published figures beside ours: the tables of a paper, with our value and the difference for each cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perikope.evaluation.experiment.extras import ExtraTable, Figure
from perikope.evaluation.experiment.outcome import Outcome, Sweep, SystemOutcome
from perikope.evaluation.experiment.published import MEASURES, PARAMETERS, PublishedCell, PublishedRow, PublishedTable
from perikope.evaluation.experiment.report.repetitions import deviation
from perikope.evaluation.experiment.report.spreadsheet import csv_line, guarded
from perikope.evaluation.experiment.report.tables import change_text, figure, value_text

TITLE = "Beside the paper"


@dataclass(frozen=True, slots=True)
class Ours:
    """Our value for one published cell."""

    value: float
    text: str
    """The value in the unit of the paper."""
    change: float | None = None
    """The improvement over the reference of the experiment, in percent. None if there is no reference."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A published table with our values."""

    title: str
    published: PublishedTable
    rows: tuple[tuple[PublishedRow, tuple[Ours | None, ...]], ...]
    """Each published row with our values, one per column. A value is None if the experiment has none."""
    remark: str
    """What our values are, or why there are none."""


def compare_published(outcome: Outcome, others: Sequence[ExtraTable]) -> list[Beside]:
    """The published tables of an outcome, each once per set of topics. `others` has the other tables of the report."""
    besides = []
    for table in outcome.published:
        if table.beside not in (MEASURES, PARAMETERS):
            besides.append(_beside_table(table, others))
            continue
        names = dict.fromkeys(sweep.topics for sweep in outcome.sweeps if table.topics in ("", sweep.topics))
        for name in names:
            sweeps = [sweep for sweep in outcome.sweeps if sweep.topics == name]
            of_set = f", {name}" if len(names) > 1 else ""
            rows = tuple((row, _ours_of_row(table, row, sweeps, outcome)) for row in table.rows)
            labels = "; ".join(sweep.label for sweep in sweeps)
            besides.append(Beside(f"{TITLE}: {table.name}{of_set}", table, rows, f"Ours: {labels}."))
    return besides


def _ours_of_row(table: PublishedTable, row: PublishedRow, sweeps: Sequence[Sweep], outcome: Outcome) -> tuple[Ours | None, ...]:
    """Our values for a published row.

    They are None if no sweep, or more than one, has the number of documents of the row.
    """
    fitting = [sweep for sweep in sweeps if row.documents in (0, sweep.documents)]
    by_name = {system.name: system for system in fitting[0].systems} if len(fitting) == 1 else {}
    system, reference = by_name.get(row.system), by_name.get(outcome.comparison.reference)
    if system is None:
        return (None,) * len(table.columns)
    if table.beside == PARAMETERS:
        return tuple(_ours_of_parameter(system, column) for column in table.columns)
    return tuple(_ours_of_measure(system, column, reference, table.percent) for column in table.columns)


def _ours_of_measure(system: SystemOutcome, measure: str, reference: SystemOutcome | None, percent: bool) -> Ours:
    mean = system.mean(measure)
    seeds = [*system.mean_by_seed(measure).values()]
    spread = f" ± {_number(deviation(seeds), percent)}" if len(seeds) > 1 else ""
    base = 0.0 if reference is None else reference.mean(measure)
    return Ours(mean, _number(mean, percent) + spread, 100 * (mean / base - 1) if base else None)


def _ours_of_parameter(system: SystemOutcome, parameter: str) -> Ours | None:
    chosen = None if system.tuned is None else system.tuned.chosen.get(parameter)
    if not isinstance(chosen, (int, float)):
        return None
    return Ours(float(chosen), value_text(chosen))


def _beside_table(table: PublishedTable, others: Sequence[ExtraTable]) -> Beside:
    """A published table beside the table of the report whose title it names."""
    ours = next((other for other in others if other.title == table.beside or other.title.startswith(f"{table.beside}:")), None)
    by_name = {} if ours is None else {name: dict(zip(ours.columns, cells, strict=True)) for _, name, cells in ours.rows}
    rows = []
    for row in table.rows:
        cells = [by_name.get(row.system, {}).get(column) for column in table.columns]
        rows.append((row, tuple(None if cell is None else Ours(cell.mean, cell.text) for cell in cells)))
    remark = f"Ours: the table {ours.title}." if ours is not None else f"The report has no table {table.beside}, so nothing is compared."
    return Beside(f"{TITLE}: {table.name}", table, tuple(rows), remark)


def beside_tables(besides: Sequence[Beside]) -> list[ExtraTable]:
    """One table per published table: the paper's value, ours, and the difference, column by column."""
    return [_table(beside) for beside in besides]


def _table(beside: Beside) -> ExtraTable:
    published = beside.published
    changes = [
        any(cell is not None and cell.change is not None for cell in column)
        for column in zip(*(row.cells for row, _ in beside.rows), strict=True)
    ]
    heads: list[str] = []
    for column, has_change in zip(published.columns, changes, strict=True):
        heads += [f"{column}: paper", f"{column}: ours", f"{column}: ours − paper"]
        heads += [f"{column}: change, paper", f"{column}: change, ours"] if has_change else []
    rows = []
    for row, ours in beside.rows:
        cells: list[Figure | None] = []
        for cell, own, has_change in zip(row.cells, ours, changes, strict=True):
            cells += _cells(cell, own, published)
            cells += _changes(cell, own) if has_change else []
        rows.append(("", row.name, tuple(cells)))
    unit = " Values are in percent." if published.percent else ""
    texts = [f"{published.source}: {published.name}.", published.about, published.note, beside.remark + unit, _CAUTION]
    return ExtraTable(beside.title, " ".join(_sentence(text) for text in texts if text), tuple(heads), tuple(rows), head="In the paper")


_CAUTION = "A row without our value is not repeated here. Only figures on the same collection and topics can be compared."


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _cells(cell: PublishedCell | None, own: Ours | None, published: PublishedTable) -> list[Figure | None]:
    theirs = None if cell is None else Figure(cell.value, cell.text, beats=cell.marks)
    mine = None if own is None else Figure(own.value, own.text)
    if cell is None or own is None:
        return [theirs, mine, None]
    gap = own.value - cell.value
    return [theirs, mine, Figure(gap, _gap_text(gap, cell, published))]


def _gap_text(gap: float, cell: PublishedCell, published: PublishedTable) -> str:
    """A difference with its sign, in the unit of the published cell."""
    share = "%" if "%" in cell.text else ""
    shown = gap * (100 if published.percent or share else 1)
    rounded = f"{shown:,.0f}" if abs(shown) >= 1000 else f"{shown:.4g}"
    text = _number(gap, published.percent) if published.beside == MEASURES else rounded
    sign = "+" if shown > 0 and text.strip("0.") else ""
    return f"{sign}{text}{share}"


def _changes(cell: PublishedCell | None, own: Ours | None) -> list[Figure | None]:
    theirs = None if cell is None or cell.change is None else Figure(cell.change, change_text(cell.change))
    return [theirs, None if own is None or own.change is None else Figure(own.change, change_text(own.change))]


def _number(value: float, percent: bool) -> str:
    text = f"{100 * value:.2f}" if percent else figure(value)
    return text.removeprefix("-") if float(text) == 0 else text


def beside_lines(besides: Sequence[Beside]) -> Iterator[str]:
    """The lines of a CSV file with all published cells and our values, the header first. Numbers are not rounded."""
    yield csv_line(["table", "source", "row", "system", "documents", "column", "printed", "published", "ours", "difference"])
    for beside in besides:
        published = beside.published
        for row, ours in beside.rows:
            for column, cell, own in zip(published.columns, row.cells, ours, strict=True):
                if cell is None and own is None:
                    continue
                numbers = [
                    "" if value is None else repr(value)
                    for value in (
                        None if cell is None else cell.value,
                        None if own is None else own.value,
                        None if cell is None or own is None else own.value - cell.value,
                    )
                ]
                names = [beside.title, published.source, row.name, row.system, str(row.documents or ""), column]
                yield csv_line([*map(guarded, names), "" if cell is None else guarded(cell.text), *numbers])
