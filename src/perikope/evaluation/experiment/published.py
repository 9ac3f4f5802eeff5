"""Figures that a paper has published, which the report shows beside those of the experiment.

Cells are written as the paper prints them, so that every digit can be checked against it:

    0.1835            a value
    0.1835^*          a value with the mark of a significance test
    46.4^ln ± 1.5     mean and standard deviation over repetitions
    0.1835^* (27.8%)  with the improvement over the paper's reference
    87.22%            a share in percent
    -                 no value
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from perikope.core.errors import unknown

if TYPE_CHECKING:
    from perikope.evaluation.experiment.plan_keys import ExperimentKeys, PublishedKeys, PublishedRowKeys
    from perikope.evaluation.experiment.plan_parts import SystemPlan, TopicSet

MEASURES, PARAMETERS = "measures", "parameters"
"""What the columns of a published table are, apart from the columns of another table of the report."""

_CELL = re.compile(
    r"(?P<value>[+-]?\d+(?:\.\d+)?%?)(?:\^(?P<marks>\S+))?(?: ± (?P<deviation>\d+(?:\.\d+)?))?(?: \((?P<change>[+-]?\d+(?:\.\d+)?)%\))?"
)
NOTHING = "-"


@dataclass(frozen=True, slots=True)
class PublishedCell:
    """One printed cell of a published table."""

    text: str
    """The value and its deviation as printed, without marks and improvement."""
    value: float
    """The value as a number; a value in percent is divided by 100."""
    marks: str = ""
    change: float | None = None
    """The printed improvement over the reference of the paper, in percent. None if the paper prints none."""


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One row of a published table."""

    name: str
    """The name of the row as the paper prints it."""
    system: str
    """The system of the experiment that repeats the row, or the row of the table that `beside` names; may be empty."""
    documents: int
    """The number of fetched documents that the row is about; 0 if the table is not about several numbers."""
    cells: tuple[PublishedCell | None, ...]
    """One cell per column; None where the paper prints nothing."""


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A table of a paper."""

    name: str
    """The number of the table in the paper, such as `Table 2`."""
    source: str
    """Paper and place."""
    about: str
    """The collection and the topics of the table."""
    note: str
    """The meaning of marks, and what could not be read."""
    beside: str
    """`measures`, `parameters`, or the title of another table of the report."""
    topics: str
    """The set of topics that the table is about, as `collection/set`; empty for every reported set."""
    percent: bool
    """Whether the values are printed in percent."""
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]


def parse_cell(text: str, *, percent: bool = False) -> PublishedCell | None:
    """Read a printed cell. Returns None for `-`. Raises ValueError for anything else that is not a cell.

    >>> parse_cell("0.1835^* (27.8%)")
    PublishedCell(text='0.1835', value=0.1835, marks='*', change=27.8)
    >>> parse_cell("46.4^ln ± 1.5", percent=True)
    PublishedCell(text='46.4 ± 1.5', value=0.464, marks='ln', change=None)
    """
    if text.strip() == NOTHING:
        return None
    match = _CELL.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    printed = match["value"]
    # Decimals are exact: 46.4% is 0.464.
    value = float(Decimal(printed.removesuffix("%")) / (100 if percent or printed.endswith("%") else 1))
    deviation = f" ± {match['deviation']}" if match["deviation"] else ""
    return PublishedCell(printed + deviation, value, match["marks"] or "", None if match["change"] is None else float(match["change"]))


def read_published(
    keys: ExperimentKeys, systems: Sequence[SystemPlan], sets: Sequence[TopicSet], documents: Sequence[int]
) -> tuple[PublishedTable, ...]:
    """The published tables of a file. Raises an error for a system, measure or parameter that the file does not have.

    `documents` has the numbers of documents to fetch; it is empty in an experiment with rankers, which has one number.
    """
    return tuple(_table(table, keys.measures, systems, [topics.name for topics in sets], documents) for table in keys.published)


def _table(
    keys: PublishedKeys, measures: Sequence[str], systems: Sequence[SystemPlan], sets: Sequence[str], documents: Sequence[int]
) -> PublishedTable:
    for key in ("name", "source", "columns", "rows"):
        if not getattr(keys, key):
            raise keys.wrong(key, "is missing; a published table needs name, source, columns and rows")
    if keys.topics and keys.topics not in sets:
        raise keys.wrong("topics", f"is wrong: {unknown('reported set of topics', keys.topics, sets)}")
    if keys.beside == MEASURES:
        for column in keys.columns:
            if column not in measures:
                raise keys.wrong("columns", f"is wrong: {unknown('measure of this experiment', column, measures)}")
    rows = tuple(_row(row, keys, systems, documents) for row in keys.rows)
    return PublishedTable(keys.name, keys.source, keys.about, keys.note, keys.beside, keys.topics, keys.percent, keys.columns, rows)


def _row(keys: PublishedRowKeys, table: PublishedKeys, systems: Sequence[SystemPlan], documents: Sequence[int]) -> PublishedRow:
    name = keys.name or keys.system
    if not name:
        raise keys.wrong("name", "is missing; name the row as the paper does")
    if len(keys.values) != len(table.columns):
        raise keys.wrong("values", f"has {len(keys.values)} values for {len(table.columns)} columns; write - where there is none")
    if keys.system and table.beside in (MEASURES, PARAMETERS):
        _check_system(keys, table, systems)
        _check_documents(keys, table, documents)
    return PublishedRow(name, keys.system, keys.documents or 0, tuple(_cell(keys, text, table.percent) for text in keys.values))


def _check_system(keys: PublishedRowKeys, table: PublishedKeys, systems: Sequence[SystemPlan]) -> None:
    known = {name: system for system in systems for name in (system.name, *system.derived)}
    if keys.system not in known:
        raise keys.wrong("system", f"is wrong: {unknown('system', keys.system, known)}")
    space = known[keys.system].space
    # In a prepared folder, runs are in place of models.
    if table.beside == PARAMETERS and not known[keys.system].runs:
        tuned = [] if space is None else list(space.values)
        for column, text in zip(table.columns, keys.values, strict=True):
            if column not in tuned and text.strip() != NOTHING:
                raise table.wrong("columns", f"is wrong: {unknown(f'tuned parameter of {keys.system}', column, tuned)}")


def _check_documents(keys: PublishedRowKeys, table: PublishedKeys, documents: Sequence[int]) -> None:
    if keys.documents is not None and documents and keys.documents not in documents:
        raise keys.wrong("documents", f"is wrong: {unknown('number of fetched documents', str(keys.documents), map(str, documents))}")
    if keys.documents is None and len(documents) > 1:
        raise keys.wrong("documents", f"is missing: [sweep] has {len(documents)} numbers of documents; write the one of this row")


def _cell(keys: PublishedRowKeys, text: str, percent: bool) -> PublishedCell | None:
    try:
        return parse_cell(text, percent=percent)
    except ValueError:
        raise keys.wrong("values", f'has the cell {text[:40]!r}; write cells like "0.1835", "46.4^ln ± 1.5" or "-"') from None


def plain_published(published: Sequence[PublishedTable]) -> list[dict[str, Any]]:
    """Published tables as objects for JSON."""
    return [asdict(table) for table in published]


def published_of(content: Sequence[Mapping[str, Any]]) -> tuple[PublishedTable, ...]:
    """The published tables that `plain_published` has turned into objects."""
    return tuple(
        PublishedTable(
            **{
                **table,
                "columns": tuple(table["columns"]),
                "rows": tuple(
                    PublishedRow(**{**row, "cells": tuple(None if cell is None else PublishedCell(**cell) for cell in row["cells"])})
                    for row in table["rows"]
                ),
            }
        )
        for table in content
    )
