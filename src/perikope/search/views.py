"""Views of hits for people: as text for a console, and as HTML for a notebook.

The text of a document may be hostile. Control characters are removed from both views, and HTML is escaped.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from perikope.core.characters import is_control, is_invisible
from perikope.core.numbers import number_in_print

if TYPE_CHECKING:
    from perikope.search.hits import Hit

EXCERPT = 700
"""Maximum number of characters of a hit that are shown. Longer texts are cut around their first query term."""
SHOWN = 10
"""Maximum number of hits in the text of results."""
SHOWN_IN_NOTEBOOK = 20
"""Maximum number of hits in the HTML of results."""
_WIDTH = 100
"""Width of the text of results, in characters."""

# Colours are shades of grey and yellow over whatever is behind them, so that they suit light and dark notebooks.
_PAGE = "max-width:60em;line-height:1.45;text-align:left"
_ROW = "padding:.55em 0 .65em;border-top:1px solid rgba(128,128,128,.35)"
_QUIET = "opacity:.68;font-size:.9em"
_MARK = "background:rgba(255,196,0,.38);color:inherit;border-radius:.2em;padding:0 .1em"
_CODE = "white-space:pre-wrap;font-family:monospace"


def printable(text: str) -> str:
    """Text without control characters, so that the content of a document cannot control the terminal.

    Control characters become spaces. Invisible characters are removed, except joiners, which some scripts need.

    >>> printable("a\\x1b[31mb\\tc co\\u00adop")
    'a [31mb c coop'
    """
    return "".join(" " if is_control(character) else "" if is_invisible(character) else character for character in text)


def excerpt(hit: Hit, length: int = EXCERPT) -> tuple[int, int]:
    """Start and end (exclusive) of the shown part of a hit, in characters.

    It begins shortly before the first query term, and is cut at spaces.
    """
    if len(hit.text) <= length:
        return 0, len(hit.text)
    first = max(0, (hit.highlights[0][0] if hit.highlights else 0) - length // 4)
    first = hit.text.rfind(" ", 0, first) + 1 if first else 0
    last = min(len(hit.text), first + length)
    space = hit.text.rfind(" ", first, last)
    return first, space if last < len(hit.text) and space > first else last


def results_text(hits: Sequence[Hit], notes: Iterable[str] = ()) -> str:
    """The hits as text, with at most two lines per hit, and the notes of the search."""
    blocks = [_counted(len(hits)), *(f"note: {printable(note)}" for note in notes)]
    for hit in hits[:SHOWN]:
        head = f"{hit.rank:>3}. {number_in_print(hit.score)}  {printable(hit.name)}  {' › '.join(map(printable, hit.path))}"
        blocks += [_cut(head.rstrip()), f"     {_one_line(hit)}"]
    return "\n".join([*blocks, *_others(len(hits), SHOWN)])


def hit_text(hit: Hit) -> str:
    """A hit as one line: rank, score, name, heading path and the beginning of the text."""
    text = textwrap.shorten(hit.text, 60, placeholder=" …")
    return f"Hit({hit.rank}, {number_in_print(hit.score)}, {hit.name!r}, {' › '.join(hit.path)!r}, {text!r})"


def results_html(hits: Sequence[Hit], notes: Iterable[str] = ()) -> str:
    """The hits as HTML for a notebook: heading path, text with marked query terms, name, and notes."""
    rows = [_quiet(_counted(len(hits))), *(_quiet(f"Note: {_clean(note)}") for note in notes), *map(_row, hits[:SHOWN_IN_NOTEBOOK])]
    return _page([*rows, *map(_quiet, _others(len(hits), SHOWN_IN_NOTEBOOK))])


def hit_html(hit: Hit) -> str:
    """A hit as HTML for a notebook."""
    return _page([_row(hit)])


def _page(rows: Iterable[str]) -> str:
    return f'<div style="{_PAGE}">{"".join(rows)}</div>'


def _row(hit: Hit) -> str:
    path = " › ".join(f"<bdi>{_clean(title)}</bdi>" for title in hit.path) or f"<bdi>{_clean(hit.document)}</bdi>"
    facts = hit.citation, hit.part, hit.source if hit.source != hit.document else ""
    known = [f"<code>{_clean(hit.name)}</code>", *(_clean(fact) for fact in facts if fact)]
    style = f' style="{_CODE}"' if hit.tag in ("pre", "code") else ""
    return (
        f'<div style="{_ROW}"><div><span style="{_QUIET}">{hit.rank}. </span><b>{path}</b></div>'
        f'<div dir="auto"{style}>{_marked(hit)}</div>'
        f'<div style="{_QUIET}">{number_in_print(hit.score)} · {" · ".join(known)}</div></div>'
    )


def _marked(hit: Hit) -> str:
    """The shown part of a hit as HTML, with its query terms in `<mark>`."""
    first, last = excerpt(hit)
    pieces, at = ["… "] if first else [], first
    for start, end in hit.highlights:
        if start >= at and end <= last:
            pieces += [_clean(hit.text[at:start]), f'<mark style="{_MARK}">{_clean(hit.text[start:end])}</mark>']
            at = end
    return "".join([*pieces, _clean(hit.text[at:last]), " …" if last < len(hit.text) else ""])


def _one_line(hit: Hit) -> str:
    """The text around the first query term, in one line."""
    width = _WIDTH - 5
    first, last = excerpt(hit, width - 4)
    text = " ".join(printable(hit.text[first:last]).split())
    return f"{'… ' if first else ''}{text}{' …' if last < len(hit.text) else ''}"


def _clean(text: str) -> str:
    """Text for HTML: line by line without control characters, and escaped."""
    return escape("\n".join(map(printable, text.split("\n"))))


def _quiet(html: str) -> str:
    return f'<div style="{_QUIET}">{html}</div>'


def _counted(number: int) -> str:
    return f"{number} hit{'' if number == 1 else 's'}" if number else "no hits"


def _others(number: int, shown: int) -> Iterator[str]:
    if number > shown:
        yield f"… and {number - shown} more"


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 2]} …"
