"""From files to an index in one step, as the command line does it: all of it, or nothing."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perikope.build.workers import Job, build_segments, file_size, size_of, tasks
from perikope.core import files
from perikope.core.errors import InputError, UnreadableFile, UsageError, unknown
from perikope.core.locks import LOCK_FILE
from perikope.core.parallel import usable_cores
from perikope.document.segmentation import segmenter
from perikope.document.tree import Document
from perikope.formats import FileEntry, Source, document_id, documents, sources_of
from perikope.formats import files as find_files
from perikope.index import manifest as manifests
from perikope.index.commit import DEFAULT_MEMORY, IndexWriter, create
from perikope.index.reader import Snapshot
from perikope.text.analysis import Analyzer, read_stopwords

_SELF, _WORKER = 100 << 20, 150 << 20
"""What the program itself takes, and what each worker process takes, before the first document."""

LARGE_INPUT = 8 << 20
"""From this size on, unpacked, a second process pays."""

OnProgress = Callable[[int, int], None]
"""Called with documents and bytes done since the last call."""


DUPLICATES = ("error", "first")


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What the index holds now, what has changed and what had to be skipped."""

    documents: int
    passages: int
    added: int
    deleted: int
    skipped: tuple[UnreadableFile, ...]
    ignored: int
    """Files of folders and archives whose format is not known."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How files are read and indexed."""

    format: str = "auto"
    language: str | None = None
    stemmer: str | None = None
    stopwords: str | None = None
    """None: as the index has it, or English, snowball and the default list for a new one."""
    segment: str = "markup"
    append: bool = False
    replace: bool = False
    sync: bool = False
    duplicates: str = "error"
    """What to do with several documents of the same id among what is read: `error`, or `first`: take the first, skip the others."""
    memory: int = DEFAULT_MEMORY
    workers: int | None = None
    """None: as many as there are cores where the input is large, else none."""
    wait: float = 0.0


def build(
    folder: str,
    paths: Sequence[str],
    options: BuildOptions | None = None,
    *,
    delete: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> BuildReport:
    """Index files and folders; an error leaves the index as it was, or no index where there was none."""
    options = options or BuildOptions()
    segmenter(options.segment)
    if options.append + options.replace + options.sync > 1:
        raise UsageError("--append, --replace and --sync exclude each other; give one of them")
    if options.duplicates not in DUPLICATES:
        raise unknown("way with duplicates", options.duplicates, DUPLICATES)
    if options.duplicates == "first" and (options.workers or 1) > 1:
        raise UsageError("--duplicates first reads one file after the other; leave out --workers")
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
                raise InputError(
                    "; ".join(str(problem) for problem in skipped[:3]) or "there are no documents in it", path=", ".join(paths)
                )
        except BaseException:
            # While the lock is held: the folder is ours, and nobody else's.
            if not adding:
                _remove(Path(folder), keep_folder=existed)
            raise
    return BuildReport(after.documents, after.passages, after.documents - before + deleted, deleted, tuple(skipped), ignored)


def _stopwords(given: str) -> str | tuple[str, ...]:
    return given if given in ("default", "none") else read_stopwords(given)


def _check_settings(snapshot: Snapshot, options: BuildOptions) -> None:
    """An index has one text analysis: asking for another while adding is a mistake that must not pass in silence."""
    has = snapshot.manifest.analysis
    stopwords = None if options.stopwords is None else _stopwords(options.stopwords)
    wanted = {"stemmer": options.stemmer, "stopwords": list(stopwords) if isinstance(stopwords, tuple) else stopwords}
    for name, value in wanted.items():
        if value is not None and value != has[name]:
            raise UsageError(f"{snapshot.folder} was made with another setting (--{name}): leave the option out, or build a new index")


def _change(
    writer: IndexWriter, paths: Sequence[str], options: BuildOptions, delete: Sequence[str], on_progress: OnProgress
) -> tuple[list[UnreadableFile], int]:
    writer.delete(delete)
    skipped: list[UnreadableFile] = []
    ignored: list[str] = []
    sync = _Sync(writer.snapshot) if options.sync else None
    entries = find_files(list(paths), format=options.format, on_problem=skipped.append, on_ignored=ignored.append) if paths else iter(())
    if options.duplicates == "first":
        workers = 1  # which document is the first is known only to whoever reads them all
    else:
        is_large, entries = _is_large(entries)
        workers = options.workers if options.workers is not None else usable_cores() if is_large else 1
    found = sources_of(
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
        job = Job(writer.folder, writer.snapshot.manifest.analysis, options.segment, memory, prefix)
        outcome = build_segments(
            job, tasks(found, skipped.append), workers, lambda count, task: on_progress(count, sum(map(size_of, task)))
        )
        writer.adopt(outcome.entries, replace=replaces)
        skipped += outcome.skipped
    else:

        def skip(document: Document) -> None:
            skipped.append(UnreadableFile(f"document {document.id!r} was in an earlier file", path=document.source or None))

        on_duplicate = skip if options.duplicates == "first" else None
        writer.add(_read(found, options.segment, skipped, on_progress), replace=replaces, on_duplicate=on_duplicate)
    if sync:
        # Numbers of the old snapshot: what was read meanwhile is not meant, even where a document moved to another file.
        writer.delete_numbers(sync.outdated([str(problem.path) for problem in skipped]))
    return skipped, len(ignored)


def _read(found: Iterable[Source], segment: str, skipped: list[UnreadableFile], on_progress: OnProgress) -> Iterator[Document]:
    cut = segmenter(segment)
    for source in found:
        count = 0
        try:
            for document in documents(source):
                yield cut(document)
                count += 1
                if count % 256 == 0:
                    on_progress(256, 0)
        except UnreadableFile as problem:
            if source.named and not problem.partly:
                raise
            skipped.append(problem.with_traceback(None))
        on_progress(count % 256, size_of(source))


class _Sync:
    """What an index holds of each file, against what the files are now."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._known: dict[str, tuple[str, list[int]]] = {}
        self._kept: set[str] = set()
        for base, segment in zip(snapshot.first_document.tolist(), snapshot.segments, strict=False):
            for local in np.flatnonzero(segment.alive).tolist():
                source, digest = segment.source(local)
                self._known.setdefault(source, (digest, []))[1].append(int(base) + local)

    def select(self, entry: FileEntry, digest: str) -> bool:
        """Whether a file must be read: it is new, or its content has changed."""
        if entry.id in self._known and self._known[entry.id][0] == digest:
            self._kept.add(entry.id)
            return False
        return True

    def outdated(self, unreadable: Sequence[str]) -> list[int]:
        """The documents of files that have changed or vanished.

        Those that came from no file stay, and so do those whose file is there but cannot be read now: it may be half written.
        """
        gone = {source for source in self._known if source and source not in self._kept}
        # Sources are written as ids, with forward slashes on every system.
        gone -= {source for source in gone for path in unreadable if f"/{source}/" in f"/{document_id(path)}/"}
        return [number for source in gone for number in self._known[source][1]]


def input_size(paths: Sequence[str]) -> int:
    """About how many bytes the files and folders have, unpacked; for a progress bar, which needs to know before anything is read."""
    total = 0
    for path in paths:
        if os.path.isdir(path):
            total += sum(file_size(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)
        else:
            total += file_size(path)
    return total


def _is_large(entries: Iterator[FileEntry]) -> tuple[bool, Iterator[FileEntry]]:
    """Whether the files have `LARGE_INPUT` bytes together, and all of them: those looked at come first, the walk goes on behind them."""
    seen: list[FileEntry] = []
    size = 0
    for entry in entries:
        seen.append(entry)
        size += file_size(entry.path)
        if size >= LARGE_INPUT:
            return True, itertools.chain(seen, entries)
    return False, iter(seen)


def _remove(folder: Path, *, keep_folder: bool) -> None:
    """Undo the making of an index; the folder was new or empty, so all in it is ours.

    Where the system refuses to remove a segment, as Windows does while it is mapped, an index without a commit stays: it can be made anew,
    and its first writer clears up. The lock file stays on Windows, since it is open.
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
