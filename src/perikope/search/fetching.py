"""The second step of a search: choose the documents whose passages are scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perikope.browse.matches import join
from perikope.browse.models import Model
from perikope.browse.signals import fact, min_max
from perikope.core.arrays import Mask
from perikope.core.names import split_name
from perikope.fetch import Candidates
from perikope.fetch.fetchers import BY_VECTORS, FETCHERS
from perikope.fetch.filters import All, Filter, Ids, mask
from perikope.fetch.models import FetchModel
from perikope.fetch.parts import fetch_parts
from perikope.fetch.search import fetch, in_order
from perikope.index.reader import Snapshot
from perikope.query.code_terms import split_code_term
from perikope.query.group_terms import SEPARATOR
from perikope.query.terms import Query


@dataclass(frozen=True, slots=True)
class Fetched:
    """The documents whose passages are scored, and the query that scores the passages."""

    candidates: Candidates
    query: Query


@dataclass(frozen=True, slots=True)
class Fetching:
    """Chooses the documents of a snapshot whose passages are scored."""

    snapshot: Snapshot
    model: FetchModel
    parts: Mapping[str, float]
    """Weights of the parts that documents are ranked by; empty to rank by whole documents."""
    filter: Filter | None
    """The condition that documents must satisfy; None to allow all documents."""

    def documents(self, query: Query, most: int) -> Candidates:
        """The best documents for a query, at most `most`."""
        positive = query.positive
        if not positive.terms:  # wildcards that match no term
            return Candidates(np.zeros(0, np.int64), np.zeros(0))
        if self.parts or any(SEPARATOR in term or split_code_term(term) for term in positive.terms):
            return fetch_parts(self.snapshot, positive, self.model, most, self.parts, self.filter)
        return fetch(self.snapshot, positive, self.model, most, self.filter)

    def with_nearest(self, fetched: Candidates, query: Query, store: str, most: int) -> Candidates:
        """The fetched documents, and the `most` documents that are nearest to the query by the vectors of a store.

        The added documents are scored by the fetch model too. A document without query words has score 0.
        """
        near = FETCHERS[BY_VECTORS](self.snapshot, query.plain_text, store, most, self.allowed())
        added = np.setdiff1d(near.documents, fetched.documents)
        if not added.size:
            return fetched
        is_added = Ids(frozenset(self.snapshot.document_id(number) for number in added.tolist()))
        condition = is_added if self.filter is None else All((self.filter, is_added))
        with_words = replace(self, filter=condition).documents(query, added.size)
        without = np.setdiff1d(added, with_words.documents)
        documents = np.concatenate([fetched.documents, with_words.documents, without])
        scores = np.concatenate([fetched.scores, with_words.scores, np.zeros(without.size)])
        return replace(in_order(self.snapshot, documents, scores, documents.size), parts_of_score=fetched.parts_of_score)

    def given(self, candidates: Mapping[str, float], most: int) -> Candidates:
        """The best `most` of the given documents, by their given scores.

        `candidates` maps ids to scores. Ids that are not in the index, and documents that do not satisfy the condition,
        are ignored.
        """
        numbers = {id: self.snapshot.find_document(id) for id in candidates}
        allowed = self.allowed()
        known = sorted((-float(score), id) for id, score in candidates.items() if numbers[id] >= 0 and allowed[numbers[id]])[:most]
        return Candidates(np.array([numbers[id] for _, id in known], np.int64), np.array([-score for score, _ in known], np.float64))

    def rescored(self, query: Query, fetched: Candidates, model: Model, weight: float) -> Candidates:
        """The candidates with new scores: (1 - weight) · fetch score + weight · score of the model.

        The model scores whole documents. Both scores are min-max normalised over the candidates.
        """
        matches = join(self.snapshot, query, fetched, units="documents")
        whole, first = min_max(model.score(matches)), min_max(fact("fetch score", matches.score_of_document))
        return in_order(self.snapshot, matches.number_of_document, ((1 - weight) * first + weight * whole).values, len(fetched))

    def allowed(self) -> Mask:
        """The mask of documents that are not deleted and satisfy the condition, indexed by document number."""
        return np.concatenate([answer for _, answer in self.snapshot.ask(_allowed, self.filter)])


def _allowed(snapshot: Snapshot, filter: Filter | None) -> Mask:
    masks = [segment.alive if filter is None else segment.alive & mask(segment, filter) for segment in snapshot.segments]
    return np.concatenate([*masks, np.zeros(0, bool)])


def documents_of(scores: Mapping[str, float]) -> dict[str, float]:
    """The documents in a ranking of documents or passages, each with its best score.

    >>> documents_of({"d1#p1": 2.0, "d2": 1.5, "d1#p2": 1.0})
    {'d1': 2.0, 'd2': 1.5}
    """
    best: dict[str, float] = {}
    for name, score in scores.items():
        document = split_name(name)[0]
        best[document] = max(score, best.get(document, score))
    return best
