"""`perikope measures`: list the measures, or show one with its parameters."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import click

from perikope.cli.output import lines_of_parameters

if TYPE_CHECKING:
    from perikope.evaluation.measures import Definition, Measure


@click.command(name="measures")
@click.argument("name", required=False, metavar="[NAME]")
def command(name: str | None) -> int:
    """List the measures with their parameters and other spellings. With a NAME, show its formula and parameters.

    NAME may have a cutoff and parameters, as in other commands; they are checked and named.

    \b
    Example:
      perikope measures
      perikope measures AgP
      perikope measures nDCG@10
    """
    from perikope.evaluation.measures import MEASURES, parse_measure

    definitions = dict(MEASURES.items())
    if name is not None:
        canonical = {
            spelling: known for known, definition in definitions.items() for spelling in (known, *definition.aliases, *definition.short)
        }
        if name in canonical:
            _show(definitions[canonical[name]])
            return 0
        measure = parse_measure(name)
        _show(measure.definition, f"{name} is {words}." if (words := _in_words(measure)) != name else "")
        return 0
    for definition in definitions.values():
        spellings = _spellings(definition)
        others = f" (also {', '.join(spellings)})" if spellings else ""
        click.echo(f"{signature(definition):<26} {_documentation(definition).splitlines()[0]}{others}")
    return 0


def _in_words(measure: Measure) -> str:
    """A measure as its name, its parameters and its cutoff."""
    from perikope.core.grammar import write

    settings = [f"{name}={write(value)}" for name, value in measure.arguments]
    if measure.cutoff is not None:
        settings.append(f"the {'recall' if measure.definition.cutoff_is_recall else 'cutoff'} {measure.cutoff:g}")
    return measure.definition.name + (f" with {' and '.join(settings)}" if settings else "")


def _show(definition: Definition, said: str = "") -> None:
    """Print the signature, the documentation without its doctest, the spellings and the parameters of a measure.

    `said` is a sentence about the given notation.
    """
    text = _documentation(definition).split("\n>>>")[0].strip()
    click.echo("\n\n".join(filter(None, [signature(definition), said, f"{text}\n"])))
    if spellings := _spellings(definition):
        click.echo(f"also {', '.join(spellings)}\n")
    for line in lines_of_parameters(definition.parameters.values()):
        click.echo(line)


def signature(definition: Definition) -> str:
    """A measure as users write it: name, parameters with defaults, and cutoff. An optional cutoff is in brackets."""
    from perikope.core.grammar import write

    inside = ",".join(f"{parameter.name}={write(parameter.default)}" for parameter in definition.parameters.values())
    symbol = "@x" if definition.cutoff_is_recall else "@k"
    cutoff = (symbol if definition.needs_cutoff else f"[{symbol}]") if definition.takes_cutoff else ""
    return f"{definition.name}{f'({inside})' if inside else ''}{cutoff}"


def _spellings(definition: Definition) -> list[str]:
    return [*definition.aliases, *(f"{short}({parameter})" for short, parameter in definition.short.items())]


def _documentation(definition: Definition) -> str:
    return inspect.cleandoc(definition.function.__doc__ or "")
