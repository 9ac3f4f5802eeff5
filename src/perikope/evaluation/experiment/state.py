"""What an experiment has done so far, kept beside its results: an interruption loses no more than the topics in hand.

A folder for each system and sweep, named by a fingerprint of everything that its figures depend on: whatever changes makes another name,
so that nothing is taken for what it is not. Files take their names when they are complete.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.arrays import Floats
from perikope.core.errors import LockedError, UsageError
from perikope.core.files import replacing, replacing_binary
from perikope.core.locks import take_lock

FOLDER = ".work"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other experiments out of a folder."""
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    try:
        lock = take_lock(place)
    except LockedError:
        raise UsageError(f"another experiment is writing to {folder}: wait until it is done, or name another folder (--out)") from None
    with lock:
        yield


def digest(value: object) -> str:
    """A fingerprint of what can be written as JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True, default=str).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """A fingerprint of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class State:
    """The folder of one system in one sweep."""

    def __init__(self, folder: Path, key: str) -> None:
        self.folder = folder / FOLDER / key

    def read(self, name: str) -> Any:
        """What was written under a name; None where it was not, or is damaged."""
        try:
            return json.loads((self.folder / f"{name}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def write(self, name: str, value: object) -> None:
        """Keep a value."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.folder / f"{name}.json") as file:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")

    def read_scores(self, topics: Sequence[int], settings: int) -> Floats | None:
        """The scores of settings for topics by number, a row a topic; None where they are not there."""
        try:
            found = np.load(self._scores(topics), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return found if found.shape == (len(topics), settings) and found.dtype == np.float64 else None

    def write_scores(self, topics: Sequence[int], scores: Floats) -> None:
        """Keep the scores of settings for topics that follow each other."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing_binary(self._scores(topics)) as file:
            np.save(file, scores)

    def _scores(self, topics: Sequence[int]) -> Path:
        # Named by the topics, not by the number of a piece: pieces of another size must not be taken for these.
        return self.folder / f"scores-{topics[0]}-{topics[-1]}.npy"

    def run(self, chunk: int) -> Path:
        """Where the run of some topics stands."""
        return self.folder / f"run-{chunk}.gz"

    def join_runs(self, chunks: Iterable[int], target: Path) -> str:
        """The runs of all topics as one file, which is as good as packed at once; returns its fingerprint."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing_binary(target) as joined:
            for chunk in chunks:
                with open(self.run(chunk), "rb") as piece:
                    shutil.copyfileobj(piece, joined)
        return file_digest(target)

    def keep_only(self, names: Collection[str]) -> None:
        """Remove everything else from the folder."""
        for file in self.folder.iterdir() if self.folder.is_dir() else ():
            if file.name not in names:
                file.unlink()


def remove_others(folder: Path, keys: Collection[str]) -> None:
    """Remove what was kept for systems and sweeps that are no longer asked for."""
    place = folder / FOLDER
    for own in place.iterdir() if place.is_dir() else ():
        if own.name not in keys and own.is_dir():
            shutil.rmtree(own)
