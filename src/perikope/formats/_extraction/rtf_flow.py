"""The paragraphs and tables of one text of an RTF file: the text of the file itself, of a note or of a text box."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from perikope.formats._extraction.blocks import FileBlock
from perikope.formats._extraction.package import LONGEST_REPEATED, MOST_COLUMNS, block_of, kind_of, table_of

_HEADING = re.compile(r"heading ?([1-9])", re.IGNORECASE)
_CONTENTS = re.compile(r"(?:toc|contents) ?[1-9]", re.IGNORECASE)
"""Styles of the lines of a table of contents, which repeat the headings."""
_LONGEST_HEADING = 120


@dataclass(slots=True)
class Style:
    """What a style says about its paragraphs."""

    name: str = ""
    outline: int | None = None
    parent: int = -1

    @property
    def level(self) -> int | None:
        """The level of a heading, from 0; None if the style does not say it."""
        heading = _HEADING.fullmatch(self.name)
        return int(heading[1]) - 1 if heading else self.outline


@dataclass(slots=True)
class Paragraph:
    """The properties of paragraphs, which hold until they are set back."""

    style: int = 0
    outline: int | None = None
    in_list: bool = False
    depth: int = 0
    """The number of tables around the paragraph."""


@dataclass(slots=True)
class _RtfTable:
    rows: list[list[str]] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    """By column: `up` if the cell belongs to the one above, `left` if it belongs to the one before."""
    merge: str = ""
    headers: int = 0
    is_header: bool = False


class Flow:
    """One text in reading order."""

    def __init__(self, styles: Mapping[int, Style], depth: int = 0) -> None:
        self.depth = depth
        """The number of groups around the text."""
        self.paragraph = Paragraph()
        self._styles = styles
        self._blocks: list[FileBlock] = []
        self._bold: list[bool] = []
        self._pieces: list[str] = []
        self._is_bold = True
        self._tables: list[_RtfTable] = []
        self._later: list[FileBlock] = []

    def add(self, text: str, is_bold: bool) -> None:
        """Add text to the paragraph."""
        self._pieces.append(text)
        self._is_bold = self._is_bold and (is_bold or not text.strip())

    def put_off(self, blocks: list[FileBlock]) -> None:
        """Add blocks that follow the paragraph or the table."""
        self._later += blocks

    def end(self) -> list[FileBlock]:
        """All blocks. In a text without headings, short bold paragraphs are headings of one level."""
        if self._tables and not "".join(self._pieces).strip():
            self._end_tables(0)
        self.end_paragraph(always=True)
        if any(block.kind == "heading" and block.level for block in self._blocks):
            return self._blocks
        return [
            block_of("heading", block.text, 1) if is_bold and _like_heading(block) else block
            for block, is_bold in zip(self._blocks, self._bold, strict=True)
        ]

    def end_paragraph(self, *, always: bool = False) -> None:
        """End the paragraph; one in a table is a line of its cell, unless the text ends."""
        if self.paragraph.depth and not always:
            self._table(self.paragraph.depth).texts += [*self._taken(), "\n"]
            return
        is_bold, text = self._is_bold, "".join(self._taken())
        self._end_tables(0)
        if text.strip():
            self._append(self._block(text), is_bold)
        self._flush()

    def end_cell(self, depth: int) -> None:
        """End a cell of the table at a depth, from 1."""
        table = self._table(depth)
        table.cells.append(" ".join("".join([*table.texts, *self._taken()]).split()))
        table.texts = []

    def end_row(self, depth: int) -> None:
        """End a row of the table at a depth. A short text of a merged cell stands in all cells that it covers."""
        table = self._table(depth)
        if "".join([*table.texts, *self._pieces]).strip():
            self.end_cell(depth)
        row: list[str] = []
        above = table.rows[-1] if table.rows else []
        for column, text in enumerate(table.cells):
            merge = table.merged[column] if column < len(table.merged) else ""
            covering = row[-1] if merge == "left" and row else above[column] if merge == "up" and column < len(above) else ""
            row.append(text or (covering if len(covering) <= LONGEST_REPEATED else ""))
        if row:
            table.headers += table.is_header and table.headers == len(table.rows)
            table.rows.append(row)
        table.cells = []

    def begin_row(self) -> None:
        """Set the properties of rows back."""
        table = self._table(max(self.paragraph.depth, 1))
        table.merged, table.merge, table.is_header = [], "", False

    def header_row(self) -> None:
        """The row is one of the header."""
        self._table(max(self.paragraph.depth, 1)).is_header = True

    def merge(self, direction: str) -> None:
        """The next cell that is defined belongs to the one before (`left`) or above (`up`)."""
        self._table(max(self.paragraph.depth, 1)).merge = direction

    def define_cell(self) -> None:
        """Define the next cell of rows."""
        table = self._table(max(self.paragraph.depth, 1))
        if len(table.merged) < MOST_COLUMNS:
            table.merged.append(table.merge)
        table.merge = ""

    def _taken(self) -> list[str]:
        pieces, self._pieces, self._is_bold = self._pieces, [], True
        return pieces

    def _append(self, block: FileBlock, is_bold: bool = False) -> None:
        self._blocks.append(block)
        self._bold.append(is_bold)

    def _flush(self) -> None:
        later, self._later = self._later, []
        for block in later:
            self._append(block)

    def _table(self, depth: int) -> _RtfTable:
        """The open table at a depth; deeper ones have ended."""
        depth = min(depth, MOST_COLUMNS)
        self._end_tables(depth)
        while len(self._tables) < depth:
            self._tables.append(_RtfTable())
        return self._tables[-1]

    def _end_tables(self, depth: int) -> None:
        """End the tables below a depth. A table inside another follows it."""
        while len(self._tables) > depth:
            table = self._tables.pop()
            if text := " ".join("".join(table.texts).split()):
                table.cells.append(text)
            if table.cells:
                table.rows.append(table.cells)
            # A table of one cell is a frame around its content.
            is_frame = sum(map(len, table.rows)) == 1
            blocks = [block_of("p", table.rows[0][0])] if is_frame else table_of(table.rows, table.headers)
            if self._tables:
                self._later += blocks
            else:
                for block in blocks:
                    self._append(block)
                self._flush()

    def _block(self, text: str) -> FileBlock:
        chain = self._chain(self.paragraph.style)
        if any(_CONTENTS.fullmatch(style.name) for style in chain):
            return FileBlock("p")
        level = self.paragraph.outline
        if level is None:
            level = next((style.level for style in chain if style.level is not None), None)
        if level is not None and 0 <= level < 9:
            return block_of("heading", text, level + 1)
        if chain and chain[0].name.lower() == "title":
            return block_of("heading", text)
        kind = next((kind for style in chain if (kind := kind_of(style.name))), "")
        return block_of(kind or ("li" if self.paragraph.in_list else "p"), text)

    def _chain(self, number: int) -> list[Style]:
        """A style, the style it is based on, and so on."""
        seen: dict[int, Style] = {}
        while number in self._styles and number not in seen:
            seen[number] = self._styles[number]
            number = seen[number].parent
        return list(seen.values())


def _like_heading(block: FileBlock) -> bool:
    return block.kind == "p" and len(block.text) <= _LONGEST_HEADING and not block.text.endswith((".", ":", ","))
