"""The tasks of a build that several processes share: a batch of files becomes segments, and segments become shards.

Each task may be repeated, and may run twice at the same time. What it writes has names that nobody else uses, and
counts only once its record is in place. A record is a file that is replaced atomically.

| task | writes | record |
|---|---|---|
| `index_batch` | one segment per shard with documents of the batch, or more if memory is short | names the segments |
| `finish_shard` | the manifest of a shard with its segments of all batches; then merged segments | the first is done |
| `compact_shard` | merged segments of one shard | none: it begins anew |

Records are in the folder `building` of the cluster, under the stamp of the change that they belong to.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from perikope.build.workers import Problem, Task, preparing
from perikope.cluster.writer import RECORDS, open_shard
from perikope.core import files
from perikope.core.checked_json import has_right_checksum, parse_object, with_checksum
from perikope.core.errors import UnreadableFile, UsageError
from perikope.document.tree import Document
from perikope.formats import Source, documents
from perikope.index import manifest as manifests
from perikope.index.commit import IndexWriter, WrittenSegment
from perikope.index.duplicates import DEFAULT_REPLACE, Duplicate
from perikope.index.manifest import Manifest
from perikope.index.shards import files_of, folder_of, of_shard, shard_of
from perikope.index.writer import SegmentBuilder
from perikope.text.analysis import Analyzer

_WAIT = 60.0
"""Seconds to wait for the lock of a shard: another attempt of the same task may still be ending."""


@dataclass(frozen=True, slots=True)
class ClusterJob:
    """What all tasks of one change of a cluster share."""

    folder: Path
    """The folder of the cluster, which all machines see under this path."""
    base: Manifest
    """The cluster as it was before the change."""
    stamp: str
    """A part of the names of all files of the change, and of no others."""
    segment: str = "markup"
    """How documents are cut into passages; see `perikope.document.segmentation`."""
    languages: tuple[str, ...] = ()
    """The languages whose text is indexed; empty for all languages."""
    replace: bool = DEFAULT_REPLACE
    """Whether documents of the cluster with the same id are replaced."""
    leaves_out: bool = True
    """Whether duplicates are left out; otherwise they are an error."""
    memory: int = 1 << 30
    """The memory of one task in bytes."""

    @property
    def records(self) -> Path:
        """The folder of the records."""
        return self.folder / RECORDS / self.stamp

    def check_visible(self) -> None:
        """Raise `UsageError` if this machine does not see the folder of the cluster."""
        if not self.records.is_dir():
            raise UsageError(f"{socket.gethostname()} does not see {self.folder}: all nodes must see it under the same path")


@dataclass(slots=True)
class TaskRecord:
    """What a task has done, as a file says it."""

    def save(self, path: Path) -> None:
        """Write the record, atomically and durably."""
        with files.replacing_binary(path) as file:
            file.write(json.dumps(with_checksum(asdict(self))).encode("utf-8", "surrogatepass"))

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """The record at a path; None if there is none that can be read, so that the task is done again."""
        with suppress(OSError, ValueError, TypeError):
            content = parse_object(files.read(path))
            if has_right_checksum(content):
                del content["checksum"]
                return cls(**content)
        return None


@dataclass(slots=True)
class BatchRecord(TaskRecord):
    """What became of one batch."""

    digest: str
    """What the batch was made of; see `digest_of`."""
    documents: int = 0
    segments: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """The number of the shard, and the entry for the manifest, of each segment."""
    skipped: list[Problem] = field(default_factory=list)
    """The files that could not be read, or only in part."""

    @staticmethod
    def path(job: ClusterJob, number: int) -> Path:
        """The path of the record of a batch."""
        return job.records / f"batch-{number:08d}.json"


@dataclass(slots=True)
class ShardRecord(TaskRecord):
    """That a shard has its segments of all batches, and which documents were left out."""

    generation: int = 0
    """The generation of the shard that has these segments first."""
    duplicates: list[dict[str, Any]] = field(default_factory=list)

    @staticmethod
    def path(job: ClusterJob, number: int) -> Path:
        """The path of the record of a shard."""
        return job.records / f"{folder_of(number)}.json"


@dataclass(frozen=True, slots=True)
class ShardState:
    """A shard after a change that is not published yet."""

    manifest: Manifest
    documents: int
    passages: int
    duplicates: tuple[Duplicate, ...] = ()


def digest_of(batch: Task) -> str:
    """What identifies the input of a batch: its files, their hashes and the places of pieces in them."""
    parts = [(one.path, one.id, one.format, one.language, one.source_hash, one.first_line, _size(one)) for one in batch]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _size(source: Source) -> int:
    return len(source.content) if isinstance(source.content, bytes) else -1


def index_batch(job: ClusterJob, number: int, digest: str, batch: Task) -> BatchRecord:
    """Read and index a batch; returns its record, which is saved."""
    job.check_visible()
    record = BatchRecord(digest)
    writer = _BatchWriter(job, number)
    prepare = preparing(job.segment, job.languages)
    for source in batch:
        _check_readable(source)
        try:
            for document in documents(source):
                for prepared in prepare(document):
                    writer.add(prepared)
                    record.documents += 1
        except UnreadableFile as problem:
            if source.named and not problem.partly:
                raise
            record.skipped.append((str(problem.path), problem.line, problem.reason))
    record.segments = writer.finish()
    record.save(BatchRecord.path(job, number))
    return record


def _check_readable(source: Source) -> None:
    """Raise `UsageError` if a file is missing here: the machine that lists the files has read it."""
    if source.content is None and not Path(source.path).exists():
        raise UsageError(f"{socket.gethostname()} does not see {source.path}: all nodes must see the files under the same path")


class _BatchWriter:
    """Divides documents among shards, and writes a segment for each."""

    def __init__(self, job: ClusterJob, number: int) -> None:
        self._job = job
        self._prefix = f"segment-{job.base.generation + 1:08d}-{job.stamp}-b{number:06d}-{secrets.token_hex(4)}"
        self._analyzer = Analyzer.from_settings(job.base.analysis)
        self._builders: dict[int, SegmentBuilder] = {}
        self._memory: dict[int, int] = {}
        self._segments: list[tuple[int, dict[str, Any]]] = []

    def add(self, document: Document) -> None:
        """Add a document to the segment of its shard."""
        shard = shard_of(document.id, len(self._job.base.shards))
        if shard not in self._builders:
            self._builders[shard] = SegmentBuilder(self._analyzer)
        builder = self._builders[shard]
        builder.add(document)
        self._memory[shard] = builder.memory
        if sum(self._memory.values()) > self._job.memory:
            self._flush()

    def finish(self) -> list[tuple[int, dict[str, Any]]]:
        """Write the remaining documents; returns the shard and the entry of each segment."""
        self._flush()
        for shard in {shard for shard, _ in self._segments}:
            files.sync_folder(self._job.folder / folder_of(shard))
        return self._segments

    def _flush(self) -> None:
        for shard, builder in sorted(self._builders.items()):
            path = self._job.folder / folder_of(shard) / f"{self._prefix}-{len(self._segments)}.columns"
            self._segments.append((shard, builder.write(path)))
        self._builders.clear()
        self._memory.clear()


def finish_shard(job: ClusterJob, number: int, segments: Sequence[tuple[int, dict[str, Any]]]) -> ShardState:
    """Add the segments of all batches to a shard, and merge some if there are too many.

    Each segment has the number of its batch, which says which of several documents with one id is the first.
    """
    job.check_visible()
    _allow_open_files()
    path = ShardRecord.path(job, number)
    record = ShardRecord.load(path)
    if record is None:
        with open_shard(job.folder, job.base, number, memory=job.memory, kept=_names(segments), wait=_WAIT) as writer:
            duplicates = [asdict(one) for one in _adopt(writer, job, segments)]
            record = ShardRecord(writer.commit(merges=False).manifest.generation, duplicates)
            record.save(path)
    _wait_until_seen(job.folder / folder_of(number), record.generation)
    kept = files_of(of_shard(job.base, number))
    with IndexWriter(job.folder / folder_of(number), memory=job.memory, kept=kept, wait=_WAIT) as writer:
        writer.tidy()
        return _state(writer, tuple(Duplicate(**one) for one in record.duplicates))


def _adopt(writer: IndexWriter, job: ClusterJob, segments: Sequence[tuple[int, dict[str, Any]]]) -> list[Duplicate]:
    """Add segments as one change; returns the documents that are left out."""
    duplicates: list[Duplicate] = []
    written = [WrittenSegment(entry, np.full(entry["documents"], batch, np.int64)) for batch, entry in segments]
    if written:
        writer.adopt(written, replace=job.replace, on_duplicate=duplicates.append if job.leaves_out else None)
    return duplicates


def _wait_until_seen(shard: Path, generation: int) -> None:
    """Wait until this machine sees a generation of a shard, which another one may just have written.

    A network file system may show an older manifest for some seconds. A writer that believed it would remove files.
    """
    ends = time.monotonic() + _WAIT
    while manifests.load(shard).generation < generation:
        if time.monotonic() > ends:
            raise UsageError(f"{socket.gethostname()} sees an old state of {shard}: its file system does not show changes of other nodes")
        time.sleep(0.2)


def _names(segments: Sequence[tuple[int, dict[str, Any]]]) -> frozenset[str]:
    return frozenset(entry["file"] for _, entry in segments)


def _allow_open_files() -> None:
    """Let this process open as many files as the system allows: each segment of a shard is one, until it is merged."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def compact_shard(job: ClusterJob, number: int) -> ShardState:
    """Merge the segments of a shard."""
    job.check_visible()
    with open_shard(job.folder, job.base, number, memory=job.memory, wait=_WAIT) as writer:
        writer.compact()
        return _state(writer)


def _state(writer: IndexWriter, duplicates: tuple[Duplicate, ...] = ()) -> ShardState:
    totals = writer.snapshot.totals
    return ShardState(writer.snapshot.manifest, totals.documents, totals.passages, duplicates)
