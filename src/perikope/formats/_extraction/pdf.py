"""PDF: pages become blocks, with the page and the rectangle of every block."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from perikope.formats._extraction.blocks import Extracted, FileBlock, Unreadable
from perikope.formats._extraction.pdf_blocks import body_font, drafts_of
from perikope.formats._extraction.pdf_headings import Entry, plain, with_headings, without_contents
from perikope.formats._extraction.pdf_lines import lines_of, with_bullets_joined
from perikope.formats._extraction.pdf_order import in_reading_order, without_furniture
from perikope.formats._extraction.pdf_tables import with_columns_joined
from perikope.formats._extraction.pdf_tags import has_headings, page_tags, share_tagged, tagged_blocks
from perikope.formats._extraction.pdf_text import UPRIGHT, PagePiece, page_pieces

LEAST_TAGGED = 0.8
"""The share of the text that tags must hold, so that the tags decide."""
BESIDE = 1 << 24
"""Added to the number of a page for its text in a second direction; even, so that odd pages stay odd."""
_GENERIC = re.compile(
    r"(?:microsoft word|untitled|\(?anonymous\)?|unspecified)\b.*|.*\.(?:docx?|tex|dvi|pdf|html?|indd|odt|rst)|https?:.*|about:.*",
    re.IGNORECASE,
)
_AT_POINT, _AT_HEIGHT = 1, (3, 7)
"""The kinds of views in PDFium that an entry of an outline leads to."""
_FIELDS = {
    "Author": "author",
    "Subject": "subject",
    "Keywords": "keywords",
    "CreationDate": "date",
}


def read_pdf(data: bytes) -> Extracted:
    """The blocks of a PDF. Raises `Unreadable` if it is encrypted, damaged, or has no text."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise Unreadable(_reason(str(error))) from None
    try:
        return _read(document)
    finally:
        document.close()


def _reason(message: str) -> str:
    if "assword" in message:
        return "is encrypted; save it without a password"
    return "is damaged or no PDF; open it in a viewer and save it again"


def _read(document: Any) -> Extracted:
    texts, tags, empty = [], [], []
    for number in range(len(document)):
        page = document[number]
        texts.append(page_pieces(page))
        tags.append(page_tags(page))
        if not texts[-1] and _is_drawn_on(page):
            empty.append(number + 1)
        page.close()
    if not any(texts):
        raise Unreadable("has no text, as if it were scanned; recognise its text first, for example with ocrmypdf")
    outline = _upright(outline_of(document), texts)
    pages = [([piece for pieces in text for piece in pieces], page) for text, page in zip(texts, tags, strict=True)]
    metadata = _metadata(document)
    title = "" if _GENERIC.fullmatch(metadata.get("title", "")) else metadata.get("title", "")
    if share_tagged(pages) >= LEAST_TAGGED and has_headings(pages):
        found, blocks = "", without_contents(tagged_blocks(pages))
    else:
        found, blocks = _by_layout(texts, outline)
    title = _agreed(found, title, blocks)
    metadata.pop("title", None)
    if empty:
        metadata["pages_without_text"] = empty
    return Extracted(blocks, title, "", {**metadata, "pages": len(pages)})


def _is_drawn_on(page: Any) -> bool:
    """Whether a page has anything on it, such as a picture; others are blank."""
    return next(iter(page.get_objects(max_depth=1)), None) is not None


def _upright(outline: list[Entry], texts: list[list[list[PagePiece]]]) -> list[Entry]:
    """The outline without the heights of entries on pages whose text is turned."""
    turned = {number for number, text in enumerate(texts, 1) if text and text[0][0].turn.quarters}
    return [replace(entry, top=0.0) if entry.page in turned else entry for entry in outline]


def _by_layout(texts: list[list[list[PagePiece]]], outline: list[Entry]) -> tuple[str, list[FileBlock]]:
    """The title and the blocks. Text in a second direction is laid out like a page of its own, after the rest."""
    parts = [(number + BESIDE * part, pieces) for number, text in enumerate(texts, 1) for part, pieces in enumerate(text or [[]])]
    turns = {number: pieces[0].turn if pieces else UPRIGHT for number, pieces in parts}
    heights = [turns[number].upright_height for number, _ in parts]
    lines = [lines_of(pieces, number) for number, pieces in parts]
    body = body_font(lines)
    lines = without_furniture(lines, heights, body.size)
    ordered = [in_reading_order(with_columns_joined(with_bullets_joined(page))) for page in lines]
    title, blocks = with_headings(drafts_of(ordered, body), body, outline)
    return title, [
        replace(block, page=block.page % BESIDE, box=turns[block.page].back(block.box) if block.box else None) for block in blocks
    ]


def _agreed(found: str, stated: str, blocks: list[FileBlock]) -> str:
    """The title: the one on the first page, or else the one that the file states.

    If the first heading is the only one of the highest level, it is the title, and is removed from the blocks.
    """
    first = next((number for number, block in enumerate(blocks) if block.kind == "heading"), -1)
    if not found and first >= 0:
        top = blocks[first]
        is_stated = bool(stated) and plain(top.text) == plain(stated)
        is_alone = sum(block.kind == "heading" and block.level <= top.level for block in blocks) == 1
        if (is_stated or (is_alone and not stated)) and first <= 2 and len(blocks) > 1:
            return blocks.pop(first).text
    return found or stated


def outline_of(document: Any) -> list[Entry]:
    """The outline (bookmarks) of a document; empty if it has none."""
    entries = []
    try:
        for item in document.get_toc(max_depth=10):
            destination = item.get_dest()
            index = destination.get_index() if destination else None
            mode, numbers = destination.get_view() if destination else (0, [])
            # Such a view states the height on the page: as its second number, or as its only one.
            top = numbers[1] if mode == _AT_POINT and len(numbers) > 1 else numbers[0] if mode in _AT_HEIGHT and numbers else 0.0
            if title := " ".join((item.get_title() or "").split()):
                entries.append(Entry(title, item.level + 1, index + 1 if index is not None else 0, float(top)))
    except (RecursionError, ValueError, AttributeError):
        return []
    return entries


def _metadata(document: Any) -> dict[str, Any]:
    stated = document.get_metadata_dict(skip_empty=True)
    metadata: dict[str, Any] = {}
    if title := " ".join(stated.get("Title", "").split()):
        metadata["title"] = title
    for key, name in _FIELDS.items():
        if value := " ".join(stated.get(key, "").split()):
            metadata[name] = value
    if date := re.match(r"D:(\d{4})(\d{2})(\d{2})", metadata.pop("date", "")):
        metadata["date"] = "-".join(date.groups())
    return metadata
