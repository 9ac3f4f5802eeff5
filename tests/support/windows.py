"""Make a process on Linux behave like one on Windows, for programs that a test starts: it cannot be undone.

- Modules and functions of POSIX systems are missing. `msvcrt.locking` exists, with real locks behind it.
- A file that is open or mapped can be neither removed nor replaced; a folder cannot be opened; a file that is open for
  reading cannot be synced.

Python's own modules and other packages have branches for Windows that depend on `sys.platform`. They are imported
before anything is hidden, because they would not work on Linux without it.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import shutil
import signal
import stat
import sys
import types
from pathlib import Path
from typing import Any

_MODULES = ("fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "syslog")
_FUNCTIONS = (
    "fork", "forkpty", "register_at_fork", "getuid", "geteuid", "getgid", "getegid", "getgroups", "setuid", "sched_getaffinity",
    "sched_setaffinity", "statvfs", "fstatvfs", "uname", "getpgid", "setsid", "killpg", "mkfifo", "mknod", "chown", "lchown", "fchown",
    "fchmod", "fchdir", "fdatasync", "sync", "getloadavg", "nice", "sysconf", "posix_fadvise", "copy_file_range", "sendfile", "pread",
    "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_SYNC", "O_DSYNC", "O_DIRECT",
)  # fmt: skip
_OTHERS = (
    "Stemmer", "asyncio", "click", "click._termui_impl", "concurrent.futures.process", "lxml.etree", "lxml.html", "markdown_it",
    "multiprocessing.connection", "multiprocessing.popen_spawn_posix", "multiprocessing.resource_tracker", "numba", "numpy", "orjson",
    "scipy.stats", "subprocess", "tempfile", "uuid", "zstandard",
)  # fmt: skip

FORBIDDEN = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)', re.IGNORECASE)
"""Names that no file has on Windows."""


def pretend() -> None:
    """From now on, this process is as on Windows."""
    for name in _OTHERS:
        importlib.import_module(name)
    _refuse_what_is_in_use()
    _add_locking()
    for name in _MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for name in _FUNCTIONS:
        if hasattr(os, name):
            delattr(os, name)
    del signal.SIGHUP, signal.SIGUSR1


def in_use(path: Any) -> bool:
    """Whether this process has a file open or mapped."""
    wanted = os.path.realpath(path)
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{descriptor}") == wanted:
                return True
        except OSError:
            continue  # of the listing itself
    return any(line.rstrip("\n").endswith(f" {wanted}") for line in Path("/proc/self/maps").read_text().splitlines())


def _refuse_what_is_in_use() -> None:
    real_open, real_fsync = os.open, os.fsync
    getfl = importlib.import_module("fcntl").F_GETFL
    control = importlib.import_module("fcntl").fcntl

    def guarded(original: Any) -> Any:
        def operation(*paths: Any, **options: Any) -> Any:
            if any(in_use(path) for path in paths):
                raise PermissionError(errno.EACCES, "The process cannot access the file because it is being used", os.fspath(paths[-1]))
            return original(*paths, **options)

        return operation

    def open_file(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if not flags & getattr(os, "O_TMPFILE", 0) == getattr(os, "O_TMPFILE", -1) and os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real_open(path, flags, *arguments, **options)

    def fsync(descriptor: int) -> None:
        if control(descriptor, getfl) & os.O_ACCMODE == os.O_RDONLY or not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        real_fsync(descriptor)

    for name in ("unlink", "remove", "replace", "rename"):
        setattr(os, name, guarded(getattr(os, name)))
    os.open, os.fsync = open_file, fsync  # type: ignore[assignment]
    shutil._use_fd_functions = False  # type: ignore[attr-defined]


def _add_locking() -> None:
    module: Any = types.ModuleType("msvcrt")
    flock = importlib.import_module("fcntl")
    module.LK_UNLCK, module.LK_LOCK, module.LK_NBLCK = 0, 1, 2

    def locking(descriptor: int, mode: int, size: int) -> None:
        try:
            flock.flock(descriptor, flock.LOCK_UN if mode == module.LK_UNLCK else flock.LOCK_EX | flock.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    module.locking = locking
    sys.modules["msvcrt"] = module
