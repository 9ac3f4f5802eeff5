"""Recipes: the options of a search under one name, from a published paper or from your own file.

A recipe is a TOML file whose keys `RecipeKeys` declares. The recipes of the papers are in this folder. A path that
ends in `.toml` names a recipe of your own. Only `[search]` is required.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from perikope.core.access import check_access
from perikope.core.configuration import SUFFIX, Location, Table, free_table, options_table, parse_toml, read_text, table
from perikope.core.errors import UsageError, unknown
from perikope.core.options import declared, option
from perikope.core.values import Notation, OneOf, Text
from perikope.search.options import OPTIONS, RECIPE, TOPIC, SearchOptions, options_on
from perikope.text.analysis import STEMMERS

PER_QUERY = tuple(name for name in options_on(TOPIC) if name not in options_on(RECIPE))
"""Options that a topic can set and a recipe cannot, such as `browse_query`."""


@dataclass(frozen=True, kw_only=True)
class ExpectsKeys(Table):
    """`[expects]`: settings that the index should have been made with, and that a protocol makes its index with."""

    stemmer: str = option("", OneOf(STEMMERS), "Stemmer of the index.")
    stopwords: str = option("", OneOf(("default", "none"), what="list of stop words"), "Stop words of the index: `default` or `none`.")
    language: str = option(
        "", Notation("perikope.text.analysis:language_code", required=True), "Language of texts that do not name their language."
    )

    @property
    def values(self) -> dict[str, str]:
        """The settings that are given, by name."""
        return {name: getattr(self, name) for name in declared(ExpectsKeys) if name in self.given}


def differences(expects: Mapping[str, str], settings: Mapping[str, Any], languages: Collection[str] | None = None) -> list[str]:
    """One message per expected setting that an index does not have, as a clause such as `expects --stemmer porter, …`.

    `settings` are the settings of the index, and `languages` its languages; None means that they are not compared.
    """
    messages = []
    for setting, expected in expects.items():
        if setting == "language":
            if languages is not None and expected not in languages:
                messages.append(f"expects --language {expected}, the index has {' '.join(languages) or 'no language'}")
        elif (actual := settings.get(setting)) != expected:
            shown = actual if isinstance(actual, str) else "a list of words"
            messages.append(f"expects --{setting} {expected}, the index was made with {shown}")
    return messages


@dataclass(frozen=True, kw_only=True)
class RecipeKeys(Table):
    """The keys of a recipe file."""

    title: str = option("", Text(), "Title, in one line.")
    paper: str = option("", Text(), "Paper that describes the system.")
    search: dict[str, Any] = options_table(
        SearchOptions, lambda: options_on(RECIPE), "Options of a search, by the names that `SearchOptions` declares."
    )
    expects: ExpectsKeys = table(ExpectsKeys, "Settings that the index should have been made with; a search warns if they differ.")
    per_query: dict[str, str] = free_table(Text(), "Options that are set per query, each with the value that the recipe expects, in words.")
    models: dict[str, str] = free_table(Text(), "The other models of the paper, by their names in the paper.")
    protocol: dict[str, str] = free_table(Text(), "How the paper was evaluated, as free text; a search does not use it.")
    sources: dict[str, str] = free_table(Text(), 'Where each value comes from: "published: …" or "decided: …".')


class RecipeWarning(UserWarning):
    """The warning that a search differs from its recipe: in the settings of the index, or in a missing option."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The options of a search under one name, with expected settings and sources; see `RecipeKeys`."""

    name: str
    options: Mapping[str, Any]
    title: str = ""
    paper: str = ""
    expects: Mapping[str, str] = field(default_factory=dict)
    per_query: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    protocol: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def complaints(
        self, settings: Mapping[str, Any], given: Iterable[str] = (), has_codes: bool = False, languages: Collection[str] | None = None
    ) -> list[str]:
        """One message per requirement of the recipe that is not met.

        A requirement is a setting of the index, or an option that belongs to one query and must be given with it.
        `settings` are the settings of the index. `given` are the names of the given options. If `has_codes` is false,
        the documents have no classification codes, and options that need them are not required. `languages` are the
        languages of the index; None means that they are not compared.
        """
        complaints = [
            f"recipe {self.name} {difference}: results will differ" for difference in differences(self.expects, settings, languages)
        ]
        if has_codes and "shares_codes_with" in self.per_query and "shares_codes_with" not in set(given):
            described = self.per_query["shares_codes_with"]
            complaints.append(
                f"recipe {self.name} expects --shares-codes-with DOCUMENT ({described}); without it, results are not filtered"
            )
        return complaints


def resolve_options(recipe: Recipe | None, given: Mapping[str, Any], base: SearchOptions | None = None) -> SearchOptions:
    """The options of a search: `given` takes precedence over the recipe, which takes precedence over `base`."""
    options = SearchOptions.of({}) if base is None else base
    if not isinstance(options, SearchOptions):
        raise UsageError(f"options must be SearchOptions, not {type(options).__name__}; give single options as keywords, such as k=3")
    return (options.updated(recipe.options) if recipe is not None else options).updated(given)


def recipe_names() -> list[str]:
    """The names of the recipes that come with the program."""
    return sorted(file.name.removesuffix(SUFFIX) for file in resources.files(__name__).iterdir() if file.name.endswith(SUFFIX))


def load_recipe(recipe: str | Recipe) -> Recipe:
    """Load a recipe by its name, or from a file whose name ends in `.toml`. A `Recipe` is returned unchanged.

    >>> load_recipe("carmel2013").options["fetch"]
    'bm25(k1=0.6,b=0.2)'
    """
    if isinstance(recipe, Recipe):
        return recipe
    if not isinstance(recipe, str):
        raise UsageError(f"a recipe must be a name or the path of a file, as text, not {type(recipe).__name__}")
    if recipe.endswith(SUFFIX):
        check_access(recipe, "a recipe")
        return parse_recipe(Path(recipe).name.removesuffix(SUFFIX), read_text(Path(recipe), "a recipe"), recipe)
    return _shipped(recipe)


@lru_cache
def _shipped(name: str) -> Recipe:
    if name not in (names := recipe_names()):
        raise unknown("recipe", name, [*names, f"a file that ends in {SUFFIX}"])
    return parse_recipe(name, resources.files(__name__).joinpath(f"{name}{SUFFIX}").read_text("utf-8"), f"{name}{SUFFIX}")


def parse_recipe(name: str, text: str, path: str) -> Recipe:
    """Parse a recipe from a text in TOML. Errors name the file (`path`), and the key that is unknown or wrong."""
    content, location = parse_toml(text, path), Location(path, "a recipe")
    for key in content["search"] if isinstance(content.get("search"), dict) else ():
        if key in OPTIONS and RECIPE not in OPTIONS[key].surfaces:
            place = "with the query, or in a topic" if key in PER_QUERY else "with the query"
            raise location.inner("search").wrong(key, f"belongs to one query, not to a recipe; give it {place}")
    keys = RecipeKeys.read(content, location)
    if "search" not in keys.given:
        raise location.error("has no table [search]; add one with the options of the recipe")
    _check_names(keys.per_query, PER_QUERY, location.inner("per_query"))
    _check_names(keys.sources, [*options_on(RECIPE), *declared(ExpectsKeys), *keys.models], location.inner("sources"))
    return Recipe(
        name,
        MappingProxyType(keys.search),
        keys.title,
        keys.paper,
        expects=MappingProxyType(keys.expects.values),
        per_query=MappingProxyType(keys.per_query),
        models=MappingProxyType(keys.models),
        protocol=MappingProxyType(keys.protocol),
        sources=MappingProxyType(keys.sources),
    )


def _check_names(names: Iterable[str], valid: Sequence[str], location: Location) -> None:
    for name in names:
        if name not in valid:
            raise location.unknown_key(name, valid)
