"""A writer of XML that knows the path and the character offset of what it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from xml.sax.saxutils import escape, quoteattr


class XmlWriter:
    """Writes elements one after the other; offsets count the characters of all text nodes, as INEX does."""

    def __init__(self, head: str = '<?xml version="1.0" encoding="UTF-8"?>\n') -> None:
        self._pieces = [head]
        self._path = ""
        self._counts: list[Counter[str]] = [Counter()]
        self.offset = 0

    def __str__(self) -> str:
        return "".join(self._pieces)

    @property
    def path(self) -> str:
        """The XPath of the open element as CLEF-IP writes it: numbers at the last step, above it only from 2 on."""
        return self._path

    @contextmanager
    def element(self, tag: str, **attributes: str) -> Iterator[None]:
        """Open an element for a block; underscores of attribute names become hyphens."""
        counts, outer = self._counts[-1], self._path
        counts[tag] += 1
        above = outer.removesuffix("[1]")
        self._path = f"{above}/{tag}" if len(self._counts) == 1 else f"{above}/{tag}[{counts[tag]}]"
        written = "".join(f" {name.replace('_', '-')}={quoteattr(value)}" for name, value in attributes.items())
        self._pieces.append(f"<{tag}{written}>")
        self._counts.append(Counter())
        yield
        self._counts.pop()
        self._pieces.append(f"</{tag}>")
        self._path = outer

    def text(self, text: str) -> None:
        """Write a text node."""
        self._pieces.append(escape(text))
        self.offset += len(text)

    def line(self) -> None:
        """Begin a new line, which is a text node as well."""
        self.text("\n")

    def leaf(self, tag: str, text: str, **attributes: str) -> None:
        """Write an element that holds a text, on a line of its own."""
        with self.element(tag, **attributes):
            self.text(text)
        self.line()
