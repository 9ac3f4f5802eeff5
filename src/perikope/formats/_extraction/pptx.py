"""PowerPoint: the slides of a PPTX file in their order, each with its title, its shapes and the speaker's notes.

Text of groups, tables, charts and diagrams is read. Dates, numbers and footers of slides, their layouts and masters,
comments and embedded files are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from perikope.formats._extraction.blocks import Extracted, FileBlock, Unreadable
from perikope.formats._extraction.drawing import DRAWING_SPACES, Drawings
from perikope.formats._extraction.ooxml import OFFICE, STRICT, Parts, relation_id
from perikope.formats._extraction.package import Element, attribute, block_of

_SPACES = {"p": (f"{OFFICE}/presentationml/2006/main", f"{STRICT}/presentationml/main"), **DRAWING_SPACES}
_TITLES = ("title", "ctrTitle")
_SKIPPED = ("dt", "ftr", "sldNum", "hdr", "sldImg")
_LEVEL = 2
"""The level of the titles of slides; the title of the presentation is above them."""
_LONGEST_TITLE = 120
"""Characters of the longest text that becomes the title of a slide without one."""


def read_pptx(data: bytes) -> Extracted:
    """The blocks of a presentation; the page of a block is the number of its slide."""
    parts = Parts(data, _SPACES, "ppt/presentation.xml")
    root = parts.root("p:presentation", "slides of a presentation")
    related = {relation.id: relation.part for relation in parts.relations(parts.main)}
    listed = [related.get(relation_id(one), "") for one in parts.inside(root, "p:sldIdLst", "p:sldId")]
    blocks: list[FileBlock] = []
    for number, part in enumerate(dict.fromkeys(listed), 1):
        blocks += [replace(block, page=number, note="slide") for block in _slide(parts, part)]
    return parts.extracted(blocks)


def _slide(parts: Parts, part: str) -> list[FileBlock]:
    root = parts.package.xml(part)
    if root is None or parts.names(root) != "p:sld":
        raise Unreadable(f"is damaged (it lacks the slide {part or 'that it lists'}); open it in its program and save it again")
    blocks = [block for block in _Shapes(parts, part).blocks(root) if block.text.strip() or block.kind == "table"]
    titles = [block for block in blocks if block.kind == "heading"]
    if titles:
        blocks.remove(titles[0])
        blocks.insert(0, titles[0])
    elif blocks and blocks[0].kind == "p" and len(blocks) > 1 and len(blocks[0].text) <= _LONGEST_TITLE:
        blocks[0] = block_of("heading", blocks[0].text, _LEVEL)
    elif blocks:
        # An empty heading ends the slide before.
        blocks.insert(0, FileBlock("heading", "", _LEVEL))
    for relation in parts.relations(part):
        notes = parts.package.xml(relation.part) if relation.type == "notesSlide" else None
        if notes is not None and parts.names(notes) == "p:notes":
            found = _Shapes(parts, relation.part).blocks(notes)
            blocks += [replace(block, kind="note") for block in found if block.text.strip()]
    return blocks


class _Shapes:
    """The shapes of one slide, in the order of the file, which is that of reading and of drawing."""

    def __init__(self, parts: Parts, part: str) -> None:
        self._parts, self._drawings = parts, Drawings(parts, part)

    def blocks(self, root: Element) -> Iterator[FileBlock]:
        """The blocks of all shapes."""
        tree = self._parts.child(root, "p:cSld", "p:spTree")
        if tree is not None:
            yield from self._group(tree)

    def _group(self, group: Element) -> Iterator[FileBlock]:
        for child in self._parts.children(group):
            name = self._parts.names(child)
            if name == "p:sp":
                yield from self._shape(child)
            elif name == "p:graphicFrame":
                graphic = self._parts.child(child, "a:graphic")
                yield from self._drawings.graphic(graphic) if graphic is not None else ()
            elif name in ("p:grpSp", "mc:Choice", "mc:Fallback"):
                # A program writes versions of a shape if it contains a formula, for example.
                yield from self._group(child)

    def _shape(self, shape: Element) -> Iterator[FileBlock]:
        place = attribute(self._parts.child(shape, "p:nvSpPr", "p:nvPr", "p:ph"), "type")
        if place in _SKIPPED:
            return
        paragraphs = self._drawings.paragraphs(self._parts.child(shape, "p:txBody"))
        if place in _TITLES:
            yield block_of("heading", " ".join(block.text for block in paragraphs), _LEVEL)
        else:
            yield from paragraphs
