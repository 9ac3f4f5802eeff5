"""A network file system with a wrong clock: commands work, or say in one line why not."""

from __future__ import annotations

import os
import time
from pathlib import Path

from perikope.core import files, locks
from perikope.core.errors import PerikopeError
from perikope.core.locks import take_lock
from perikope.index import commit as commits
from perikope.index.check import check
from perikope.neural.models import add_vectors, set_query_encoder
from perikope.search.facade import Index
from tests.durability import history
from tests.soak.operations import DIMENSION, INDEX, OPERATIONS, STORE, Workplace, available, complaint, in_process, vector
from tests.soak.scenario import Trial, defect, scenario
from tests.support import network_files
from tests.support.network_files import NetworkFiles, remove_held

COMMITS = 8
"""Commits of one session."""
ATTEMPTS = 20
"""How often a session repeats a commit that was refused."""
LOCKED_SECONDS = 0.3


@scenario("network", most=100_000, reduced=8)
def network(trial: Trial) -> None:
    """Commits, commands and waiting for a lock, where renames seem to fail, listings are old, the clock goes back."""
    workplace = Workplace(trial.folder)
    operations = available(trial)
    refused = 0
    while trial.goes_on():
        seed = trial.chance.randrange(1 << 30)
        turn, number = trial.operations % 4, trial.operations // 2 % len(operations)
        trial.doing(f"{('a session', 'a command', 'waiting for a lock', 'a command')[turn]}, {operations[number].name}, seed {seed}")
        if turn == 0:
            wrong = session_problems(trial.folder / f"session-{trial.operations}", seed)
        elif turn == 2:
            wrong = waiting_problems(workplace, seed)
        else:
            operation = operations[number]
            workplace.expected(operation)
            place = workplace.copy()
            ended = workplace.do(operation, place, before=NetworkFiles(seed).install)
            remove_held(place)
            refused += ended.code == 2
            wrong = [f"{operation.name}: {complaint(ended, 0, 1, 2)}"] if complaint(ended, 0, 1, 2) else []
            wrong += [f"{operation.name}: {line}" for line in workplace.aftermath(operation, place)]
        for line in wrong:
            trial.fail(f"seed {seed}: {line}")
        trial.did()
        trial.watch()
    trial.note(f"{refused} commands were refused")


def session_problems(folder: Path, seed: int) -> list[str]:
    """What goes wrong in a session of commits and refreshes in one process."""
    ended = in_process(lambda: session(folder, seed), folder.with_suffix(".txt"))
    remove_held(folder)
    wrong = [f"a session: {complaint(ended, 0)}"] if complaint(ended, 0) else []
    if not wrong and (report := check(folder)).problems:
        wrong.append(f"after a session: {report.problems}")
    return wrong


def session(folder: Path, seed: int) -> int:
    """Make commits and refresh another index after each; a commit that is refused is rolled back and repeated."""
    commits.MAX_SEGMENTS = 3
    index = Index.create(folder)
    reader = Index.open(folder)
    NetworkFiles(seed).install()
    attempts = 0
    while (done := history.verify(reader)) < COMMITS:
        attempts += 1
        assert attempts < ATTEMPTS * COMMITS, f"no commit after {done} succeeds"
        try:
            index.refresh()
            history.make_commit(index, history.verify(index) + 1)
        except (PerikopeError, OSError):
            index.rollback()
        reader.refresh()
        assert history.verify(reader) >= done, f"commit {done} is gone"
        problems = check(folder).problems
        assert not problems, problems
    update_store(index, reader)
    return 0


def update_store(index: Index, reader: Index) -> None:
    """Update a store after a commit; what was searched a moment ago must not hide the new vectors."""
    for commit in (COMMITS + 1, COMMITS + 2):
        for _ in range(ATTEMPTS):
            try:
                if history.verify(reader) < commit:
                    history.make_commit(index, commit)
                add_vectors(index, STORE, lambda texts: [vector(text) for text in texts], vector, DIMENSION)
                break
            except OSError:
                index.rollback()
                reader.refresh()
                index.refresh()
        reader.refresh()
        set_query_encoder(reader, STORE, vector)
        found = reader.search(history.QUERY, model=f"vectors(store={STORE})", documents="all")
        assert found.names(), "nothing is found by vectors"


def waiting_problems(workplace: Workplace, seed: int) -> list[str]:
    """What goes wrong when a command waits for a lock, while the clock goes back."""
    operation = OPERATIONS[0]
    place = workplace.copy()
    holder = hold_lock(place / INDEX)
    ended = workplace.do(operation, place, before=NetworkFiles(seed).install)
    os.waitpid(holder, 0)
    remove_held(place)
    wrong = complaint(ended, 0, 1, 2)
    if not wrong and ended.code == 2 and "being written by another process" in ended.output:
        wrong = f"the lock was released, but the command gave up: {ended.output}"
    return [f"waiting for a lock: {line}" for line in ([wrong] if wrong else workplace.aftermath(operation, place))]


def hold_lock(folder: Path) -> int:
    """Start a process that locks a folder for a moment; returns when the folder is locked."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with take_lock(folder):
                os.write(writing, b"locked")
                time.sleep(LOCKED_SECONDS)
        finally:
            os._exit(0)
    os.close(writing)
    os.read(reading, 6)
    os.close(reading)
    return child


@defect(network, "waiting trusts the clock", reported="waiting for a lock")
def _trust() -> None:
    class Clock:
        """As `time`, but with the clock on the wall, and without patience."""

        sleep = staticmethod(time.sleep)

        @staticmethod
        def monotonic() -> float:
            return -time.time()

    locks.time = Clock  # type: ignore[assignment]


@defect(network, "a rename that took effect is undone", reported="is not an index")
def _undo() -> None:
    original = files.rename

    def rename(old: Path, new: Path) -> None:
        try:
            original(old, new)
        except OSError:
            new.unlink(missing_ok=True)
            raise

    files.rename = rename
    network_files.LOST_ANSWERS = 0.5  # so that it happens soon, whatever the seed
