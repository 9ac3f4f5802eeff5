"""The most frequent values of a metadata field, for a user who chooses a filter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perikope.core.arrays import Bytes, Integers, Mask
from perikope.core.errors import unknown
from perikope.fetch.conditions import Wildcard
from perikope.fetch.file_fields import holder_of
from perikope.fetch.filters import known_fields
from perikope.index.facets import Facets
from perikope.index.reader import Snapshot
from perikope.kernels.strings import merge_sorted

_CHUNK = 1 << 20
"""The number of document numbers that are read at once."""


def field_values(snapshot: Snapshot, field: str, *, prefix: str = "", k: int = 20, allowed: Mask | None = None) -> dict[str, int]:
    """The `k` most frequent values of a field that begin with `prefix`, each with its number of live documents.

    Values with the same number of documents are in alphabetical order. Upper and lower case of the prefix are the same.
    `allowed` is a mask over the documents of the snapshot; values are then counted in these documents only. Without it,
    documents are read only in segments with deleted documents. Raises `UsageError` for an unknown field.
    """
    known = known_fields(snapshot)
    if field not in known:
        raise unknown("metadata field", field, known)
    found: list[tuple[Facets, Integers, Integers]] = []
    for first, segment in zip(snapshot.first_document.tolist(), snapshot.segments, strict=False):
        holder = holder_of(segment, field)
        matching = Wildcard(prefix, after=True).keys(holder, field)
        keys = np.arange(matching.start, matching.stop) if isinstance(matching, range) else matching
        chosen = segment.alive if allowed is None else allowed[first : first + segment.documents]
        counts = holder.facets.counts(keys, chosen, _CHUNK)
        found.append((holder.facets, keys[counts > 0], counts[counts > 0]))
    return _most_frequent(found, k)


def _most_frequent(found: Sequence[tuple[Facets, Integers, Integers]], k: int) -> dict[str, int]:
    """The `k` most frequent values of several segments; for each segment, its facets, some keys and their counts."""
    counts = np.concatenate([np.empty(0, np.int64), *(counts for _, _, counts in found)])
    first = np.cumsum([0, *(keys.size for _, keys, _ in found)])
    example = np.arange(counts.size)
    if len(found) > 1:
        start, end, data = _strings(found)
        rank, example = merge_sorted(np.arange(counts.size), first, start, end, data)
        counts = np.bincount(rank, counts, example.size).astype(np.int64)
    values: dict[str, int] = {}
    for row in _largest(counts, k).tolist():
        number = int(np.searchsorted(first, example[row], "right")) - 1
        facets, keys, _ = found[number]
        values[facets.values.text(int(keys[example[row] - first[number]]))] = int(counts[row])
    return values


def _strings(found: Sequence[tuple[Facets, Integers, Integers]]) -> tuple[Integers, Integers, Bytes]:
    """The values of keys as byte strings: their starts and their ends in one array of bytes."""
    starts, ends, pieces, size = [], [], [np.empty(0, np.uint8)], 0
    for facets, keys, _ in found:
        if keys.size:
            facets.values.require(keys)
            end = facets.values.ends[keys].astype(np.int64)
            start = np.where(keys > 0, facets.values.ends[np.maximum(keys, 1) - 1], 0).astype(np.int64)
            pieces.append(facets.values.data[start[0] : end[-1]])
            starts.append(start - start[0] + size)
            ends.append(end - start[0] + size)
            size += pieces[-1].size
    none = [np.empty(0, np.int64)]
    return np.concatenate(none + starts), np.concatenate(none + ends), np.concatenate(pieces)


def _largest(counts: Integers, k: int) -> Integers:
    """The rows of the `k` largest counts, largest first; equal counts are in the order of rows."""
    rows = np.arange(counts.size)
    if counts.size > k:
        least = np.partition(counts, counts.size - k)[counts.size - k]
        above, equal = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
        rows = np.sort(np.concatenate([above, equal[: k - above.size]]))
    return rows[np.argsort(-counts[rows], kind="stable")]
