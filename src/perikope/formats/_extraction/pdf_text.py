"""The text of a PDF page with positions and fonts, read with PDFium.

PDFium lists the characters of a page in the order of the page's content. Characters of one font on one line, without a
wide gap between them, are a piece. Text that runs upwards, downwards or upside down is turned first, so that what
follows sees lines from left to right on every page.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import Any

from perikope.formats._extraction.blocks import Box

WIDE_GAP = 0.9
"""The width of a gap at which a line is divided into pieces, in font sizes. Words have gaps of about 0.3."""
HYPHEN = "\x02"
"""The character by which PDFium marks a hyphen at the end of a line, where a word is divided."""

LEAST_BESIDE = 200
"""The least number of characters in another direction than most of its page that are kept; fewer are labels, stamps."""
MOST_OBLIQUE = 0.2
"""How much a line may rise, per length, and still counts as horizontal or vertical."""
WORD_GAP = 0.22
"""The width of a gap in turned text that is a space, in font sizes; PDFium finds spaces only in horizontal text."""

_FIXED_PITCH, _ITALIC_FLAG, _FORCE_BOLD = 1, 1 << 6, 1 << 18
_MONOSPACED = ("mono", "courier", "typewriter", "cmtt", "consol", "lmtt", "sftt", "menlo", "inconsolata")
_BOLD = ("bold", "black", "heavy", "cmbx", "semibold", "-bd", "sfbx", "cmssbx", "demi")
_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st", 0xAD: ""}


@dataclass(frozen=True, slots=True)
class Font:
    """The font of a piece, as far as the layout depends on it."""

    size: float
    bold: bool
    mono: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """How the text of a page runs, and the size of the page, so that its coordinates can be turned and turned back."""

    quarters: int = 0
    """The direction of the text: 0 to the right, 1 upwards, 2 to the left, 3 downwards."""
    width: float = 0.0
    height: float = 0.0
    oblique: bool = False
    """Whether the text runs in no such direction, but nearest to this one."""

    @property
    def upright_height(self) -> float:
        """The height of the page if the text runs to the right."""
        return self.width if self.quarters % 2 else self.height

    def point(self, x: float, y: float) -> tuple[float, float]:
        """A point of the page in coordinates in which the text runs to the right."""
        if self.quarters == 0:
            return x, y
        if self.quarters == 1:
            return y, self.width - x
        return (self.width - x, self.height - y) if self.quarters == 2 else (self.height - y, x)

    def back(self, box: Box) -> Box:
        """A turned rectangle in the coordinates of the page.

        >>> turn = Turn(1, 600, 800)
        >>> turn.point(100, 200), turn.back((200, 490, 300, 500))
        ((200, 500), (100, 200, 110, 300))
        """
        left, bottom, right, top = box
        if self.quarters == 0:
            return box
        if self.quarters == 1:
            return self.width - top, left, self.width - bottom, right
        if self.quarters == 2:
            return self.width - right, self.height - top, self.width - left, self.height - bottom
        return bottom, self.height - right, top, self.height - left


UPRIGHT = Turn()


@dataclass(frozen=True, slots=True)
class PagePiece:
    """Characters of one font on one line, without a wide gap between them."""

    text: str
    box: Box
    baseline: float
    font: Font
    mark: int
    """The number of the marked content that the piece belongs to; -1 if it belongs to none."""
    turn: Turn = UPRIGHT
    """The direction of the text on the page. `box` and `baseline` are turned, so that the text runs to the right."""

    @property
    def place(self) -> Box:
        """The rectangle of the piece on the page."""
        return self.turn.back(self.box)


def page_pieces(page: Any) -> list[list[PagePiece]]:
    """The pieces of a page in the order of its content: one list per direction of text, the one with most text first.

    Little text in another direction, as at the axes of a figure, is left out. So is oblique text, unless there is no
    other.
    """
    import pypdfium2.raw as pdfium

    text_page = page.get_textpage()
    handle = text_page.raw
    width, height = page.get_size()
    collector = _Collector(handle, pdfium, (height, width) if page.get_rotation() % 180 else (width, height))
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    code_at, box_at, object_at = pdfium.FPDFText_GetUnicode, pdfium.FPDFText_GetCharBox, pdfium.FPDFText_GetTextObject
    for index in range(text_page.count_chars()):
        code = code_at(handle, index)
        if code in (13, 10, 0):
            continue
        if code == 32 or not box_at(handle, index, left, right, bottom, top):
            collector.space()
            continue
        owner = object_at(handle, index)
        address = ctypes.cast(owner, ctypes.c_void_p).value if owner else 0
        collector.add(index, code, address or 0, owner, left.value, bottom.value, right.value, top.value)
    collector.finish()
    text_page.close()
    return _by_direction(collector.pieces)


def _by_direction(pieces: list[PagePiece]) -> list[list[PagePiece]]:
    lengths: Counter[Turn] = Counter()
    for piece in pieces:
        lengths[piece.turn] += len(piece.text.strip())
    if len(lengths) <= 1:
        return [_downwards(pieces)] if pieces else []
    straight = Counter({turn: length for turn, length in lengths.items() if not turn.oblique})
    (main, _), *others = (straight or lengths).most_common()
    kept = [main, *(turn for turn, length in others if length >= LEAST_BESIDE)]
    return [_downwards([piece for piece in pieces if piece.turn == turn]) for turn in kept]


def _downwards(pieces: list[PagePiece]) -> list[PagePiece]:
    """Pieces from the top to the bottom. PDFium may list lines that run downwards from the last to the first."""
    if not pieces[0].turn.quarters:
        return pieces
    steps = [above.baseline - below.baseline for above, below in itertools.pairwise(pieces)]
    if sum(step < 0 for step in steps) <= sum(step > 0 for step in steps):
        return pieces
    return sorted(pieces, key=lambda piece: (-round(piece.baseline), piece.box[0]))


class _Collector:
    """Puts characters together to pieces."""

    def __init__(self, handle: Any, pdfium: Any, size: tuple[float, float] = (0.0, 0.0)) -> None:
        self.pieces: list[PagePiece] = []
        self._handle, self._pdfium, self._size = handle, pdfium, size
        self._turn = Turn(0, *size)
        self._owner = -1
        self._font = Font(0.0, False, False)
        self._baseline, self._mark, self._skipped = 0.0, -1, False
        self._text: list[str] = []
        self._box: list[float] = []
        self._high = 0

    def space(self) -> None:
        if self._text and self._text[-1] != " ":
            self._text.append(" ")

    def add(self, index: int, code: int, address: int, owner: Any, left: float, bottom: float, right: float, top: float) -> None:
        if address != self._owner:
            self._change_owner(index, address, owner)
        if self._skipped:
            return
        if self._turn.quarters:
            one, other = self._turn.point(left, bottom), self._turn.point(right, top)
            (left, right), (bottom, top) = sorted((one[0], other[0])), sorted((one[1], other[1]))
        if self._box:
            gap = left - self._box[2]
            if self._turn.quarters and gap > WORD_GAP * self._font.size:
                self.space()
            if gap > WIDE_GAP * self._font.size or gap < -self._font.size:
                self.finish()
        self._text.append(self._character(code))
        if not self._box:
            self._box = [left, bottom, right, top]
        else:
            box = self._box
            box[1], box[2], box[3] = min(box[1], bottom), max(box[2], right), max(box[3], top)

    def _character(self, code: int) -> str:
        """The text of a unit of UTF-16. The first unit of two has no text; letters of formulas become plain letters."""
        high, self._high = self._high, code if 0xD800 <= code < 0xDC00 else 0
        if self._high:
            return ""
        if 0xDC00 <= code < 0xE000:
            return unicodedata.normalize("NFKC", chr(0x10000 + (high - 0xD800 << 10) + code - 0xDC00)) if high else "\ufffd"
        return _LIGATURES.get(code) or chr(code)

    def finish(self) -> None:
        text = "".join(self._text)
        if text.strip():
            left, bottom, right, top = self._box
            self.pieces.append(PagePiece(_clean(text), (left, bottom, right, top), self._baseline, self._font, self._mark, self._turn))
        self._text, self._box = [], []

    def _change_owner(self, index: int, address: int, owner: Any) -> None:
        """Read font, baseline and mark at the first character of a text object."""
        pdfium, handle = self._pdfium, self._handle
        matrix = pdfium.FS_MATRIX()
        pdfium.FPDFText_GetMatrix(handle, index, matrix)
        size = pdfium.FPDFText_GetFontSize(handle, index) * math.hypot(matrix.c, matrix.d)
        x, y = ctypes.c_double(), ctypes.c_double()
        pdfium.FPDFText_GetCharOrigin(handle, index, x, y)
        font = self._read_font(index, round(size, 1))
        mark = pdfium.FPDFPageObj_GetMarkedContentID(owner) if owner else -1
        turn = self._turn_of(matrix)
        baseline = turn.point(x.value, y.value)[1]
        # Text objects of one word or line that only differ by their start are one piece.
        is_alike = font == self._font and mark == self._mark and turn == self._turn
        goes_on = self._box and is_alike and abs(baseline - self._baseline) < 0.1 * max(size, 1.0)
        if not goes_on:
            self.finish()
        self._owner, self._font, self._baseline, self._mark = address, font, baseline, mark
        self._turn, self._skipped = turn, size < 1.0

    def _turn_of(self, matrix: Any) -> Turn:
        """The direction of text with a matrix. Mirrored text counts as text that is not."""
        long, short = max(abs(matrix.a), abs(matrix.b)), min(abs(matrix.a), abs(matrix.b))
        is_vertical = abs(matrix.b) > abs(matrix.a)
        is_backwards = matrix.b < 0 if is_vertical else matrix.a < 0 and matrix.d < 0
        quarters = is_vertical + 2 * is_backwards
        return Turn(quarters, *self._size, oblique=short > MOST_OBLIQUE * long)

    def _read_font(self, index: int, size: float) -> Font:
        pdfium, flags = self._pdfium, ctypes.c_int()
        length = pdfium.FPDFText_GetFontInfo(self._handle, index, None, 0, flags)
        buffer = ctypes.create_string_buffer(max(length, 1))
        pdfium.FPDFText_GetFontInfo(self._handle, index, buffer, length, flags)
        name = buffer.value.decode("utf-8", "replace").lower()
        bold = (
            any(word in name for word in _BOLD)
            or bool(flags.value & _FORCE_BOLD)
            or pdfium.FPDFText_GetFontWeight(self._handle, index) >= 600
        )
        mono = any(word in name for word in _MONOSPACED) or bool(flags.value & _FIXED_PITCH)
        return Font(size, bold, mono)


def _clean(text: str) -> str:
    """Text without control and private characters; bullets of symbol fonts become `•`."""
    if text.isascii() and text.isprintable():
        return text
    kept = []
    for character in text:
        if character == HYPHEN or character >= " ":
            category = unicodedata.category(character)
            # A font without a table of characters gives bullets numbers that Unicode reserves.
            is_symbol = category == "Co" or "\x80" <= character <= "\x9f"
            kept.append("•" if is_symbol else "" if category in ("Cn", "Cs") else character)
    return "".join(kept)
