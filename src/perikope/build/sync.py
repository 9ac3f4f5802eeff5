"""Compares the files that an index was made from with the files as they are now.

A document is deleted only if its file is gone: the folder of the file was listed completely, and the file was not in
it. What could not be read, listed or opened may still be there.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from perikope.core.errors import UnreadableFile, UsageError
from perikope.formats import FileEntry, document_id, file_hash
from perikope.index.commit import IndexWriter, SourceKey
from perikope.index.duplicates import Duplicate

_FEW_FILES, _SAME_FOLDER = 2, 10
"""A sync of an index of more than `_FEW_FILES` files must find one in `_SAME_FOLDER` of them."""


class Sync:
    """Finds the differences between the files that an index was made from and the files as they are now.

    A file is known by its name and the hash of its content, because files of two folders may have the same name.
    """

    def __init__(self, writer: IndexWriter, paths: Sequence[str]) -> None:
        snapshot = writer.snapshot
        self._folder, self._paths = writer.folder, paths
        self._before, self._left_out = snapshot.manifest.left_out, writer.left_out
        self._known: dict[SourceKey, list[int]] = {}
        self._order: dict[SourceKey, int] = {}
        """The position of each file in the order of files."""
        self._unchanged: set[SourceKey] = set()
        self._unchanged_names: set[str] = set()
        self._refused: list[str] = []
        self._replaced: list[tuple[str, SourceKey, SourceKey]] = []
        """The ids of documents that a document of another file replaces, with both files."""
        for base, segment in zip(snapshot.first_document.tolist(), snapshot.segments, strict=False):
            for local in np.flatnonzero(segment.alive).tolist():
                self._known.setdefault(segment.source(local), []).append(int(base) + local)
        self._known_names = {name for name, _ in self._known if name}

    @property
    def unchanged_files(self) -> int:
        """The number of files that are not read, because the index has their content."""
        return len(self._unchanged)

    def checked(self, entries: Iterator[FileEntry], unreadable: Callable[[], Sequence[str]]) -> Iterator[FileEntry]:
        """Return all entries, once enough of them are known. Entries are examined only until then, and no file is read.

        Raises a `UsageError` if the files are probably those of another folder, so that a sync would empty the index:
        there are files, but fewer than one in ten of the index's files are among them. `unreadable` returns the paths
        that could not be read or listed so far; the files in them count as found.
        """
        seen: list[FileEntry] = []
        found: set[str] = set()
        needed = 0 if len(self._known_names) <= _FEW_FILES else -(-len(self._known_names) // _SAME_FOLDER)
        while len(found) < needed and (entry := next(entries, None)) is not None:
            seen.append(entry)
            if entry.id in self._known_names:
                found.add(entry.id)
        if len(found) < needed:
            found |= self._unchanged_names
            found |= set(self._unread([*unreadable(), *self._refused], self._known_names - found))
        if len(found) < needed:
            raise UsageError(
                f"{', '.join(self._paths)} has {len(found)} of the {len(self._known_names)} files of {self._folder}, and --sync would "
                "remove the others: give the folder that the index was made from, add these files with --append, or make a new index"
            )
        return itertools.chain(seen, entries)

    def select(self, entry: FileEntry, digest: str) -> bool:
        """Whether a file must be read. `digest` is the hash of its content.

        A file is read if it is new or its content has changed. A file with a document that was left out is also read
        if the file that has the first document with the same id has changed.
        """
        file = entry.id, digest
        self._order.setdefault(file, len(self._order))
        if file in self._known and self._unchanged_names.issuperset(self._before.get(entry.id, ())):
            self._unchanged.add(file)
            self._unchanged_names.add(entry.id)
            return False
        self._left_out.pop(entry.id, None)
        return True

    def keep(self, path: str) -> bool:
        """Keep the documents of an existing file that is passed over; returns whether there are any.

        Such a file was indexed with another value of `BuildOptions.format`. Raises `UnreadableFile` if it has changed.
        """
        known = self._known_names.intersection(names_of(path, self._paths))
        for name in known:
            file = name, file_hash(path)
            if file not in self._known:
                raise UnreadableFile("has changed since it was indexed with another --format; sync with that format too", path=path)
            self._order.setdefault(file, len(self._order))
            self._unchanged.add(file)
            self._unchanged_names.add(name)
        return bool(known)

    def note_unreadable(self, path: str) -> None:
        """Keep the documents of a file that exists, is passed over, and cannot be opened."""
        self._refused.append(path)

    def keeps(self, id: str, first: SourceKey, new: SourceKey) -> bool:
        """Whether a document of the file `first` stays in the index if the file `new` has a document with the same id.

        It stays if its file is unchanged and comes before the other.
        """
        stays = first in self._unchanged and self._order[first] < self._order.get(new, -1)
        if not stays and first[0] != new[0]:
            self._replaced.append((id, first, new))
        return stays

    def overtaken(self) -> list[Duplicate]:
        """The documents that are left out from now on, because an earlier file now has a document with the same id.

        All files must have been passed to `select` before.
        """
        return [Duplicate(id, first[0], new[0]) for id, first, new in self._replaced if first in self._unchanged]

    def outdated(self, unreadable: Sequence[str]) -> list[int]:
        """The numbers of documents whose file has changed or no longer exists.

        Documents that did not come from a file are not included. Neither are documents whose files are at, above or
        below one of the `unreadable` paths: such a file may be half written, or in a folder that was not listed.
        """
        gone = [file for file in self._known if file[0] and file not in self._unchanged]
        kept = set(self._unread([*unreadable, *self._refused], {name for name, _ in gone}))
        return [number for file in gone if file[0] not in kept for number in self._known[file]]

    def _unread(self, unreadable: Iterable[str], names: Iterable[str]) -> Iterator[str]:
        """Yield those names of files that are, hold or are held by one of the unreadable paths."""
        exact = {name for path in unreadable for name in names_of(path, self._paths)}
        # The path of a member of an archive begins with the path of the archive, which is the file in the index.
        holding = exact.union(*map(_holders, exact))
        return (name for name in names if name in holding or not exact.isdisjoint(_holders(name)))


def names_of(path: str, paths: Sequence[str]) -> Iterator[str]:
    """Yield the names that an index of the files and folders `paths` may have for a path.

    There is one per given folder that the path is in.
    """
    bases = (os.path.join(given if os.path.isdir(given) else os.path.dirname(given), "") for given in paths)
    return (document_id(path.removeprefix(base)) for base in bases if path.startswith(base))


def incomplete_files(unreadable: Iterable[str], paths: Sequence[str]) -> set[str]:
    """The names of files that may have been read in part, given the paths that could not be read.

    An unreadable member of an archive makes the archive incomplete.
    """
    exact = {name for path in unreadable for name in names_of(path, paths)}
    return exact.union(*map(_holders, exact))


def _holders(name: str) -> Iterator[str]:
    """Yield the folders and archives that a name is in.

    >>> list(_holders("manuals/old.zip/pump.md"))
    ['manuals', 'manuals/old.zip']
    """
    return (name[:end] for end, character in enumerate(name) if character == "/")
