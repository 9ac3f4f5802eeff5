"""The best model that an index offers. A search that names no model uses it.

    1. the index's own default, which `perikope adapt` saves
    2. `hybrid`, if `perikope encode` has made vectors of all documents
    3. `coverage`

A model that cannot be used, for example because torch is not installed, is passed over with a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perikope.browse.models import Model, parse_model
from perikope.index.reader import Snapshot
from perikope.index.vector_stores import has_store
from perikope.search.options import BEST, LEXICAL, SearchOptions
from perikope.search.own_default import own_default

HYBRIDS = {"colbert": "hybrid", "dense": "hybrid(store=dense)"}
"""The models that use vectors, by the name of their store, best first. The names are those that `perikope encode` gives
to stores of untrained encoders."""


@dataclass(frozen=True, slots=True)
class BestModel:
    """The model that a search uses if it names none."""

    model: Model
    note: str = ""
    """A sentence about a better model that cannot be used now, and what to do; empty if there is none."""


def best_model(snapshot: Snapshot, options: SearchOptions) -> BestModel | None:
    """The best model that the index offers to a search with these options; None if the options name a model.

    Elements are ranked by the lexical default: vectors and the index's own default are made for passages.
    """
    if options.model != BEST:
        return None
    note = ""
    for text in () if options.elements else _offered(snapshot):
        model = parse_model(text)
        if not (obstacle := model.obstacle(snapshot)):
            return BestModel(model, note)
        note = note or f"the search does not use {model.short}, the best model of the index: {obstacle}"
    return BestModel(parse_model(LEXICAL), note)


def _offered(snapshot: Snapshot) -> Iterator[str]:
    """The models that an index offers in place of the lexical default, best first."""
    if own := own_default(snapshot.folder):
        yield own.model
    yield from (model for store, model in HYBRIDS.items() if has_store(snapshot.folder, store))
