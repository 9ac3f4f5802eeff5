"""Fusion of two systems by their scores: a run, and scores of all passages.

    (1 - w) · minmax(run) + w · minmax(scores)

Both are min-max normalised over the results of a topic; a passage that one of them does not rank has 0 there. The
share w is chosen on other topics: each fold gets the share that is best for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perikope.core.arrays import Floats, Floats32, Integers

SHARES = tuple(step / 20 for step in range(21))
"""Shares of the second system that are tried."""
FOLDS = 5
"""Folds of topics for the choice of a share."""


def fused_rankings(
    scores: Floats32,
    run: Mapping[str, float],
    names: Sequence[str],
    number: Mapping[str, int],
    depth: int,
    shares: Sequence[float] = SHARES,
) -> list[list[str]]:
    """The names of the best `depth` results of a topic, for each share of `scores` in the fusion.

    `scores` has one value per passage, -inf for a passage that cannot be a result. `number` is the inverse of
    `names`. Equal fused scores are ordered by the number of the passage.
    """
    best = np.argpartition(-scores, min(depth, scores.size) - 1)[:depth]
    best = best[scores[best] > -np.inf]
    listed = np.array([number[name] for name in run if name in number], np.int64)
    listed_scores = np.array([run[name] for name in run if name in number])
    results = np.union1d(best, listed)
    of_scores = min_max(scores[results].astype(np.float64), scores[best].astype(np.float64))
    of_run = np.zeros(results.size)
    of_run[np.searchsorted(results, listed)] = min_max(listed_scores, listed_scores)
    orders = (np.lexsort((results, -((1 - share) * of_run + share * of_scores)))[:depth] for share in shares)
    return [[names[passage] for passage in results[order].tolist()] for order in orders]


def min_max(values: Floats, over: Floats) -> Floats:
    """Values spread over 0 to 1 by the smallest and largest of `over`; values outside that range become 0 or 1.

    Unlike `browse.signals.min_max` it has no slope and offset: the best value must be exactly 1, so that ties stay
    ties.
    """
    low, high = (over.min(), over.max()) if over.size else (0.0, 1.0)
    return np.clip((values - low) / (high - low if high > low else 1.0), 0.0, 1.0)


def choose_shares(values: Floats, fold_of_topic: Integers) -> Integers:
    """The number of the share for each topic, the best on the topics of other folds; `values` is (topics, shares)."""
    chosen = np.zeros(len(values), np.int64)
    for fold in range(int(fold_of_topic.max()) + 1):
        inside = fold_of_topic == fold
        chosen[inside] = int(values[~inside].mean(axis=0).argmax())
    return chosen
