"""The indexes of a server, and which commit is the last one of each.

The server does not open indexes. It looks at the manifest of each index several times a second, and after each change
of its own. If the manifest was replaced, the number of the index grows. Every request carries the number of the moment
when it came, and the process that answers it opens the last commit first if the number is new to it. So a commit of any
program reaches every process without a restart, and one request sees one commit.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perikope.core.errors import PerikopeError, UsageError
from perikope.core.files import MANIFEST_FILE, identity_of
from perikope.index import manifest as manifests

DAMAGED = "damaged"
"""The key under which a process says which file of an index it has found damaged."""
PREPARED, READABLE = "prepared", "readable"
"""The keys of a status that say whether the commit it was asked for is prepared, and whether the index can be read."""
LOOKS = 3
"""How often in sequence a prepared index must be found unreadable."""
KEPT = 2
"""The number of commits before the shown one that are kept for requests that have begun."""
EVERY = 0.25
"""Seconds between two looks at the manifests."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(slots=True)
class ServedIndex:
    """One index of a server."""

    name: str
    folder: Path
    documents: Path | None = None
    """The folder of documents that the index is kept equal to; None if it is changed by requests or other programs."""
    generation: int = 1
    """Grows whenever a commit is noticed."""
    commit: int = 0
    """The number of the last commit that could be read, as in answers."""
    _seen: tuple[int, ...] = ()
    _damaged: dict[str, dict[Path, tuple[int, ...]]] = field(default_factory=dict)
    """The damaged or missing files that processes have found, with their identities then. Those of "" are the folder
    and all files of the index, one of which is damaged."""

    def note(self, facts: Mapping[str, Any]) -> bool:
        """Note what a process said with an answer. Returns whether it has found a damaged file that was not known."""
        if DAMAGED not in facts or facts[DAMAGED] in self._damaged:
            return False
        if facts[DAMAGED]:
            files = [Path(facts[DAMAGED])]
        else:  # the time of the folder changes when a file comes back
            files = [self.folder, *(path for path in self.folder.glob("*") if path.name != MANIFEST_FILE)]
        self._damaged[facts[DAMAGED]] = {path: identity_of(path) for path in files}
        return True

    @property
    def is_damaged(self) -> bool:
        """Whether files that were found damaged are still the same. If one has changed, the next request finds out."""
        for found, files in [*self._damaged.items()]:
            if any(identity_of(path) != identity for path, identity in files.items()):
                del self._damaged[found]
        return bool(self._damaged)

    def look(self) -> bool:
        """Look at the manifest; whether there is a new commit."""
        seen = identity_of(self.folder / MANIFEST_FILE)
        if seen == self._seen:
            return False
        if self._seen:
            self._damaged.clear()  # the next request finds out what the new commit is like
        self._seen = seen
        self.generation += 1
        with contextlib.suppress(PerikopeError):
            self.commit = manifests.load(self.folder).generation
        return True

    @property
    def is_readable(self) -> bool:
        """Whether the index has a manifest that can be read, and no file that is known to be damaged."""
        if self.is_damaged:
            return False
        try:
            manifests.load(self.folder)
        except PerikopeError:
            return False
        return True


@dataclass(slots=True)
class PreparedIndex(ServedIndex):
    """An index whose commits are prepared on other machines before requests see them.

    Each noticed manifest is kept under a number in the folder `states`, so that all processes show the same commit for
    a number, whenever they start. When it is prepared, `generation` becomes its number, and later requests see it.
    """

    states: Path = Path()
    status: Mapping[str, Any] = field(default_factory=dict)
    """What was last learned about the index; see `perikope.server.opening.Opener.status`."""
    newest: int = 1
    """The number of the last commit that was noticed."""
    _unreadable: int = 0
    """How often in sequence it was learned that the index cannot be read."""
    _noticed: float = 0.0
    _newest_commit: int = 0

    @property
    def is_behind(self) -> bool:
        """Whether there is a commit that requests do not see yet."""
        return self.newest != self.generation

    @property
    def lag(self) -> tuple[int, float]:
        """How many commits, and how many seconds, the shown commit is behind the last one."""
        return (self._newest_commit - self.commit, time.monotonic() - self._noticed) if self.is_behind else (0, 0.0)

    def look(self) -> bool:
        """Look at the manifest and keep a new one under its number. Only the first one is shown at once."""
        seen = identity_of(self.folder / MANIFEST_FILE)
        if seen == self._seen:
            return False
        try:
            manifest = manifests.load(self.folder)
        except PerikopeError:
            return False
        if not self.is_behind:
            self._noticed = time.monotonic()
        is_first, self._seen = not self._seen, seen
        self.newest, self._newest_commit = self.newest + 1, manifest.generation
        manifests.replace(state_folder(self.states, self.name, self.newest), manifest)
        if is_first:
            self._show()
        return True

    def learn(self, status: Mapping[str, Any], number: int) -> None:
        """Take over a status that was asked for with the number of a commit. If the commit is prepared, it is shown."""
        self.status = status
        self._unreadable = 0 if status.get(READABLE, True) else self._unreadable + 1
        if number == self.newest and self.is_behind and status.get(PREPARED):
            self._show()

    def _show(self) -> None:
        self.generation, self.commit = self.newest, self._newest_commit
        for kept in self.states.glob(f"{self.name}-*"):
            if int(kept.name.rpartition("-")[2]) < self.generation - KEPT:
                shutil.rmtree(kept, ignore_errors=True)

    @property
    def is_readable(self) -> bool:
        """Whether the index can be searched, as far as is known. On a busy machine, single answers are late."""
        return self._unreadable < LOOKS


def state_folder(states: Path, name: str, number: int) -> Path:
    """The folder with the manifest of a commit of a prepared index, which is made."""
    folder = states / f"{name}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True, slots=True)
class ServedIndexes:
    """All indexes of a server by name."""

    by_name: Mapping[str, ServedIndex] = field(default_factory=dict)

    @property
    def folders(self) -> dict[str, str]:
        """The folders of the indexes, by name."""
        return {name: str(index.folder) for name, index in self.by_name.items()}

    @property
    def prepared(self) -> list[PreparedIndex]:
        """The indexes whose commits are prepared before requests see them."""
        return [index for index in self.by_name.values() if isinstance(index, PreparedIndex)]

    @property
    def documents(self) -> dict[str, str]:
        """The folders of documents that indexes are kept equal to, by the name of the index."""
        return {name: str(index.documents) for name, index in self.by_name.items() if index.documents is not None}

    def originals(self, folder: str) -> dict[str, str]:
        """The folders of documents whose files may be read, by the name of the index.

        `folder` is that of all indexes that are not kept equal to a folder of their own; empty if there is none.
        """
        return {**dict.fromkeys(self.by_name if folder else (), folder), **self.documents}

    def look(self) -> None:
        """Look at all manifests."""
        for index in self.by_name.values():
            index.look()


def name_of(given: str, path: Path, taken: Sequence[str]) -> str:
    """The name of an index in addresses: the given one, or that of its folder."""
    name = given or re.sub(r"[^A-Za-z0-9._-]+", "-", path.resolve().name).strip("-._") or "index"
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be the name of an index: use letters, digits, -, _ and ., at most 64, and write NAME=FOLDER")
    if name in taken:
        raise UsageError(f"two indexes have the name {name!r}; give one of them another name: NAME=FOLDER")
    return name
