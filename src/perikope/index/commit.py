"""The writer of an index: collects documents into segments and makes them visible all at once."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from perikope.document import Document
from perikope.errors import IndexFormatError, InputError, UsageError
from perikope.index import manifest as manifests
from perikope.index.manifest import Manifest
from perikope.index.reader import Snapshot
from perikope.index.writer import SegmentBuilder
from perikope.text import Analyzer, language_code

LOCK_FILE = "write.lock"


def create(folder: Path, analyzer: Analyzer, language: str) -> None:
    """Make an empty index."""
    if (folder / manifests.FILE).exists():
        raise UsageError(f"{folder} is already an index: add to it with --append, or remove it first")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not empty: choose another place for the index")
    manifest = Manifest(analyzer.settings(), language_code(language))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        manifests.replace(folder, manifest)
    except OSError as error:
        raise UsageError(f"cannot make an index at {folder}: {error.strerror}") from None


class IndexWriter:
    """The one process that may change an index, until it is closed; what was not committed is forgotten."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        manifests.load(folder)
        self._lock = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise IndexFormatError(f"{folder} is being written by another process: try again when it has finished") from None
        # Read again under the lock: the other writer may have committed meanwhile.
        self._snapshot = Snapshot(folder)
        self._builder = SegmentBuilder(self._snapshot.analyzer)
        self._pending: set[str] = set()
        self._remove_leftovers()

    @property
    def pending(self) -> int:
        """How many documents wait for the commit."""
        return len(self._pending)

    def add(self, documents: Iterable[Document]) -> None:
        """Take documents; an id that is already there is an error."""
        for document in documents:
            if document.id in self._pending or self._snapshot.find_document(document.id) >= 0:
                raise InputError(f"document {document.id!r} is already there: give it another id or remove the first one")
            self._pending.add(document.id)
            self._builder.add(document)

    def commit(self) -> Manifest:
        """Make everything added so far durable and visible."""
        manifest = self._snapshot.manifest
        if not self._pending:
            return manifest
        path = self.folder / _segment_name(manifest.next_segment)
        entry = self._builder.write(path)
        manifest = replace(
            manifest, segments=(*manifest.segments, entry), generation=manifest.generation + 1, next_segment=manifest.next_segment + 1
        )
        manifests.replace(self.folder, manifest)
        self._snapshot = Snapshot(self.folder, manifest)
        self._builder = SegmentBuilder(self._snapshot.analyzer)
        self._pending = set()
        return manifest

    def close(self) -> None:
        """Let others write."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _remove_leftovers(self) -> None:
        """Segments that a writer left behind without committing them are in nobody's snapshot."""
        known = {entry["file"] for entry in self._snapshot.manifest.segments}
        for path in self.folder.glob("segment-*.columns"):
            if path.name not in known:
                path.unlink()


def _segment_name(number: int) -> str:
    return f"segment-{number:06d}.columns"
