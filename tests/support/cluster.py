"""Clusters in this process. Whatever travels between coordinator and shards is pickled, as between machines."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from perikope.cluster.index import ClusterIndex
from perikope.cluster.missing import MissingShards
from perikope.cluster.shard import Message, ShardSnapshot
from perikope.core.errors import ShardError
from perikope.document.tree import Document
from perikope.index import manifest as manifests
from perikope.index.manifest import Manifest
from perikope.index.shards import folder_of, joined, shard_of
from perikope.search.facade import Index


class ShardsInProcess:
    """Shards that answer in threads of this process. They count messages and bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        manifest = manifests.load(folder)
        self.shards = [ShardSnapshot(folder, manifest, number) for number in range(len(manifest.shards))]
        self.rounds = self.messages = self.sent = self.received = 0
        self.down: set[int] = set()
        """The shards that do not answer."""
        self.missing = MissingShards(lambda shard: shard not in self.down)

    def at(self, manifest: Manifest) -> ShardsInProcess:
        """The same shards at another generation, which is opened."""
        assert manifest == manifests.load(self.folder)
        other = ShardsInProcess(self.folder)
        other.down, other.missing = self.down, self.missing
        return other

    def ask(self, messages: Sequence[tuple[int, Message]]) -> list[Any]:
        self.rounds += 1
        if silent := sorted(self.down & {number for number, _ in messages}):
            raise ShardError(f"shards {silent} do not answer", silent)
        with ThreadPoolExecutor(len(messages)) as pool:
            return list(pool.map(lambda one: self._ask(*one), messages))

    def _ask(self, number: int, message: Message) -> Any:
        data = pickle.dumps(message, 5)
        answer = pickle.dumps(self.shards[number].answer(pickle.loads(data)), 5)
        self.messages, self.sent, self.received = self.messages + 1, self.sent + len(data), self.received + len(answer)
        return pickle.loads(answer)


def coordinator(folder: Path, *, partial: bool = False) -> ClusterIndex:
    """An index on a cluster whose shards answer in this process."""
    return ClusterIndex(folder, ShardsInProcess(folder), manifests.load(folder), partial=partial)


def divide(documents: Sequence[Document], shards: int, folder: Path | None = None, cuts: Sequence[int] = (), **settings: Any) -> Path:
    """Make a cluster of documents, without the code that users call. Each cut ends a segment in every shard."""
    folder = folder or Path(mkdtemp(prefix="perikope-cluster-"))
    parts = []
    for number in range(shards):
        index = Index.create(folder / folder_of(number), **settings)
        for first, end in zip([0, *cuts], [*cuts, len(documents)], strict=True):
            index.add([document for document in documents[first:end] if shard_of(document.id, shards) == number])
            index.commit()
        parts.append(index.snapshot.manifest)
        index.close()
    manifests.replace(folder, joined(parts, 1))
    return folder
