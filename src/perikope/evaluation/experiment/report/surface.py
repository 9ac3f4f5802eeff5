"""Plots as one SVG file that needs no style sheet, for a paper or a slide: tuned settings, or figures of a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from perikope.core.files import replacing
from perikope.evaluation.experiment.report.drawing import LABEL, SIZE, Axis, Picture, escape, grid, number
from perikope.evaluation.experiment.report.plots import SHADES, opacity, tuning_pictures
from perikope.evaluation.experiment.report.tables import clean
from perikope.evaluation.tuning.outcome import TuningOutcome

WIDTH = 640
HEIGHTS = {"heat": 320, "small": 200, "large": 320}
CHARACTER = 7
"""Approximate width of a character in pixels, which is used to estimate the width of texts."""
LINE = 18
SIDE = 24
"""Margin around the picture, in pixels."""

# The light colours of the HTML page. They are written as values because many programs do not support CSS variables.
STYLE = """
text { font: 12px system-ui, "Segoe UI", Roboto, Arial, sans-serif; fill: #5b6470; }
.title { font-size: 15px; font-weight: 600; fill: #1b1f24; }
path { fill: none; vector-effect: non-scaling-stroke; }
.grid { stroke: #d9dee5; }
.cell { fill: #1f5fbf; shape-rendering: crispEdges; }
.chosen { stroke: #d97a1c; stroke-width: 2.5; }
.curve { stroke: #2b74c9; stroke-width: 2; stroke-linejoin: round; }
.curve.behind, .mark.behind { stroke: #c3cad3; } .bar.behind { fill: #c3cad3; }
.c1 { stroke: #1b1f24; } .c2 { stroke: #1f77d0; } .c3 { stroke: #d2691e; } .c4 { stroke: #148f6a; } .c5 { stroke: #b0338f; }
.c6 { stroke: #8a6d00; } .c7 { stroke: #6250c9; } .c8 { stroke: #c2323a; }
.mark { stroke-width: 6; }
.bar { stroke: none; } .bar.c2 { fill: #1f77d0; } .bar.c3 { fill: #d2691e; } .bar.c4 { fill: #148f6a; } .bar.c5 { fill: #b0338f; }
.bar.c6 { fill: #8a6d00; } .bar.c7 { fill: #6250c9; } .bar.c8 { fill: #c2323a; }
.band { fill: #1f5fbf; fill-opacity: 12%; }
.dots { stroke-linecap: round; }
.tried { stroke: #2b74c9; stroke-width: 5; }
.picked { stroke: #d97a1c; stroke-width: 10; }
"""


def surface_svg(tuned: TuningOutcome, title: str) -> str:
    """The SVG text with all plots of a tuning, one below the other, and a title; empty if there is nothing to draw."""
    pictures = tuning_pictures(tuned, title)
    return standalone(title, pictures[0].description, pictures) if pictures else ""


def standalone(title: str, description: str, pictures: Sequence[Picture], legend: Sequence[tuple[str, str]] = ()) -> str:
    """An SVG text with plots one below the other. `legend` has names of curves, each with the CSS class of a colour."""
    down: float = SIDE + LINE
    parts = [_text(SIDE, SIDE + 12, title, kind="title")]
    for line in wrap(clean(description), (WIDTH - 2 * SIDE) // CHARACTER):
        parts.append(_text(SIDE, down + 12, line))
        down += LINE
    for picture in pictures:
        drawn, picture_height = _placed(picture, down + LINE // 2)
        parts.append(drawn)
        down += picture_height + LINE // 2
    for name, colour in legend:
        down += LINE
        parts.append(f'<path class="curve {colour}" d="M{SIDE} {number(down - 4)}h24"/>')
        parts.append(_text(SIDE + 32, down, name))
    height = number(down + SIDE)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc><style>{STYLE}</style>"
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def write_surface(path: Path, tuned: TuningOutcome, title: str) -> bool:
    """Write the plots of a tuning to an SVG file. Returns False, without writing, if there is nothing to draw."""
    text = surface_svg(tuned, title)
    if text:
        with replacing(path) as file:
            file.write(text)
    return bool(text)


def _placed(picture: Picture, top: float) -> tuple[str, float]:
    """The SVG of a plot with its axes, whose upper edge is at `top`, and the height that it takes."""
    left = SIDE + CHARACTER * max((len(_short(text)) for _, text in picture.y.marks), default=1) + 6
    width, height = WIDTH - left - SIDE, HEIGHTS[picture.kind]
    # The upper half of the text at the highest mark is above the plot.
    first = top + LINE + 8
    parts = [_text(SIDE, top + 12, picture.y.name)] if picture.y.name else []
    # A heat map needs no grid, because its cells would cover the lines.
    lines = "" if picture.kind == "heat" else grid(picture.x, picture.y)
    parts.append(
        f'<svg x="{number(left)}" y="{number(first)}" width="{number(width)}" height="{height}" viewBox="0 0 {SIZE} {SIZE}" '
        f'preserveAspectRatio="none" overflow="visible">{lines}{picture.shapes}</svg>'
    )
    parts += [_text(left - 6, first + _at(picture.y.down(at), height) + 4, _short(text), anchor="end") for at, text in picture.y.marks]
    below = first + height + LINE
    parts += _marks(picture.x, left, width, below)
    below += LINE
    parts.append(_text(left + width / 2, below, picture.x.name, anchor="middle"))
    if picture.shades is not None:
        below += LINE
        parts += _scale(picture.shades, left + width / 2, below)
    return "\n".join(parts), below - top + 6


def _marks(axis: Axis, left: float, width: float, down: float) -> list[str]:
    return [_text(left + _at(axis.place(at), width), down, _short(text), anchor="middle") for at, text in axis.marks]


def _scale(shades: tuple[str, str], middle: float, down: float) -> list[str]:
    """The SVG elements of a colour scale from the lightest to the darkest shade, with the values of both."""
    step = 8
    left = middle - step * SHADES / 2
    cells = "".join(
        f'<rect x="{number(left + step * shade)}" y="{number(down - 10)}" width="{step}" height="10" fill="#1f5fbf" '
        f'fill-opacity="{opacity(shade)}"/>'
        for shade in range(SHADES)
    )
    return [_text(left - 6, down, shades[0], anchor="end"), cells, _text(left + step * SHADES + 6, down, shades[1])]


def _at(coordinate: float, size: float) -> float:
    return coordinate / SIZE * size


def _short(text: str) -> str:
    cleaned = clean(text)
    return cleaned if len(cleaned) <= LABEL else f"{cleaned[: LABEL - 1]}…"


def _text(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "") -> str:
    styled = f' class="{kind}"' if kind else ""
    return f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"{styled}>{escape(text)}</text>'
