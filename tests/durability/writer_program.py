"""A process that writes to an index until it is killed, and one that reads it meanwhile; `test_kill` starts both.

    python -m tests.durability.writer_program write FOLDER LOG
    python -m tests.durability.writer_program read FOLDER

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
from pathlib import Path

from perikope.index import commit as commits
from perikope.index.check import check
from perikope.search.facade import Index
from tests.durability.history import answers, commit_of, make_commit, verify

commits.MAX_SEGMENTS = 4  # so that commits cause merges


def write_forever(folder: Path, log: Path) -> None:
    """Make commits without end; the log records when each begins and ends."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(text: str) -> None:
        os.write(descriptor, text.encode())
        os.fsync(descriptor)

    index = Index.open(folder)
    commit = commit_of(index)
    note(f"end {commit}\n")  # the writer before may have been killed after its commit, before it was logged
    while True:
        commit += 1
        note(f"begin {commit}\n")
        make_commit(index, commit)
        note(f"end {commit}\n")


def write(folder: Path, log: Path) -> None:
    answers(Index.open(folder))  # loads the kernels
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                write_forever(folder, log)
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


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    task, *paths = sys.argv[1:]
    {"write": write, "read": read}[task](*map(Path, paths))
