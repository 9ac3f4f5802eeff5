"""Office files: one format per kind of file."""

from __future__ import annotations

from collections.abc import Iterator

from perikope.document.tree import Document
from perikope.formats import Source, reader
from perikope.formats._blocks import tree_of
from perikope.formats._extraction.process import extract


def _read(source: Source, kind: str) -> Iterator[Document]:
    yield source.finish(tree_of(source, extract(kind, source.data(), source.path, source.limits)))


@reader("docx", suffixes=(".docx",), whole=True)
def read_docx(source: Source) -> Iterator[Document]:
    """Word documents."""
    return _read(source, "docx")


@reader("pptx", suffixes=(".pptx",), whole=True)
def read_pptx(source: Source) -> Iterator[Document]:
    """PowerPoint presentations; passages have the number of their slide."""
    return _read(source, "pptx")


@reader("xlsx", suffixes=(".xlsx",), whole=True)
def read_xlsx(source: Source) -> Iterator[Document]:
    """Excel workbooks; one section per sheet, one passage per row."""
    return _read(source, "xlsx")


@reader("odt", suffixes=(".odt",), whole=True)
def read_odt(source: Source) -> Iterator[Document]:
    """OpenDocument texts, as of LibreOffice."""
    return _read(source, "odt")


@reader("rtf", suffixes=(".rtf",), whole=True)
def read_rtf(source: Source) -> Iterator[Document]:
    """Rich Text Format."""
    return _read(source, "rtf")
