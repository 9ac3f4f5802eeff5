"""Builds or updates an index from files. All changes become visible in one commit, or none."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perikope.build.workers import WorkerSettings, build_segments, file_size, preparing, size_of, tasks
from perikope.core import files
from perikope.core.errors import InputError, UnreadableFile, UsageError, unknown
from perikope.core.locks import LOCK_FILE
from perikope.core.parallel import usable_cores
from perikope.document.tree import Document
from perikope.formats import FileEntry, Source, document_id, documents, sources_of
from perikope.formats import files as find_files
from perikope.index import manifest as manifests
from perikope.index.commit import DEFAULT_MEMORY, IndexWriter, create
from perikope.index.reader import Snapshot
from perikope.text.analysis import Analyzer, read_stopwords

_SELF, _WORKER = 100 << 20, 150 << 20
"""The memory in bytes that the program, and each worker process, uses before the first document."""

LARGE_INPUT = 8 << 20
"""From this unpacked input size on, in bytes, worker processes save time."""

OnProgress = Callable[[int, int], None]
"""A function that is called with the numbers of documents and of bytes that were finished since the last call."""


DUPLICATES = ("error", "first")
"""The values of `BuildOptions.duplicates`."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The result of a build. `documents` and `passages` are the totals of the index after the build."""

    documents: int
    passages: int
    added: int
    """The number of added documents, including those that replace another document."""
    deleted: int
    """The number of deleted documents, including those that were replaced."""
    skipped: tuple[UnreadableFile, ...]
    """One error per file, or per duplicate document, that was left out."""
    ignored: int
    """The number of files in folders and archives that were ignored because their format is not known."""


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
    duplicates: str = "error"
    """What to do if several documents have the same id. `error` raises an error; `first` indexes the first of them
    only."""
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
    if options.duplicates not in DUPLICATES:
        raise unknown("value of --duplicates", options.duplicates, DUPLICATES)
    if options.duplicates == "first" and (options.workers or 1) > 1:
        raise UsageError("--duplicates=first needs a single process; leave out --workers")
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
            skipped, ignored = _change(writer, paths, options, delete, on_progress or (lambda documents, size: None))
            deleted = writer.deleted
            after = writer.commit().totals
            if not adding and not after.documents:
                nothing = "no documents found; check the path and --format"
                if options.languages:
                    nothing = f"no document has text in {', '.join(options.languages)}; check the path and --languages"
                raise InputError(
                    "; ".join(str(problem) for problem in skipped[:3]) or nothing,
                    path=", ".join(paths),
                )
        except BaseException:
            # The folder is removed while the lock is held, so that no other program uses it.
            if not adding:
                _remove(Path(folder), keep_folder=existed)
            raise
    return BuildReport(after.documents, after.passages, after.documents - before + deleted, deleted, tuple(skipped), ignored)


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


def _change(
    writer: IndexWriter, paths: Sequence[str], options: BuildOptions, delete: Sequence[str], on_progress: OnProgress
) -> tuple[list[UnreadableFile], int]:
    """Delete and add documents without a commit.

    Returns one error per skipped file, and the number of ignored files.
    """
    writer.delete(delete)
    skipped: list[UnreadableFile] = []
    ignored: list[str] = []
    sync = _Sync(writer.snapshot) if options.sync else None
    entries = find_files(list(paths), format=options.format, on_problem=skipped.append, on_ignored=ignored.append) if paths else iter(())
    if options.duplicates == "first":
        workers = 1  # which document is the first is known only if one process reads all files
    else:
        is_large, entries = _is_large(entries)
        workers = options.workers if options.workers is not None else usable_cores() if is_large else 1
    sources = sources_of(
        entries,
        format=options.format,
        language=options.language or writer.snapshot.manifest.language,
        on_problem=skipped.append,
        on_ignored=ignored.append,
        select=sync.select if sync else None,
    )
    replaces = options.replace or options.sync
    if workers > 1:
        memory = max(options.memory // workers - _WORKER, 32 << 20)
        prefix = writer.segment_path("p").stem
        job = WorkerSettings(writer.folder, writer.snapshot.manifest.analysis, options.segment, options.languages, memory, prefix)
        outcome = build_segments(
            job, tasks(sources, skipped.append), workers, lambda count, task: on_progress(count, sum(map(size_of, task)))
        )
        writer.adopt(outcome.entries, replace=replaces)
        skipped += outcome.skipped
    else:

        def skip(document: Document) -> None:
            skipped.append(
                UnreadableFile(f"document {document.id!r} is skipped: an earlier document has the same id", path=document.source or None)
            )

        on_duplicate = skip if options.duplicates == "first" else None
        writer.add(_read(sources, options, skipped, on_progress), replace=replaces, on_duplicate=on_duplicate)
    if sync:
        # These numbers belong to the old snapshot, so a document that moved to another file and was read again is not
        # deleted.
        writer.delete_numbers(sync.outdated([str(problem.path) for problem in skipped]))
    return skipped, len(ignored)


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
    """Finds the differences between the files that an index was made from and the files as they are now."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._known: dict[str, tuple[str, list[int]]] = {}
        self._unchanged: set[str] = set()
        for base, segment in zip(snapshot.first_document.tolist(), snapshot.segments, strict=False):
            for local in np.flatnonzero(segment.alive).tolist():
                source, digest = segment.source(local)
                self._known.setdefault(source, (digest, []))[1].append(int(base) + local)

    def select(self, entry: FileEntry, digest: str) -> bool:
        """Whether a file must be read because it is new or its content has changed.

        `digest` is the hash of its content.
        """
        if entry.id in self._known and self._known[entry.id][0] == digest:
            self._unchanged.add(entry.id)
            return False
        return True

    def outdated(self, unreadable: Sequence[str]) -> list[int]:
        """The numbers of documents whose file has changed or no longer exists.

        Documents that did not come from a file are not included. Neither are documents of `unreadable` files, since
        such a file may be half written.
        """
        gone = {source for source in self._known if source and source not in self._unchanged}
        # The index names files with forward slashes on every system.
        gone -= {source for source in gone for path in unreadable if f"/{source}/" in f"/{document_id(path)}/"}
        return [number for source in gone for number in self._known[source][1]]


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
