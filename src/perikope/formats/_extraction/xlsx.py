"""Excel: every sheet of an XLSX file is a section with a table; every row is a block.

Hidden sheets, rows and columns are read as others. The result of a formula is read as the program has stored it.
Comments, headers and footers of printed pages, macros and embedded files are left out.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from perikope.formats._extraction.blocks import Extracted, FileBlock, Unreadable, table_blocks
from perikope.formats._extraction.drawing import DRAWING_SPACES, Drawings
from perikope.formats._extraction.ooxml import OFFICE, STRICT, Parts, relation_id
from perikope.formats._extraction.package import LONGEST_REPEATED, MOST_COLUMNS, Element, attribute, block_of, number
from perikope.formats._extraction.xlsx_numbers import GENERAL, NumberFormat, builtin_format, number_format

_MAIN = (f"{OFFICE}/spreadsheetml/2006/main", f"{STRICT}/spreadsheetml/main")
_SPACES = {"s": _MAIN, "xdr": (f"{OFFICE}/drawingml/2006/spreadsheetDrawing", f"{STRICT}/drawingml/spreadsheetDrawing"), **DRAWING_SPACES}
_MOST_CELLS = 16_384
"""The number of columns of a sheet."""
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_CELL = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")

Row = dict[int, str]
"""The texts of the cells of a row by the number of their column, from 0."""


def read_xlsx(data: bytes) -> Extracted:
    """The blocks of a workbook."""
    parts = Parts(data, _SPACES, "xl/workbook.xml")
    root = parts.root("s:workbook", "sheets of a workbook")
    related = {relation.id: relation.part for relation in parts.relations(parts.main)}
    reader = _SheetReader(parts, attribute(parts.child(root, "s:workbookPr"), "date1904") in ("1", "true"))
    blocks: list[FileBlock] = []
    seen: set[str] = set()
    for sheet in parts.inside(root, "s:sheets", "s:sheet"):
        part = related.get(relation_id(sheet), "")
        if part not in seen:
            seen.add(part)
            found = [block for block in reader.read(part) if block.text.strip() or block.kind == "table"]
            blocks += [block_of("heading", attribute(sheet, "name"), 2), *found] if found else []
    return parts.extracted(blocks)


class _SheetReader:
    """Reads the sheets of one workbook."""

    def __init__(self, parts: Parts, from_1904: bool) -> None:
        self._parts, self._from_1904 = parts, from_1904
        relations = {relation.type: relation.part for relation in parts.relations(parts.main)}
        self._shared = [self._rich(one) for one in self._elements(relations.get("sharedStrings", ""), "si")]
        self._formats = _formats(parts, parts.related(parts.main, "styles"))

    def read(self, part: str) -> list[FileBlock]:
        """The blocks of one sheet: its rows, then its text boxes and the titles of its charts."""
        rows: dict[int, Row] = {}
        merged: list[tuple[int, int, int, int]] = []
        if self._parts.package.part(part) is None:
            raise Unreadable(f"is damaged (it lacks the sheet {part or 'that it lists'}); open it in its program and save it again")
        last = 0
        for element in self._elements(part, "row", "mergeCell"):
            if self._parts.names(element) == "s:row":
                last = number(attribute(element, "r"), last + 1)
                if row := self._row(element):
                    rows[last] = row
            elif (area := _area(attribute(element, "ref"))) is not None:
                merged.append(area)
        _fill(rows, merged)
        return [*_tables(list(rows.values())), *self._drawn(part)]

    def _elements(self, part: str, *names: str) -> Iterator[Element]:
        return self._parts.package.elements(part, [f"{{{space}}}{name}" for space in _MAIN for name in names])

    def _row(self, element: Element) -> Row:
        row: Row = {}
        column = -1
        for cell in element:
            if self._parts.names(cell) == "s:c":
                place = _CELL.fullmatch(attribute(cell, "r"))
                column = _column(place[1]) if place else column + 1
                if column < _MOST_CELLS and (text := " ".join(self._cell(cell).split())):
                    row[column] = text
        return row

    def _cell(self, cell: Element) -> str:
        type = attribute(cell, "t", "n")
        if type == "inlineStr":
            return " ".join(self._rich(one) for one in self._parts.inside(cell, "s:is"))
        value = self._parts.child(cell, "s:v")
        text = (value.text or "").strip() if value is not None else ""
        if type == "s":
            index = number(text, -1)
            return self._shared[index] if 0 <= index < len(self._shared) else ""
        if type == "b":
            return {"1": "TRUE", "0": "FALSE"}.get(text, text)
        if type != "n":
            return _unescaped(text)
        style = number(attribute(cell, "s"))
        return (self._formats[style] if style < len(self._formats) else GENERAL).shown(text, self._from_1904)

    def _rich(self, element: Element) -> str:
        """The text of a string in one or several formats, without its pronunciation."""
        texts = []
        for child in element:
            name = self._parts.names(child)
            if name == "s:t":
                texts.append(child.text or "")
            elif name == "s:r":
                texts.append(self._rich(child))
        return _unescaped("".join(texts))

    def _drawn(self, part: str) -> Iterator[FileBlock]:
        for relation in self._parts.relations(part):
            root = self._parts.package.xml(relation.part) if relation.type == "drawing" else None
            if root is not None:
                drawings = Drawings(self._parts, relation.part)
                yield from self._shapes(root, drawings)

    def _shapes(self, element: Element, drawings: Drawings) -> Iterator[FileBlock]:
        for child in self._parts.children(element):
            name = self._parts.names(child)
            if name == "xdr:txBody":
                yield from drawings.paragraphs(child)
            elif name == "a:graphic":
                # The values of a chart are cells of the workbook.
                yield from drawings.graphic(child, values=False)
            elif name.startswith("xdr:"):
                yield from self._shapes(child, drawings)


def _formats(parts: Parts, root: Element | None) -> list[NumberFormat]:
    """The format of each style of cells."""
    own = {attribute(one, "numFmtId"): attribute(one, "formatCode") for one in parts.inside(root, "s:numFmts", "s:numFmt")}
    ids = [attribute(one, "numFmtId") for one in parts.inside(root, "s:cellXfs", "s:xf")]
    return [number_format(own[id]) if id in own else builtin_format(number(id)) for id in ids]


def _tables(rows: list[Row]) -> list[FileBlock]:
    """The blocks of the rows: lines with one cell above a table are paragraphs; empty columns are left out."""
    used = sorted({column for row in rows for column in row})
    if len(used) == 1:
        return [block_of("p", row[used[0]]) for row in rows]
    above = next((number for number, row in enumerate(rows) if len(row) > 1), len(rows))
    texts = [_cells(row, used) for row in rows[above:]]
    return [block_of("p", text) for row in rows[:above] for text in row.values()] + table_blocks(texts)


def _cells(row: Row, used: list[int]) -> list[str]:
    """The texts of a row with one item per used column; of a very wide table, the cells with text only."""
    return [row.get(column, "") for column in used] if len(used) <= MOST_COLUMNS else [row[column] for column in sorted(row)]


def _fill(rows: dict[int, Row], merged: list[tuple[int, int, int, int]]) -> None:
    """Repeat the short text of a merged cell in all rows with text that the cell covers."""
    numbers = sorted(rows)
    for left, top, _, bottom in merged:
        text = rows.get(top, {}).get(left, "")
        if text and len(text) <= LONGEST_REPEATED:
            for covered in numbers[bisect_right(numbers, top) : bisect_left(numbers, bottom + 1)]:
                rows[covered].setdefault(left, text)


def _area(text: str) -> tuple[int, int, int, int] | None:
    first, _, last = text.partition(":")
    start, end = _CELL.fullmatch(first), _CELL.fullmatch(last)
    return (_column(start[1]), int(start[2]), _column(end[1]), int(end[2])) if start and end else None


def _column(letters: str) -> int:
    """The number of a column, from 0.

    >>> _column("A"), _column("AB")
    (0, 27)
    """
    value = 0
    for letter in letters:
        value = value * 26 + ord(letter) - 64
    return value - 1


def _unescaped(text: str) -> str:
    r"""A text whose control characters are written as numbers.

    >>> _unescaped("a_x000D_b_x005F_x000D_")
    'a\rb_x000D_'
    """
    return _ESCAPED.sub(lambda code: chr(int(code[1], 16)) if not 0xD800 <= int(code[1], 16) < 0xE000 else "", text)
