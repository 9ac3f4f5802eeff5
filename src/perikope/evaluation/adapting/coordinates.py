"""A coordinate search in the space of a model's settings, and a cautious choice among the settings that it tried."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perikope.core.arrays import Floats
from perikope.evaluation.tuning.scores import choose
from perikope.evaluation.tuning.space import Setting, Space

MOST_ROUNDS = 3
"""Rounds of the search at most. Each tries all values of every parameter, one parameter at a time."""

Scoring = Callable[[Space], Floats]
"""Scores the settings of a space. The result has the shape (settings, documents)."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The settings that a search tried, the general setting first, with the score of each document."""

    space: Space
    scores: Floats
    """Scores with the shape (settings, documents)."""


def search_coordinates(space: Space, score: Scoring) -> Tried:
    """Search a space from its defaults, one parameter at a time. `space.settings` is not used.

    A round scores all settings that differ from the centre in at most one parameter. The best value of each parameter
    makes the next centre. The search ends when the centre stays the same.
    """
    centre: Setting = tuple(space.defaults[path] for path in space.values)
    tried: dict[Setting, Floats] = {}
    for _ in range(MOST_ROUNDS):
        around = [setting for setting in _around(space, centre) if setting not in tried]
        if not around:
            break
        tried |= zip(around, score(replace(space, settings=tuple(around))), strict=True)
        following = _next_centre(space, centre, tried)
        if following == centre:
            break
        centre = following
    return Tried(replace(space, settings=tuple(tried)), np.array(list(tried.values())))


def _around(space: Space, centre: Setting) -> list[Setting]:
    """The centre, and the settings that differ from it in one parameter."""
    changed = [
        (*centre[:i], value, *centre[i + 1 :]) for i, values in enumerate(space.values.values()) for value in values if value != centre[i]
    ]
    return [centre, *changed]


def _next_centre(space: Space, centre: Setting, tried: dict[Setting, Floats]) -> Setting:
    """The setting with the best value of each parameter, as far as the parameter alone improves the centre."""
    best = list(centre)
    for i, values in enumerate(space.values.values()):
        beside = [(*centre[:i], value, *centre[i + 1 :]) for value in (centre[i], *values)]
        known = [setting for setting in beside if setting in tried]
        scores = np.array([tried[setting] for setting in known])
        chosen, _ = choose(scores, range(scores.shape[1]), [float(setting != centre) for setting in known])
        best[i] = known[chosen][i]
    return tuple(best)


def cautious_choice(tried: Tried) -> int:
    """The index of the setting nearest to the defaults that is within one standard error of the best setting.

    The standard error is that of the mean difference between both settings over documents.
    """
    distances = tried.space.distances
    best, _ = choose(tried.scores, range(tried.scores.shape[1]), distances)
    near = [number for number, row in enumerate(tried.scores) if _is_as_good(row, tried.scores[best])]
    return min(near, key=lambda number: (distances[number], -float(tried.scores[number].mean()), number))


def _is_as_good(scores: Floats, best: Floats) -> bool:
    difference = best - scores
    return float(difference.mean()) <= standard_error(difference.tolist())


def standard_error(values: Sequence[float]) -> float:
    """The standard error of the mean of some values; 0 for fewer than two values."""
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
