"""Tables: consecutive lines whose cells are below each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perikope.formats._extraction.blocks import Box, union
from perikope.formats._extraction.pdf_lines import PageLine, joined_lines

LEAST_ROWS = 2
"""The number of rows with several cells that make a table."""


@dataclass(frozen=True, slots=True)
class PageRow:
    """A row of a table."""

    cells: tuple[str, ...]
    box: Box
    bold: bool


def table_at(lines: Sequence[PageLine], first: int) -> tuple[list[PageRow], int]:
    """The rows of the table that begins at a line, and the number of the line after it; no rows if none begins."""
    if len(lines[first].cells) < 2:
        return [], first
    end = first
    starts = [box[0] for _, box in lines[first].cells]
    spans = [(box[0], box[2]) for _, box in lines[first].cells]
    rows: list[list[PageLine]] = []
    while end < len(lines):
        line = lines[end]
        previous = rows[-1][-1] if rows else line
        distance = previous.baseline - line.baseline
        if end > first and not -1 <= distance <= 3.2 * max(line.font.size, previous.font.size):
            break
        if len(line.cells) > 1:
            if not _fits(line, spans):
                break
            rows.append([line])
            spans = _widened(spans, line)
        elif rows and distance < 1.6 * line.font.size and _continues(line, starts, spans):
            rows[-1].append(line)
        else:
            break
        end += 1
    full = sum(len(row[0].cells) > 1 for row in rows)
    return ([_row(row, spans) for row in rows], end) if full >= LEAST_ROWS else ([], first)


def _fits(line: PageLine, spans: Sequence[tuple[float, float]]) -> bool:
    """Whether every cell overlaps at most one column, and at least half of them one."""
    overlaps = [sum(box[0] < right + 2 and box[2] > left - 2 for left, right in spans) for _, box in line.cells]
    return all(count <= 1 for count in overlaps) and sum(overlaps) * 2 > len(overlaps)


def _widened(spans: Sequence[tuple[float, float]], line: PageLine) -> list[tuple[float, float]]:
    widened = list(spans)
    for _, box in line.cells:
        for number, (left, right) in enumerate(widened):
            if box[0] < right + 2 and box[2] > left - 2:
                widened[number] = min(left, box[0]), max(right, box[2])
                break
        else:
            widened.append((box[0], box[2]))
    return sorted(widened)


def _continues(line: PageLine, starts: Sequence[float], spans: Sequence[tuple[float, float]]) -> bool:
    """Whether a line of one cell continues a cell of the row above: it lies inside one column."""
    left, right = line.box[0], line.box[2]
    inside = [number for number, (start, end) in enumerate(spans) if left < end + 2 and right > start - 2]
    return len(inside) == 1 and (inside[0] > 0 or abs(left - starts[0]) < 3) and right <= spans[inside[0]][1] + 40


def _row(lines: Sequence[PageLine], spans: Sequence[tuple[float, float]]) -> PageRow:
    texts: list[list[str]] = [[] for _ in spans]
    box: Box | None = None
    for line in lines:
        box = union(box, line.box)
        for text, place in line.cells:
            overlaps = [(min(place[2], right) - max(place[0], left), -number) for number, (left, right) in enumerate(spans)]
            texts[-max(overlaps)[1]].append(text)
    return PageRow(tuple(joined_lines(part) for part in texts), box or (0.0, 0.0, 0.0, 0.0), all(line.font.bold for line in lines))


def with_columns_joined(lines: Sequence[PageLine]) -> list[PageLine]:
    """Lines of one baseline that follow each other as lines of one; programs that draw cell by cell write them so."""
    merged: list[PageLine] = []
    for line in lines:
        last = merged[-1] if merged else None
        if (
            last is not None
            and abs(last.baseline - line.baseline) < 0.5
            and last.page == line.page
            and line.box[0] > last.box[2]
            and last.font.size == line.font.size
        ):
            box = union(last.box, line.box) or line.box
            bold = last.font.bold and line.font.bold
            merged[-1] = replace(last, cells=last.cells + line.cells, box=box, font=replace(last.font, bold=bold))
        else:
            merged.append(line)
    return merged
