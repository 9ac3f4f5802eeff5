"""Saves finished work of an experiment in the folder of its results. An interruption loses only tasks in progress.

Finished work is stored with a fingerprint of everything that changes its values, so that it is never used for other
settings. `State` has one folder per system and sweep, whose name contains the fingerprint. `FinishedJobs` has one file
per job, which contains the fingerprint and can be copied between machines. Files are written under a temporary name
and renamed when they are complete.
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

from perikope.core.array_files import StoredArray
from perikope.core.arrays import Floats
from perikope.core.errors import InputError, LockedError, UsageError
from perikope.core.files import remove_temporaries, replacing, replacing_binary
from perikope.core.locks import take_lock
from perikope.core.reading import MAX_SAVED, check_readable, open_regular, read_limited, read_saved

FOLDER = ".work"
MAX_HASHED = 1 << 36
"""The largest file of documents or runs that an experiment reads, in bytes."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder, so that no other experiment writes to it, and remove what a stopped one left unfinished.

    Raises an error if the folder is locked already.
    """
    work = folder / FOLDER
    work.mkdir(parents=True, exist_ok=True)
    try:
        lock = take_lock(work)
    except LockedError:
        raise UsageError(f"another experiment is writing to {folder}: wait until it is done, or name another folder (--out)") from None
    with lock:
        for place in _places(folder):
            remove_temporaries(place)
        yield


def _places(folder: Path) -> Iterator[Path]:
    """The folders that an experiment writes files to, without indexes, whose writers clean up themselves."""
    yield from (folder, folder / "runs", folder / "values", folder / "collections")
    yield from (path for path in (folder / FOLDER).rglob("*") if path.is_dir())
    yield folder / FOLDER


def digest(value: object) -> str:
    """The SHA-256 of a value written as JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True, default=str).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """The SHA-256 of the bytes of a file. Devices, pipes and files above `MAX_HASHED` are unreadable."""
    check_readable(path, MAX_HASHED)
    found = hashlib.sha256()
    with open_regular(path) as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


class State:
    """Values that are saved in one folder below `.work`, such as the finished work of one system in one sweep."""

    def __init__(self, folder: Path, key: str) -> None:
        self.folder = folder / FOLDER / key

    def read(self, name: str) -> Any:
        """The value that was written under a name, or None if there is none or its file is damaged."""
        try:
            return read_saved(self.folder / f"{name}.json")
        except (OSError, ValueError):
            return None

    def write(self, name: str, value: object) -> None:
        """Save a value under a name, replacing the old value."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.folder / f"{name}.json") as file:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")

    def read_scores(self, topics: Sequence[int], settings: int) -> Floats | None:
        """The saved scores of settings for consecutive topics, given by their numbers, as an array (topics, settings).

        None if there are no scores of this shape, or their file is damaged.
        """
        try:
            scores: Floats = StoredArray(self._scores(topics), np.float64, (len(topics), settings)).values
        except (OSError, ValueError):
            return None
        return scores

    def write_scores(self, topics: Sequence[int], scores: Floats) -> None:
        """Save the scores of settings, an array (topics, settings), for consecutive topics."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing_binary(self._scores(topics)) as file:
            np.save(file, scores)

    def _scores(self, topics: Sequence[int]) -> Path:
        # The name has the numbers of the topics, so that scores of chunks of another size are not confused with these.
        return self.folder / f"scores-{topics[0]}-{topics[-1]}.npy"

    def run(self, chunk: int) -> Path:
        """The path of the run file of one chunk of topics."""
        return self.folder / f"run-{chunk}.gz"

    def join_runs(self, chunks: Iterable[int], target: Path) -> str:
        """Join the runs of all chunks into one file and return the fingerprint of the file."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing_binary(target) as joined:
            for chunk in chunks:
                with open(self.run(chunk), "rb") as piece:
                    shutil.copyfileobj(piece, joined)
        return file_digest(target)

    def keep_only(self, names: Collection[str]) -> None:
        """Remove all files from the folder of the state, except those with the given names."""
        for file in self.folder.iterdir() if self.folder.is_dir() else ():
            if file.name not in names:
                file.unlink()


def remove_others(folder: Path, keys: Collection[str]) -> None:
    """Remove all states of a folder whose keys are not among `keys`."""
    work = folder / FOLDER
    for state in work.iterdir() if work.is_dir() else ():
        if state.name not in keys and state.is_dir():
            shutil.rmtree(state)


@dataclass(frozen=True, slots=True)
class Job:
    """One ranker with one seed."""

    system: str
    seed: int
    fingerprint: str
    """A fingerprint of all settings that change the values of the ranker, except the seed."""

    @property
    def name(self) -> str:
        """The name of the file of the job, without the suffix `.json`.

        >>> Job("HGAT, opening", 3, "").name
        'HGAT__opening.3'
        """
        return f"{''.join(letter if letter.isalnum() else '_' for letter in self.system)}.{self.seed}"


class FinishedJobs:
    """The values of finished jobs in a folder, with one JSON file per job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, job: Job) -> Path:
        """The path of the file of a job."""
        return self.folder / f"{job.name}.json"

    def read(self, job: Job) -> dict[str, Any] | None:
        """The values of a job, or None if the job is not finished or was run with other settings.

        Raises an `InputError` if the file is damaged.
        """
        path = self.path(job)
        if not path.is_file():
            return None
        try:
            content = read_saved(path)
            values: dict[str, Any] | None = content if content["fingerprint"] == job.fingerprint else None
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError("is not a file of values of a job, or is damaged; remove it", path=path) from None
        return values

    def write(self, job: Job, values: Mapping[str, Any]) -> None:
        """Save the values of a job."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.path(job)) as file:
            file.write(json.dumps({"system": job.system, "seed": job.seed, "fingerprint": job.fingerprint, **values}))

    def copy_from(self, other: Path, jobs: Iterable[Job]) -> None:
        """Copy the files of the given jobs from another folder, except those that this folder already has."""
        for job in jobs:
            known, path = FinishedJobs(other).path(job), self.path(job)
            if known.is_file() and not path.is_file():
                self.folder.mkdir(parents=True, exist_ok=True)
                with replacing_binary(path) as file:
                    file.write(read_limited(known, MAX_SAVED))
