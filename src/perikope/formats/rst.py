"""reStructuredText, read with docutils in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

from perikope.document.tree import Document
from perikope.formats import Source, reader
from perikope.formats._blocks import tree_of
from perikope.formats._extraction.process import extract


@reader("rst", suffixes=(".rst",), whole=True)
def read(source: Source) -> Iterator[Document]:
    """reStructuredText, also of Sphinx; included files are not read (extra `files`)."""
    yield source.finish(tree_of(source, extract("rst", source.text().encode(), source.path, source.limits)))
