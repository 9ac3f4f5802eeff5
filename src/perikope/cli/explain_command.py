"""`perikope explain`: explain the score of a passage."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perikope.cli.options import GivenSearch, GroupedCommand, search_options
from perikope.cli.output import printable
from perikope.search.options import OPTIONS, PATENTS

if TYPE_CHECKING:
    from pathlib import Path

    from perikope.browse.signals import Node


@click.command(name="explain", cls=GroupedCommand)
@click.argument("index", metavar="INDEX")
@click.argument("query", metavar="QUERY")
@click.argument("passage", metavar="DOCUMENT#PASSAGE")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the explanation as a tree.")
@click.option(
    "--plot",
    default="",
    metavar="FILE.svg|FILE.csv",
    help="Write the influence of the query and of each of its words on the tokens of the document to this file, as a plot or as a table. "
    "Only prox, prox_h, prox_hw, and plm with unit=token have such curves.",
)
@search_options(without={"candidates", "k", "offset", *(name for name, option in OPTIONS.items() if option.group == PATENTS)})
def command(index: str, query: str, passage: str, as_json: bool, plot: str, search: GivenSearch) -> int:
    """Explain the score of a passage for a query, step by step.

    \b
    Example:
      perikope explain idx "magnetic coupling" "EP1130000B1#claim-1"
      perikope explain idx "composer museum" "1707709#/article[1]/bdy[1]" --elements --model prox --plot influence.svg
    """
    from pathlib import Path

    from perikope.browse.explanation import as_dict, render
    from perikope.browse.reasons import in_words, reasons_of
    from perikope.search.facade import Index
    from perikope.search.recipe_files import check_target

    if plot:
        check_target(Path(plot), "a plot", ".csv" if plot.endswith(".csv") else ".svg")
    node = Index.open(index).explain(query, passage, **search.keywords)
    if plot:
        _draw(Path(plot), node, query)
    if as_json:
        click.echo(json.dumps(as_dict(node), ensure_ascii=False))
    else:
        if comes_from := in_words(reasons_of(node)):
            click.echo(printable(comes_from))
        click.echo("\n".join(" " * (len(line) - len(line.lstrip())) + printable(line.lstrip()) for line in render(node).split("\n")))
    return 0


def _draw(path: Path, node: Node, query: str) -> None:
    """Write the curves of an explanation to a file. An explanation without curves is an error."""
    from perikope.browse.explanation import curves_of
    from perikope.core.errors import UsageError
    from perikope.evaluation.experiment.report.influence import write_curves
    from perikope.search.eligibility import NO_WORDS

    if node.label == NO_WORDS:
        raise UsageError("no passage contains a word of the query, so there are no curves to plot; add words, or leave --plot out")
    if not (curves := curves_of(node)):
        raise UsageError("the model has no curves to plot; use prox, prox_h, prox_hw, or plm with unit=token, or leave --plot out")
    write_curves(path, curves, query)
