"""The query and the options of a search as values of a request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from perikope.core.configuration import SUFFIX
from perikope.core.errors import UsageError, unknown
from perikope.core.values import Notation
from perikope.query.topic import Topic
from perikope.search.asking import with_options_of
from perikope.search.options import OPTIONS, PATENTS, SearchOptions
from perikope.search.recipes import load_recipe, resolve_options
from perikope.service.reading import AskedOptions


def search_values(query: str | Topic, recipe: str, options: SearchOptions | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a request says about a search: the query, the recipe and the options that differ from the server's defaults.

    As in a search on this machine, keywords (`given`) take precedence over the recipe, the recipe over `options`, and
    the own options of a topic over all of them. What a server cannot take raises `UsageError`.
    """
    asked = query_values(query)
    if recipe:
        asked["recipe"] = _recipe_name(recipe)
    return asked | option_values(query, recipe, options, given)


def query_values(query: str | Topic) -> dict[str, Any]:
    """What a request says about the query itself."""
    if isinstance(query, str):
        return AskedOptions.of({"query": query}).plain()
    if not isinstance(query, Topic):
        raise UsageError(f"a server searches for a text or a topic, not for a value of type {type(query).__name__}")
    if query.patent and os.path.isfile(query.patent):
        raise UsageError(
            f"{query.patent!r} is a file of this machine, which the server cannot read; give the number of a patent of the index, "
            "or the text of its claims"
        )
    claims = {"claims": query.claims} if isinstance(query.claims, str) else {"claim": tuple(map(str, query.claims))}
    return AskedOptions.of({"query": query.query, "patent": query.patent, "family": query.family, **claims}).plain()


def _recipe_name(recipe: object) -> str:
    if not isinstance(recipe, str) or recipe.endswith(SUFFIX):
        raise UsageError("a server takes a recipe by its name only; give the options of your own recipe with options or as keywords")
    return recipe


def option_values(
    query: str | Topic | None, recipe: str, options: SearchOptions | None, given: Mapping[str, Any]
) -> dict[str, Any]:  # fmt: skip
    """The options of a search that a request must name, as values for JSON. Without a query, those of any search."""
    for name in given:
        if name not in OPTIONS:
            raise unknown("option", name, OPTIONS)
    # The server may have models that are not installed here, so it checks their names.
    texts = {name: value for name, value in given.items() if isinstance(value, str) and isinstance(OPTIONS[name].kind, Notation)}
    chosen = load_recipe(_recipe_name(recipe)) if recipe else None
    base = resolve_options(chosen, {name: value for name, value in given.items() if name not in texts}, options)
    names = {*given, *(name for name in (options.changed() if options is not None else ()) if chosen is None or name not in chosen.options)}
    combined = base
    if isinstance(query, Topic):
        if "ids" in query.options and base.ids is not None:
            raise UsageError("ids is given for the topic and for the search; a server takes one list: give the ids that are in both")
        combined = with_options_of(query, base)
        names = {*names, *query.options}
        texts = {name: value for name, value in texts.items() if name not in query.options}
        if not (query.patent or query.claims):
            names = {name for name in names if OPTIONS[name].group != PATENTS}
    return _plain(combined, names - {*texts}) | texts


def _plain(options: SearchOptions, names: set[str]) -> dict[str, Any]:
    for name, option in OPTIONS.items():
        if option.local and name in names and getattr(options, name) != option.default:
            raise UsageError(f"a search on a server cannot have the option {name}; leave it out, or search an index on this machine")
    return {name: option.kind.plain(getattr(options, name)) for name, option in OPTIONS.items() if name in names and not option.local}
