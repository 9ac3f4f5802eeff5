"""A file lock, so that only one process at a time writes to a folder.

The operating system releases the lock when the process ends, even by a crash. The lock is `flock` on POSIX systems and
a locked byte on Windows. The lock file is never removed: otherwise two processes could lock two different files of the
same name.
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

_descriptors: dict[int, Path] = {}
"""The descriptors of the lock files that this process has locked, each with its folder."""

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
    """A lock that this process holds until it calls `release` or ends.

    A forked child process does not hold the lock.
    """

    def __init__(self, descriptor: int, folder: Path) -> None:
        self._descriptor, self._process = descriptor, os.getpid()
        _descriptors[descriptor] = folder.resolve()

    @property
    def held(self) -> bool:
        """Whether this process holds the lock."""
        return self._descriptor >= 0 and os.getpid() == self._process

    def release(self) -> None:
        """Release the lock; does nothing if this process does not hold it."""
        if self.held:
            descriptor, self._descriptor = self._descriptor, -1
            del _descriptors[descriptor]
            try:
                # Closing the file is not enough. Windows may release the lock later, and a program that is being
                # started has a copy of the descriptor for a moment.
                _unlock(descriptor)
            finally:
                os.close(descriptor)

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


def take_lock(folder: Path, wait: float = 0.0, *, advice: str = ", or wait for it (--wait SECONDS)") -> Lock:
    """Lock a folder. If another process holds the lock for more than `wait` seconds, raise `LockedError`.

    `advice` ends the message of that error.
    """
    try:
        # Programs that this process starts do not inherit the descriptor; this is Python's default.
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise IndexFormatError(f"cannot write to {folder}: {error.strerror}") from None
    deadline = time.monotonic() + wait
    try:
        while not _try_lock(descriptor, folder):
            if time.monotonic() >= deadline:
                if folder.resolve() in _descriptors.values():
                    raise LockedError(f"{folder} has unfinished changes in this process: finish them first (in Python commit or rollback)")
                raise LockedError(f"{folder} is being written by another process: try again when that process has finished{advice}")
            time.sleep(_PAUSE)
    except BaseException:
        os.close(descriptor)
        raise
    return Lock(descriptor, folder)


def _try_lock(descriptor: int, folder: Path) -> bool:
    """Try to take the lock without waiting; returns False if another process holds it."""
    try:
        _lock(descriptor)
    except OSError as error:
        if error.errno in _HELD_BY_ANOTHER:
            return False
        raise IndexFormatError(f"cannot lock {folder}: {error.strerror}; use a file system that supports locks") from None
    return True


def _give_up_inherited() -> None:
    """Close the lock files of the parent in a forked child; otherwise the locks would outlive the parent."""
    for descriptor in _descriptors:
        os.close(descriptor)
    _descriptors.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up_inherited)
