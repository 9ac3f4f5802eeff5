"""Scores that every evaluation tool orders in the same way: float32 values that strictly decrease from line to line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from perikope.core.errors import UsageError

Run = dict[str, dict[str, float]]
"""Score by query id and name, in the order of the file; names are percent-encoded, as in the file."""

Ranking = TypeVar("Ranking")

_LARGEST = np.finfo(np.float32).max
_LARGEST_KEY = int(_LARGEST.view(np.int32))
_MAGNITUDE = np.int32(0x7FFFFFFF)


def falling(scores: Sequence[float]) -> list[float]:
    """Scores as strictly decreasing float32 values: where one does not decrease, the next smaller float32 replaces it.

    >>> falling([2.0, 2.0, 2.0000001, 1.0])
    [2.0, 1.9999998807907104, 1.999999761581421, 1.0]
    """
    exact = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(exact).all():
        raise UsageError("a score is not a finite number")
    keys = _keys(np.clip(exact, -_LARGEST, _LARGEST).astype(np.float32))
    # lowered[i] = min(keys[i], lowered[i - 1] - 1): a running minimum once i is added to both sides.
    steps = np.arange(len(keys))
    lowered = np.minimum.accumulate(keys + steps) - steps
    if len(lowered) and lowered[-1] < -_LARGEST_KEY:
        raise UsageError("the scores cannot decrease any further in float32: they are at its lowest value")
    return [float(value) for value in _from_keys(lowered)]


def _keys(values: np.ndarray[tuple[int], np.dtype[np.float32]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Integers in the order of the float32 values, 1 apart for neighbouring values; both zeros become 0."""
    bits = values.view(np.int32)
    return np.where(bits < 0, -(bits & _MAGNITUDE).astype(np.int64), bits)


def _from_keys(keys: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    magnitudes = np.abs(keys).astype(np.int32).view(np.float32)
    return np.where(keys < 0, -magnitudes, magnitudes)


def check_column(what: str, text: str) -> None:
    """Raise an error for a text that would not be exactly one column of a line; `what` names it in the error."""
    if len(text.split()) != 1 or text != text.strip():
        raise UsageError(f"the {what} {text!r} cannot stand in a run: it is empty or holds white space")


def each_once(rankings: Iterable[tuple[str, Ranking]]) -> Iterator[tuple[str, Ranking]]:
    """Yield the rankings of a run; a query id that occurs twice, is empty or holds white space is an error."""
    written: set[str] = set()
    for qid, ranking in rankings:
        check_column("query id", qid)
        if qid in written:
            raise UsageError(f"query id {qid!r} is ranked twice")
        written.add(qid)
        yield qid, ranking
