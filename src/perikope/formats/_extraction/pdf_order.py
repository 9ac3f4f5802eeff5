"""Reading order: lines that belong to several columns, and lines at the edge of the page that repeat."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from perikope.formats._extraction.pdf_lines import PageLine

EDGE = 0.18
"""The part of a page's height, at the top and at the bottom, in which running headers and footers are expected."""
CLOSE = 16
"""The largest distance of two lines of a running header, in points."""
LARGE = 1.25
"""The font size from which on a line is never a running header, in sizes of the body text: it is a title."""
_NUMBER = re.compile(r"[-–— ]*(?:page |p\. ?|seite )?(?:\d{1,4}|[ivxlc]{1,7})(?: ?(?:/|of|von) ?\d{1,4})?[-–— ]*", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?|file)://\S+")


def in_reading_order(lines: Sequence[PageLine]) -> list[PageLine]:
    """The lines of a page in reading order.

    Almost every program writes text in reading order. The exception are lines that go across all columns: if the cells
    of most lines are long text beside long text, the page has columns, and each column is read to its end.
    """
    wide = [line for line in lines if len(line.cells) > 1]
    columns = max(Counter(len(line.cells) for line in wide).values(), default=0)
    prose = [line for line in wide if min(len(text) for text, _ in line.cells) >= 20]
    if columns < 4 or len(prose) < 0.5 * len(wide) or len(wide) < 0.3 * len(lines):
        return list(lines)
    ordered: list[PageLine] = []
    waiting: dict[int, list[PageLine]] = {}
    starts = _column_starts(prose)
    for line in lines:
        column = _column_of(line.box[0], starts)
        crosses = len(line.cells) == 1 and len(starts) > 1 and column == 0 and line.box[2] > starts[1] + 5
        if crosses:
            ordered += [one for number in sorted(waiting) for one in waiting[number]] + [line]
            waiting = {}
            continue
        for text, box in line.cells:
            waiting.setdefault(_column_of(box[0], starts), []).append(replace(line, cells=((text, box),), box=box))
    return ordered + [one for number in sorted(waiting) for one in waiting[number]]


def _column_starts(lines: Sequence[PageLine]) -> list[float]:
    most = Counter(len(line.cells) for line in lines).most_common(1)[0][0]
    full = [line for line in lines if len(line.cells) == most]
    return [min(line.cells[column][1][0] for line in full) for column in range(most)]


def _column_of(left: float, starts: Sequence[float]) -> int:
    return max((number for number, start in enumerate(starts) if left >= start - 8), default=0)


def without_furniture(pages: Sequence[Sequence[PageLine]], heights: Sequence[float], body: float) -> list[list[PageLine]]:
    """The lines of all pages without page numbers, running headers and running footers."""
    repeated = _repeated(pages, heights)
    placed = _at_one_height(pages, heights, body)
    kept = []
    for lines, height in zip(pages, heights, strict=True):
        outer = _outermost(lines, height)
        kept.append([line for line in lines if not (id(line) in outer and _is_furniture(line, height, body, repeated, placed))])
    return kept


def _is_furniture(line: PageLine, height: float, body: float, repeated: set[tuple[str, int]], placed: set[int]) -> bool:
    text = line.text
    if _NUMBER.fullmatch(text.strip()):
        return True
    if line.font.size > LARGE * body:
        return False
    if (_pattern(text), _zone(line, height)) in repeated:
        return True
    if round(line.baseline) in placed and line.font.size <= 1.1 * body:
        return True
    is_outside = line.box[1] > 0.955 * height or line.box[3] < 0.045 * height
    return is_outside and line.font.size < 0.85 * body


def _outermost(lines: Sequence[PageLine], height: float) -> set[int]:
    """The lines of the top and of the bottom edge by identity: one row each, or two that are close to each other."""
    chosen: set[int] = set()
    for sign in (1, -1):
        edge = [line for line in lines if (line.box[1] > (1 - EDGE) * height if sign > 0 else line.box[3] < EDGE * height)]
        rows = sorted({round(line.baseline) for line in edge}, reverse=sign > 0)[:2]
        if len(rows) > 1 and abs(rows[0] - rows[1]) > CLOSE:
            rows.pop()
        chosen |= {id(line) for line in edge if round(line.baseline) in rows}
    return chosen


def _pattern(text: str) -> str:
    return re.sub(r"\b[ivxlc]+\b|\d+", "#", _ADDRESS.sub("@", text.lower())).strip()


def _zone(line: PageLine, height: float) -> int:
    return 1 if line.box[1] > height / 2 else 0


def _repeated(pages: Sequence[Sequence[PageLine]], heights: Sequence[float]) -> set[tuple[str, int]]:
    """Texts, with numbers replaced, that are at the same edge of several pages."""
    counts: Counter[tuple[str, int]] = Counter()
    for lines, height in zip(pages, heights, strict=True):
        outer = _outermost(lines, height)
        counts.update({(_pattern(line.text), _zone(line, height)) for line in lines if id(line) in outer})
    least = 2 if len(pages) < 6 else 3
    return {key for key, count in counts.items() if count >= least}


def _at_one_height(pages: Sequence[Sequence[PageLine]], heights: Sequence[float], body: float) -> set[int]:
    """Heights at which many pages have a line that is apart from the text, whatever the line says.

    If other pages have text at such a height, it is where the text of a page begins, and the lines are headings.
    """
    counts: Counter[int] = Counter()
    texts: Counter[int] = Counter()
    for lines, height in zip(pages, heights, strict=True):
        outer = _outermost(lines, height)
        for sign in (1, -1):
            edge = sorted(
                {round(line.baseline) for line in lines if id(line) in outer and _zone(line, height) == (sign > 0)}, reverse=sign > 0
            )
            if not edge:
                continue
            others = [line.baseline for line in lines if (line.baseline - edge[0]) * sign < -1]
            nearest = max(others) if sign > 0 and others else min(others, default=0.0) if others else edge[0]
            (counts if abs(nearest - edge[0]) > 1.7 * body else texts)[edge[0]] += 1
    least = max(2, 0.1 * len(pages))
    found = {height for height, count in counts.items() if len(pages) >= 4 and count >= 0.4 * len(pages)}
    return {height for height in found if sum(texts[near] for near in range(height - 3, height + 4)) < least}
