"""Draws the figures that an experiment adds to its report, for the page and as SVG files of their own."""

from __future__ import annotations

from collections.abc import Sequence

from perikope.evaluation.experiment.extras import ExtraFigure, Series
from perikope.evaluation.experiment.outcome import slug
from perikope.evaluation.experiment.report.drawing import (
    SIZE,
    Axis,
    Picture,
    dots,
    escape,
    frame,
    line,
    listed_axis,
    name_of,
    numeric_axis,
    rectangles,
)
from perikope.evaluation.experiment.report.plots import FEW, HIGHLIGHTED, is_even, swatch
from perikope.evaluation.experiment.report.surface import standalone
from perikope.evaluation.experiment.report.tables import counted, figure, value_text

MARKED = 24
"""Maximum number of points of a line that are marked by dots."""
FOLDER = "figures"


def figure_files(figures: Sequence[ExtraFigure]) -> list[str]:
    """The names of the SVG files of figures, in the folder of the report."""
    return [f"{FOLDER}/{number:02d}-{slug(drawn.title)}.svg" for number, drawn in enumerate(figures, 1)]


def figure_html(drawn: ExtraFigure) -> str:
    """The HTML of a figure with its legend."""
    picture = picture_of(drawn)
    legend = "".join(
        f"<li>{swatch(_colour(number, drawn), is_bar=drawn.kind == 'bars')}<span>{name_of(series.name)}</span></li>"
        for number, series in enumerate(drawn.series)
    )
    legend = f'<ul class="legend">{legend}</ul>' if len(drawn.series) > 1 else ""
    return frame(picture.shapes, picture.x, picture.y, picture.title, picture.description, picture.kind) + legend


def figure_svg(drawn: ExtraFigure) -> str:
    """A figure as an SVG file that needs no style sheet."""
    names = [(series.name, _colour(number, drawn)) for number, series in enumerate(drawn.series)]
    return standalone(drawn.title, drawn.caption, [picture_of(drawn)], names if len(names) > 1 else ())


def picture_of(drawn: ExtraFigure) -> Picture:
    """The shapes and axes of a figure.

    Values that suit no linear scale, such as 10, 100 and 1000, have equal distances.
    """
    places = sorted({x for series in drawn.series for x, _ in series.points})
    heights = [y for series in drawn.series for _, y in series.points]
    y = numeric_axis(heights, drawn.y, with_zero=drawn.with_zero or drawn.kind == "bars")
    if drawn.kind == "lines" and len(places) > 1 and is_even(places):
        x = numeric_axis(places, drawn.x, is_tight=len(places) > FEW)
        across = {place: x.place(place) for place in places}
    else:
        x = listed_axis([value_text(place) for place in places], drawn.x, characters=90)
        across = {place: x.place(step + 0.5) for step, place in enumerate(places)}
    if drawn.kind == "bars":
        shapes = _bars(drawn, across, SIZE / max(len(places), 1), y)
    else:
        shapes = "".join(_line(_colour(number, drawn), drawn.series[number], across, y) for number in reversed(range(len(drawn.series))))
    if drawn.band is not None:
        shapes = rectangles([(x.place(drawn.band[0]), 0, x.place(drawn.band[1]), SIZE)], "band") + shapes
    return Picture(shapes, x, y, drawn.title, _description(drawn), "large")


def _line(colour: str, series: Series, across: dict[float, float], y: Axis) -> str:
    points = [(across[x], y.down(value)) for x, value in series.points]
    marks = dots(points, f"mark {colour}") if len(points) <= MARKED else ""
    return line(points, f"curve {colour}", series.name) + marks


def _bars(drawn: ExtraFigure, across: dict[float, float], step: float, y: Axis) -> str:
    """The bars of all series, side by side at each place. A step is the distance between two places."""
    width = 0.8 * step / max(len(drawn.series), 1)
    shapes = ""
    for number, one in enumerate(drawn.series):
        lefts = [(across[x] - 0.4 * step + number * width, value) for x, value in one.points]
        corners = [(left, y.down(max(value, 0)), left + width, y.down(min(value, 0))) for left, value in lefts]
        shapes += rectangles(corners, f"bar {_colour(number, drawn)}")
    return shapes


def _colour(number: int, drawn: ExtraFigure) -> str:
    """The CSS class of the series with this index. Series after the first eight are grey.

    The first colour is that of text, which suits lines but not bars.
    """
    colour = number + (2 if drawn.kind == "bars" else 1)
    return f"c{colour}" if colour <= HIGHLIGHTED else "behind"


def _description(drawn: ExtraFigure) -> str:
    """The content of a figure in words, for screen readers."""
    parts = []
    for series in drawn.series:
        heights = [y for _, y in series.points]
        parts.append(
            f"{series.name}: {counted(len(heights), 'point')}, from {figure(min(heights))} to {figure(max(heights))}"
            if heights
            else series.name
        )
    return "; ".join(parts) or escape(drawn.caption)
