"""All values of an experiment as CSV: one row per sweep, system and topic, and one column per measure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from perikope.evaluation.experiment.outcome import Outcome
from perikope.evaluation.experiment.report.tables import clean


def csv_lines(outcome: Outcome) -> Iterator[str]:
    """Yield the lines of the CSV file, the header first. Numbers are not rounded."""
    yield csv_line(["sweep", "system", "topic", *map(guarded, outcome.measures)])
    for sweep in outcome.sweeps:
        for system in sweep.systems:
            names = [guarded(sweep.label), guarded(system.name)]
            for qid in system.values[outcome.measures[0]] if outcome.measures else ():
                yield csv_line([*names, guarded(qid), *(repr(float(system.values[measure][qid])) for measure in outcome.measures)])


def guarded(text: str) -> str:
    """A text that no spreadsheet reads as a formula. A text that begins like a formula gets an apostrophe in front.

    >>> guarded("=1+1"), guarded("bm25")
    ("'=1+1", 'bm25')
    """
    text = clean(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠")) else text


def csv_line(cells: list[str]) -> str:
    """A line of a CSV file."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()
