"""Blocks of a tagged PDF: the structure that the author's program has stored beside the text.

Browsers and office programs tag the PDFs that they write. Text that is not tagged is decoration, such as page numbers.
"""

from __future__ import annotations

import ctypes
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perikope.formats._extraction.blocks import Box, FileBlock, union
from perikope.formats._extraction.pdf_blocks import BULLET
from perikope.formats._extraction.pdf_lines import joined, joined_lines, rows_of
from perikope.formats._extraction.pdf_text import PagePiece

DEEPEST = 60
"""The deepest nesting of tags that is followed."""
_BLOCKS = {
    "P": "p",
    "Caption": "caption",
    "Code": "code",
    "BlockQuote": "blockquote",
    "Quote": "blockquote",
    "Note": "p",
    "Title": "heading",
}
_DROPPED = frozenset(("Artifact", "TOC", "TOCI", "Index"))


@dataclass(slots=True)
class Tag:
    """An element of the tree of tags, with the numbers of the marked content that it holds on one page."""

    type: str
    content: list[int | Tag] = field(default_factory=list)


def page_tags(page: Any) -> list[Tag]:
    """The tree of tags of a page; empty if it has none."""
    import pypdfium2.raw as pdfium

    tree = pdfium.FPDF_StructTree_GetForPage(page.raw)
    if not tree:
        return []
    try:
        count = pdfium.FPDF_StructTree_CountChildren(tree)
        return [_tag(pdfium, pdfium.FPDF_StructTree_GetChildAtIndex(tree, number), 0) for number in range(max(count, 0))]
    finally:
        pdfium.FPDF_StructTree_Close(tree)


def _tag(pdfium: Any, element: Any, depth: int) -> Tag:
    tag = Tag(_text(pdfium.FPDF_StructElement_GetType, element))
    if depth > DEEPEST:
        return tag
    for number in range(max(pdfium.FPDF_StructElement_CountChildren(element), 0)):
        child = pdfium.FPDF_StructElement_GetChildAtIndex(element, number)
        if child:
            tag.content.append(_tag(pdfium, child, depth + 1))
        elif (mark := pdfium.FPDF_StructElement_GetChildMarkedContentID(element, number)) >= 0:
            tag.content.append(mark)
    return tag


def _text(function: Callable[..., int], element: Any) -> str:
    length = function(element, None, 0)
    buffer = ctypes.create_string_buffer(max(length, 2))
    function(element, buffer, length)
    return buffer.raw.decode("utf-16-le", "replace").rstrip("\0")


def share_tagged(pages: Sequence[tuple[Sequence[PagePiece], Sequence[Tag]]]) -> float:
    """The share of characters that belong to tagged content."""
    total = tagged = 0
    for pieces, tags in pages:
        marks = {mark for tag in tags for mark in _marks(tag)}
        for piece in pieces:
            total += len(piece.text)
            tagged += len(piece.text) if piece.mark in marks else 0
    return tagged / total if total else 0.0


def has_headings(pages: Sequence[tuple[Sequence[PagePiece], Sequence[Tag]]]) -> bool:
    """Whether any tag is a heading."""
    return any(_heading_level(tag.type) for _, tags in pages for root in tags for tag in _walk(root))


def _walk(tag: Tag) -> Iterator[Tag]:
    yield tag
    for child in tag.content:
        if isinstance(child, Tag):
            yield from _walk(child)


def _marks(tag: Tag) -> Iterator[int]:
    for child in tag.content:
        if isinstance(child, Tag):
            yield from _marks(child)
        else:
            yield child


def _heading_level(type: str) -> int:
    found = re.fullmatch(r"H([1-6])?|Heading ?([1-6])", type)
    return int(found.group(1) or found.group(2) or 1) if found else 0


def tagged_blocks(pages: Sequence[tuple[Sequence[PagePiece], Sequence[Tag]]]) -> list[FileBlock]:
    """The blocks of all pages. A paragraph that continues on the next page is one block, at its first page."""
    blocks: list[FileBlock] = []
    for number, (pieces, tags) in enumerate(pages, 1):
        before = len(blocks)
        reader = _TagReader(number, pieces)
        for tag in tags:
            reader.walk(tag)
        blocks += reader.blocks
        if 0 < before < len(blocks) and 0 not in reader.labelled and _goes_on(blocks[before - 1], blocks[before]):
            last, next_block = blocks[before - 1], blocks.pop(before)
            blocks[before - 1] = replace(last, text=joined_lines((last.text, next_block.text)))
    return blocks


def _goes_on(last: FileBlock, block: FileBlock) -> bool:
    is_text = last.kind in ("p", "li") and block.kind == last.kind
    return is_text and not last.text.endswith((".", "!", "?", ":", ";")) and block.text[:1].islower()


class _TagReader:
    """Reads the blocks of one page."""

    def __init__(self, page: int, pieces: Sequence[PagePiece]) -> None:
        self.page = page
        self.blocks: list[FileBlock] = []
        self.labelled: set[int] = set()
        """The numbers of the blocks that are list items with a label, so that they begin here."""
        self._pieces: Mapping[int, list[PagePiece]] = defaultdict(list)
        for piece in pieces:
            self._pieces[piece.mark].append(piece)

    def walk(self, tag: Tag) -> None:
        if tag.type in _DROPPED:
            return
        if level := _heading_level(tag.type):
            self.add("heading", tag, level)
        elif tag.type == "Table":
            self.table(tag)
        elif tag.type == "LI":
            self.item(tag)
        elif tag.type in _BLOCKS and not _holds_blocks(tag):
            self.add(_BLOCKS[tag.type], tag, 1)
        else:
            self.content(tag)

    def content(self, tag: Tag) -> None:
        """The blocks of a tag that holds other blocks; text beside them is a paragraph."""
        run: list[int | Tag] = []
        for child in tag.content:
            if isinstance(child, Tag) and (_is_block(child) or _holds_blocks(child)):
                self.add("p", Tag("P", run))
                run = []
                self.walk(child)
            else:
                run.append(child)
        self.add("p", Tag("P", run))

    def item(self, tag: Tag) -> None:
        label = Tag("P", [child for child in tag.content if isinstance(child, Tag) and child.type == "Lbl"])
        rest = [child for child in tag.content if not (isinstance(child, Tag) and child.type == "Lbl")]
        own: list[int | Tag] = []
        inner: list[Tag] = []
        for child in _unfolded(rest):
            if isinstance(child, Tag) and child.type in ("L", "Table"):
                inner.append(child)
            else:
                own.append(child)
        number, _ = self.read(label)
        before = len(self.blocks)
        self.add("li", Tag("LI", own), prefix=number if re.search(r"\w", number) else "")
        if len(self.blocks) > before and any(True for _ in _marks(label)):
            self.labelled.add(before)
        for child in inner:
            self.walk(child)

    def table(self, tag: Tag) -> None:
        rows = [one for one in _walk(tag) if one.type == "TR"]
        for caption in (one for one in _walk(tag) if one.type == "Caption"):
            self.add("caption", caption)
        read = []
        for row in rows:
            cells = [cell for cell in row.content if isinstance(cell, Tag) and cell.type in ("TH", "TD")]
            texts = [self.read(cell) for cell in cells]
            box: Box | None = None
            for _, cell_box in texts:
                box = union(box, cell_box)
            read.append((" | ".join(text for text, _ in texts), box, bool(cells) and all(cell.type == "TH" for cell in cells)))
        read = [row for row in read if row[0].strip(" |")]
        if not read:
            return
        header = read.pop(0) if read[0][2] and len(read) > 1 else ("", read[0][1], False)
        self.blocks.append(FileBlock("table", header[0], 0, self.page, header[1]))
        self.blocks += [FileBlock("tr", text, 0, self.page, box) for text, box, _ in read]

    def add(self, kind: str, tag: Tag, level: int = 0, prefix: str = "") -> None:
        pieces = [piece for mark in _marks(tag) for piece in self._pieces[mark]]
        if not pieces:
            return
        if kind == "p" and all(piece.font.mono for piece in pieces):
            kind = "code"
        text, box = self.read(tag, keep=kind == "code")
        if kind == "li" and (bullet := BULLET.match(text)):
            text = text[bullet.end() :]
        text = f"{prefix} {text}".strip() if prefix else text
        if text.strip():
            self.blocks.append(FileBlock(kind, text, level, self.page, box))

    def read(self, tag: Tag, *, keep: bool = False) -> tuple[str, Box | None]:
        pieces = [piece for mark in _marks(tag) for piece in self._pieces[mark]]
        box: Box | None = None
        for piece in pieces:
            box = union(box, piece.place)
        rows = rows_of(pieces)
        if keep and rows:
            left = min(piece.box[0] for piece in pieces)
            indents = [round((row[0].box[0] - left) / (0.6 * max(row[0].font.size, 1.0))) for row in rows]
            return joined_lines((" " * indent + joined(row) for indent, row in zip(indents, rows, strict=True)), keep=True), box
        return joined_lines(joined(row) for row in rows), box


def _unfolded(content: Sequence[int | Tag]) -> Iterator[int | Tag]:
    for child in content:
        if isinstance(child, Tag) and child.type in ("LBody", "NonStruct", "Div", "Sect", "P", "Span") and _holds_blocks(child):
            yield from _unfolded(child.content)
        else:
            yield child


def _is_block(tag: Tag) -> bool:
    return tag.type in _BLOCKS or tag.type in _DROPPED or tag.type in ("Table", "L", "LI") or bool(_heading_level(tag.type))


def _holds_blocks(tag: Tag) -> bool:
    return any(isinstance(child, Tag) and (_is_block(child) or _holds_blocks(child)) for child in tag.content)
