"""How things look on a terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from perikope.api import Hit

T = TypeVar("T")


def printable(text: str) -> str:
    """Text without control characters: what came out of a document must not drive the terminal.

    >>> printable("a\\x1b[31mb\\tc")
    'a [31mb c'
    """
    return "".join(" " if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") else character for character in text)


def progress(items: Iterable[T], length: int, label: str) -> Iterator[T]:
    """The items, with a progress bar on stderr where that is a terminal."""
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        for item in items:
            yield item
            bar.update(1)


def marked(hit: Hit, width: int) -> str:
    """The text of a hit, wrapped, with the query's terms in bold."""
    bold = [
        any(start <= at < end for start, end in hit.highlights)
        for at, character in enumerate(printable(hit.text))
        if not character.isspace()
    ]
    pieces, at = [], 0
    # Wrapping moves spaces alone, so the other characters keep their order.
    for character in _fill(printable(hit.text), width):
        visible = not character.isspace()
        pieces.append(click.style(character, bold=True) if visible and bold[at] else character)
        at += visible
    return "".join(pieces).replace("\x1b[0m\x1b[1m", "")


def show(hit: Hit, *, context: bool = False) -> str:
    """A hit in a few lines: score and name, heading path, text."""
    width = min(shutil.get_terminal_size().columns, 110)
    head = f"{hit.rank:>3}. {hit.score:.4f}  {click.style(printable(hit.name), fg='green')}"
    path = " › ".join(printable(title) for title in hit.path)
    lines = [head + (f"  [{hit.part}]" if hit.part else "")]
    if path:
        lines.append(textwrap.fill(path, width, initial_indent="     ", subsequent_indent="     "))
    texts = [(hit.before, False), (hit.text, True), (hit.after, False)] if context else [(hit.text, True)]
    for text, is_hit in texts:
        if text:
            lines.append(marked(hit, width) if is_hit else "     " + click.style(shorten(printable(text), width - 8), dim=True))
    return "\n".join(lines)


def shorten(text: str, width: int) -> str:
    """Text cut at a word to fit a line."""
    return textwrap.shorten(text, max(width, 20), placeholder=" …")


def _fill(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="     ", subsequent_indent="     ")
