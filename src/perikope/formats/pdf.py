"""PDF: tags, bookmarks or fonts give the section tree; every passage has its page and its rectangle on the page."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

from perikope.core.errors import InputWarning
from perikope.document.tree import Document
from perikope.formats import Source, reader
from perikope.formats._blocks import tree_of
from perikope.formats._extraction.process import extract

MOST_RANGES = 20
"""The number of pages without text, or ranges of them, that a warning names."""


@reader("pdf", suffixes=(".pdf",), whole=True)
def read(source: Source) -> Iterator[Document]:
    """PDF with text; passages have pages and rectangles (extra `files`)."""
    extracted = extract("pdf", source.data(), source.path, source.limits)
    if left_out := extracted.metadata.get("pages_without_text"):
        have = "pages has" if len(left_out) == 1 else "pages have"
        message = f"{len(left_out)} of {extracted.metadata['pages']} {have} no text, as if scanned ({_ranges(left_out)}); the rest is read"
        warnings.warn(InputWarning(message, path=source.path), stacklevel=2)
    yield source.finish(tree_of(source, extracted))


def _ranges(pages: Sequence[int]) -> str:
    """Numbers of pages in words.

    >>> _ranges([3, 5, 6, 7, 9])
    'p. 3, 5–7, 9'
    """
    ranges: list[list[int]] = []
    for page in pages:
        if ranges and ranges[-1][1] == page - 1:
            ranges[-1][1] = page
        else:
            ranges.append([page, page])
    names = [f"{first}–{last}" if last > first else str(first) for first, last in ranges[:MOST_RANGES]]
    return f"p. {', '.join(names)}{', …' if len(ranges) > MOST_RANGES else ''}"
