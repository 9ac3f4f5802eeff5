"""`perikope measures`: the measures there are."""

from __future__ import annotations

import inspect

import click


@click.command(name="measures")
def command() -> int:
    """List the measures, their parameters and their other spellings.

    \b
    Example:
      perikope measures
    """
    from perikope.core.grammar import write
    from perikope.evaluation.measures import MEASURES

    for name, definition in MEASURES.items():
        inside = ",".join(f"{parameter.name}={write(parameter.default)}" for parameter in definition.parameters.values())
        place = "@x" if definition.cutoff_is_recall else "@k"
        cutoff = (place if definition.needs_cutoff else f"[{place}]") if definition.takes_cutoff else ""
        called = f"{name}{f'({inside})' if inside else ''}{cutoff}"
        spellings = [*definition.aliases, *(f"{short}({parameter})" for short, parameter in definition.short.items())]
        others = f" (also {', '.join(spellings)})" if spellings else ""
        click.echo(f"{called:<26} {inspect.cleandoc(definition.function.__doc__ or '').splitlines()[0]}{others}")
    return 0
