"""`perikope search`: the best passages for a query."""

from __future__ import annotations

import json
from typing import Any

import click

from perikope.cli.options import search_arguments, search_options
from perikope.cli.output import show, verbatim


@click.command(name="search")
@click.argument("index", metavar="INDEX")
@click.argument("query", metavar="QUERY")
@click.option("-k", default=10, show_default=True, type=click.IntRange(1), metavar="N", help="How many passages.")
@click.option("--context", is_flag=True, help="Show the passages before and after each hit.")
@click.option("--full", is_flag=True, help="Show long passages whole.")
@click.option(
    "--for-model",
    type=click.IntRange(1),
    metavar="BUDGET",
    help="Print the hits as one text of at most so many words, with borders and sources, for a language model or a reader.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line, a line a hit.")
@search_options
def command(index: str, query: str, k: int, context: bool, full: bool, for_model: int | None, as_json: bool, **options: Any) -> int:
    """Find passages.

    \b
    Examples:
      perikope search idx "pump with a magnetic coupling"
      perikope search idx "magnetic coupling" --model "psg_doc(lam=0.5)" -k 3 --context
      perikope search idx "magnetic coupling" --filter ipc=F04D --filter "date<2013-04-01" --part claims
      perikope search idx "magnetic coupling" --model bm25 --documents all
      perikope search idx "magnetic coupling" --recipe albarede2021 -k 10
      perikope search idx "how does a magnetic coupling slip?" --for-model 2000
    """
    from dataclasses import asdict

    from perikope.api import Index

    opened = Index.open(index)
    arguments = search_arguments(options)
    results = opened.search(query, k=k, **arguments)
    if for_model is not None:
        found = results.context(for_model)
        click.echo(json.dumps(asdict(found), ensure_ascii=False) if as_json else verbatim(found.text), nl=bool(found.text) or as_json)
    elif as_json:
        for hit in results:
            click.echo(json.dumps(asdict(hit), ensure_ascii=False))
    else:
        restricted = any(options[name] for name in ("filter", "ids", "shares_codes_with", "part", "tag", "must_match", "across_passages"))
        nothing = f"no passage {'that may be found ' * restricted}holds any of these words" if opened.documents else "the index is empty"
        conditions = {name: arguments[name] for name in ("filter", "shares_codes_with", "code_level")}
        if (conditions["filter"] or conditions["shares_codes_with"]) and not len(results) and not opened.count(**conditions):
            nothing = "the conditions leave no document"
        click.echo("\n\n".join(show(hit, context=context, full=full) for hit in results) or nothing)
    return 0
