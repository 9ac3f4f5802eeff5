"""Measures of a ranking from the places of its judged results alone: what a grid over thousands of settings can afford.

A measure of names needs the whole ranking, by name. Most need no more than the ranks of what is judged relevant, and these can be counted
without sorting: one more than there are better results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.ranking import Ranking
from perikope.core.arrays import Floats, Integers, Mask
from perikope.core.names import document_name
from perikope.evaluation.measures import Measure
from perikope.kernels.ranks import count_better

RECALL_POINTS = 101
_EVERY = np.zeros(0, bool)


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """The judged passages of a topic: their rows in the matches, and what the judgements hold beyond the candidates."""

    rows: Integers
    grades: Integers
    first_of_document: Integers
    """The first row of each one's document, and the row behind its last."""
    end_of_document: Integers
    judged: Mapping[str, int]
    """All of them, by name."""
    document: Integers
    """Number of each one's document among the judged ones."""
    documents: Mapping[str, int]
    """The numbers of the documents by name."""


def judged_rows(matches: Matches, row_of_name: Mapping[str, int], judged: Mapping[str, int]) -> JudgedRows:
    """The judged passages among the matches, whose rows are given by name."""
    names = [name for name in judged if name in row_of_name]
    rows = np.array([row_of_name[name] for name in names], np.int64)
    grades = np.array([judged[name] for name in names], np.int64)
    first = matches.first_passage_of_document
    candidate = matches.document_of_passage[rows]
    documents = {name: number for number, name in enumerate(dict.fromkeys(document_name(name) for name in judged if "#" in name))}
    document = np.array([documents.get(document_name(name), -1) for name in names], np.int64)
    return JudgedRows(rows, grades, first[candidate], first[candidate + 1], judged, document, documents)


@dataclass(frozen=True, slots=True)
class JudgedRanks:
    """The ranks of judged results from 1, in the ranking and among the results of the same document; 0 where they are not in it."""

    rank: Integers
    rank_in_document: Integers


def count_places(values: Floats, judged: JudgedRows, order: Integers, eligible: Mask | None, k: int) -> JudgedRanks:
    """The places of judged rows by their scores, in a ranking of the best `k`; `order` decides between equal scores, smallest first."""
    allowed = _EVERY if eligible is None else eligible
    return JudgedRanks(*count_better(values, order, allowed, judged.rows, judged.first_of_document, judged.end_of_document, k))


def find_places(ranking: Ranking, judged: JudgedRows) -> JudgedRanks:
    """The places of judged rows in a ranking, however it was laid out."""
    rank = np.zeros(judged.rows.size, np.int64)
    inside = np.zeros(judged.rows.size, np.int64)
    place = {row: number for number, row in enumerate(ranking.rows.tolist(), 1)}
    for i, row in enumerate(judged.rows.tolist()):
        rank[i] = place.get(row, 0)
        if rank[i]:
            before = ranking.rows[: rank[i]]
            inside[i] = np.count_nonzero((before >= judged.first_of_document[i]) & (before < judged.end_of_document[i]))
    return JudgedRanks(rank, inside)


ByPlaces = Callable[[JudgedRanks], float]
"""The value of a topic by the places of what is judged."""


def quick(measure: Measure, judged: JudgedRows) -> ByPlaces | None:
    """A measure of one topic by places, or None where the places of judged results do not decide it."""
    make = _QUICK.get(measure.definition.name)
    cutoff = None if measure.cutoff is None else int(measure.cutoff)
    return None if make is None else make(judged, cutoff, measure.arguments)


class _Relevant:
    """What a measure with this cutoff and threshold calls relevant."""

    def __init__(self, judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> None:
        rel = int(dict(arguments)["rel"])
        self.cutoff = cutoff
        self.is_relevant = judged.grades >= rel
        self.total = sum(grade >= rel for grade in judged.judged.values())

    def ranks(self, places: JudgedRanks) -> Integers:
        """Of the relevant results, rising."""
        kept = self.is_relevant & (places.rank > 0)
        if self.cutoff is not None:
            kept &= places.rank <= self.cutoff
        return np.sort(places.rank[kept])


def _average_precision(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByPlaces:
    relevant = _Relevant(judged, cutoff, arguments)

    def value(places: JudgedRanks) -> float:
        ranks = relevant.ranks(places)
        return float(np.sum(np.arange(1, ranks.size + 1) / ranks)) / max(relevant.total, 1)

    return value


def _reciprocal_rank(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByPlaces:
    relevant = _Relevant(judged, cutoff, arguments)

    def value(places: JudgedRanks) -> float:
        ranks = relevant.ranks(places)
        return 1 / int(ranks[0]) if ranks.size else 0.0

    return value


def _precision(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByPlaces:
    relevant = _Relevant(judged, cutoff, arguments)
    return lambda places: relevant.ranks(places).size / (cutoff or 1)


def _recall(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByPlaces:
    relevant = _Relevant(judged, cutoff, arguments)
    return lambda places: relevant.ranks(places).size / max(relevant.total, 1)


def _success(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByPlaces:
    relevant = _Relevant(judged, cutoff, arguments)
    return lambda places: float(relevant.ranks(places).size > 0)


def _gain(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByPlaces:
    best = np.array(sorted((grade for grade in judged.judged.values() if grade > 0), reverse=True)[:cutoff], np.float64)
    ideal = float(np.sum(best / np.log2(np.arange(2, best.size + 2))))
    grades = np.maximum(judged.grades, 0)

    def value(places: JudgedRanks) -> float:
        kept = places.rank > 0
        if cutoff is not None:
            kept &= places.rank <= cutoff
        return float(np.sum(grades[kept] / np.log2(places.rank[kept] + 1))) / ideal if ideal else 0.0

    return value


def _average_precision_inside(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByPlaces:
    rel = dict(arguments)["rel"]
    relevant = np.zeros(len(judged.documents), np.int64)
    for name, grade in judged.judged.items():
        if grade >= rel and "#" in name:
            relevant[judged.documents[document_name(name)]] += 1
    documents = int(np.count_nonzero(relevant))
    rows = np.flatnonzero((judged.grades >= rel) & (judged.document >= 0))

    def value(places: JudgedRanks) -> float:
        kept = rows[places.rank[rows] > 0]
        if not kept.size:
            return 0.0
        kept = kept[np.lexsort((places.rank_in_document[kept], judged.document[kept]))]
        document = judged.document[kept]
        found = np.arange(kept.size) - np.searchsorted(document, document) + 1
        return float(np.sum(found / places.rank_in_document[kept] / relevant[document])) / documents

    return value


_QUICK: Mapping[str, Callable[[JudgedRows, int | None, Sequence[tuple[str, Any]]], ByPlaces]] = {
    "AP": _average_precision,
    "RR": _reciprocal_rank,
    "P": _precision,
    "Recall": _recall,
    "Success": _success,
    "nDCG": _gain,
    "APD": _average_precision_inside,
}


def precision_curve(ranks: Sequence[int], relevant: int) -> list[float]:
    """The highest precision at each of 101 recall points, 0, 0.01 … 1, or beyond; `ranks` are those of the relevant results, rising.

    >>> precision_curve([1, 4], 2)[::50]
    [1.0, 1.0, 0.5]
    """
    curve = [0.0] * RECALL_POINTS
    best = 0.0
    for found in range(len(ranks), 0, -1):
        best = max(best, found / ranks[found - 1])
        # The points behind the recall before this result, up to that with it; in whole numbers, so that nothing is rounded.
        before, reached = 100 * (found - 1) // relevant if found > 1 else -1, 100 * found // relevant
        curve[before + 1 : reached + 1] = [best] * (reached - before)
    return curve
