"""The fields `path` and `folder`: the file of a document, relative to the indexed folder, and the folders that hold it.

No document stores these fields. They are derived from the name of the file that every index stores with a document. A
member of an archive has the path `archive.zip/member.md`, and the archive counts as a folder. A document with metadata
of the same name keeps these metadata, and has no derived value in this field.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, cast
from weakref import ref

import numpy as np

from perikope.core.arrays import Array, Mask
from perikope.formats import is_archive
from perikope.index.facets import FacetBuilder, Facets, metadata_pairs
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment

PATH, FOLDER = "path", "folder"
FILE_FIELDS = (PATH, FOLDER)


def file_fields(snapshot: Snapshot) -> tuple[str, ...]:
    """The fields that are derived from files: `FILE_FIELDS`, or none if no document comes from a file."""
    return FILE_FIELDS if any(segment.has_sources for segment in snapshot.segments) else ()


def holder_of(segment: Segment, field: str) -> Segment:
    """The object whose `facets` have the values of a field: the segment, or for a field of files a substitute for it.

    The substitute has the attributes that conditions use: `facets`, `documents` and `remember`.
    """
    if field not in FILE_FIELDS or not segment.has_sources:
        return segment
    return cast(Segment, segment.remember(_FilesOfSegment, field))


def holders(snapshot: Snapshot, field: str) -> list[Segment]:
    """The objects whose `facets` have the values of a field, one per segment; see `holder_of`."""
    return [holder_of(segment, field) for segment in snapshot.segments]


class _FilesOfSegment:
    """Stands for a segment in conditions on a field of files."""

    def __init__(self, segment: Segment, field: str) -> None:
        # The segment remembers this object. A strong reference would keep both until the garbage collector runs.
        self._segment, self._field = ref(segment), field
        self.documents = segment.documents
        built = FacetBuilder()
        for values in _values(segment, field):
            built.add({field: values})
        self.facets = Facets.of(built, segment.documents)

    def remember(self, make: Callable[[Any, Any], Any], key: Hashable) -> Any:
        """Return `make(self, key)` from the cache of the segment; see `Segment.remember`."""
        segment = self._segment()
        assert segment is not None, "whoever holds this object holds the segment"
        return segment.remember(_make_for_files, (self._field, make, key))


def _make_for_files(segment: Segment, key: tuple[str, Callable[[Any, Any], Any], Hashable]) -> Any:
    field, make, of = key
    return make(holder_of(segment, field), of)


def _values(segment: Segment, field: str) -> Iterator[list[str]]:
    """Yield the values of each document of a segment in a field of files."""
    own = _documents_with(segment, field)
    archives: dict[int, bool] = {}
    for local, source in enumerate(segment["document.source"].tolist()):
        path = segment.source_name(source)
        if own[local]:
            yield [value for name, value in metadata_pairs(segment.metadata(local)) if name == field]
        elif not path:
            yield []
        else:
            if archives.setdefault(source, is_archive(path)):
                path = str(segment.record(local).get("member") or path)
            yield [path] if field == PATH else list(_folders(path))


def _folders(path: str) -> Iterator[str]:
    """Yield the folders that hold a file, the outermost first.

    >>> list(_folders("guide/install/linux.md"))
    ['guide', 'guide/install']
    """
    at = path.find("/")
    while at >= 0:
        if at:
            yield path[:at]
        at = path.find("/", at + 1)


def _documents_with(segment: Segment, field: str) -> Mask:
    """The mask of documents that have metadata in a field."""
    having: Array = np.zeros(segment.documents, bool)
    keys = segment.facets.keys(field)
    having[segment.facets.documents(np.arange(keys.start, keys.stop))] = True
    return having
