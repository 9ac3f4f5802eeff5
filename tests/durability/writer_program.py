"""A process that writes to an index until it is killed, and one that reads it meanwhile; `test_kill` starts both.

    python -m tests.durability.writer_program write FOLDER LOG
    python -m tests.durability.writer_program read FOLDER
    python -m tests.durability.writer_program write-attachments FOLDER LOG
    python -m tests.durability.writer_program read-attachments FOLDER

The last two write and read a store of vectors and a learned table; their commits of the index are not interrupted.
Loading Python and the kernels takes a second, so the writer is loaded once. For each line on its standard input it
forks a child that writes, prints the child's process id, waits for its end and prints its exit code. The reader stops
when its standard input ends.
"""

from __future__ import annotations

import os
import select
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from perikope.index import commit as commits
from perikope.index.check import check
from perikope.index.saved_tables import read_table
from perikope.neural.stores.check import check_stores
from perikope.neural.stores.store import VectorStore
from perikope.search.facade import Index
from tests.durability.attachments import STORE, TABLE, commit_of_store, make_attachments
from tests.durability.history import answers, commit_of, make_commit, verify

commits.MAX_SEGMENTS = 4  # so that commits cause merges


def attach_forever(folder: Path, log: Path) -> None:
    """Bring store and table to the commits that the index reaches; the log records when each update begins and ends."""
    os.fsync = lambda descriptor: None  # costs most of the time, and no power is lost here
    note = _log(log)
    index = Index.open(folder)
    commit = commit_of(index)
    make_attachments(index, commit)
    note(f"end {commit}\n")
    while True:
        commit += 1
        note(f"begin {commit}\n")
        make_commit(index, commit)
        make_attachments(index, commit)
        note(f"end {commit}\n")


def write_forever(folder: Path, log: Path) -> None:
    """Make commits without end; the log records when each begins and ends."""
    note = _log(log)
    index = Index.open(folder)
    commit = commit_of(index)
    note(f"end {commit}\n")  # the writer before may have been killed after its commit, before it was logged
    while True:
        commit += 1
        note(f"begin {commit}\n")
        make_commit(index, commit)
        note(f"end {commit}\n")


def _log(log: Path) -> Callable[[str], None]:
    """A function that adds a text to a log, durably."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(text: str) -> None:
        os.write(descriptor, text.encode())
        os.fsync(descriptor)

    return note


def write(folder: Path, log: Path, forever: Callable[[Path, Path], None] = write_forever) -> None:
    answers(Index.open(folder))  # loads the kernels
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                forever(folder, log)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(1)
        say(f"{child}")
        _, status = os.waitpid(child, 0)
        say(f"{os.waitstatus_to_exitcode(status)}")


def read(folder: Path) -> None:
    """Open, refresh, search and check the index; every state must be that of a commit."""
    index = Index.open(folder)
    seen = set()
    rounds = last = 0
    say("ready")
    while not select.select([sys.stdin], [], [], 0)[0]:
        rounds += 1
        if rounds % 3:
            index.refresh()
        else:
            index = Index.open(folder)
        commit = verify(index)
        assert commit >= last, f"commit {commit} was seen after commit {last}"
        assert answers(index) == answers(index)
        last = commit
        seen.add(commit)
        if rounds % 5 == 0:
            report = check(folder)
            assert not report.problems, report.problems
        time.sleep(0.002)
    say(f"{rounds} {len(seen)}")


def read_attachments(folder: Path) -> None:
    """Open and check store and table; both must be those of a commit, and a store that is open must stay as it is."""
    rounds = 0
    seen = set()
    say("ready")
    held, snapshot = VectorStore(folder / "neural" / STORE), Index.open(folder).snapshot
    while not select.select([sys.stdin], [], [], 0)[0]:
        rounds += 1
        # A store is brought to a commit after the index. Many commits may be made while this process waits for a core.
        before, store = commit_of(Index.open(folder)), VectorStore(folder / "neural" / STORE)
        possible = range(before - 1, commit_of(Index.open(folder)) + 1)
        assert commit_of_store(store, possible) is not None, f"the store is at no commit of {possible}"
        seen.add(table_commit_of_reader(folder))
        known = [held.rows_of(snapshot, segment) for segment in snapshot.segments]
        assert sum(int((rows[:, 0] >= 0).sum()) for rows in known) > 0
        if rounds % 3 == 0:
            held, snapshot = VectorStore(folder / "neural" / STORE), Index.open(folder).snapshot
        if rounds % 5 == 0:
            assert not check_stores(folder).problems, check_stores(folder).problems
        time.sleep(0.002)
    say(f"{rounds} {len(seen)}")


def table_commit_of_reader(folder: Path) -> int:
    """The commit of the table alone: its further file may be replaced between two reads."""
    return int(read_table(TABLE, "tags", folder).values["queries"])


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    task, *paths = sys.argv[1:]
    attach = partial(write, forever=attach_forever)
    tasks = {"write": write, "read": read, "write-attachments": attach, "read-attachments": read_attachments}
    tasks[task](*map(Path, paths))
