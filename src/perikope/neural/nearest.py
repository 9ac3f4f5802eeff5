"""Documents by the vectors of their passages, so that a passage is found that shares no word with the query.

    index.search(query, also_nearest="dense", model="fuse(models=[qsf_v_title,vectors])")              # beside those with its words
    index.search(query, candidates=nearest_documents(index, query), model="vectors")                  # these alone

Exact: the query is compared with every passage of the index.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Mask
from perikope.core.errors import UsageError
from perikope.fetch import Candidates
from perikope.fetch.fetchers import BY_VECTORS, FETCHERS
from perikope.fetch.search import in_order
from perikope.index.reader import Snapshot
from perikope.neural.maxsim import max_sim
from perikope.neural.models import POOLED_STORE, open_store, query_vectors
from perikope.search.facade import Index

_AT_ONCE = 1024
"""Documents whose vectors are looked up at a time."""


def nearest_documents(index: Index, query: str, store: str = POOLED_STORE, documents: int = 1000) -> dict[str, float]:
    """The best documents by their best passage, id and score of each, best first: candidates for `Index.search`."""
    if documents < 1:
        raise UsageError(f"documents must be at least 1, not {documents}")
    snapshot = index.snapshot
    alive = np.concatenate([np.zeros(0, bool), *(segment.alive for segment in snapshot.segments)])
    found = nearest(snapshot, query, store, documents, alive)
    return {snapshot.document_id(number): score for number, score in zip(found.documents.tolist(), found.scores.tolist(), strict=True)}


def nearest(snapshot: Snapshot, text: str, store: str, most: int, allowed: Mask) -> Candidates:
    """The best documents of those that are allowed, by their best passage; one without a passage is none."""
    opened = open_store(snapshot.folder, store, "pooled", "own", "tokens", "context")
    vectors = query_vectors(snapshot, opened, text)
    numbers = np.flatnonzero(allowed)
    documents, scores = [np.zeros(0, np.int64)], [np.zeros(0)]
    for start in range(0, numbers.size, _AT_ONCE):
        found = opened.find(snapshot, numbers[start : start + _AT_ONCE])
        filled = np.flatnonzero(np.diff(found.first_passage_of_piece) > 0)
        if filled.size:
            documents.append(numbers[start + filled])
            scores.append(np.maximum.reduceat(max_sim(vectors, found), found.first_passage_of_piece[filled]))
    return in_order(snapshot, np.concatenate(documents), np.concatenate(scores), most)


FETCHERS.add(BY_VECTORS, nearest)
