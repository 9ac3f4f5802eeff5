"""Plots for an HTML page. Shapes are inline SVG of any width; text is HTML, which stays legible on a small screen.

Colours and line widths come from the style sheet of the page. Coordinates run from 0 to 1000 to the right and
downwards. They are stretched to the available width and height, but line widths are not.

No plotting library is used, for three reasons: the bytes do not depend on the version of a library, the plots follow
the reader's light or dark colours, and a page with a hundred plots stays small.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape as escape_html

from perikope.evaluation.experiment.report.tables import clean

SIZE = 1000
LABEL = 16
"""Maximum length of the text at a tick mark, in characters. The style sheet cuts longer texts."""


def escape(text: str) -> str:
    """Escape a text for HTML, also inside quoted attributes.

    >>> escape('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    return escape_html(clean(text))


def name_of(text: str) -> str:
    """A name as HTML that allows line breaks after punctuation.

    >>> name_of("qsf_section")
    'qsf_<wbr>section'
    """
    return "<wbr>".join(escape_html(part) for part in re.findall(r"[^_/.,(=-]*[_/.,(=-]+|[^_/.,(=-]+", clean(text)))


def number(value: float) -> str:
    """Format a coordinate, rounded to a tenth.

    >>> number(12.0), number(0.25), number(-0.01)
    ('12', '0.2', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a plot, from the value `low` to the value `high`."""

    low: float
    high: float
    marks: tuple[tuple[float, str], ...]
    """The value and the text of each tick mark."""
    name: str = ""

    def place(self, value: float) -> float:
        """The coordinate of a value, from 0 to 1000. A value outside the axis is at its end; NaN and ±inf are at 0."""
        if not math.isfinite(value):
            return 0.0
        return SIZE * min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def down(self, value: float) -> float:
        """The coordinate of a value on a vertical axis, counted from the top, from 0 to 1000."""
        return SIZE - self.place(value)


def numeric_axis(values: Iterable[float], name: str = "", *, with_zero: bool = False, is_tight: bool = False, marks: int = 5) -> Axis:
    """An axis over values, with about `marks` tick marks at round numbers.

    The axis ends at the first mark outside the values or, with `is_tight`, at the smallest and largest value. An axis
    over values from 0 to 1, such as those of most measures, stays within 0 to 1.

    >>> axis = numeric_axis([0.12, 0.47])
    >>> axis.low, axis.high, [mark for _, mark in axis.marks]
    (0.1, 0.5, ['0.1', '0.2', '0.3', '0.4', '0.5'])
    """
    finite = [value for value in values if math.isfinite(value)] + ([0.0] if with_zero else [])
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if high - low < 1e-9 * max(abs(low), abs(high), 1e-3):
        margin = max(abs(low) / 10, 1e-3) if low else 1.0
        least, most = (0.0, 1.0) if 0 <= low <= high <= 1 else (-math.inf, math.inf)
        low, high = max(low - margin, least), min(high + margin, most)
    exponent = math.floor(math.log10((high - low) / marks))
    step = next(factor * 10.0**exponent for factor in (1, 2, 5, 10) if factor * 10.0**exponent * marks >= (high - low) * (1 - 1e-9))
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    numbers = [count * step for count in range(first, last + 1)]
    if is_tight:
        numbers = [value for value in numbers if low <= value <= high]
    ends = (low, high) if is_tight else (numbers[0], numbers[-1])
    return Axis(*ends, tuple((value, _mark(value, decimals)) for value in numbers), name)


def _mark(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def listed_axis(labels: Sequence[str], name: str = "", *, characters: int = 44) -> Axis:
    """An axis with one step per label.

    Labels are left out at regular steps if all have more than `characters` characters.

    >>> listed_axis(["a", "b"]).marks
    ((0.5, 'a'), (1.5, 'b'))
    """
    every = 1
    while every < len(labels) and sum(min(len(label), LABEL) + 1 for label in labels[::every]) > characters:
        every += 1
    return Axis(0, max(len(labels), 1), tuple((step + 0.5, text) for step, text in enumerate(labels) if step % every == 0), name)


def svg(shapes: str, title: str, description: str) -> str:
    """An SVG element with shapes, and with a title and a description for screen readers."""
    return (
        f'<svg class="plot" viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{shapes}</svg>"
    )


@dataclass(frozen=True, slots=True)
class Picture:
    """The shapes and axes of a plot, for a page or for a separate file."""

    shapes: str
    x: Axis
    y: Axis
    title: str
    description: str
    """The content of the plot in words."""
    kind: str
    """The CSS class of the frame."""
    shades: tuple[str, str] | None = None
    """The values of the lightest and the darkest shade; None if the plot has no shades."""


def grid(x: Axis, y: Axis) -> str:
    """An SVG path of grid lines at the marks of both axes."""
    path = "".join(f"M{number(x.place(at))} 0v{SIZE}" for at, _ in x.marks) + "".join(
        f"M0 {number(y.down(at))}h{SIZE}" for at, _ in y.marks
    )
    return f'<path class="grid" d="{path}"/>'


def frame(shapes: str, x: Axis, y: Axis, title: str, description: str, kind: str = "") -> str:
    """The HTML of a plot with its grid, its shapes and both axes. `kind` is a CSS class."""
    lines = grid(x, y)
    width = min(max((len(clean(text)) for _, text in y.marks), default=1), 12) + 1
    side = "".join(f'<span style="top:{number(y.down(at) / 10)}%">{escape(text)}</span>' for at, text in y.marks)
    return (
        f'<div class="frame {kind}" style="--side:{width}ch">'
        f'<div class="y-name">{escape(y.name)}</div><div class="y-marks" aria-hidden="true">{side}</div>'
        f"{svg(lines + shapes, title, description)}"
        f"{x_marks(x)}"
        f'<div class="x-name">{escape(x.name)}</div></div>'
    )


def x_marks(axis: Axis) -> str:
    """The HTML of the texts at the marks of the horizontal axis, below a plot."""
    marks = "".join(f'<span style="left:{number(axis.place(at) / 10)}%">{escape(text)}</span>' for at, text in axis.marks)
    return f'<div class="x-marks" aria-hidden="true">{marks}</div>'


def line(points: Iterable[tuple[float, float]], kind: str, title: str = "") -> str:
    """An SVG path through points, with the CSS class `kind`; empty without points."""
    path = " ".join(f"{number(x)} {number(y)}" for x, y in points)
    named = f"<title>{escape(title)}</title>" if title else ""
    return f'<path class="{kind}" d="M{path}">{named}</path>' if path else ""


def dots(points: Iterable[tuple[float, float]], kind: str) -> str:
    """An SVG path of round dots. Dots are lines of length 0, whose round ends are not stretched with the plot."""
    path = "".join(f"M{x} {y}h0" for x, y in dict.fromkeys((number(x), number(y)) for x, y in points))
    return f'<path class="dots {kind}" d="{path}"/>' if path else ""


def rectangles(corners: Iterable[tuple[float, float, float, float]], kind: str) -> str:
    """An SVG path of rectangles, given as (left, top, right, bottom)."""
    path = "".join(
        f"M{number(left)} {number(top)}H{number(right)}V{number(bottom)}H{number(left)}z" for left, top, right, bottom in corners
    )
    return f'<path class="{kind}" d="{path}"/>' if path else ""
