"""Builds or updates an index from files. All changes become visible in one commit, or none."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perikope.build.sync import Sync, incomplete_files
from perikope.build.workers import WorkerSettings, build_segments, file_size, preparing, size_of, tasks
from perikope.core import files
from perikope.core.cores import usable_cores
from perikope.core.errors import InputError, UnreadableFile, UsageError
from perikope.core.file_limits import FILE_MEMORY, FILE_SECONDS
from perikope.core.locks import LOCK_FILE
from perikope.core.parallel import limited_workers
from perikope.document.tree import Document
from perikope.formats import FileEntry, FileLimits, Source, documents, sources_of
from perikope.formats import files as find_files
from perikope.formats._other_files import suffix_of
from perikope.index import manifest as manifests
from perikope.index.commit import DEFAULT_MEMORY, IndexWriter, create
from perikope.index.duplicates import DEFAULT_DUPLICATES, Duplicate, check_duplicates
from perikope.index.reader import Snapshot
from perikope.index.without_passage import WithoutPassage, documents_without_passage
from perikope.text.analysis import Analyzer, read_stopwords

_SELF, _WORKER = 100 << 20, 150 << 20
"""The memory in bytes that the program, and each worker process, uses before the first document."""

LARGE_INPUT = 8 << 20
"""From this unpacked input size on, in bytes, worker processes save time."""

OnProgress = Callable[[int, int], None]
"""A function that is called with the numbers of documents and of bytes that were finished since the last call."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The result of a build. `documents` and `passages` are the totals of the index after the build."""

    documents: int
    passages: int
    without_passage: WithoutPassage
    """The documents of the index that have no passage."""
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
    """The number of processes, at most four per core. None means one per core if the input is large, else one."""
    file_seconds: float = FILE_SECONDS
    """The longest time that one file may take if it is read in a process of its own, as PDFs are, in seconds."""
    file_memory: int = FILE_MEMORY
    """The most memory that such a process may take, in bytes."""
    wait: float = 0.0
    """How long to wait until another writer releases the index, in seconds."""
    skip_broken: bool = False
    """Whether a file in a folder whose content is wrong, such as broken JSON Lines, is left out as a whole, like a file
    that cannot be read. Documents that the index has of it stay. Otherwise such a file is an error. Files are parsed
    twice for this."""


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
    if options.sync and not paths:
        raise UsageError("--sync needs the files or folders that the index was made from; without any, all documents would be removed")
    check_duplicates(options.duplicates)
    existed = Path(folder).exists()
    adding = options.append or options.replace or bool(delete) or (options.sync and (Path(folder) / manifests.FILE).exists())
    if adding:
        _check_settings(Snapshot.open(Path(folder)), options)
    else:
        analyzer = Analyzer(options.stemmer or "snowball", stopwords_of(options.stopwords or "default"))  # type: ignore[arg-type]
        create(Path(folder), analyzer, options.language or "en")
    with IndexWriter(Path(folder), memory=max(options.memory - _SELF - _WORKER // 2, 32 << 20), wait=options.wait) as writer:
        before = writer.snapshot.totals.documents
        try:
            found = _change(writer, paths, options, delete, on_progress or (lambda documents, size: None))
            deleted, replaced = writer.deleted, writer.replaced
            snapshot = writer.commit()
            after, without_passage = snapshot.totals, documents_without_passage(snapshot)
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
        without_passage=without_passage,
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


def stopwords_of(given: str) -> str | tuple[str, ...]:
    """The stop words that an option names: `default`, `none`, or the words of a file."""
    return given if given in ("default", "none") else read_stopwords(given)


def _check_settings(snapshot: Snapshot, options: BuildOptions) -> None:
    """Raise a `UsageError` if the options set another stemmer or other stop words than the index has."""
    analysis = snapshot.manifest.analysis
    stopwords = None if options.stopwords is None else stopwords_of(options.stopwords)
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

    @property
    def unreadable(self) -> list[str]:
        """The paths of the files, folders and members of archives that could not be read, or only in part."""
        return [str(problem.path) for problem in self.skipped]

    def counted(self, sources: Iterable[Source]) -> Iterator[Source]:
        """Yield the sources, and count them as files."""
        for source in sources:
            self.files += 1
            yield source


def _change(writer: IndexWriter, paths: Sequence[str], options: BuildOptions, delete: Sequence[str], on_progress: OnProgress) -> _Found:
    """Delete and add documents without a commit."""
    writer.delete(delete)
    found = _Found()
    sync = Sync(writer, paths) if options.sync else None

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
            on_refused=sync.note_unreadable if sync else None,
        )
    if sync:
        entries = sync.checked(entries, lambda: found.unreadable)
    is_large, entries = _is_large(entries)
    workers = limited_workers(options.workers) if options.workers is not None else usable_cores() if is_large else 1
    sources = found.counted(
        sources_of(
            entries,
            format=options.format,
            language=options.language or writer.snapshot.manifest.language,
            on_problem=found.skipped.append,
            on_ignored=ignore,
            select=select if sync else None,
            limits=FileLimits(options.file_seconds, options.file_memory),
        )
    )
    if options.skip_broken:
        sources = _sound(sources, found.skipped.append)
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
        writer.add(read_documents(sources, options, found.skipped, on_progress), **how)
    if sync:
        _delete_outdated(writer, sync, options, found)
    for name in incomplete_files(found.unreadable, paths):
        writer.note_incomplete(name)
    return found


def _sound(sources: Iterable[Source], on_problem: Callable[[UnreadableFile], None]) -> Iterator[Source]:
    """Yield the sources whose content is right. Others are passed to `on_problem`, and no document of them is indexed.

    A member of an archive is read into memory for this. The error of a file that cannot be read is left to the reading
    that follows.
    """
    for source in sources:
        try:
            kept = source.carried()
        except UnreadableFile as error:
            on_problem(error.with_traceback(None))
            continue
        try:
            with contextlib.suppress(UnreadableFile):
                for _ in documents(kept):
                    pass
        except InputError as error:
            if source.named:
                raise
            on_problem(UnreadableFile(error.reason, path=error.path or source.path, line=error.line))
            continue
        yield kept


def _delete_outdated(writer: IndexWriter, sync: Sync, options: BuildOptions, found: _Found) -> None:
    """Delete documents whose files are gone or changed, after all files were read; complete what was found."""
    found.files += sync.unchanged_files
    overtaken = sync.overtaken()
    if overtaken and options.duplicates == "error":
        raise InputError(overtaken[0].refusal())
    for duplicate in overtaken:
        writer.note_left_out(duplicate.source, duplicate.first)
    found.duplicates += overtaken
    # These numbers belong to the old snapshot, so a document that moved to another file and was read again is not
    # deleted.
    # A link that leads outside the folder is passed over, and a folder may have been replaced by it.
    writer.delete_numbers(sync.outdated([*found.unreadable, *found.links_outside]))


def read_documents(
    sources: Iterable[Source], options: BuildOptions, skipped: list[UnreadableFile], on_progress: OnProgress
) -> Iterator[Document]:
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
