"""`perikope show`: read a document of an index, with the ids of its passages."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from perikope.cli.output import bold_words, count, printable, table_lines

if TYPE_CHECKING:
    from perikope.search.viewing import DocumentView, ViewedText

MARK = "> "
"""The beginning of the lines of the requested passage."""


@click.command(name="show")
@click.argument("index", metavar="INDEX")
@click.argument("name", metavar="DOCUMENT[#PASSAGE]")
@click.option("--query", default="", metavar="TEXT", help="Highlight the words that match this query, on a terminal and in JSON.")
@click.option("--outline", is_flag=True, help="Show the titles and the number of passages below each, without the text.")
@click.option("--no-pager", is_flag=True, help="Print to the terminal at once. Output that is not to a terminal never uses a pager.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: one object with the titles and passages, or with the sections (--outline)."
)
def command(index: str, name: str, query: str, outline: bool, no_pager: bool, as_json: bool) -> int:
    """Show a document: title, metadata, and its text with the ids of all passages.

    DOCUMENT is an id, or the number of a patent in any spelling. If a passage is named, its lines begin with `>`, and
    a pager opens there.

    \b
    Example:
      perikope show idx manual.md
      perikope show idx "EP1130000B1#claim-1" --query "magnetic coupling"
      perikope show idx EP1130000B1 --outline
    """
    from perikope.search.facade import Index

    opened = Index.open(index)
    view = opened.view(name, query=query)
    if as_json:
        shown = opened.outline(view.document) if outline else view
        click.echo(json.dumps(shown.to_dict(), ensure_ascii=False))
        return 0
    lines = "\n".join([*_head(view), "", *(_outline(view) if outline else _text(view))])
    if no_pager or not sys.stdout.isatty():
        click.echo(lines)
    else:
        if view.marked and not outline:
            # `less` begins at the first line that matches; other pagers ignore the variable.
            os.environ["LESS"] = f"{os.environ.get('LESS') or '-R'} +/^{MARK.strip()}"
        click.echo_via_pager(lines)
    return 0


def _head(view: DocumentView) -> Iterator[str]:
    """The title, the id, the source and the metadata of a document."""
    from perikope.search.columns import cell, flat

    if view.title:
        yield click.style(printable(view.title), bold=True)
    facts = {"document": view.document, "source": view.source, "language": view.language}
    facts |= {field: str(cell(value)) for field, value in flat(view.metadata)}
    facts |= {"cites": "; ".join(view.cites)}
    yield from table_lines([[printable(name), printable(value)] for name, value in facts.items() if value])


def _outline(view: DocumentView) -> Iterator[str]:
    """One line per title, with the passages that follow it in its section. Other passages are named by their part."""
    for texts in _stretches(view):
        passages = [text.id for text in texts if text.kind == "passage"]
        numbered = f"{count(len(passages), 'passage')} ({_from_to(passages)})" if passages else ""
        first = texts[0]
        if first.kind == "title":
            label = first.text + (f"  [{first.id}]" if first.id else "")
        else:
            label = f"-- {first.part} --" if first.part else ""
        yield "  " * first.depth + printable("  ".join(filter(None, [label, numbered])))


def _stretches(view: DocumentView) -> Iterator[list[ViewedText]]:
    """Yield the texts between one title and the next, cut where a section around the title ends."""
    texts: list[ViewedText] = []
    for text in view.texts:
        if texts and (text.kind == "title" or text.part != texts[-1].part or text.depth < texts[0].depth):
            yield texts
            texts = []
        texts.append(text)
    if texts:
        yield texts


def _from_to(passages: list[str]) -> str:
    return passages[0] if len(passages) == 1 else f"{passages[0]} … {passages[-1]}"


def _text(view: DocumentView) -> Iterator[str]:
    """The titles and passages of a document. A line with the name of the part comes before its first passage."""
    part = ""
    for text in view.texts:
        # The title of the document is a part of its own, which needs no name.
        if text.part != part and (text.kind, text.part) != ("title", "title"):
            part = text.part
            yield click.style(f"-- {printable(part) or 'no part'} --", dim=True)
            yield ""
        yield from _title(text) if text.kind == "title" else _passage(text)
        yield ""


def _title(text: ViewedText) -> Iterator[str]:
    label = click.style(f"  [{printable(text.id)}]", dim=True) if text.id else ""
    yield f"{MARK if text.marked else ''}{'#' * (text.depth + 1)} {bold_words(text.text, text.highlights)}{label}"


def _passage(text: ViewedText) -> Iterator[str]:
    """The lines of a passage: its id, then its text. Line breaks of the text are kept."""
    begin = MARK if text.marked else "  "
    names = [name for name in (f"[{text.id}]" if text.id else "", text.citation) if name]
    if names:
        yield begin + click.style(printable(" ".join(names)), fg="green")
    # Text in a pipe is not wrapped, so that other programs find phrases in it.
    width = min(shutil.get_terminal_size().columns, 110) - len(begin) if sys.stdout.isatty() else sys.maxsize
    at = 0
    for line in text.text.split("\n"):
        words = tuple((start - at, end - at) for start, end in text.highlights if at <= start and end <= at + len(line))
        shown = bold_words(line, words, lambda plain: textwrap.fill(plain, width, replace_whitespace=False, drop_whitespace=False))
        yield from (f"{begin}{piece}".rstrip() for piece in shown.split("\n"))
        at += len(line) + 1
