"""Groups of documents with the same metadata: publications of one patent, versions of one page."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Integers
from perikope.core.errors import unknown
from perikope.fetch.filters import known_fields
from perikope.index.reader import Snapshot


def groups_of(snapshot: Snapshot, documents: Integers, field: str) -> Integers:
    """A group number per document (numbers rise): equal for equal values in a field; -1 for documents without.

    Where a document has several values, all of them must be the same.
    """
    if field not in (known := known_fields(snapshot)):
        raise unknown("field of metadata", field, known)
    values: list[list[bytes]] = [[] for _ in range(documents.size)]
    bounds = documents.searchsorted(snapshot.first_document)
    for i, segment in enumerate(snapshot.segments):
        own = documents[bounds[i] : bounds[i + 1]] - snapshot.first_document[i]
        keys = segment.facets.keys(field)
        if not own.size or not keys:
            continue
        place = np.full(segment.documents, -1, np.int64)
        place[own] = np.arange(bounds[i], bounds[i + 1])
        # The values of a field stand side by side, each with its documents: what holds for the candidates is picked
        # from them.
        of_keys = segment.facets.documents(np.arange(keys.start, keys.stop))
        first = segment.facets.first_document[keys.start : keys.stop + 1].astype(np.int64)
        chosen = np.flatnonzero(place[of_keys] >= 0)
        key_of_chosen = keys.start + np.searchsorted(first - first[0], chosen, "right") - 1
        for at, key in zip(place[of_keys[chosen]].tolist(), key_of_chosen.tolist(), strict=True):
            values[at].append(segment.facets.values[key])
    numbers: dict[tuple[bytes, ...], int] = {}
    # Keys are in the order of their values, so the lists are too.
    return np.array([numbers.setdefault(tuple(own), len(numbers)) if own else -1 for own in values], np.int64)
