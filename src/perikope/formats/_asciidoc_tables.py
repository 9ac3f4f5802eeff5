"""Tables of AsciiDoc: cells between bars, commas or colons become rows of texts."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

LONGEST_REPEATED = 200
"""Characters of the longest cell that stands in all columns and rows that it covers; a longer one stands once."""
MOST_COLUMNS = 64
"""The most columns that a cell may cover or a table may state."""

_SPEC = r"(?:(?:^[ \t]*|(?<=[ \t]))(?P<spec>(?:\d{0,5}(?:\.\d{1,5})?[*+])?[<^>]?(?:\.[<^>])?[a-z]?))?(?<!\\)"
_SPAN = re.compile(r"(\d*)(?:\.(\d+))?([*+])")
_FENCE = re.compile(r"^(?:[!|,:]===|-{4,}|\.{4,}|={4,}|--)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    columns: int = 1
    rows: int = 1


def table_rows(lines: Sequence[str], border: str, attributes: Mapping[str, str]) -> list[list[str]]:
    """The rows of a table with one text per column; `attributes` are the named ones of the table.

    >>> table_rows(["|Part |Count", "", "|seal", "|2 or", "more", "2+|none"], "|===", {})
    [['Part', 'Count'], ['seal', '2 or more'], ['none', 'none']]
    >>> table_rows(['a,"b, c"'], ",===", {})
    [['a', 'b, c']]
    """
    kind = {",": "csv", ":": "dsv"}.get(border[0], attributes.get("format", "psv"))
    separator = attributes.get("separator", "").replace("\\t", "\t")[:1]
    if kind in ("csv", "tsv"):
        rows = csv.reader(lines, delimiter=separator or ("\t" if kind == "tsv" else ","))
        return [[" ".join(cell.split()) for cell in row] for row in rows if any(map(str.strip, row))]
    if kind == "dsv":
        separated = re.compile(rf"(?<!\\){re.escape(separator or ':')}")
        return [[" ".join(cell.split()) for cell in separated.split(line)] for line in lines if line.strip()]
    cells, first = _cells("\n".join(lines), separator or border[0])
    return list(_filled(cells, _width(attributes.get("cols", "")) or first))


def _width(stated: str) -> int:
    """The number of columns that a table states, 0 if it states none: `1,2`, `3*`, `<,2*^`."""
    if not stated:
        return 0
    if stated.isdecimal():
        return min(int(stated), MOST_COLUMNS) if len(stated) < 4 else MOST_COLUMNS
    repeated = (re.match(r"\s*(\d{1,3})\*", column) for column in re.split("[,;]", stated))
    return min(sum(int(found[1]) if found else 1 for found in repeated), MOST_COLUMNS)


def _cells(text: str, separator: str) -> tuple[list[_Cell], int]:
    """The cells of a text, and the number of columns in its first line with cells."""
    found = list(re.finditer(_SPEC + re.escape(separator), text, re.MULTILINE))
    cells: list[_Cell] = []
    first_line = text.find("\n", found[0].end()) if found else 0
    first = 0
    for number, start in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        content = _FENCE.sub("", text[start.end() : end]).replace(f"\\{separator}", separator)
        spans = _SPAN.match(start["spec"] or "")
        columns, rows = (min(int(spans[one] or 1), MOST_COLUMNS) for one in (1, 2)) if spans else (1, 1)
        is_repeated = spans is not None and spans[3] == "*"
        content = " ".join(content.split())
        cells += [_Cell(content)] * columns if is_repeated else [_Cell(content, columns, rows)]
        if start.start() < first_line or first_line < 0:
            first += columns
    return cells, max(first, 1)


def _filled(cells: Sequence[_Cell], width: int) -> Iterator[list[str]]:
    """The rows of cells. A short text stands in all columns and rows that its cell covers."""
    covers: dict[int, tuple[int, str]] = {}
    row: list[str] = []
    for cell in cells:
        while _covered(row, width, covers):
            yield row
            row = []
        again = cell.text if len(cell.text) <= LONGEST_REPEATED else ""
        for number in range(min(cell.columns, max(width - len(row), 1))):
            if cell.rows > 1:
                covers[len(row)] = cell.rows - 1, again
            row.append(again if number else cell.text)
    if row:
        _covered(row, width, covers)
        yield row


def _covered(row: list[str], width: int, covers: dict[int, tuple[int, str]]) -> bool:
    """Add the texts of cells above that reach into the next columns of a row; returns whether the row is full."""
    while len(row) < width and len(row) in covers:
        left, text = covers.pop(len(row))
        if left > 1:
            covers[len(row)] = left - 1, text
        row.append(text)
    return len(row) >= width
