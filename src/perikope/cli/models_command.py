"""`perikope models`: the models and expansions there are, with their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from perikope.core.parameters import Parameter

Entry = tuple[str, Callable[..., Any], Iterable["Parameter"]]


@click.command(name="models")
@click.argument("name", required=False)
def command(name: str | None) -> int:
    """List what scores passages (--model), ranks documents (--fetch) and adds words (--expand).

    With a NAME, its formula and parameters; a name may stand for several.

    \b
    Example:
      perikope models qsf_v_title
    """
    from perikope.core.errors import unknown
    from perikope.core.grammar import write

    groups = list(_groups())
    known = sorted({entry[0] for _, entries in groups for entry in entries})
    if name is not None and name not in known:
        raise unknown("model", name, known)
    width = max(map(len, known))
    for title, entries in groups:
        chosen = [entry for entry in entries if name in (None, entry[0])]
        if chosen:
            click.echo(f"{title}\n")
        for label, function, parameters in chosen:
            text = inspect.cleandoc(function.__doc__ or "")
            if name is None:
                click.echo(f"  {label:<{width}}  {text.splitlines()[0]}")
                continue
            click.echo(f"{label}\n\n{text}\n")
            for parameter in parameters:
                grid = parameter.grid_values()
                tried = f"; tuning tries {', '.join(write(value) for value in grid)}" if len(grid) > 1 else ""
                click.echo(f"  {parameter.name}={write(parameter.default)}  {parameter.describe_range()}{tried}")
                if parameter.help:
                    click.echo(f"      {parameter.help}")
        if chosen:
            click.echo()
    return 0


def _groups() -> Iterator[tuple[str, list[Entry]]]:
    from perikope.browse.models import MODELS
    from perikope.core.parameters import parameters_of
    from perikope.fetch.expansion import EXPANSIONS
    from perikope.fetch.models import FETCH_MODELS

    yield (
        "Passages (--model)",
        [(name, found.combine, [*found.shape.values(), *found.weights.values()]) for name, found in MODELS.items()],
    )
    yield "Documents (--fetch)", [(name, found.document, found.parameters.values()) for name, found in FETCH_MODELS.items()]
    yield "Expansion (--expand)", [(name, found, parameters_of(found).values()) for name, found in EXPANSIONS.items()]
