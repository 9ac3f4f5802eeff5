"""After a power loss the index opens at its last commit, whatever the disk kept besides synced data.

Every change goes through `perikope.core.files`. The tests record the changes and construct the disk after a power loss
at every moment:
- the content of a file that was not synced is complete, cut short, random or empty,
- a name that was made, changed or removed since the folder was synced is old or new, independently of other names.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from perikope.core import files
from perikope.index import commit as commits
from perikope.index.check import check
from perikope.search.facade import Index
from tests.durability.history import commit_of, make_commit, verify

COMMITS = 9
SEED = int(os.environ.get("PERIKOPE_SEED", "20"))

State = dict[str, bytes]
"""The content of each file of a folder, by name."""


class Killed(BaseException):
    """Ends the simulated process: it changes nothing more."""


@dataclass
class Disk:
    """Records the changes to the folder of an index, step by step."""

    steps: list[Callable[[Model], None]] = field(default_factory=list)
    namings: int = 0
    kill_at: int | None = None
    """The number of changes of names after which the process is killed."""

    def record(self, step: Callable[[Model], None], do: Callable[[], Any], *, naming: bool = False) -> None:
        if self.kill_at is not None and self.namings >= self.kill_at:
            raise Killed
        do()
        self.steps.append(step)
        self.namings += naming

    def begin(self, commit: int) -> None:
        """Record that a commit begins: from now on the index may be at it."""
        self.steps.append(lambda model: setattr(model, "begun", commit))

    def end(self, commit: int) -> None:
        """Record that a commit has returned: from now on the index must have it."""
        self.steps.append(lambda model: setattr(model, "promised", commit))


@dataclass
class Model:
    """The state of a disk: contents, which of them are synced, and changes of names that are not."""

    contents: dict[int, bytes] = field(default_factory=dict)
    synced: set[int] = field(default_factory=set)
    names: dict[str, int] = field(default_factory=dict)
    pending: list[tuple[str, str, int]] = field(default_factory=list)
    promised: int | None = None
    begun: int = 0

    @property
    def allowed(self) -> set[int | None]:
        """The commits that the index may be at after a power loss; None stands for no index."""
        return {self.promised, *range(self.promised or 0, self.begun + 1)}

    def states(self, chance: random.Random) -> Iterator[State]:
        """Yield folders that a power loss at this moment may leave."""
        none, all_done = [False] * len(self.pending), [True] * len(self.pending)
        alone = [[i == chosen for i in range(len(self.pending))] for chosen in range(len(self.pending))]
        missing = [[i != chosen for i in range(len(self.pending))] for chosen in range(len(self.pending))]
        some = [[chance.random() < 0.5 for _ in self.pending] for _ in range(2)]
        for happened in [none, all_done, *alone, *missing, *some]:
            names = self._names(happened)
            for harm in (lambda data: data, lambda data: b"", lambda data: data[: chance.randrange(len(data) + 1)], chance_bytes(chance)):
                yield {name: self.contents[file] if file in self.synced else harm(self.contents[file]) for name, file in names.items()}

    def _names(self, happened: list[bool]) -> dict[str, int]:
        names = dict(self.names)
        for (old, new, file), done in zip(self.pending, happened, strict=True):
            if done:
                names.pop(old, None)
                if new:
                    names[new] = file
        return names

    def sync_names(self) -> None:
        self.names = self._names([True] * len(self.pending))
        self.pending = []

    def file(self, name: str) -> int:
        return self._names([True] * len(self.pending))[name]


def chance_bytes(chance: random.Random) -> Callable[[bytes], bytes]:
    return lambda data: chance.randbytes(len(data))


@pytest.fixture
def disk(monkeypatch):
    """A disk that records all changes."""
    disk, numbers = Disk(), itertools.count()

    class RecordedFile(files.NewFile):
        def __init__(self, path: Path) -> None:
            self.number, self.data = next(numbers), b""

            def made(model: Model) -> None:
                model.contents[self.number] = b""
                model.pending.append(("", path.name, self.number))

            disk.record(made, lambda: super(RecordedFile, self).__init__(path))

        def write(self, data: Any) -> None:
            # Recorded when the file is synced: until then, the disk may have any part of it.
            self.data += bytes(data)
            super().write(data)

        def finish(self) -> None:
            number, data = self.number, self.data
            disk.record(lambda model: model.contents.__setitem__(number, data), lambda: None)
            disk.record(lambda model: model.synced.add(number), super().finish)

    def rename(old: Path, new: Path, original=files.rename) -> None:
        disk.record(lambda model: model.pending.append((old.name, new.name, model.file(old.name))), lambda: original(old, new), naming=True)

    def remove(path: Path, original=files.remove) -> None:
        if path.exists():
            disk.record(lambda model: model.pending.append((path.name, "", -1)), lambda: original(path), naming=True)

    def sync_folder(folder: Path, original=files.sync_folder) -> None:
        disk.record(lambda model: model.sync_names(), lambda: original(folder), naming=True)

    for name, replacement in (("NewFile", RecordedFile), ("rename", rename), ("remove", remove), ("sync_folder", sync_folder)):
        monkeypatch.setattr(files, name, replacement)
    monkeypatch.setattr(commits, "MAX_SEGMENTS", 4)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # costs time, and no power is lost here
    return disk


class States:
    """Opens and verifies folders as a power loss left them, each distinct one once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[tuple[tuple[str, bytes], ...], int | None] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def commit(self, state: State) -> int | None:
        """The commit that a folder is at, after its content was verified; None if there is no index."""
        key = tuple(sorted(state.items()))
        if key not in self._seen:
            self._seen[key] = self._look(state)
        return self._seen[key]

    def _look(self, state: State) -> int | None:
        if "manifest.json" not in state:
            return None
        folder = self._folder / f"{len(self._seen)}"
        folder.mkdir()
        for name, data in state.items():
            (folder / name).write_bytes(data)
        index = Index.open(folder)
        commit = verify(index)
        report = check(folder)
        assert not report.problems
        if len(self._seen) % 4 == 0:
            make_commit(index, commit + 1)
            assert verify(Index.open(folder)) == commit + 1
            assert check(folder).unknown_files == ()
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        return commit


def assert_survives(disk: Disk, states: States, since: int = 0) -> None:
    """Assert that the index survives a power loss after each step from `since` on, in all states of the model."""
    chance, model = random.Random(SEED), Model()
    steps, disk.steps = disk.steps, []
    disk.kill_at = None
    for number, step in enumerate(steps):
        step(model)
        if number >= since:
            for state in model.states(chance):
                commit = states.commit(state)
                where = f"after step {number} of {len(steps)}, seed {SEED}: {sorted(state)}"
                assert commit in model.allowed, where
    disk.steps = []  # those of verifying the states


def test_power_may_go_at_any_moment(tmp_path, disk):
    index = Index.create(tmp_path / "index")
    disk.end(0)
    for commit in range(1, COMMITS + 1):
        disk.begin(commit)
        make_commit(index, commit)
        disk.end(commit)
    states = States(tmp_path)
    assert_survives(disk, states)
    assert len(states) > 400


def test_power_may_go_after_the_next_writer_has_cleared_up_behind_a_killed_one(tmp_path, disk):
    """A writer is killed between replacing the manifest and making that durable; the next one must sync it first."""
    states = States(tmp_path)
    for kill in itertools.count():
        folder = tmp_path / f"index-{kill}"
        index = Index.create(folder)
        for commit in range(1, 5):
            make_commit(index, commit)
        disk.end(4)
        disk.begin(5)
        disk.kill_at = disk.namings + kill
        try:
            make_commit(index, 5)
        except Killed:
            killed = True
            index._writer._lock.release()  # as the end of a process does
        else:
            killed = False
        disk.kill_at = None
        death = len(disk.steps)
        index = Index.open(folder)
        commit = commit_of(index) + 1
        disk.begin(commit)
        make_commit(index, commit)
        disk.end(commit)
        assert_survives(disk, states, since=death)
        if not killed:
            break
    assert kill > 8


def test_the_folder_itself_is_made_durable(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(files, "sync_folder", lambda folder, original=files.sync_folder: (synced.append(folder), original(folder)))
    Index.create(tmp_path / "a" / "b" / "index")
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "index"]
