"""One writer at a time: a lock on a file, which the operating system takes back when its holder ends, however that comes about.

`flock` on POSIX systems and a locked byte on Windows, both without waiting. The file stays: were it removed, two processes could each
lock a file of that name.
"""

from __future__ import annotations

import errno
import importlib
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from perikope.core.errors import IndexFormatError, LockedError

LOCK_FILE = "write.lock"
_PAUSE = 0.05
_HELD_BY_ANOTHER = (errno.EACCES, errno.EAGAIN)

_descriptors: set[int] = set()
"""The open files that hold the locks of this process."""

try:
    import fcntl
except ImportError:
    _windows: Any = importlib.import_module("msvcrt")

    def _lock(descriptor: int) -> None:
        _windows.locking(descriptor, _windows.LK_NBLCK, 1)

    def _unlock(descriptor: int) -> None:
        _windows.locking(descriptor, _windows.LK_UNLCK, 1)
else:

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class Lock:
    """A lock that this process holds until `release`, or until its end; one that was inherited by a fork is not held."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._process = descriptor, os.getpid()
        _descriptors.add(descriptor)

    @property
    def held(self) -> bool:
        """Whether this process has the lock."""
        return self._descriptor >= 0 and os.getpid() == self._process

    def release(self) -> None:
        """Let others have it; nothing where it is not held."""
        if self.held:
            descriptor, self._descriptor = self._descriptor, -1
            _descriptors.discard(descriptor)
            try:
                # Closing is not enough: Windows may take its time, and a program that is being started has a copy for a moment.
                _unlock(descriptor)
            finally:
                os.close(descriptor)

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


def take_lock(folder: Path, wait: float = 0.0, *, advice: str = ", or wait for it (--wait SECONDS)") -> Lock:
    """Lock a folder; where another writer has the lock, wait for it so many seconds, then raise `LockedError`."""
    try:
        # Not inherited by programs that are started: Python opens all files so.
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise IndexFormatError(f"cannot write to {folder}: {error.strerror}") from None
    deadline = time.monotonic() + wait
    try:
        while not _taken(descriptor, folder):
            if time.monotonic() >= deadline:
                raise LockedError(f"{folder} is being written by another process: try again when it has finished{advice}")
            time.sleep(_PAUSE)
    except BaseException:
        os.close(descriptor)
        raise
    return Lock(descriptor)


def _taken(descriptor: int, folder: Path) -> bool:
    try:
        _lock(descriptor)
    except OSError as error:
        if error.errno in _HELD_BY_ANOTHER:
            return False
        raise IndexFormatError(f"cannot lock {folder}: {error.strerror}; use a file system that has locks") from None
    return True


def _give_up_inherited() -> None:
    """Close the files of the parent's locks: a child that had them open would keep the locks after the parent's end."""
    for descriptor in _descriptors:
        os.close(descriptor)
    _descriptors.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up_inherited)
