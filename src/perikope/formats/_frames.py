"""Data frames as documents: one row per document, from pandas, polars or Arrow. None of them is imported here.

The columns `id`, `title`, `language`, `cites`, `metadata`, `content`, `passages` and `sections` are the keys of JSON
Lines. `docno` stands for `id`. `text` is the text of the document, whose paragraphs are separated by blank lines. Every
other column is a metadata field; `metadata.year` is the field `year`. Missing values are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from perikope.core.errors import InputError

_KEYS = frozenset({"id", "title", "language", "cites", "metadata", "content", "passages", "sections"})
_TEXTS = ("content", "passages", "sections")
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
ROWS = 1000
"""The number of rows that are converted at a time."""


def is_frame(given: object) -> bool:
    """Whether a value is a data frame of pandas or polars, or a table of Arrow."""
    package, _, _ = type(given).__module__.partition(".")
    return package in ("pandas", "polars", "pyarrow") and type(given).__name__ in ("DataFrame", "LazyFrame", "Table", "RecordBatch")


def records_of(frame: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a data frame as dictionaries with the keys of a line of JSON Lines."""
    for number, row in enumerate(_rows(frame), start=1):
        values = {str(name): plain for name, value in row.items() if (plain := _plain(value)) is not None}
        if "docno" in values and "id" not in values:
            values["id"] = values.pop("docno")
        if "id" not in values:
            raise InputError(f"row {number} of the data frame has no id; name the column of ids id")
        record = {name: value for name, value in values.items() if name in _KEYS}
        record["id"] = str(record["id"])
        fields = {name.removeprefix("metadata."): value for name, value in values.items() if name not in (*_KEYS, "text")}
        if "text" in values:
            if any(name in record for name in _TEXTS):
                raise InputError(f"row {number} of the data frame has text and {', '.join(_TEXTS)}; give one of them")
            record["passages"] = [piece for piece in _PARAGRAPH.split(str(values["text"]).strip()) if piece]
        if fields:
            record["metadata"] = {**dict(record.get("metadata") or {}), **fields}
        yield record


def _rows(frame: Any) -> Iterator[dict[str, Any]]:
    package = type(frame).__module__.partition(".")[0]
    if package == "polars":
        collected = frame.collect() if type(frame).__name__ == "LazyFrame" else frame
        yield from collected.iter_rows(named=True)
    elif package == "pyarrow":
        for start in range(0, frame.num_rows, ROWS):
            yield from frame.slice(start, ROWS).to_pylist()
    else:
        for start in range(0, len(frame), ROWS):
            yield from frame.iloc[start : start + ROWS].to_dict("records")


def _plain(value: Any) -> Any:
    """A value for JSON; None if it is missing. Arrays become lists, and numbers of numpy become numbers."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain for name, item in value.items() if (plain := _plain(item)) is not None}
    if hasattr(value, "isoformat"):
        # A time that is missing (NaT) is not equal to itself, and a day has no time.
        return None if value != value else value.isoformat().removesuffix("T00:00:00")
    if isinstance(value, (str, bool, int, float)) or value is None:
        return None if value != value else value
    return None if type(value).__name__ == "NAType" else value
