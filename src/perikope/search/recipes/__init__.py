"""Recipes: a paper's whole system under one name, and your own from a file.

A recipe is a TOML file. Those of the papers lie beside this module; a path that ends in `.toml` is a recipe of your own.

    title = "…"                 one line
    paper = "…"
    [search]                    options of a search, by the names that `SearchOptions` declares
    [expects]                   how the index should have been made: stemmer, stopwords
    [per_query]                 options that only a query can have, with what they should be
    [models]                    the other models of the paper, by the names they have there
    [protocol]                  collection, queries, measures …, in words
    [sources]                   where each value comes from: "published: …" or "decided: …"

Everything but `[search]` may be left out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from perikope.core.errors import InputError, UsageError, unknown
from perikope.core.options import checked_options
from perikope.search.options import RECIPE, TOPIC, SearchOptions, options_on

SUFFIX = ".toml"
MAX_BYTES = 1 << 20

EXPECTS = ("stemmer", "stopwords")
PER_QUERY = tuple(name for name in options_on(TOPIC) if name not in options_on(RECIPE))
"""Options that only a query can have."""
_SECTIONS = ("title", "paper", "search", "expects", "per_query", "models", "protocol", "sources")


class RecipeWarning(UserWarning):
    """A recipe can be followed, but not as it is meant to be."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The options of a search under one name, what they expect, and where they come from."""

    name: str
    options: Mapping[str, Any]
    title: str = ""
    paper: str = ""
    expects: Mapping[str, str] = field(default_factory=dict)
    per_query: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    protocol: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def complaints(self, settings: Mapping[str, Any], given: Iterable[str] = (), has_codes: bool = False) -> list[str]:
        """What is not as the recipe expects: how the index was made (`settings`), or an option that should have been given."""
        found = []
        for setting, wanted in self.expects.items():
            made = settings.get(setting)
            if made != wanted:
                has = made if isinstance(made, str) else "words of its own"
                found.append(f"recipe {self.name} expects --{setting} {wanted}, the index was made with {has}: figures will differ")
        if has_codes and "shares_codes_with" in self.per_query and "shares_codes_with" not in set(given):
            found.append(f"recipe {self.name} expects --shares-codes-with DOCUMENT ({self.per_query['shares_codes_with']}): not filtered")
        return found


def resolve_options(recipe: Recipe | None, given: Mapping[str, Any], base: SearchOptions | None = None) -> SearchOptions:
    """The options of a search: those given, then those of a recipe, then those of `base`, then the defaults."""
    options = SearchOptions.of({}) if base is None else base
    if not isinstance(options, SearchOptions):
        raise UsageError(f"options must be SearchOptions, not {type(options).__name__}; single options are keywords: k=3")
    return (options.updated(recipe.options) if recipe is not None else options).updated(given)


def recipe_names() -> list[str]:
    """The names of the recipes that come with the program."""
    return sorted(file.name.removesuffix(SUFFIX) for file in resources.files(__name__).iterdir() if file.name.endswith(SUFFIX))


def load_recipe(recipe: str | Recipe) -> Recipe:
    """The recipe of a name, or of a file that ends in `.toml`.

    >>> load_recipe("carmel2013").options["fetch"]
    'bm25(k1=0.6,b=0.2)'
    """
    if isinstance(recipe, Recipe):
        return recipe
    if not isinstance(recipe, str):
        raise UsageError(f"a recipe is a name or a file, not {type(recipe).__name__}")
    if recipe.endswith(SUFFIX):
        return parse_recipe(Path(recipe).name.removesuffix(SUFFIX), _read(Path(recipe)), recipe)
    return _shipped(recipe)


@lru_cache
def _shipped(name: str) -> Recipe:
    if name not in (names := recipe_names()):
        raise unknown("recipe", name, [*names, f"a file that ends in {SUFFIX}"])
    return parse_recipe(name, resources.files(__name__).joinpath(f"{name}{SUFFIX}").read_text("utf-8"), f"{name}{SUFFIX}")


def _read(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError("is too large for a recipe", path=path)
        return data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read the recipe: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", path=path) from None


def parse_recipe(name: str, text: str, path: str) -> Recipe:
    """The recipe that a text in TOML describes; unknown keys and wrong values are named."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"is not TOML: {error}", path=path) from None
    _check_keys(content, _SECTIONS, "key of a recipe", path)
    if "search" not in content:
        raise InputError("has no [search] with the options of the recipe", path=path)
    for section in ("title", "paper"):
        if not isinstance(content.get(section, ""), str):
            raise InputError(f"{section} must be text", path=path)
    tables = {section: _table(content, section, path) for section in _SECTIONS[2:]}
    names = options_on(RECIPE)
    for key in tables["search"]:
        if key in PER_QUERY:
            raise InputError(f"[search] {key} belongs to one query, not to a recipe; give it with the query, or in a topic", path=path)
    _check_keys(tables["search"], names, "option in [search]", path)
    _check_keys(tables["expects"], EXPECTS, "key in [expects]", path)
    _check_keys(tables["per_query"], PER_QUERY, "key in [per_query]", path)
    sourced = [*names, *EXPECTS, *tables["models"]]
    _check_keys(tables["sources"], sourced, "key in [sources]", path)
    try:
        tables["search"] = checked_options(SearchOptions, tables["search"])
    except UsageError as error:
        raise InputError(f"[search] {error}", path=path) from None
    for section in _SECTIONS[3:]:
        for key, value in tables[section].items():
            if not isinstance(value, str):
                raise InputError(f"[{section}] {key} must be text", path=path)
    frozen = {section: MappingProxyType(table) for section, table in tables.items()}
    return Recipe(name, frozen.pop("search"), content.get("title", ""), content.get("paper", ""), **frozen)


def _table(content: Mapping[str, Any], section: str, path: str) -> dict[str, Any]:
    table = content.get(section, {})
    if not isinstance(table, dict):
        raise InputError(f"{section} must be a table: write [{section}]", path=path)
    return table


def _check_keys(table: Mapping[str, Any], valid: Iterable[str], kind: str, path: str) -> None:
    names = list(valid)
    for key in table:
        if key not in names:
            raise UsageError(f"{path}: {unknown(kind, key, names)}")
