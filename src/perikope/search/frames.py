"""Hits as a data frame: one row per hit, with the columns of `perikope.search.columns`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perikope.core.errors import MissingPackage
from perikope.search.columns import columns_of, types_of_columns
from perikope.search.hits import Hit

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


def to_pandas(hits: Sequence[Hit]) -> pandas.DataFrame:
    """The hits as a pandas data frame."""
    frames = _imported("pandas", "to_pandas")
    numpy_types = {"int": "int64", "float": "float64"}
    columns = columns_of(hits)
    typed = {name: numpy_types.get(kind, "object") for name, kind in types_of_columns(Hit).items() if kind in numpy_types or not hits}
    frame: pandas.DataFrame = frames.DataFrame(columns).astype(typed)
    return frame


def to_polars(hits: Sequence[Hit]) -> polars.DataFrame:
    """The hits as a polars data frame."""
    frames = _imported("polars", "to_polars")
    polars_types = {"int": frames.Int64, "float": frames.Float64}
    typed = {name: polars_types.get(kind, frames.String) for name, kind in types_of_columns(Hit).items()}
    frame: polars.DataFrame = frames.DataFrame(columns_of(hits), schema_overrides=typed)
    return frame


def to_arrow(hits: Sequence[Hit]) -> pyarrow.Table:
    """The hits as an Arrow table."""
    arrow = _imported("pyarrow", "to_arrow")
    arrow_types = {"int": arrow.int64(), "float": arrow.float64()}
    typed = {name: arrow_types.get(kind, arrow.string()) for name, kind in types_of_columns(Hit).items()}
    table: pyarrow.Table = arrow.table({name: arrow.array(values, typed.get(name)) for name, values in columns_of(hits).items()})
    return table


def _imported(package: str, used_by: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingPackage(package, used_by) from None
