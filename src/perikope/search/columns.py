"""The columns of tables of results, declared once: the properties of a `Hit` or `RankedDocument`, then metadata fields.

Data frames, CSV files and spreadsheets all take their columns from here. A metadata field `by.name` is the column
`metadata.by.name`. Sheets leave out the columns that only programs need (`PROGRAM_ONLY`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from perikope.search.hits import Hit, RankedDocument

Cell = str | int | float | bool | None
"""A value of a sheet."""
Listed = Sequence[Hit] | Sequence[RankedDocument]

BETWEEN_TITLES = " › "
BETWEEN_VALUES = "; "
PROGRAM_ONLY = frozenset({"before", "after", "start", "end", "place"})
"""Columns of data frames that sheets do not have."""


def types_of_columns(kind: type[Hit] | type[RankedDocument]) -> dict[str, str]:
    """The columns that all results of a kind have, each with the type of the property: path and place become text."""
    return {field.name: str(field.type) for field in fields(kind) if field.name not in ("highlights", "metadata")}


def columns_of(
    items: Listed, kind: type[Hit] | type[RankedDocument] = Hit, *, values_of_field: Callable[[list[Any]], list[Any]] | None = None
) -> dict[str, list[Any]]:
    """One list per column, with one value per result. A metadata field `by.name` is the column `metadata.by.name`.

    The values of a column have one type, as data frames need it: if the values of a metadata field have several types,
    or are lists of something else than texts, they are written as JSON. `values_of_field` converts the values of a
    metadata field in another way.
    """
    converted = values_of_field or _uniform
    columns: dict[str, list[Any]] = {name: [_plain(getattr(item, name)) for item in items] for name in types_of_columns(kind)}
    metadata = [dict(flat(item.metadata)) for item in items]
    names = dict.fromkeys(name for values in metadata for name in values)
    return columns | {f"metadata.{name}": converted([values.get(name) for values in metadata]) for name in names}


def sheet_of(items: Listed, kind: type[Hit] | type[RankedDocument] = Hit) -> tuple[list[str], list[list[Cell]]]:
    """The names of the columns of a sheet, and one row of cells per result. Lists become one text."""
    everything = columns_of(items, kind, values_of_field=lambda values: list(map(cell, values)))
    columns = {name: values for name, values in everything.items() if name not in PROGRAM_ONLY}
    return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]


def flat(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of metadata with their values. A key of a nested object is a field such as `by.name`.

    >>> dict(flat({"year": 2010, "by": {"name": "Ada", "of": {"town": "X"}}, "ipc": ["F04D"]}))
    {'year': 2010, 'by.name': 'Ada', 'by.of.town': 'X', 'ipc': ['F04D']}
    """
    # A stack instead of recursion, because metadata can be nested very deeply.
    waiting = list(metadata.items())[::-1]
    while waiting:
        field, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [(f"{field}.{name}", item) for name, item in value.items()][::-1]
        else:
            yield field, value


def cell(value: Any) -> Cell:
    """A value for a sheet: several texts or numbers are joined, anything else that is not plain is written as JSON.

    >>> cell(["F04D 13/02", "F04D 29/42"]), cell(2010), cell([{"a": 1}])
    ('F04D 13/02; F04D 29/42', 2010, '[{"a": 1}]')
    """
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, (str, int, float)) for item in value):
        return BETWEEN_VALUES.join(map(str, value))
    return json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return BETWEEN_TITLES.join(value)
    return value if value is None or isinstance(value, (str, int, float)) else value.path


def _uniform(values: list[Any]) -> list[Any]:
    """Values of one type: unchanged if they have one, whole numbers as floats among floats, else as text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(kinds) <= 1 and (kinds != {list} or all(isinstance(item, str) for value in values if value for item in value)):
        return values
    return [value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
