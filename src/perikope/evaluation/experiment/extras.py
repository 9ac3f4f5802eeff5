"""Tables and figures that an experiment adds to its report, beside those that every report has.

A system adds what it has learned (`SystemOutcome.tables`, `SystemOutcome.figures`), an experiment adds what belongs to
no single system (`Outcome.tables`, `Outcome.figures`). Both are plain data: they are saved with the outcome and read
back unchanged, so the same outcome gives the same report.

    ExtraFigure(
        "Influence of the query", "position", "influence",
        (Series("composer", ((0, 0.0), (1, 0.5), (2, 1.0))), Series("museum", ((0, 1.0), (1, 0.5), (2, 0.0)))),
        caption="A triangle of half-width 2 around each occurrence.",
    )
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

FigureKind = Literal["lines", "bars"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One cell of a table."""

    mean: float
    text: str
    """The printed form of the mean."""
    is_best: bool = False
    """Whether no other cell of the column is printed as a higher number."""
    beats: str = ""
    """A raised mark: the letters of the systems that the system of the row beats significantly, or a star."""


@dataclass(frozen=True, slots=True)
class ExtraTable:
    """A table that is reported after the tables of the sweeps, such as a table over seeds."""

    title: str
    how: str
    """A text that explains how to read the table."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[Figure | None, ...]], ...]
    """The letter, the name and the cells of each row."""
    spread: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    """Values by measure, then by name of a system. They are drawn as one group of box plots per measure."""
    head: str = "System"
    """The heading of the names of the rows."""


@dataclass(frozen=True, slots=True)
class Series:
    """A line, or the bars of one colour, in a figure."""

    name: str
    points: tuple[tuple[float, float], ...]
    """Pairs of coordinates (x, y) in ascending order of x."""


@dataclass(frozen=True, slots=True)
class ExtraFigure:
    """A figure with one or more series over a common horizontal axis."""

    title: str
    x: str
    """The name of the horizontal axis."""
    y: str
    """The name of the vertical axis."""
    series: tuple[Series, ...]
    caption: str = ""
    kind: FigureKind = "lines"
    with_zero: bool = False
    """Whether the vertical axis of lines contains 0; that of bars always does."""
    band: tuple[float, float] | None = None
    """The ends of a part of the horizontal axis that is shaded."""


def plain(extras: Sequence[ExtraTable | ExtraFigure]) -> list[dict[str, Any]]:
    """Tables or figures as objects for JSON."""
    return [asdict(extra) for extra in extras]


def tables_of(content: Sequence[Mapping[str, Any]]) -> tuple[ExtraTable, ...]:
    """The tables that `plain` has turned into objects."""
    return tuple(
        ExtraTable(
            table["title"],
            table["how"],
            tuple(table["columns"]),
            tuple(
                (letter, name, tuple(None if cell is None else Figure(**cell) for cell in cells)) for letter, name, cells in table["rows"]
            ),
            table["spread"],
            table["head"],
        )
        for table in content
    )


def figures_of(content: Sequence[Mapping[str, Any]]) -> tuple[ExtraFigure, ...]:
    """The figures that `plain` has turned into objects."""
    return tuple(
        ExtraFigure(
            figure["title"],
            figure["x"],
            figure["y"],
            tuple(Series(series["name"], tuple((x, y) for x, y in series["points"])) for series in figure["series"]),
            figure["caption"],
            figure["kind"],
            figure.get("with_zero", False),
            tuple(figure["band"]) if figure.get("band") else None,
        )
        for figure in content
    )
