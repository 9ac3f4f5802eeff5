"""A disk that is full or fails at any operation.

The call reports the error, the index stays at its last commit, and the next attempt succeeds.
"""

from __future__ import annotations

import errno
import gc
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perikope.core.errors import InputError, PerikopeError, UsageError
from perikope.document.tree import TreeBuilder
from perikope.index import commit as commits
from perikope.index.check import check
from perikope.search.facade import Index
from tests.durability.faulty_disk import FAULTS, FaultyDisk
from tests.durability.history import Rebuilds, answers, make_changes, make_commit, verify

BEFORE = 4
"""The number of commits in the index; the next one replaces, deletes, and merges everything."""
THOROUGH = "PERIKOPE_SOAK" in os.environ
"""Whether each of the hundreds of similar writes meets every fault; otherwise each meets one of them."""


@pytest.fixture
def disk(monkeypatch):
    monkeypatch.setattr(commits, "MAX_SEGMENTS", 3)  # so that commits merge too
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # costs time, and no power is lost here
    return FaultyDisk(monkeypatch)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original") / "index"
    index = Index.create(folder)
    for commit in range(1, BEFORE + 1):
        make_commit(index, commit)
    return folder


def open_descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@pytest.mark.parametrize("fault", FAULTS)
def test_any_operation_of_a_commit_and_a_merge_may_fail(tmp_path, original, disk, fault):
    names, fingerprint = undisturbed(tmp_path / "undisturbed", original, disk, Rebuilds(tmp_path))
    turn = list(FAULTS).index(fault)
    operations = [i for i, name in enumerate(names) if name != "write" or THOROUGH or i % len(FAULTS) == turn]
    descriptors = open_descriptors()
    for number in operations:
        folder = tmp_path / "index"
        shutil.copytree(original, folder)
        disk.arm(number, **FAULTS[fault])
        index = Index.open(folder)
        error = None
        try:
            make_commit(index, BEFORE + 1)
        except (PerikopeError, OSError) as raised:
            error = raised.with_traceback(None)
        where = f"operation {number}: {disk.failed}, {error!r}"
        disk.mend()
        if error is not None:
            with pytest.raises(UsageError, match="roll back"):
                index.commit()
        index.rollback()
        index.refresh()
        commit = verify(index)
        # A merge comes after its commit. A manifest that was replaced stays, even if making it durable failed.
        assert commit == BEFORE + 1 or error is not None, where
        assert disk.failed or error is None, where
        assert not check(folder).problems, where
        if commit == BEFORE:
            make_changes(index, BEFORE + 1)
        index.compact()
        assert index.fingerprint == fingerprint, where
        assert len(list(folder.iterdir())) == len(("manifest.json", "write.lock", "segment")), where
        del index
        shutil.rmtree(folder)
    assert open_descriptors() <= descriptors


def undisturbed(folder: Path, original: Path, disk: FaultyDisk, rebuilds: Rebuilds) -> tuple[list[str], str]:
    """The operations of a commit without faults, and the fingerprint of the resulting index."""
    shutil.copytree(original, folder)
    index = Index.open(folder)
    disk.arm(-1, 0)
    make_commit(index, BEFORE + 1)
    names = list(disk.names)
    assert {"make", "write", "sync", "rename", "remove", "sync_folder"} == set(names)
    assert answers(index) == rebuilds.answers(BEFORE + 1)
    return names, index.fingerprint


@pytest.mark.parametrize("fault", FAULTS)
def test_any_operation_of_making_an_index_may_fail(tmp_path, disk, fault):
    for number in itertools.count():
        folder = tmp_path / f"index-{number}"
        disk.arm(number, **FAULTS[fault])
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


def test_what_cannot_be_merged_is_not_committed(tmp_path):
    """A commit with more parts than one segment can have is refused, since its segments could never be merged."""
    index = Index.create(tmp_path / "index")
    for number in range(2):
        builder = TreeBuilder(f"d{number}")
        for part in range(40):
            builder.passage("pump", part=f"part {number} {part}")
        index.add([builder.build()])
        if number:
            with pytest.raises(InputError, match="more than 64 different parts"):
                index.commit()
        else:
            index.commit()
    index.rollback()
    index.compact()
    assert len(Index.open(tmp_path / "index")) == 1
    assert check(tmp_path / "index").unknown_files == ()


FULL_DISK = """
import errno, os, sys
from perikope.core import files
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
