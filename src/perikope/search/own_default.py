"""The default model of one index, which `perikope adapt` saves as a table of the index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perikope.browse.models import parse_model
from perikope.core.errors import PerikopeError
from perikope.index.saved_tables import FOLDER, read_table, write_table

KIND, NAME = "default", "default"
"""Kind and name of the table."""


@dataclass(frozen=True, slots=True)
class OwnDefault:
    """The model that a search of an index uses if it names none, and how it was chosen."""

    model: str
    facts: Mapping[str, Any]


def save_own_default(folder: Path, model: str, facts: Mapping[str, Any]) -> Path:
    """Check a model, and save it as the default of the index at `folder`; returns the path of the table."""
    return write_table(folder, NAME, KIND, {"model": str(parse_model(model)), "facts": dict(facts)})


def own_default(folder: Path) -> OwnDefault | None:
    """The default of the index at `folder`, or None if it has none. A damaged table is an error."""
    if not (folder / FOLDER / f"{NAME}.json").is_file():
        return None
    table = read_table(NAME, KIND, folder)
    model, facts = table.values.get("model"), table.values.get("facts", {})
    if not isinstance(model, str) or not isinstance(facts, dict):
        raise table.damaged("it names no model")
    try:
        return OwnDefault(str(parse_model(model)), facts)
    except PerikopeError as error:
        raise table.damaged(str(error)) from None
