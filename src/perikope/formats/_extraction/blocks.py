"""Blocks: the text of a file in reading order, as the reading process sends it and as a tree is built from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Box = tuple[float, float, float, float]
"""A rectangle on a page: left, bottom, right and top, in points from the lower left corner of the page."""


@dataclass(frozen=True, slots=True)
class FileBlock:
    """One block of text.

    A block of the kind `table` begins a table, and its text is the header. The blocks of the kind `tr` that follow are
    the rows.
    """

    kind: str
    """`heading`, `p`, `li`, `dt`, `dd`, `code`, `caption`, `blockquote`, `note`, `table` or `tr`.

    A heading without text ends the section before.
    """
    text: str = ""
    level: int = 0
    """The level of a heading, from 1."""
    page: int = 0
    """The number of the page, from 1; 0 if the format has no pages."""
    box: Box | None = None
    note: str = ""
    """The programming language of code; the unit of a page that is not a page, such as `slide`."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """All blocks of a file, and what the file says about itself."""

    blocks: list[FileBlock] = field(default_factory=list)
    title: str = ""
    language: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


class Unreadable(Exception):
    """A file that cannot be read. The message is the reason and what to do, without the name of the file."""


def union(first: Box | None, second: Box | None) -> Box | None:
    """The smallest rectangle around two rectangles.

    >>> union((0, 0, 2, 1), (1, -1, 3, 0.5))
    (0, -1, 3, 1)
    """
    if first is None or second is None:
        return first or second
    return min(first[0], second[0]), min(first[1], second[1]), max(first[2], second[2]), max(first[3], second[3])


def table_blocks(rows: Sequence[Sequence[str]]) -> list[FileBlock]:
    """The blocks of a table; its first row is a header if all its cells are different words, and no numbers."""
    if not rows:
        return []
    first = rows[0]
    is_header = len(rows) > 1 and all(first) and len(set(first)) == len(first) and not any(cell[:1].isdigit() for cell in first)
    header = " | ".join(first) if is_header else ""
    return [FileBlock("table", header), *(FileBlock("tr", " | ".join(row)) for row in (rows[1:] if is_header else rows))]


def to_plain(extracted: Extracted) -> dict[str, Any]:
    """The same as lists and dictionaries, for JSON."""
    blocks = [[block.kind, block.text, block.level, block.page, block.box, block.note] for block in extracted.blocks]
    return {"blocks": blocks, "title": extracted.title, "language": extracted.language, "metadata": extracted.metadata}


def from_plain(plain: dict[str, Any]) -> Extracted:
    """The opposite of `to_plain`."""
    blocks = [
        FileBlock(kind, text, level, page, tuple(box) if box else None, note) for kind, text, level, page, box, note in plain["blocks"]
    ]
    return Extracted(blocks, plain["title"], plain["language"], plain["metadata"])
