"""The columns of a table of results, declared once. CSV files, spreadsheets and data frames all have these columns.

The first columns are the same for all results. One column per metadata field of the results follows, such as
`metadata.date`. A key of a nested object is named with a point (`metadata.by.name`). Several values are joined with
`; `.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from perikope.search.hits import Hit

Cell = str | int | float | bool | None
"""A value of a table."""

PREFIX = "metadata."
"""The beginning of the name of a column that has the values of a metadata field."""
BETWEEN_TITLES = " › "
BETWEEN_VALUES = "; "


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column that every table of results has."""

    name: str
    meaning: str
    value: Callable[[Hit], Cell]


COLUMNS: tuple[ResultColumn, ...] = (
    ResultColumn("rank", "rank of the hit, from 1", lambda hit: hit.rank),
    ResultColumn("score", "score of the hit; larger is better", lambda hit: hit.score),
    ResultColumn("document", "id of the document", lambda hit: hit.document),
    ResultColumn("passage", "id of the passage within its document, or path of the element", lambda hit: hit.passage),
    ResultColumn("title", "title of the document", lambda hit: hit.title),
    ResultColumn("path", "heading path: the titles from the document to the section of the hit", lambda hit: BETWEEN_TITLES.join(hit.path)),
    ResultColumn("part", "part of the document, such as claims", lambda hit: hit.part),
    ResultColumn("tag", "tag of the hit in its source file", lambda hit: hit.tag),
    ResultColumn("citation", "usual citation, such as EP1130000B1 [0042]", lambda hit: hit.citation),
    ResultColumn("text", "text of the hit", lambda hit: hit.text),
    ResultColumn("start", "first character of the hit in the text of the document", lambda hit: hit.start),
    ResultColumn("end", "end of the hit in the text of the document (exclusive)", lambda hit: hit.end),
    ResultColumn("source", "file that the hit was read from", lambda hit: hit.source),
)


def columns_and_rows(hits: Iterable[Hit]) -> tuple[list[str], list[list[Cell]]]:
    """The names of the columns, and one row of cells per hit. A hit without a metadata field has None in its column."""
    listed = list(hits)
    metadata = [metadata_cells(hit.metadata) for hit in listed]
    fields = sorted({field for cells in metadata for field in cells})
    rows = [
        [*(column.value(hit) for column in COLUMNS), *(cells.get(field) for field in fields)]
        for hit, cells in zip(listed, metadata, strict=True)
    ]
    return [*(column.name for column in COLUMNS), *(f"{PREFIX}{field}" for field in fields)], rows


def metadata_cells(metadata: Mapping[str, Any]) -> dict[str, Cell]:
    """The metadata of a document as cells by field. A single value keeps its type; several values become one text.

    >>> metadata_cells({"year": 2010, "ipc": ["F04D 13/02", "F04D 29/42"], "by": {"name": "Ada", "born": None}})
    {'year': 2010, 'ipc': 'F04D 13/02; F04D 29/42', 'by.name': 'Ada'}
    """
    values: dict[str, list[Cell]] = {}
    for field, value in _flattened(metadata):
        values.setdefault(field, []).append(value)
    return {field: several[0] if len(several) == 1 else BETWEEN_VALUES.join(map(_written, several)) for field, several in values.items()}


def _flattened(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Cell]]:
    """Yield fields with single values, in order."""
    # A stack instead of recursion, because metadata can be nested very deeply.
    waiting = list(metadata.items())[::-1]
    while waiting:
        field, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [(f"{field}.{name}", item) for name, item in value.items()][::-1]
        elif isinstance(value, (list, tuple)):
            waiting += [(field, item) for item in reversed(value)]
        elif value is not None:
            yield field, value if isinstance(value, (str, int, float)) else str(value)


def _written(value: Cell) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
