"""`perikope models`: list models, fetch models, expansions and document rankings, or show one with its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from perikope.cli.output import lines_of_parameters

if TYPE_CHECKING:
    from perikope.core.parameters import Parameter

Entry = tuple[str, Callable[..., Any], Iterable["Parameter"]]


@click.command(name="models")
@click.argument("name", required=False, metavar="[NAME]")
def command(name: str | None) -> int:
    """List the models that score passages, fetch models, expansions and document rankings.

    With a NAME, show its formula and parameters. If several kinds have this name, all of them are shown. NAME may have
    parameters, as in other commands; they are checked.

    \b
    Example:
      perikope models qsf_v_title
      perikope models "bm25(k1=1)"
    """
    from perikope.core.errors import unknown
    from perikope.core.grammar import parse

    groups = list(groups_of_models())
    known = sorted({entry[0] for _, entries in groups for entry in entries})
    given, name = name, parse(name).name if name is not None else None
    if name is not None and name not in known:
        raise unknown("model", name, known)
    accepted = [True] * len(groups)
    if given is not None and given != name:
        accepted = _accepted(given, [any(entry[0] == name for entry in entries) for _, entries in groups])
    width = max(map(len, known))
    for (title, entries), is_shown in zip(groups, accepted, strict=True):
        chosen = [entry for entry in entries if is_shown and name in (None, entry[0])]
        if chosen:
            click.echo(f"{title}\n")
        for label, function, parameters in chosen:
            text = inspect.cleandoc(function.__doc__ or "")
            if name is None:
                click.echo(f"  {label:<{width}}  {text.splitlines()[0]}")
                continue
            click.echo(f"{given}\n\n{text}\n")
            for line in lines_of_parameters(parameters):
                click.echo(line)
        if chosen:
            click.echo()
    return 0


def _accepted(notation: str, has_name: Iterable[bool]) -> list[bool]:
    """For each kind of `groups_of_models`, whether the notation with its parameters is one of this kind.

    `has_name` says whether the kind has the name at all. Raises the `UsageError` of the first kind if no kind accepts
    the parameters.
    """
    from perikope.browse.document_ranking import parse_method
    from perikope.browse.models import parse_model
    from perikope.core.errors import UsageError
    from perikope.fetch.expansion import parse_expansion
    from perikope.fetch.models import parse_fetch_model

    parsers: tuple[Callable[[str], object], ...] = (parse_model, parse_fetch_model, parse_expansion, parse_method)
    errors: list[UsageError] = []
    accepted = []
    for parser, is_known in zip(parsers, has_name, strict=True):
        try:
            accepted.append(is_known and parser(notation) is not None)
        except UsageError as error:
            errors.append(error)
            accepted.append(False)
    if not any(accepted):
        raise errors[0]
    return accepted


def groups_of_models() -> Iterator[tuple[str, list[Entry]]]:
    """Yield the heading and the entries of each kind of model.

    An entry is a name, the function whose docstring documents it, and its parameters.
    """
    from perikope.browse.document_ranking import METHODS
    from perikope.browse.models import MODELS
    from perikope.core.parameters import parameters_of
    from perikope.fetch.expansion import EXPANSIONS
    from perikope.fetch.models import FETCH_MODELS

    yield (
        "Passages (--model)",
        [(name, model.combine, [*model.shape.values(), *model.weights.values()]) for name, model in MODELS.items()],
    )
    yield "Documents (--fetch)", [(name, model.document, model.parameters.values()) for name, model in FETCH_MODELS.items()]
    yield "Expansion (--expand)", [(name, function, parameters_of(function).values()) for name, function in EXPANSIONS.items()]
    yield (
        "Documents by their passages (--document-ranking)",
        [(name, function, parameters_of(function).values()) for name, function in METHODS.items()],
    )
