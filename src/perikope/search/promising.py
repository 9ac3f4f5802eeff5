"""The candidates that can have hits, if a bound of the model tells: the others are neither joined nor scored.

Some models have an upper bound of the scores in a document, computed from how often it contains the query terms. The
candidates with the highest bounds are joined first. The score of their last hit is then a threshold, and all candidates
whose bound is below it can be left out. The hits are the same, with the same scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from perikope.browse.bounds import best_scores, held_terms
from perikope.browse.ranking import FLAT
from perikope.core.arrays import Floats, Integers
from perikope.fetch import Candidates
from perikope.kernels.best_passages import SaturatedTerms
from perikope.kernels.windows import SLACK
from perikope.search.fetching import Fetched
from perikope.search.results import RankedMatches

if TYPE_CHECKING:
    from perikope.search.steps import Search

_FIRST = 48
"""At least this many candidates are joined first."""
_WORTH = 0.7
"""If more than this share of the candidates may have hits, all are joined at once."""


def rank_promising(search: Search, fetched: Fetched) -> RankedMatches | None:
    """The ranking of those candidates that can have hits; None if all candidates should be joined."""
    candidates, query = fetched.candidates, fetched.query
    most = max(_FIRST, 4 * search.depth)
    if len(candidates) < 4 * most or not search.model.is_bounded or not _is_flat(search) or query.negated or query.ungrouped is not query:
        return None
    order = np.argsort(candidates.documents)
    numbers = candidates.documents[order]
    bound, of_passage = search.model.bound(held_terms(search.snapshot, query, numbers))
    first = np.sort(np.argpartition(-bound, most)[:most])
    if of_passage is not None and not search.eligibility.restricts_rows and not query.languages:
        possible = _possible(search, query.terms, numbers, bound, first, of_passage)
        return _ranked(search, fetched, order[possible]) if 0 < possible.size <= _WORTH * numbers.size else None
    ranked = _ranked(search, fetched, order[first])
    scores = ranked.ranking.scores
    possible = _reaching(bound, scores[-1] if scores.size == search.options.k else 0.0)
    if not 0 < possible.size <= _WORTH * numbers.size:
        return None
    return ranked if np.isin(possible, first).all() else _ranked(search, fetched, order[possible])


def _possible(
    search: Search, terms: Sequence[str], numbers: Integers, bound: Floats, first: Integers, of_passage: SaturatedTerms
) -> Integers:
    """The candidates whose best passages have a score that is high enough for a hit; empty if not enough match."""
    _, scores = best_scores(search.snapshot, terms, numbers[first], of_passage)
    depth = search.depth
    threshold = float(np.partition(scores, scores.size - depth)[scores.size - depth]) if scores.size >= depth else 0.0
    possible = _reaching(bound, threshold * (1 - SLACK))
    best, _ = best_scores(search.snapshot, terms, numbers[possible], of_passage)
    return possible[_reaching(best, threshold * (1 - SLACK))]


def _reaching(bound: Floats, threshold: float) -> Integers:
    """The candidates whose bound is not below a threshold, the score of a last hit; none if it is not above 0."""
    return np.flatnonzero(bound * (1 + SLACK) >= threshold) if threshold > 0 else np.zeros(0, np.int64)


def _is_flat(search: Search) -> bool:
    """Whether hits are passages in one list by score, so that none depends on another document."""
    eligibility = search.eligibility
    return eligibility.units == "passages" and eligibility.presentation == FLAT and not search.matches_depend_on_model


def _ranked(search: Search, fetched: Fetched, rows: Integers) -> RankedMatches:
    """The ranking of some of the candidates."""
    candidates = fetched.candidates
    some = Candidates(candidates.documents[rows], candidates.scores[rows], candidates.parts_of_score)
    return search.rank(search.matches(Fetched(some, fetched.query)))
