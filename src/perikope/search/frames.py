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


def _imported(package: str, used_by: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingPackage(package, used_by) from None
