"""Exact ranking of documents: every posting of every query term, added up in the order of the terms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perikope.fetch import Candidates
from perikope.fetch.models import FetchModel, Term
from perikope.index.reader import Snapshot
from perikope.query.terms import Query


def fetch(snapshot: Snapshot, query: Query, model: FetchModel, documents: int) -> Candidates:
    """The best `documents` documents; equal scores are in the order of their ids."""
    statistics = snapshot.statistics(query.terms)
    seen = float(sum(weight for weight, count in zip(query.weights, statistics.collection_frequency, strict=True) if count))
    scores = np.zeros(snapshot.numbers)
    matching = np.zeros(snapshot.numbers, bool)
    for base, segment in zip(snapshot.first_document.tolist(), snapshot.segments, strict=False):
        lengths = segment["document.length"]
        for slot, name in enumerate(query.terms):
            number = segment.term_number(name)
            if number < 0:
                continue
            found, frequency = segment.postings(number)
            term = Term(
                frequency.astype(np.float64),
                lengths[found],
                int(statistics.document_frequency[slot]),
                int(statistics.collection_frequency[slot]),
                statistics.documents,
                statistics.tokens,
            )
            scores[base + found.astype(np.int64)] += query.weights[slot] * model(term)
            matching[base + found.astype(np.int64)] = True
        own = base + np.flatnonzero(matching[base : base + segment.documents])
        scores[own] += model.background(lengths[own - base], seen)
    return _best(snapshot, np.flatnonzero(matching), scores, documents)


def _best(snapshot: Snapshot, matching: NDArray[np.int64], scores: NDArray[np.float64], documents: int) -> Candidates:
    values = scores[matching]
    if values.size > documents:
        threshold = np.partition(values, values.size - documents)[values.size - documents]
        # All that tie with the last one stay until the ids have decided between them.
        matching, values = matching[values >= threshold], values[values >= threshold]
    ids = [snapshot.document_id(number) for number in matching.tolist()]
    order = np.array(sorted(range(values.size), key=lambda i: (-values[i], ids[i]))[:documents], np.int64)
    return Candidates(matching[order], values[order])
