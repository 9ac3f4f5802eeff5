"""Lines: pieces of text on one baseline, joined to words with spaces between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perikope.formats._extraction.blocks import Box, union
from perikope.formats._extraction.pdf_text import HYPHEN, UPRIGHT, WIDE_GAP, Font, PagePiece, Turn

SPACE_GAP = 0.14
"""The width of a gap between two pieces that is a space, in font sizes."""

_BULLET = re.compile(r"[•‣◦▪●○■∙·]")
_LABEL = re.compile(
    r"\d{1,3}(?:\.\d{1,3})*\.?|[A-Z](?:\.\d{1,3})*\.?|[IVXLC]{1,6}\.|[•‣◦▪●○■–—*-]|\(?[a-z0-9]{1,3}[.)]"
    r"|(?:Chapter|Section|Appendix) [A-Z\d.]+"
)


@dataclass(frozen=True, slots=True)
class PageLine:
    """Text on one baseline. `cells` are its pieces between wide gaps; most lines have one."""

    cells: tuple[tuple[str, Box], ...]
    box: Box
    baseline: float
    font: Font
    page: int
    turn: Turn = UPRIGHT
    """The direction of the text on the page. All rectangles of the line are turned accordingly."""

    @property
    def text(self) -> str:
        """The text of all cells, with a space between them."""
        return " ".join(text for text, _ in self.cells)


def joined(pieces: Sequence[PagePiece]) -> str:
    """The text of pieces on one line, with spaces at gaps."""
    parts: list[str] = []
    last: PagePiece | None = None
    for piece in pieces:
        if last is not None and piece.box[0] - last.box[2] > SPACE_GAP * max(piece.font.size, last.font.size):
            parts.append(" ")
        parts.append(piece.text)
        last = piece
    return re.sub(r"\s+", " ", "".join(parts)).strip()


def main_font(pieces: Iterable[PagePiece]) -> Font:
    """The font of most characters."""
    counts: Counter[Font] = Counter()
    for piece in pieces:
        counts[piece.font] += len(piece.text.strip())
    font = counts.most_common(1)[0][0]
    letters = counts.total()
    bold, mono = (sum(count for font, count in counts.items() if getattr(font, name)) for name in ("bold", "mono"))
    return Font(font.size, bold > 0.6 * letters, mono > 0.6 * letters)


def rows_of(pieces: Sequence[PagePiece]) -> list[list[PagePiece]]:
    """Pieces grouped by baseline, in the order of content.

    A small raised or lowered piece belongs to the line beside it.
    """
    rows: list[list[PagePiece]] = []
    for piece in pieces:
        if rows and _on_line(rows[-1], piece):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    return rows


def _on_line(row: Sequence[PagePiece], piece: PagePiece) -> bool:
    last = row[-1]
    size = max(last.font.size, piece.font.size)
    shift = abs(piece.baseline - last.baseline)
    if piece.box[0] < last.box[2] - size:
        return False
    overlap = min(piece.box[3], last.box[3]) - max(piece.box[1], last.box[1])
    is_near = piece.box[0] - last.box[2] < size
    return shift < 0.2 * size or (is_near and shift < 0.6 * size and (overlap > 0 or shift < 0.4 * size))


def lines_of(pieces: Sequence[PagePiece], page: int) -> list[PageLine]:
    """The lines of a page, in the order of content."""
    return [line_of(row, page) for row in rows_of(pieces)]


def with_bullets_joined(lines: Sequence[PageLine]) -> list[PageLine]:
    """Lines with the bullets of list items at their text; some programs draw all bullets after the text of a page."""
    bullets = [line for line in lines if _BULLET.fullmatch(line.text)]
    if not bullets:
        return list(lines)
    joined_lines_of: dict[int, PageLine] = {}
    for bullet in bullets:
        beside = [
            line
            for line in lines
            if abs(line.baseline - bullet.baseline) < 0.4 * line.font.size and 0 < line.box[0] - bullet.box[0] < 4 * line.font.size
        ]
        if nearest := min((line for line in beside if line is not bullet), key=lambda line: line.box[0], default=None):
            (text, box), *others = nearest.cells
            joined_lines_of[id(nearest)] = replace(nearest, cells=((f"{bullet.text} {text}", box), *others))
    alone = {id(line) for line in bullets}
    return [joined_lines_of.get(id(line), line) for line in lines if id(line) not in alone]


def line_of(row: Sequence[PagePiece], page: int) -> PageLine:
    """The line of pieces on one baseline."""
    groups: list[list[PagePiece]] = [[row[0]]]
    for piece in row[1:]:
        last = groups[-1][-1]
        if piece.box[0] - last.box[2] > WIDE_GAP * max(piece.font.size, last.font.size):
            groups.append([piece])
        else:
            groups[-1].append(piece)
    # The label of a list item or a section has a wide gap after it.
    if len(groups) > 1 and _LABEL.fullmatch(joined(groups[0])) and groups[1][0].box[0] - groups[0][-1].box[2] < 4 * row[0].font.size:
        groups[:2] = [groups[0] + groups[1]]
    cells = []
    for group in groups:
        box: Box | None = None
        for piece in group:
            box = union(box, piece.box)
        if (text := joined(group)) and box:
            cells.append((text, box))
    whole = row[0].box
    for piece in row:
        whole = union(whole, piece.box) or whole
    font = main_font(row)
    baselines = [piece.baseline for piece in row if piece.font.size == font.size] or [row[0].baseline]
    return PageLine(tuple(cells) or (("", whole),), whole, baselines[0], font, page, row[0].turn)


def joined_lines(texts: Iterable[str], *, keep: bool = False) -> str:
    """The text of several lines: a word that is divided at the end of a line is put together again.

    With `keep`, as for program code, every line stays a line.
    """
    lines = list(texts)
    if keep:
        return "\n".join(line.replace(HYPHEN, "-") for line in lines)
    text = ""
    for line in lines:
        line = line.strip()
        if text.endswith(HYPHEN):
            text = text[:-1] + line
        elif re.search(r"\w[-\u2010\u00ad]$", text) and line[:1].islower():
            text = text[:-1] + line if text[-1] != "-" or _divided(text) else text + line
        else:
            text = f"{text} {line}" if text else line
    return re.sub(r"[ \t]+", " ", text.replace(HYPHEN, "-"))


_COMPOUNDS = ("self", "non", "well", "cross", "high", "low", "long", "short", "semi", "multi", "pre", "post", "anti", "two", "three", "one")


def _divided(text: str) -> bool:
    """Whether a hyphen at the end of a text divides a word, and is not part of it."""
    found = re.search(r"([\w-]+)-$", text)
    word = found.group(1) if found else "-"
    return "-" not in word and word.lower() not in _COMPOUNDS and not word[-1].isdigit()
