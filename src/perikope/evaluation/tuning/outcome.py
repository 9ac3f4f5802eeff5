"""What came of tuning: every setting with its score, and which one was chosen on which topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoldOutcome:
    """One fold of a cross-validation: what the other folds' topics chose, their mean with it, and that of the fold's own topics."""

    chosen: Mapping[str, object]
    training_score: float
    score: float
    topics: int
    """Of the fold itself."""


@dataclass(frozen=True, slots=True)
class TuningOutcome:
    """The settings that were tried, and which one was chosen."""

    parameters: tuple[str, ...]
    """In the order of the values in `settings`; a parameter of a model inside another has a path, such as `base.mu`."""
    settings: tuple[tuple[object, ...], ...]
    scores: tuple[float, ...]
    """The mean of the measure over all training topics, one a setting."""
    chosen: Mapping[str, object]
    """The best on all training topics."""
    measure: str
    folds: tuple[FoldOutcome, ...] = ()
    """Where the figures come from a cross-validation; empty where training topics are others than those reported."""
    topics: int = 0
    """Training topics, of all folds together."""
