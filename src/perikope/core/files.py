"""Every change to the disk that must last is made here, where tests can inject faults.

A file is written, synced and closed before any other file names it. A name changes by an atomic rename and is durable
once its folder is synced. What it replaced is removed after that.

| function | who writes the content |
|---|---|
| `replacing` | the caller, as text; a name that ends in `.gz` is compressed |
| `replacing_binary` | the caller, as bytes |
| `replacing_path` | a library that takes the path of a file or a folder |
| `put_in_place` | nobody: it is already written, under another name in the same file system |
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
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeVar, cast

from perikope.core.errors import UsageError

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.part", re.DOTALL)
_ATTEMPTS, _PAUSE = 50, 0.02
"""Number of attempts, and seconds between them, for what Windows refuses while another process has the file open."""

Result = TypeVar("Result")


class NewFile(io.RawIOBase):
    """A file under construction: written from start to end, and durable once `finish` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._file = open(path, "xb", buffering=1 << 20)  # noqa: SIM115 - closed by `finish` or `discard`

    def writable(self) -> bool:
        """True, as `TextIOWrapper` requires."""
        return True

    def write(self, data: Any, /) -> int:
        """Append bytes (any object with the buffer protocol) and return how many."""
        self._file.write(data)
        self.size += len(data)
        return len(data)

    def finish(self) -> None:
        """Make the content durable."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def discard(self) -> None:
        """Remove the file."""
        # Closing writes what is still buffered, which fails on a full disk; the content is not needed.
        with contextlib.suppress(OSError):
            self._file.close()
        remove(self.path)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a text file that replaces `path`, durably, once everything is written; a failure leaves the old file."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(replacing_binary(path))
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error
        yield stack.enter_context(_text(file, compressed=Path(path).suffix == ".gz"))


@contextmanager
def replacing_binary(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that replaces `path`, durably, once everything is written; a failure leaves the old file.

    A symbolic link stays, and its target is replaced. A pipe or a terminal cannot be replaced and is written to.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    target = _target(path)
    file = NewFile(_temporary(target))
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
    """A temporary path to which a library writes a file or folder; it is then renamed to `path`, durably.

    A folder cannot replace an existing folder.
    """
    temporary = _temporary(_target(path))
    try:
        yield temporary
        put_in_place(temporary, path)
    except BaseException:
        # It is already renamed where only the last step failed: making the new name durable.
        with contextlib.suppress(OSError):
            _remove_any(temporary)
        raise


def put_in_place(finished: Path, path: Path) -> None:
    """Rename a finished file or folder to `path`, durably and atomically; both must be in the same file system."""
    target = _target(path)
    _sync_content(finished)
    rename(finished, target)
    sync_folder(target.parent)


def is_temporary(name: str) -> bool:
    """Whether a name is one that the functions above give to unfinished files.

    >>> is_temporary(".report.md.0a1b2c3d.part"), is_temporary("report.part")
    (True, False)
    """
    return _TEMPORARY.fullmatch(name) is not None


def remove_temporaries(folder: Path) -> None:
    """Remove the unfinished files that a stopped program left in a folder; the caller must be the only writer there."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if is_temporary(path.name):
            with contextlib.suppress(PermissionError):
                _remove_any(path)


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents, durably."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def rename(old: Path, new: Path) -> None:
    """Rename a file, atomically replacing any file of the new name."""
    _patiently(lambda: os.replace(old, new))


def read(path: Path) -> bytes:
    """The content of a small file that another process may be replacing at the same time."""
    return _patiently(path.read_bytes)


def remove(path: Path) -> None:
    """Remove a file if it exists; on POSIX systems, readers that have it mapped can go on reading it."""
    path.unlink(missing_ok=True)


def remove_unless_held(path: Path) -> bool:
    """Remove a file and return True; return False where Windows refuses because a reader has it mapped.

    A file that stays is removed by the next writer that clears up the folder.
    """
    try:
        remove(path)
    except PermissionError:
        return False
    return True


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the operating system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        # Windows cannot open folders; NTFS has a journal of names instead. Elsewhere a folder may be writable but not
        # readable.
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
    # A link is followed first: otherwise the rename would replace the link.
    return path.resolve() if path.is_symlink() else path


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")


def _text(file: BinaryIO, *, compressed: bool) -> TextIO:
    # The gzip header has neither name nor time, so that the same content gives the same bytes.
    raw = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) if compressed else file
    return io.TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8", newline="\n")


def _sync_content(path: Path) -> None:
    """Make the content of a file, or of everything in a folder, durable."""
    if path.is_dir():
        for entry in path.iterdir():
            _sync_content(entry)
        sync_folder(path)
        return
    # It is opened for writing because Windows syncs no other files.
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _remove_any(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        remove(path)


def _patiently(action: Callable[[], Result]) -> Result:
    """Call `action`, and for one second call it again while it raises `PermissionError`.

    Windows raises it while another process has the file open. Small files are open for a moment only.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return action()
        except PermissionError:
            time.sleep(_PAUSE)
    return action()
