"""The outcome of tuning: every setting with its score, and the settings that were chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DIGITS = 9
"""Decimals of a mean that are compared between settings. Smaller differences may be rounding errors."""


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

    @property
    def idle(self) -> tuple[str, ...]:
        """The tuned parameters that the measure does not depend on.

        Settings that differ only in such a parameter have the same score.
        """
        scores = [round(score, DIGITS) for score in self.scores]
        idle = []
        for i, parameter in enumerate(self.parameters):
            by_others: dict[tuple[object, ...], list[float]] = {}
            for setting, score in zip(self.settings, scores, strict=True):
                by_others.setdefault((*setting[:i], *setting[i + 1 :]), []).append(score)
            is_tried = len({repr(setting[i]) for setting in self.settings}) > 1
            is_compared = len(by_others) < len(scores) or len(set(scores)) == 1
            if is_tried and is_compared and all(len(set(of_group)) == 1 for of_group in by_others.values()):
                idle.append(parameter)
        return tuple(idle)

    @property
    def idle_note(self) -> str:
        """One sentence about the parameters that the measure does not depend on; empty if there are none."""
        if not self.idle:
            return ""
        kept = ", ".join(f"{parameter}={self.chosen[parameter]}" for parameter in self.idle)
        return f"{self.measure} does not depend on {' and '.join(self.idle)}; the value nearest to the default is taken ({kept})"
