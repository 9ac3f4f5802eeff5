"""TREC runs, `qid Q0 name rank score tag`, read and written so that every tool sees the order we meant.

trec_eval and pytrec_eval do not look at ranks: they keep scores as float32 and put ties in descending order of names.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from perikope.errors import InputError, UsageError
from perikope.io.lines import columns, number_in, numbered_lines, replacing

Run = dict[str, dict[str, float]]
"""Score by name by query id, in the order of the file; names as they stand there, percent-encoded."""

_LARGEST = np.finfo(np.float32).max
_LARGEST_KEY = int(_LARGEST.view(np.int32))
_MAGNITUDE = np.int32(0x7FFFFFFF)


def read_run(path: str | os.PathLike[str]) -> Run:
    """The scores of a TREC run file; ranks must be whole numbers and are otherwise not looked at.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "run.gz")
    ...     write_run(file, [("q1", [("d1#p2", 3.5), ("d2#p1", 3.5)])])
    ...     read_run(file)
    {'q1': {'d1#p2': 3.5, 'd2#p1': 3.49999976}}
    """
    path = Path(path)
    run: Run = {}
    for number, line in numbered_lines(path):
        qid, _, name, rank, score, _ = columns(line, "qid Q0 name rank score tag", path, number)
        # A CLEF-IP run has six columns as well; its rank would be taken for a score that rises.
        number_in(rank, int, "the rank", path, number)
        value = number_in(score, float, "the score", path, number)
        if not math.isfinite(value):
            raise InputError(f"the score must be a finite number, not {score!r}", path=path, line=number)
        scores = run.setdefault(qid, {})
        if name in scores:
            raise InputError(f"{name!r} stands twice in the list of query {qid!r}", path=path, line=number)
        scores[name] = value
    return run


def write_run(path: str | os.PathLike[str], rankings: Iterable[tuple[str, Sequence[tuple[str, float]]]], tag: str = "perikope") -> None:
    """Write rankings, best first, as a TREC run with ranks from 1 and scores that fall in float32.

    The file takes its name when it is complete; a name that ends in `.gz` is compressed.
    """
    _check_column("tag", tag)
    written: set[str] = set()
    with replacing(path) as file:
        for qid, ranking in rankings:
            _check_column("query id", qid)
            if qid in written:
                raise UsageError(f"query id {qid!r} is ranked twice")
            written.add(qid)
            _write_ranking(file, qid, ranking, tag)


def falling(scores: Sequence[float]) -> list[float]:
    """The scores as float32 values, each lowered to the next one below its forerunner where it does not fall by itself.

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
        raise UsageError("the scores are too low to fall any further in float32")
    return [float(value) for value in _from_keys(lowered)]


def _keys(values: np.ndarray[tuple[int], np.dtype[np.float32]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Whole numbers that order float32 values and differ by one between neighbours; both zeros are 0."""
    bits = values.view(np.int32)
    return np.where(bits < 0, -(bits & _MAGNITUDE).astype(np.int64), bits)


def _from_keys(keys: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    magnitudes = np.abs(keys).astype(np.int32).view(np.float32)
    return np.where(keys < 0, -magnitudes, magnitudes)


def _write_ranking(file: TextIO, qid: str, ranking: Sequence[tuple[str, float]], tag: str) -> None:
    seen: set[str] = set()
    scores = falling([score for _, score in ranking])
    for rank, ((name, _), score) in enumerate(zip(ranking, scores, strict=True), start=1):
        _check_column("name", name)
        if name in seen:
            raise UsageError(f"{name!r} stands twice in the list of query {qid!r}")
        seen.add(name)
        # Nine significant digits give every float32 back exactly.
        file.write(f"{qid} Q0 {name} {rank} {score:.9g} {tag}\n")


def _check_column(what: str, text: str) -> None:
    if len(text.split()) != 1 or text != text.strip():
        raise UsageError(f"the {what} {text!r} cannot stand in a run: it is empty or holds white space")
