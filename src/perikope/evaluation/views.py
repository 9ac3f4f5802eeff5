"""One topic, looked into once for all systems that fetch alike: each then only scores and ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perikope.browse.matches import Matches
from perikope.browse.models import Model, ModelDefinition, Signals
from perikope.browse.ranking import FLAT, Grouping, Presentation, Ranking, rank
from perikope.browse.signals import Column, fact
from perikope.core.errors import UsageError
from perikope.evaluation.figures import Places, count_places, find_places, judged_rows
from perikope.query.topic import Topic
from perikope.search.batch import options_of
from perikope.search.facade import Index, Results

Integers = NDArray[np.int64]
Options = Mapping[str, Any]
"""Of `Index.search`, without the model and how many results."""


def _no_signals(matches: Matches) -> Signals:
    return {"score": fact("nothing", np.zeros(matches.passages))}


def _no_score(signals: Signals) -> Column:
    return signals["score"]


_UNRANKED = Model(ModelDefinition("unranked", _no_signals, _no_score, False, {}, {}), {})
"""Gives every candidate the same score: what is wanted of the search are its matches."""


def depends_on_model(options: Options) -> bool:
    """Whether the words that score passages come from the best passages of a model, so that every model has matches of its own."""
    return bool(options.get("browse_expand"))


class PassageNames:
    """The names of passages by document, each looked up once for all topics."""

    def __init__(self) -> None:
        self._of_document: dict[int, NDArray[np.object_]] = {}

    def of(self, results: Results) -> NDArray[np.object_]:
        """The name of each row of the matches."""
        matches = results.matches
        first = matches.first_passage_of_document
        found = [np.zeros(0, object)]
        for candidate, number in enumerate(matches.number_of_document.tolist()):
            if number not in self._of_document:
                rows = np.arange(first[candidate], first[candidate + 1])
                self._of_document[number] = np.array(results.names_of(rows), object)
            found.append(self._of_document[number])
        return np.concatenate(found)


class View:
    """The candidates of a topic under the options of a search."""

    def __init__(self, results: Results, options: Options, judged: Mapping[str, int], names: PassageNames) -> None:
        self.results = results
        self._names = names
        self._name_of_row: NDArray[np.object_] | None = None
        self.matches = results.matches.shared()
        self.presentation = _presentation(options)
        self.judged = judged_rows(self.matches, results.rows_of(judged), judged)
        self._allowed = results.eligible
        self._groups = results.group_of_document
        self._matching: NDArray[np.bool_] | None = None
        self._order: Integers | None = None

    def eligible(self, matching_only: bool) -> NDArray[np.bool_] | None:
        """Which passages may be results; None: all."""
        if not matching_only:
            return self._allowed
        if self._matching is None:
            matching = np.diff(self.matches.in_passages.first_entry) > 0
            self._matching = matching if self._allowed is None else matching & self._allowed
        return self._matching

    def rank(self, score: Column, k: int, *, matching_only: bool) -> Ranking:
        """The best `k` passages by a score, as `Index.search` ranks them."""
        place = self.matches.place_of_document()
        eligible = self.eligible(matching_only)
        return rank(self.matches, score, k, place, allowed=eligible, presentation=self.presentation, group_of_document=self._groups)

    def places(self, score: Column, k: int, *, matching_only: bool) -> Places:
        """The places of judged passages among the best `k`."""
        if self.presentation != FLAT:
            return find_places(self.rank(score, k, matching_only=matching_only), self.judged)
        if self._order is None:
            # Equal scores: by document id, then by position.
            place = self.matches.place_of_document()[self.matches.document_of_passage]
            order = np.empty(place.size, np.int64)
            order[np.argsort(place, kind="stable")] = np.arange(place.size)
            self._order = order
        return count_places(score.values, self.judged, self._order, self.eligible(matching_only), k)

    def names(self, ranking: Ranking) -> list[str]:
        """The names of ranked passages."""
        if self.matches.units != "passages":
            return self.results.names_of(ranking.rows)
        if self._name_of_row is None:
            self._name_of_row = self._names.of(self.results)
        found: list[str] = self._name_of_row[ranking.rows].tolist()
        return found


@dataclass(frozen=True, slots=True)
class Looking:
    """How topics become views."""

    index: Index
    judgements: Mapping[str, Mapping[str, int]]
    names: PassageNames = field(default_factory=PassageNames)

    def check(self, topic: Topic, options: Options) -> str:
        """Why a topic cannot be a query, or nothing."""
        try:
            for text in filter(None, (topic.query, topic.browse)):
                self.index.check_query(text, language=options.get("language", ""), syntax=options.get("syntax", "words"))
        except UsageError as error:
            return str(error)
        return ""

    def view(self, topic: Topic, options: Options, model: Model = _UNRANKED) -> View:
        """The candidates of a topic; `model` counts only where the options depend on it."""
        query = topic.query or self.index.patent_query(topic.patent, topic.claims, family=topic.family)
        results = self.index.search(query, model=model, k=1, **options_of(topic, options))
        return View(results, options, self.judgements.get(topic.qid, {}), self.names)


def _presentation(options: Options) -> Presentation:
    grouped = options.get("group_by_document") or ""
    grouping: Grouping = "fetch" if grouped is True or grouped == "fetch" else "score" if grouped else ""
    return Presentation(bool(options.get("no_overlap")), grouping, bool(options.get("drop_unmatched")), str(options.get("one_per") or ""))
