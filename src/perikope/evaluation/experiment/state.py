"""Finished work of an experiment, kept beside its results: an interruption loses only the tasks in hand.

Finished work is known by a fingerprint of everything that it depends on, so that a result is never used for other
settings. `State` keeps one folder per system and sweep, named by the fingerprint. `FinishedJobs` keeps one file per
job, which contains the fingerprint; such files can be copied between machines. Files get their names when they are
complete.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.arrays import Floats
from perikope.core.errors import InputError, LockedError, UsageError
from perikope.core.files import replacing, replacing_binary
from perikope.core.locks import take_lock

FOLDER = ".work"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other experiments out of a folder."""
    work = folder / FOLDER
    work.mkdir(parents=True, exist_ok=True)
    try:
        lock = take_lock(work)
    except LockedError:
        raise UsageError(f"another experiment is writing to {folder}: wait until it is done, or name another folder (--out)") from None
    with lock:
        yield


def digest(value: object) -> str:
    """A fingerprint of a value that can be written as JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True, default=str).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """A fingerprint of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class State:
    """The finished work of one system in one sweep, kept as files in one folder."""

    def __init__(self, folder: Path, key: str) -> None:
        self.folder = folder / FOLDER / key

    def read(self, name: str) -> Any:
        """The value that was written under a name; None where there is none, or its file is damaged."""
        try:
            return json.loads((self.folder / f"{name}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def write(self, name: str, value: object) -> None:
        """Write a value under a name, replacing the old one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.folder / f"{name}.json") as file:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")

    def read_scores(self, topics: Sequence[int], settings: int) -> Floats | None:
        """The scores of settings for topics by number, (topics, settings); None where they were not kept."""
        try:
            scores = np.load(self._scores(topics), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return scores if scores.shape == (len(topics), settings) and scores.dtype == np.float64 else None

    def write_scores(self, topics: Sequence[int], scores: Floats) -> None:
        """Keep the scores of settings for consecutive topics."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing_binary(self._scores(topics)) as file:
            np.save(file, scores)

    def _scores(self, topics: Sequence[int]) -> Path:
        # Named by the topics, not by the number of the chunk: chunks of another size must not be mistaken for these.
        return self.folder / f"scores-{topics[0]}-{topics[-1]}.npy"

    def run(self, chunk: int) -> Path:
        """The file of the run of one chunk of topics."""
        return self.folder / f"run-{chunk}.gz"

    def join_runs(self, chunks: Iterable[int], target: Path) -> str:
        """Write the runs of all chunks as one file; returns its fingerprint."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing_binary(target) as joined:
            for chunk in chunks:
                with open(self.run(chunk), "rb") as piece:
                    shutil.copyfileobj(piece, joined)
        return file_digest(target)

    def keep_only(self, names: Collection[str]) -> None:
        """Remove all files from the folder except those with these names."""
        for file in self.folder.iterdir() if self.folder.is_dir() else ():
            if file.name not in names:
                file.unlink()


def remove_others(folder: Path, keys: Collection[str]) -> None:
    """Remove finished work of systems and sweeps that the experiment no longer has."""
    work = folder / FOLDER
    for state in work.iterdir() if work.is_dir() else ():
        if state.name not in keys and state.is_dir():
            shutil.rmtree(state)


@dataclass(frozen=True, slots=True)
class Job:
    """One system with one seed."""

    system: str
    seed: int
    fingerprint: str
    """Of everything but the seed that its values depend on."""

    @property
    def name(self) -> str:
        """The name of its file, without the ending.

        >>> Job("HGAT, opening", 3, "").name
        'HGAT__opening.3'
        """
        return f"{''.join(letter if letter.isalnum() else '_' for letter in self.system)}.{self.seed}"


class FinishedJobs:
    """The values of finished jobs: one JSON file per job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, job: Job) -> Path:
        """The file of a job."""
        return self.folder / f"{job.name}.json"

    def read(self, job: Job) -> dict[str, Any] | None:
        """The values of a job; None where it was not done, or with other settings."""
        path = self.path(job)
        if not path.is_file():
            return None
        try:
            content = json.loads(path.read_text("utf-8"))
            values: dict[str, Any] | None = content if content["fingerprint"] == job.fingerprint else None
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError("holds no values of a job, or is damaged; remove it", path=path) from None
        return values

    def write(self, job: Job, values: Mapping[str, Any]) -> None:
        """Keep the values of a job."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.path(job)) as file:
            file.write(json.dumps({"system": job.system, "seed": job.seed, "fingerprint": job.fingerprint, **values}))

    def copy_from(self, other: Path, jobs: Iterable[Job]) -> None:
        """Copy the files of jobs that another folder has and this one has not."""
        for job in jobs:
            known, path = FinishedJobs(other).path(job), self.path(job)
            if known.is_file() and not path.is_file():
                self.folder.mkdir(parents=True, exist_ok=True)
                with replacing_binary(path) as file:
                    file.write(known.read_bytes())
