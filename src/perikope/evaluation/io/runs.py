"""Runs: the results of an experiment, written so that every tool sees the order we meant, and read in three forms.

TREC (`qid Q0 name rank score tag`), CLEF-IP (`topic Q0 document xpath rank score`) and INEX (`topic Q0 document rank score tag start
length`); which one a file is of, its first line shows.

trec_eval and pytrec_eval do not look at ranks: they keep scores as float32 and put ties in descending order of names.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from perikope.core.errors import InputError, UsageError, unknown
from perikope.core.files import replacing
from perikope.evaluation.io import clef_ip, inex
from perikope.evaluation.io.lines import columns, number_in, numbered_lines
from perikope.evaluation.io.scores import Run, check_column, each_once, falling

if TYPE_CHECKING:
    from perikope.search.facade import Results

__all__ = ["RUN_FORMS", "Run", "falling", "ranking_in", "read_run", "run_form", "write_run"]

RUN_FORMS = ("trec", "clef-ip", "inex")
"""The forms of runs by name."""

COLUMNS = "qid Q0 name rank score tag"


def read_run(path: str | os.PathLike[str], form: str = "auto") -> Run:
    """The scores of a run file, by names of passages or documents.

    `form` is one of `RUN_FORMS`, or `auto`: what the first line shows. Passages of a CLEF-IP run are named by their elements
    (`document#/xpath`). Of an INEX run, whose results are stretches of text without a name, the documents are given, each with the score
    of its first result; `perikope.evaluation.io.inex.read_run` gives all of it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "run.gz")
    ...     write_run(file, [("q1", [("d1#p2", 3.5), ("d2#p1", 3.5)])])
    ...     read_run(file)
    {'q1': {'d1#p2': 3.5, 'd2#p1': 3.49999976}}
    """
    path = Path(path)
    if form == "auto":
        form = run_form(path)
    if form not in RUN_FORMS:
        raise unknown("form of runs", form, ["auto", *RUN_FORMS])
    if form == "clef-ip":
        return clef_ip.read_run(path)
    return inex.ranked_documents(inex.read_run(path)) if form == "inex" else _read_trec(path)


def run_form(path: Path) -> str:
    """The form of a run file, by its first line; an `InputError` where that is of none."""
    for number, line in numbered_lines(path):
        cells = line.split()
        if len(cells) == len(inex.RUN_COLUMNS.split()):
            return "inex"
        if len(cells) != len(COLUMNS.split()):
            raise InputError(
                f"expected 6 columns ({COLUMNS}; CLEF-IP: {clef_ip.RUN_COLUMNS}) or 8 ({inex.RUN_COLUMNS}), found {len(cells)}",
                path=path,
                line=number,
            )
        # A rank is a number and a path begins with a slash: nothing is both.
        return "clef-ip" if cells[3].startswith("/") else "trec"
    return "trec"


def _read_trec(path: Path) -> Run:
    """Ranks must be whole numbers and are otherwise not looked at."""
    run: Run = {}
    for number, line in numbered_lines(path):
        qid, _, name, rank, score, _ = columns(line, COLUMNS, path, number)
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


def ranking_in(form: str) -> Callable[[Results], list[Any]]:
    """What makes of the results of a search what `write_run` takes for a run of this form."""
    if form == "trec":
        return lambda results: results.names()
    if form not in RUN_FORMS:
        raise unknown("form of runs", form, RUN_FORMS)
    placed: Callable[..., list[Any]] = clef_ip.by_path if form == "clef-ip" else inex.extracts
    return lambda results: placed(results.names(), results.places_of(results.ranking.rows).__getitem__)


def write_run(
    path: str | os.PathLike[str], rankings: Iterable[tuple[str, Sequence[Any]]], tag: str = "perikope", *, form: str = "trec"
) -> None:
    """Write rankings, names and scores with the best first, as a run with ranks from 1 and scores that fall in float32.

    The file takes its name when it is complete; a name that ends in `.gz` is compressed. For a `form` other than `trec` rankings are what
    `ranking_in` gives; a CLEF-IP run has no tag.
    """
    if form not in RUN_FORMS:
        raise unknown("form of runs", form, RUN_FORMS)
    if form == "clef-ip":
        clef_ip.write_run(path, rankings)
    elif form == "inex":
        inex.write_run(path, rankings, tag)
    else:
        _write_trec(path, rankings, tag)


def _write_trec(path: str | os.PathLike[str], rankings: Iterable[tuple[str, Sequence[tuple[str, float]]]], tag: str) -> None:
    check_column("tag", tag)
    with replacing(path) as file:
        for qid, ranking in each_once(rankings):
            _write_ranking(file, qid, ranking, tag)


def _write_ranking(file: TextIO, qid: str, ranking: Sequence[tuple[str, float]], tag: str) -> None:
    seen: set[str] = set()
    scores = falling([score for _, score in ranking])
    for rank, ((name, _), score) in enumerate(zip(ranking, scores, strict=True), start=1):
        check_column("name", name)
        if name in seen:
            raise UsageError(f"{name!r} stands twice in the list of query {qid!r}")
        seen.add(name)
        # Nine significant digits give every float32 back exactly.
        file.write(f"{qid} Q0 {name} {rank} {score:.9g} {tag}\n")
