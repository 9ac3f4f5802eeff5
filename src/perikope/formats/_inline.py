"""Inline content: collects the text, marks and references of a passage, and resolves the targets of links."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urlsplit

_SHORT = 30
"""The length up to which it is faster to ask first whether a text is printable than to look for white space."""
_TWO_SPACES = re.compile("  ").search
"""Finds two spaces in a long text; it is twice as fast as `in`, which stops at every space."""


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
        while _TWO_SPACES(text):
            text = text.replace("  ", " ")
    else:
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


class Inline:
    r"""Collects the text, marks and references of a passage piece by piece.

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

    def text(self, text: str | None, keep: bool = False) -> None:
        """Add characters; runs of white space become one space unless `keep` is set."""
        if not text:
            return
        if not keep:
            # Short texts are asked here, because the call of a function takes as long.
            if len(text) > _SHORT or "  " in text or not text.isprintable():
                text = collapsed(text)
            if self._after_space and text[0] == " ":
                text = text[1:]
        if text:
            self._pieces.append(text)
            self._length += len(text)
            self._after_space = text[-1] in " \n"

    def marked(self, tag: str, text: str, keep: bool = False) -> None:
        """Add characters with a mark around them, as `open`, `text` and `close` do."""
        start = self._length
        self.text(text, keep)
        if start < self._length:
            self._marks.append((tag, start, self._length))

    def alone(self, text: str) -> Run:
        """Add the last characters of a run and return it, as `text` and `take` do."""
        if self._pieces or self._open or self._refs:
            self.text(text)
            return self.take()
        return Run(collapsed(text).strip(), [], [])

    def line(self) -> None:
        """Start a new line, unless the text is empty or already at the start of a line."""
        if self._pieces and not self._pieces[-1].endswith("\n"):
            if self._pieces[-1].endswith(" "):
                # The length does not change, so that the positions of marks remain right.
                self._pieces[-1] = self._pieces[-1][:-1] + "\n"
            else:
                self.text("\n", keep=True)

    def apart(self, *, after: int = 1) -> None:
        """Write a space if the text ends with so many letters or digits, so that what follows is a word of its own."""
        last = self._pieces[-1][-after:] if self._pieces else ""
        if len(last) == after and last.isalnum():
            self.text(" ")

    def separate(self) -> None:
        """Write ` | `, which separates two cells of a row, unless at the start of a line."""
        if self._pieces and not self._pieces[-1].endswith("\n"):
            self.text(" | ")

    def open(self, tag: str, refers_to: str = "") -> None:
        """Start a mark; `refers_to` is the id in this document that the mark links to, if any."""
        self._open.append((tag, self._length, refers_to))

    def refer(self, target: str) -> None:
        """Add an id that the text refers to; an empty id is ignored."""
        if target:
            self._refs[target] = None

    def close(self) -> None:
        """End the mark that was opened last; a mark without text is dropped, together with its reference."""
        tag, start, target = self._open.pop()
        if start < self._length:
            self._marks.append((tag, start, self._length))
            self.refer(target)

    def take(self, *, keep: bool = False) -> Run:
        """Return the collected run and begin a new one; marks that are still open continue in the new run.

        White space around the text is removed. With `keep`, the indentation of the first line stays.
        """
        if not keep and not self._marks and not self._open:
            run = Run("".join(self._pieces).strip(), [], list(self._refs))
            self._clear()
            return run
        if still_open := self._open:
            self._open = still_open.copy()
            while self._open:
                self.close()
        text = "".join(self._pieces).rstrip()
        # Preformatted text loses only empty lines at its start: the indentation of its first line has a meaning.
        first = len(text) - len(text.lstrip("\n" if keep else None))
        # An outer mark closes after an inner one, but must come before it in the list, to become its parent.
        length, marks = len(text), []
        for tag, start, end in reversed(self._marks):
            if start < first or end > length or text[start].isspace() or text[end - 1].isspace():
                start, end = _trimmed(text, max(start, first), min(end, length))
            if start < end:
                marks.append((tag, start - first, end - first))
        run = Run(text[first:] if first else text, marks, list(self._refs))
        self._clear()
        if still_open:
            self._open = [(tag, 0, target) for tag, _, target in still_open]
        return run


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


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
