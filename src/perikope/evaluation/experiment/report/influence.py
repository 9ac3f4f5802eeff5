"""Writes curves of influence over the tokens of a document, as a figure or as a table."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from perikope.browse.signals import Curve
from perikope.core.files import replacing
from perikope.evaluation.experiment.influence import influence_figure
from perikope.evaluation.experiment.report.extra_figures import figure_svg


def write_curves(path: Path, curves: Sequence[Curve], title: str) -> None:
    """Write curves over the same tokens to a file: as a figure if it ends in `.svg`, else as a CSV table.

    The table has one row per token and one column per curve.
    """
    with replacing(path) as file:
        if path.suffix == ".svg":
            file.write(figure_svg(influence_figure(curves, title)))
            return
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["token", *(curve.label for curve in curves)])
        values = zip(*(curve.values for curve in curves), strict=True)
        rows.writerows([token, *of_token] for token, of_token in enumerate(values))
