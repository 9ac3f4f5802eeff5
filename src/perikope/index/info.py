"""What an index contains: documents, passages, languages, metadata fields, segments, stores, tables and sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from perikope.core.arrays import Integers
from perikope.core.errors import PerikopeError
from perikope.index.facets import Facets
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import FOLDER as TABLES
from perikope.index.saved_tables import read_table
from perikope.index.segments import Segment
from perikope.index.vector_stores import FOLDER as STORES
from perikope.index.vector_stores import store_kind, store_names
from perikope.index.without_passage import WithoutPassage, documents_without_passage

EXAMPLES = 3
"""The number of values that are shown of a metadata field."""
_CHUNK = 1 << 20
"""The number of document numbers that are read at once."""


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """A metadata field."""

    name: str
    """The name of the field, as filters use it; a key of a nested object is named with a point (`by.name`)."""
    documents: int
    """The number of documents that have the field."""
    values: int
    """The number of distinct values."""
    examples: Mapping[str, int]
    """The most frequent values, each with its number of documents."""


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """A segment of the index."""

    file: str
    documents: int
    """The number of documents, without deleted ones."""
    deleted: int
    """The number of deleted documents whose text is still in the file; `compact` removes it."""
    size: int
    """The size on disk, in bytes."""


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """A store of vectors."""

    name: str
    kind: str
    """Which vectors the store has: `tokens`, `context`, `pooled` or `own`; `damaged` if it cannot be read."""
    size: int
    """The size on disk, in bytes."""


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A learned table that was saved in the index."""

    name: str
    kind: str
    """What was learned, such as `tags` or `prior`; `damaged` if the table cannot be read."""


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What an index contains. Deleted documents count only where it is said."""

    folder: str
    documents: int
    passages: int
    without_passage: WithoutPassage
    tokens: int
    """The number of words, without stop words."""
    deleted: int
    """The number of deleted documents whose text is still on the disk; `compact` removes it."""
    language: str
    """The main language: its stop words are left out of queries in all languages."""
    languages: Mapping[str, int]
    """The number of passages in each language, most frequent first."""
    parts: Mapping[str, int]
    """The number of passages in each part, such as `claims`, most frequent first. Passages in no part are left out."""
    tags: Mapping[str, int]
    """The number of passages with each tag, such as `p`, most frequent first."""
    fields: tuple[FieldInfo, ...]
    """The metadata fields, by name."""
    settings: Mapping[str, Any]
    """The settings of the text analysis: stemmer and stop words."""
    segments: tuple[SegmentInfo, ...]
    stores: tuple[StoreInfo, ...]
    """The stores of vectors, by name."""
    tables: tuple[TableInfo, ...]
    """The learned tables that were saved in the index, by name."""
    size: int
    """The size of segments, stores and tables on disk, in bytes."""
    fingerprint: str
    """A checksum of the content, which changes when the content changes."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries and lists, for JSON."""
        plain: dict[str, Any] = orjson.loads(orjson.dumps(self))
        return plain


def describe(snapshot: Snapshot) -> IndexInfo:
    """What a snapshot contains, with the stores and tables in its folder.

    This reads the metadata values of all documents.
    """
    folder, totals = snapshot.folder, snapshot.totals
    segments = tuple(map(_segment, snapshot.segments))
    stores = tuple(StoreInfo(name, store_kind(folder, name), _size(folder / STORES / name)) for name in store_names(folder))
    names = sorted(path.stem for path in (folder / TABLES).glob("*.json"))
    return IndexInfo(
        folder=str(folder),
        documents=totals.documents,
        passages=totals.passages,
        without_passage=documents_without_passage(snapshot),
        tokens=totals.occurrences,
        deleted=sum(segment.deleted for segment in segments),
        language=snapshot.manifest.language,
        languages=_passages_by(snapshot, "language"),
        parts=_passages_by(snapshot, "part"),
        tags=_passages_by(snapshot, "tag"),
        fields=tuple(_field(snapshot, name) for name in sorted({name for segment in snapshot.segments for name in segment.facets.fields})),
        settings={name: value for name, value in snapshot.manifest.analysis.items() if name != "version"},
        segments=segments,
        stores=stores,
        tables=tuple(TableInfo(name, _kind_of_table(folder, name)) for name in names),
        size=sum(segment.size for segment in segments) + sum(store.size for store in stores) + _size(folder / TABLES),
        fingerprint=snapshot.manifest.fingerprint,
    )


def _segment(segment: Segment) -> SegmentInfo:
    deleted = segment.entry.get("deleted", {})
    live = segment.totals.documents
    return SegmentInfo(segment.entry["file"], live, segment.documents - live, segment.entry["size"] + deleted.get("size", 0))


def _kind_of_table(folder: Path, name: str) -> str:
    try:
        return read_table(name, folder=folder).kind
    except PerikopeError:
        return "damaged"


def _size(folder: Path) -> int:
    """The size of all files in a folder, in bytes. Files that a writer removes meanwhile are left out."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def _passages_by(snapshot: Snapshot, property: str) -> dict[str, int]:
    """The number of passages with each `tag`, `part` or `language`, most frequent first."""
    counts: Counter[str] = Counter()
    for segment in snapshot.segments:
        labels = segment[f"span.{property}"][_passage_spans(segment)]
        if labels.size and int(labels.max()) >= len(segment.labels):
            raise segment.columns.damaged(f"has a damaged column (span.{property})")
        for label, count in enumerate(np.bincount(labels, minlength=1).tolist()):
            if count and segment.labels[label]:
                counts[segment.labels[label]] += count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _passage_spans(segment: Segment) -> Integers:
    """The spans of all passages of live documents, numbered in the segment."""
    first_passage, first_span = (segment[f"document.first_{name}"].astype(np.int64) for name in ("passage", "span"))
    document = np.repeat(np.arange(segment.documents), np.diff(first_passage))
    spans: Integers = first_span[document] + segment["passage.span"].astype(np.int64)
    if np.any(spans >= first_span[document + 1]):
        raise segment.columns.damaged("has a damaged column (passage.span)")
    return spans[segment.alive[document]]


def _field(snapshot: Snapshot, name: str) -> FieldInfo:
    having, counts = 0, Counter[bytes]()
    for segment in snapshot.segments:
        keys = segment.facets.keys(name)
        if not keys:
            continue
        documents = np.unique(segment.facets.documents(np.arange(keys.start, keys.stop)))
        having += int(np.count_nonzero(segment.alive[documents]))
        for key, count in zip(keys, _live(segment, keys), strict=True):
            if count:
                counts[segment.facets.values[key]] += count
    best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:EXAMPLES]
    return FieldInfo(name, having, len(counts), {value.decode("utf-8", "replace"): count for value, count in best})


def _live(segment: Segment, keys: range) -> list[int]:
    """The number of live documents of each key of a field."""
    live: list[int] = segment.remember(_all_live, "facets")[keys.start : keys.stop].tolist()
    return live


def _all_live(segment: Segment, _: str) -> Integers:
    facets: Facets = segment.facets
    return facets.live(segment.alive, _CHUNK)
