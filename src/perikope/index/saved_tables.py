"""Learned tables, such as weights of tags. They are saved as JSON files and read by name.

A name is looked up in the folder `tables` of the index, then among the tables that come with the program. A name that
ends in `.json` is the path of a file. A file looks like this:

    {"perikope": "table", "version": 1, "kind": "tags", "values": {"tags": {"b": 1.4, "title": 1.5}}}

Tables that the program writes also have a `checksum`, which is verified when the table is read. A table that a person
wrote needs none. The key `files` names further files that belong to a table, with their hashes. Such a file is
written before the table, under a name that contains its hash. So table and files change in one step.

The code that uses a table checks its values.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any

from perikope.core import files
from perikope.core.access import check_access
from perikope.core.checked_json import CHECKSUM, has_right_checksum, parse_object, with_checksum
from perikope.core.errors import InputError, UsageError, unknown
from perikope.core.locks import LOCK_FILE, take_lock
from perikope.core.versions import advice_about_version

FOLDER = "tables"
"""The folder of an index that holds its tables."""
VERSION = 1
MAX_BYTES = 1 << 24
_KEYS = {"perikope", "version", "kind", "values", "files", CHECKSUM}
_WAIT = 60.0
"""Seconds to wait for another process that is writing a table of the same index. Writing takes milliseconds."""
_EARLIER_FILE = "lightgbm.txt"
"""A file `NAME.lightgbm.txt` belongs to the table NAME. Earlier versions wrote it without naming it in the table."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}")
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)
"""Names that files cannot have on Windows, with any extension. They are refused, so that an index can be copied
there."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedTable:
    """A learned table. Its kind says what the values are, such as `tags` or `prior`.

    Reading an unchanged file again returns the same object, so code that checks values may remember what it checked.
    """

    name: str
    kind: str
    values: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    """Names of the files that belong to the table, beside it, each with its SHA-256 in hexadecimal."""

    def damaged(self, what: str) -> InputError:
        """Make the error for a table with wrong values; `what` says what is wrong."""
        return InputError(f"the table {self.name!r} cannot be used: {what}; repair the file or learn the table again")


def read_table(name: str, kind: str = "", folder: Path | None = None) -> SavedTable:
    """Read the table with this name or path. `folder` is the folder of the index, or None.

    A table of another kind is an error; an empty `kind` accepts all kinds.
    """
    if name.endswith(".json"):
        check_access(name, "a table")
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


def write_table(folder: Path, name: str, kind: str, values: Mapping[str, Any], texts: Mapping[str, str] | None = None) -> Path:
    """Save a table in the index at `folder`, atomically and durably; returns its path.

    A table of the index with the same name is replaced. `texts` has the content of further files that belong to the
    table, by the end of their names.
    """
    check_name(name)
    tables = folder / FOLDER
    path = tables / f"{name}.json"
    data_of_file = {}
    for end, text in (texts or {}).items():
        digest = hashlib.sha256(text.encode()).hexdigest()
        data_of_file[f"{name}.{digest[:8]}.{end}"] = text.encode()
    content: dict[str, Any] = {"perikope": "table", "version": VERSION, "kind": kind, "values": dict(values)}
    if data_of_file:
        content["files"] = {file: hashlib.sha256(data).hexdigest() for file, data in data_of_file.items()}
    # The checksum is that of the content as it is read: keys are strings, and sequences are lists.
    written = with_checksum(json.loads(json.dumps(content, allow_nan=False)))
    try:
        files.make_folder(tables)
        with take_lock(tables, _WAIT, advice=""):
            files.remove_temporaries(tables)
            for file_name, data in data_of_file.items():
                _replace(tables / file_name, data)
            _replace(path, json.dumps(written, ensure_ascii=False, indent=1).encode())
            _remove_files(tables, name, keep=set(data_of_file))
    except OSError as error:
        raise UsageError(f"cannot write the table {name} to {tables}: {error.strerror}") from None
    return path


def _replace(path: Path, data: bytes) -> None:
    with files.replacing_binary(path) as file:
        file.write(data)


def _remove_files(tables: Path, name: str, *, keep: set[str]) -> None:
    """Remove the files of a table that it no longer names."""
    for path in tables.iterdir():
        if path.name not in keep and _owner(path.name) == name:
            files.remove_unless_held(path)


def _owner(file: str) -> str | None:
    """The name of the table that a further file belongs to, by its name; None if the name has another form."""
    match = re.fullmatch(rf"(.+?)(?:\.[0-9a-f]{{8}})?\.{re.escape(_EARLIER_FILE)}", file)
    return match[1] if match else None


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
        with take_lock(path.parent, _WAIT, advice=""):
            files.remove(path)
            files.sync_folder(path.parent)
            files.remove_temporaries(path.parent)
            _remove_files(path.parent, name, keep=set())
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
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", path=path) from None
    return _parsed(name, str(path), data)


@lru_cache(maxsize=4)
def _parsed(name: str, path: str, data: bytes) -> SavedTable:
    """The table in the content of a file. It is remembered by content, because every search reads the same tables."""
    damaged = InputError("is not a table of perikope, or is damaged: restore the file, or learn the table again", path=path)
    try:
        content = parse_object(data if len(data) <= MAX_BYTES else b"")
    except ValueError:
        raise damaged from None
    if CHECKSUM in content and not has_right_checksum(content):
        raise InputError(f"is damaged: restore or learn the table; if you edited the file, remove its key {CHECKSUM!r}", path=path)
    if content.get("perikope") != "table" or not isinstance(content.get("values"), dict):
        raise damaged
    version = content.get("version")
    if version != VERSION or not isinstance(content.get("kind"), str):
        advice = advice_about_version(version, VERSION, "learn the table again")
        message = f"is a table of version {str(version)[:20]}, this program reads version {VERSION}: {advice}"
        raise InputError(message, path=path)
    further = content.get("files", {})
    if not _KEYS.issuperset(content) or not isinstance(further, dict) or not all(map(_sound_file, further.items())):
        raise damaged
    return SavedTable(name, content["kind"], MappingProxyType(content["values"]), further)


def _sound_file(item: tuple[str, object]) -> bool:
    return _NAME.fullmatch(item[0]) is not None and isinstance(item[1], str)


@dataclass(frozen=True, slots=True)
class TablesReport:
    """The result of `check_tables`."""

    tables: int
    """The number of tables that were saved in the index."""
    problems: tuple[str, ...]
    """One line per problem; empty if all tables are sound."""
    unknown_files: tuple[str, ...]
    """Files that belong to no table, relative to the index. A stopped program may have left them."""


def check_tables(index: Path) -> TablesReport:
    """Read all tables that were saved in an index. Damage is reported and raises no error."""
    folder = index / FOLDER
    try:
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        return TablesReport(0, (f"cannot read {folder}: {error.strerror}",), ())
    names = [path.name.removesuffix(".json") for path in paths if path.suffix == ".json" and _NAME.fullmatch(path.name)]
    known = {LOCK_FILE, *(f"{name}.json" for name in names), *(f"{name}.{_EARLIER_FILE}" for name in names)}
    problems = []
    for name in names:
        try:
            table = _load(name, folder / f"{name}.json")
        except InputError as error:
            problems.append(str(error))
            continue
        known |= set(table.files)
        problems += [f"{folder / file}: is damaged or missing; learn the table {name!r} again" for file in _damaged(folder, table)]
    unknown_files = tuple(f"{FOLDER}/{path.name}" for path in paths if path.name not in known)
    return TablesReport(len(names), tuple(problems), unknown_files)


def _damaged(folder: Path, table: SavedTable) -> list[str]:
    """The files of a table that are missing or have another hash than when they were written."""
    wrong = []
    for name, known in table.files.items():
        try:
            found = hashlib.sha256(files.read(folder / name)).hexdigest()
        except OSError:
            found = ""
        wrong += [name] if found != known else []
    return wrong
