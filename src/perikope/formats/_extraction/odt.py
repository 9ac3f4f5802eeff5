"""OpenDocument texts, as LibreOffice writes them: paragraphs and tables of an ODT file become blocks.

Notes, text boxes and tables inside tables follow the paragraph or table that holds them. Deleted text, comments,
tables of contents, headers and footers of pages are left out. A formula is an object of its own in the file; its text
is put where it stands.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from perikope.formats._extraction.blocks import Extracted, FileBlock, Unreadable
from perikope.formats._extraction.package import (
    LONGEST_REPEATED,
    MOST_COLUMNS,
    SEAM,
    Element,
    Package,
    TagNames,
    TextBody,
    attribute,
    block_of,
    described,
    finished,
    kind_of,
    number,
    people,
    table_of,
)
from perikope.formats._formulas import mathml_text

_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
_SPACES = {
    **{name: (f"{_OASIS}:{name}:1.0",) for name in ("office", "text", "table", "style", "meta", "manifest")},
    "draw": (f"{_OASIS}:drawing:1.0",),
    "svg": (f"{_OASIS}:svg-compatible:1.0",),
    "dc": ("http://purl.org/dc/elements/1.1/",),
    "math": ("http://www.w3.org/1998/Math/MathML",),
}
_SKIPPED = frozenset((
    "text:tracked-changes", "text:table-of-content", "text:sequence-decls", "text:variable-decls",
    "text:user-field-decls", "text:dde-connection-decls", "text:note-citation", "text:script", "office:annotation",
    "office:annotation-end", "office:forms", "office:event-listeners", "svg:title", "svg:desc", "draw:image",
))  # fmt: skip
_PARAGRAPHS = ("text:p", "text:h", "text:list")
_MOST_SPACES = 1000
"""The most spaces that one element may stand for."""


def read_odt(data: bytes) -> Extracted:
    """The blocks of an OpenDocument text."""
    package, names = Package(data), TagNames(_SPACES)
    manifest = package.part("META-INF/manifest.xml") or b""
    if b"encryption-data" in manifest:
        raise Unreadable("is encrypted; save it without a password")
    root = package.xml("content.xml")
    body = _first(_first(root, "office:body", names), "office:text", names)
    if body is None:
        raise Unreadable("has no text of an OpenDocument file; open it in its program and save it again")
    title, language, metadata = _properties(package, names)
    styles = _OdtStyles([part for part in (package.xml("styles.xml"), root) if part is not None], names)
    title, blocks = finished(title, _OdtBody(package, names, styles).read(body))
    return Extracted(blocks, title, language, metadata)


def _first(element: Element | None, name: str, names: TagNames) -> Element | None:
    return None if element is None else next((child for child in element if names(child) == name), None)


def _properties(package: Package, names: TagNames) -> tuple[str, str, dict[str, object]]:
    """The title, the language and the metadata that a file states."""
    element = _first(package.xml("meta.xml"), "office:meta", names)
    stated: dict[str, list[str]] = {}
    for child in element if element is not None else ():
        if text := " ".join((child.text or "").split()):
            stated.setdefault(names(child), []).append(text)
    one = {name: values[0] for name, values in stated.items()}
    metadata = described(
        {
            "author": people(one.get("meta:initial-creator") or one.get("dc:creator", "")),
            "subject": one.get("dc:subject"),
            "keywords": [word for value in stated.get("meta:keyword", ()) for part in re.split(r"[,;]", value) if (word := part.strip())],
            "date": one.get("meta:creation-date"),
            "modified": one.get("dc:date"),
        }
    )
    return one.get("dc:title", ""), one.get("dc:language", ""), metadata


class _OdtStyles:
    """The names of the styles of paragraphs, with the styles that they inherit from."""

    def __init__(self, roots: list[Element], names: TagNames) -> None:
        self._parents: dict[str, str] = {}
        for root in roots:
            for part in root:
                for style in part if names(part) in ("office:styles", "office:automatic-styles") else ():
                    if names(style) == "style:style" and attribute(style, "family") == "paragraph":
                        self._parents[attribute(style, "name")] = attribute(style, "parent-style-name")

    def chain(self, name: str) -> Iterator[str]:
        """The names of a style, the style it inherits from, and so on, as people read them."""
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            yield name.replace("_20_", " ")
            name = self._parents.get(name, "")

    def kind(self, name: str) -> str:
        """The kind of block that the names of the styles mean, also `title`; empty if they mean none."""
        chain = list(self.chain(name))
        # A style that a program has made for one paragraph has the name of a letter and a number.
        own = next((style for style in chain if not re.fullmatch(r"P\d+", style)), "")
        if own.lower() == "title":
            return "title"
        return next((kind for style in chain if (kind := kind_of(style))), "")


class _OdtBody(TextBody):
    """Turns the elements of a body into blocks."""

    def __init__(self, package: Package, names: TagNames, styles: _OdtStyles) -> None:
        super().__init__()
        self._package, self._names, self._styles = package, names, styles

    def read(self, body: Element) -> list[FileBlock]:
        """All blocks of a body."""
        self._content(body, "p")
        return self._blocks

    def _children(self, element: Element) -> Iterator[Element]:
        return (child for child in element if (name := self._names(child)) and name not in _SKIPPED)

    def _content(self, element: Element, kind: str) -> None:
        """Read the paragraphs and tables in an element; `kind` is that of a paragraph whose style means none."""
        for child in self._children(element):
            name = self._names(child)
            if name in ("text:p", "text:h"):
                self._paragraph(child, kind)
            elif name == "table:table":
                self._table(child)
            else:
                self._content(child, "li" if name == "text:list-item" else kind)

    def _put_off(self, element: Element) -> None:
        if self._names(element) == "table:table":
            self._table(element)
        else:
            self._content(element, "p")

    def _frame(self, cell: Element) -> None:
        self._content(cell, "p")

    def _paragraph(self, paragraph: Element, kind: str) -> None:
        text = self._text(paragraph)
        if self._names(paragraph) == "text:h":
            self._blocks.append(block_of("heading", text, max(number(attribute(paragraph, "outline-level"), 1), 1)))
        else:
            meant = self._styles.kind(attribute(paragraph, "style-name"))
            self._blocks.append(block_of("heading", text) if meant == "title" else block_of(meant or kind, text))
        self._flush()

    def _gather(self, element: Element, pieces: list[str]) -> None:
        _add(element.text, pieces)
        for child in element:
            name = self._names(child)
            if name and name not in _SKIPPED:
                self._inline(child, name, pieces)
            _add(child.tail, pieces)

    def _inline(self, child: Element, name: str, pieces: list[str]) -> None:
        if name == "text:s":
            pieces.append(" " * min(number(attribute(child, "c"), 1), _MOST_SPACES))
        elif name == "text:tab":
            pieces.append("\t")
        elif name == "text:line-break":
            pieces.append("\n")
        elif name in ("text:note-body", "draw:text-box", "table:table"):
            self._later.append(child)
            pieces += [SEAM] if name == "text:note-body" else []
        elif name == "draw:object":
            pieces.append(self._formula(child))
        elif name == "text:ruby-text":
            pieces.append(f" ({self._text(child)})" if len(child) or child.text else "")
        elif name.startswith("draw:") and any(self._names(inner) in _PARAGRAPHS for inner in child):
            # A shape holds paragraphs without a text box around them.
            self._later.append(child)
        elif name.startswith("draw:"):
            # Spaces between the elements of a drawing are no text.
            for inner in self._children(child):
                self._inline(inner, self._names(inner), pieces)
        else:
            self._gather(child, pieces)

    def _formula(self, element: Element) -> str:
        """The text of a formula: MathML inside the element, or in the part of the file that it names."""
        root = _first(element, "math:math", self._names)
        target = posixpath.normpath(attribute(element, "href"))
        if root is None and re.fullmatch(r"[\w -]+", target):
            root = self._package.xml(f"{target}/content.xml")
        if root is None or self._names(root) != "math:math":
            return ""
        return mathml_text(root)

    def _table(self, table: Element) -> None:
        rows = list(self._rows(table, False))
        cells = [[cell for cell in self._children(row) if self._names(cell) == "table:table-cell"] for row, _ in rows]
        if self._read_frame(cells):
            return
        texts: list[list[str]] = []
        headers = 0
        covers: dict[int, tuple[int, str]] = {}
        for row, is_header in rows:
            texts.append(self._row(row, covers))
            headers += is_header
        self._blocks += table_of(texts, headers)
        self._flush()

    def _rows(self, element: Element, is_header: bool) -> Iterator[tuple[Element, bool]]:
        """The rows of a table, and whether each belongs to the header."""
        for child in self._children(element):
            name = self._names(child)
            if name == "table:table-row":
                yield child, is_header
            elif name in ("table:table-header-rows", "table:table-rows", "table:table-row-group"):
                yield from self._rows(child, is_header or name == "table:table-header-rows")

    def _row(self, row: Element, covers: dict[int, tuple[int, str]]) -> list[str]:
        """The texts of a row by column. A short text stands in all columns and rows that its cell covers.

        `covers` has, by column, the number of further rows that a cell above covers, and its text.
        """
        texts: list[str] = []
        beside = ""
        for cell in self._children(row):
            name = self._names(cell)
            if name not in ("table:table-cell", "table:covered-table-cell"):
                continue
            for _ in range(min(number(attribute(cell, "number-columns-repeated"), 1), MOST_COLUMNS)):
                column = len(texts)
                rows, above = covers.pop(column, (0, ""))
                if name == "table:covered-table-cell":
                    text = above if rows else beside
                else:
                    text = self._cell(cell)
                    beside = text if len(text) <= LONGEST_REPEATED else ""
                    rows, above = number(attribute(cell, "number-rows-spanned"), 1), beside
                if rows > 1:
                    covers[column] = rows - 1, above
                texts.append(text)
        return texts

    def _cell(self, cell: Element) -> str:
        texts: list[str] = []
        self._cell_texts(cell, texts)
        return " ".join(" ".join(texts).split())

    def _cell_texts(self, element: Element, texts: list[str]) -> None:
        for child in self._children(element):
            name = self._names(child)
            if name in ("text:p", "text:h"):
                texts.append(self._text(child))
            elif name == "table:table":
                self._later.append(child)
            else:
                self._cell_texts(child, texts)


def _add(text: str | None, pieces: list[str]) -> None:
    """Add text of the XML: spaces and line breaks in it are one space, since others are elements."""
    if text:
        text = re.sub(r"[ \t\r\n]+", " ", text)
        if text[0] == " " and pieces and pieces[-1].endswith(" "):
            text = text[1:]
        pieces.append(text)
