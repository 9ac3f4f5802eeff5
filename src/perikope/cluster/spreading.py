"""Build and change a cluster by tasks that run elsewhere.

This process lists the files, divides them into batches, and publishes the result. The tasks read and index; see
`perikope.cluster.batches`. A command that was stopped is continued by the same command: batches that have a record are
not read by a task again, and what tasks have added to a shard stays.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from perikope.build.indexing import BuildOptions
from perikope.build.workers import Task, error_of, tasks
from perikope.cluster.batches import BatchRecord, ClusterJob, ShardRecord, ShardState, compact_shard, digest_of, finish_shard, index_batch
from perikope.cluster.building import (
    ClusterReport,
    analyzer_for,
    check_free,
    check_unpublished,
    kept_options,
    sources_for,
)  # fmt: skip
from perikope.cluster.writer import JOURNAL, RECORDS, create_shards, discard_unfinished, empty_cluster, load_cluster, remove_unnamed
from perikope.core import files
from perikope.core.checked_json import has_right_checksum, parse_object, with_checksum
from perikope.core.errors import InputError, UsageError
from perikope.core.locks import take_lock
from perikope.index import manifest as manifests
from perikope.index.commit import DEFAULT_MEMORY
from perikope.index.duplicates import DEFAULT_DUPLICATES, check_duplicates
from perikope.index.manifest import Manifest
from perikope.index.shards import folder_of, joined

BATCH_BYTES = 32 << 20
"""The size of the files of one batch in bytes. A worker that dies loses one batch."""

Call = tuple[int, str, tuple[Any, ...]]
"""The number of a task, what it is about, for messages, and the arguments of its function."""


class Workers(Protocol):
    """Runs functions of modules elsewhere, with plain values."""

    def run(self, function: Callable[..., Any], calls: Iterable[Call], memory: int) -> Iterator[tuple[int, Any]]:
        """Yield the numbers of calls with their results, as they end. A call is taken when there is a process for it.

        A call whose process dies is repeated elsewhere. Each process may need `memory` bytes; 0 is not known.
        """
        ...


class SpreadBuilding:
    """Builds and changes clusters by tasks of workers; the functions of `perikope.cluster.building` do so here."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def build_cluster(
        self, folder: str, paths: Sequence[str], shards: int, options: BuildOptions | None = None, *, batch: int = BATCH_BYTES
    ) -> ClusterReport:
        """Make a cluster from files and folders, or continue a stopped build. `batch` is a number of bytes."""
        options = options or BuildOptions()
        place = Path(folder).absolute()
        asked = _asked("build", paths, options, batch) | {"shards": shards}
        check_unpublished(place)
        base = empty_cluster(shards, analyzer_for(options), options.language or "en")
        found = _Journal.load(place)
        if found is None:
            check_free(place)
            files.make_folder(place)
        elif found.asked != asked:
            raise UsageError(f"{place} has an unfinished build of other input or options: repeat that command, or remove the folder")
        try:
            return _add(self._workers, place, paths, options, base, asked, batch)
        except Exception:
            # An error before the first batch is indexed leaves nothing. Later ones can be mended and continued.
            if not any((place / RECORDS).glob("*/*.json")):
                shutil.rmtree(place, ignore_errors=True)
            raise

    def append(self, folder: str, paths: Sequence[str], options: BuildOptions | None = None, *, batch: int = BATCH_BYTES) -> ClusterReport:
        """Add files and folders to a cluster, in one commit, or continue this if it was stopped."""
        options = options or BuildOptions()
        asked = _asked("append", paths, options, batch) | {"replace": options.replace}
        return _add(self._workers, Path(folder).absolute(), paths, options, None, asked, batch)

    def compact(self, folder: str, *, memory: int = DEFAULT_MEMORY, wait: float = 0.0) -> ClusterReport:
        """Merge the segments of each shard of a cluster."""
        place = Path(folder).absolute()
        with take_lock(place, wait):
            base = load_cluster(place)
            job = ClusterJob(place, base, _begin(place, base, {"change": "compact"}), memory=memory)
            calls = [(number, folder_of(number), (job, number)) for number in range(len(base.shards))]
            return _publish(job, _run_on_shards(self._workers, compact_shard, calls, memory), ClusterReport())


def _add(
    workers: Workers, folder: Path, paths: Sequence[str], options: BuildOptions, base: Manifest | None, asked: dict[str, Any], batch: int
) -> ClusterReport:
    """Add files to a cluster, which is empty if `base` is given, or continue this."""
    check_duplicates(options.duplicates)
    report = ClusterReport()
    with take_lock(folder, options.wait):
        is_new = base is not None
        base = base or load_cluster(folder)
        job = ClusterJob(
            folder, base, _begin(folder, base, asked), options.segment, tuple(options.languages), options.replace,
            options.duplicates == DEFAULT_DUPLICATES, options.memory,
        )  # fmt: skip
        create_shards(folder, base)
        records = _index_batches(workers, job, paths, options, report, batch)
        if is_new and not any(record.documents for record in records.values()):
            problem = "; ".join(map(str, report.skipped[:3])) or "no documents found; check the path and --format"
            raise InputError(problem, path=", ".join(paths))
        segments = _by_shard(records)
        calls = [(number, folder_of(number), (job, number, segments.get(number, []))) for number in range(len(base.shards))]
        return _publish(job, _run_on_shards(workers, finish_shard, calls, options.memory), report)


def _index_batches(
    workers: Workers, job: ClusterJob, paths: Sequence[str], options: BuildOptions, report: ClusterReport, batch: int
) -> dict[int, BatchRecord]:
    """Let workers index all batches that have no record yet; returns the records by the number of the batch.

    A batch whose files have changed is indexed again, unless shards have its segments already.
    """
    known: dict[int, BatchRecord] = {}
    is_placed = any(ShardRecord.path(job, number).exists() for number in range(len(job.base.shards)))
    sources = sources_for(paths, options, options.language or job.base.language, report)

    def calls() -> Iterator[Call]:
        for number, task in enumerate(tasks(sources, report.skipped.append, batch)):
            digest = digest_of(task)
            record = BatchRecord.load(BatchRecord.path(job, number))
            if record is not None and record.digest == digest:
                known[number] = record
                report.continued += record.documents
            elif is_placed:
                raise UsageError(_CHANGED.format(folder=job.folder))
            else:
                yield number, _about(task), (job, number, digest, task)

    indexed: dict[int, BatchRecord] = dict(workers.run(index_batch, calls(), job.memory))
    records = known | indexed
    if is_placed and BatchRecord.path(job, len(records)).exists():
        raise UsageError(_CHANGED.format(folder=job.folder))
    report.skipped += [error_of(problem) for _, record in sorted(records.items()) for problem in record.skipped]
    report.skipped.sort(key=lambda problem: (str(problem.path), problem.line or 0))
    return records


_CHANGED = (
    "the input has changed since the command was stopped: restore it and repeat the command, or remove {folder}/"
    f"{JOURNAL} and, if a build was stopped, the whole folder"
)


def _about(task: Task) -> str:
    """What a batch holds, in words."""
    return task[0].path if len(task) == 1 else f"{task[0].path} … {task[-1].path}"


def _by_shard(records: dict[int, BatchRecord]) -> dict[int, list[tuple[int, dict[str, Any]]]]:
    """The segments of each shard, in the order of batches, each with the number of its batch."""
    found: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for number, record in sorted(records.items()):
        for shard, entry in record.segments:
            found.setdefault(shard, []).append((number, entry))
    return found


def _run_on_shards(workers: Workers, function: Callable[..., ShardState], calls: Sequence[Call], memory: int) -> list[ShardState]:
    """The states of all shards after a change, in order."""
    found = dict(workers.run(function, calls, memory))
    return [found[number] for number in range(len(calls))]


def _publish(job: ClusterJob, states: Sequence[ShardState], report: ClusterReport) -> ClusterReport:
    """Replace the manifest of the cluster, and remove what is no longer needed."""
    manifest = joined([state.manifest for state in states], job.base.generation + 1)
    if (manifest.segments, manifest.shards) != (job.base.segments, job.base.shards) or not job.base.generation:
        manifests.replace(job.folder, manifest)
    discard_unfinished(job.folder)
    remove_unnamed(job.folder, manifest)
    report.shards = len(states)
    report.documents, report.passages = sum(state.documents for state in states), sum(state.passages for state in states)
    report.duplicates += [duplicate for state in states for duplicate in state.duplicates]
    return report


def _asked(change: str, paths: Sequence[str], options: BuildOptions, batch: int) -> dict[str, Any]:
    """What identifies a change, so that it is continued by the same command only."""
    return {"change": change, "paths": [str(Path(path).absolute()) for path in paths], "options": kept_options(options), "batch": batch}


@dataclass(frozen=True, slots=True)
class _Journal:
    """The change that is under way, as the file `building.json` says it."""

    asked: dict[str, Any]
    stamp: str = ""
    base: str = ""
    """What identifies the commit that the change began with."""

    @classmethod
    def load(cls, folder: Path) -> _Journal | None:
        """The journal in the folder of a cluster; None if there is none."""
        try:
            content = parse_object(files.read(folder / JOURNAL))
            if not has_right_checksum(content):
                raise ValueError("damaged")
            return cls(content["asked"], content.get("stamp", ""), content.get("base", ""))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (KeyError, ValueError):
            raise UsageError(f"{folder / JOURNAL} is damaged: remove it and, if a build was stopped, the folder") from None


def _begin(folder: Path, base: Manifest, asked: dict[str, Any]) -> str:
    """The stamp of a change that begins, or of the same one if it was stopped. Another stopped change is discarded."""
    state = f"{base.generation} {base.fingerprint}"
    found = _Journal.load(folder)
    if found is None or (found.asked, found.base) != (asked, state):
        discard_unfinished(folder)
        found = _Journal(asked, secrets.token_hex(4), state)
        with files.replacing_binary(folder / JOURNAL) as file:
            file.write(json.dumps(with_checksum({"asked": asked, "stamp": found.stamp, "base": state})).encode())
    files.make_folder(folder / RECORDS / found.stamp)
    return found.stamp
