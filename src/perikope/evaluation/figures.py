"""Fast versions of common measures, which tuning computes for thousands of settings.

A measure of `perikope.evaluation.measures` takes the names of a whole ranking. The measures here take only the ranks of
judged results, which can be computed without sorting: a rank is one more than the number of better results.
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
"""An empty mask, which means that every row may be a result."""


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """The judged passages of a topic that are in its matches. All arrays have one element per such passage."""

    rows: Integers
    """Rows of the passages in the matches."""
    grades: Integers
    first_of_document: Integers
    """The first row of the passage's document."""
    end_of_document: Integers
    """The row after the last row of the passage's document."""
    judged: Mapping[str, int]
    """Grades of all judged names of the topic, whether they are in the matches or not."""
    document: Integers
    """Index of the passage's document in `documents`; -1 if no passage of the document is judged."""
    documents: Mapping[str, int]
    """Indices of all documents with a judged passage, by name of the document."""


def judged_rows(matches: Matches, row_of_name: Mapping[str, int], judged: Mapping[str, int]) -> JudgedRows:
    """The judged passages among the matches. `row_of_name` has the row of each judged name that is in the matches."""
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
    """The ranks of judged passages, from 1; 0 for a passage that is not in the ranking.

    All arrays are aligned with `JudgedRows.rows`.
    """

    rank: Integers
    rank_in_document: Integers
    """Rank among the results of the same document, from 1; 0 for a passage that is not in the ranking."""


def count_ranks(values: Floats, judged: JudgedRows, order: Integers, eligible: Mask | None, k: int) -> JudgedRanks:
    """The ranks of judged rows among the best `k` rows by score.

    `values` has the score of each row. Rows with equal scores are sorted by `order`, ascending. `eligible` is a mask of
    the rows that may be results; None means all.
    """
    allowed = _EVERY if eligible is None else eligible
    return JudgedRanks(*count_better(values, order, allowed, judged.rows, judged.first_of_document, judged.end_of_document, k))


def find_ranks(ranking: Ranking, judged: JudgedRows) -> JudgedRanks:
    """The ranks of judged rows in a ranking, whose results may be grouped by document."""
    rank = np.zeros(judged.rows.size, np.int64)
    inside = np.zeros(judged.rows.size, np.int64)
    rank_of_row = {row: number for number, row in enumerate(ranking.rows.tolist(), 1)}
    for i, row in enumerate(judged.rows.tolist()):
        rank[i] = rank_of_row.get(row, 0)
        if rank[i]:
            before = ranking.rows[: rank[i]]
            inside[i] = np.count_nonzero((before >= judged.first_of_document[i]) & (before < judged.end_of_document[i]))
    return JudgedRanks(rank, inside)


ByRanks = Callable[[JudgedRanks], float]
"""Computes the value of a measure for one topic from the ranks of its judged passages."""


def quick(measure: Measure, judged: JudgedRows) -> ByRanks | None:
    """A function that computes a measure for one topic from the ranks of its judged passages.

    None if the measure has no fast version here.
    """
    make = _QUICK.get(measure.definition.name)
    cutoff = None if measure.cutoff is None else int(measure.cutoff)
    return None if make is None else make(judged, cutoff, measure.arguments)


class _Relevant:
    """The judged passages that are relevant for a measure with a cutoff and a lowest relevant grade `rel`."""

    def __init__(self, judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> None:
        rel = int(dict(arguments)["rel"])
        self.cutoff = cutoff
        self.is_relevant = judged.grades >= rel
        self.total = sum(grade >= rel for grade in judged.judged.values())

    def ranks(self, judged: JudgedRanks) -> Integers:
        """The ranks of the relevant results that are not after the cutoff, ascending."""
        counts = self.is_relevant & (judged.rank > 0)
        if self.cutoff is not None:
            counts &= judged.rank <= self.cutoff
        return np.sort(judged.rank[counts])


def _average_precision(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByRanks:
    relevant = _Relevant(judged, cutoff, arguments)

    def value(judged_ranks: JudgedRanks) -> float:
        ranks = relevant.ranks(judged_ranks)
        return float(np.sum(np.arange(1, ranks.size + 1) / ranks)) / max(relevant.total, 1)

    return value


def _reciprocal_rank(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByRanks:
    relevant = _Relevant(judged, cutoff, arguments)

    def value(judged_ranks: JudgedRanks) -> float:
        ranks = relevant.ranks(judged_ranks)
        return 1 / int(ranks[0]) if ranks.size else 0.0

    return value


def _precision(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByRanks:
    relevant = _Relevant(judged, cutoff, arguments)
    return lambda judged_ranks: relevant.ranks(judged_ranks).size / (cutoff or 1)


def _recall(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByRanks:
    relevant = _Relevant(judged, cutoff, arguments)
    return lambda judged_ranks: relevant.ranks(judged_ranks).size / max(relevant.total, 1)


def _success(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByRanks:
    relevant = _Relevant(judged, cutoff, arguments)
    return lambda judged_ranks: float(relevant.ranks(judged_ranks).size > 0)


def _gain(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByRanks:
    best = np.array(sorted((grade for grade in judged.judged.values() if grade > 0), reverse=True)[:cutoff], np.float64)
    ideal = float(np.sum(best / np.log2(np.arange(2, best.size + 2))))
    grades = np.maximum(judged.grades, 0)

    def value(judged_ranks: JudgedRanks) -> float:
        counts = judged_ranks.rank > 0
        if cutoff is not None:
            counts &= judged_ranks.rank <= cutoff
        return float(np.sum(grades[counts] / np.log2(judged_ranks.rank[counts] + 1))) / ideal if ideal else 0.0

    return value


def _average_precision_inside(judged: JudgedRows, cutoff: int | None, arguments: Sequence[tuple[str, Any]]) -> ByRanks:
    rel = dict(arguments)["rel"]
    relevant = np.zeros(len(judged.documents), np.int64)
    for name, grade in judged.judged.items():
        if grade >= rel and "#" in name:
            relevant[judged.documents[document_name(name)]] += 1
    documents = int(np.count_nonzero(relevant))
    rows = np.flatnonzero((judged.grades >= rel) & (judged.document >= 0))

    def value(judged_ranks: JudgedRanks) -> float:
        counted = rows[judged_ranks.rank[rows] > 0]
        if not counted.size:
            return 0.0
        counted = counted[np.lexsort((judged_ranks.rank_in_document[counted], judged.document[counted]))]
        document = judged.document[counted]
        relevant_so_far = np.arange(counted.size) - np.searchsorted(document, document) + 1
        return float(np.sum(relevant_so_far / judged_ranks.rank_in_document[counted] / relevant[document])) / documents

    return value


_QUICK: Mapping[str, Callable[[JudgedRows, int | None, Sequence[tuple[str, Any]]], ByRanks]] = {
    "AP": _average_precision,
    "RR": _reciprocal_rank,
    "P": _precision,
    "Recall": _recall,
    "Success": _success,
    "nDCG": _gain,
    "APD": _average_precision_inside,
}


def precision_curve(ranks: Sequence[int], relevant: int) -> list[float]:
    """Interpolated precision at the 101 recall points 0, 0.01 … 1: the highest precision at that recall or above.

    `ranks` has the ranks of the relevant results, ascending. `relevant` is the number of all relevant passages.

    >>> precision_curve([1, 4], 2)[::50]
    [1.0, 1.0, 0.5]
    """
    curve = [0.0] * RECALL_POINTS
    best = 0.0
    for count in range(len(ranks), 0, -1):
        best = max(best, count / ranks[count - 1])
        # This result sets the recall points above the recall without it, up to the recall with it. Integers are exact.
        before, reached = 100 * (count - 1) // relevant if count > 1 else -1, 100 * count // relevant
        curve[before + 1 : reached + 1] = [best] * (reached - before)
    return curve
