"""Hits as columns of a data frame: one row per hit, with one column per property and per metadata field."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from perikope.core.errors import MissingPackage
from perikope.search.hits import Hit

if TYPE_CHECKING:
    import pandas
    import polars

_SEPARATOR = " › "
_TYPES = {field.name: str(field.type) for field in fields(Hit) if field.name not in ("highlights", "metadata")}
"""The columns that all hits have, each with the type of the property: path and place become text."""


def to_pandas(hits: Sequence[Hit]) -> pandas.DataFrame:
    """The hits as a pandas data frame."""
    frames = _imported("pandas", "to_pandas")
    numpy_types = {"int": "int64", "float": "float64"}
    columns = columns_of(hits)
    typed = {name: numpy_types.get(kind, "object") for name, kind in _TYPES.items() if kind in numpy_types or not hits}
    frame: pandas.DataFrame = frames.DataFrame(columns).astype(typed)
    return frame


def to_polars(hits: Sequence[Hit]) -> polars.DataFrame:
    """The hits as a polars data frame."""
    frames = _imported("polars", "to_polars")
    polars_types = {"int": frames.Int64, "float": frames.Float64}
    typed = {name: polars_types.get(kind, frames.String) for name, kind in _TYPES.items()}
    frame: polars.DataFrame = frames.DataFrame(columns_of(hits), schema_overrides=typed)
    return frame


def columns_of(hits: Sequence[Hit]) -> dict[str, list[Any]]:
    """One list per column, with one value per hit. A metadata field `by.name` is the column `metadata.by.name`.

    The values of a column have one type, as data frames need it: if the values of a metadata field have several types,
    or are lists of something else than texts, they are written as JSON.
    """
    columns: dict[str, list[Any]] = {name: [_plain(getattr(hit, name)) for hit in hits] for name in _TYPES}
    metadata = [dict(_flat(hit.metadata)) for hit in hits]
    names = dict.fromkeys(name for values in metadata for name in values)
    return columns | {f"metadata.{name}": _uniform([values.get(name) for values in metadata]) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return _SEPARATOR.join(value)
    return value if value is None or isinstance(value, (str, int, float)) else value.path


def _flat(metadata: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in metadata.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _uniform(values: list[Any]) -> list[Any]:
    """Values of one type: unchanged if they have one, whole numbers as floats among floats, else as text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(kinds) <= 1 and (kinds != {list} or all(isinstance(item, str) for value in values if value for item in value)):
        return values
    return [value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]


def _imported(package: str, used_by: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingPackage(package, used_by) from None
