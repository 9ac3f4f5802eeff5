"""Every change that an index makes to the disk, in one place: what is durable when, and where tests inject faults.

A file is written, synced and closed before anything names it; a name changes by an atomic rename and counts once the
folder is synced; only then is what it replaced removed.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from perikope.core.errors import UsageError


class NewFile:
    """A file under construction: written from start to end, and durable once `finish` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._file = open(path, "xb", buffering=1 << 20)  # noqa: SIM115 - closed by `finish` or `discard`

    def write(self, data: Any) -> None:
        """Add bytes (anything with the buffer protocol)."""
        self._file.write(data)
        self.size += len(data)

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


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are not there, durably."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        # A folder that may be searched and not read cannot be synced.
        with contextlib.suppress(PermissionError):
            sync_folder(path.parent)


def rename(old: Path, new: Path) -> None:
    """Give a file another name, atomically replacing what had that name."""
    os.replace(old, new)


def remove(path: Path) -> None:
    """Remove a file if it is there; readers that have it mapped keep it."""
    path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """A text file that takes its name only when everything is written, so that a failure leaves no half file."""
    # A link is followed first, or the rename would put a file in its place.
    target = Path(path).resolve()
    compressed = Path(path).suffix == ".gz"
    # A pipe or a terminal cannot be renamed onto.
    direct = target.exists() and not target.is_file()
    part = target if direct else target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        file = part.open("wb" if direct else "xb")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    try:
        with file, _text(file, compressed) as text:
            yield text
        if not direct:
            part.replace(target)
    except BaseException:
        if not direct:
            part.unlink(missing_ok=True)
        raise


def _text(file: BinaryIO, compressed: bool) -> TextIO:
    # No name and no time inside, so that the same content gives the same bytes.
    raw = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) if compressed else file
    return TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8", newline="\n")
