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

        Settings that differ only in such a parameter have the same score. One exception is allowed: the smallest or the
        largest of at least four values may be worse. With the weight 0, for example, a signal has no influence at all.
        """
        return tuple(parameter for i, parameter in enumerate(self.parameters) if self._is_idle(i))

    def _is_idle(self, i: int) -> bool:
        by_others: dict[tuple[object, ...], list[tuple[object, float]]] = {}
        for setting, score in zip(self.settings, self.scores, strict=True):
            by_others.setdefault((*setting[:i], *setting[i + 1 :]), []).append((setting[i], round(score, DIGITS)))
        groups = [group for group in by_others.values() if len(group) > 1]
        if not groups:
            # A random search. Nothing can be compared but all settings.
            return len(self.settings) > 1 and len({round(score, DIGITS) for score in self.scores}) == 1
        return all(map(_is_flat, groups))

    @property
    def idle_note(self) -> str:
        """One sentence about the parameters that the measure does not depend on; empty if there are none."""
        if not self.idle:
            return ""
        kept = ", ".join(f"{parameter}={self.chosen[parameter]}" for parameter in self.idle)
        return f"{self.measure} does not depend on {' and '.join(self.idle)}; the value nearest to the default is taken ({kept})"


def _is_flat(group: list[tuple[object, float]]) -> bool:
    """Whether all values of a parameter have the same score, except perhaps a worse one at one end of four or more.

    `group` has the values with their scores.
    """
    if len({score for _, score in group}) == 1:
        return True
    if len(group) < 4 or not all(isinstance(value, (int, float)) for value, _ in group):
        return False
    scores = [score for _, score in sorted(group, key=lambda pair: pair[0])]  # type: ignore[arg-type, return-value]
    inner = set(scores[1:-1])
    ends = [score for score in (scores[0], scores[-1]) if score not in inner]
    return len(inner) == 1 and len(ends) == 1 and ends[0] < min(inner)
