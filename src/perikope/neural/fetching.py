"""Documents by the vectors of their passages, so that a passage is found that shares no word with the query.

    index.search(query, candidates=nearest_documents(index, query), model="fuse(models=[qsf_v_title,vectors])")

Exact: the query is compared with every passage of the index.
"""

from __future__ import annotations

import heapq

import numpy as np

from perikope.api import Index
from perikope.errors import UsageError
from perikope.neural.maxsim import max_sim
from perikope.neural.ranking import POOLED_STORE, open_store, query_vectors

_AT_ONCE = 1024
"""Documents whose vectors are looked up at a time."""


def nearest_documents(index: Index, query: str, store: str = POOLED_STORE, documents: int = 1000) -> dict[str, float]:
    """The best documents by their best passage, id and score of each, best first: candidates for `Index.search`."""
    if documents < 1:
        raise UsageError(f"documents must be at least 1, not {documents}")
    snapshot = index.snapshot
    opened = open_store(snapshot.folder, store, "pooled", "own", "tokens")
    vectors = query_vectors(opened, query)
    alive = [segment.alive for segment in snapshot.segments]
    numbers = np.flatnonzero(np.concatenate([np.zeros(0, bool), *alive]))
    best: list[tuple[float, str]] = []
    for start in range(0, numbers.size, _AT_ONCE):
        found = opened.find(snapshot, numbers[start : start + _AT_ONCE])
        filled = np.flatnonzero(np.diff(found.first_passage_of_piece) > 0)
        if filled.size:
            scores = np.maximum.reduceat(max_sim(vectors, found), found.first_passage_of_piece[filled])
            ids = (snapshot.document_id(int(numbers[start + place])) for place in filled.tolist())
            best = heapq.nsmallest(documents, [*best, *zip((-scores).tolist(), ids, strict=True)])
    return {id: -score for score, id in best}
