"""Scores of run files: float32 values that strictly decrease, so that every evaluation tool sorts them the same way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from perikope.core.arrays import Floats, Floats32
from perikope.core.errors import UsageError

Run = dict[str, dict[str, float]]
"""Scores by query id, then by name, in the order of the file. Names are percent-encoded, as in the file."""

Ranking = TypeVar("Ranking")

_LARGEST = np.finfo(np.float32).max
_LARGEST_KEY = int(_LARGEST.view(np.int32))
_MAGNITUDE = np.int32(0x7FFFFFFF)


def falling(scores: Sequence[float]) -> list[float]:
    """Convert scores to strictly decreasing float32 values.

    A score that is not below the previous value is replaced by the next float32 below that value.

    >>> falling([2.0, 2.0, 2.0000001, 1.0])
    [2.0, 1.9999998807907104, 1.999999761581421, 1.0]
    """
    return [float(value) for value in falling_array(np.asarray(scores, dtype=np.float64))]


def falling_array(exact: Floats) -> Floats32:
    """The same as `falling`, from and to arrays."""
    if not np.isfinite(exact).all():
        raise UsageError("a score is not a finite number (NaN or infinite); correct it")
    keys = _keys(np.clip(exact, -_LARGEST, _LARGEST).astype(np.float32))
    # lowered[i] = min(keys[i], lowered[i - 1] - 1): a running minimum once i is added to both sides.
    steps = np.arange(len(keys))
    lowered = np.minimum.accumulate(keys + steps) - steps
    if len(lowered) and lowered[-1] < -_LARGEST_KEY:
        raise UsageError("the scores cannot decrease any further in float32: they are at its lowest value")
    return _from_keys(lowered)


def _keys(values: np.ndarray[tuple[int], np.dtype[np.float32]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Map float32 values to integers in the same order. Neighbouring values differ by 1; 0.0 and -0.0 become 0."""
    bits = values.view(np.int32)
    return np.where(bits < 0, -(bits & _MAGNITUDE).astype(np.int64), bits)


def _from_keys(keys: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    magnitudes = np.abs(keys).astype(np.int32).view(np.float32)
    return np.where(keys < 0, -magnitudes, magnitudes)


def check_column(what: str, text: str) -> None:
    """Raise an error if a text is empty or holds white space and cannot be a column. `what` names it in the error."""
    if len(text.split()) != 1 or text != text.strip():
        raise UsageError(f"the {what} {text!r} cannot stand in a run: it is empty or holds white space")


def each_once(rankings: Iterable[tuple[str, Ranking]]) -> Iterator[tuple[str, Ranking]]:
    """Yield the rankings of a run. Raises an error if a query id occurs twice, is empty or holds white space."""
    written: set[str] = set()
    for qid, ranking in rankings:
        check_column("query id", qid)
        if qid in written:
            raise UsageError(f"query id {qid!r} is ranked twice")
        written.add(qid)
        yield qid, ranking
