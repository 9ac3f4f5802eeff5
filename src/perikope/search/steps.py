"""A search in five visible steps: prepare, candidates, matches, rank, results.

    search = Search(snapshot, options)              what the options say, checked against the index once
    prepared = search.prepare("magnetic pump")      the query in the terms of the index
    fetched = search.candidates(prepared)           the documents that are looked into
    matches = search.matches(fetched)               where the query's terms stand in them
    ranked = search.rank(matches)                   scores and order
    results = search.results(prepared, matches, ranked)

A caller that needs less stops earlier: tuning and learning need matches only, and rank them with many models.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from perikope.browse.matches import Matches, join
from perikope.browse.models import Model, Signals, parse_model
from perikope.browse.passage_feedback import expand_from_passages
from perikope.browse.ranking import Ranking, rank
from perikope.browse.requirements import lacking
from perikope.browse.signals import Column
from perikope.core.arrays import Floats, Integers, Mask
from perikope.core.errors import ModelWarning
from perikope.fetch import Candidates
from perikope.fetch.expansion import expand, parse_expansion
from perikope.fetch.filters import CODE_FIELDS, All, Filter, SharedCodes, known_fields
from perikope.fetch.models import parse_fetch_model
from perikope.fetch.parts import check_parts
from perikope.index.reader import Snapshot
from perikope.query.terms import Query
from perikope.query.topic import Topic
from perikope.search.asking import Asked, Prepared, conditions_of, read_asked, with_options_of
from perikope.search.eligibility import Eligibility, matching
from perikope.search.fetching import Fetching
from perikope.search.options import OPTIONS, SearchOptions
from perikope.search.recipes import Recipe, RecipeWarning
from perikope.search.results import Results

_AT_ONCE = 1 << 21
"""About how many tokens are looked into at a time where all documents are."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The documents that are looked into, and the query that scores their passages."""

    candidates: Candidates
    query: Query


@dataclass(frozen=True, slots=True)
class RankedMatches:
    """Matches with the scores and the order that a model gives them."""

    signals: Signals
    score: Column
    eligible: Mask | None
    """The rows that may be results; None for all."""
    groups: Integers | None
    """The group of each document where only one document per group has results."""
    ranking: Ranking


class Search:
    """One description of a search, ready to run on one snapshot of an index.

    Whatever the options get wrong about this index is an error here, so that an error of a later step is the query's.
    """

    def __init__(self, snapshot: Snapshot, options: SearchOptions) -> None:
        self.snapshot, self.options = snapshot, options
        self.model = parse_model(options.model)
        self.rescore_model = parse_model(options.rescore) if options.rescore else None
        self.conditions = conditions_of(snapshot, options)
        self.fetch_model = parse_fetch_model(options.fetch)
        self.parts = options.fetch_parts or {}
        check_parts(snapshot, self.parts)
        self.eligibility = Eligibility.of(snapshot, options)

    def complaints(self, prepared: Prepared, recipe: Recipe | None = None) -> list[UserWarning]:
        """What the models need, or a recipe expects, and this search or the index does not have."""
        # Whoever chose no model need not hear that another would do.
        models = [model for model in (self.model, self.rescore_model) if model is not None and model != _default_model()]
        found: list[UserWarning] = [ModelWarning(complaint) for model in models for complaint in lacking(self.snapshot, model)]
        return found if recipe is None else [*found, *map(RecipeWarning, self._complaints_of(recipe, prepared))]

    def _complaints_of(self, recipe: Recipe, prepared: Prepared) -> list[str]:
        shares_codes = any(isinstance(one, SharedCodes) for one in (*self.conditions, *prepared.filters))
        has_codes = not {*CODE_FIELDS}.isdisjoint(known_fields(self.snapshot))
        settings = self.snapshot.manifest.analysis
        return recipe.complaints(settings, ["shares_codes_with"] if shares_codes else [], has_codes)

    def prepare(self, asked: Asked) -> Prepared:
        """The query in the terms of the index; an error where it holds nothing to look for."""
        return read_asked(self.snapshot, asked, self.options)

    def candidates(self, prepared: Prepared) -> Fetched:
        """The documents that are looked into: fetched, expanded, nearest by vectors and rescored as the options say."""
        options, fetching, most = self.options, self.fetching(prepared), self.most
        query = prepared.fetch
        found = fetching.documents(query, most) if options.candidates is None else fetching.given(options.candidates, most)
        if options.expand and query.positive.terms:
            query = query.expanded(expand(self.snapshot, query.positive, found, options.expand))
            found = found if options.candidates is not None else fetching.documents(query, most)
        if options.also_nearest:
            found = fetching.with_nearest(found, query, options.also_nearest, most)
        scoring = prepared.browse or query
        if self.rescore_model is not None:
            found = fetching.rescored(scoring, found, self.rescore_model, options.rescore_weight)
        return Fetched(found, scoring)

    def matches(self, fetched: Fetched, model: Model | None = None) -> Matches:
        """The occurrences of the query's terms in the candidates. The model counts only where the query is expanded by its passages."""
        matches = self._join(fetched.query, fetched.candidates)
        if not self.options.browse_expand:
            return matches
        expander, chosen = parse_expansion(self.options.browse_expand), model or self.model
        eligible = self.eligible(matches, chosen)
        best = rank(matches, chosen.score(matches), expander.depth, matches.id_rank_of_document(), allowed=eligible)
        expansion = expand_from_passages(self.snapshot, matches, best, expander)
        return self._join(fetched.query.expanded(expansion), fetched.candidates)

    def rank(self, matches: Matches, model: Model | None = None) -> RankedMatches:
        """The scores of a model, and the best `k` results by them."""
        chosen = model or self.model
        signals = chosen.signals(matches)
        score, eligible, groups = chosen.combine(signals), self.eligible(matches, chosen), self.eligibility.groups(matches)
        return RankedMatches(signals, score, eligible, groups, self.eligibility.rank(matches, score, self.options.k, eligible, groups))

    def results(self, prepared: Prepared, matches: Matches, ranked: RankedMatches, *, complete: bool = True) -> Results:
        """The hits, read from the index as they are asked for."""
        return Results(
            self.snapshot, matches, ranked.signals, ranked.score, ranked.ranking, ranked.eligible, ranked.groups,
            is_complete=complete, notes=prepared.notes,
        )  # fmt: skip

    def run(self, prepared: Prepared) -> Results:
        """All steps after `prepare`."""
        if self.streams:
            return self._run_on_all(prepared)
        matches = self.matches(self.candidates(prepared))
        return self.results(prepared, matches, self.rank(matches))

    @property
    def most(self) -> int:
        """How many documents are fetched at most."""
        return max(self.snapshot.numbers, 1) if self.options.documents == "all" else int(self.options.documents)

    @property
    def matches_depend_on_model(self) -> bool:
        """Whether each model has matches of its own, because its best passages expand the query."""
        return bool(self.options.browse_expand)

    @property
    def streams(self) -> bool:
        """Whether all documents are looked into some at a time. The score of a passage must not depend on other documents."""
        if self.options.documents != "all" or not self.model.context_free:
            return False
        return all(getattr(self.options, name) == one.default for name, one in OPTIONS.items() if one.together)

    def fetching(self, prepared: Prepared) -> Fetching:
        """How documents are chosen for a query: by the options, and by the conditions that the query brings."""
        conditions = (*self.conditions, *prepared.filters)
        return Fetching(self.snapshot, self.fetch_model, self.parts, All(conditions) if conditions else None)

    def eligible(self, matches: Matches, model: Model) -> Mask | None:
        """The rows that may be results of a model; None for all."""
        allowed = self.eligibility.allowed(matches)
        return matching(matches, allowed) if model.matching_only else allowed

    def _join(self, query: Query, candidates: Candidates) -> Matches:
        return join(self.snapshot, query, candidates, units=self.eligibility.units, tags=self.eligibility.element_tags)

    def _run_on_all(self, prepared: Prepared) -> Results:
        """The best passages of all documents, some documents at a time."""
        query, k = prepared.scoring, self.options.k
        found = np.sort(self.fetching(prepared).documents(query, self.most).documents)
        best: list[tuple[Integers, Floats]] = []
        for piece in self._pieces(found):
            matches = self._join(query, Candidates(piece, np.zeros(piece.size)))
            ranking = self.rank(matches).ranking
            best.append((matches.number_of_document[matches.document_of_passage[ranking.rows]], ranking.scores))
        documents, scores = (np.concatenate(column) for column in zip(*best, strict=True))
        if scores.size > k:
            documents = documents[scores >= np.partition(scores, scores.size - k)[scores.size - k]]
        # The documents that hold the best passages once more: few, and what is shown and explained comes from one join.
        winners = np.unique(documents)
        matches = self._join(query, Candidates(winners, np.zeros(winners.size)))
        return self.results(prepared, matches, self.rank(matches), complete=False)

    def _pieces(self, documents: Integers) -> list[Integers]:
        """Documents in pieces of about `_AT_ONCE` tokens."""
        if not documents.size:
            return [documents]
        tokens = np.concatenate([segment["document.tokens"] for segment in self.snapshot.segments])[documents]
        return np.split(documents, np.flatnonzero(np.diff(np.cumsum(tokens) // _AT_ONCE)) + 1)


def search_for(snapshot: Snapshot, asked: Asked, options: SearchOptions) -> Search:
    """The search for what is asked: with the options that a topic brings."""
    return Search(snapshot, with_options_of(asked, options) if isinstance(asked, Topic) else options)


def count_documents(snapshot: Snapshot, options: SearchOptions, filters: tuple[Filter, ...] = ()) -> int:
    """How many documents the conditions of the options, and others, leave."""
    conditions = (*conditions_of(snapshot, options), *filters)
    fetching = Fetching(snapshot, parse_fetch_model(options.fetch), {}, All(conditions) if conditions else None)
    return int(fetching.allowed().sum())


@cache
def _default_model() -> Model:
    return parse_model(OPTIONS["model"].default)
