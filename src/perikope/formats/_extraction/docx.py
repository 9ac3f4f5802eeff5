"""Word: the paragraphs and tables of a DOCX file become blocks.

The text is read from the XML, so that every character is kept, and formulas stay in their paragraph. Notes, text
boxes and tables inside tables follow the paragraph or table that holds them. Deleted text, comments, tables of
contents, headers and footers of pages, and the codes of fields are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from perikope.formats._extraction.blocks import Extracted, FileBlock
from perikope.formats._extraction.docx_formulas import formula_text
from perikope.formats._extraction.drawing import DRAWING_SPACES, DRAWN, Drawings
from perikope.formats._extraction.ooxml import OFFICE, STRICT, Parts
from perikope.formats._extraction.package import (
    LONGEST_REPEATED,
    MOST_COLUMNS,
    SEAM,
    Element,
    TextBody,
    attribute,
    block_of,
    finished,
    kind_of,
    number,
    table_of,
)
from perikope.formats._extraction.symbols import symbol

_SPACES = {"w": (f"{OFFICE}/wordprocessingml/2006/main", f"{STRICT}/wordprocessingml/main"), **DRAWING_SPACES}
_SKIPPED = frozenset((
    "w:del", "w:moveFrom", "w:delText", "w:instrText", "w:delInstrText", "w:pPr", "w:rPr", "w:tblPr", "w:tblGrid",
    "w:trPr", "w:tcPr", "w:sectPr", "w:sdtPr", "w:sdtEndPr", "w:fldData", "w:annotationRef", "w:footnoteRef",
    "w:endnoteRef", "w:rubyPr", "w:altChunk",
))  # fmt: skip
_PUT_OFF = frozenset(("w:txbxContent", "w:tbl", "a:txBody", *DRAWN))
_LITERAL = {"w:tab": "\t", "w:ptab": "\t", "w:cr": "\n", "w:noBreakHyphen": "-"}
_HEADING = re.compile(r"heading ?([1-9])", re.IGNORECASE)
_TITLE = re.compile(r"title", re.IGNORECASE)
_CONTENTS = re.compile(r"toc ?[1-9]", re.IGNORECASE)
"""Styles of the lines of a table of contents, which repeat the headings."""
_BODY = 9
"""The outline level of text that is no heading."""


def read_docx(data: bytes) -> Extracted:
    """The blocks of a Word document."""
    parts = Parts(data, _SPACES, "word/document.xml")
    body = parts.root("w:document", "text of a Word document")
    title, language, metadata = parts.properties()
    title, blocks = finished(title, _DocxBody(parts).read(body))
    return Extracted(blocks, title, language, metadata)


@dataclass(frozen=True, slots=True)
class _Style:
    """What one style says itself; None or empty if it does not say it."""

    id: str
    name: str
    parent: str
    outline: int | None
    list: str


class _DocxStyles:
    """The styles of paragraphs. A style inherits what it does not say from the style that it is based on."""

    def __init__(self, parts: Parts) -> None:
        self._styles: dict[str, _Style] = {}
        self._default = ""
        child = parts.child
        root = parts.related(parts.main, "styles")
        for style in root if root is not None else ():
            if parts.names(style) != "w:style" or attribute(style, "type", "paragraph") != "paragraph":
                continue
            id, properties = attribute(style, "styleId"), child(style, "w:pPr")
            self._styles[id] = _Style(
                id,
                attribute(child(style, "w:name"), "val", id),
                attribute(child(style, "w:basedOn"), "val"),
                _outline(child(properties, "w:outlineLvl")),
                _list(child(properties, "w:numPr"), parts),
            )
            if attribute(style, "default") in ("1", "true", "on"):
                self._default = id

    def chain(self, id: str) -> Iterator[_Style]:
        """A style, the style it is based on, and so on; a style that is not declared has its id as its name."""
        id = id or self._default
        seen: set[str] = set()
        while id and id not in seen:
            seen.add(id)
            style = self._styles.get(id) or _Style(id, id, "", None, "")
            yield style
            id = style.parent

    def level(self, id: str) -> int | None:
        """The level of a heading from 1; 0 of a title; None if the style is of other text."""
        for depth, style in enumerate(self.chain(id)):
            if heading := _HEADING.fullmatch(style.name) or _HEADING.fullmatch(style.id):
                return int(heading[1])
            # Subtitles and names of authors are often based on the title.
            if depth == 0 and _TITLE.fullmatch(style.name):
                return 0
            if style.outline is not None:
                return style.outline + 1 if style.outline < _BODY else None
        return None

    def kind(self, id: str) -> str:
        """The kind of block that the names of the styles mean; empty if they mean none."""
        return next((kind for style in self.chain(id) if (kind := kind_of(style.name))), "")

    def in_list(self, id: str) -> bool:
        """Whether a style numbers its paragraphs or gives them bullets."""
        return next((style.list for style in self.chain(id) if style.list), "0") != "0"


def _outline(element: Element | None) -> int | None:
    return None if element is None else number(attribute(element, "val"), _BODY)


def _list(element: Element | None, parts: Parts) -> str:
    """The id of a list, `0` for none; empty if nothing is said about lists."""
    return attribute(parts.child(element, "w:numId"), "val")


class _DocxBody(TextBody):
    """Turns the elements of a body into blocks."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self._parts, self._names = parts, parts.names
        self._styles = _DocxStyles(parts)
        self._drawings = Drawings(parts, parts.main)
        self._read_notes: set[tuple[str, str]] = set()
        self._carried = ""
        self._literal: dict[str, Callable[[Element], str]] = {
            "w:t": lambda element: element.text or "",
            "w:br": lambda element: "\n" if attribute(element, "type", "textWrapping") == "textWrapping" else " ",
            "w:sym": _symbol,
            "w:ruby": self._ruby,
            "m:oMath": lambda element: formula_text(element, self._names),
            "w:footnoteReference": lambda element: self._note("footnotes", element),
            "w:endnoteReference": lambda element: self._note("endnotes", element),
        }

    def read(self, body: Element) -> list[FileBlock]:
        """All blocks of a body."""
        self._content(body)
        if self._carried:
            self._blocks.append(block_of("p", self._carried))
        return self._blocks

    def _content(self, element: Element) -> None:
        """Read the paragraphs and tables in an element, whatever lies around them."""
        for child in self._children(element):
            name = self._names(child)
            if name == "w:p":
                self._paragraph(child)
            elif name == "w:tbl":
                self._table(child)
            elif name in ("m:oMathPara", "m:oMath"):
                self._blocks.append(block_of("p", formula_text(child, self._names)))
            else:
                self._content(child)

    def _children(self, element: Element) -> Iterator[Element]:
        """The children that count."""
        return (child for child in self._parts.children(element) if self._names(child) not in _SKIPPED)

    def _put_off(self, element: Element) -> None:
        name = self._names(element)
        if name == "w:tbl":
            self._table(element)
        elif name == "a:txBody":
            self._blocks += self._drawings.paragraphs(element)
        elif name in DRAWN:
            self._blocks += self._drawings.drawn(element)
        else:
            self._content(element)

    def _frame(self, cell: Element) -> None:
        self._content(cell)

    def _paragraph(self, paragraph: Element) -> None:
        child = self._parts.child
        properties = child(paragraph, "w:pPr")
        text, self._carried = self._carried + self._text(paragraph), ""
        is_initial = attribute(child(properties, "w:framePr"), "dropCap") in ("drop", "margin")
        if (is_initial or child(properties, "w:rPr", "w:del") is not None) and self._is_followed(paragraph):
            # The end of the paragraph is deleted, or it is a large initial: its text goes on in the next one.
            self._carried = text
            return
        style = attribute(child(properties, "w:pStyle"), "val")
        if any(_CONTENTS.fullmatch(one.name) for one in self._styles.chain(style)):
            return
        stated = _outline(child(properties, "w:outlineLvl"))
        level = self._styles.level(style) if stated is None else stated + 1 if stated < _BODY else None
        kind = self._styles.kind(style)
        if level is not None and text.strip():
            self._blocks.append(block_of("heading", text, level))
        elif kind:
            self._blocks.append(block_of(kind, text))
        else:
            stated_list = _list(child(properties, "w:numPr"), self._parts)
            is_item = stated_list != "0" if stated_list else self._styles.in_list(style)
            self._blocks.append(block_of("li" if is_item else "p", text))
        self._flush()

    def _is_followed(self, paragraph: Element) -> bool:
        following = paragraph.getnext()
        return following is not None and self._names(following) == "w:p"

    def _gather(self, element: Element, pieces: list[str]) -> None:
        for child in self._children(element):
            name = self._names(child)
            if name in _LITERAL:
                pieces.append(_LITERAL[name])
            elif name in self._literal:
                pieces.append(self._literal[name](child))
            elif name in _PUT_OFF:
                self._later.append(child)
            else:
                self._gather(child, pieces)

    def _ruby(self, element: Element) -> str:
        """A text with its pronunciation in brackets."""
        base, above = (self._parts.child(element, name) for name in ("w:rubyBase", "w:rt"))
        spoken = self._text(above).strip() if above is not None else ""
        return (self._text(base) if base is not None else "") + (f" ({spoken})" if spoken else "")

    @cached_property
    def _notes(self) -> dict[tuple[str, str], Element]:
        """The notes by part and id."""
        roots = {part: self._parts.related(self._parts.main, part) for part in ("footnotes", "endnotes")}
        return {(part, attribute(note, "id")): note for part, root in roots.items() if root is not None for note in root}

    def _note(self, part: str, reference: Element) -> str:
        key = part, attribute(reference, "id")
        # A note is read once, also if it refers to itself.
        if key in self._notes and key not in self._read_notes:
            self._read_notes.add(key)
            self._later.append(self._notes[key])
        return SEAM

    def _table(self, table: Element) -> None:
        rows = list(self._inside(table, "w:tr"))
        cells = [list(self._inside(row, "w:tc")) for row in rows]
        if self._read_frame(cells):
            return
        child, headers = self._parts.child, 0
        texts: list[list[str]] = []
        above: list[str] = []
        for row, row_cells in zip(rows, cells, strict=True):
            properties = child(row, "w:trPr")
            if child(properties, "w:del") is not None:
                continue
            above = self._row(row_cells, above, number(attribute(child(properties, "w:gridBefore"), "val")))
            header = child(properties, "w:tblHeader")
            if header is not None and headers == len(texts) and attribute(header, "val", "1") not in ("0", "false", "off"):
                headers += 1
            texts.append(above)
        self._blocks += table_of(texts, headers)
        self._flush()

    def _inside(self, element: Element, name: str) -> Iterator[Element]:
        """The rows of a table or the cells of a row, also inside content controls."""
        for child in self._children(element):
            if self._names(child) == name:
                yield child
            elif self._names(child) != "w:tbl":
                yield from self._inside(child, name)

    def _row(self, cells: list[Element], above: list[str], skipped: int) -> list[str]:
        """The texts of a row by column. A short text stands in all columns and rows that its cell covers."""
        row = [""] * min(skipped, MOST_COLUMNS)
        for cell in cells:
            properties = self._parts.child(cell, "w:tcPr")
            merged = self._parts.child(properties, "w:vMerge")
            text = " ".join(" ".join(self._text(part) for part in self._inside(cell, "w:p")).split())
            self._later += list(self._inside_tables(cell))
            if not text and merged is not None and attribute(merged, "val", "continue") == "continue" and len(row) < len(above):
                text = above[len(row)] if len(above[len(row)]) <= LONGEST_REPEATED else ""
            span = min(number(attribute(self._parts.child(properties, "w:gridSpan"), "val"), 1), MOST_COLUMNS)
            row += [text] + [text if len(text) <= LONGEST_REPEATED else ""] * (span - 1)
        return row

    def _inside_tables(self, cell: Element) -> Iterator[Element]:
        for child in self._children(cell):
            if self._names(child) == "w:tbl":
                yield child
            elif self._names(child) != "w:p":
                yield from self._inside_tables(child)


def _symbol(element: Element) -> str:
    code, font = attribute(element, "char"), attribute(element, "font")
    if not re.fullmatch(r"[0-9A-Fa-f]{2,4}", code):
        return ""
    value = int(code, 16)
    return chr(value) if value < 0x100 and font != "Symbol" else symbol(value, font)
