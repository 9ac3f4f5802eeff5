"""The record of a backup: the file in its folder that says which files the backup has written, and from which index.

    {"perikope": "backup", "version": 1, "of": "/data/idx", "files": {"manifest.json": 123, "segment-….columns": null}}

A file whose name is used again has the CRC-32 of its content, so that a change by somebody else is noticed. A file that
never changes has null. While a backup is brought up to date, `before` lists the files of the state before. A backup
overwrites and removes only files that its record lists.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perikope.core import files
from perikope.core.checked_json import has_right_checksum, parse_object, with_checksum
from perikope.core.errors import UsageError

RECORD = "backup.json"
"""The name of the file."""
_VERSION = 1

ListedFiles = Mapping[str, int | None]
"""Files by their path in the folder of the backup, each with the CRC-32 of its content; None if it never changes."""


@dataclass(frozen=True, slots=True)
class BackupRecord:
    """The record of a backup."""

    of: str
    """The path of the index."""
    files: ListedFiles = field(default_factory=dict)
    """The files of the backup."""
    before: ListedFiles = field(default_factory=dict)
    """The files of the state before, while the backup is brought up to date; otherwise empty."""

    @property
    def all_files(self) -> dict[str, set[int | None]]:
        """The files of both states, each with what the record says about its content."""
        return {name: {state[name] for state in (self.before, self.files) if name in state} for name in (*self.before, *self.files)}


def read_record(folder: Path) -> BackupRecord:
    """Read the record of a backup; raises `UsageError` if the folder has none, or one that cannot be used."""
    path = folder / RECORD
    try:
        content = parse_object(files.read(path))
    except FileNotFoundError:
        raise UsageError(f"{folder} is neither empty nor a backup; choose a new folder, which the backup makes") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        content = {}
    sound = has_right_checksum(content) and (content.get("perikope"), content.get("version")) == ("backup", _VERSION)
    listed = [content.get("files"), content.get("before", {})]
    if not sound or not isinstance(content.get("of"), str) or not all(map(_is_sound, listed)):
        raise UsageError(f"{path} is damaged or of another version; make the backup in a new folder")
    return BackupRecord(content["of"], *listed)


def _is_sound(listed: Any) -> bool:
    """Whether a value lists files inside the folder of the backup."""
    return isinstance(listed, dict) and all(
        name and ".." not in name.split("/") and not name.startswith("/") and "\\" not in name and (crc is None or type(crc) is int)
        for name, crc in listed.items()
    )


def write_record(folder: Path, record: BackupRecord) -> None:
    """Write the record of a backup, atomically and durably."""
    content: dict[str, Any] = {"perikope": "backup", "version": _VERSION, "of": record.of, "files": dict(record.files)}
    if record.before:
        content["before"] = dict(record.before)
    with files.replacing_binary(folder / RECORD) as file:
        file.write(json.dumps(with_checksum(content), indent=1).encode())


def files_before(folder: Path, record: BackupRecord) -> ListedFiles:
    """The files that an earlier backup has written, whether it was completed or not, with their present CRC-32.

    Files that do not exist are listed too, since their folders may exist. Raises `UsageError` if somebody else has
    changed a file.
    """
    present: dict[str, int | None] = {}
    for name, known in record.all_files.items():
        path = folder / name
        present[name] = next(iter(known)) if None in known or not path.exists() else zlib.crc32(files.read(path))
        if present[name] not in known:
            raise UsageError(f"{path} was changed after the backup; make the backup in a new folder, and use {folder} as an index")
    return present
