"""The report of an experiment: its tables as Markdown, LaTeX and one HTML page with plots, and all values as CSV.

The same outcome always gives the same bytes. They do not depend on the time, the machine or the folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perikope.core.files import replacing
from perikope.evaluation.experiment.outcome import Outcome
from perikope.evaluation.experiment.report.findings import find
from perikope.evaluation.experiment.report.latex import latex_report
from perikope.evaluation.experiment.report.markdown import markdown_report
from perikope.evaluation.experiment.report.page import html_report
from perikope.evaluation.experiment.report.spreadsheet import csv_lines
from perikope.evaluation.experiment.report.tables import ExtraTable

FILES = ("report.md", "report.tex", "report.html", "values.csv")


def write_report(outcome: Outcome, folder: Path, extra: Sequence[ExtraTable] = ()) -> None:
    """Write `report.md`, `report.tex`, `report.html` and `values.csv` to a folder, replacing older ones.

    The tables `extra` come after those of the outcome.
    """
    findings = find(outcome, extra)
    texts = (markdown_report(findings), latex_report(findings), html_report(findings), "".join(csv_lines(outcome)))
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(FILES, texts, strict=True):
        with replacing(folder / name) as file:
            file.write(text)
