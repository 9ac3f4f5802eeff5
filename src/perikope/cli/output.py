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
    from perikope.search.facade import Hit

T = TypeVar("T")


_JOINERS = "\u200c\u200d"


def printable(text: str) -> str:
    """Text without control characters: what came out of a document must not drive the terminal.

    Controls become spaces; invisible marks go, but for the joiners that some scripts and emoji need.

    >>> printable("a\\x1b[31mb\\tc co\\u00adop")
    'a [31mb c coop'
    """
    return "".join(
        " " if category in ("Cc", "Cs", "Zl", "Zp") else "" if category == "Cf" and character not in _JOINERS else character
        for character, category in ((character, unicodedata.category(character)) for character in text)
    )


def verbatim(text: str) -> str:
    """Text for another program as it is; on a terminal, without what would drive it."""
    return "\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text


def progress(items: Iterable[T], length: int, label: str) -> Iterator[T]:
    """The items, with a progress bar on stderr where that is a terminal."""
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        for item in items:
            yield item
            bar.update(1)


EXCERPT = 700
"""Characters of a hit that are shown; a longer one is cut around its first query terms."""


def marked(hit: Hit, width: int, full: bool) -> str:
    """The text of a hit, wrapped, with the query's terms in bold."""
    first, last = (0, len(hit.text)) if full else _excerpt(hit)
    bold = bytearray(len(hit.text))
    for start, end in hit.highlights:
        bold[start:end] = b"\x01" * (end - start)
    # One character at a time, so that each keeps its mark whatever becomes of its neighbours.
    visible = [(character, mark) for at, mark in enumerate(bold[first:last], first) for character in printable(hit.text[at])]
    marks = [mark for character, mark in visible if not character.isspace()]
    text = "".join(character for character, _ in visible)
    wrapped = _fill(("… " if first else "") + text + (" …" if last < len(hit.text) else ""), width)
    pieces, at = [], -1 if first else 0
    # Wrapping moves spaces alone, so the other characters keep their order.
    for character in wrapped:
        seen = not character.isspace()
        pieces.append(click.style(character, bold=True) if seen and 0 <= at < len(marks) and marks[at] else character)
        at += seen
    return "".join(pieces).replace("\x1b[0m\x1b[1m", "")


def _excerpt(hit: Hit) -> tuple[int, int]:
    """The part of a long text that is shown: from somewhat before the first query term, cut at spaces."""
    if len(hit.text) <= EXCERPT:
        return 0, len(hit.text)
    first = max(0, (hit.highlights[0][0] if hit.highlights else 0) - EXCERPT // 4)
    first = hit.text.rfind(" ", 0, first) + 1 if first else 0
    last = min(len(hit.text), first + EXCERPT)
    space = hit.text.rfind(" ", first, last)
    return first, space if last < len(hit.text) and space > first else last


def show(hit: Hit, *, context: bool = False, full: bool = False) -> str:
    """A hit in a few lines: score and name, heading path, text."""
    width = min(shutil.get_terminal_size().columns, 110)
    head = f"{hit.rank:>3}. {hit.score:.4f}  {click.style(printable(hit.name), fg='green')}"
    path = " › ".join(printable(title) for title in hit.path)
    lines = [head + (f"  {printable(hit.citation)}" if hit.citation else "") + (f"  [{hit.part}]" if hit.part else "")]
    if path:
        lines.append(_fill(path, width))
    text = marked(hit, width, full)
    if context:
        text = "   > " + text[5:]
        around = [
            f"     {click.style(shorten(printable(other), width - 8), dim=True)}" if other else "" for other in (hit.before, hit.after)
        ]
        lines += [line for line in (around[0], text, around[1]) if line]
    else:
        lines.append(text)
    return "\n".join(lines)


def shorten(text: str, width: int) -> str:
    """Text cut at a word to fit a line."""
    return textwrap.shorten(text, max(width, 20), placeholder=" …")


def count(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "document"), count(2, "document")
    ('1 document', '2 documents')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _fill(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="     ", subsequent_indent="     ")
