"""The writer of a cluster: it changes the shards, and publishes all changes by replacing one file.

Each shard is an index with a manifest of its own. A commit of the cluster first commits the shards, one after the
other, and then replaces the manifest of the cluster. A reader sees the manifest of the cluster only. If a writer is
stopped between the two, the next one sets the shards back to the published state. Until then, no file that the
published manifest names is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from perikope.core import files
from perikope.core.errors import UsageError
from perikope.core.locks import take_lock
from perikope.document.tree import Document
from perikope.index import manifest as manifests
from perikope.index.commit import DEFAULT_MEMORY, IndexWriter, OnDuplicate, create
from perikope.index.duplicates import DEFAULT_REPLACE
from perikope.index.manifest import Manifest
from perikope.index.shards import MOST_SHARDS, files_of, folder_of, joined, of_shard, shard_of
from perikope.text.analysis import Analyzer, is_language, language_code

JOURNAL = "building.json"
"""The file in the folder of a cluster that says how far an unfinished build or change came."""
RECORDS = "building"
"""The folder in the folder of a cluster with the records of the tasks of a change; see `perikope.cluster.batches`."""
LEAST_MEMORY = 32 << 20
"""The least memory for the documents of one shard, in bytes."""


def empty_cluster(shards: int, analyzer: Analyzer, language: str) -> Manifest:
    """The manifest of a cluster without documents."""
    if not 1 <= shards <= MOST_SHARDS:
        raise UsageError(f"a cluster has 1 to {MOST_SHARDS} shards, not {shards}")
    if not is_language(language_code(language)):
        raise UsageError(f"{language!r} is not a language code; use one such as en, fr or de")
    return joined([Manifest(analyzer.settings(), language_code(language))] * shards, 0)


def create_shards(folder: Path, cluster: Manifest) -> None:
    """Make those folders of shards that are missing, without documents."""
    for number in range(len(cluster.shards)):
        if not (folder / folder_of(number) / manifests.FILE).exists():
            create(folder / folder_of(number), Analyzer.from_settings(cluster.analysis), cluster.language)


def load_cluster(folder: Path) -> Manifest:
    """The published manifest of a cluster. Raises `UsageError` if the folder is an index without shards."""
    manifest = manifests.load(folder)
    if not manifest.shards:
        raise UsageError(f"{folder} is an index without shards: make a cluster of it with `perikope cluster from {folder} --to FOLDER`")
    return manifest


def discard_unfinished(folder: Path) -> None:
    """Forget a stopped change of a cluster. The next writer of each shard removes its files."""
    files.remove_unless_held(folder / JOURNAL)
    if (folder / RECORDS).is_dir():
        files.remove_any_unless_held(folder / RECORDS)


def remove_unnamed(folder: Path, published: Manifest) -> None:
    """Remove files of shards that the published manifest does not name. The lock of the cluster must be held."""
    named = files_of(published)
    for number in range(len(published.shards)):
        for path in (folder / folder_of(number)).iterdir():
            is_unnamed = path.match("segment-*.columns") and f"{folder_of(number)}/{path.name}" not in named
            if is_unnamed or files.is_temporary(path.name):
                files.remove_any_unless_held(path)


def open_shard(
    folder: Path, state: Manifest, number: int, *, memory: int, kept: frozenset[str] = frozenset(), wait: float = 0.0
) -> IndexWriter:
    """A writer of one shard, which is set back to a state of the cluster first. `folder` is that of the cluster.

    The files of that state are not removed until the writer is told so, and neither are those in `kept`.
    """
    place, own = folder / folder_of(number), of_shard(state, number)
    files.make_folder(place)
    lock = take_lock(place, wait)
    try:
        if not (place / manifests.FILE).exists():  # a backup of the cluster, which has no manifests of shards
            manifests.replace(place, own)
        current = manifests.load(place)
        if replace(current, generation=own.generation) != own:
            manifests.replace(place, replace(own, generation=current.generation + 1))
    finally:
        lock.release()
    return IndexWriter(place, memory=memory, kept=files_of(own) | kept, wait=wait)


class ClusterWriter:
    """Changes a cluster. It holds the locks of the cluster and of all shards until it is closed.

    `state` is the manifest that the shards are set back to; the default is the published one. `memory` is divided among
    the shards. `wait` is the time to wait for the lock, in seconds.
    """

    def __init__(self, folder: Path, state: Manifest | None = None, *, memory: int = DEFAULT_MEMORY, wait: float = 0.0) -> None:
        self.folder = folder
        self._held = ExitStack()
        lock = take_lock(folder, wait)
        self._held.callback(lock.release)
        try:
            self.state = state if state is not None else load_cluster(folder)
            """The manifest of the last commit of this writer, or the one that it began with."""
            if state is None:
                discard_unfinished(folder)
            self.shards = len(self.state.shards)
            each = max(memory // self.shards, LEAST_MEMORY)
            self._writers = [self._held.enter_context(open_shard(folder, self.state, number, memory=each)) for number in range(self.shards)]
        except BaseException:
            self.close()
            raise

    @property
    def documents(self) -> int:
        """The number of documents of the last commit."""
        return sum(writer.snapshot.totals.documents for writer in self._writers)

    @property
    def passages(self) -> int:
        """The number of passages of the last commit."""
        return sum(writer.snapshot.totals.passages for writer in self._writers)

    @contextmanager
    def adding(self, *, replace: bool = DEFAULT_REPLACE, on_duplicate: OnDuplicate | None = None) -> Iterator[Callable[[Document], None]]:
        """A context with a function that takes one document after the other; see `IndexWriter.add`.

        After an error, none of these documents is added.
        """
        with ExitStack() as open:
            takes = [open.enter_context(writer.adding(replace=replace, on_duplicate=on_duplicate)) for writer in self._writers]
            yield lambda document: takes[shard_of(document.id, self.shards)](document)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete the documents with these ids, and return their number. An unknown id is an error."""
        listed = list(ids)
        deleted = 0
        for number, writer in enumerate(self._writers):
            deleted += writer.delete(id for id in listed if shard_of(id, self.shards) == number)
        return deleted

    def commit(self, publish: Callable[[Path, Manifest], None] = manifests.replace) -> Manifest:
        """Make all changes durable, and visible at once; returns the new manifest.

        `publish` writes the manifest to the folder of the cluster.
        """
        return self._publish([writer.commit().manifest for writer in self._writers], publish)

    def compact(self) -> Manifest:
        """Merge the segments of each shard, which removes the text of deleted documents from the disk."""
        return self._publish([writer.compact().manifest for writer in self._writers], manifests.replace)

    def _publish(self, shards: list[Manifest], publish: Callable[[Path, Manifest], None]) -> Manifest:
        state = joined(shards, self.state.generation + 1)
        if (
            (state.segments, state.shards) == (self.state.segments, self.state.shards)
            and publish is manifests.replace
            and self._is_published
        ):
            return self.state
        publish(self.folder, state)
        self.state = state
        for number, writer in enumerate(self._writers):
            writer.keep_only(files_of(of_shard(state, number)))
        return state

    @property
    def _is_published(self) -> bool:
        return (self.folder / manifests.FILE).exists()

    def close(self) -> None:
        """Release the locks, and discard changes that were not committed."""
        self._held.close()

    def __enter__(self) -> ClusterWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
