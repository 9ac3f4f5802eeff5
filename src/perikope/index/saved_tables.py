"""Learned tables, such as weights of tags. They are saved as JSON files and read by name.

A name is looked up in the folder `tables` of the index, then among the tables that come with the program. A name that
ends in `.json` is the path of a file. A file looks like this:

    {"perikope": "table", "version": 1, "kind": "tags", "values": {"tags": {"b": 1.4, "title": 1.5}}}

The code that uses a table checks its values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any

from perikope.core import files
from perikope.core.errors import InputError, UsageError, unknown

FOLDER = "tables"
"""The folder of an index that holds its tables."""
VERSION = 1
MAX_BYTES = 1 << 24
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}")
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)
"""Names that files cannot have on Windows, with any extension. They are refused, so that an index can be copied
there."""


@dataclass(frozen=True, slots=True)
class SavedTable:
    """A learned table. Its kind says what the values are, such as `tags` or `prior`."""

    name: str
    kind: str
    values: Mapping[str, Any]

    def damaged(self, what: str) -> InputError:
        """Make the error for a table with wrong values; `what` says what is wrong."""
        return InputError(f"the table {self.name!r} cannot be used: {what}; repair the file or learn the table again")


def read_table(name: str, kind: str = "", folder: Path | None = None) -> SavedTable:
    """Read the table with this name or path. `folder` is the folder of the index, or None.

    A table of another kind is an error; an empty `kind` accepts all kinds.
    """
    if name.endswith(".json"):
        path: Traversable = Path(name)
        if not path.is_file():
            raise UsageError(f"there is no file {name}; check the path, or leave out .json to name a table of the index")
    else:
        paths = _files_named(name, folder) if _NAME.fullmatch(name) else []
        if not paths:
            raise unknown(f"table of {kind}" if kind else "table", name, table_names(kind, folder))
        path = paths[0]
    table = _load(name, path)
    if kind and table.kind != kind:
        known = ", ".join(table_names(kind, folder))
        raise UsageError(f"the table {name!r} holds {table.kind}, not {kind}; choose a table of {kind}: {known or '(none)'}")
    return table


def write_table(folder: Path, name: str, kind: str, values: Mapping[str, Any]) -> Path:
    """Save a table in the index at `folder`, atomically and durably; returns its path.

    A table of the index with the same name is replaced.
    """
    check_name(name)
    path = folder / FOLDER / f"{name}.json"
    content = {"perikope": "table", "version": VERSION, "kind": kind, "values": dict(values)}
    data = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1).encode()
    try:
        files.make_folder(path.parent)
        with files.replacing_binary(path) as file:
            file.write(data)
    except OSError as error:
        raise UsageError(f"cannot write the table {name} to {path.parent}: {error.strerror}") from None
    return path


def check_name(name: str) -> None:
    """Raise a `UsageError` if a table, or a store of vectors, cannot have this name."""
    if not _NAME.fullmatch(name) or name.endswith((".json", ".")):
        raise UsageError(f"{name!r} cannot be the name of a table or a store: use letters, digits, - and _, without .json at the end")
    if _DEVICE.match(name):
        raise UsageError(f"{name!r} cannot be the name of a table or a store: it is the name of a device on Windows; choose another name")


def delete_table(folder: Path, name: str) -> None:
    """Delete a table of the index at `folder`; a name that the index does not have is an error."""
    path = folder / FOLDER / f"{name}.json"
    if not _NAME.fullmatch(name) or not path.is_file():
        if _NAME.fullmatch(name) and _files_named(name, None):
            raise UsageError(f"the table {name!r} comes with the program and cannot be deleted")
        raise unknown("table", name, [other for other in table_names("", folder) if not _files_named(other, None)])
    try:
        path.unlink()
        files.sync_folder(path.parent)
    except OSError as error:
        raise UsageError(f"cannot delete {path}: {error.strerror}") from None


def table_names(kind: str = "", folder: Path | None = None) -> list[str]:
    """The sorted names of all readable tables of a kind, in the index and in the program.

    An empty `kind` accepts all kinds; `folder` is the folder of the index, or None.
    """
    names = set()
    for tables in _folders(folder):
        for file in tables.iterdir():
            name = file.name.removesuffix(".json")
            if file.name.endswith(".json") and _NAME.fullmatch(name):
                try:
                    names |= {name} if _load(name, file).kind == kind or not kind else set()
                except InputError:
                    continue
    return sorted(names)


def _folders(folder: Path | None) -> list[Traversable]:
    """The folders that contain tables and exist: first the folder of the index, then the folder of the program."""
    of_index: list[Traversable] = [folder / FOLDER] if folder is not None else []
    return [path for path in (*of_index, resources.files("perikope").joinpath("data", FOLDER)) if path.is_dir()]


def _files_named(name: str, folder: Path | None) -> list[Traversable]:
    return [file for tables in _folders(folder) if (file := tables.joinpath(f"{name}.json")).is_file()]


def _load(name: str, path: Traversable) -> SavedTable:
    damaged = InputError("is not a table of perikope, or is damaged: restore the file, or learn the table again", path=path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        content = json.loads(data) if len(data) <= MAX_BYTES else None
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", path=path) from None
    except (ValueError, RecursionError):
        raise damaged from None
    if not isinstance(content, dict) or content.get("perikope") != "table" or not isinstance(content.get("values"), dict):
        raise damaged
    if content.get("version") != VERSION or not isinstance(content.get("kind"), str):
        raise InputError(
            f"is a table of version {content.get('version')!r}, this program reads version {VERSION}: learn the table again", path=path
        )
    return SavedTable(name, content["kind"], MappingProxyType(content["values"]))
