"""The writer of an index: it collects changes and makes all of them visible in one commit."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from perikope.core import files
from perikope.core.errors import IndexFormatError, InputError, UncommittedWarning, UsageError
from perikope.core.locks import LOCK_FILE, take_lock
from perikope.document.tree import Document
from perikope.index import manifest as manifests
from perikope.index.layout import MAX_PARTS, TOO_MANY_PARTS
from perikope.index.manifest import Manifest
from perikope.index.merge import merge
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.index.tombstones import bury
from perikope.index.writer import SegmentBuilder, encode_record
from perikope.text.analysis import Analyzer, is_language, language_code

MAX_SEGMENTS = 12
"""A commit that leaves more segments than this merges some, since each segment costs one look-up per query term."""
MERGED_AT_ONCE = 8
"""The maximum number of segments that such a merge joins; the smallest segments are chosen."""
MAX_TOKENS = 1 << 31
"""The maximum number of tokens of a segment that is merged from several."""
DEFAULT_MEMORY = 1 << 30
"""The default memory for adding documents, in bytes."""
WAITING_CHARACTERS = 1 << 22
"""Documents of one `add` wait in memory until they have this many characters. So a short `add` that fails has changed
nothing. A longer one begins a segment of its own, which is dropped if it fails."""

if not sys.warnoptions:
    # Python ignores resource warnings by default, but this one is about lost documents. Options of the user count more.
    warnings.simplefilter("default", UncommittedWarning)


def create(folder: Path, analyzer: Analyzer, language: str) -> None:
    """Make an empty index in a new or empty folder. `language` is the code of its default language."""
    _check_free(folder)
    if not is_language(language_code(language)):
        raise UsageError(f"{language!r} is not a language code; use one such as en, fr or de")
    manifest = Manifest(analyzer.settings(), language_code(language))
    try:
        files.make_folder(folder)
        with take_lock(folder):
            # The folder is checked again under the lock: another program may have made an index in it meanwhile.
            _check_free(folder)
            manifests.replace(folder, manifest)
    except OSError as error:
        raise UsageError(f"cannot make an index at {folder}: {error.strerror}") from None


def _check_free(folder: Path) -> None:
    """Raise a `UsageError` unless the folder is new, empty, or an index without a commit.

    Lock files and unfinished files, which a stopped program may have left, are ignored.
    """
    if (folder / manifests.FILE).exists():
        if manifests.load(folder).generation:
            raise UsageError(f"{folder} is already an index: add to it (--append, in Python Index.open), or choose another folder")
    elif folder.exists() and (not folder.is_dir() or any(map(_is_foreign, folder.iterdir()))):
        raise UsageError(f"{folder} exists and is not empty: choose another folder for the index")


def _is_foreign(path: Path) -> bool:
    return path.name != LOCK_FILE and not files.is_temporary(path.name)


@dataclass(slots=True)
class _Addition:
    """The documents of one call of `IndexWriter.add`, so that they can be withdrawn if the call fails."""

    ids: list[str] = field(default_factory=list)
    replaced: list[int] = field(default_factory=list)
    """The numbers of the documents that this call replaces."""
    waiting: list[tuple[Document, bytes]] = field(default_factory=list)
    """Accepted documents with their records, which the builder does not have yet."""
    characters: int = 0
    """The number of characters of the documents in `waiting`."""
    first_segment: int | None = None
    """The first segment that holds documents of this call only; None if the call has no segment of its own."""


class IndexWriter:
    """Changes an index. It holds the lock of the index until it is closed.

    Closing discards changes that were not committed. A writer that is garbage-collected with such changes gives an
    `UncommittedWarning`. `memory` is the memory for adding documents in bytes, `wait` the
    time to wait for the lock in seconds.
    """

    def __init__(self, folder: Path, *, memory: int = DEFAULT_MEMORY, wait: float = 0.0) -> None:
        self.folder = folder
        self.memory = memory
        manifests.load(folder)
        self._failed = False
        self._process = os.getpid()
        self._lock = take_lock(folder, wait)
        try:
            # The snapshot is opened under the lock: another writer may have committed meanwhile.
            self._open(Snapshot.open(folder))
            if self._leftovers():
                # A writer may have been stopped after it replaced the manifest and before this change was durable. The
                # new manifest must be durable before files that only the old manifest names are removed.
                files.sync_folder(folder)
                self._remove_leftovers()
        except BaseException:
            self.close()
            raise

    def _open(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._builder = SegmentBuilder(snapshot.analyzer)
        self._stamp = secrets.token_hex(4)
        self._new: list[dict[str, Any]] = []
        self._written = 0
        # The ids of documents added since the last commit, each with the file it came from.
        self._pending: dict[str, str] = {}
        # The numbers in the snapshot of the documents to delete.
        self._deleted: set[int] = set()

    @property
    def changed(self) -> bool:
        """Whether there are changes to commit."""
        return bool(self._new or len(self._builder) or self._deleted)

    @property
    def changes(self) -> str:
        """The changes to commit in words, such as "2 documents added, 1 deleted"; empty if there are none."""
        added, deleted = len(self._pending), len(self._deleted)
        counts = [f"{added} document{'' if added == 1 else 's'} added"] if added else []
        return ", ".join([*counts, *([f"{deleted} deleted"] if deleted else [])]) or ("documents added" if self.changed else "")

    @property
    def deleted(self) -> int:
        """The number of documents that the next commit deletes, including documents that it replaces."""
        return len(self._deleted)

    def add(self, documents: Iterable[Document], *, replace: bool = False, on_duplicate: Callable[[Document], None] | None = None) -> None:
        """Add documents. They become visible with `commit`.

        If the index already has a document with the same id, this is an error; with `replace`, the old document is
        deleted. If several added documents have the same id, this is an error too; with `on_duplicate`, the first is
        added and the function is called with each of the others.

        After an error, none of the documents of this call is added. Documents of earlier calls still are.
        """
        self._check_usable()
        addition = _Addition()
        try:
            for document in documents:
                if on_duplicate is not None and isinstance(document, Document) and document.id in self._pending:
                    on_duplicate(document)
                    continue
                self._accept(document, replace, addition)
                if addition.characters >= WAITING_CHARACTERS:
                    self._begin_segment(addition)
                    self._store(addition)
            self._store(addition)
        except BaseException:
            self._withdraw(addition)
            raise

    def _accept(self, document: Document, replace: bool, addition: _Addition) -> None:
        """Check a document and put it into the addition. After an error nothing has changed."""
        if not isinstance(document, Document):
            raise UsageError(
                f"cannot add a value of type {type(document).__name__} to an index; add documents from perikope.read or a TreeBuilder, or "
                "dictionaries with the keys of JSON Lines"
            )
        old = self.snapshot.find_document(document.id)
        if document.id in self._pending:
            raise InputError(_given_twice(document.id, self._pending[document.id], document.source))
        if old >= 0 and old not in self._deleted and not replace:
            raise InputError(_already_there(document.id))
        record = encode_record(document)
        if old >= 0 and old not in self._deleted:
            self._deleted.add(old)
            addition.replaced.append(old)
        self._pending[document.id] = document.source
        addition.ids.append(document.id)
        addition.waiting.append((document, record))
        addition.characters += len(document.text)

    def _begin_segment(self, addition: _Addition) -> None:
        """Let the documents of a long addition begin a new segment, so that they can be withdrawn with it."""
        if addition.first_segment is None:
            with self._all_or_nothing():
                if len(self._builder):
                    self._flush()
            addition.first_segment = len(self._new)

    def _store(self, addition: _Addition) -> None:
        """Pass the waiting documents to the builder."""
        with self._all_or_nothing():
            for document, record in addition.waiting:
                self._builder.add(document, record)
                if self._builder.memory > self.memory:
                    self._flush()
        addition.waiting.clear()
        addition.characters = 0

    def _withdraw(self, addition: _Addition) -> None:
        """Undo an addition that failed. Documents of earlier additions stay."""
        for id in addition.ids:
            del self._pending[id]
        self._deleted.difference_update(addition.replaced)
        if addition.first_segment is not None:
            del self._new[addition.first_segment :]
            self._builder = SegmentBuilder(self.snapshot.analyzer)

    def adopt(self, entries: Sequence[dict[str, Any]], *, replace: bool = False) -> None:
        """Add segments that other processes have written into the folder. `entries` are their manifest entries.

        Ids that the index already has, and ids that occur twice, are handled as in `add` without `on_duplicate`.
        """
        segments = [Segment(self.folder, entry) for entry in entries]
        for i, segment in enumerate(segments):
            for other in segments[:i]:
                for id in _common_ids(segment, other):
                    sources = [holder.source(holder.document_number(id))[0] for holder in (other, segment)]
                    raise InputError(_given_twice(id, *sorted(sources)))
            for base, old in zip(self.snapshot.first_document.tolist(), self.snapshot.segments, strict=False):
                for id in _common_ids(segment, old):
                    number = int(base) + old.document_number(id)
                    if not replace and number not in self._deleted:
                        raise InputError(_already_there(id))
                    self._deleted.add(number)
            duplicate = _duplicate(segment)
            if duplicate is not None:
                raise InputError(_given_twice(*duplicate))
        self._new += entries

    def delete(self, ids: Iterable[str]) -> int:
        """Delete the documents with these ids and return their number.

        An id that the last commit does not have is an error.
        """
        numbers = []
        for id in ids:
            number = self.snapshot.find_document(id)
            if number < 0:
                raise UsageError(f"there is no document {id!r} in {self.folder}: check the id, or leave it out")
            numbers.append(number)
        self._deleted.update(numbers)
        return len(set(numbers))

    def delete_numbers(self, numbers: Iterable[int]) -> None:
        """Delete documents by their numbers in `snapshot`."""
        self._deleted.update(numbers)

    def commit(self) -> Snapshot:
        """Make all changes durable and visible at once; returns the new snapshot.

        Merges segments if there are too many.
        """
        self._check_usable()
        if self.changed:
            with self._all_or_nothing():
                if len(self._builder):
                    self._flush()
                entries = self._with_tombstones()
                self._publish([*entries, *self._new])
            # The commit is durable now. Merging may fail (a full disk, a damaged segment) without harm to the index.
            try:
                self._tidy()
            except (OSError, MemoryError, IndexFormatError):
                with contextlib.suppress(OSError, IndexFormatError):
                    self._open(Snapshot.open(self.folder))
        return self.snapshot

    def compact(self) -> Snapshot:
        """Commit, then merge consecutive segments while the merged segment has at most `MAX_TOKENS` tokens.

        Returns the new snapshot. The text of deleted documents is removed from the disk.
        """
        self.commit()
        with self._all_or_nothing():
            group: list[Segment] = []
            for segment in [*self.snapshot.segments]:
                if group and sum(_tokens(member) for member in [*group, segment]) > MAX_TOKENS:
                    self._merge(group)
                    group = []
                group.append(segment)
            if len(group) > 1 or any(segment.tombstones for segment in group):
                self._merge(group)
        return self.snapshot

    def close(self) -> None:
        """Release the lock and discard changes that were not committed."""
        if self._lock.held:
            try:
                # This removes segments of worker processes too. The next writer removes files that cannot be removed
                # now.
                if hasattr(self, "snapshot"):
                    with contextlib.suppress(OSError, IndexFormatError):
                        self._remove_leftovers()
            finally:
                self._lock.release()

    def __del__(self) -> None:
        lock = getattr(self, "_lock", None)  # missing if the constructor failed
        if lock is not None and lock.held:
            self.warn_of_loss()
            self.close()

    def warn_of_loss(self) -> None:
        """Give an `UncommittedWarning` if there are changes that closing would discard."""
        if self.changes and not self._failed:
            warnings.warn(
                f"changes to {self.folder} were not committed and are lost ({self.changes}): call commit(), or make the changes in a "
                "`with` block, which commits at its end",
                UncommittedWarning,
                stacklevel=3,
                source=self,
            )

    def segment_path(self, worker: str) -> Path:
        """A path for a new segment, different from all paths of other writers. `worker` ends the name of the file.

        The paths of earlier writers must not be used again. A worker of a stopped writer may still be writing its
        segment, and files of a failed writer may remain because a reader has mapped them.
        """
        return self.folder / f"segment-{self.snapshot.manifest.generation + 1:08d}-{self._stamp}-{worker}.columns"

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _check_usable(self) -> None:
        if os.getpid() != self._process:
            raise UsageError(f"this writer of {self.folder} was opened before a fork: only the process that opened it can change the index")
        if self._failed:
            raise UsageError(f"an earlier change to {self.folder} failed and was discarded: roll back, then repeat the change")

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A context for one change.

        After an error in it all further changes are refused, since the change may be half made.
        """
        try:
            yield
        except BaseException:
            self._failed = True
            raise

    def _flush(self) -> None:
        path = self.segment_path(f"w{self._written}")
        self._written += 1
        self._new.append(self._builder.write(path))
        self._builder = SegmentBuilder(self.snapshot.analyzer)

    def _with_tombstones(self) -> list[dict[str, Any]]:
        """Write tombstones for deleted documents.

        Returns the manifest entries of the segments that still have documents.
        """
        deleted = np.array(sorted(self._deleted), np.int64)
        entries: list[dict[str, Any]] = []
        for number, (base, segment) in enumerate(zip(self.snapshot.first_document.tolist(), self.snapshot.segments, strict=False)):
            local = deleted[(deleted >= base) & (deleted < base + segment.documents)] - base
            entry = dict(segment.entry)
            if local.size:
                tombstones = bury(segment, local)
                entry["deleted"] = tombstones.write(self.segment_path(f"deleted-{number}"))
            if not local.size or segment.documents > entry["deleted"]["documents"]:
                entries.append(entry)
        return entries

    def _publish(self, entries: list[dict[str, Any]]) -> None:
        """Make these segments the content of the index, then remove the files that they replace."""
        manifest = replace(self.snapshot.manifest, segments=tuple(entries), generation=self.snapshot.manifest.generation + 1)
        # The segments are opened before the manifest is replaced: those that cannot be read must not be committed.
        snapshot = Snapshot(self.folder, manifest)
        if len({part for segment in snapshot.segments for part in segment.parts}) > MAX_PARTS:
            raise InputError(TOO_MANY_PARTS)
        files.sync_folder(self.folder)
        manifests.replace(self.folder, manifest)
        self._open(snapshot)
        with contextlib.suppress(OSError, IndexFormatError):
            self._remove_leftovers()

    def _tidy(self) -> None:
        """Merge the smallest segments while there are too many, then rewrite one segment that is mostly deleted."""
        while len(self.snapshot.segments) > MAX_SEGMENTS:
            chosen: list[Segment] = []
            for segment in sorted(self.snapshot.segments, key=_tokens)[:MERGED_AT_ONCE]:
                if sum(map(_tokens, chosen)) + _tokens(segment) <= MAX_TOKENS:
                    chosen.append(segment)
            if len(chosen) < 2:
                break
            self._merge(chosen)
        for segment in self.snapshot.segments:
            if segment.tombstones and 2 * segment.tombstones.documents.size > segment.documents:
                self._merge([segment])
                break

    def _merge(self, segments: list[Segment]) -> None:
        """Merge segments into one. The merged segment takes the position of the first of them."""
        names = {segment.entry["file"] for segment in segments}
        merged = [segment for segment in self.snapshot.segments if segment.entry["file"] in names]
        entry = merge(merged, self.segment_path("merged"), self.memory // 4)
        entries: list[dict[str, Any]] = []
        for segment in self.snapshot.segments:
            if segment is merged[0]:
                entries.append(entry)
            elif segment not in merged:
                entries.append(dict(segment.entry))
        self._publish(entries)

    def _remove_leftovers(self) -> None:
        """Remove files that no manifest names.

        On POSIX systems, a reader that has mapped such a file can still read it. Windows refuses to remove a mapped
        file; the next writer tries again.
        """
        for path in self._leftovers():
            files.remove_unless_held(path)

    def _leftovers(self) -> list[Path]:
        """Files of writers that did not commit, and files that a later commit replaced.

        Files that the manifest on disk or the manifest of this snapshot names are not included. The two manifests
        differ if an error occurred after the manifest was replaced and before this change was durable. After a crash,
        either of them may be the one on disk.
        """
        entries = [*self.snapshot.manifest.segments, *manifests.load(self.folder).segments]
        known = {entry["file"] for entry in entries} | {entry["deleted"]["file"] for entry in entries if "deleted" in entry}
        segments = [path for path in self.folder.glob("segment-*.columns") if path.name not in known]
        return segments + [path for path in self.folder.iterdir() if files.is_temporary(path.name)]


def _already_there(id: str) -> str:
    return (
        f"document {id!r} is already in the index: replace it (--replace, in Python replace=True), or change one of the two ids; "
        "if the id is the path of a file inside the indexed folder, index the folder that contains both files"
    )


def _given_twice(id: str, first: str, second: str) -> str:
    where = f" by {first} and {second}" if first != second else f" in {first}" if first else ""
    return f"document {id!r} is given twice{where}: keep only the first (--duplicates first), or change one of the ids"


def _tokens(segment: Segment) -> int:
    return int(segment.entry["tokens"])


def _common_ids(segment: Segment, other: Segment) -> list[str]:
    """The sorted ids that documents of `segment` share with live documents of `other`."""
    shared = np.isin(segment["document_hash"], other["document_hash"])
    ids = [segment.document_id(int(number)) for number in segment["document_of_hash"][shared]]
    return sorted(id for id in ids if other.document_number(id) >= 0)


def _duplicate(segment: Segment) -> tuple[str, str, str] | None:
    """An id that two documents of the segment have, and the files of these two documents; None if all ids differ."""
    hashes = segment["document_hash"]
    for at in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist():
        pair = sorted(int(segment["document_of_hash"][at + i]) for i in (0, 1))
        first, second = map(segment.document_id, pair)
        if first == second:
            return first, segment.source(pair[0])[0], segment.source(pair[1])[0]
    return None
