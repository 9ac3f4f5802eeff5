"""The outcome of tuning: every setting with its score, and the settings that were chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoldOutcome:
    """One fold of a cross-validation, whose setting is chosen on the topics of the other folds."""

    chosen: Mapping[str, object]
    """The chosen values, by parameter."""
    training_score: float
    """Mean over the topics of the other folds."""
    score: float
    """Mean over the topics of this fold."""
    topics: int
    """Number of topics of this fold."""


@dataclass(frozen=True, slots=True)
class TuningOutcome:
    """The settings that were tried, and the chosen ones."""

    parameters: tuple[str, ...]
    """In the order of the values in `settings`; a parameter of a model inside another is a path, such as `base.mu`."""
    settings: tuple[tuple[object, ...], ...]
    scores: tuple[float, ...]
    """The mean of the measure over all training topics, one per setting."""
    chosen: Mapping[str, object]
    """The values of the setting that is best on all training topics."""
    measure: str
    folds: tuple[FoldOutcome, ...] = ()
    """The folds of a cross-validation; empty where the training topics are not the topics that are reported."""
    topics: int = 0
    """Number of training topics in all folds together."""
