"""The report of an experiment: its tables as Markdown, LaTeX and one HTML page with plots, and all values as CSV.

The same outcome always gives the same bytes. They do not depend on the time, the machine or the folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perikope.core.files import replacing
from perikope.evaluation.experiment.extras import ExtraTable
from perikope.evaluation.experiment.outcome import Outcome
from perikope.evaluation.experiment.report.beside import beside_lines
from perikope.evaluation.experiment.report.extra_figures import FOLDER, figure_files, figure_svg
from perikope.evaluation.experiment.report.findings import find
from perikope.evaluation.experiment.report.latex import latex_report
from perikope.evaluation.experiment.report.markdown import markdown_report
from perikope.evaluation.experiment.report.page import html_report
from perikope.evaluation.experiment.report.spreadsheet import csv_lines

FILES = ("report.md", "report.tex", "report.html", "values.csv")
"""The files that every report has."""
PUBLISHED = "published.csv"
"""The file with published figures beside ours, if the experiment has any."""


def write_report(outcome: Outcome, folder: Path, extra: Sequence[ExtraTable] = ()) -> None:
    """Write the report to a folder, replacing an older one.

    The files are `report.md`, `report.tex`, `report.html` and `values.csv`. An outcome with figures gets a folder
    `figures/` with one SVG file per figure, and one with published tables gets `published.csv`. `extra` has further
    tables.
    """
    findings = find(outcome, extra)
    texts = dict(
        zip(FILES, (markdown_report(findings), latex_report(findings), html_report(findings), "".join(csv_lines(outcome))), strict=True)
    )
    texts |= zip(figure_files(findings.figures), map(figure_svg, findings.figures), strict=True)
    if findings.besides:
        texts[PUBLISHED] = "".join(beside_lines(findings.besides))
    for stale in (folder / PUBLISHED, *sorted((folder / FOLDER).glob("*.svg"))):
        if stale.relative_to(folder).as_posix() not in texts:
            stale.unlink(missing_ok=True)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with replacing(folder / name) as file:
            file.write(text)
