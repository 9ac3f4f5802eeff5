"""`perikope models`: the models there are, with their parameters."""

from __future__ import annotations

import inspect

import click


@click.command(name="models")
@click.argument("name", required=False)
def command(name: str | None) -> int:
    """List the models; with a NAME, its formula and parameters.

    \b
    Example:
      perikope models qsf_v_title
    """
    from perikope.grammar import write
    from perikope.models import MODELS

    if name is None:
        width = max(len(known) for known in MODELS.names())
        for known, definition in MODELS.items():
            click.echo(f"{known:<{width}}  {definition.summary}")
        return 0
    definition = MODELS[name]
    click.echo(f"{name}\n\n{inspect.cleandoc(definition.combine.__doc__ or '')}\n")
    for parameter in (*definition.shape.values(), *definition.weights.values()):
        grid = parameter.grid_values()
        tried = f"; tuning tries {', '.join(write(value) for value in grid)}" if len(grid) > 1 else ""
        click.echo(f"  {parameter.name}={write(parameter.default)}  {parameter.describe_range()}{tried}")
    return 0
