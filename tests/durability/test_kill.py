"""A writer that is killed at any moment leaves the index at its last commit, and readers never see anything else."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perikope.core.errors import IndexFormatError
from perikope.index.check import check
from perikope.search.facade import Index
from tests.durability.history import Rebuilds, answers, make_changes, make_commit, verify

KILLS = int(os.environ.get("PERIKOPE_KILLS", "20"))
SEED = int(os.environ.get("PERIKOPE_SEED", "20"))
LONGEST_LIFE = 0.25
"""The longest time before a writer is killed, in seconds: about ten commits. The time is drawn uniformly."""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_writer_leaves_its_last_commit(tmp_path):
    folder, log = tmp_path / "index", tmp_path / "log"
    make_commit(Index.create(folder), 1)
    log.write_text("end 1\n")
    rebuilds, chance = Rebuilds(tmp_path), random.Random(SEED)
    reader, writer = start("read", folder), start("write", folder, log)
    try:
        assert reader.stdout.readline() == "ready\n"
        for kill in range(KILLS):
            where = f"kill {kill} of seed {SEED}"
            assert kill_writer(writer, chance.uniform(0, LONGEST_LIFE)) == -signal.SIGKILL, where
            assert verify(Index.open(folder)) in allowed(log), where
            report = check(folder)
            assert not report.problems, f"{where}: {report.problems}"
            index = Index.open(folder)
            assert answers(index) == rebuilds.answers(verify(index)), where
            assert reader.poll() is None, where
        go_on(folder, rebuilds)
        rounds, commits = map(int, reader.communicate()[0].split())
        assert reader.returncode == 0
        assert rounds >= KILLS
        assert commits > 1
    finally:
        for process in (reader, writer):
            process.kill()
            process.communicate()


def test_two_programs_cannot_make_the_same_index(tmp_path):
    """An index without a commit may be made anew, but not while another process writes to it."""
    index = Index.create(tmp_path / "index")
    make_changes(index, 1)
    with pytest.raises(IndexFormatError, match="has unfinished changes in this process"):
        Index.create(tmp_path / "index")
    index.commit()
    assert verify(Index.open(tmp_path / "index")) == 1


def start(task: str, *paths: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.durability.writer_program", task, *map(str, paths)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def kill_writer(writer: subprocess.Popen[str], after: float) -> int:
    """Let a writer write for `after` seconds, kill it and return its exit code."""
    writer.stdin.write("go\n")
    writer.stdin.flush()
    child = int(writer.stdout.readline())
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    return int(writer.stdout.readline())


def allowed(log: Path) -> set[int]:
    """The commits that the index may be at: the last that was finished, and the next one if it was begun."""
    lines = [line.split() for line in log.read_text().splitlines()]
    finished = max(int(commit) for event, commit in lines if event == "end")
    return {finished, *(int(commit) for event, commit in lines if event == "begin" and int(commit) == finished + 1)}


def go_on(folder: Path, rebuilds: Rebuilds) -> None:
    """Assert that the next commit succeeds, has the right content, and removes the files of killed writers."""
    index = Index.open(folder)
    commit = verify(index) + 1
    make_commit(index, commit)
    assert answers(index) == rebuilds.answers(commit)
    assert check(folder).unknown_files == ()
