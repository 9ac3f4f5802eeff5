"""Matches of a topic that systems with the same search options share. Each system scores and ranks them separately."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from perikope.browse.masking import TokenMask, masked
from perikope.browse.matches import Matches
from perikope.browse.models import Model
from perikope.browse.ranking import FLAT, Ranking
from perikope.browse.signals import Column
from perikope.core.arrays import Integers, Mask
from perikope.evaluation.depth import Depth
from perikope.evaluation.figures import JudgedRanks, count_ranks, find_ranks, judged_rows
from perikope.index.reader import Snapshot
from perikope.query.topic import Topic
from perikope.search.asking import Prepared
from perikope.search.batch import PreparedTopic, prepare_topic
from perikope.search.fetching import Fetched
from perikope.search.naming import PassageNames, names_of, rows_of
from perikope.search.options import SearchOptions
from perikope.search.steps import Search


class View:
    """The matches of a topic with given search options, and its judged passages among them."""

    def __init__(
        self,
        search: Search,
        prepared: Prepared,
        judged: Mapping[str, int],
        names: PassageNames,
        model: Model | None,
        fetched: Fetched | None = None,
        mask: TokenMask | None = None,
    ) -> None:
        self.search = search
        self.fetched = fetched or search.candidates(prepared)
        """The candidates, which do not depend on the model."""
        matches = search.matches(self.fetched, model)
        self.matches = (masked(matches, mask) if mask else matches).shared()
        self.judged = judged_rows(self.matches, rows_of(search.snapshot, self.matches, judged), judged)
        self._names = names
        self._name_of_row: NDArray[np.object_] | None = None
        self._allowed = search.eligibility.allowed(self.matches)
        self._groups = search.eligibility.groups(self.matches)
        self._order: Integers | None = None

    def rank(self, score: Column, depth: Depth, model: Model | None) -> Ranking:
        """The best passages by a score, in the order of a search with the same options, cut at `depth`.

        `score` is the score of `model`, or a learned score if `model` is None.
        """
        score, eligible = self.search.eligibility.results_by(self.matches, score, model, self._allowed)
        return cut_ranking(self.search, self.matches, score, depth, eligible, self._groups)

    def judged_ranks(self, score: Column, depth: Depth, model: Model | None) -> JudgedRanks:
        """The ranks of judged passages in the ranking that `rank` returns."""
        if self.search.eligibility.presentation != FLAT or depth.documents:
            return find_ranks(self.rank(score, depth, model), self.judged)
        if self._order is None:
            # Passages with equal scores are ordered by document id, then by position.
            document_order = self.matches.id_rank_of_document()[self.matches.document_of_passage]
            order = np.empty(document_order.size, np.int64)
            order[np.argsort(document_order, kind="stable")] = np.arange(document_order.size)
            self._order = order
        score, eligible = self.search.eligibility.results_by(self.matches, score, model, self._allowed)
        return count_ranks(score.values, self.judged, self._order, eligible, depth.results)

    def names(self, ranking: Ranking) -> list[str]:
        """The names of the passages of a ranking, in its order."""
        if self.matches.units != "passages":
            return names_of(self.search.snapshot, self.matches, ranking.rows)
        if self._name_of_row is None:
            self._name_of_row = self._names.of(self.matches)
        names: list[str] = self._name_of_row[ranking.rows].tolist()
        return names


def cut_ranking(search: Search, matches: Matches, score: Column, depth: Depth, eligible: Mask | None, groups: Integers | None) -> Ranking:
    """The best eligible passages by a score, laid out as the search says, and cut at `depth`.

    `groups` is the result of `search.eligibility.groups(matches)`.
    """
    if not depth.documents:
        return search.eligibility.rank(matches, score, depth.results, eligible, groups)
    ranking = search.eligibility.rank(matches, score, matches.passages, eligible, groups)
    kept = depth.cut(matches.document_of_passage[ranking.rows])
    return Ranking(ranking.rows[:kept], ranking.scores[:kept])


class Looking:
    """Makes views of topics on one snapshot of an index, with one set of judgements."""

    def __init__(
        self,
        snapshot: Snapshot,
        judgements: Mapping[str, Mapping[str, int]],
        names: PassageNames | None = None,
        masks: Mapping[str, TokenMask] | None = None,
    ) -> None:
        """`masks` has the words that the query of a topic must not find, by id of the topic."""
        self.snapshot, self.judgements, self.masks = snapshot, judgements, masks or {}
        self.names = names or PassageNames(snapshot)

    def prepare(self, topic: Topic, options: SearchOptions) -> PreparedTopic:
        """Prepare the query of a topic with search options."""
        return prepare_topic(self.snapshot, topic, options)

    def view(self, asked: PreparedTopic, model: Model | None = None, fetched: Fetched | None = None) -> View:
        """The view of a prepared topic. `model` is needed only if the matches depend on the model.

        `fetched` are the candidates of another view of the same topic, so that they are not fetched again.
        """
        qid = asked.topic.qid
        return View(asked.search, asked.prepared, self.judgements.get(qid, {}), self.names, model, fetched, self.masks.get(qid))
