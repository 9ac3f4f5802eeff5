"""A disk that is full or fails at any operation: the call says so, the index stays at its last commit, and the next attempt succeeds."""

from __future__ import annotations

import errno
import gc
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perikope.api import Index
from perikope.errors import PerikopeError, UsageError
from perikope.index import commit as commits
from perikope.index import files
from perikope.index.check import check
from tests.durability.history import Rebuilds, answers, make_changes, make_commit, verify

BEFORE = 4
"""Commits that are there; the next replaces, deletes, and merges everything."""


class FaultyDisk:
    """Counts the operations on files and lets one of them fail, or all of its kind from one on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fail_at = -1
        self.code = errno.ENOSPC
        self.short = self.stays = False
        self.operations = 0
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
        self.operations += 1
        # A full disk still renames and removes.
        again = self.stays and self.failed and name in ("make", "write", "sync")
        if self.operations - 1 == self.fail_at or again:
            self.failed.append(name)
            raise OSError(self.code, os.strerror(self.code))

    def arm(self, fail_at: int, code: int, *, short: bool = False, stays: bool = False) -> None:
        self.fail_at, self.code, self.short, self.stays = fail_at, code, short, stays
        self.operations, self.failed = 0, []

    def mend(self) -> None:
        self.fail_at, self.stays = -1, False


@pytest.fixture
def disk(monkeypatch):
    monkeypatch.setattr(commits, "MAX_SEGMENTS", 3)  # so that commits merge too
    return FaultyDisk(monkeypatch)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original") / "index"
    index = Index.create(folder)
    for commit in range(1, BEFORE + 1):
        make_commit(index, commit)
    return folder


@pytest.fixture(scope="module")
def rebuilds(tmp_path_factory):
    return Rebuilds(tmp_path_factory.mktemp("rebuilds"))


def open_descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


FAULTS = {
    "full": {"code": errno.ENOSPC},
    "full from then on": {"code": errno.ENOSPC, "stays": True},
    "short write": {"code": errno.ENOSPC, "short": True},
    "failing": {"code": errno.EIO},
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_any_operation_of_a_commit_and_a_merge_may_fail(tmp_path, original, rebuilds, disk, fault):
    expected = rebuilds.answers(BEFORE + 1)
    descriptors = 0
    for number in itertools.count():
        folder = tmp_path / "index"
        shutil.copytree(original, folder)
        descriptors = descriptors or open_descriptors()
        disk.arm(number, **fault)
        index = Index.open(folder)
        error = None
        try:
            make_commit(index, BEFORE + 1)
        except (PerikopeError, OSError) as raised:
            error = raised.with_traceback(None)
        where = f"operation {number}: {disk.failed}, {error!r}"
        disk.mend()
        found = verify(Index.open(folder))
        # A merge comes after its commit; and a manifest that was replaced stays so, even where making that durable failed.
        assert found == BEFORE + 1 or error is not None, where
        assert not check(folder).problems, where
        if error is not None:
            with pytest.raises(UsageError, match="roll back"):
                index.commit()
        index.rollback()
        assert not check(folder).problems, where
        assert verify(Index.open(folder)) == found, where
        if found == BEFORE:
            index.refresh()
            make_changes(index, BEFORE + 1)
            index.commit()
        index.compact()
        assert answers(index) == expected, where
        assert check(folder).unknown_files == (), where
        del index
        shutil.rmtree(folder)
        if number % 50 == 0:
            assert open_descriptors() <= descriptors, where
        if not disk.failed:
            break
    assert number > 100


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_any_operation_of_making_an_index_may_fail(tmp_path, disk, fault):
    for number in itertools.count():
        folder = tmp_path / f"index-{number}"
        disk.arm(number, **fault)
        if number < disk.operations:
            continue
        try:
            Index.create(folder)
        except (PerikopeError, OSError):
            assert disk.failed
        finally:
            disk.mend()
        if not disk.failed:
            break
        index = Index.create(folder)
        make_commit(index, 1)
        assert verify(Index.open(folder)) == 1
        assert check(folder).unknown_files == ()
    assert number > 4


def test_adding_more_than_fits_the_memory_may_fail(tmp_path, original, disk):
    folder = tmp_path / "index"
    shutil.copytree(original, folder)
    index = Index.open(folder, memory=1)
    disk.arm(3, errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        make_changes(index, BEFORE + 1)
    disk.mend()
    with pytest.raises(UsageError, match="roll back"):
        make_changes(index, BEFORE + 1)
    index.rollback()
    make_commit(index, BEFORE + 1)
    assert verify(index) == BEFORE + 1


FULL_DISK = """
import errno, os, sys
from perikope.index import files
def finish(self): raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
files.NewFile.finish = finish
from perikope.cli import main
main(sys.argv[1:])
"""


def test_the_command_line_says_it_in_one_line(tmp_path, original):
    folder, text = tmp_path / "index", tmp_path / "new.txt"
    shutil.copytree(original, folder)
    text.write_text("A pump.")
    command = [sys.executable, "-c", FULL_DISK, "index", str(text), "--to", str(folder), "--append"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr
    assert verify(Index.open(folder)) == BEFORE
