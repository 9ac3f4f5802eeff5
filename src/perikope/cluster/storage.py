"""Clusters in object storage: S3 and compatible services, and whatever else obstore speaks to.

An object store has no rename, no lock and no mapping into memory. So three things differ from a folder:

- A file is copied to this machine before it is read, once, and its checksums are verified. Names of segments are never
  used again, so a copy never becomes wrong.
- A change is made to a copy of the cluster on this machine. Then its new files are stored, and at last the manifest is
  replaced on the condition that it is still the one that the change began with. If another program was faster, nothing
  has changed, and the error says so.
- Nobody knows who still reads a file. So a file that no manifest names any more is removed by the first change a day
  later.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from perikope.cluster.building import ClusterReport
from perikope.cluster.locations import is_url
from perikope.cluster.writer import load_cluster
from perikope.core import files
from perikope.core.checked_json import parse_object
from perikope.core.errors import IndexFormatError, LockedError, MissingExtra, PerikopeError, UsageError
from perikope.core.locks import take_lock
from perikope.core.user_cache import user_caches
from perikope.index import manifest as manifests
from perikope.index.columns import ColumnFile
from perikope.index.manifest import Manifest
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import FOLDER as TABLES
from perikope.index.shards import files_of, folder_of

KEPT = timedelta(days=1)
"""How long files are kept that the manifest no longer names."""
RETRIED = timedelta(minutes=1)
"""How long a request that fails for no reason of its own is repeated."""
_KEPT_COPIES = 3600.0
"""How many seconds copies of such files are kept."""
_PIECE = 1 << 22
_BUILD = "build.json"
"""The file beside a copy that says what it was built from, until it is stored."""


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """A manifest in an object store, and by what a conditional put recognises it."""

    manifest: Manifest
    version: dict[str, str]


class StoredCluster:
    """A cluster in an object store, given by its address. `cache` is the folder for copies on this machine."""

    def __init__(self, url: str, cache: Path | None = None) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ModuleNotFoundError as missing:
            raise MissingExtra(missing.name or "obstore", "cluster") from None
        self.url, self._errors = url.rstrip("/"), obstore.exceptions
        with self._speaking():
            self._store: Any = from_url(self.url, retry_config={"max_retries": 6, "retry_timeout": RETRIED})
        base = (cache or user_caches()[0]) / "clusters" / hashlib.sha256(self.url.encode()).hexdigest()[:16]
        self.written, self.read_copy = base / "written", base / "read"
        """The folders of the copy that changes are made to, and of the one that is read."""

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Turn errors of the store into a `UsageError` of one line."""
        try:
            yield
        except (self._errors.BaseError, FileNotFoundError, ValueError) as error:  # obstore raises all of these
            first = str(error).splitlines()[0]
            raise UsageError(f"{self.url} cannot be used: {first}; check the address and AWS_* variables of the environment") from error

    def load(self) -> StoredManifest | None:
        """The manifest of the cluster; None if there is none."""
        with self._speaking():
            try:
                found = self._store.get(manifests.FILE)
                content = bytes(found.bytes())
            except (self._errors.NotFoundError, FileNotFoundError):
                return None
        try:
            manifest = manifests.decoded(parse_object(content), Path(manifests.FILE))
        except ValueError:
            raise IndexFormatError(f"the manifest of {self.url} is damaged: restore an earlier version of it") from None
        version = {name: found.meta[name] for name in ("e_tag", "version") if found.meta.get(name) is not None}
        return StoredManifest(manifest, version)

    def known(self) -> StoredManifest:
        """The manifest of the cluster. Raises `IndexFormatError` if there is none."""
        found = self.load()
        if found is None:
            raise IndexFormatError(f"{self.url} is not a cluster: make one with `perikope cluster build FILES --to {self.url}`")
        if not found.manifest.shards:
            raise UsageError(f"{self.url} is an index without shards")
        return found

    # Reading

    def fetch(self, manifest: Manifest, folder: Path, shards: Collection[int] | None = None) -> int:
        """Copy the files of a manifest, or of some of its shards, that a folder lacks; returns the number of bytes."""
        prefixes = tuple(f"{folder_of(number)}/" for number in (range(len(manifest.shards)) if shards is None else shards))
        entries = [part for entry in manifest.segments for part in (entry, entry.get("deleted")) if part is not None]
        lacking = [entry for entry in entries if entry["file"].startswith(prefixes) and not (folder / entry["file"]).exists()]
        for entry in lacking:
            self._fetch(entry, folder / entry["file"])
        return sum(entry["size"] for entry in lacking)

    def _fetch(self, entry: dict[str, Any], path: Path) -> None:
        files.make_folder(path.parent)
        with files.replacing_path(path) as temporary:
            with self._speaking(), temporary.open("wb") as file:
                try:
                    for piece in self._store.get(entry["file"]).stream(min_chunk_size=_PIECE):
                        file.write(piece)
                except (self._errors.NotFoundError, FileNotFoundError):
                    raise IndexFormatError(f"{self.url}/{entry['file']} is missing", path) from None
            if ColumnFile(temporary, entry).damaged_columns():
                raise IndexFormatError(f"{self.url}/{entry['file']} is damaged: restore an earlier version of it", path)

    def fetch_tables(self, folder: Path) -> None:
        """Copy the learned tables of the cluster, which are small."""
        with self._speaking():
            for item in (item for page in self._store.list(f"{TABLES}/") for item in page):
                content = bytes(self._store.get(item["path"]).bytes())
                path = folder / item["path"]
                if not path.exists() or path.read_bytes() != content:
                    files.make_folder(path.parent)
                    files.write_cached(path, content)

    def copied(self) -> Path:
        """A folder on this machine with the last commit of the cluster. Only files that it lacks are copied."""
        while True:
            stored = self.known()
            try:
                self.fetch(stored.manifest, self.read_copy)
            except IndexFormatError:
                if self.known().version == stored.version:
                    raise
                continue  # a later commit has removed files
            files.make_folder(self.read_copy)
            self.fetch_tables(self.read_copy)
            if _local(self.read_copy) != stored.manifest:
                manifests.replace(self.read_copy, stored.manifest)
            remove_old_copies(self.read_copy, stored.manifest)
            return self.read_copy

    # Writing

    def change(self, make: Callable[[str], ClusterReport], *, wait: float = 0.0) -> ClusterReport:
        """Make a change, which a function makes to a folder, to the cluster: all of it or nothing."""
        with self._changing(wait):
            before = self.known()
            self.fetch(before.manifest, self.written)
            self.fetch_tables(self.written)
            if _local(self.written) != before.manifest:
                manifests.replace(self.written, before.manifest)
            report = make(str(self.written))
            self._publish(before)
            return report

    def build(self, make: Callable[[str], ClusterReport], asked: dict[str, Any], *, wait: float = 0.0) -> ClusterReport:
        """Make a cluster, which a function makes in a folder; `asked` says of what. A stopped build is continued."""
        with self._changing(wait):
            if (found := self.load()) is not None:
                raise UsageError(f"{self.url} is already a cluster of {len(found.manifest.shards)} shards: add to it with append")
            mark = self.written.parent / _BUILD
            encoded = json.dumps(asked, sort_keys=True).encode()
            built = _local(self.written)
            if built is not None and (not mark.exists() or files.read(mark) != encoded):
                shutil.rmtree(self.written)  # a cluster that was stored here before, or a build that nobody continues
                built = None
            if built is None:
                with files.replacing_binary(mark) as file:
                    file.write(encoded)
                report = make(str(self.written))
            else:
                totals = Snapshot.open(self.written).totals
                report = ClusterReport(len(built.shards), totals.documents, totals.passages)
            self._publish(None)
            files.remove(mark)
            return report

    @contextmanager
    def _changing(self, wait: float) -> Iterator[None]:
        """One program on this machine changes its copy at a time. Others are found by the conditional put."""
        files.make_folder(self.written.parent)
        with take_lock(self.written.parent, wait):
            yield

    def _publish(self, before: StoredManifest | None) -> None:
        """Store the files of the copy, then its manifest, if nobody else has changed the cluster since `before`."""
        manifest = manifests.load(self.written)
        if before is not None and manifest == before.manifest:
            return
        known = files_of(before.manifest) if before is not None else frozenset[str]()
        with self._speaking():
            for name in sorted(files_of(manifest) - known):
                self._store.put(name, self.written / name)
            for path in sorted((self.written / TABLES).glob("*")):
                self._store.put(f"{TABLES}/{path.name}", path)
            content = manifests.encoded(manifest)
            try:
                self._store.put(manifests.FILE, content, mode="create" if before is None else before.version, use_multipart=False)
            except (self._errors.AlreadyExistsError, self._errors.PreconditionError):
                # The answer to a put may be lost, and the put sent again.
                now = self.load()
                if now is None or now.manifest != manifest:
                    raise LockedError(f"another program has changed {self.url} meanwhile, so this change was not made: repeat it") from None
            self._remove_unnamed(files_of(manifest) | known)

    def _remove_unnamed(self, named: Collection[str]) -> None:
        """Remove stored files that have no name in a manifest for a day. A change that is being stored is younger."""
        now = self._store.head(manifests.FILE)["last_modified"]
        unnamed = [
            item["path"] for page in self._store.list() for item in page
            if item["path"].startswith("shard-") and item["path"] not in named and item["last_modified"] < now - KEPT
        ]  # fmt: skip
        if unnamed:
            self._store.delete(unnamed)


def load_from(place: str) -> Manifest:
    """The manifest of the cluster at a place, which is a folder or the address of an object store."""
    return StoredCluster(place).known().manifest if is_url(place) else load_cluster(Path(place))


def folder_at(place: str) -> Path:
    """The folder from which the cluster at a place is read on this machine. It may lack files if it is a copy."""
    return StoredCluster(place).read_copy if is_url(place) else Path(place)


def changed(place: str, make: Callable[[str], ClusterReport], *, wait: float = 0.0) -> ClusterReport:
    """Make a change, which a function makes to a folder, to the cluster at a place."""
    return StoredCluster(place).change(make, wait=wait) if is_url(place) else make(place)


def remove_old_copies(folder: Path, manifest: Manifest, shards: Collection[int] | None = None) -> None:
    """Remove copies of files that a manifest does not name and that are not new: others may be about to open these."""
    named = files_of(manifest)
    for number in range(len(manifest.shards)) if shards is None else shards:
        for path in (folder / folder_of(number)).glob("*"):
            with_shard = f"{folder_of(number)}/{path.name}"
            if with_shard not in named and time.time() - path.stat().st_mtime > _KEPT_COPIES:
                files.remove_any_unless_held(path)


def _local(folder: Path) -> Manifest | None:
    """The manifest of a copy; None if there is none that can be read."""
    try:
        return manifests.load(folder)
    except PerikopeError:
        return None
