"""`perikope explain`: explain the score of a passage."""

from __future__ import annotations

import json

import click

from perikope.cli.options import GivenSearch, GroupedCommand, search_options
from perikope.cli.output import printable
from perikope.search.options import OPTIONS, PATENTS


@click.command(name="explain", cls=GroupedCommand)
@click.argument("index", metavar="INDEX")
@click.argument("query", metavar="QUERY")
@click.argument("passage", metavar="DOCUMENT#PASSAGE")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the explanation as a tree.")
@search_options(without={"candidates", "k", *(name for name, option in OPTIONS.items() if option.group == PATENTS)})
def command(index: str, query: str, passage: str, as_json: bool, search: GivenSearch) -> int:
    """Explain the score of a passage for a query, step by step.

    \b
    Example:
      perikope explain idx "magnetic coupling" "EP1130000B1#claim-1"
    """
    from perikope.browse.explanation import as_dict, render
    from perikope.search.facade import Index

    node = Index.open(index).explain(query, passage, **search.keywords)
    if as_json:
        click.echo(json.dumps(as_dict(node), ensure_ascii=False))
    else:
        click.echo("\n".join(" " * (len(line) - len(line.lstrip())) + printable(line.lstrip()) for line in render(node).split("\n")))
    return 0
