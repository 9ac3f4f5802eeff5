"""A search in five visible steps: prepare, candidates, matches, rank, results.

    search = Search(snapshot, options)              the options, checked against the index
    prepared = search.prepare("magnetic pump")      the query in terms of the index
    fetched = search.candidates(prepared)           the documents whose passages are scored
    matches = search.matches(fetched)               the occurrences of query terms in these documents
    ranked = search.rank(matches)                   scores and order
    results = search.results(prepared, ranked)            the hits

A caller may stop after any step. For example, tuning and learning rank the same matches with many models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from perikope.browse.matches import Matches, join
from perikope.browse.models import Model, parse_model
from perikope.browse.passage_feedback import expand_from_passages
from perikope.browse.ranking import rank
from perikope.browse.requirements import lacking
from perikope.browse.signals import Column
from perikope.core.arrays import Floats, Integers, Mask
from perikope.core.checkpoints import checkpoint
from perikope.core.errors import ModelWarning
from perikope.fetch import Candidates
from perikope.fetch.expansion import expand, parse_expansion
from perikope.fetch.filters import All, Filter, SharedCodes, known_fields
from perikope.fetch.models import parse_fetch_model
from perikope.fetch.parts import check_parts
from perikope.index.reader import Snapshot
from perikope.patents.codes import CODE_FIELDS
from perikope.query.code_terms import without_codes
from perikope.query.language import check_language
from perikope.query.terms import Query
from perikope.query.topic import Topic
from perikope.search.asking import Asked, Prepared, conditions_of, notes_on_conditions, read_asked, with_options_of
from perikope.search.best import BestModel, best_model
from perikope.search.eligibility import Eligibility
from perikope.search.fetching import Fetched, Fetching
from perikope.search.options import BEST, OPTIONS, SearchOptions
from perikope.search.promising import rank_promising
from perikope.search.recipes import Recipe, RecipeWarning
from perikope.search.results import RankedMatches, Results

NOTHING_TO_COMPARE = (
    "all scores are 0, because scores of this model compare passages with each other, and there is only one passage or all are equal; "
    "model bm25 scores each passage alone"
)
"""The note on results of a contextual model that all score 0."""
_AT_ONCE = 1 << 21
"""The approximate number of tokens per batch of documents when all documents are searched."""


class Search:
    """A search with given options on one snapshot of an index.

    The constructor checks the options against the index. Errors of later steps therefore concern the query.
    """

    def __init__(self, snapshot: Snapshot, options: SearchOptions, best: BestModel | None = None) -> None:
        """Check the options. `best` is the model that they stand for if they name none; it is found when first used."""
        self.snapshot, self.options = snapshot, options
        self._best, self._named = best, None if options.model == BEST else parse_model(options.model)
        self.rescore_model = parse_model(options.rescore) if options.rescore else None
        self.conditions = conditions_of(snapshot, options)
        self.notes = notes_on_conditions(snapshot, options, self.conditions)
        """Sentences for the user about conditions that no document satisfies."""
        self.fetch_model = parse_fetch_model(options.fetch)
        self.parts = options.fetch_parts or {}
        check_parts(snapshot, self.parts)
        self.eligibility = Eligibility.of(snapshot, options)
        check_language(snapshot, options.language)

    @property
    def best(self) -> BestModel | None:
        """The best model that the index offers; None if the options name a model."""
        # Not a `cached_property`, whose lock a process may inherit if it is forked while another thread searches.
        if self._best is None:
            self._best = best_model(self.snapshot, self.options)
        return self._best

    @property
    def model(self) -> Model:
        """The model that scores passages: the one that the options name, or the best that the index offers."""
        if self._named is not None:
            return self._named
        assert self.best is not None
        return self.best.model

    def complaints(self, prepared: Prepared, recipe: Recipe | None = None) -> list[UserWarning]:
        """Warnings about features that the models need and the index lacks, and about differences from the recipe."""
        # The best model of the index gives no warning, since the user did not choose it.
        models = [model for model in (self._named, self.rescore_model) if model is not None]
        of_models: list[UserWarning] = [ModelWarning(complaint) for model in models for complaint in lacking(self.snapshot, model)]
        return of_models if recipe is None else [*of_models, *map(RecipeWarning, self._complaints_of(recipe, prepared))]

    def _complaints_of(self, recipe: Recipe, prepared: Prepared) -> list[str]:
        shares_codes = any(isinstance(condition, SharedCodes) for condition in (*self.conditions, *prepared.filters))
        has_codes = not {*CODE_FIELDS}.isdisjoint(known_fields(self.snapshot))
        settings = self.snapshot.manifest.analysis
        return recipe.complaints(settings, ["shares_codes_with"] if shares_codes else [], has_codes, self.snapshot.languages)

    def prepare(self, asked: Asked) -> Prepared:
        """Translate the query into terms of the index. Raises `UsageError` if no term is left."""
        checkpoint("prepare")
        prepared = read_asked(self.snapshot, asked, self.options)
        return replace(prepared, notes=(*self.notes, *prepared.notes)) if self.notes else prepared

    def candidates(self, prepared: Prepared) -> Fetched:
        """Choose the documents whose passages are scored, with expansion, vectors and rescoring as the options say."""
        checkpoint("candidates")
        options, fetching, most = self.options, self.fetching(prepared), self.most
        query = prepared.fetch
        candidates = fetching.documents(query, most) if options.candidates is None else fetching.given(options.candidates, most)
        if options.expand and query.positive.terms:
            query = query.expanded(expand(self.snapshot, query.positive, candidates, options.expand, self.parts))
            if options.candidates is None:
                candidates = fetching.documents(query, most)
        if options.also_nearest:
            candidates = fetching.with_nearest(candidates, query, options.also_nearest, most)
        scoring = without_codes(prepared.browse or query)
        if self.rescore_model is not None:
            candidates = fetching.rescored(scoring, candidates, self.rescore_model, options.rescore_weight)
        return Fetched(candidates, scoring)

    def matches(self, fetched: Fetched, model: Model | None = None) -> Matches:
        """Find the occurrences of the query's terms in the candidates.

        `model` is used only with the option `browse_expand`: the passages that it ranks best expand the query. The
        default is the model of the options.
        """
        checkpoint("matches")
        matches = self._join(fetched.query, fetched.candidates)
        if not self.options.browse_expand:
            return matches
        expander, chosen = parse_expansion(self.options.browse_expand), model or self.model
        score, eligible = self.results_by(matches, chosen, chosen.score(matches))
        best = rank(matches, score, expander.depth, matches.id_rank_of_document, allowed=eligible)
        expansion = expand_from_passages(self.snapshot, matches, best, expander)
        return self._join(fetched.query.expanded(expansion), fetched.candidates)

    def rank(self, matches: Matches, model: Model | None = None) -> RankedMatches:
        """Score the rows with a model, and rank the best `k` of them after `offset`.

        The default is the model of the options.
        """
        ranked = self._rank(matches, model or self.model)
        return ranked._replace(ranking=ranked.ranking.after(self.options.offset))

    def _rank(self, matches: Matches, chosen: Model) -> RankedMatches:
        """Score the rows with a model, and rank all results up to the last one that is returned."""
        checkpoint("rank")
        signals = chosen.signals(matches)
        score, eligible = self.results_by(matches, chosen, chosen.combine(signals))
        groups = self.eligibility.groups(matches)
        return RankedMatches(matches, signals, score, eligible, groups, self.eligibility.rank(matches, score, self.depth, eligible, groups))

    @property
    def depth(self) -> int:
        """The rank of the last result that is returned."""
        return self.options.offset + self.options.k

    def results(
        self, prepared: Prepared, ranked: RankedMatches, *, rank_all: Callable[[], RankedMatches] | None = None, complete: bool = True
    ) -> Results:
        """The hits of a ranking. Their texts are read from the index when a hit is used.

        For `rank_all` see `Results`.
        """
        checkpoint("results")
        is_relative = self.model.unmatched != "score 0" and not self.model.context_free
        equal = is_relative and len(ranked.ranking) > 0 and not ranked.ranking.scores.any()
        of_model = (self.best.note,) if self.best is not None and self.best.note else ()
        return Results(
            self.snapshot, ranked, rank_all=rank_all, has_all_candidates=complete,
            notes=(*of_model, *prepared.all_notes, *((NOTHING_TO_COMPARE,) if equal else ())),
            queries=prepared.queries, model=self.model.short,
        )  # fmt: skip

    def run(self, prepared: Prepared) -> Results:
        """Run all steps after `prepare`, and return the results."""
        if self.streams:
            return self._run_on_all(prepared)
        fetched = self.candidates(prepared)
        ranked = rank_promising(self, fetched)
        if ranked is None:
            return self.results(prepared, self.rank(self.matches(fetched)))
        return self.results(prepared, ranked, rank_all=lambda: self.rank(self.matches(fetched)))

    @property
    def most(self) -> int:
        """The largest number of documents to fetch."""
        return max(self.snapshot.numbers, 1) if self.options.documents == "all" else int(self.options.documents)

    @property
    def matches_depend_on_model(self) -> bool:
        """Whether `matches` depends on the model, because the best passages by this model expand the query."""
        return bool(self.options.browse_expand)

    @property
    def streams(self) -> bool:
        """Whether all documents are searched in batches.

        This requires that the score of a passage does not depend on other documents.
        """
        if self.options.documents != "all" or not self.model.context_free:
            return False
        return all(getattr(self.options, name) == option.default for name, option in OPTIONS.items() if option.together)

    def fetching(self, prepared: Prepared) -> Fetching:
        """The object that chooses documents for a query, with the conditions of the options and of the query."""
        conditions = (*self.conditions, *prepared.filters)
        return Fetching(self.snapshot, self.fetch_model, self.parts, All(conditions) if conditions else None)

    def results_by(self, matches: Matches, model: Model, score: Column) -> tuple[Column, Mask | None]:
        """The score by which rows are ranked, and the mask of rows that may be results of a model; None if all may be.

        `score` is the score of the model; see `Eligibility.results_by`.
        """
        return self.eligibility.results_by(matches, score, model, self.eligibility.allowed(matches))

    def _join(self, query: Query, candidates: Candidates) -> Matches:
        return join(self.snapshot, query, candidates, units=self.eligibility.units, tags=self.eligibility.element_tags)

    def _run_on_all(self, prepared: Prepared) -> Results:
        """Search all documents in batches, and return the best passages."""
        checkpoint("candidates")
        query, k = prepared.scoring, self.depth
        fetched = np.sort(self.fetching(prepared).documents(query, self.most).documents)
        best: list[tuple[Integers, Floats]] = []
        for batch in self._batches(fetched):
            checkpoint("matches")
            matches = self._join(query, Candidates(batch, np.zeros(batch.size)))
            ranking = self._rank(matches, self.model).ranking
            best.append((matches.number_of_document[matches.document_of_passage[ranking.rows]], ranking.scores))
        documents, scores = (np.concatenate(column) for column in zip(*best, strict=True))
        if scores.size > k:
            documents = documents[scores >= np.partition(scores, scores.size - k)[scores.size - k]]
        # The few documents that contain the best passages are joined again, so that hits and explanations come from one
        # join.
        winners = np.unique(documents)
        matches = self._join(query, Candidates(winners, np.zeros(winners.size)))
        return self.results(prepared, self.rank(matches), complete=False)

    def _batches(self, documents: Integers) -> list[Integers]:
        """Divide documents into batches of about `_AT_ONCE` tokens."""
        if not documents.size:
            return [documents]
        tokens = np.concatenate([tokens for _, tokens in self.snapshot.ask_about(_tokens_of, documents)])
        return np.split(documents, np.flatnonzero(np.diff(np.cumsum(tokens) // _AT_ONCE)) + 1)


def _tokens_of(snapshot: Snapshot, documents: Integers) -> Integers:
    """The number of tokens of each document."""
    return np.concatenate([np.zeros(0, np.int64), *(segment["document.tokens"] for segment in snapshot.segments)])[documents]


def search_for(snapshot: Snapshot, asked: Asked, options: SearchOptions, best: BestModel | None = None) -> Search:
    """The search for a query. If the query is a topic, the topic's options take precedence over `options`.

    For `best` see `Search`.
    """
    return Search(snapshot, with_options_of(asked, options) if isinstance(asked, Topic) else options, best)


def count_documents(snapshot: Snapshot, options: SearchOptions, filters: tuple[Filter, ...] = ()) -> int:
    """The number of documents that satisfy the conditions of the options and the given filters."""
    return int(allowed_documents(snapshot, options, filters).sum())


def allowed_documents(snapshot: Snapshot, options: SearchOptions, filters: tuple[Filter, ...] = ()) -> Mask:
    """The mask of documents that satisfy the conditions of the options and the given filters, by document number."""
    conditions = (*conditions_of(snapshot, options), *filters)
    return Fetching(snapshot, parse_fetch_model(options.fetch), {}, All(conditions) if conditions else None).allowed()
