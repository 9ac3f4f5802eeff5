"""Parquet, read with pyarrow: every row of the table is a block."""

from __future__ import annotations

import io

from perikope.formats._extraction.blocks import Extracted, FileBlock


def read_parquet(data: bytes) -> Extracted:
    """The rows of a Parquet file; the names of its columns are the header."""
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(io.BytesIO(data))
    blocks = [FileBlock("table", " | ".join(table.schema_arrow.names))]
    for batch in table.iter_batches():
        blocks += [FileBlock("tr", " | ".join(map(_cell, row.values()))) for row in batch.to_pylist()]
    return Extracted(blocks)


def _cell(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())
