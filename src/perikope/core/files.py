"""Every change to the disk that must last, in one place: what is durable when, and where tests inject faults.

A file is written, synced and closed before anything names it. A name changes by an atomic rename and counts once the folder is synced.
Only then is what it replaced removed.

| function | who writes the content |
|---|---|
| `replacing` | the caller, as text; a name that ends in `.gz` is compressed |
| `replacing_binary` | the caller, as bytes |
| `replacing_path` | a library that takes the path of a file or a folder |
| `put_in_place` | already written, elsewhere in the same file system |
| `NewFile` | the caller, under a name that nothing has named yet |
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
"""How often, and after how many seconds each, something is tried that Windows refuses while another process has the file open."""

Result = TypeVar("Result")


class NewFile(io.RawIOBase):
    """A file under construction: written from start to end, and durable once `finish` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._file = open(path, "xb", buffering=1 << 20)  # noqa: SIM115 - closed by `finish` or `discard`

    def writable(self) -> bool:
        """True; `TextIOWrapper` asks."""
        return True

    def write(self, data: Any, /) -> int:
        """Add bytes (anything with the buffer protocol)."""
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
        # What is still buffered may not fit the disk any more; it is not wanted either.
        with contextlib.suppress(OSError):
            self._file.close()
        remove(self.path)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """A text file that takes its name, durably, only when everything is written: a failure leaves what was there before."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(replacing_binary(path))
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error
        yield stack.enter_context(_text(file, compressed=Path(path).suffix == ".gz"))


@contextmanager
def replacing_binary(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes its name, durably, only when everything is written: a failure leaves what was there before.

    A symbolic link stays, and the file that it leads to is replaced. A pipe or a terminal cannot be replaced and is written to.
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
    """A path for a library to write a file or a folder to, which takes the name `path`, durably, when the library is done.

    A folder cannot take the name of one that is there.
    """
    temporary = _temporary(_target(path))
    try:
        yield temporary
        put_in_place(temporary, path)
    except BaseException:
        # Not there any more where only the last step failed, to make the new name durable.
        with contextlib.suppress(OSError):
            _remove_any(temporary)
        raise


def put_in_place(made: Path, path: Path) -> None:
    """Give a finished file or folder the name `path`, durably and atomically; both are in the same file system."""
    target = _target(path)
    _sync_content(made)
    rename(made, target)
    sync_folder(target.parent)


def is_temporary(name: str) -> bool:
    """Whether a name is one that the functions above give to what is not finished.

    >>> is_temporary(".report.md.0a1b2c3d.part"), is_temporary("report.part")
    (True, False)
    """
    return _TEMPORARY.fullmatch(name) is not None


def remove_temporaries(folder: Path) -> None:
    """Remove what a stopped program was writing in a folder; only for a caller that is known to be the only one to write there."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if is_temporary(path.name):
            with contextlib.suppress(PermissionError):
                _remove_any(path)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are not there, durably."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def rename(old: Path, new: Path) -> None:
    """Give a file another name, atomically replacing what had that name."""
    _patiently(lambda: os.replace(old, new))


def read(path: Path) -> bytes:
    """The content of a small file that another process may be replacing right now."""
    return _patiently(path.read_bytes)


def remove(path: Path) -> None:
    """Remove a file if it is there; readers that have it mapped keep it."""
    path.unlink(missing_ok=True)


def remove_unless_held(path: Path) -> bool:
    """Remove a file, or leave it where the system refuses, as Windows does while a reader has it mapped; returns whether it is gone.

    What stays is removed by the next writer that clears up the folder.
    """
    try:
        remove(path)
    except PermissionError:
        return False
    return True


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, as far as the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        # Windows opens no folders; NTFS has a journal of names instead. Elsewhere a folder may be writable and not readable.
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        # The file system has no such operation, as some on a network.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def _target(path: Path) -> Path:
    # A link is followed first, or the rename would put a file in its place.
    return path.resolve() if path.is_symlink() else path


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")


def _text(file: BinaryIO, *, compressed: bool) -> TextIO:
    # No name and no time inside, so that the same content gives the same bytes.
    raw = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) if compressed else file
    return io.TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8", newline="\n")


def _sync_content(made: Path) -> None:
    """Make the content of a file, or of everything in a folder, durable."""
    if made.is_dir():
        for path in made.iterdir():
            _sync_content(path)
        sync_folder(made)
        return
    # Open for writing: Windows syncs no other files.
    with made.open("r+b") as file:
        os.fsync(file.fileno())


def _remove_any(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        remove(path)


def _patiently(action: Callable[[], Result]) -> Result:
    """Do something again for a second while the system says that it is not permitted.

    Windows says so while another process has the file open, which for a small file that is read at once lasts a moment.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return action()
        except PermissionError:
            time.sleep(_PAUSE)
    return action()
