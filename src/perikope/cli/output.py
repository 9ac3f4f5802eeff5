"""Helpers that print text, hits and progress bars on a terminal."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from perikope.core.numbers import number_in_print
from perikope.document.pieces import CODE
from perikope.search.views import excerpt
from perikope.search.views import printable as printable  # commands import it from here

if TYPE_CHECKING:
    from perikope.core.parameters import Parameter
    from perikope.index.without_passage import WithoutPassage
    from perikope.search.facade import Hit

T = TypeVar("T")
_KEYWORD = re.compile(r"\b([a-z_]+)='([^']*)'")
"""A keyword of Python with a text, as notes write it."""


def verbatim(text: str) -> str:
    """The text without control characters if standard output is a terminal; else the unchanged text."""
    return "\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text


def progress(items: Iterable[T], length: int, label: str) -> Iterator[T]:
    """Yield the items, and show a progress bar if standard error is a terminal."""
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        for item in items:
            yield item
            bar.update(1)


def marked(hit: Hit, width: int, full: bool) -> str:
    """The text of a hit with query terms in bold; an excerpt unless `full`.

    The lines of code are kept. Other text is wrapped to `width` columns.
    """
    first, last = (0, len(hit.text)) if full else excerpt(hit)
    if hit.tag == CODE:
        return _lines_of_code(hit.text, _flags(len(hit.text), hit.highlights), first, last)
    before, after = "… " if first else "", " …" if last < len(hit.text) else ""
    words = [(max(start, first) - first, min(end, last) - first) for start, end in hit.highlights if start < last and end > first]
    return bold_words(hit.text[first:last], words, lambda plain: _fill(before + plain + after, width), added=len(before.strip()))


def bold_words(text: str, words: Iterable[tuple[int, int]], wrap: Callable[[str], str] = str, *, added: int = 0) -> str:
    """Text without control characters, with some words in bold. `words` are pairs of start and end (exclusive).

    `wrap` may change white space, and put `added` visible characters before the text.
    """
    # One character at a time, so that each keeps its mark even if its neighbours are removed.
    visible = [(character, mark) for at, mark in enumerate(_flags(len(text), words)) for character in printable(text[at])]
    marks = [mark for character, mark in visible if not character.isspace()]
    pieces, at = [], -added
    # Wrapping changes only spaces, so the other characters keep their order.
    for character in wrap("".join(character for character, _ in visible)):
        seen = not character.isspace()
        pieces.append(click.style(character, bold=True) if seen and 0 <= at < len(marks) and marks[at] else character)
        at += seen
    return "".join(pieces).replace("\x1b[0m\x1b[1m", "")


def _flags(length: int, words: Iterable[tuple[int, int]]) -> bytearray:
    """One flag per character of a text: 1 inside the given words, else 0."""
    flags = bytearray(length)
    for start, end in words:
        flags[start:end] = b"\x01" * (end - start)
    return flags


def _lines_of_code(text: str, bold: bytearray, first: int, last: int) -> str:
    """The whole lines of a text from `first` to `last`, indented. `bold` has a flag for each character."""
    first = text.rfind("\n", 0, first) + 1
    last = text.find("\n", last) if "\n" in text[last:] else len(text)
    lines, at = ["…"] if first else [], first
    for line in text[first:last].split("\n"):
        shown = [(printable(" " * 4 if character == "\t" else character), bold[at + i]) for i, character in enumerate(line)]
        styled = "".join(click.style(character, bold=True) if mark and character else character for character, mark in shown)
        lines.append(styled.replace("\x1b[0m\x1b[1m", "").rstrip())
        at += len(line) + 1
    return "\n".join(f"     {line}" if line else "" for line in [*lines, *(["…"] if last < len(text) else [])])


def show(hit: Hit, *, context: bool = False, full: bool = False, language: bool = False) -> str:
    """A hit as lines of text, with rank, score, name and heading path.

    With `context`, its neighbours are shown too, and with `language`, its language.
    """
    width = min(shutil.get_terminal_size().columns, 110)
    head = f"{hit.rank:>3}. {number_in_print(hit.score)}  {click.style(printable(hit.name), fg='green')}"
    path = " › ".join(printable(title) for title in hit.path)
    labels = [label for label in (hit.part, hit.language if language else "") if label]
    lines = [head + (f"  {printable(hit.citation)}" if hit.citation else "") + (f"  [{', '.join(labels)}]" if labels else "")]
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


def show_problems(label: str, problems: Sequence[str], *, most: int = 20) -> None:
    """Print up to `most` messages on standard error, one per line, and the number of the others."""
    for problem in problems[:most]:
        click.echo(f"  {label}: {printable(problem)}", err=True)
    if len(problems) > most:
        click.echo(f"  … and {len(problems) - most} more", err=True)


def show_notes(notes: Iterable[str]) -> None:
    """Print the notes of a search on standard error, with the options of the command line."""
    for note in notes:
        click.echo(f"perikope: note: {printable(as_command_line(note))}", err=True)


def as_command_line(note: str) -> str:
    """A note in which the keywords of Python are options of the command line.

    >>> as_command_line("searched in English; language='all' searches German too, x='y'")
    "searched in English; --language all searches German too, x='y'"
    """
    from perikope.search.options import OPTIONS

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        return found[0] if name not in OPTIONS else f"{OPTIONS[name].command_line} {shlex.quote(value)}"

    return _KEYWORD.sub(option, note)


def show_warning(warning: str) -> None:
    """Print a warning on standard error, unless it is empty."""
    if warning:
        click.echo(f"warning: {printable(warning)}", err=True)


def lines_of_parameters(parameters: Iterable[Parameter]) -> Iterator[str]:
    """Yield lines that describe parameters: name, default, allowed values and tuning grid, then the help text."""
    from perikope.core.grammar import write

    for parameter in parameters:
        grid = parameter.grid_values()
        tried = f"; tuning tries {', '.join(write(value) for value in grid)}" if len(grid) > 1 else ""
        yield f"  {parameter.name}={write(parameter.default)}  {parameter.describe_range()}{tried}"
        if parameter.help:
            yield f"      {parameter.help}"


def shorten(text: str, width: int) -> str:
    """Text cut between words to fit into `width` columns."""
    return textwrap.shorten(text, max(width, 20), placeholder=" …")


def count(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "document"), count(2, "document")
    ('1 document', '2 documents')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def without_passage(documents: WithoutPassage) -> str:
    """The documents that have no passage, with what finds them; empty if all have one."""
    if not documents.number:
        return ""
    more = f" and {documents.number - len(documents.first)} more" if documents.number > len(documents.first) else ""
    return f"{documents.number:,}, with titles only, which `--elements` finds: {printable(', '.join(documents.first))}{more}"


def byte_count(size: int) -> str:
    """A number of bytes for people.

    >>> byte_count(0), byte_count(1500), byte_count(2_340_000)
    ('0 bytes', '1.5 KB', '2.3 MB')
    """
    if size < 1000:
        return count(size, "byte")
    power = min(len(str(size)) - 1, 14) // 3
    return f"{size / 1000**power:.1f} {'KMGT'[power - 1]}B"


def table_lines(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """Rows of cells as lines, two spaces between the columns; the columns in `right` are aligned at the right.

    >>> table_lines([["field", "values"], ["date", "7"]], right={1})
    ['field  values', 'date        7']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_aligned(row, widths, right)).rstrip() for row in rows]


def _aligned(row: Sequence[str], widths: Sequence[int], right: Collection[int]) -> Iterator[str]:
    for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield cell.rjust(width) if at in right else cell.ljust(width)


def _fill(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="     ", subsequent_indent="     ")
