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


def marked(hit: Hit) -> str:
    """The text of a hit with the query's terms in bold."""
    pieces, at = [], 0
    for start, end in hit.highlights:
        pieces += [printable(hit.text[at:start]), click.style(printable(hit.text[start:end]), bold=True)]
        at = end
    return "".join([*pieces, printable(hit.text[at:])])


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
            shown = marked(hit) if is_hit else click.style(shorten(printable(text), width - 8), dim=True)
            lines.append(_fill(shown, width))
    return "\n".join(lines)


def shorten(text: str, width: int) -> str:
    """Text cut at a word to fit a line."""
    return textwrap.shorten(text, max(width, 20), placeholder=" …")


def _fill(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="     ", subsequent_indent="     ")
