"""Backups: a consistent copy of an index, made while other processes read and write it.

A backup is an index like any other, with one more file (`backup_record.py`). The state is that of one commit. Each
store of vectors and each learned table has the state of one update of its own, as in the index itself. Large files are
opened and small ones read before anything is copied, so a writer that removes their names meanwhile does not matter.

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
from pathlib import Path
from typing import Any, BinaryIO

from perikope.core import files
from perikope.core.array_files import hash_of
from perikope.core.checked_json import CHECKSUM, has_right_checksum, parse_object
from perikope.core.errors import IndexFormatError, LockedError, PerikopeError, UsageError
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

_ATTEMPTS = 1000
"""How often a store of vectors or a table is read again if it changes while it is read, which takes a millisecond."""
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
        with ExitStack() as stack:
            return _backup_once(_read_state(index, stack), folder, link=link)
    except OSError as error:
        raise UsageError(f"cannot make the backup {folder}: {error.strerror}; repeat the command when this is mended") from error


class _ChangedError(Exception):
    """A store of vectors or a table was changed while it was read, so that it is read again."""


@dataclass(frozen=True, slots=True)
class _NeverChanging:
    """A file of the index that never changes: a segment, or a file of a store."""

    path: Path
    check: Callable[[Path], None]
    """Raises an error if a copy of the file is damaged."""
    opened: BinaryIO
    """The open file, since a writer may remove its name while it is copied."""


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
        _until_unchanged(partial(_add_store, state, name, stack), index / STORES / name)
    for path in sorted((index / TABLES).glob("*.json")):
        _until_unchanged(partial(_add_table, state, path), path)
    return state


def _until_unchanged(read: Callable[[], None], what: Path) -> None:
    for _ in range(_ATTEMPTS):
        with suppress(_ChangedError):
            return read()
    raise UsageError(f"{what} changes faster than it can be read; make the backup at a quieter time")


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


def _add_store(state: _State, name: str, stack: ExitStack) -> None:
    folder = state.index / STORES / name
    manifest = folder / STORE_MANIFEST
    data = _content(manifest)
    if data is None:
        return  # the store was removed meanwhile
    try:
        content = parse_object(data)
        hashes = dict(content["hashes"])
        if CHECKSUM in content and not has_right_checksum(content):
            raise ValueError("checksum")
        if not all(re.fullmatch(r"(?:[^/\\\0]+/)?[^/\\\0]+", file) and ".." not in file.split("/") for file in hashes):
            raise ValueError("names")
    except (KeyError, TypeError, ValueError):
        raise IndexFormatError(f"{folder} is damaged: run `perikope check`, and make the store again; {_UNDAMAGED}") from None
    fixed = {}
    with ExitStack() as opened:
        try:
            for file, known in hashes.items():
                path = folder / file
                fixed[f"{STORES}/{name}/{file}"] = _NeverChanging(
                    path, partial(_check_hash, path, known), opened.enter_context(path.open("rb"))
                )
        except FileNotFoundError as error:
            if _content(manifest) != data:
                raise _ChangedError from None
            raise IndexFormatError(f"{error.filename} is missing: run `perikope check`, and make the store again; {_UNDAMAGED}") from None
        stack.push(opened.pop_all())
    state.fixed |= fixed
    state.small[f"{STORES}/{name}/{STORE_MANIFEST}"] = data


def _content(path: Path) -> bytes | None:
    """The content of a small file, or None if there is no such file."""
    try:
        return files.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _check_hash(path: Path, known: str, copy: Path) -> None:
    if hash_of(copy) != known:
        raise IndexFormatError(f"{path} is damaged, or cannot be copied without damage: run `perikope check`; {_UNDAMAGED}")


def _add_table(state: _State, path: Path) -> None:
    data = _content(path)
    if data is None:
        return  # the table was deleted meanwhile
    try:
        table = read_table(path.stem, folder=state.index)
        contents = {file: _content(path.with_name(file)) for file in table.files}
    except PerikopeError:
        if _content(path) != data:
            raise _ChangedError from None
        raise
    if _content(path) != data:
        raise _ChangedError
    further = {file: content for file, content in contents.items() if content is not None}
    if any(file not in further or hashlib.sha256(further[file]).hexdigest() != known for file, known in table.files.items()):
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
    for name, file in state.fixed.items():
        target = folder / name
        if name in before and target.is_file() and target.stat().st_size == os.fstat(file.opened.fileno()).st_size:
            continue
        files.make_folder(target.parent)
        yield name, _linked(file, target) if link else files.copy(file.opened, target, file.check)
        touched.add(target.parent)
    for path in sorted(touched):
        files.sync_folder(path)


def _linked(file: _NeverChanging, target: Path) -> int:
    try:
        return files.link(file.path, target, file.check)
    except FileNotFoundError:
        return files.copy(file.opened, target, file.check)  # a writer has removed the name of the file, which is still open
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
