"""One search from query to results: what `Index.search` and a server have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perikope.index.reader import Snapshot
from perikope.search.asking import Asked, check_about_patents
from perikope.search.options import SearchOptions
from perikope.search.recipes import Recipe, load_recipe, resolve_options
from perikope.search.results import Results
from perikope.search.steps import search_for


def run_search(
    snapshot: Snapshot,
    query: Asked,
    recipe: str | Recipe = "",
    options: SearchOptions | None = None,
    given: Mapping[str, Any] | None = None,
) -> tuple[Results, list[UserWarning]]:
    """Search a snapshot. Returns the results, and warnings about the model and the recipe.

    `given` are options by name, which take precedence over the recipe, and the recipe over `options`.
    """
    check_about_patents(query, given or {})
    chosen = load_recipe(recipe) if recipe else None
    search = search_for(snapshot, query, resolve_options(chosen, given or {}, options))
    prepared = search.prepare(query)
    return search.run(prepared), search.complaints(prepared, chosen)
