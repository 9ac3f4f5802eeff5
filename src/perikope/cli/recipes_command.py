"""`perikope recipes`: list the systems of papers, with the source of each of their values."""

from __future__ import annotations

from collections.abc import Mapping

import click

from perikope.cli.output import printable


@click.command(name="recipes")
@click.argument("name", required=False, metavar="[NAME|FILE]")
def command(name: str | None) -> int:
    """List the recipes: options of published systems. With a NAME, or a recipe FILE, show its values and their sources.

    \b
    Examples:
      perikope recipes albarede2021
      perikope search idx "magnetic coupling" --recipe albarede2021 -k 10
    """
    from perikope.core.grammar import write
    from perikope.search.recipes import load_recipe, recipe_names

    if name is None:
        names = recipe_names()
        width = max(len(known) for known in names)
        for known in names:
            click.echo(f"{known:<{width}}  {load_recipe(known).title}")
        return 0
    recipe = load_recipe(name)
    click.echo("\n".join(printable(line) for line in (recipe.name, recipe.title, recipe.paper) if line))
    options = {key: value if isinstance(value, str) else write(_plain(value)) for key, value in recipe.options.items()}
    _show("search", options, recipe.sources)
    _show("expected of the index", recipe.expects, recipe.sources)
    _show("expected of each query", recipe.per_query, {})
    _show("models", recipe.models, recipe.sources)
    _show("protocol", recipe.protocol, {})
    return 0


def _plain(value: object) -> object:
    """Convert a value to a type that `write` accepts: lists become tuples, tables become text."""
    if isinstance(value, list):
        return tuple(value)
    return ",".join(f"{key}={weight:g}" for key, weight in value.items()) if isinstance(value, dict) else value


def _show(heading: str, values: Mapping[str, str], sources: Mapping[str, str]) -> None:
    if not values:
        return
    click.echo(f"\n{heading}")
    width = max(len(printable(key)) for key in values)
    for key, value in values.items():
        click.echo(f"  {printable(key):<{width}}  {printable(value)}")
        if key in sources:
            click.echo(f"  {'':<{width}}    {printable(sources[key])}")
