"""Commands that write files are killed at random moments; each leaves its old or its new state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from perikope.core import files
from perikope.index import commit as commits
from tests.soak.operations import COPY, Workplace, available
from tests.soak.scenario import Trial, defect, scenario

LONGEST = 1.1
"""The latest moment of a kill, as a multiple of the time that the undisturbed command takes."""


@scenario("kills", most=100_000, reduced=5)
def kills(trial: Trial) -> None:
    """Commands that write an index, store, table, run, recipe or experiment are killed, then checked and repeated."""
    workplace = Workplace(trial.folder)
    operations = available(trial)
    done = dict.fromkeys((operation.name for operation in operations), 0)
    while trial.goes_on():
        # All operations in turn, so that a short run tries each of them.
        operation = operations[trial.operations % len(operations)]
        after = trial.chance.uniform(0, LONGEST * workplace.expected(operation).seconds)
        where = f"{operation.name}, killed after {after:.3f} s"
        trial.doing(where)
        place = workplace.copy()
        ended = workplace.do(operation, place, kill_after=after)
        if ended.code not in (-9, 0, 1) or "Traceback" in ended.output:
            trial.fail(f"{where}: exit code {ended.code}: {ended.output[-1500:]}")
        for wrong in workplace.aftermath(operation, place):
            trial.fail(f"{where}: {wrong}")
        done[operation.name] += ended.code == -9
        trial.did()
        trial.watch()
    if workplace.unfinished:
        trial.note(f"{workplace.unfinished} temporary files remained in folders without a lock")
    trial.note("killed before their end: " + ", ".join(f"{name} {count}" for name, count in done.items()))


@defect(kills, "files are written in place", reported="neither the old state nor the new one")
def _in_place() -> None:
    @contextmanager
    def in_place(path: Path) -> Iterator[BinaryIO]:
        with Path(path).open("wb") as file:
            _linger(path)
            yield file

    files.replacing_binary = in_place


@defect(kills, "what a killed process left is kept", reported="files remain")
def _keep() -> None:
    original = files.NewFile.finish

    def finish(file: files.NewFile) -> None:
        _linger(file.path)
        original(file)

    files.NewFile.finish = finish  # type: ignore[method-assign]
    files.remove_temporaries = lambda folder: None
    commits.IndexWriter._remove_leftovers = lambda self: None  # type: ignore[method-assign]


def _linger(path: Path) -> None:
    """Wait in the process that is killed, as if there were much to write."""
    if COPY in Path(path).absolute().parts:
        time.sleep(0.5)
