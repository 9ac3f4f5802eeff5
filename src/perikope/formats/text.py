"""Plain text: each paragraph is a passage. Headings are not recognised, because they look like short paragraphs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from perikope.document.tree import Document, TreeBuilder
from perikope.formats import Source, reader


@reader("text", suffixes=(".txt", ".text"), whole=True)
def read(source: Source) -> Iterator[Document]:
    """Plain text in UTF-8; blank lines separate the passages."""
    builder = TreeBuilder(source.id, language=source.language)
    for is_blank, lines in groupby(source.text().split("\n"), key=lambda line: not line.strip()):
        if not is_blank:
            builder.passage("\n".join(line.rstrip() for line in lines))
    yield source.finish(builder)
