"""Fusion of two systems, a run and the scores of all passages, as a weighted sum of their scores.

    (1 - w) · minmax(run) + w · minmax(scores)

The scores of each system are min-max normalised over its results for a topic. A passage that a system does not return
has the normalised score 0. The share w of a fold is the one that is best for the topics of the other folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perikope.core.arrays import Floats, Floats32, Integers

SHARES = tuple(step / 20 for step in range(21))
"""Values of the share w that are tried."""
FOLDS = 5
"""Number of folds of topics for the choice of the share w."""


def fused_rankings(
    scores: Floats32,
    run: Mapping[str, float],
    names: Sequence[str],
    number: Mapping[str, int],
    depth: int,
    shares: Sequence[float] = SHARES,
) -> list[list[str]]:
    """The names of the best `depth` results of a topic, one list per share w in `shares`.

    `scores` has one value per passage, -inf for a passage that cannot be a result. `run` has the scores of the other
    system by name. `names` has the name of each passage, and `number` the index of each name in `names`. Passages with
    equal fused scores are sorted by index.
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
    """Scale values so that the smallest value of `over` becomes 0 and the largest 1. Values beyond become 0 or 1.

    `browse.signals.min_max` multiplies by a slope and adds an offset. This function divides instead, so that the best
    value is exactly 1 and ties stay ties.
    """
    low, high = (over.min(), over.max()) if over.size else (0.0, 1.0)
    return np.clip((values - low) / (high - low if high > low else 1.0), 0.0, 1.0)


def choose_shares(values: Floats, fold_of_topic: Integers) -> Integers:
    """For each topic, the index of the share with the highest mean over the topics of the other folds.

    `values` has the values of a measure with the shape (topics, shares).
    """
    chosen = np.zeros(len(values), np.int64)
    for fold in range(int(fold_of_topic.max()) + 1):
        inside = fold_of_topic == fold
        chosen[inside] = int(values[~inside].mean(axis=0).argmax())
    return chosen
