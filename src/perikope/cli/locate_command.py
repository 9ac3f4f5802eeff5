"""`perikope locate`: find a passage in its original file."""

from __future__ import annotations

import json

import click

from perikope.cli.output import verbatim


@click.command(name="locate")
@click.argument("index", metavar="INDEX")
@click.argument("passage", metavar="DOCUMENT#PASSAGE")
@click.option("--in", "path", required=True, metavar="PATH", help="File, archive or folder that the passage was indexed from.")
@click.option(
    "--format", default="auto", show_default=True, metavar="NAME", help="Format that PATH was indexed as; see `perikope formats`."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: one object.")
def command(index: str, passage: str, path: str, format: str, as_json: bool) -> int:
    """Show the location of a passage in its original XML file, with its markup.

    \b
    Example:
      perikope locate idx "EP-1000000-B1#claim-3" --in patents/
    """
    from dataclasses import asdict

    from perikope.search.facade import Index
    from perikope.search.originals import open_original

    original = open_original(Index.open(index), passage, path, format=format)
    if as_json:
        click.echo(json.dumps(asdict(original), ensure_ascii=False))
        return 0
    click.echo(verbatim(f"{original.file}:{original.line}"))
    click.echo(verbatim(f"{original.place.path}  characters {original.place.start} to {original.place.end}"))
    click.echo(verbatim(original.xml))
    return 0
