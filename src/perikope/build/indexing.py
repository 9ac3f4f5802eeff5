"""Builds or updates an index from files. All changes become visible in one commit, or none."""

from __future__ import annotations

import itertools
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from perikope.build.workers import WorkerSettings, build_segments, file_size, preparing, size_of, tasks
from perikope.core import files
from perikope.core.errors import InputError, UnreadableFile, UsageError
from perikope.core.locks import LOCK_FILE
from perikope.core.parallel import usable_cores
from perikope.document.tree import Document
from perikope.formats import FileEntry, Source, document_id, documents, file_hash, sources_of
from perikope.formats import files as find_files
from perikope.formats._other_files import suffix_of
from perikope.index import manifest as manifests
from perikope.index.commit import DEFAULT_MEMORY, IndexWriter, SourceKey, create
from perikope.index.duplicates import DEFAULT_DUPLICATES, Duplicate, check_duplicates
from perikope.index.reader import Snapshot
from perikope.text.analysis import Analyzer, read_stopwords

_SELF, _WORKER = 100 << 20, 150 << 20
"""The memory in bytes that the program, and each worker process, uses before the first document."""

_FEW_FILES, _SAME_FOLDER = 2, 10
"""A sync of an index of more than `_FEW_FILES` files must find one in `_SAME_FOLDER` of them."""
LARGE_INPUT = 8 << 20
"""From this unpacked input size on, in bytes, worker processes save time."""

OnProgress = Callable[[int, int], None]
"""A function that is called with the numbers of documents and of bytes that were finished since the last call."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The result of a build. `documents` and `passages` are the totals of the index after the build."""

    documents: int
    passages: int
    added: int
    """The number of documents whose id the index did not have before."""
    changed: int
    """The number of documents that were read again and replace a document with the same id."""
    removed: int
    """The number of documents that were deleted and not replaced."""
    unchanged: int
    """The number of documents of the index that the build left as they were."""
    skipped: tuple[UnreadableFile, ...]
    """One error per file that was left out, or that was read in part."""
    duplicates: tuple[Duplicate, ...]
    """The documents that were left out because an earlier document has the same id, in the order of files."""
    files: int
    """The number of files of known formats in the input; the files in an archive count one by one."""
    ignored: Mapping[str, int]
    """By suffix, the number of files in folders and archives that were passed over, as they are of other formats."""
    links_outside: int
    """The number of symbolic links in folders that were passed over, as they lead outside their folder."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """The options of a build: how files are read and indexed."""

    format: str = "auto"
    """The format of all files, or `auto` to recognise the format of each."""
    language: str | None = None
    """The language of texts that do not name their language. None means the language of the index, or English for a new
    index."""
    stemmer: str | None = None
    """The stemmer. None means the stemmer of the index, or `snowball` for a new index."""
    stopwords: str | None = None
    """The stop words: `default`, `none` or the path of a file. None means those of the index, or `default` for a new
    index."""
    segment: str = "markup"
    """How documents are cut into passages; see `perikope.document.segmentation`."""
    languages: tuple[str, ...] = ()
    """The languages whose text is indexed; empty for all languages. Documents without such text are left out."""
    append: bool = False
    """Whether to add documents to an existing index."""
    replace: bool = False
    """Whether to add documents to an existing index and to replace documents that have the same id."""
    sync: bool = False
    """Whether to bring the index up to date with the files: new and changed files are read, and documents of files that
    no longer exist are deleted."""
    duplicates: str = DEFAULT_DUPLICATES
    """What to do if several documents have the same id. `first` indexes the first of them in the order of files, or
    keeps the one in the index; `error` raises an error."""
    memory: int = DEFAULT_MEMORY
    """The memory for all processes together, in bytes."""
    workers: int | None = None
    """The number of processes. None means one per core if the input is large, else one."""
    wait: float = 0.0
    """How long to wait until another writer releases the index, in seconds."""


def build(
    folder: str,
    paths: Sequence[str],
    options: BuildOptions | None = None,
    *,
    delete: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> BuildReport:
    """Index files and folders. After an error an existing index is unchanged, and a new index is removed.

    `delete` lists ids of documents to delete in the same commit.
    """
    options = options or BuildOptions()
    preparing(options.segment, options.languages)
    if options.append + options.replace + options.sync > 1:
        raise UsageError("--append, --replace and --sync exclude each other; give one of them")
    check_duplicates(options.duplicates)
    existed = Path(folder).exists()
    adding = options.append or options.replace or bool(delete) or (options.sync and (Path(folder) / manifests.FILE).exists())
    if adding:
        _check_settings(Snapshot.open(Path(folder)), options)
    else:
        analyzer = Analyzer(options.stemmer or "snowball", _stopwords(options.stopwords or "default"))  # type: ignore[arg-type]
        create(Path(folder), analyzer, options.language or "en")
    with IndexWriter(Path(folder), memory=max(options.memory - _SELF - _WORKER // 2, 32 << 20), wait=options.wait) as writer:
        before = writer.snapshot.totals.documents
        try:
            found = _change(writer, paths, options, delete, on_progress or (lambda documents, size: None))
            deleted, replaced = writer.deleted, writer.replaced
            after = writer.commit().totals
            if not adding and not after.documents:
                raise _no_documents(paths, options, found.skipped)
        except BaseException:
            # The folder is removed while the lock is held, so that no other program uses it.
            if not adding:
                _remove(Path(folder), keep_folder=existed)
            raise
    return BuildReport(
        documents=after.documents,
        passages=after.passages,
        added=after.documents - before + deleted - replaced,
        changed=replaced,
        removed=deleted - replaced,
        unchanged=before - deleted,
        skipped=tuple(found.skipped),
        duplicates=tuple(found.duplicates),
        files=found.files,
        ignored=dict(found.ignored),
        links_outside=len(found.links_outside),
    )


def _no_documents(paths: Sequence[str], options: BuildOptions, skipped: Sequence[UnreadableFile]) -> InputError:
    nothing = "no documents found; check the path and --format"
    if options.languages:
        nothing = f"no document has text in {', '.join(options.languages)}; check the path and --languages"
    return InputError("; ".join(str(problem) for problem in skipped[:3]) or nothing, path=", ".join(paths))


def _stopwords(given: str) -> str | tuple[str, ...]:
    return given if given in ("default", "none") else read_stopwords(given)


def _check_settings(snapshot: Snapshot, options: BuildOptions) -> None:
    """Raise a `UsageError` if the options set another stemmer or other stop words than the index has."""
    analysis = snapshot.manifest.analysis
    stopwords = None if options.stopwords is None else _stopwords(options.stopwords)
    requested = {"stemmer": options.stemmer, "stopwords": list(stopwords) if isinstance(stopwords, tuple) else stopwords}
    for name, value in requested.items():
        if value is not None and value != analysis[name]:
            raise UsageError(f"{snapshot.folder} was made with another setting of --{name}: leave the option out, or build a new index")


@dataclass(slots=True)
class _Found:
    """What a build finds in its input, apart from documents to index."""

    skipped: list[UnreadableFile] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    links_outside: list[str] = field(default_factory=list)
    files: int = 0

    def counted(self, sources: Iterable[Source]) -> Iterator[Source]:
        """Yield the sources, and count them as files."""
        for source in sources:
            self.files += 1
            yield source


def _change(writer: IndexWriter, paths: Sequence[str], options: BuildOptions, delete: Sequence[str], on_progress: OnProgress) -> _Found:
    """Delete and add documents without a commit."""
    writer.delete(delete)
    found = _Found()
    sync = _Sync(writer, paths) if options.sync else None

    def ignore(path: str) -> None:
        on_progress(0, file_size(path))
        try:
            if sync is None or not sync.keep(path):
                found.ignored[suffix_of(path)] += 1
        except UnreadableFile as problem:
            found.skipped.append(problem.with_traceback(None))

    def select(entry: FileEntry, digest: str) -> bool:
        is_read = sync is None or sync.select(entry, digest)
        if not is_read:
            on_progress(0, file_size(entry.path))
        return is_read

    entries: Iterator[FileEntry] = iter(())
    if paths:
        entries = find_files(
            list(paths),
            format=options.format,
            on_problem=found.skipped.append,
            on_ignored=ignore,
            on_link=found.links_outside.append,
        )
    is_large, entries = _is_large(entries)
    workers = options.workers if options.workers is not None else usable_cores() if is_large else 1
    sources = found.counted(
        sources_of(
            entries,
            format=options.format,
            language=options.language or writer.snapshot.manifest.language,
            on_problem=found.skipped.append,
            on_ignored=ignore,
            select=select if sync else None,
        )
    )
    how: dict[str, Any] = {
        "replace": options.replace or options.sync,
        "keeps": sync.keeps if sync else None,
        "on_duplicate": found.duplicates.append if options.duplicates == "first" else None,
    }
    if workers > 1:
        memory = max(options.memory // workers - _WORKER, 32 << 20)
        prefix = writer.segment_path("p").stem
        job = WorkerSettings(writer.folder, writer.snapshot.manifest.analysis, options.segment, options.languages, memory, prefix)
        outcome = build_segments(
            job, tasks(sources, found.skipped.append), workers, lambda count, task: on_progress(count, sum(map(size_of, task)))
        )
        writer.adopt(outcome.segments, **how)
        found.skipped += outcome.skipped
        found.skipped.sort(key=lambda problem: (str(problem.path), problem.line or 0))
    else:
        writer.add(_read(sources, options, found.skipped, on_progress), **how)
    if sync:
        _delete_outdated(writer, sync, paths, options, found)
    return found


def _delete_outdated(writer: IndexWriter, sync: _Sync, paths: Sequence[str], options: BuildOptions, found: _Found) -> None:
    """Delete documents whose files are gone or changed, after all files were read; complete what was found."""
    found.files += sync.unchanged_files
    sync.check_folder(writer.folder, paths, len(found.skipped))
    overtaken = sync.overtaken()
    if overtaken and options.duplicates == "error":
        raise InputError(overtaken[0].refusal())
    for duplicate in overtaken:
        writer.note_left_out(duplicate.source, duplicate.first)
    found.duplicates += overtaken
    # These numbers belong to the old snapshot, so a document that moved to another file and was read again is not
    # deleted.
    writer.delete_numbers(sync.outdated([str(problem.path) for problem in found.skipped]))


def _read(sources: Iterable[Source], options: BuildOptions, skipped: list[UnreadableFile], on_progress: OnProgress) -> Iterator[Document]:
    """Yield the documents of sources, cut into passages.

    The error of a file that cannot be read is added to `skipped`, or raised if the user named the file.
    """
    prepare = preparing(options.segment, options.languages)
    for source in sources:
        count = 0
        try:
            for document in documents(source):
                yield from prepare(document)
                count += 1
                if count % 256 == 0:
                    on_progress(256, 0)
        except UnreadableFile as problem:
            if source.named and not problem.partly:
                raise
            skipped.append(problem.with_traceback(None))
        on_progress(count % 256, size_of(source))


class _Sync:
    """Finds the differences between the files that an index was made from and the files as they are now.

    A file is known by its name and the hash of its content, because files of two folders may have the same name.
    """

    def __init__(self, writer: IndexWriter, paths: Sequence[str]) -> None:
        snapshot = writer.snapshot
        self._folders = [os.path.join(path, "") for path in paths]
        self._before, self._left_out = snapshot.manifest.left_out, writer.left_out
        self._known: dict[SourceKey, list[int]] = {}
        self._order: dict[SourceKey, int] = {}
        """The position of each file in the order of files."""
        self._unchanged: set[SourceKey] = set()
        self._unchanged_names: set[str] = set()
        self._replaced: list[tuple[str, SourceKey, SourceKey]] = []
        """The ids of documents that a document of another file replaces, with both files."""
        for base, segment in zip(snapshot.first_document.tolist(), snapshot.segments, strict=False):
            for local in np.flatnonzero(segment.alive).tolist():
                self._known.setdefault(segment.source(local), []).append(int(base) + local)
        self._known_names = {name for name, _ in self._known if name}
        self._found_names: set[str] = set()

    @property
    def unchanged_files(self) -> int:
        """The number of files that are not read, because the index has their content."""
        return len(self._unchanged)

    def select(self, entry: FileEntry, digest: str) -> bool:
        """Whether a file must be read. `digest` is the hash of its content.

        A file is read if it is new or its content has changed. A file with a document that was left out is also read
        if the file that has the first document with the same id has changed.
        """
        file = entry.id, digest
        self._found_names.add(entry.id)
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
        names = [document_id(path.removeprefix(folder)) for folder in self._folders if path.startswith(folder)]
        known = self._known_names.intersection(names)
        for name in known:
            file = name, file_hash(path)
            if file not in self._known:
                raise UnreadableFile("has changed since it was indexed with another --format; sync with that format too", path=path)
            self._order.setdefault(file, len(self._order))
            self._unchanged.add(file)
            self._unchanged_names.add(name)
            self._found_names.add(name)
        return bool(known)

    def check_folder(self, folder: Path, paths: Sequence[str], unreadable: int) -> None:
        """Raise a `UsageError` if the files are probably those of another folder, so that a sync would empty the index.

        This is so if fewer than one in ten of the index's files are found, and there are other files. All files must
        have been passed to `select` before. Files that cannot be read may be any of them.
        """
        found = len(self._known_names & self._found_names) + unreadable
        if self._found_names and len(self._known_names) > _FEW_FILES and _SAME_FOLDER * found < len(self._known_names):
            raise UsageError(
                f"{', '.join(paths)} has {found} of the {len(self._known_names)} files of {folder}, and --sync would remove the others: "
                "give the folder that the index was made from, add these files with --append, or make a new index"
            )

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

        Documents that did not come from a file are not included. Neither are documents of `unreadable` files, since
        such a file may be half written.
        """
        kept = {name for path in unreadable for name in _names_in(path)}
        gone = [file for file in self._known if file[0] and file not in self._unchanged and file[0] not in kept]
        return [number for file in gone for number in self._known[file]]


def _names_in(path: str) -> Iterator[str]:
    """Yield every name that the index may have for a file or for an archive that holds it: all runs of path components.

    >>> list(_names_in("docs/a.md"))
    ['docs', 'docs/a.md', 'a.md']
    """
    # The index names files with forward slashes on every system.
    parts = [part for part in document_id(path).split("/") if part]
    for first in range(len(parts)):
        for end in range(first + 1, len(parts) + 1):
            yield "/".join(parts[first:end])


def input_size(paths: Sequence[str]) -> int:
    """The estimated unpacked size of files and folders in bytes, for a progress bar."""
    total = 0
    for path in paths:
        if os.path.isdir(path):
            total += sum(file_size(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)
        else:
            total += file_size(path)
    return total


def _is_large(entries: Iterator[FileEntry]) -> tuple[bool, Iterator[FileEntry]]:
    """Whether the total size of the files is at least `LARGE_INPUT`, and a new iterator over all files.

    Files are examined only until this size is reached.
    """
    seen: list[FileEntry] = []
    size = 0
    for entry in entries:
        seen.append(entry)
        size += file_size(entry.path)
        if size >= LARGE_INPUT:
            return True, itertools.chain(seen, entries)
    return False, iter(seen)


def _remove(folder: Path, *, keep_folder: bool) -> None:
    """Remove a new index. Its folder was new or empty, so all files in the folder are removed.

    Windows refuses to remove a segment that is mapped. In that case an index without a commit remains. A new index can
    be made in its place, whose first writer removes the other files. On Windows the lock file remains too, since it is
    open.
    """
    segments = [path for path in folder.iterdir() if path.name not in (manifests.FILE, LOCK_FILE)]
    held = [path for path in segments if not files.remove_unless_held(path)]
    if held:
        manifests.replace(folder, replace(manifests.load(folder), segments=(), generation=0))
        return
    for name in (manifests.FILE, LOCK_FILE):
        files.remove_unless_held(folder / name)
    if not keep_folder:
        shutil.rmtree(folder, ignore_errors=True)
