"""Learns one weight per feature, by the softmax cross-entropy of ListNet (Cao et al. 2007).

The loss of a topic is

    -Σ_i g_i / Σ g · ln(exp(s_i) / Σ_j n_j exp(s_j))

where g_i is the grade of example i, s_i = w · f_i its score, and n_i the number of passages that it represents.

The loss is convex, and there are few features, so Newton's method is exact and fast. It has no step size and no random
start. The only setting is the penalty on large weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perikope.core.arrays import Floats
from perikope.core.errors import UsageError
from perikope.evaluation.learning.examples import Group

STEPS = 100
TOLERANCE = 1e-9
DIGITS = 8
"""Significant digits of a weight. Rounding makes weights independent of the order in which a machine adds numbers."""


def fit_linear(groups: Sequence[Group], *, l2: float = 0.03) -> tuple[float, ...]:
    """Learn one weight per feature, in the order of the columns of `Group.features`.

    The penalty is `l2` / 2 times the sum of the squared weights, for features scaled to a standard deviation of 1.
    Topics without a relevant example are not used.
    """
    if not 0 < l2 < np.inf:
        raise UsageError(f"the penalty l2 must be above 0, not {l2:g}")
    useful = [group for group in groups if group.grades.sum() > 0]
    if not useful:
        raise UsageError("no topic has a relevant passage among its candidates; fetch more documents, or check the judgements")
    scale = deviations(useful)
    scaled = [(group.features * scale, group.grades / group.grades.sum(), np.log(group.stands_for)) for group in useful]
    weights = np.zeros(scale.size)
    loss, gradient, hessian = _loss(scaled, weights, l2)
    for _ in range(STEPS):
        step = np.linalg.solve(hessian, gradient)
        decrease = float(gradient @ step)
        if decrease < TOLERANCE**2:
            break
        length = 1.0
        while True:
            trial = _loss(scaled, weights - length * step, l2)
            if trial[0] <= loss - 1e-4 * length * decrease or length < 1e-6:
                break
            length /= 2
        weights, (loss, gradient, hessian) = weights - length * step, trial
    return tuple(float(f"{weight:.{DIGITS}g}") for weight in weights * scale)


def deviations(groups: Sequence[Group]) -> Floats:
    """One over the standard deviation of each feature within topics; 0 for a feature that is constant within topics.

    Each example has the weight `Group.stands_for`.
    """
    total, passages = np.zeros(groups[0].features.shape[1]), 0.0
    for group in groups:
        count = group.stands_for.sum()
        mean = group.stands_for @ group.features / count
        total += group.stands_for @ (group.features - mean) ** 2
        passages += count
    deviation = np.sqrt(total / passages)
    return np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-9)


def _loss(groups: Sequence[tuple[Floats, Floats, Floats]], weights: Floats, l2: float) -> tuple[float, Floats, Floats]:
    """The mean loss over topics plus the penalty, its gradient and its Hessian.

    Each group has the features, the grades divided by their sum, and the logarithm of `Group.stands_for`.
    """
    loss, gradient, hessian = 0.0, np.zeros(weights.size), np.zeros((weights.size, weights.size))
    for features, target, log_count in groups:
        scores = features @ weights
        logits = scores + log_count
        highest = logits.max()
        share = np.exp(logits - highest)
        total = share.sum()
        share /= total
        mean = share @ features
        loss += float(highest + np.log(total) - target @ scores)
        gradient += mean - target @ features
        hessian += (features * share[:, None]).T @ features - np.outer(mean, mean)
    count = len(groups)
    loss = loss / count + l2 / 2 * float(weights @ weights)
    return loss, gradient / count + l2 * weights, hessian / count + l2 * np.eye(weights.size)
