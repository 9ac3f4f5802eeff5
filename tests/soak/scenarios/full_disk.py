"""The disk is full at random moments of commands that write files."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perikope.core import files
from tests.durability.faulty_disk import FAULTS, FaultyDisk
from tests.soak.operations import Ended, Expected, Operation, Workplace, available, complaint
from tests.soak.scenario import Trial, defect, scenario

SIZE = 16 << 20
"""Bytes of the file system that is filled up."""
MOST_FREE = 400 << 10
"""Bytes that are left free at most; most commands need less."""
NEW_NAMESPACE = 0x00020000
"""`CLONE_NEWNS`: what is mounted from then on is seen by this process and its children only, and ends with them."""
NO_SPACE = "No space left on device"


@scenario("full_disk", most=100_000, reduced=6)
def full_disk(trial: Trial) -> None:
    """Commands run on a disk with little space, or whose operations fail at random steps; then there is space again."""
    mounted = mount(trial.folder / "small")
    if not mounted:
        trial.note("no small file system could be mounted (this needs root): faults were injected instead")
    place = trial.folder / "small"
    place.mkdir(exist_ok=True)
    workplace = Workplace(place, trial.folder / "output.txt")
    operations = available(trial)
    refused = 0
    while trial.goes_on():
        operation = operations[(trial.operations // 2) % len(operations)]
        expected = workplace.expected(operation)
        copy = workplace.copy()
        if mounted and trial.operations % 2 == 0:
            free = int(MOST_FREE * trial.chance.random() ** 2)
            where = f"{operation.name} with {free} bytes free"
            trial.doing(where)
            with filled(place, free):
                ended = workplace.do(operation, copy)
        else:
            step, fault = int(10 ** trial.chance.uniform(0, 2.5)) - 1, trial.chance.choice(sorted(FAULTS))
            where = f"{operation.name}, {fault} at step {step}"
            trial.doing(where)
            ended = workplace.do(operation, copy, before=lambda step=step, fault=fault: break_disk(step, fault))
        refused += ended.code == 2
        trial.failures += [
            f"operation {trial.operations}: {where}: {wrong}" for wrong in problems(workplace, operation, expected, copy, ended)
        ]
        trial.did()
        trial.watch()
    trial.note(f"{refused} of {trial.operations} commands were refused")


def problems(workplace: Workplace, operation: Operation, expected: Expected, copy: Path, ended: Ended) -> list[str]:
    """What is wrong with how a command ended, and with what it left."""
    wrong = [complaint(ended, 0, 1, 2)] if complaint(ended, 0, 1, 2) else []
    errors = [line for line in ended.output.splitlines() if line.startswith("perikope: error:")]
    if ended.code == 2 and len(errors) != 1:
        wrong.append(f"{len(errors)} lines say what went wrong: {ended.output[-500:]}")
    if ended.code == 0 and not operation.resumes and operation.state(copy) != expected.new:
        wrong.append(f"the command seemed to succeed, but its result is not there: {ended.output[-500:]}")
    return wrong + workplace.aftermath(operation, copy)


def mount(folder: Path) -> bool:
    """Mount a small file system, for this process and its children; returns whether that was possible."""
    library = ctypes.CDLL(None, use_errno=True)
    if os.name != "posix" or not hasattr(library, "unshare") or library.unshare(NEW_NAMESPACE) != 0:
        return False
    folder.mkdir(exist_ok=True)
    commands = (["mount", "--make-rprivate", "/"], ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)])
    try:
        return all(subprocess.run(command, capture_output=True, check=False).returncode == 0 for command in commands)
    except OSError:
        return False


@contextmanager
def filled(folder: Path, free: int) -> Iterator[None]:
    """Fill the file system of a folder up, except for some bytes, until the block ends."""
    filler = folder / "filler"
    room = os.statvfs(folder)
    with filler.open("wb") as file:
        size = room.f_bavail * room.f_frsize - free
        if size > 0:
            os.posix_fallocate(file.fileno(), 0, size)
    try:
        yield
    finally:
        filler.unlink()


def break_disk(step: int, fault: str) -> None:
    """Let an operation on files fail in this process."""
    FaultyDisk(pytest.MonkeyPatch()).arm(step, **FAULTS[fault])  # type: ignore[arg-type]


@defect(full_disk, "writing ignores that the disk is full", reported="neither the old state nor the new one")
def _ignore() -> None:
    original = files.NewFile.write

    def write(file: files.NewFile, data: bytes) -> int:
        try:
            return original(file, data)
        except OSError:
            return len(data)

    def finish(file: files.NewFile) -> None:
        try:
            file._file.close()
        except OSError:
            file._file.raw.close()

    files.NewFile.write, files.NewFile.finish = write, finish  # type: ignore[method-assign]
