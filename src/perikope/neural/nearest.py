"""Fetch documents by the vectors of their passages, including documents that share no word with the query.

    # Candidates by words and by vectors:
    index.search(query, also_nearest="dense", model="hybrid(store=dense)")
    # Candidates by vectors only:
    index.search(query, candidates=nearest_documents(index, query), model="vectors")

The query is compared with every passage of the index, unless the store has clusters (`stores.clusters`): then it is
compared with the passages of the nearest clusters. Scores are exact in both cases.
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
from perikope.neural.narrowing import narrowed
from perikope.search.facade import Index

_AT_ONCE = 1024
"""Documents per batch of comparisons."""


def nearest_documents(index: Index, query: str, store: str = POOLED_STORE, documents: int = 1000) -> dict[str, float]:
    """The best documents by the score of their best passage, as a dict of scores by document id, best first.

    The result can be passed to `Index.search` as `candidates`. `store` is the name of a store of vectors. `documents`
    is the maximum number of documents, at least 1.
    """
    if documents < 1:
        raise UsageError(f"documents must be at least 1, not {documents}")
    snapshot = index.snapshot
    alive = np.concatenate([np.zeros(0, bool), *(segment.alive for segment in snapshot.segments)])
    candidates = nearest(snapshot, query, store, documents, alive)
    scored = zip(candidates.documents.tolist(), candidates.scores.tolist(), strict=True)
    return {snapshot.document_id(number): score for number, score in scored}


def nearest(snapshot: Snapshot, text: str, store: str, most: int, allowed: Mask) -> Candidates:
    """The best `most` documents by the score of their best passage.

    `allowed` (documents,) is true for documents that may be candidates. `text` is the query. Documents without passages
    are never candidates.
    """
    opened = open_store(snapshot, store, "pooled", "own", "tokens", "context")
    vectors = query_vectors(snapshot, opened, text)
    numbers = narrowed(snapshot, opened, vectors[0], most, allowed) if opened.kind in ("pooled", "own") else np.flatnonzero(allowed)
    documents, scores = [np.zeros(0, np.int64)], [np.zeros(0)]
    for start in range(0, numbers.size, _AT_ONCE):
        packed = opened.find(snapshot, numbers[start : start + _AT_ONCE])
        filled = np.flatnonzero(np.diff(packed.first_passage_of_document) > 0)
        if filled.size:
            documents.append(numbers[start + filled])
            scores.append(np.maximum.reduceat(max_sim(vectors, packed), packed.first_passage_of_document[filled]))
    return in_order(snapshot, np.concatenate(documents), np.concatenate(scores), most)


FETCHERS.add(BY_VECTORS, nearest)
