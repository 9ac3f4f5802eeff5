"""Durable changes to files. All of them are made in this module, so that tests can inject faults.

A file is written, synced and closed before another file refers to it. It gets its final name by an atomic rename, which
is durable once the folder is synced. Files that are no longer needed are removed after that.

| function | who writes the content |
|---|---|
| `replacing` | the caller, as text; a name that ends in `.gz` is compressed |
| `replacing_binary` | the caller, as bytes |
| `write_cached` | the caller, as bytes, of a file that can be made again |
| `replacing_path` | a library that takes the path of a file or a folder |
| `copy`, `link` | nobody: the content is that of another file |
| `put_in_place` | nobody: the file is already written, under another name in the same file system |
| `NewFile` | the caller, to a name that no other file refers to yet |
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeVar, cast

from perikope.core.errors import UsageError
from perikope.core.reading import MAX_SAVED, read_limited

MANIFEST_FILE = "manifest.json"
"""The name of the file that every index has."""

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.part", re.DOTALL)
_PIECE, _AT_ONCE = 1 << 20, 1 << 30
"""Number of bytes that are copied at once: through memory, and by the operating system."""
_ATTEMPTS, _PAUSE = 50, 0.02
"""Number of attempts, and seconds between them, if Windows refuses access while another process has the file open."""

Result = TypeVar("Result")


class NewFile(io.RawIOBase):
    """A new file that is written from start to end. Its content is durable once `finish` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._file = open(path, "xb", buffering=1 << 20)  # noqa: SIM115 - closed by `finish` or `discard`

    def writable(self) -> bool:
        """Return True: `TextIOWrapper` asks whether it can write to this file."""
        return True

    def write(self, data: Any, /) -> int:
        """Append bytes (any object with the buffer protocol) and return their number."""
        self._file.write(data)
        self.size += len(data)
        return len(data)

    def rewrite_start(self, data: bytes) -> None:
        """Replace the first bytes of the file, such as a header with a count that was not known before."""
        self._file.seek(0)
        self._file.write(data)
        self._file.seek(0, os.SEEK_END)

    def copy_from(self, source: BinaryIO) -> None:
        """Append the content of an open file, from its start.

        The operating system copies, if it can. On file systems that share blocks (Btrfs, XFS, APFS …) it copies none.
        """
        self._file.flush()
        at = self._copied_by_system(source.fileno()) if hasattr(os, "copy_file_range") else 0
        source.seek(at)
        self.size += at
        while piece := source.read(_PIECE):
            self.write(piece)

    def _copied_by_system(self, source: int) -> int:
        """Copy an open file without reading it into memory. Returns the number of bytes that were copied."""
        at = 0
        try:
            while done := os.copy_file_range(source, self._file.fileno(), _AT_ONCE, at):
                at += done
        except OSError as error:
            # Other file systems, and systems that lack the call, are no failure: the rest is read and written.
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
                raise
        return at

    def finish(self) -> None:
        """Make the content durable and close the file."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def discard(self) -> None:
        """Close the file and remove it."""
        # Closing writes buffered data, which fails on a full disk. The error is ignored, since the file is removed.
        with contextlib.suppress(OSError):
            self._file.close()
        remove(self.path)


_CANNOT_WRITE = {
    errno.ENOSPC: "free some disk space and try again",
    errno.EDQUOT: "free some disk space and try again",
    errno.EFBIG: "use another file system",
    errno.EROFS: "make it writable",
    errno.EACCES: "check its permissions",
    errno.EPERM: "check its permissions",
    errno.EIO: "check the disk",
}
"""What to do about an error of the operating system while files are written, by its number."""


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn errors of the operating system while a folder is written into a `UsageError` that says what to do.

    Only errors that concern writing are turned. The change must be all or nothing, because the message says so.
    """
    try:
        yield
    except OSError as error:
        advice = _CANNOT_WRITE.get(error.errno or 0)
        if advice is None:
            raise
        raise UsageError(f"cannot write {folder} ({error.strerror}): {advice}; no change is half done") from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a new text file that replaces `path` durably when the block ends; after an error the old file remains.

    The text is written as UTF-8. It is compressed if the name ends in `.gz`.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(replacing_binary(path))
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error
        yield stack.enter_context(_text(file, compressed=Path(path).suffix == ".gz"))


@contextmanager
def replacing_binary(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new binary file that replaces `path` durably when the block ends; after an error the old file remains.

    If `path` is a symbolic link, the file that it points to is replaced. A pipe or a terminal cannot be replaced, so
    the data is written to it directly.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    target = _target(path)
    file = NewFile(temporary_path(target))
    try:
        yield cast(BinaryIO, file)
        file.finish()
        rename(file.path, target)
    except BaseException:
        with contextlib.suppress(OSError):
            file.discard()
        raise
    sync_folder(target.parent)


@contextmanager
def replacing_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path to which a library writes a file or folder.

    It is durably renamed to `path` when the block ends. A folder cannot replace an existing folder.
    """
    temporary = temporary_path(_target(path))
    try:
        yield temporary
        put_in_place(temporary, path)
    except BaseException:
        # If only the last step failed (making the new name durable), there is nothing left under the temporary name.
        with contextlib.suppress(OSError):
            remove_any_unless_held(temporary)
        raise


def write_cached(path: Path, data: bytes) -> None:
    """Write a file that can be made again: it appears whole under its name, but may be lost if the power fails."""
    temporary = temporary_path(path)
    try:
        temporary.write_bytes(data)
        rename(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def put_in_place(finished: Path, path: Path) -> None:
    """Rename a finished file or folder to `path`, durably and atomically; both must be in the same file system."""
    target = _target(path)
    _sync_content(finished)
    rename(finished, target)
    sync_folder(target.parent)


def copy(source: BinaryIO, target: Path, check: Callable[[Path], None]) -> int:
    """Copy an open file to `target`, which gets its name after the content is durable; returns the size in bytes.

    `check` is called with the path of the finished copy and raises an error if it is damaged. The new name is durable
    once the folder is synced.
    """
    file = NewFile(temporary_path(target))
    try:
        file.copy_from(source)
        file.finish()
        check(file.path)
        rename(file.path, target)
    except BaseException:
        with contextlib.suppress(OSError):
            file.discard()
        raise
    return file.size


def link(source: Path, target: Path, check: Callable[[Path], None]) -> int:
    """Give a file a second name in the same file system; otherwise like `copy`."""
    temporary = temporary_path(target)
    os.link(source, temporary)
    try:
        check(temporary)
        size = temporary.stat().st_size
        rename(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(temporary)
        raise
    return size


def is_temporary(name: str) -> bool:
    """Whether a file name has the form that this module gives to unfinished files.

    >>> is_temporary(".report.md.0a1b2c3d.part"), is_temporary("report.part")
    (True, False)
    """
    return _TEMPORARY.fullmatch(name) is not None


def remove_temporaries(folder: Path) -> None:
    """Remove the unfinished files that a stopped program left in a folder. No other process may write to the folder."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if is_temporary(path.name):
            remove_any_unless_held(path)


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents, durably."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def rename(old: Path, new: Path) -> None:
    """Rename a file or folder atomically. A file that has the new name is replaced."""
    _patiently(lambda: os.replace(old, new))


def read(path: Path) -> bytes:
    """Return the content of a small file that another process may be replacing at the same time."""
    return _patiently(lambda: read_limited(path, MAX_SAVED))


def remove(path: Path) -> None:
    """Remove a file if it exists. On POSIX systems, processes that have mapped the file can still read it."""
    path.unlink(missing_ok=True)


def remove_unless_held(path: Path) -> bool:
    """Remove a file and return True; return False if Windows refuses because a process has mapped the file.

    In that case the next writer that cleans up the folder removes the file.
    """
    try:
        remove(path)
    except PermissionError:
        return False
    return True


def remove_any_unless_held(path: Path) -> bool:
    """Remove a file, or a folder with its content, and return True; return False if Windows refuses.

    In that case the next writer that cleans up removes the rest.
    """
    if not path.is_dir() or path.is_symlink():
        return remove_unless_held(path)
    removed = [remove_any_unless_held(entry) for entry in path.iterdir()]
    try:
        if all(removed):
            path.rmdir()
    except PermissionError:
        return False
    return all(removed)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, if the operating system supports this."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        # Windows cannot open folders; NTFS keeps names in a journal instead. On other systems, a folder may be
        # writable but not readable.
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync folders.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def _target(path: Path) -> Path:
    # A symbolic link is resolved first: otherwise the rename would replace the link itself.
    return path.resolve() if path.is_symlink() else path


def temporary_path(target: Path) -> Path:
    """A new name beside `target` for an unfinished file; `is_temporary` recognises it."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")


def _text(file: BinaryIO, *, compressed: bool) -> TextIO:
    # The gzip header contains neither a file name nor a time, so that the same content gives the same bytes.
    raw = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) if compressed else file
    return io.TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8", newline="\n")


def _sync_content(path: Path) -> None:
    """Make the content of a file, or of everything in a folder, durable."""
    if path.is_dir():
        for entry in path.iterdir():
            _sync_content(entry)
        sync_folder(path)
        return
    # The file is opened for writing because Windows syncs only such files.
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _patiently(action: Callable[[], Result]) -> Result:
    """Call `action` and return its result; retry for about one second if it raises `PermissionError`.

    Windows raises this error while another process has the file open. Small files are open for a moment only.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return action()
        except PermissionError:
            time.sleep(_PAUSE)
    return action()


def identity_of(path: Path) -> tuple[int, ...]:
    """What tells a file from one that replaces it, even within the resolution of file times; empty if it is missing."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ino, found.st_size
