"""`perikope graph`: show the graph of a document's sections and passages."""

from __future__ import annotations

import json
from typing import IO

import click

from perikope.cli.output import verbatim


@click.command(name="graph")
@click.argument("index", metavar="INDEX")
@click.argument("document", metavar="DOCUMENT")
@click.option(
    "--svg",
    metavar="FILE",
    type=click.File("w", encoding="utf-8", lazy=True),
    help="Write the graph to this file, as an SVG picture; - for standard output.",
)
@click.option("--dot", is_flag=True, help="Print the graph in the DOT language of Graphviz.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: nodes and edges.")
def command(index: str, document: str, svg: IO[str] | None, dot: bool, as_json: bool) -> int:
    """Show the graph of a document's sections and passages, which neural rankers use.

    Edges connect consecutive passages, sections with their contents, and passages with what they refer to.

    \b
    Example:
      perikope graph idx EP-1000000-B1
      perikope graph idx EP-1000000-B1 --svg graph.svg
    """
    from perikope.core.errors import UsageError
    from perikope.neural.drawing import render_dot, render_lines, render_svg
    from perikope.neural.graph import graph_of
    from perikope.search.facade import Index

    if (svg is not None) + dot + as_json > 1:
        raise UsageError("--svg, --dot and --json exclude each other; give one of them")
    graph = graph_of(Index.open(index), document)
    if svg is not None:
        svg.write(render_svg(graph))
    elif dot:
        click.echo(verbatim(render_dot(graph)), nl=False)
    elif as_json:
        nodes = [
            {"name": name, "kind": graph.kind(i), "text": text, "in": int(graph.parent[i]) if graph.parent[i] >= 0 else None}
            for i, (name, text) in enumerate(zip(graph.names, graph.texts, strict=True))
        ]
        edges = [{"relation": relation, "from": source, "to": target} for relation, source, target in graph.list_edges()]
        click.echo(json.dumps({"document": graph.documents[0], "nodes": nodes, "edges": edges}, ensure_ascii=False))
    else:
        click.echo(verbatim(render_lines(graph)))
    return 0
