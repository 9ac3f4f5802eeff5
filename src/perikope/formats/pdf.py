"""PDF: tags, bookmarks or fonts give the section tree; every passage has its page and its rectangle on the page."""

from __future__ import annotations

from collections.abc import Iterator

from perikope.document.tree import Document
from perikope.formats import Source, reader
from perikope.formats._blocks import tree_of
from perikope.formats._extraction.process import extract


@reader("pdf", suffixes=(".pdf",), whole=True)
def read(source: Source) -> Iterator[Document]:
    """PDF with text; passages have pages and rectangles (extra `files`)."""
    yield source.finish(tree_of(source, extract("pdf", source.data(), source.path, source.limits)))
