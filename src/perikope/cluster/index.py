"""An index whose shards are elsewhere: the same searches and results, and the choice of partial answers."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar, Unpack

from perikope.cluster.locations import is_url
from perikope.cluster.snapshot import ClusterSnapshot, Shards
from perikope.cluster.storage import StoredCluster, folder_at, load_from
from perikope.core.errors import ShardError
from perikope.index.info import IndexInfo, describe
from perikope.index.manifest import Manifest
from perikope.index.reader import Snapshot
from perikope.search.asking import Asked
from perikope.search.facade import Conditions, Index
from perikope.search.keywords import SearchKeywords
from perikope.search.options import SearchOptions, with_signature
from perikope.search.recipes import Recipe
from perikope.search.results import Results
from perikope.search.running import run_search

Answer = TypeVar("Answer")


class ClusterIndex(Index):
    """An index whose shards are elsewhere: the same searches and results, without changes of the index.

    `refresh` shows the last commit. A search uses one generation from its beginning to its end. If a shard does not
    answer, everything that needs it raises a `ShardError`. With `partial`, searches leave out such a shard instead, and
    `Results.missing_shards` lists it: the results are those of a cluster in which it has no documents.
    """

    def __init__(
        self, location: str | Path, shards: Shards, manifest: Manifest, *, partial: bool = False, missing: frozenset[int] = frozenset()
    ) -> None:
        """An index of the shards of a cluster, without those that are `missing`.

        `location` is the folder of the cluster, or its address in an object store.
        """
        self.location = str(location)
        self.partial, self._missing = partial, missing
        self._shards, self._manifest = shards, manifest
        self._lock = threading.RLock()
        self._is_closed = False
        self._reduced: ClusterIndex | None = None
        folder = folder_at(self.location)
        if is_url(self.location):
            StoredCluster(self.location).fetch_tables(folder)
        super().__init__(folder)

    def _open(self) -> Snapshot | None:
        """Nothing: the snapshot is opened when it is first used, since shards may not answer."""
        return None

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that is searched: the segments of one commit, on all shards."""
        if self._snapshot is None and not self._is_closed:
            with self._lock:
                if self._snapshot is None:
                    self._snapshot = ClusterSnapshot(self.folder, self._manifest, self._shards, self._missing)
        return super().snapshot

    @property
    def shards(self) -> Shards:
        """The shards, with what was counted about them."""
        return self._shards

    def close(self) -> None:
        """Release what this index has of the cluster; see `Index.close`."""
        self._is_closed = True
        super().close()

    def ask_answering(self, ask: Callable[[Index], Answer]) -> Answer:
        """What a function returns for this index or, with `partial`, for an index of the shards that answer.

        The function is called again if further shards do not answer. Its answer must say which shards are missing.
        """
        missing = self._shards.missing.known() if self.partial else frozenset[int]()
        while True:
            try:
                return ask(self.without(missing))
            except ShardError as error:
                if not self.partial or error.shards <= missing:
                    raise
                self._shards.missing.note(error.shards)
                missing |= error.shards

    def without(self, missing: frozenset[int]) -> ClusterIndex:
        """The cluster without some of its shards."""
        if not missing:
            return self
        with self._lock:
            known = self._reduced
            if known is None or known._missing != missing or known._manifest != self._manifest:
                known = self._reduced = ClusterIndex(self.location, self._shards, self._manifest, missing=missing)
            return known

    @with_signature()
    def search(
        self, query: Asked, *, recipe: str | Recipe = "", options: SearchOptions | None = None, **given: Unpack[SearchKeywords]
    ) -> Results:
        """Search for the best `k` passages in the best `documents` documents; see `Index.search`."""
        results, complaints = self.ask_answering(lambda index: run_search(index.snapshot, query, recipe, options, given))
        for complaint in complaints:
            warnings.warn(complaint, stacklevel=2)
        return results

    @with_signature()
    def search_many(
        self,
        queries: Iterable[Asked] | Mapping[str, str],
        *,
        threads: int | None = None,
        on_problem: Callable[[str], None] | None = None,
        recipe: str | Recipe = "",
        options: SearchOptions | None = None,
        **given: Unpack[SearchKeywords],
    ) -> Iterator[tuple[Asked, Results]]:
        """Search for many queries in several threads; see `Index.search_many`.

        With `partial`, shards that are known not to answer are left out. One that stops answering later is an error.
        """
        missing = self._shards.missing.known() if self.partial else frozenset[int]()
        search_many = self.without(missing).search_many if missing else super().search_many
        return search_many(queries, threads=threads, on_problem=on_problem, recipe=recipe, options=options, **given)

    def info(self) -> IndexInfo:
        """What the cluster contains; see `Index.info`. This process reads it from the files."""
        return describe(Snapshot(self._files(), self._manifest))

    def values(self, field: str, *, prefix: str = "", k: int = 20, filter: Conditions = ()) -> dict[str, int]:
        """The most frequent values of a metadata field; see `Index.values`. This process reads them from the files."""
        with Index.open(self._files()) as on_this_machine:
            return on_this_machine.values(field, prefix=prefix, k=k, filter=filter)

    def _files(self) -> Path:
        """The folder with all files of the cluster. Those in an object store are copied."""
        return StoredCluster(self.location).copied() if is_url(self.location) else self.folder

    def refresh(self) -> bool:
        """Search the last commit from now on. Returns whether the cluster has changed."""
        return self.show(load_from(self.location))

    def show(self, manifest: Manifest) -> bool:
        """Search a commit from now on, given by its manifest. Returns whether it is another one than before."""
        if manifest == self._manifest:
            return False
        shards = self._shards.at(manifest)
        # With partial answers, shards may be missing. The snapshot is then opened when it is next used.
        opened = None if self.partial else ClusterSnapshot(self.folder, manifest, shards, self._missing)
        with self._lock:
            if opened is not None and self._snapshot is not None:
                self._show(opened)
            self._manifest, self._shards, self._snapshot = manifest, shards, opened
        return True
