"""Make the files of a process behave as on a network file system with a wrong clock, for a process that a test forks.

- A rename or a removal may report that there is no such file, although it took effect: the answer of the server was
  lost, and the repeated request found nothing to do.
- A file that is removed or replaced while this process has it open or mapped stays in its folder as `.nfs…`, until the
  process closes it. It cannot be removed before.
- A listing of a folder may miss what other processes changed a moment ago.
- Times of files have whole seconds and lag behind.
- `time.time` jumps back by hours; `time.monotonic` does not.
"""

from __future__ import annotations

import builtins
import errno
import io
import itertools
import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

from tests.support.windows import in_use

LOST_ANSWERS = 0.05
"""Probability that a rename or a removal reports an error after it took effect."""
STALE = 0.5
"""Probability that a listing is repeated instead of read again."""
STALE_SECONDS = 0.5
LAG_SECONDS = 3
JUMPS = 0.1
"""Probability that a reading of the clock is hours before the last one."""
HELD = ".nfs"


class NetworkFiles:
    """The changed functions of `os`, `io` and `time`, and what they remember."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.numbers = itertools.count(1)
        self.held: list[str] = []
        self.listings: dict[str, tuple[float, list[str]]] = {}
        self.behind = 0.0

    def install(self) -> None:
        """Change the functions of this process; this cannot be undone."""
        self.real = {name: getattr(os, name) for name in ("replace", "unlink", "listdir", "scandir", "stat", "mkdir", "rmdir")}
        self.open, self.clock = io.open, time.time
        os.replace = os.rename = self.rename  # type: ignore[assignment]
        os.unlink = os.remove = self.unlink  # type: ignore[assignment]
        os.listdir, os.scandir, os.stat = self.listdir, self.scandir, self.stat  # type: ignore[assignment]
        os.mkdir, os.rmdir = self._forgetting("mkdir"), self._forgetting("rmdir")  # type: ignore[assignment]
        builtins.open = io.open = self.open_file  # type: ignore[assignment]
        time.time = self.time
        time.time_ns = lambda: int(self.time() * 1e9)
        shutil._use_fd_functions = False  # type: ignore[attr-defined]

    def rename(self, old: Any, new: Any, **options: Any) -> None:
        self._release()
        self._forget(old, new)
        if os.path.isfile(new) and in_use(new):
            self._keep(new)
        self.real["replace"](old, new, **options)
        self._lose_answer(old)

    def unlink(self, path: Any, **options: Any) -> None:
        self._release()
        self._forget(path)
        if os.path.basename(os.fspath(path)).startswith(HELD) and in_use(path):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), os.fspath(path))
        if os.path.isfile(path) and in_use(path):
            self._keep(path)
        else:
            self.real["unlink"](path, **options)
        self._lose_answer(path)

    def listdir(self, path: Any = ".") -> list[str]:
        key = os.path.abspath(os.fspath(path)) if not isinstance(path, int) else f"descriptor {path}"
        when, names = self.listings.get(key, (0.0, []))
        if names and time.monotonic() - when < STALE_SECONDS and self.chance.random() < STALE:
            return list(names)
        names = self.real["listdir"](path)
        self.listings[key] = time.monotonic(), names
        return list(names)

    def scandir(self, path: Any = ".") -> Any:
        return self.real["scandir"](path)

    def stat(self, path: Any, **options: Any) -> os.stat_result:
        found = self.real["stat"](path, **options)
        seconds = max(0, int(found.st_mtime) - LAG_SECONDS)
        more = {name: getattr(found, name) for name in ("st_blksize", "st_blocks", "st_rdev", "st_atime_ns", "st_ctime_ns")}
        return os.stat_result(
            (*found[:8], seconds, found[9]),
            {"st_mtime": float(seconds), "st_mtime_ns": seconds * 10**9, "st_atime": found.st_atime, **more},
        )

    def open_file(self, file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if set(mode) & set("wax+") and not isinstance(file, int):
            self._forget(file)
        return self.open(file, mode, *arguments, **options)

    def time(self) -> float:
        if self.chance.random() < JUMPS:
            self.behind += 3600 * self.chance.uniform(0.5, 6)
        return self.clock() - self.behind

    def _forgetting(self, name: str) -> Any:
        def operation(path: Any, *arguments: Any, **options: Any) -> Any:
            self._forget(path)
            return self.real[name](path, *arguments, **options)

        return operation

    def _forget(self, *paths: Any) -> None:
        """A process sees its own changes at once."""
        for path in paths:
            self.listings.pop(os.path.dirname(os.path.abspath(os.fspath(path))), None)

    def _keep(self, path: Any) -> None:
        """Give a file that is in use another name in its folder."""
        name = os.path.join(os.path.dirname(os.path.abspath(os.fspath(path))), f"{HELD}{os.getpid():08x}{next(self.numbers):016x}")
        self.real["replace"](path, name)
        self.held.append(name)

    def _release(self) -> None:
        """Remove the files that are no longer in use."""
        for name in list(self.held):
            if not in_use(name):
                self.held.remove(name)
                if os.path.exists(name):
                    self.real["unlink"](name)

    def _lose_answer(self, path: Any) -> None:
        if self.chance.random() < LOST_ANSWERS:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))


def remove_held(folder: Path) -> None:
    """Remove what a process kept until its end, as the system does then."""
    for path in folder.rglob(f"{HELD}*"):
        path.unlink()
