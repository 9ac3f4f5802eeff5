"""Where the bytes of an index are, and what 2.6 million patents would need: `python -m benchmarks columns [INDEX]`.

Without an index one of long documents is built first (5,000 synthetic ones of 4,000 words): the extrapolation is only
as good as the documents are like patents, which are long.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import measure
from benchmarks.build import perikope_command
from benchmarks.common import ROOT, SCRATCH, Table, megabytes, publish
from benchmarks.synthetic import LONG
from perikope.index import manifest
from perikope.index.segments import Segment

SAMPLE = replace(LONG, documents=LONG.documents // 10)
WITHIN_DOCUMENT, VOCABULARY = 0.67, 0.58
"""Exponents of the growth of distinct words with the length of a document and of a collection (Evidence Inference)."""


@dataclass(slots=True)
class Quantities:
    """What the size of an index depends on."""

    documents: float = 0
    passages: float = 0
    tokens: float = 0
    postings: float = 0
    terms: float = 0
    text: float = 0


PATENTS = Quantities(documents=2.6e6, passages=250e6, tokens=16e9, text=100e9)

UNITS = {
    "tokens": "tokens",
    "posting": "postings",
    "term": "terms", "terms": "terms", "term_of_name": "terms", "window": "terms",
    "span": "passages", "section": "passages", "passage": "passages", "id": "passages", "ids": "passages",
    "text": "text",
    "document": "documents", "document_ids": "documents", "document_hash": "documents", "document_of_hash": "documents",
    "records": "documents", "sources": "documents", "source_hashes": "documents",
    "facet": "documents", "facet_values": "documents", "facet_fields": "documents",
}  # fmt: skip
"""What a column grows with, by the first part of its name; sections, other spans and their ids grow with passages."""


@dataclass(slots=True)
class Column:
    name: str
    kind: str
    bytes: int = 0

    @property
    def unit(self) -> str:
        return UNITS.get(self.name.split(".")[0], "tokens")


def columns_of(folder: Path) -> tuple[list[Column], Quantities]:
    """The columns of an index summed over its segments, largest first, and its quantities."""
    columns: dict[str, Column] = {}
    quantities = Quantities()
    for segment in (Segment(folder, entry) for entry in manifest.load(folder).segments):
        for name, values in segment.columns.items():
            column = columns.setdefault(name, Column(name, values.dtype.str[1:]))
            column.kind = max(column.kind, values.dtype.str[1:])  # the widest of the segments' types
            column.bytes += values.nbytes
        facts = segment.columns.facts
        quantities.documents += facts["documents"]
        quantities.passages += facts["passages"]
        quantities.tokens += facts["tokens"]
        quantities.terms += len(segment.terms)
        quantities.postings += segment["posting.document"].size
        quantities.text += sum(len(segment.text(document).encode("utf-8", "surrogatepass")) for document in range(facts["documents"]))
    return sorted(columns.values(), key=lambda column: -column.bytes), quantities


def by_column(title: str, columns: list[Column], quantities: Quantities) -> Table:
    total = sum(column.bytes for column in columns)
    table = Table(title, ("column", "type", "MB", "share", "by token", "by posting", "by passage", "by document"))
    for column in [*columns, Column("all", "", total)]:
        each = (column.bytes / count for count in (quantities.tokens, quantities.postings, quantities.passages, quantities.documents))
        table.rows.append(
            [column.name, column.kind, f"{column.bytes / 1e6:,.2f}", f"{column.bytes / total:.1%}", *(f"{x:,.3f}" for x in each)]
        )
    table.notes.append(
        f"{quantities.documents:,.0f} documents, {quantities.passages:,.0f} passages, {quantities.tokens:,.0f} tokens, "
        f"{quantities.postings:,.0f} postings, {quantities.terms:,.0f} terms, {megabytes(quantities.text)} MB of text"
    )
    return table


def patents(measured: Quantities) -> Quantities:
    """The quantities of 2.6 million patents; postings and terms are extrapolated."""
    length = (PATENTS.tokens / PATENTS.documents) / (measured.tokens / measured.documents)
    postings = measured.postings / measured.documents * length**WITHIN_DOCUMENT * PATENTS.documents
    terms = measured.terms * (PATENTS.tokens / measured.tokens) ** VOCABULARY
    return Quantities(PATENTS.documents, PATENTS.passages, PATENTS.tokens, postings, terms, PATENTS.text)


def extrapolation(columns: list[Column], measured: Quantities) -> Table:
    wanted = patents(measured)
    table = Table("2.6 million patents, extrapolated", ("grows with", "number", "bytes each", "GB", "share"))
    sizes = {}
    for unit in dict.fromkeys(UNITS.values()):
        each = sum(column.bytes for column in columns if column.unit == unit) / getattr(measured, unit)
        sizes[unit] = (each, each * getattr(wanted, unit))
    total = sum(size for _, size in sizes.values())
    for unit, (each, size) in sizes.items():
        table.rows.append([unit, f"{getattr(wanted, unit):,.0f}", f"{each:,.3f}", f"{size / 1e9:,.1f}", f"{size / total:.1%}"])
    table.rows.append(["all", "", "", f"{total / 1e9:,.1f}", "100.0%"])
    table.notes += [
        f"Given: {PATENTS.documents:,.0f} documents, {PATENTS.passages:,.0f} passages, {PATENTS.tokens:,.0f} tokens, 100 GB of text.",
        f"Measured: {_each(measured, 'postings'):,.0f} postings a document of {_each(measured, 'tokens'):,.0f} tokens.",
        f"Assumed: postings a document grow with its length to the power {WITHIN_DOCUMENT} to {_each(wanted, 'postings'):,.0f} in one of "
        f"{_each(wanted, 'tokens'):,.0f} tokens; terms with all tokens to the power {VOCABULARY};",
        "sections, ids and other spans grow with passages; bytes each stay as measured, though compressed numbers may grow.",
        "terms: summed over segments, each has its own dictionary; a frequent term has one window for every 65,536 documents, not counted.",
        "text: bytes each is the compression ratio; made-up text compresses worse than real text.",
    ]
    return table


def _each(quantities: Quantities, unit: str) -> float:
    return float(getattr(quantities, unit)) / quantities.documents


def long_documents() -> Path:
    """An index of long documents, built anew."""
    target = SCRATCH / "index-long"
    shutil.rmtree(target, ignore_errors=True)
    result = measure.run(perikope_command([str(SAMPLE.file(SCRATCH))], str(target)), cwd=ROOT)
    if result.problem:
        raise SystemExit(f"the index could not be built: {result.problem}")
    return target


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks columns", description=__doc__)
    parser.add_argument("index", nargs="?", help="the folder of an index")
    parser.add_argument("--markdown", metavar="FILE")
    options = parser.parse_args(arguments)
    columns, quantities = columns_of(Path(options.index) if options.index else long_documents())
    title = f"Columns of {options.index or f'{SAMPLE.documents:,} synthetic documents of {SAMPLE.tokens:,} words'}"
    publish([by_column(title, columns, quantities), extrapolation(columns, quantities)], options.markdown)


if __name__ == "__main__":
    main(sys.argv[1:])
