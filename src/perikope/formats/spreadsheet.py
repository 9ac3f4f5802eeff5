"""CSV, TSV and Parquet: a file is a table. The header is the title of the table, and every row is a passage."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from perikope.core.errors import UnreadableFile
from perikope.document.tree import Document
from perikope.formats import Source, reader
from perikope.formats._blocks import tree_of
from perikope.formats._extraction.blocks import Extracted, table_blocks
from perikope.formats._extraction.process import extract

LONGEST_CELL = 1 << 20
"""Characters of the longest cell."""
_DELIMITERS = ",;\t|"
_SAMPLE = 1 << 14
_STATED = re.compile(r"\ufeff?\"?sep=(?P<delimiter>[,;\t|:])\"?[ \t]*(?:\r\n?|\n)", re.IGNORECASE)
"""A first line that states the delimiter, which Excel reads and writes."""


@reader("csv", suffixes=(".csv",), whole=True)
def read_csv(source: Source) -> Iterator[Document]:
    """Tables with commas or semicolons between the cells; one passage per row."""
    text = source.text()
    stated = _STATED.match(text)
    delimiter = stated["delimiter"] if stated else _delimiter(text)
    yield source.finish(tree_of(source, _table(source, text[stated.end() :] if stated else text, delimiter)))


@reader("tsv", suffixes=(".tsv",), whole=True)
def read_tsv(source: Source) -> Iterator[Document]:
    """Tables with tabs between the cells; one passage per row."""
    yield source.finish(tree_of(source, _table(source, source.text(), "\t")))


@reader("parquet", suffixes=(".parquet",), whole=True)
def read_parquet(source: Source) -> Iterator[Document]:
    """Parquet tables; one passage per row (package pyarrow)."""
    yield source.finish(tree_of(source, extract("parquet", source.data(), source.path, source.limits)))


def _delimiter(text: str) -> str:
    """The delimiter that the first lines contain most evenly."""
    try:
        return csv.Sniffer().sniff(text[:_SAMPLE], _DELIMITERS).delimiter
    except csv.Error:
        return ","


def _table(source: Source, text: str, delimiter: str) -> Extracted:
    longest = csv.field_size_limit(LONGEST_CELL)
    try:
        rows = [[" ".join(cell.split()) for cell in row] for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)]
    except csv.Error as error:
        raise UnreadableFile(f"is no table of text ({error}); check its quotes", path=source.path) from None
    finally:
        csv.field_size_limit(longest)
    return Extracted(table_blocks([row for row in rows if any(row)]))
