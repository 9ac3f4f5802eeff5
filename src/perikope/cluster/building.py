"""Build a cluster from files or from an index, and change it.

A build commits its shards whenever it has read a batch, and notes in `building.json` how far it came. A build that was
stopped is continued by the same command: it loses at most the batch that it was working on, and builds nothing twice.
The manifest of the cluster is published last. So a cluster exists as a whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from perikope.build.indexing import BuildOptions, read_documents, stopwords_of
from perikope.cluster.writer import JOURNAL, ClusterWriter, create_shards, empty_cluster, load_cluster
from perikope.core import files
from perikope.core.checked_json import has_right_checksum, parse_object, with_checksum
from perikope.core.errors import InputError, UnreadableFile, UsageError
from perikope.document.tree import Document
from perikope.formats import FileLimits, Source, sources_of
from perikope.formats import files as find_files
from perikope.index import manifest as manifests
from perikope.index.commit import DEFAULT_MEMORY
from perikope.index.duplicates import DEFAULT_DUPLICATES, Duplicate, check_duplicates
from perikope.index.manifest import Manifest
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import FOLDER as TABLES
from perikope.index.stored import stored_document
from perikope.text.analysis import Analyzer

BATCH = 1 << 28
"""A build commits its shards after about this many characters of text."""


@dataclass(slots=True)
class ClusterReport:
    """The result of a change of a cluster. `documents` and `passages` are the totals after the change."""

    shards: int = 0
    documents: int = 0
    passages: int = 0
    skipped: list[UnreadableFile] = field(default_factory=list)
    """One error per file that was left out, or that was read in part."""
    duplicates: list[Duplicate] = field(default_factory=list)
    """The documents that were left out because an earlier document has the same id."""
    continued: int = 0
    """The number of documents that a stopped build had read before; 0 if the build began anew."""

    def counted(self, writer: ClusterWriter) -> ClusterReport:
        """The report with the totals of a writer."""
        self.shards, self.documents, self.passages = writer.shards, writer.documents, writer.passages
        return self


def build_cluster(
    folder: str, paths: Sequence[str], shards: int, options: BuildOptions | None = None, *, batch: int = BATCH
) -> ClusterReport:
    """Make a cluster from files and folders, or continue a stopped build. `batch` is a number of characters."""
    options = options or BuildOptions()
    check_duplicates(options.duplicates)
    asked = {"paths": [str(Path(path).absolute()) for path in paths], "shards": shards, "options": kept_options(options)}
    report = ClusterReport()
    read = read_documents(
        sources_for(paths, options, options.language or "en", report), options, report.skipped, lambda documents, size: None
    )
    return _build(Path(folder), read, shards, analyzer_for(options), options.language or "en", asked, options, report, batch)


def cluster_from(index: str, folder: str, shards: int, *, memory: int = DEFAULT_MEMORY, batch: int = BATCH) -> ClusterReport:
    """Make a cluster with the documents and learned tables of an index."""
    snapshot = Snapshot.open(Path(index))
    asked = {"index": str(Path(index).absolute()), "fingerprint": snapshot.manifest.fingerprint, "shards": shards}
    numbers = (number for number in range(snapshot.numbers) if _is_live(snapshot, number))
    documents = (stored_document(*snapshot.locate(number)) for number in numbers)
    options = BuildOptions(memory=memory)
    report = _build(Path(folder), documents, shards, snapshot.analyzer, snapshot.manifest.language, asked, options, ClusterReport(), batch)
    if (snapshot.folder / TABLES).is_dir():
        shutil.copytree(snapshot.folder / TABLES, Path(folder) / TABLES, dirs_exist_ok=True)
    return report


def append(folder: str, paths: Sequence[str], options: BuildOptions | None = None) -> ClusterReport:
    """Add files and folders to a cluster, in one commit."""
    options = options or BuildOptions()
    check_duplicates(options.duplicates)
    report = ClusterReport()
    with ClusterWriter(Path(folder), memory=options.memory, wait=options.wait) as writer:
        sources = sources_for(paths, options, options.language or writer.state.language, report)
        with writer.adding(replace=options.replace, on_duplicate=on_duplicate_of(options, report)) as take:
            for document in read_documents(sources, options, report.skipped, lambda documents, size: None):
                take(document)
        writer.commit()
        return report.counted(writer)


def delete(folder: str, ids: Iterable[str], *, wait: float = 0.0) -> ClusterReport:
    """Delete documents of a cluster by id, in one commit."""
    with ClusterWriter(Path(folder), wait=wait) as writer:
        writer.delete(ids)
        writer.commit()
        return ClusterReport().counted(writer)


def compact(folder: str, *, memory: int = DEFAULT_MEMORY, wait: float = 0.0) -> ClusterReport:
    """Merge the segments of each shard of a cluster."""
    with ClusterWriter(Path(folder), memory=memory, wait=wait) as writer:
        writer.compact()
        return ClusterReport().counted(writer)


def _build(
    folder: Path, documents: Iterable[Document], shards: int, analyzer: Analyzer, language: str, asked: dict[str, Any],
    options: BuildOptions, report: ClusterReport, batch: int,
) -> ClusterReport:  # fmt: skip
    """Build or continue a cluster of these documents; `asked` identifies the build."""
    check_unpublished(folder)
    progress = _Progress.load(folder, asked)
    if progress is None:
        check_free(folder)
        progress = _Progress(asked, empty_cluster(shards, analyzer, language))
        files.make_folder(folder)
        progress.save(folder, progress.state)
    create_shards(folder, progress.state)
    report.continued = progress.documents
    try:
        return _fill(folder, documents, progress, asked, options, report, batch)
    except Exception:
        # An error in the first batch leaves nothing, as in a build of an index. Later ones can be mended and continued.
        if not progress.state.segments:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _fill(
    folder: Path, documents: Iterable[Document], progress: _Progress, asked: dict[str, Any], options: BuildOptions,
    report: ClusterReport, batch: int,
) -> ClusterReport:  # fmt: skip
    """Index the documents that the build has not committed yet, and publish the cluster."""
    with ClusterWriter(folder, progress.state, memory=options.memory, wait=options.wait) as writer:
        remaining = iter(documents)
        progress.check(islice(remaining, progress.documents))
        for some in _batches(remaining, batch):
            with writer.adding(on_duplicate=on_duplicate_of(options, report)) as take:
                for document in some:
                    take(document)
                    progress.count(document)
            writer.commit(progress.save)
        if not writer.documents:
            problem = "; ".join(map(str, report.skipped[:3])) or "no documents found; check the path and --format"
            raise InputError(problem, path=", ".join(asked.get("paths") or [asked["index"]]))
        writer.commit()
        files.remove_unless_held(folder / JOURNAL)
        return report.counted(writer)


@dataclass(slots=True)
class _Progress:
    """How far a build came: the manifest of what it has committed, and the documents that were read for it."""

    asked: dict[str, Any]
    state: Manifest
    documents: int = 0
    digest: str = ""
    """A hash of the ids and texts of these documents, which tells whether they are still the same."""

    def count(self, document: Document) -> None:
        """Count a document as read."""
        self.documents += 1
        self.digest = hashlib.sha256(f"{self.digest}\n{document.id}\n{document.text}".encode("utf-8", "surrogatepass")).hexdigest()

    def check(self, documents: Iterator[Document]) -> None:
        """Raise `UsageError` unless these are the documents that the stopped build has read."""
        seen = _Progress(self.asked, self.state)
        for document in documents:
            seen.count(document)
        if (seen.documents, seen.digest) != (self.documents, self.digest):
            raise UsageError("the input has changed since the build was stopped: remove the folder of the cluster, and build it again")

    def save(self, folder: Path, state: Manifest) -> None:
        """Note that everything which was counted is committed in `state`."""
        self.state = state
        content = {"asked": self.asked, "documents": self.documents, "digest": self.digest}
        content["state"] = json.loads(manifests.encoded(state))
        with files.replacing_binary(folder / JOURNAL) as file:
            file.write(json.dumps(with_checksum(content)).encode())

    @classmethod
    def load(cls, folder: Path, asked: dict[str, Any]) -> _Progress | None:
        """The progress of a stopped build; None if there was none. Raises `UsageError` if it was another build."""
        try:
            content = parse_object(files.read(folder / JOURNAL))
            if not has_right_checksum(content):
                raise ValueError("damaged")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValueError:
            raise UsageError(f"{folder / JOURNAL} is damaged: remove {folder}, and build the cluster again") from None
        if content["asked"] != asked:
            raise UsageError(f"{folder} has an unfinished build of other input or options: repeat that command, or remove the folder")
        return cls(asked, manifests.decoded(content["state"], folder / JOURNAL), content["documents"], content["digest"])


def _batches(documents: Iterator[Document], characters: int) -> Iterator[Iterator[Document]]:
    """Divide documents into batches of about this many characters. Each batch must be used up before the next."""

    def batch(first: Document) -> Iterator[Document]:
        yield first
        size = len(first.text)
        while size < characters and (document := next(documents, None)) is not None:
            size += len(document.text)
            yield document

    while (first := next(documents, None)) is not None:
        yield batch(first)


def analyzer_for(options: BuildOptions) -> Analyzer:
    """The text analysis of a new cluster."""
    return Analyzer(options.stemmer or "snowball", stopwords_of(options.stopwords or "default"))  # type: ignore[arg-type]


def sources_for(paths: Sequence[str], options: BuildOptions, language: str, report: ClusterReport) -> Iterator[Source]:
    """Yield the files to read. Those that cannot be read are added to the report."""
    entries = find_files(list(paths), format=options.format, on_problem=report.skipped.append)
    limits = FileLimits(options.file_seconds, options.file_memory)
    return sources_of(entries, format=options.format, language=language, on_problem=report.skipped.append, limits=limits)


def on_duplicate_of(options: BuildOptions, report: ClusterReport) -> Callable[[Duplicate], None] | None:
    """What is called with each duplicate; None if a duplicate is an error."""
    return report.duplicates.append if options.duplicates == DEFAULT_DUPLICATES else None


def kept_options(options: BuildOptions) -> dict[str, Any]:
    """The options that change what is built."""
    names = ("format", "language", "stemmer", "stopwords", "segment", "languages", "duplicates")
    kept: dict[str, Any] = json.loads(json.dumps({name: value for name, value in asdict(options).items() if name in names}))
    return kept


def _is_live(snapshot: Snapshot, number: int) -> bool:
    segment, local = snapshot.locate(number)
    return bool(segment.alive[local])


def check_unpublished(folder: Path) -> None:
    """Raise `UsageError` if a folder is a cluster already."""
    if (folder / manifests.FILE).exists():
        shown = len(load_cluster(folder).shards)
        raise UsageError(
            f"{folder} is already a cluster of {shown} shards: add to it with `perikope cluster append`, or choose another folder"
        )


def check_free(folder: Path) -> None:
    """Raise `UsageError` unless a folder is new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not empty: choose another folder for the cluster")
