"""Groups of documents with equal metadata, such as publications of one patent family or versions of one page."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Integers
from perikope.core.errors import unknown
from perikope.fetch.file_fields import holder_of
from perikope.fetch.filters import known_fields
from perikope.index.reader import Snapshot


def groups_of(snapshot: Snapshot, documents: Integers, field: str) -> Integers:
    """The group number of each document: equal if the values in a metadata field are equal, -1 without the field.

    `documents` are document numbers in ascending order. Documents with several values are in one group only if all of
    their values are equal.
    """
    if field not in (known := known_fields(snapshot)):
        raise unknown("metadata field", field, known)
    values: list[list[bytes]] = [[] for _ in range(documents.size)]
    bounds = documents.searchsorted(snapshot.first_document)
    for i, segment in enumerate(snapshot.segments):
        local = documents[bounds[i] : bounds[i + 1]] - snapshot.first_document[i]
        facets = holder_of(segment, field).facets
        keys = facets.keys(field)
        if not local.size or not keys:
            continue
        row_of_document = np.full(segment.documents, -1, np.int64)
        row_of_document[local] = np.arange(bounds[i], bounds[i + 1])
        # The keys of a field are consecutive, and each has a list of documents. Other documents are skipped.
        of_keys = facets.documents(np.arange(keys.start, keys.stop))
        first = facets.first_document[keys.start : keys.stop + 1].astype(np.int64)
        chosen = np.flatnonzero(row_of_document[of_keys] >= 0)
        key_of_chosen = keys.start + np.searchsorted(first - first[0], chosen, "right") - 1
        for row, key in zip(row_of_document[of_keys[chosen]].tolist(), key_of_chosen.tolist(), strict=True):
            values[row].append(facets.values[key])
    numbers: dict[tuple[bytes, ...], int] = {}
    # Keys are sorted by value, so each list of values is sorted too, and equal sets of values have equal lists.
    return np.array([numbers.setdefault(tuple(some), len(numbers)) if some else -1 for some in values], np.int64)
