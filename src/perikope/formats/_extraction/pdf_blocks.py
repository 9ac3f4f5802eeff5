"""Blocks of a PDF without tags: lines become paragraphs, list items, code and tables, by distance, indent and font."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from perikope.formats._extraction.blocks import Box, FileBlock, union
from perikope.formats._extraction.pdf_lines import PageLine, joined_lines
from perikope.formats._extraction.pdf_tables import PageRow, table_at
from perikope.formats._extraction.pdf_text import Font

SHORT_LINE = 8
"""How far before the right edge a line ends that is the last one of its paragraph, in font sizes."""
LEAST_WIDE = 0.25
"""The share of lines that go over most of the width in a text of one column. In several columns, none does."""
MUCH_TEXT, LARGEST_TEXT = 0.25, 1.3
"""A larger font is that of the text if it has this share of the most frequent font, and is at most that much larger."""
BULLET = re.compile(r"[•‣◦▪●○■∙·–—*✓\uf0b7-]\s+(?=\S)|[•‣◦▪●■]")
_ITEM = re.compile(r"(?:\(?\d{1,2}[.)]|\(?[a-z][.)]|\((?:i{1,3}|iv|v|vi{0,3})\))\s+(?=\S)")
_CAPTION = re.compile(r"(?:Table|Figure|Fig\.|Tabelle|Abbildung|Listing|Box|Tableau)\s*[A-Z\d][\d.]*\s*[:.|–-]", re.IGNORECASE)
_LEADERS = re.compile(r"(?:\.\s?){4,}\s*[\divxlc]+$|…\s*\d+$")


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A block together with its font, before headings are recognised."""

    block: FileBlock
    font: Font
    lines: int
    first: PageLine | None = None
    """The first line of the block; None for rows of a table."""
    last: PageLine | None = None
    """The last line of the block; None for rows of a table."""


def body_font(pages: Sequence[Sequence[PageLine]]) -> Font:
    """The font of most text, or a larger one of much text: a manual may have more small print than text."""
    counts: Counter[Font] = Counter()
    for lines in pages:
        for line in lines:
            counts[line.font] += len(line.text)
    usual = [(font, count) for font, count in counts.most_common() if not font.mono] or counts.most_common()
    if not usual:
        return Font(10.0, False, False)
    most, count = usual[0]
    return max(
        (font for font, other in usual if font.bold == most.bold and other >= MUCH_TEXT * count and font.size <= LARGEST_TEXT * most.size),
        key=lambda font: (font.size, counts[font]),
    )


def drafts_of(pages: Sequence[Sequence[PageLine]], body: Font) -> list[PageBlock]:
    """All blocks of a document in reading order."""
    drafts: list[PageBlock] = []
    edges = _right_edges(pages, body)
    for lines in pages:
        kept = [line for line in lines if not _LEADERS.search(line.text)]
        edge = edges.get(_side(lines[0])) if lines else None
        for draft in _page_drafts(kept, body, edge):
            if drafts and _goes_on(drafts[-1], draft, body, edges):
                drafts[-1] = _joined(drafts[-1], draft)
            else:
                drafts.append(draft)
    return drafts


def _side(line: PageLine) -> tuple[bool, int]:
    """Whether the text of a line is turned, as on a page in landscape, and whether its page is odd."""
    return bool(line.turn.quarters), line.page % 2


def _right_edges(pages: Sequence[Sequence[PageLine]], body: Font) -> dict[tuple[bool, int], float]:
    """The right edge of the text on odd and even pages; none if the text has several columns."""
    usual = [line for lines in pages for line in lines if abs(line.font.size - body.size) < 0.6 and not line.font.mono]
    return {
        side: edge
        for turned in (False, True)
        for side, edge in _edges_of([line for line in usual if bool(line.turn.quarters) == turned]).items()
    }


def _edges_of(usual: Sequence[PageLine]) -> dict[tuple[bool, int], float]:
    if not usual:
        return {}
    width = max(line.box[2] for line in usual) - min(line.box[0] for line in usual)
    wide = sum(line.box[2] - line.box[0] > 0.6 * width for line in usual)
    if wide < LEAST_WIDE * len(usual):
        return {}
    rights: dict[tuple[bool, int], list[float]] = {}
    for line in usual:
        rights.setdefault(_side(line), []).append(line.box[2])
    return {side: sorted(edges)[int(0.97 * (len(edges) - 1))] for side, edges in rights.items()}


def _ends_early(last: PageLine, line: PageLine, edge: float, body: Font) -> bool:
    """Whether the first word of a line would have fitted into the line above, so that the author broke the line."""
    size = body.size
    if abs(last.font.size - size) > 0.6 or abs(line.box[0] - last.box[0]) > 2.5 * size:
        return False
    word = line.text.split(" ", 1)[0]
    width = (line.box[2] - line.box[0]) * len(word) / max(len(line.text), 1)
    return last.box[2] + width + 1.5 * size < edge


def _page_drafts(lines: Sequence[PageLine], body: Font, edge: float | None) -> list[PageBlock]:
    drafts: list[PageBlock] = []
    group: list[PageLine] = []
    pitch = _pitch(lines)
    number = 0
    while number < len(lines):
        rows, end = table_at(lines, number)
        if rows:
            if group:
                drafts.append(_draft(group))
                group = []
            drafts += _table(rows, lines[number])
            number = end
            continue
        line = lines[number]
        if group and (_begins(group, line, pitch) or (edge and _ends_early(group[-1], line, edge, body) and not line.font.mono)):
            drafts.append(_draft(group))
            group = []
        group.append(line)
        number += 1
    return [*drafts, _draft(group)] if group else drafts


def _pitch(lines: Sequence[PageLine]) -> float:
    """The usual distance of two lines of a paragraph, in font sizes."""
    steps = [
        (above.baseline - below.baseline) / above.font.size
        for above, below in itertools.pairwise(lines)
        if above.font.size == below.font.size and 0.9 < (above.baseline - below.baseline) / above.font.size < 2.2
    ]
    return median(steps) if steps else 1.2


def _begins(group: Sequence[PageLine], line: PageLine, pitch: float) -> bool:
    """Whether a line begins a new block after the lines of a group."""
    last, first = group[-1], group[0]
    size = max(last.font.size, 1.0)
    step = last.baseline - line.baseline
    if abs(line.font.size - last.font.size) > 0.6:
        return True
    if line.font.mono != last.font.mono:
        # A line of a paragraph may consist of names in a font of code. Code has a distance or an indent.
        goes_on = 0 < step < (pitch + 0.15) * size and abs(line.box[0] - last.box[0]) < 1 and not _is_complete(last.text)
        return not goes_on
    if step < -0.5 * size:
        # The next column: the paragraph goes on unless it looks complete.
        return _is_complete(last.text) or not line.text[:1].islower() or line.font.bold != last.font.bold
    if step > (pitch + 0.35) * size:
        return not (line.font.mono and step < 2.6 * pitch * size)
    if line.font.mono:
        return False
    if line.font.bold != last.font.bold:
        # A bold line alone above other text is a heading; bold words in a paragraph do not fill a line.
        return (len(group) == 1 and last.font.bold) or (line.font.bold and _is_complete(last.text) and not last.font.bold)
    if BULLET.match(line.text) or _ITEM.match(line.text):
        return True
    left = min(one.box[0] for one in group[1:]) if len(group) > 1 else first.box[0]
    if _is_item(first.text):
        return line.box[0] < first.box[0] - 0.5 * size
    is_indented = 0.8 * size < line.box[0] - left < 4 * size
    return is_indented and _is_complete(last.text)


def _is_item(text: str) -> bool:
    return bool(BULLET.match(text) or _ITEM.match(text))


def _is_complete(text: str) -> bool:
    return text.rstrip().endswith((".", "!", "?", ":", ".”", '."', ".)", ";"))


def _draft(lines: Sequence[PageLine]) -> PageBlock:
    first = lines[0]
    box: Box | None = None
    for line in lines:
        box = union(box, line.box) if line.page == first.page else box
    font = Counter(line.font for line in lines).most_common(1)[0][0]
    if all(line.font.mono for line in lines) and not _is_item(first.text):
        return PageBlock(FileBlock("code", _code(lines), 0, first.page, box), font, len(lines), first, lines[-1])
    text = joined_lines(line.text for line in lines)
    if bullet := BULLET.match(text):
        return PageBlock(FileBlock("li", text[bullet.end() :].strip(), 0, first.page, box), font, len(lines), first, lines[-1])
    kind = "caption" if _CAPTION.match(text) else "li" if _ITEM.match(text) else "p"
    return PageBlock(FileBlock(kind, text, 0, first.page, box), font, len(lines), first, lines[-1])


def _code(lines: Sequence[PageLine]) -> str:
    """Lines of code with their indentation and blank lines."""
    left = min(line.box[0] for line in lines)
    texts: list[str] = []
    for number, line in enumerate(lines):
        width = 0.6 * max(line.font.size, 1.0)
        if number and lines[number - 1].baseline - line.baseline > 1.9 * line.font.size:
            texts.append("")
        texts.append(" " * round((line.box[0] - left) / width) + "  ".join(text for text, _ in line.cells))
    return joined_lines(texts, keep=True)


def _table(rows: Sequence[PageRow], first: PageLine) -> list[PageBlock]:
    header = rows[0]
    others = rows[1:]
    is_header = len(others) > 0 and (header.bold or not any(re.search(r"\d", cell) for cell in header.cells)) and all(header.cells)
    font = first.font
    title = _cells(header) if is_header else ""
    drafts = [PageBlock(FileBlock("table", title, 0, first.page, header.box), font, 1)]
    drafts += [PageBlock(FileBlock("tr", _cells(row), 0, first.page, row.box), font, 1) for row in (others if is_header else rows)]
    return drafts


def _cells(row: PageRow) -> str:
    return " | ".join(row.cells)


def _goes_on(last: PageBlock, draft: PageBlock, body: Font, edges: Mapping[tuple[bool, int], float]) -> bool:
    """Whether a paragraph continues on the next page."""
    if last.block.kind not in ("p", "li") or draft.block.kind != "p" or draft.block.page == last.block.page:
        return False
    if last.font != draft.font or last.font.size > body.size + 0.6:
        return False
    edge = edges.get(_side(last.last)) if last.last else None
    if last.last and edge and last.last.box[2] + SHORT_LINE * body.size < edge:
        return False
    # Cells of a table are no paragraph that continues.
    letters, digits = (sum(map(kind, last.block.text)) for kind in (str.isalpha, str.isdigit))
    return letters > digits and not _is_complete(last.block.text) and draft.block.text[:1].islower()


def _joined(last: PageBlock, draft: PageBlock) -> PageBlock:
    block = last.block
    text = joined_lines((block.text, draft.block.text))
    return PageBlock(FileBlock(block.kind, text, 0, block.page, block.box), last.font, last.lines + draft.lines, last.first, draft.last)
