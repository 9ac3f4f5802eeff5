"""Inline content: collects the text, marks and references of a passage, and resolves the targets of links."""

from __future__ import annotations

import posixpath
import re
from itertools import accumulate
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urlsplit

_SHORT = 30
"""The length up to which it is faster to ask first whether a text is printable than to look for white space."""
_SPACES = " \t\n\r\f\v\xa0\u2028\u2029"
"""The characters that `collapsed` replaces."""
_AT_START = " \0\1"
"""What writes nothing at the start of a text: a space, `LINE` and `SEPARATOR`."""
_LINES = re.compile(" ?\0[ \0\1]*")
"""A new line, with what writes nothing around it."""


def collapsed(text: str) -> str:
    r"""The text with one space in place of each run of white space; most kinds of space in Unicode are kept.

    >>> collapsed("The  big\n\t pump\xa0"), collapsed("thin\u2009space")
    ('The big pump ', 'thin\u2009space')
    """
    # Searching for a single character is a hundred times as fast as a regular expression.
    if len(text) > _SHORT or not text.isprintable():
        text = text.replace("\n", " ").replace("\t", " ").replace("\r", " ").replace("\f", " ").replace("\v", " ")
        text = text.replace("\xa0", " ").replace("\u2028", " ").replace("\u2029", " ")
    # Each turn halves the runs, so that their number is the logarithm of the longest run.
    while "  " in text:
        text = text.replace("  ", " ")
    return text


class Run(NamedTuple):
    """A text with its marks and references.

    Marks are (tag, start, end), in characters of the text; `end` is exclusive. `refs` are ids that the text refers to.
    """

    text: str
    marks: list[tuple[str, int, int]]
    refs: list[str]


class _Special(str):
    """A piece of a run that is no text of the file.

    Instances are compared by identity, because a file may hold the same characters.
    """

    __slots__ = ()


class _Kept(str):
    """A piece of a run whose white space is kept."""

    __slots__ = ()


LINE = _Special("\0")
"""A new line, unless at the start of a line."""
SEPARATOR = _Special("\1")
"""` | ` between two cells, unless at the start of a line."""


class Inline:
    r"""Collects the text, marks and references of a passage piece by piece.

    Pieces are collected as they are. White space is collapsed when the run is taken: at once for the whole text in most
    cases, which is faster than piece by piece. `collapse` shows what the result must be, piece by piece.

    >>> inline = Inline()
    >>> inline.text("The "); inline.open("b"); inline.text(" big\n"); inline.close(); inline.text(" pump ")
    >>> inline.take()
    Run(text='The big pump', marks=[('b', 4, 7)], refs=[])
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        """The pieces of the run, with their white space. Text may be appended here directly; it is like `text`."""
        self.marks: list[tuple[str, int, int]] = []
        """Marks as (tag, first piece, last piece), `last` exclusive, in the order in which they were closed."""
        self._open: list[tuple[str, int, str]] = []
        self._refs: dict[str, None] = {}
        self._lines = self._separators = 0
        self._has_kept = False

    def text(self, text: str | None, keep: bool = False) -> None:
        """Add characters; runs of white space become one space unless `keep` is set."""
        if text:
            if keep:
                self.keep(text)
            else:
                self.pieces.append(text)

    def keep(self, text: str) -> None:
        """Add characters whose white space is kept."""
        self.pieces.append(_Kept(text))
        self._has_kept = True

    def marked(self, tag: str, text: str, keep: bool = False) -> None:
        """Add characters with a mark around them, as `open`, `text` and `close` do."""
        first = len(self.pieces)
        self.text(text, keep)
        self.marks.append((tag, first, len(self.pieces)))

    def alone(self, text: str) -> Run:
        """Add the last characters of a run and return it, as `text` and `take` do."""
        if self.pieces or self._open or self._refs:
            self.text(text)
            return self.take()
        return Run(collapsed(text).strip(), [], [])

    def line(self) -> None:
        """Start a new line, unless the text is empty or already at the start of a line."""
        self.pieces.append(LINE)
        self._lines += 1

    def separate(self) -> None:
        """Write ` | `, which separates two cells of a row, unless at the start of a line."""
        self.pieces.append(SEPARATOR)
        self._separators += 1

    def open(self, tag: str, refers_to: str = "") -> None:
        """Start a mark; `refers_to` is the id in this document that the mark links to, if any."""
        self._open.append((tag, len(self.pieces), refers_to))

    def refer(self, target: str) -> None:
        """Add an id that the text refers to; an empty id is ignored."""
        if target:
            self._refs[target] = None

    def close(self) -> None:
        """End the mark that was opened last; a mark without text is dropped, together with its reference."""
        tag, first, target = self._open.pop()
        self.marks.append((tag, first, len(self.pieces)))
        if target and self._writes_since(first):
            self.refer(target)

    def take(self, *, keep: bool = False) -> Run:
        """Return the collected run and begin a new one; marks that are still open continue in the new run.

        White space around the text is removed. With `keep`, the indentation of the first line stays.
        """
        still_open = self._open
        if still_open:
            self._open = still_open.copy()
            while self._open:
                self.close()
        refs = list(self._refs) if self._refs else []
        if self.marks:
            text, at = self._text_and_lengths()
            text = text.rstrip()
            # Preformatted text loses only empty lines at its start: the indentation of its first line has a meaning.
            first = len(text) - len(text.lstrip("\n" if keep else None))
            # An outer mark closes after an inner one, but must come before it in the list, to become its parent.
            found = ((tag, at[begin], at[end]) for tag, begin, end in reversed(self.marks) if at[begin] < at[end])
            marks = [mark for mark in (_trimmed(text, first, *mark) for mark in found) if mark[1] < mark[2]]
            run = Run(text[first:], marks, refs)
        else:
            text = self._text()
            run = Run(text.rstrip().lstrip("\n") if keep else text.strip(), [], refs)
        self._clear()
        if still_open:
            self._open = [(tag, 0, target) for tag, _, target in still_open]
        return run

    def collapse(self) -> tuple[list[str], list[int]]:
        """The pieces with collapsed white space, and the length of the text before each piece and after the last."""
        written: list[str] = []
        length, after_space, lengths = 0, True, [0]
        for piece in self.pieces:
            text = ""
            if piece is LINE:
                if written and written[-1].endswith(" "):
                    # The length does not change, so that the positions of marks remain right.
                    written[-1] = written[-1][:-1] + "\n"
                elif written and not written[-1].endswith("\n"):
                    text = "\n"
            elif piece is SEPARATOR:
                if written and not written[-1].endswith("\n"):
                    text = "| " if after_space else " | "
            elif type(piece) is _Kept:
                text = str(piece)
            else:
                text = collapsed(piece)
                if after_space:
                    text = text.removeprefix(" ")
            if text:
                written.append(text)
                length += len(text)
                after_space = text[-1] in " \n"
            lengths.append(length)
        return written, lengths

    def _text(self) -> str:
        """The text with collapsed white space; it may begin with a space."""
        joined = "".join(self.pieces)
        if not (self._lines or self._separators or self._has_kept):
            return collapsed(joined)
        if self._has_kept or joined.count(LINE) != self._lines or joined.count(SEPARATOR) != self._separators:
            return "".join(self.collapse()[0])
        text = collapsed(joined).lstrip(_AT_START)
        if self._lines:
            text = _LINES.sub("\n", text)
        if self._separators:
            text = text.replace(SEPARATOR, " | ")
            while "  " in text:
                text = text.replace("  ", " ")
            text = text.replace(" \n", "\n")
        return text

    def _text_and_lengths(self) -> tuple[str, list[int]]:
        """The text with collapsed white space, and the length of the text before each piece and after the last one."""
        if not (self._lines or self._separators or self._has_kept):
            joined = "".join(self.pieces)
            text = collapsed(joined)
            if len(text) == len(joined):
                lengths = [0, *accumulate(map(len, self.pieces))]
                if text[:1] != " ":
                    return text, lengths
                return text[1:], [length - 1 if length else 0 for length in lengths]
        written, lengths = self.collapse()
        return "".join(written), lengths

    def _writes_since(self, first: int) -> bool:
        """Whether the pieces from `first` on write anything."""
        pieces = self.pieces[first:]
        if not pieces:
            return False
        if SEPARATOR in pieces:
            lengths = self.collapse()[1]
            return lengths[first] < lengths[-1]
        if any(type(piece) is _Kept or (piece is not LINE and piece.strip(_SPACES)) for piece in pieces):
            return True
        # A space or a new line is written only after other text.
        before = self.pieces[first - 1] if first else LINE
        return not (type(before) is _Special or before[-1] in (" \n" if type(before) is _Kept else _SPACES))

    def _clear(self) -> None:
        self.pieces.clear()
        self.marks.clear()
        if self._refs:
            self._refs = {}
        self._lines = self._separators = 0
        self._has_kept = False


def _trimmed(text: str, first: int, tag: str, start: int, end: int) -> tuple[str, int, int]:
    start, end = max(start, first), min(end, len(text))
    if start < end and not text[start].isspace() and not text[end - 1].isspace():
        return tag, start - first, end - first
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return tag, start - first, end - first


def link_target(href: str, document: str) -> tuple[str, str]:
    """Resolve a link: return the id inside this document that it leads to, and the id of the document that it cites.

    At least one of the two is empty. `document` is the id of this document, a path. A relative link is resolved against
    it, so that the result is the id of the other document.

    >>> link_target("#claims", "a/b.md"), link_target("../c.md#x", "a/b.md"), link_target("b.md#x", "a/b.md")
    (('claims', ''), ('', 'c.md'), ('x', ''))
    >>> link_target("https://example.org/p#x", "b.md"), link_target("mailto:x@example.org", "b.md")
    (('', 'https://example.org/p'), ('', ''))
    """
    href = href.strip()
    try:
        parts = urlsplit(href)
    except ValueError:
        return "", ""
    if parts.scheme or parts.netloc:
        is_web = parts.scheme in ("http", "https", "") and parts.netloc
        return "", urldefrag(href).url if is_web else ""
    if not parts.path and not parts.query:
        return unquote(parts.fragment), ""
    if not parts.path:
        return "", ""
    path = unquote(parts.path)
    target = path if path.startswith("/") else posixpath.normpath(posixpath.join(posixpath.dirname(document), path))
    if parts.query:
        target += f"?{parts.query}"
    return (unquote(parts.fragment), "") if target == document else ("", target)
