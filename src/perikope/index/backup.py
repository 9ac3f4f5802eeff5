"""Backups: a consistent copy of an index, made while other processes read and write it.

A backup is an index like any other, with one more file (`backup_record.py`). The state is that of one commit: its files
are opened before anything is copied, so a merge that removes their names does not matter. Each store of vectors and
each learned table has the state of one update of its own, as in the index itself.

A first backup is made under a temporary name beside the folder, and renamed when all of it is durable. A later backup
to the same folder copies the files that are new, then replaces the manifest, the manifests of stores and the tables one
by one, and then removes what these no longer name. Segments and the files of stores never change, so a file that is
there need not be copied again. At any moment, a reader of the backup sees the old state or the new one.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from perikope.core import files
from perikope.core.array_files import hash_of
from perikope.core.checked_json import CHECKSUM, has_right_checksum, parse_object
from perikope.core.errors import IndexFormatError, LockedError, UsageError
from perikope.core.locks import LOCK_FILE, take_lock
from perikope.index import manifest as manifests
from perikope.index.backup_record import RECORD, BackupRecord, ListedFiles, files_before, read_record, write_record
from perikope.index.columns import ColumnFile
from perikope.index.manifest import Manifest
from perikope.index.saved_tables import FOLDER as TABLES
from perikope.index.saved_tables import read_table
from perikope.index.vector_stores import FOLDER as STORES
from perikope.index.vector_stores import MANIFEST as STORE_MANIFEST
from perikope.index.vector_stores import store_names

_ATTEMPTS = 20
"""How often a backup begins again if a store of vectors or a table changes while it is copied."""
_UNDAMAGED = "the backup is as it was before"


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup has done."""

    folder: str
    """The folder of the backup."""
    documents: int
    """The number of documents of the index, without deleted ones."""
    fingerprint: str
    """The fingerprint of the index; a backup with the same one has the same documents."""
    copied: int
    """The number of files that were copied or linked."""
    copied_bytes: int
    """The size of these files, in bytes."""
    kept: int
    """The number of files that the backup had already."""
    removed: int
    """The number of files that were removed, since the index no longer has them."""

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary, for JSON."""
        return asdict(self)


def make_backup(index: Path, folder: Path, *, link: bool = False) -> BackupReport:
    """Make a backup of an index in a new or empty folder, or bring an earlier backup of it up to date.

    With `link`, segments and files of stores get a second name and are not copied, which needs the same file system.
    Such a backup outlives every change of the index, but not damage of the disk. Raises `UsageError` if the folder
    has other content, and `IndexFormatError` if a file of the index is damaged. The backup is then as it was before.
    """
    _check_apart(index, folder)
    try:
        for _ in range(_ATTEMPTS):
            with suppress(_ChangedError), ExitStack() as stack:
                return _backup_once(_read_state(index, stack), folder, link=link)
    except OSError as error:
        raise UsageError(f"cannot make the backup {folder}: {error.strerror}; repeat the command when this is mended") from error
    raise UsageError(f"{index} changes faster than it can be copied; make the backup at a quieter time")


class _ChangedError(Exception):
    """A file was replaced while it was read, so that the state is read again."""


@dataclass(frozen=True, slots=True)
class _NeverChanging:
    """A file of the index that never changes: a segment, or a file of a store."""

    path: Path
    check: Callable[[Path], None]
    """Raises an error if a copy of the file is damaged."""
    opened: BinaryIO | None = None
    """The open file, if it may lose its name while it is copied."""


@dataclass(slots=True)
class _State:
    """The state of an index that is copied. Files are named by their path in the folder of the index."""

    index: Path
    manifest: Manifest
    fixed: dict[str, _NeverChanging] = field(default_factory=dict)
    small: dict[str, bytes] = field(default_factory=dict)
    """The content of files whose names are used again, apart from the manifest. A file comes after those it names."""

    @property
    def documents(self) -> int:
        return sum(entry["documents"] - entry.get("deleted", {}).get("documents", 0) for entry in self.manifest.segments)


# Reading the state of the index


def _read_state(index: Path, stack: ExitStack) -> _State:
    """The state of an index: its last commit, with open files, and the last update of each store and table."""
    state = _open_segments(index, stack)
    for name in store_names(index):
        _add_store(state, name)
    for path in sorted((index / TABLES).glob("*.json")):
        _add_table(state, path.stem)
    return state


def _open_segments(index: Path, stack: ExitStack) -> _State:
    while True:
        manifest = manifests.load(index)
        state = _State(index, manifest)
        with ExitStack() as opened:
            try:
                for entry in (part for segment in manifest.segments for part in (segment, segment.get("deleted")) if part is not None):
                    path = index / entry["file"]
                    file = opened.enter_context(path.open("rb"))
                    state.fixed[entry["file"]] = _NeverChanging(path, partial(_check_columns, path, entry), file)
            except FileNotFoundError as error:
                if manifests.load(index).generation == manifest.generation:
                    raise IndexFormatError(f"{error.filename} is missing: restore it from a copy or build the index again") from None
                continue
            stack.push(opened.pop_all())
            return state


def _check_columns(path: Path, entry: dict[str, Any], copy: Path) -> None:
    try:
        wrong = ColumnFile(copy, entry).damaged_columns()
    except IndexFormatError:
        wrong = ["all"]
    if wrong:
        raise IndexFormatError(
            f"{path} is damaged, or cannot be copied without damage (column {wrong[0]}): run `perikope check`; {_UNDAMAGED}"
        )


def _add_store(state: _State, name: str) -> None:
    folder = state.index / STORES / name
    try:
        data = files.read(folder / STORE_MANIFEST)
        content = parse_object(data)
        hashes = dict(content["hashes"])
        if CHECKSUM in content and not has_right_checksum(content):
            raise ValueError("checksum")
        if not all(re.fullmatch(r"(?:[^/\\\0]+/)?[^/\\\0]+", file) and ".." not in file.split("/") for file in hashes):
            raise ValueError("names")
    except FileNotFoundError:
        raise _ChangedError from None
    except (KeyError, TypeError, ValueError):
        raise IndexFormatError(f"{folder} is damaged: run `perikope check`, and make the store again; {_UNDAMAGED}") from None
    for file, known in hashes.items():
        state.fixed[f"{STORES}/{name}/{file}"] = _NeverChanging(folder / file, partial(_check_hash, folder / file, known))
    state.small[f"{STORES}/{name}/{STORE_MANIFEST}"] = data


def _check_hash(path: Path, known: str, copy: Path) -> None:
    if hash_of(copy) != known:
        raise IndexFormatError(f"{path} is damaged, or cannot be copied without damage: run `perikope check`; {_UNDAMAGED}")


def _add_table(state: _State, name: str) -> None:
    path = state.index / TABLES / f"{name}.json"
    try:
        data = files.read(path)
        table = read_table(name, folder=state.index)
        further = {file: files.read(path.with_name(file)) for file in table.files}
        sound = all(hashlib.sha256(further[file]).hexdigest() == known for file, known in table.files.items())
        if files.read(path) != data:
            raise _ChangedError
    except FileNotFoundError:
        if path.exists():
            sound, further = False, {}
        else:
            return  # the table was deleted meanwhile
    if not sound:
        raise IndexFormatError(f"files of the table {path} are missing or damaged: learn the table again, or delete it; {_UNDAMAGED}")
    state.small |= {f"{TABLES}/{file}": content for file, content in further.items()}
    state.small[f"{TABLES}/{path.name}"] = data


# Writing the backup


def _check_apart(index: Path, folder: Path) -> None:
    one, other = index.resolve(), folder.resolve()
    if one == other or one in other.parents or other in one.parents:
        raise UsageError(f"the backup {folder} must be neither the index {index} nor inside it, nor contain it; choose another folder")


def _backup_once(state: _State, folder: Path, *, link: bool) -> BackupReport:
    folder = folder.resolve()
    of = str(state.index.resolve())
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        return _update(state, folder, of, link=link)
    files.make_folder(folder.parent)
    _remove_unfinished(folder)
    temporary = files.temporary_path(folder)
    try:
        files.make_folder(temporary)
        with take_lock(temporary, advice=""):
            report = _fill(state, temporary, BackupRecord(of), {}, folder, link=link)
        files.put_in_place(temporary, folder)
    except BaseException:
        with suppress(OSError):
            files.remove_any_unless_held(temporary)
        raise
    return report


def _update(state: _State, folder: Path, of: str, *, link: bool) -> BackupReport:
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; choose another name for the backup")
    read_record(folder)  # raises an error before a lock file is made in a folder that is no backup
    with take_lock(folder, advice=""):
        record = read_record(folder)
        if record.of != of:
            raise UsageError(f"{folder} is a backup of {record.of}, not of {of}; choose another folder")
        before = files_before(folder, record)
        for name in (*state.small, manifests.FILE):
            if name not in record.all_files and (folder / name).exists():
                raise UsageError(f"{folder / name} does not belong to the backup and would be overwritten; choose another folder")
        return _fill(state, folder, record, before, folder, link=link)


def _remove_unfinished(folder: Path) -> None:
    """Remove what a stopped first backup has left beside a folder. One that is still running is not touched."""
    for path in folder.parent.iterdir():
        if files.is_temporary(path.name) and path.name.startswith(f".{folder.name}.") and path.is_dir():
            names = {entry.name for entry in path.iterdir()}
            if names <= {LOCK_FILE} or RECORD in names or any(map(files.is_temporary, names)):
                with suppress(LockedError):
                    take_lock(path, advice="").release()
                    files.remove_any_unless_held(path)


def _fill(state: _State, folder: Path, record: BackupRecord, before: ListedFiles, shown: Path, *, link: bool) -> BackupReport:
    """Bring a folder to the state of an index.

    `record` is the record of the folder, and `before` lists its files. `shown` is the folder that the report names.
    """
    named: dict[str, int | None] = {name: zlib.crc32(data) for name, data in state.small.items()}
    named |= dict.fromkeys(state.fixed, None)
    manifest = manifests.encoded(state.manifest)
    named[manifests.FILE] = zlib.crc32(manifest)
    changed = BackupRecord(record.of, named, {name: crc for name, crc in before.items() if named.get(name, -1) != crc})
    if (changed.files, changed.before) != (record.files, record.before):
        write_record(folder, changed)
    for inside in {folder, *((folder / name).parent for name in (*before, *named))}:
        files.remove_temporaries(inside)
    copied = dict(_copy_missing(state, folder, before, link=link))
    for name, data in ((manifests.FILE, manifest), *state.small.items()):
        path = folder / name
        if not path.exists() or files.read(path) != data:
            files.make_folder(path.parent)
            with files.replacing_binary(path) as file:
                file.write(data)
            copied[name] = len(data)
    unnamed = [name for name in before if name not in named]
    removed = sum((folder / name).exists() for name in unnamed)
    held = list(_remove(folder, unnamed))
    if changed.before:
        write_record(folder, BackupRecord(record.of, named, {name: before[name] for name in held}))
    return BackupReport(
        folder=str(shown),
        documents=state.documents,
        fingerprint=state.manifest.fingerprint,
        copied=len(copied),
        copied_bytes=sum(copied.values()),
        kept=len(named) - len(copied),
        removed=removed - len(held),
    )


def _copy_missing(state: _State, folder: Path, before: ListedFiles, *, link: bool) -> Iterator[tuple[str, int]]:
    """Copy the files that never change and that the backup lacks; yields the name and the size of each, in bytes."""
    touched: set[Path] = set()
    # Segments stay open, whatever happens to their names. Files of stores may be gone after a while, so they are first.
    for name, file in sorted(state.fixed.items(), key=lambda item: item[1].opened is not None):
        target = folder / name
        try:
            size = os.fstat(file.opened.fileno()).st_size if file.opened is not None else file.path.stat().st_size
            if name in before and target.is_file() and target.stat().st_size == size:
                continue
            files.make_folder(target.parent)
            yield name, _linked(file, target) if link else _copied(file, target)
        except FileNotFoundError:
            _check_same_store(state, "/".join((*PurePosixPath(name).parts[:2], STORE_MANIFEST)))
            raise IndexFormatError(f"{file.path} is missing: run `perikope check`, and make the store again; {_UNDAMAGED}") from None
        touched.add(target.parent)
    for path in sorted(touched):
        files.sync_folder(path)


def _check_same_store(state: _State, manifest: str) -> None:
    """Raise `_ChangedError` if a store was updated or removed since its manifest was read."""
    try:
        data = files.read(state.index / manifest)
    except FileNotFoundError:
        data = b""
    if data != state.small[manifest]:
        raise _ChangedError


def _copied(file: _NeverChanging, target: Path) -> int:
    if file.opened is not None:
        return files.copy(file.opened, target, file.check)
    with file.path.open("rb") as opened:
        return files.copy(opened, target, file.check)


def _linked(file: _NeverChanging, target: Path) -> int:
    try:
        return files.link(file.path, target, file.check)
    except FileNotFoundError:
        return _copied(file, target)  # a merge has removed the name of a segment, which is still open
    except OSError as error:
        raise UsageError(f"cannot link {file.path} to {target}: {error.strerror}; leave out --link to copy the files") from None


def _remove(folder: Path, names: list[str]) -> Iterator[str]:
    """Remove files from a backup, and folders that become empty; yields the names of files that the system holds."""
    parents: set[Path] = set()
    # A file is removed before those that it names.
    for name in sorted(names, key=lambda name: not name.endswith(".json")):
        if files.remove_unless_held(folder / name):
            parents |= {parent for parent in (folder / name).parents if folder in parent.parents}
        else:
            yield name
    for path in sorted(parents, reverse=True):
        with suppress(OSError):  # it is not empty, or is gone already
            path.rmdir()
    files.sync_folder(folder)
