"""Builds a document from blocks: headings become sections, and every passage keeps its page and rectangle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perikope.document.pieces import CODE, natural_pieces
from perikope.document.tree import Kind, Place, TreeBuilder
from perikope.formats._code import CODE_LANGUAGE
from perikope.formats._extraction.blocks import Extracted, FileBlock
from perikope.formats._source import Source, language_or_nothing

LONGEST_HEADER = 500
"""Characters of the longest header of a table that becomes a title."""


def tree_of(source: Source, extracted: Extracted) -> TreeBuilder:
    """The builder with the tree of a file's only document."""
    title, blocks = _with_title(extracted.title, extracted.blocks)
    language = language_or_nothing(extracted.language) or source.language
    builder = TreeBuilder(source.id, title=title, language=language, metadata=extracted.metadata)
    reader = _BlockReader(builder)
    for block in blocks:
        reader.add(block)
    reader.finish()
    return builder


def _with_title(title: str, blocks: Sequence[FileBlock]) -> tuple[str, Sequence[FileBlock]]:
    """The title of the document, and the blocks without it.

    Without a stated title, it is the first heading, if it is the only one of its level or another one follows at once.
    """
    if not blocks:
        return title, blocks
    first = blocks[0]
    if first.kind != "heading" or not first.text:
        is_title = first.kind == "p" and bool(title) and _same(first.text, title)
        return title, blocks[1:] if is_title and len(blocks) > 1 else blocks
    levels = [block.level for block in blocks[1:] if block.kind == "heading"]
    is_alone = not any(level <= first.level for level in levels)
    is_empty = len(blocks) > 1 and blocks[1].kind == "heading" and blocks[1].level <= first.level
    if len(blocks) > 1 and (_same(first.text, title) if title else is_empty or (is_alone and first.level == 1)):
        return first.text, blocks[1:]
    return title, blocks


def _same(first: str, second: str) -> bool:
    return " ".join(first.split()).casefold() == " ".join(second.split()).casefold()


class _BlockReader:
    """Adds blocks to a builder. Lists and tables stay open until a block of another kind follows."""

    def __init__(self, builder: TreeBuilder) -> None:
        self._builder = builder
        self._holder = ""
        self._languages: dict[str, None] = {}

    def add(self, block: FileBlock) -> None:
        if block.kind == "table":
            self._open("")
            with_header = bool(block.text) and len(block.text) <= LONGEST_HEADER
            self._builder.open(Kind.SECTION if with_header else Kind.ELEMENT, "table")
            self._holder = "table"
            if with_header:
                self._place(self._builder.title(block.text), block)
            elif block.text:
                self.add(replace(block, kind="tr"))
            return
        self._open({"li": "ul", "tr": "table", "dt": "dl", "dd": "dl"}.get(block.kind, ""))
        if block.kind == "heading":
            # The path of titles lies at the section, whose place is that of its heading.
            if text := " ".join(block.text.split()):
                self._place(self._builder.heading(max(block.level, 1), text), block)
            else:
                self._builder.close_headings(max(block.level, 1))
        elif block.kind == "code":
            self._code(block)
        elif block.text.strip(" |"):
            self._place(self._builder.passage(block.text, block.kind), block)

    def finish(self) -> None:
        self._open("")
        self._builder.close_headings()
        if self._languages:
            self._builder.metadata.setdefault(CODE_LANGUAGE, list(self._languages))

    def _open(self, holder: str) -> None:
        """Close the open list or table, and open the one that a block needs."""
        if self._holder == holder:
            return
        if self._holder:
            self._builder.close()
        if holder:
            self._builder.open(Kind.ELEMENT, holder)
        self._holder = holder

    def _code(self, block: FileBlock) -> None:
        for number in self._builder.divided(block.text, natural_pieces(block.text), CODE, holder="pre"):
            self._place(number, block)
        if block.note not in ("", "slide"):
            self._languages[block.note.lower()] = None

    def _place(self, number: int, block: FileBlock) -> None:
        if block.page:
            box = tuple(round(value, 1) for value in block.box) if block.box else ()
            self._builder.places[number] = Place("", 0, 0, block.page, box)
            self._builder.citations[number] = f"slide {block.page}" if block.note == "slide" else f"p. {block.page}"
