"""Cuts a long text with lines, such as program code, into pieces at natural places."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

CODE = "code"
"""The tag of every passage that is program code or other preformatted text, in every format but JSON Lines."""

LONGEST = 1500
"""The default length of the longest piece, in characters.

This is about one screen of code, and about as much as an encoder of 512 tokens reads.
"""

CHUNK_TOKENS = 300
"""The default size of a chunk (`perikope.document.chunks`), in tokens."""

_LINE, _BLANK, _TOP = 1, 2, 3
"""Ranks of borders: a line begins; a line after a blank line; a line without indentation after a blank line."""
_SPACE = re.compile(r"\s+")
_CLOSING = tuple(")]}")
_BREAKS = (";}>", ",)", " \t")
"""Characters after which a line is cut if it is longer than a piece; those that come first are preferred."""


def natural_pieces(text: str, longest: int = LONGEST) -> list[tuple[int, int]]:
    r"""Start and end (exclusive) of each piece of a text; no piece has more than `longest` characters.

    A text that is short enough is one piece. Otherwise each piece ends, in this order of preference: before a blank
    line that is followed by a line without indentation (in code, a new definition), before any other blank line, at
    the end of a line, after a punctuation mark or a space. Pieces have at least a quarter of `longest` characters,
    unless a text has no natural place there. White space between two pieces belongs to neither. A piece begins at the
    start of a line, so that its indentation is kept.

    >>> text = "def f():\n    return 1\n\n    # not reached\n\ndef g():\n    return 2"
    >>> [text[start:end] for start, end in natural_pieces(text, 50)]
    ['def f():\n    return 1\n\n    # not reached', 'def g():\n    return 2']
    >>> natural_pieces("a b")
    [(0, 3)]
    """
    if len(text) <= longest:
        return [(0, len(text))]
    borders = _borders(text)
    pieces: list[tuple[int, int]] = []
    start, stop = 0, len(text.rstrip())
    while start < stop:
        border = stop if stop - start <= longest else _next_border(text, start, longest, borders)
        end = start + len(text[start:border].rstrip())
        if end > start:
            pieces.append((start, end))
        start = _next_start(text, border)
    return pieces


def _next_start(text: str, border: int) -> int:
    """The start of the first line with text from a border on; inside a line, the first character that is no space."""
    gap = _SPACE.match(text, border)
    content = gap.end() if gap else border
    return text.rfind("\n", border - 1, content) + 1 or content


class _Borders(NamedTuple):
    """The places between two lines that are not blank."""

    ends: list[int]
    """The end of the line before each border; blank lines are left out."""
    positions: list[int]
    """The start of the line after each border."""
    ranks: list[int]


def _borders(text: str) -> _Borders:
    lines: list[tuple[int, int, bool]] = []
    ends: list[int] = []
    position, after_blank = 0, False
    for line in text.split("\n"):
        content = line.strip()
        if content:
            indentation = len(line) - len(line.lstrip())
            lines.append((position, indentation, after_blank and not content.startswith(_CLOSING)))
            ends.append(position + indentation + len(content))
        after_blank = not content
        position += len(line) + 1
    least = min((indentation for _, indentation, _ in lines), default=0)
    ranks = [_LINE if not apart else _TOP if indentation == least else _BLANK for _, indentation, apart in lines[1:]]
    return _Borders(ends[:-1], [position for position, _, _ in lines[1:]], ranks)


def _next_border(text: str, start: int, longest: int, borders: _Borders) -> int:
    """The position at which the piece that begins at `start` ends."""
    last = bisect_right(borders.ends, start + longest)
    for earliest in (start + longest // 4, start):
        first = bisect_right(borders.positions, earliest)
        if first < last:
            best = max(borders.ranks[first:last])
            return borders.positions[max(number for number in range(first, last) if borders.ranks[number] == best)]
    for characters in _BREAKS:
        inside = max(text.rfind(character, start + longest // 4, start + longest) for character in characters)
        if inside >= 0:
            return inside + 1
    return start + longest
