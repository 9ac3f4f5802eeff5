"""The outcome of tuning: every setting with its score, and the settings that were chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoldOutcome:
    """The result of one fold of a cross-validation.

    The setting of a fold is chosen on the topics of the other folds.
    """

    chosen: Mapping[str, object]
    """The chosen values, by parameter."""
    training_score: float
    """Mean of the measure over the topics of the other folds, with the chosen values."""
    score: float
    """Mean of the measure over the topics of this fold, with the chosen values."""
    topics: int
    """Number of topics of this fold."""


@dataclass(frozen=True, slots=True)
class TuningOutcome:
    """The settings that were tried with their scores, and the chosen settings."""

    parameters: tuple[str, ...]
    """The tuned parameters. A parameter of a model inside another model has a path, such as `base.mu`."""
    settings: tuple[tuple[object, ...], ...]
    """The valid settings that were tried. A setting has one value per parameter, in the order of `parameters`."""
    scores: tuple[float, ...]
    """For each setting, the mean of the measure over all training topics."""
    chosen: Mapping[str, object]
    """The values of the setting that is best on all training topics, by parameter."""
    measure: str
    folds: tuple[FoldOutcome, ...] = ()
    """The folds of a cross-validation. Empty without cross-validation."""
    topics: int = 0
    """Number of all training topics."""
