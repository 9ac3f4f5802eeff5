"""Recipes: a paper's whole system under one name, and your own from a file.

A recipe is a TOML file. Those of the papers lie beside this module; a path that ends in `.toml` is a recipe of your own.

    title = "…"                 one line
    paper = "…"
    [search]                    options of `Index.search`, by the names they have there
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

SUFFIX = ".toml"
MAX_BYTES = 1 << 20

_TEXT, _NUMBER, _SWITCH, _NAMES = "text", "a number", "true or false", "a list of texts"
OPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "fetch": (_TEXT,), "fetch_parts": ("a table of numbers",), "expand": (_TEXT,), "documents": ("a whole number", _TEXT),
        "k": ("a whole number",), "language": (_TEXT,), "syntax": (_TEXT,), "model": (_TEXT,), "browse_expand": (_TEXT,),
        "also_nearest": (_TEXT,),
        "filter": (_TEXT, _NAMES), "code_level": (_TEXT,), "part": (_TEXT, _NAMES), "tag": (_TEXT, _NAMES),
        "must_match": (_SWITCH,), "across_passages": (_SWITCH,), "elements": (_SWITCH, _TEXT, _NAMES), "no_overlap": (_SWITCH,),
        "group_by_document": (_SWITCH, _TEXT), "drop_unmatched": (_SWITCH,), "one_per": (_TEXT,),
        "rescore": (_TEXT,), "rescore_weight": (_NUMBER,),
    }
)  # fmt: skip
"""What `[search]` may hold, and what each may be."""

EXPECTS = ("stemmer", "stopwords")
PER_QUERY = ("shares_codes_with", "browse_query")
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

    def filled(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The given options, and those of the recipe for what is not given."""
        return {**self.options, **given}

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
    options = tables["search"]
    _check_keys(options, OPTIONS, "option in [search]", path)
    _check_keys(tables["expects"], EXPECTS, "key in [expects]", path)
    _check_keys(tables["per_query"], PER_QUERY, "key in [per_query]", path)
    sourced = [*OPTIONS, *EXPECTS, *tables["models"]]
    _check_keys(tables["sources"], sourced, "key in [sources]", path)
    for key, value in options.items():
        if _kind(value) not in OPTIONS[key] and not (_NUMBER in OPTIONS[key] and _kind(value) == "a whole number"):
            raise InputError(f"[search] {key} must be {' or '.join(OPTIONS[key])}, not {_kind(value)}", path=path)
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


def _kind(value: object) -> str:
    if isinstance(value, str):
        return _TEXT
    if isinstance(value, bool):
        return _SWITCH
    if isinstance(value, int):
        return "a whole number"
    if isinstance(value, float):
        return _NUMBER
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return _NAMES
    if isinstance(value, dict) and all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in value.values()):
        return "a table of numbers"
    return "something else"
