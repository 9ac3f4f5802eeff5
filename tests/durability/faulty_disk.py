"""A disk that is full or fails at one operation: every change of files goes through `perikope.core.files`."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from perikope.core import files

FAULTS = {
    "full": {"code": errno.ENOSPC},
    "full from then on": {"code": errno.ENOSPC, "stays": True},
    "short write": {"code": errno.ENOSPC, "short": True},
    "failing": {"code": errno.EIO},
}


class FaultyDisk:
    """Counts the operations on files and makes one of them fail, or all that write from then on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fail_at = -1
        self.code = errno.ENOSPC
        self.short = self.stays = False
        self.names: list[str] = []
        self.failed: list[str] = []
        disk, original = self, files.NewFile

        class FaultyFile(original):  # type: ignore[misc, valid-type]
            def __init__(self, path: Path) -> None:
                disk.step("make")
                super().__init__(path)

            def write(self, data) -> None:
                try:
                    disk.step("write")
                except OSError:
                    if disk.short:
                        super().write(bytes(data)[: len(data) // 2])
                        self._file.flush()
                    raise
                super().write(data)

            def copy_from(self, source) -> None:
                try:
                    disk.step("write")
                except OSError:
                    if disk.short:
                        super().write(source.read(100))
                        self._file.flush()
                    raise
                super().copy_from(source)

            def rewrite_start(self, data) -> None:
                disk.step("write")
                super().rewrite_start(data)

            def finish(self) -> None:
                disk.step("sync")
                super().finish()

        monkeypatch.setattr(files, "NewFile", FaultyFile)
        for name in ("rename", "remove", "sync_folder", "make_folder"):
            monkeypatch.setattr(files, name, self._faulty(name, getattr(files, name)))

    def _faulty(self, name: str, original: Callable[..., None]) -> Callable[..., None]:
        def operation(*arguments: Path) -> None:
            self.step(name)
            original(*arguments)

        return operation

    def step(self, name: str) -> None:
        self.names.append(name)
        # A full disk still renames and removes.
        again = self.stays and self.failed and name in ("make", "write", "sync")
        if len(self.names) - 1 == self.fail_at or again:
            self.failed.append(name)
            raise OSError(self.code, os.strerror(self.code))

    def arm(self, fail_at: int, code: int, *, short: bool = False, stays: bool = False) -> None:
        self.fail_at, self.code, self.short, self.stays = fail_at, code, short, stays
        self.names, self.failed = [], []

    def mend(self) -> None:
        self.fail_at, self.stays = -1, False
