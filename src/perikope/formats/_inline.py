"""Inline content: the characters, marks and references of one passage, gathered piece by piece; and where links lead."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urlsplit

_SPACE = re.compile(r"[ \t\n\r\f\v\xa0\u2028\u2029]+")


class Run(NamedTuple):
    """What was gathered: a text, marks inside it and the ids it refers to."""

    text: str
    marks: list[tuple[str, int, int]]
    refs: list[str]


class Inline:
    r"""Gathers the pieces of one passage; white space is collapsed unless it is to be kept.

    >>> inline = Inline()
    >>> inline.text("The "); inline.open("b"); inline.text(" big\n"); inline.close(); inline.text(" pump ")
    >>> inline.take()
    Run(text='The big pump', marks=[('b', 4, 7)], refs=[])
    """

    def __init__(self) -> None:
        self._open: list[tuple[str, int, str]] = []
        self._clear()

    def _clear(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._after_space = True
        self._marks: list[tuple[str, int, int]] = []
        self._refs: dict[str, None] = {}

    def text(self, text: str | None, *, keep: bool = False) -> None:
        """Add characters, with their white space collapsed or kept."""
        if not text:
            return
        if not keep:
            # Only text that can be printed as it is, and without two spaces in a row, is in order already; so is most.
            if "  " in text or not text.isprintable():
                text = _SPACE.sub(" ", text)
            if self._after_space:
                text = text.removeprefix(" ")
        if text:
            self._pieces.append(text)
            self._length += len(text)
            self._after_space = text[-1] in " \n"

    def line(self) -> None:
        """Start a new line unless at the start of one."""
        if self._pieces and not self._pieces[-1].endswith("\n"):
            if self._pieces[-1].endswith(" "):
                # In its place, so that what was noted of places further on still holds.
                self._pieces[-1] = self._pieces[-1][:-1] + "\n"
            else:
                self.text("\n", keep=True)

    def separate(self) -> None:
        """Set what follows off from what stands before it in the line, as cells of a row are."""
        if self._pieces and not self._pieces[-1].endswith("\n"):
            self.text(" | ")

    def open(self, tag: str, refers_to: str = "") -> None:
        """Start a mark, which may be a link to an id of this document."""
        self._open.append((tag, self._length, refers_to))

    def refer(self, target: str) -> None:
        """Note an id that the text refers to."""
        if target:
            self._refs[target] = None

    def close(self) -> None:
        """End the mark that was opened last; one without text leaves no trace."""
        tag, start, target = self._open.pop()
        if start < self._length:
            self._marks.append((tag, start, self._length))
            self.refer(target)

    def take(self, *, keep: bool = False) -> Run:
        """What was gathered, without white space around it; marks still open go on in the next run."""
        still_open = self._open
        self._open = still_open.copy()
        while self._open:
            self.close()
        text = "".join(self._pieces).rstrip()
        # Of preformatted text only empty lines are cut off: the indentation of its first line means something.
        first = len(text) - len(text.lstrip("\n" if keep else None))
        # The outer of two marks is closed last; of two with the same text it must come first to become the parent.
        marks = [mark for mark in (_trimmed(text, first, *mark) for mark in reversed(self._marks)) if mark[1] < mark[2]]
        run = Run(text[first:], marks, list(self._refs))
        self._clear()
        self._open = [(tag, 0, target) for tag, _, target in still_open]
        return run


def _trimmed(text: str, first: int, tag: str, start: int, end: int) -> tuple[str, int, int]:
    start, end = max(start, first), min(end, len(text))
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return tag, start - first, end - first


def link_target(href: str, document: str) -> tuple[str, str]:
    """Where a link in a document leads: the id inside it or the document that is cited; nothing where neither.

    A relative link is resolved against the path that is the document's id, so that it is the id of the other document.

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
