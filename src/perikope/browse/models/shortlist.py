"""The shortlist: the candidate documents whose passages get all features of a learned combination.

Most candidates are no match for the best ones, and many features are expensive. So a cheap model, `coverage`, scores
all passages first. The documents with the best passages are on the shortlist. Features are computed and normalised over
the passages of these documents. The passages of all other documents follow in the order of `coverage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models import Signals, parse_model
from perikope.browse.restricting import restricted
from perikope.browse.signals import Column, Node, fact, sum_of
from perikope.core.arrays import Integers
from perikope.index.ranges import ranges

FIRST = "coverage"
"""The model that orders documents for the shortlist."""
BELOW = 1.0
"""Distance between the lowest score of the shortlist and the highest of all other passages."""


@dataclass(frozen=True, slots=True)
class Shortlist:
    """How long a shortlist is: it has at least this number of documents, and at least this number of passages."""

    documents: int
    passages: int

    def of(self, matches: Matches) -> ListedPassages:
        """The passages on the shortlist of some matches: all of them if there are few."""
        if matches.documents <= self.documents or matches.passages <= self.passages:
            return ListedPassages(matches)
        first_stage = parse_model(FIRST).score(matches)
        first = matches.first_passage_of_document
        filled = np.flatnonzero(np.diff(first))
        best = np.full(matches.documents, -np.inf)
        best[filled] = np.maximum.reduceat(first_stage.values, first[filled])
        order = np.lexsort((matches.id_rank_of_document(), -best))
        enough = int(np.searchsorted(np.cumsum(np.diff(first)[order]), self.passages)) + 1
        documents = np.sort(order[: max(enough, self.documents)])
        if np.isin(filled, documents).all():
            return ListedPassages(matches)
        return ListedPassages(matches, documents, first_stage)


SHORTLIST = Shortlist(documents=50, passages=4000)
"""The shortlist of newly learned combinations."""


class ListedPassages:
    """The passages on a shortlist among all passages of some matches."""

    def __init__(self, matches: Matches, documents: Integers | None = None, first_stage: Column | None = None) -> None:
        """`documents` has the indexes of the documents on the list in ascending order; None if all documents are.

        `first_stage` is the score that orders all other passages. It is needed if there are any.
        """
        self.first_stage, self.is_complete = first_stage, documents is None
        self.matches = matches if documents is None else restricted(matches, documents)
        """The matches of the documents on the shortlist."""
        first = matches.first_passage_of_document
        self.rows: Integers = np.arange(matches.passages) if documents is None else ranges(first[documents], first[documents + 1])
        """The row of each passage on the shortlist among all passages, in ascending order."""

    def for_all(self, summands: Signals) -> Signals:
        """The summands of a score for all passages, from those of the passages on the shortlist."""
        return summands if self.is_complete else ListedSignals(self, summands)


class ListedSignals(Mapping[str, Column]):
    """The summands of the score of all passages, of which only those on a shortlist have any.

    A column of all passages is made when it is asked for. Most searches need their sum only, `score`.
    """

    def __init__(self, listed: ListedPassages, summands: Signals) -> None:
        self._rows, self._first_stage, self._summands = listed.rows, listed.first_stage, summands

    def __iter__(self) -> Iterator[str]:
        return iter(self._summands)

    def __len__(self) -> int:
        return len(self._summands)

    def __getitem__(self, name: str) -> Column:
        """The summand with this name; 0 for passages that are not on the shortlist."""
        return self._placed(self._summands[name], fact("not on the shortlist", np.zeros(self._passages)))

    @property
    def _passages(self) -> int:
        assert self._first_stage is not None
        return self._first_stage.values.size

    def score(self, label: str) -> Column:
        """The sum of the summands. All other passages have the score of the first stage, moved below these sums."""
        assert self._first_stage is not None
        listed = sum_of(label, list(self._summands.values()))
        is_other = np.ones(self._passages, bool)
        is_other[self._rows] = False
        intercept = float(listed.values.min()) - BELOW - float(self._first_stage.values[is_other].max())
        return self._placed(listed, self._first_stage.affine(f"{FIRST}, moved below the shortlist", 1.0, intercept))

    def _placed(self, listed: Column, others: Column) -> Column:
        """The values of `listed` for the passages on the shortlist, and those of `others` for all others."""
        rows, of_listed, of_others = self._rows, listed.explain, others.explain
        values = others.values.copy()
        values[rows] = listed.values

        def explain(row: int) -> Node:
            at = int(np.searchsorted(rows, row))
            return of_listed(at) if at < rows.size and rows[at] == row else of_others(row)

        return Column(listed.label, values, explain)


def score_of(signals: Signals, label: str) -> Column:
    """The sum of signals with this label; of signals with a shortlist, their score."""
    return signals.score(label) if isinstance(signals, ListedSignals) else sum_of(label, list(signals.values()))
