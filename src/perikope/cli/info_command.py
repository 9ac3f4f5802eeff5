"""`perikope info`: what an index contains."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from perikope.cli.output import byte_count, count, printable, shorten, table_lines, without_passage

if TYPE_CHECKING:
    from perikope.index.info import IndexInfo

_MOST_LISTED = 12
"""The number of languages, parts or tags that are listed; the others are counted."""


@click.command(name="info")
@click.argument("index", metavar="INDEX")
@click.option("--values", "field", default="", metavar="FIELD", help="List the most frequent values of this metadata field instead.")
@click.option("--prefix", default="", metavar="TEXT", help="With --values: only values that begin with this text, in any case.")
@click.option("--filter", "filters", multiple=True, metavar="CONDITION", help="With --values: count only documents that satisfy it.")
@click.option("-k", type=int, default=20, show_default=True, help="With --values: the largest number of values.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: one object.")
def command(index: str, field: str, prefix: str, filters: tuple[str, ...], k: int, as_json: bool) -> int:
    """Show what an index contains: languages, parts, metadata fields with examples, segments, stores, tables and sizes.

    Languages, parts and tags are listed with their number of passages, values of metadata with their number of
    documents.

    \b
    Example:
      perikope info idx
      perikope info idx --json
      perikope info idx --values ipc --prefix F04
    """
    from perikope.core.errors import UsageError
    from perikope.search.facade import Index

    if field:
        values = Index.open(index).values(field, prefix=prefix, k=k, filter=filters)
        rows = [["value", "documents"], *([printable(value), f"{documents:,}"] for value, documents in values.items())]
        click.echo(json.dumps(values, ensure_ascii=False) if as_json else "\n".join(table_lines(rows, right={1})))
        return 0
    if prefix or filters:
        raise UsageError("--prefix and --filter need --values FIELD, the metadata field whose values are listed")
    info = Index.open(index).info()
    click.echo(json.dumps(info.to_dict(), ensure_ascii=False) if as_json else "\n".join(_lines(info)))
    return 0


def _lines(info: IndexInfo) -> Iterator[str]:
    yield from table_lines([[name, value] for name, value in _facts(info).items() if value])
    stores = [["name", "kind", "size"], *([store.name, store.kind, byte_count(store.size)] for store in info.stores)]
    for heading, rows, right in (
        ("Metadata fields (--filter FIELD=VALUE)", _fields(info), {1, 2}),
        ("Segments", _segments(info), {1, 2, 3}),
        ("Stores of vectors", stores, {2}),
        ("Learned tables", [["name", "kind"], *([table.name, table.kind] for table in info.tables)], ()),
    ):
        if len(rows) > 1:
            yield from ("", heading, *(f"  {line}" for line in table_lines(rows, right=right)))


def _facts(info: IndexInfo) -> dict[str, str]:
    deleted = f", and {info.deleted:,} deleted (`perikope compact` removes their text)" if info.deleted else ""
    stopwords = info.settings.get("stopwords")
    words = count(len(stopwords), "word") if isinstance(stopwords, list) else str(stopwords)
    languages = _counted(info.languages)
    return {
        "index": printable(info.folder),
        "documents": f"{info.documents:,}{deleted}",
        "passages": f"{info.passages:,}",
        "no passage": without_passage(info.without_passage),
        "tokens": f"{info.tokens:,} without stop words",
        "languages": f"{languages}; the main language is {info.language}" if languages else f"none; the main language is {info.language}",
        "parts": _counted(info.parts),
        "tags": _counted(info.tags),
        "analysis": f"stemmer {info.settings.get('stemmer')}, stop words {words}",
        "on disk": f"{byte_count(info.size)} in {count(len(info.segments), 'segment')}"
        + (f", {count(len(info.stores), 'store')} of vectors" if info.stores else "")
        + (f", {count(len(info.tables), 'learned table')}" if info.tables else ""),
    }


def _counted(counts: Mapping[str, int]) -> str:
    listed = [f"{printable(name)} {number:,}" for name, number in list(counts.items())[:_MOST_LISTED]]
    return ", ".join(listed) + (f", and {len(counts) - _MOST_LISTED} more" if len(counts) > _MOST_LISTED else "")


def _fields(info: IndexInfo) -> list[list[str]]:
    rows = [["field", "documents", "values", "most frequent"]]
    first = max((len(printable(field.name)) for field in info.fields), default=0)
    room = max(shutil.get_terminal_size((160, 0)).columns - first - 26, 40)
    for field in info.fields:
        examples = [f"{shorten(printable(value), 30)} ({documents:,})" for value, documents in field.examples.items()]
        rows.append([printable(field.name), f"{field.documents:,}", f"{field.values:,}", shorten(", ".join(examples), room)])
    return rows


def _segments(info: IndexInfo) -> list[list[str]]:
    rows = [["file", "documents", "deleted", "size"]]
    return rows + [[one.file, f"{one.documents:,}", f"{one.deleted:,}", byte_count(one.size)] for one in info.segments]
