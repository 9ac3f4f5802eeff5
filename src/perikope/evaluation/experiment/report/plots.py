"""The plots of a report: values by topic, differences by topic, precision over recall, and scores of tuned settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from perikope.evaluation.experiment.outcome import SystemOutcome
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
    number,
    numeric_axis,
    rectangles,
    svg,
    x_marks,
)
from perikope.evaluation.experiment.report.findings import Row, chosen_text
from perikope.evaluation.experiment.report.tables import counted, figure, ordered, value_text
from perikope.evaluation.tuning.outcome import TuningOutcome

HIGHLIGHTED = 8
"""Number of curves with a separate colour. Readers could not tell more colours apart."""
BARS = 400
"""Maximum number of bars in a plot. Of a longer sorted list, this many evenly spaced values are drawn."""
SHADES = 16
"""Number of shades of a heat map."""
FEW = 12
"""Maximum number of values of a parameter whose texts fit below a plot."""


@dataclass(frozen=True, slots=True)
class Box:
    """The numbers that a box plot shows. `low` and `high` are the ends of the whiskers."""

    low: float
    first_quartile: float
    median: float
    third_quartile: float
    high: float
    mean: float
    outliers: tuple[float, ...]


def box_of(values: Sequence[float]) -> Box:
    """The box plot of at least one value.

    Quartiles are interpolated linearly between the nearest ranks. Whiskers end at the last value within 1.5 times the
    interquartile range (Tukey). Values beyond the whiskers are outliers.

    >>> box_of([1, 2, 3, 4, 100])
    Box(low=1, first_quartile=2.0, median=3.0, third_quartile=4.0, high=4, mean=22.0, outliers=(100,))
    """
    ranked = sorted(values)
    first, median, third = (_quantile(ranked, share) for share in (0.25, 0.5, 0.75))
    reach = 1.5 * (third - first)
    inside = [value for value in ranked if first - reach <= value <= third + reach]
    outliers = tuple(value for value in ranked if not first - reach <= value <= third + reach)
    return Box(inside[0], first, median, third, inside[-1], math.fsum(ranked) / len(ranked), outliers)


def _quantile(ranked: Sequence[float], share: float) -> float:
    rank = share * (len(ranked) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (rank - below) * (ranked[above] - ranked[below])


def box_plots(rows: Sequence[Row], measure: str) -> str:
    """The HTML of one box per system, one below the other, with the values of a measure by topic."""
    values = {row.letter: [*row.system.values[measure].values()] for row in rows}
    axis = numeric_axis([value for column in values.values() for value in column], measure, with_zero=True)
    shown = [row for row in rows if values[row.letter]]
    return _boxes([(named(row), f"{row.letter} {row.system.name}", values[row.letter]) for row in shown], axis)


def spread_plots(values: Mapping[str, Sequence[float]], measure: str) -> str:
    """The HTML of one box per name.

    The axis need not contain 0, so that small differences between seeds are visible.
    """
    axis = numeric_axis([value for column in values.values() for value in column], measure)
    return _boxes([(f'<div class="name">{name_of(name)}</div>', name, column) for name, column in values.items()], axis)


def _boxes(rows: Sequence[tuple[str, str, Sequence[float]]], axis: Axis) -> str:
    parts = [f"{beside}<div class='row'>{_box(title, values, axis)}</div>" for beside, title, values in rows]
    foot = f'<div></div>{x_marks(axis)}<div></div><div class="x-name">{escape(axis.name)}</div>'
    return f'<div class="boxes" style="--steps:{len(axis.marks) - 1}">{"".join(parts)}{foot}</div>'


def _box(title: str, values: Sequence[float], axis: Axis) -> str:
    box = box_of(values)
    low, first, median, third, high, mean = map(
        axis.place, (box.low, box.first_quartile, box.median, box.third_quartile, box.high, box.mean)
    )
    whiskers = f"M{number(low)} 500H{number(first)}M{number(third)} 500H{number(high)}M{number(low)} 350v300M{number(high)} 350v300"
    shapes = (
        f'<path class="whisker" d="{whiskers}"/>{rectangles([(first, 180, third, 820)], "box")}'
        f'<path class="median" d="M{number(median)} 180V820"/>'
        f"{dots([(axis.place(value), 500) for value in box.outliers], 'outlier')}{dots([(mean, 500)], 'mean')}"
    )
    description = (
        f"median {figure(box.median)}, mean {figure(box.mean)}, quartiles {figure(box.first_quartile)} and {figure(box.third_quartile)}, "
        f"whiskers {figure(box.low)} to {figure(box.high)}, {counted(len(box.outliers), 'outlier')}"
    )
    return svg(shapes, title, description)


def named(row: Row) -> str:
    """The HTML of the letter and name of a system, for the place beside or above its plot."""
    return f'<div class="name"><span class="letter">{row.letter}</span> {name_of(row.system.name)}</div>'


def differences_of(system: SystemOutcome, baseline: SystemOutcome, measure: str) -> list[float]:
    """The values of a system minus those of the baseline, one per common topic, in descending order."""
    reference = baseline.values[measure]
    return sorted((value - reference[qid] for qid, value in system.values[measure].items() if qid in reference), reverse=True)


def difference_plots(rows: Sequence[Row], measure: str) -> str:
    """The HTML of one small plot per system, with one bar per topic for its difference from the first system.

    All plots have the same scale.
    """
    baseline = rows[0].system
    compared = [(row, differences_of(row.system, baseline, measure)) for row in rows[1:]]
    shown = [(row, differences) for row, differences in compared if differences]
    axis = numeric_axis([end for _, differences in shown for end in (differences[0], differences[-1])], with_zero=True, is_tight=True)
    return f'<div class="panels">{"".join(_difference_plot(row, differences, axis) for row, differences in shown)}</div>'


def _difference_plot(row: Row, differences: Sequence[float], axis: Axis) -> str:
    better = sum(difference > 0 for difference in differences)
    worse = sum(difference < 0 for difference in differences)
    drawn = differences
    if len(differences) > BARS:
        drawn = [differences[(2 * bar + 1) * len(differences) // (2 * BARS)] for bar in range(BARS)]
    shapes = _bars([max(value, 0) for value in drawn], axis, "better") + _bars([min(value, 0) for value in drawn], axis, "worse")
    zero = number(axis.down(0))
    mean = math.fsum(differences) / len(differences)
    sign = "+" if float(figure(mean)) > 0 else ""
    caption = f"{sign}{figure(mean)} in the mean; better on {better:,}, equal on {len(differences) - better - worse:,}, worse on {worse:,}"
    picture = frame(
        f'{shapes}<path class="zero" d="M0 {zero}H{SIZE}"/>', Axis(0, 1, ()), axis, f"{row.letter} {row.system.name}", caption, "small"
    )
    return f'<figure class="panel">{named(row)}{picture}<figcaption>{caption}</figcaption></figure>'


def _bars(values: Sequence[float], axis: Axis, kind: str) -> str:
    """An SVG path around sorted bars. Neighbouring bars of the same height share one line."""
    path, height = f"M0 {number(axis.down(0))}", axis.down(0)
    for bar, value in enumerate(values):
        if (top := axis.down(value)) != height:
            path += f"H{number(SIZE * bar / len(values))}V{number(top)}"
            height = top
    return f'<path class="{kind}" d="{path}H{SIZE}V{number(axis.down(0))}z"/>' if any(values) else ""


def curve_plot(rows: Sequence[Row]) -> str:
    """The HTML of the curves of precision over recall; empty if no system has a curve that is not 0 everywhere.

    The first system and the best other systems have colours. The remaining curves are grey and lie behind them.
    """
    known = [row for row in rows if len(row.system.curve) > 1]
    if not any(any(row.system.curve) for row in known):
        return ""
    ranked = sorted(known[1:], key=lambda row: -row.figures[0].mean if row.figures else 0.0)
    colours = {row.letter: colour for colour, row in enumerate([known[0], *ranked][:HIGHLIGHTED], 1)}
    y = numeric_axis([value for row in known for value in row.system.curve], "Precision", with_zero=True)
    x = numeric_axis([0, 1], "Recall")
    behind = [row for row in known if row.letter not in colours]
    before = sorted((row for row in known if row.letter in colours), key=lambda row: -colours[row.letter])
    shapes = "".join(_curve(row, x, y, "curve behind") for row in behind)
    shapes += "".join(_curve(row, x, y, f"curve c{colours[row.letter]}") for row in before)
    description = "; ".join(f"{row.system.name}: {figure(row.system.curve[0])} at recall 0" for row in known)
    legend = "".join(_legend(row, f"c{colours[row.letter]}") for row in [known[0], *ranked][:HIGHLIGHTED])
    if behind:
        legend += f"<li>{swatch('behind')}{counted(len(behind), 'other')}</li>"
    return f'{frame(shapes, x, y, "Precision at recall", description, "large")}<ul class="legend">{legend}</ul>'


def _curve(row: Row, x: Axis, y: Axis, kind: str) -> str:
    curve = row.system.curve
    last = len(curve) - 1
    return line(
        _straightened([(x.place(point / last), y.down(value)) for point, value in enumerate(curve)]),
        kind,
        f"{row.letter} {row.system.name}",
    )


def _straightened(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of a curve without those inside horizontal parts. Curves that end in zeros have many such points."""
    kept = [point for before, point, after in zip(points, points[1:], points[2:], strict=False) if not before[1] == point[1] == after[1]]
    return [points[0], *kept, points[-1]]


def _legend(row: Row, kind: str) -> str:
    return f'<li>{swatch(kind)}<span><span class="letter">{row.letter}</span> {name_of(row.system.name)}</span></li>'


def swatch(kind: str, *, is_bar: bool = False) -> str:
    """The SVG of a short line, or of a bar, in the colour of a curve, for a legend."""
    if is_bar:
        return f'<svg class="swatch" viewBox="0 0 24 8" aria-hidden="true"><path class="bar {kind}" d="M0 0H24V8H0z"/></svg>'
    return f'<svg class="swatch" viewBox="0 0 24 8" aria-hidden="true"><path class="curve {kind}" d="M0 4H24"/></svg>'


def tuning_plots(row: Row, tuned: TuningOutcome) -> str:
    """The HTML of the plots of tuned settings with the name of the system; empty if there is nothing to draw."""
    pictures = tuning_pictures(tuned, f"{row.letter} {row.system.name}")
    if not pictures:
        return ""
    drawn = [_framed(picture) for picture in pictures]
    kind = "panel many" if len(drawn) > 1 else "panel"
    body = f'<div class="panels wide">{"".join(drawn)}</div>' if len(drawn) > 1 else drawn[0]
    return f'<figure class="{kind}">{named(row)}{body}<figcaption>{escape(pictures[0].description)}</figcaption></figure>'


def _framed(picture: Picture) -> str:
    scale = ""
    if picture.shades is not None:
        low, high = picture.shades
        scale = f'<div class="scale"><span>{low}</span><span class="ramp"></span><span>{high}</span></div>'
    return frame(picture.shapes, picture.x, picture.y, picture.title, picture.description, picture.kind) + scale


def tuning_pictures(tuned: TuningOutcome, title: str) -> list[Picture]:
    """The plots of tuned settings and their scores; empty if there is nothing to draw.

    Two parameters whose values were tried in all, or most, pairs give a heat map. Otherwise, each parameter with
    several values gives a plot of the best score by value.
    """
    scored = [(setting, score) for setting, score in zip(tuned.settings, tuned.scores, strict=True) if math.isfinite(score)]
    if not scored or not tuned.parameters:
        return []
    description = f"{tuned.measure}, {counted(len(scored), 'setting')}, best: {chosen_text(tuned.chosen)}"
    columns = [sorted(dict.fromkeys(setting[number] for setting, _ in scored), key=ordered) for number in range(len(tuned.parameters))]
    if len(columns) == 2 and min(map(len, columns)) > 1 and len(columns[0]) * len(columns[1]) <= 2 * len(scored):
        return [_heat_map(tuned, columns, {(setting[0], setting[1]): score for setting, score in scored}, title, description)]
    # A parameter with a single value needs no plot.
    shown = [number for number, column in enumerate(columns) if len(column) > 1]
    profiles = [_profile(number, scored) for number in shown]
    y = numeric_axis([score for profile in profiles for score in profile.values()], tuned.measure, marks=4)
    return [
        _profile_plot(tuned, tuned.parameters[number], columns[number], profile, y, title, description)
        for number, profile in zip(shown, profiles, strict=True)
    ]


def _heat_map(
    tuned: TuningOutcome, columns: Sequence[Sequence[object]], score_of: dict[tuple[object, object], float], title: str, description: str
) -> Picture:
    x = listed_axis([value_text(value) for value in columns[0]], tuned.parameters[0])
    y = listed_axis([value_text(value) for value in columns[1]], tuned.parameters[1], characters=50)
    low, high = min(score_of.values()), max(score_of.values())
    cells: dict[int, list[tuple[float, float, float, float]]] = {}
    marked = []
    for column, first in enumerate(columns[0]):
        for level, second in enumerate(columns[1]):
            if (score := score_of.get((first, second))) is None:
                continue
            corners = (x.place(column), y.down(level + 1), x.place(column + 1), y.down(level))
            shade = round((score - low) / (high - low) * (SHADES - 1)) if high > low else SHADES - 1
            cells.setdefault(shade, []).append(corners)
            if (tuned.chosen.get(tuned.parameters[0]), tuned.chosen.get(tuned.parameters[1])) == (first, second):
                marked.append(corners)
    shapes = "".join(f'<g fill-opacity="{opacity(shade)}">{rectangles(cells[shade], "cell")}</g>' for shade in sorted(cells))
    shapes += rectangles(marked, "chosen")
    return Picture(shapes, x, y, title, description, "heat", (figure(low), figure(high)))


def opacity(shade: int) -> str:
    """The opacity of a shade as a CSS percentage. Shades are numbered from 0, the lightest."""
    return f"{number(100 * (0.06 + 0.94 * shade / (SHADES - 1)))}%"


def _profile(parameter: int, scored: Sequence[tuple[tuple[object, ...], float]]) -> dict[object, float]:
    """The best score for each value of the parameter with this index, over all values of the other parameters."""
    best: dict[object, float] = {}
    for setting, score in scored:
        best[setting[parameter]] = max(score, best.get(setting[parameter], -math.inf))
    return best


def _profile_plot(
    tuned: TuningOutcome, name: str, column: Sequence[object], best: Mapping[object, float], y: Axis, title: str, description: str
) -> Picture:
    numbers = [value for value in column if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if len(numbers) == len(column) and is_even(numbers):
        x = numeric_axis(numbers, name)
        across = [x.place(value) for value in numbers]
    else:
        x = listed_axis([value_text(value) for value in column], name)
        across = [x.place(step + 0.5) for step in range(len(column))]
    points = [(at, y.down(best[value])) for at, value in zip(across, column, strict=True)]
    # Values of a random search are all different. A line through them would only show noise of the other parameters.
    is_line = len(tuned.parameters) == 1 or 2 * len(column) <= len(tuned.scores)
    chosen = [point for point, value in zip(points, column, strict=True) if value == tuned.chosen.get(name)]
    shapes = (line(points, "curve c1") if is_line else "") + dots(points, "tried") + dots(chosen, "picked")
    return Picture(shapes, x, y, f"{title}: {name}", description, "small")


def is_even(numbers: Sequence[float]) -> bool:
    """Whether a linear scale suits sorted values: they are many, or the largest gap is at most 3 times the smallest."""
    gaps = [after - before for before, after in pairwise(numbers)]
    return len(numbers) > FEW or max(gaps) <= 3 * min(gaps)
