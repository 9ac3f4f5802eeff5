"""The writer of an index: it collects changes and makes all of them visible in one commit."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from perikope.core import files
from perikope.core.arrays import Array, Integers
from perikope.core.errors import IndexFormatError, InputError, UncommittedWarning, UsageError
from perikope.core.locks import LOCK_FILE, take_lock
from perikope.document.tree import Document, check_id
from perikope.index import manifest as manifests
from perikope.index.duplicates import DEFAULT_REPLACE, Duplicate
from perikope.index.layout import MAX_PARTS, TOO_MANY_PARTS
from perikope.index.manifest import Manifest
from perikope.index.merge import merge
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.index.shards import check_writable
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

SourceKey = tuple[str, str]
"""The file that a document was read from, and the hash of the file's content."""
OnDuplicate = Callable[[Duplicate], None]
Keeps = Callable[[str, SourceKey, SourceKey], bool]
"""A function of an id and two files: whether the indexed document with this id, which was read from the first file,
stays if the second file has a document with this id."""


@dataclass(frozen=True, slots=True)
class WrittenSegment:
    """A segment that another process has written: its manifest entry, and the order of its documents."""

    entry: dict[str, Any]
    order: Integers
    """One number per document. A smaller number means an earlier document, in all segments of the same build. Documents
    of one segment with the same number are in the order of the segment."""


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
            raise UsageError(
                f"{folder} is already an index: make it equal to the files (--sync), add to it (--append), or choose another folder; "
                "in Python, Index.open opens it"
            )
    elif folder.exists() and (not folder.is_dir() or any(map(_is_foreign, folder.iterdir()))):
        raise UsageError(f"{folder} exists and is not empty: choose another folder for the index")


def _is_foreign(path: Path) -> bool:
    return path.name != LOCK_FILE and not files.is_temporary(path.name)


@dataclass(slots=True)
class _Addition:
    """The documents of one call of `IndexWriter.add`, so that they can be withdrawn if the call fails."""

    first: int
    """The number of the first pending document of this call."""
    stored: int
    """The number of documents that the builder got before."""
    ids: list[str] = field(default_factory=list)
    replaced: list[int] = field(default_factory=list)
    """The numbers of the documents that this call replaces."""
    superseded: list[tuple[str, int]] = field(default_factory=list)
    """The ids and numbers of pending documents of earlier calls that this call replaces."""
    left_out: list[tuple[str, str]] = field(default_factory=list)
    """What this call has added to `IndexWriter.left_out`."""
    waiting: list[tuple[Document, bytes]] = field(default_factory=list)
    """Accepted documents with their records, which the builder does not have yet."""
    characters: int = 0
    """The number of characters of the documents in `waiting`."""
    first_segment: int | None = None
    """The first segment that holds documents of this call only; None if the call has no segment of its own."""


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """By what the next commit of a writer is recognised, even if the writer ends meanwhile."""

    generation: int
    """The number of the commit before it."""
    stamp: str
    """A part of the names of its files, and of no others; see `manifest.has_file_of`."""


class IndexWriter:
    """Changes an index. It holds the lock of the index until it is closed.

    Closing discards changes that were not committed. A writer that is garbage-collected with such changes gives an
    `UncommittedWarning`. `memory` is the memory for adding documents in bytes, `wait` the
    time to wait for the lock in seconds. Open segments of the snapshot `before` are not opened again. `kept` is given
    for a shard of a cluster: the names of files that the published cluster needs, which are never removed.
    """

    def __init__(
        self,
        folder: Path,
        *,
        memory: int = DEFAULT_MEMORY,
        wait: float = 0.0,
        before: Snapshot | None = None,
        kept: frozenset[str] | None = None,
    ) -> None:
        self.folder = folder
        self.memory = memory
        self._kept = kept or frozenset()
        manifest = manifests.load(folder)
        if kept is None:
            check_writable(folder, manifest)
        self._failed = False
        self._process = os.getpid()
        self._lock = take_lock(folder, wait)
        try:
            # The snapshot is opened under the lock: another writer may have committed meanwhile.
            self._open(Snapshot.open(folder, before))
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
        self.stamp = secrets.token_hex(4)
        """A part of the names of all files of this writer, and of no others."""
        self._new: list[dict[str, Any]] = []
        self._written = 0
        # The documents added since the last commit: the number of each by id, and the file of each by number.
        self._pending: dict[str, int] = {}
        self._pending_sources: list[str] = []
        # The number of documents that the builder got, and the number of the first document of each new segment,
        # including the one that is being built.
        self._stored = 0
        self._first_pending = [0]
        # The documents of new segments that are not committed, by the position of the segment in `_new`.
        self._dropped: dict[int, list[int]] = {}
        # The numbers in the snapshot of the documents to delete.
        self._deleted: set[int] = set()
        self.replaced = 0
        """The number of documents in the snapshot that the next commit replaces."""
        self.left_out: dict[str, set[str]] = {source: set(firsts) for source, firsts in snapshot.manifest.left_out.items()}
        """The files with documents that were left out, as in the manifest."""

    @property
    def changed(self) -> bool:
        """Whether there are changes to commit."""
        kept = any(len(self._dropped.get(number, ())) < entry["documents"] for number, entry in enumerate(self._new))
        return kept or bool(len(self._builder) or self._deleted)

    @property
    def changes(self) -> str:
        """The changes to commit in words, such as "2 documents added, 1 deleted"; empty if there are none."""
        added, deleted = len(self._pending), len(self._deleted)
        counts = [f"{added} document{'' if added == 1 else 's'} added"] if added else []
        return ", ".join([*counts, *([f"{deleted} deleted"] if deleted else [])]) or ("documents added" if self.changed else "")

    @property
    def pending(self) -> PendingCommit:
        """By what the next commit is recognised in the manifest."""
        return PendingCommit(self.snapshot.manifest.generation, self.stamp)

    @property
    def deleted(self) -> int:
        """The number of documents that the next commit deletes, including documents that it replaces."""
        return len(self._deleted)

    def add(
        self,
        documents: Iterable[Document],
        *,
        replace: bool = DEFAULT_REPLACE,
        keeps: Keeps | None = None,
        on_duplicate: OnDuplicate | None = None,
    ) -> None:
        """Add documents. They become visible with `commit`.

        If the index already has a document with the same id, the new one is a duplicate. With `replace`, the old
        document is deleted instead, unless `keeps` returns true. If several of `documents` have the same id, all but
        the first are duplicates. Duplicates are left out, and `on_duplicate` is called with each of them. Without
        `on_duplicate`, a duplicate is an error.

        After an error, none of the documents of this call is added. Documents of earlier calls still are.
        """
        with self.adding(replace=replace, keeps=keeps, on_duplicate=on_duplicate) as take:
            for document in documents:
                take(document)

    @contextlib.contextmanager
    def adding(
        self, *, replace: bool = DEFAULT_REPLACE, keeps: Keeps | None = None, on_duplicate: OnDuplicate | None = None
    ) -> Iterator[Callable[[Document], None]]:
        """A context with a function that takes one document after the other, as a single call of `add` does."""
        self._check_usable()
        addition = _Addition(len(self._pending_sources), self._stored)

        def take(document: Document) -> None:
            if not isinstance(document, Document):
                raise UsageError(
                    f"cannot add a value of type {type(document).__name__} to an index; add documents from perikope.read or a "
                    "TreeBuilder, or dictionaries with the keys of JSON Lines"
                )
            check_id(document.id)  # a document may be made without a builder
            record = encode_record(document)
            if self._accept(document.id, (document.source, document.source_hash), addition, replace, keeps, on_duplicate):
                addition.waiting.append((document, record))
                addition.characters += len(document.text)
            if addition.characters >= WAITING_CHARACTERS:
                self._begin_segment(addition)
                self._store(addition)

        try:
            yield take
            self._store(addition)
        except BaseException:
            self._withdraw(addition)
            raise

    def _accept(
        self, id: str, source: SourceKey, addition: _Addition, replace: bool, keeps: Keeps | None, on_duplicate: OnDuplicate | None
    ) -> bool:
        """Whether a document is added. If not, it is a duplicate, which is reported. Documents must come in order."""
        duplicate = None
        if replace and self._pending.get(id, addition.first) < addition.first:
            self._supersede(id, addition)
        if id in self._pending:
            duplicate = Duplicate(id, source[0], self._pending_sources[self._pending[id]])
        elif (old := self.snapshot.find_document(id)) >= 0 and old not in self._deleted:
            segment, local = self.snapshot.locate(old)
            first = segment.source(local)
            if not replace or (keeps is not None and keeps(id, first, source)):
                duplicate = Duplicate(id, source[0], first[0], indexed=not replace)
            else:
                self._deleted.add(old)
                addition.replaced.append(old)
                self.replaced += 1
                if keeps is None:
                    self.note_left_out(first[0], source[0], addition)
        if duplicate is None:
            self._pending[id] = len(self._pending_sources)
            self._pending_sources.append(source[0])
            addition.ids.append(id)
        elif on_duplicate is None:
            raise InputError(duplicate.refusal())
        else:
            self.note_left_out(source[0], duplicate.first, addition)
            on_duplicate(duplicate)
        return duplicate is None

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
                self._stored += 1
                if self._builder.memory > self.memory:
                    self._flush()
        addition.waiting.clear()
        addition.characters = 0

    def _withdraw(self, addition: _Addition) -> None:
        """Undo an addition that failed. Documents of earlier additions stay."""
        for id in addition.ids:
            del self._pending[id]
        for id, number in addition.superseded:
            self._pending[id] = number
            segment, local = self._place_of(number)
            self._dropped[segment].remove(local)
        del self._pending_sources[addition.first :]
        self._deleted.difference_update(addition.replaced)
        self.replaced -= len(addition.replaced)
        for source, first in addition.left_out:
            self.left_out[source].remove(first)
        if addition.first_segment is not None:
            del self._new[addition.first_segment :]
            del self._first_pending[addition.first_segment + 1 :]
            self._builder = SegmentBuilder(self.snapshot.analyzer)
            self._stored = addition.stored

    def note_incomplete(self, source: str) -> None:
        """Note that a file was not read completely. The next sync reads it again, even if it has not changed."""
        self.left_out.setdefault(source, set()).add(source)

    def note_left_out(self, source: str, first: str, addition: _Addition | None = None) -> None:
        """Note that a document of the file `source` is left out in favour of a document of the file `first`."""
        if source and source != first and first not in self.left_out.setdefault(source, set()):
            self.left_out[source].add(first)
            if addition is not None:
                addition.left_out.append((source, first))

    def _supersede(self, id: str, addition: _Addition) -> None:
        """Drop a document that an earlier call of `add` has added since the last commit."""
        number = self._pending.pop(id)
        segment, local = self._place_of(number)
        self._dropped.setdefault(segment, []).append(local)
        addition.superseded.append((id, number))

    def _place_of(self, number: int) -> tuple[int, int]:
        """The new segment of a pending document, as an index of `_new`, and its number in that segment."""
        segment = bisect_right(self._first_pending, number) - 1
        return segment, number - self._first_pending[segment]

    def adopt(
        self,
        written: Sequence[WrittenSegment],
        *,
        replace: bool = DEFAULT_REPLACE,
        keeps: Keeps | None = None,
        on_duplicate: OnDuplicate | None = None,
    ) -> None:
        """Add segments that other processes have written into the folder, as the only change of a commit.

        Documents are handled as if they were added in the order that the segments state; see `add`.
        """
        segments = [Segment(self.folder, one.entry) for one in written]
        addition = _Addition(0, 0)
        for _, number, local in sorted(_contested(segments, self.snapshot.segments, [one.order for one in written])):
            segment = segments[number]
            if not self._accept(segment.document_id(local), segment.source(local), addition, replace, keeps, on_duplicate):
                self._dropped.setdefault(number, []).append(local)
        self._new += [one.entry for one in written]

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

    def commit(self, *, merges: bool = True) -> Snapshot:
        """Make all changes durable and visible at once; returns the new snapshot.

        Merges segments if there are too many, unless `merges` is false.
        """
        self._check_usable()
        if self.changed:
            with self._all_or_nothing():
                if len(self._builder):
                    self._flush()
                entries = self._with_tombstones()
                self._publish([*entries, *self._without_dropped()])
            # The commit is durable now. Merging may fail (a full disk, a damaged segment) without harm to the index.
            try:
                if merges:
                    self.tidy()
            except (OSError, MemoryError, IndexFormatError):
                with contextlib.suppress(OSError, IndexFormatError):
                    self._open(Snapshot.open(self.folder, self.snapshot))
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

    def keep_only(self, names: frozenset[str]) -> None:
        """Keep these files and those of the last commit from now on, and remove others; see `kept`."""
        self._kept = names
        with contextlib.suppress(OSError, IndexFormatError):
            self._remove_leftovers()

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
        return self.folder / f"segment-{self.snapshot.manifest.generation + 1:08d}-{self.stamp}-{worker}.columns"

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
        self._first_pending.append(self._stored)

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

    def _without_dropped(self) -> list[dict[str, Any]]:
        """The manifest entries of the new segments, with tombstones for the documents that are not committed."""
        entries = []
        for number, entry in enumerate(self._new):
            if dropped := self._dropped.get(number):
                if len(dropped) == entry["documents"]:
                    continue
                tombstones = bury(Segment(self.folder, entry), np.array(dropped, np.int64))
                entry = {**entry, "deleted": tombstones.write(self.segment_path(f"dropped-{number}"))}
            entries.append(entry)
        return entries

    def _publish(self, entries: list[dict[str, Any]]) -> None:
        """Make these segments the content of the index, then remove the files that they replace."""
        manifest = replace(self.snapshot.manifest, segments=tuple(entries), generation=self.snapshot.manifest.generation + 1)
        # The segments are opened before the manifest is replaced: those that cannot be read must not be committed.
        snapshot = Snapshot(self.folder, manifest, self.snapshot.segments)
        manifest = snapshot.manifest = replace(manifest, left_out=_of_indexed_files(self.left_out, snapshot))
        if len({part for segment in snapshot.segments for part in segment.parts}) > MAX_PARTS:
            raise InputError(TOO_MANY_PARTS)
        files.sync_folder(self.folder)
        manifests.replace(self.folder, manifest)
        self._open(snapshot)
        with contextlib.suppress(OSError, IndexFormatError):
            self._remove_leftovers()

    def tidy(self) -> None:
        """Merge the smallest segments while there are too many, then rewrite one segment that is mostly deleted.

        Only after a commit.
        """
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
        known = {entry["file"] for entry in entries} | {entry["deleted"]["file"] for entry in entries if "deleted" in entry} | self._kept
        segments = [path for path in self.folder.glob("segment-*.columns") if path.name not in known]
        return segments + [path for path in self.folder.iterdir() if files.is_temporary(path.name)]


def _tokens(segment: Segment) -> int:
    return int(segment.entry["tokens"])


def _contested(segments: Sequence[Segment], old: Sequence[Segment], orders: Sequence[Integers]) -> Iterator[tuple[int, int, int]]:
    """Yield the documents of new segments whose id may occur more than once in new and old segments.

    Yields the number in `orders`, the number of the segment, and the number in the segment of each document.
    """
    hashes: Array = np.concatenate([segment["document_hash"] for segment in [*segments, *old]] or [np.zeros(0, np.uint64)])
    hashes.sort()
    repeated = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    for number, (segment, order) in enumerate(zip(segments, orders, strict=True)):
        for local in segment["document_of_hash"][np.isin(segment["document_hash"], repeated)].tolist():
            yield int(order[local]), number, local


def _of_indexed_files(left_out: Mapping[str, set[str]], snapshot: Snapshot) -> dict[str, list[str]]:
    """The entries of `left_out` for files that have documents in the index. Other files are always read again."""
    if not left_out:
        return {}
    indexed = {source for segment in snapshot.segments for source in segment.live_sources()}
    return {source: sorted(firsts) for source, firsts in sorted(left_out.items()) if firsts and source in indexed}
