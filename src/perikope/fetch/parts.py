"""Ranking of documents by chosen parts, such as title and claims only. Each part has a weight.

Term frequencies and document lengths are weighted sums over the parts. The fetch model is applied once to these sums,
not once per part (Robertson, Zaragoza and Taylor, Simple BM25 extension to multiple weighted fields, CIKM 2004). The
statistics of the collection are computed from the same sums.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perikope.core.arrays import Floats, Integers
from perikope.core.errors import UsageError, unknown
from perikope.fetch import Candidates
from perikope.fetch.filters import Filter, known_parts, mask
from perikope.fetch.models import FetchModel, Terms
from perikope.fetch.search import in_order
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.query.terms import Query

Parts = Mapping[str, float]
"""Weights of parts, by the name of the part."""


def parse_parts(text: str) -> dict[str, float]:
    """Parse parts with weights; a part without a weight has weight 1.

    >>> parse_parts("title=2,abstract")
    {'title': 2.0, 'abstract': 1.0}
    """
    parts = {}
    for item in text.split(","):
        name, _, weight = (piece.strip() for piece in item.partition("="))
        try:
            parts[name] = float(weight or 1)
        except ValueError:
            parts[name] = -1.0
        if not name or not 0 < parts[name] < float("inf"):
            raise UsageError(f"{item.strip()!r} is not a part with a weight above 0; write parts as title=2,abstract,claims=0.5")
    return parts


def check_parts(snapshot: Snapshot, parts: Parts) -> None:
    """Raise `UsageError` if no document has one of the parts, or if a weight is not a positive number."""
    known = known_parts(snapshot)
    for name, weight in parts.items():
        if name not in known:
            raise (
                unknown("part", name, known)
                if known
                else UsageError("the documents of this index have no parts; leave out fetch_parts (--fetch-parts)")
            )
        if not 0 < weight < float("inf"):
            raise UsageError(f"the weight of part {name} must be above 0, not {weight}")


def fetch_parts(
    snapshot: Snapshot, query: Query, model: FetchModel, documents: int, parts: Parts, filter: Filter | None = None
) -> Candidates:
    """The best `documents` documents that satisfy the filter, ranked by the given parts only.

    Equal scores are ordered by document id.
    """
    lengths = [_lengths(segment, parts) for segment in snapshot.segments]
    numbers = snapshot.look_up(query.terms).numbers
    postings_by_segment = [
        [_postings(segment, int(number), parts) for number in row] for segment, row in zip(snapshot.segments, numbers, strict=True)
    ]
    terms = Terms(
        np.array([sum(postings[t][0].size for postings in postings_by_segment) for t in range(len(query.terms))]),
        np.array([sum(float(postings[t][1].sum()) for postings in postings_by_segment) for t in range(len(query.terms))]),
        snapshot.totals.documents,
        sum(float(length[segment.alive].sum()) for length, segment in zip(lengths, snapshot.segments, strict=True)),
    )
    weights = np.array(query.weights)
    seen = terms.document_frequency > 0
    matching: list[Integers] = []
    sums: list[Floats] = []
    for base, segment, postings, length in zip(
        snapshot.first_document.tolist(), snapshot.segments, postings_by_segment, lengths, strict=False
    ):
        total, held = np.zeros(segment.documents), np.zeros(segment.documents, bool)
        # Rare terms first: the same order as in `fetch`.
        for t in np.argsort(terms.document_frequency, kind="stable").tolist():
            documents_of_term, frequency = postings[t]
            if documents_of_term.size:
                of_posting = terms.at(np.full(frequency.size, t))
                total[documents_of_term] += weights[t] * model.contribution(frequency, length[documents_of_term], of_posting)
                held[documents_of_term] = True
        held &= True if filter is None else mask(segment, filter)
        here = np.flatnonzero(held)
        background = model.background(length[here], float(weights[seen].sum()))
        matching.append(base + here)
        sums.append(total[here] if background is None else total[here] + background)
    matching_numbers, scores = np.concatenate([*matching, np.zeros(0, np.int64)]), np.concatenate([*sums, np.zeros(0)])
    if scores.size > documents:
        best = np.flatnonzero(scores >= np.partition(scores, scores.size - documents)[scores.size - documents])
        matching_numbers, scores = matching_numbers[best], scores[best]
    return in_order(snapshot, matching_numbers, model.finish(scores, weights, terms), documents)


def _postings(segment: Segment, term: int, parts: Parts) -> tuple[Integers, Floats]:
    """The documents that contain a term in one of the parts, and the weighted frequency of the term in each."""
    if term < 0:
        return np.zeros(0, np.int64), np.zeros(0)
    frequency = np.zeros(segment.documents)
    for part, weight in parts.items():
        documents, counts = segment.part_postings(term, part)
        frequency[documents] += weight * counts
    documents = np.flatnonzero(frequency)
    return documents, frequency[documents]


def _lengths(segment: Segment, parts: Parts) -> Floats:
    """The weighted length of each document of a segment, in tokens."""
    if len(segment.parts) == 1:
        return segment["document.length"] * float(parts.get(segment.parts[0], 0.0))
    weights = np.array([parts.get(part, 0.0) for part in segment.parts])
    length: Floats = segment["document.part_length"].reshape(segment.documents, len(segment.parts)) @ weights
    return length
