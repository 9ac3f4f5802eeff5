"""`perikope locate`: the original of a passage."""

from __future__ import annotations

import json

import click

from perikope.cli.output import verbatim


@click.command(name="locate")
@click.argument("index", metavar="INDEX")
@click.argument("passage", metavar="DOCUMENT#PASSAGE")
@click.option("--in", "path", required=True, metavar="PATH", help="The file, archive or folder that was indexed.")
@click.option("--format", default="auto", show_default=True, help="The format it was indexed as.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(index: str, passage: str, path: str, format: str, as_json: bool) -> int:
    """Show where a passage stands in the XML file that it was read from, and how it is marked up there.

    \b
    Example:
      perikope locate idx "EP-1000000-B1#claim-3" --in patents/
    """
    from dataclasses import asdict

    from perikope.search.facade import Index
    from perikope.search.originals import open_original

    found = open_original(Index.open(index), passage, path, format=format)
    if as_json:
        click.echo(json.dumps(asdict(found), ensure_ascii=False))
        return 0
    click.echo(verbatim(f"{found.file}:{found.line}"))
    click.echo(verbatim(f"{found.place.path}  characters {found.place.start} to {found.place.end}"))
    click.echo(verbatim(found.xml))
    return 0
