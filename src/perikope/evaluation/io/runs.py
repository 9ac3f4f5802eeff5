"""Reads and writes runs, the rankings of topics, in three forms. Every evaluation tool sees written runs in one order.

The forms are TREC (`qid Q0 name rank score tag`), CLEF-IP (`topic Q0 document xpath rank score`) and INEX (`topic Q0
document rank score tag start length`). The first line of a file decides its form.

trec_eval and pytrec_eval ignore ranks. They store scores as float32 and sort equal scores by descending name.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from perikope.core.errors import InputError, unknown
from perikope.core.files import replacing
from perikope.core.name_lines import RankedNames
from perikope.evaluation.io import clef_ip, inex
from perikope.evaluation.io.lines import columns, number_in, numbered_lines
from perikope.evaluation.io.scores import Run, check_column, each_once, falling

if TYPE_CHECKING:
    from perikope.search.facade import Results

__all__ = ["RUN_FORMS", "Run", "falling", "ranking_in", "read_run", "run_form", "write_run"]

RUN_FORMS = ("trec", "clef-ip", "inex")
"""Names of the forms of runs."""

COLUMNS = "qid Q0 name rank score tag"


def read_run(path: str | os.PathLike[str], form: str = "auto") -> Run:
    """Read the scores of a run file, by query id and name of a passage or document.

    `form` is one of `RUN_FORMS`, or `auto`, which chooses the form by the first line. Passages of a CLEF-IP run are
    named by their elements (`document#/xpath`). The results of an INEX run are ranges of text without a name: each
    document has the score of its first result. `perikope.evaluation.io.inex.read_run` returns the ranges.

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
    """The form of a run file, by its first line; `trec` for an empty file.

    Raises an `InputError` if the line has none of the forms.
    """
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
        # The fourth column is a rank in TREC runs, and a path, which begins with a slash, in CLEF-IP runs.
        return "clef-ip" if cells[3].startswith("/") else "trec"
    return "trec"


def _read_trec(path: Path) -> Run:
    """Read the scores of a TREC run. Ranks must be whole numbers, but are not used."""
    run: Run = {}
    for number, line in numbered_lines(path):
        qid, _, name, rank, score, _ = columns(line, COLUMNS, path, number)
        # A CLEF-IP run also has six columns; without this check its ranks would be read as scores.
        number_in(rank, int, "the rank", path, number)
        value = number_in(score, float, "the score", path, number)
        if not math.isfinite(value):
            raise InputError(f"the score must be a finite number, not {score!r}", path=path, line=number)
        scores = run.setdefault(qid, {})
        if name in scores:
            raise InputError(f"{name!r} occurs twice in the list of query {qid!r}", path=path, line=number)
        scores[name] = value
    return run


def ranking_in(form: str) -> Callable[[Results], list[Any]]:
    """A function that converts the results of a search to the ranking that `write_run` needs for this form."""
    if form == "trec":
        return lambda results: results.ranked_names()  # type: ignore[return-value]
    if form not in RUN_FORMS:
        raise unknown("form of runs", form, RUN_FORMS)
    convert: Callable[..., list[Any]] = clef_ip.by_path if form == "clef-ip" else inex.extracts
    return lambda results: convert(results.names(), results.places_of(results.ranking.rows).__getitem__)


def write_run(
    path: str | os.PathLike[str], rankings: Iterable[tuple[str, Sequence[Any]]], tag: str = "perikope", *, form: str = "trec"
) -> None:
    """Write rankings as a run, with ranks from 1 and strictly decreasing float32 scores.

    `rankings` has pairs of a query id and its results, best first. Results are pairs of name and score or, if `form` is
    not `trec`, results of the function `ranking_in(form)`. A CLEF-IP run has no tag. The file is compressed if its name
    ends in `.gz`. It replaces an older file only when it is complete.
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


def _write_ranking(file: TextIO, qid: str, ranking: Iterable[tuple[str, float]], tag: str) -> None:
    # Imported only here, because only writing needs kernels.
    from perikope.evaluation.io.run_lines import check_names, falling_by_kernel, lines_of_ranking

    ranked = RankedNames.of(ranking)
    scores = falling_by_kernel(ranked.scores)
    check_names(ranked.lines, qid)
    file.write(lines_of_ranking(qid, ranked.lines, scores, tag))
