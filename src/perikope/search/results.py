"""Results: the hits of one search, which are read from the index when they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from perikope.browse.document_ranking import parse_method, rank_documents
from perikope.browse.matches import Matches
from perikope.browse.models import Signals
from perikope.browse.ranking import Ranking, first_of_group
from perikope.browse.reasons import ScoreReasons, reasons_of
from perikope.browse.signals import Column, Node
from perikope.core.arrays import Array, Integers, Mask
from perikope.core.errors import UsageError, abridged
from perikope.core.name_lines import RankedNames
from perikope.core.names import split_name
from perikope.document.tree import Place
from perikope.fetch.groups import count_values, field_named
from perikope.index.reader import Snapshot
from perikope.query.language import has_several_languages
from perikope.query.terms import Query
from perikope.search import naming
from perikope.search.context import AROUND, BUDGET, Context, TokenCounter, build_context, count_words
from perikope.search.hit_sequence import HitSequence, note_on_missing
from perikope.search.hits import Hit, RankedDocument, read_document, read_hits
from perikope.search.suggestions import Suggestions, suggest

_PORTION = 16
"""Hits that are read at once when they are read one after the other: in a cluster, by one question per shard."""


class RankedMatches(NamedTuple):
    """The signals, scores and ranking of matches by one model."""

    matches: Matches
    signals: Signals
    score: Column
    eligible: Mask | None
    """The mask of rows that may be results; None if all rows may be results."""
    groups: Integers | None
    """The group number of each document, if only one document per group may have results; else None. See
    `perikope.browse.ranking.rank`."""
    ranking: Ranking


class Results(HitSequence):
    """The hits of one search, best first.

    Results read the snapshot that was searched. They stay as they are if the index changes or is closed.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        ranked: RankedMatches,
        *,
        rank_all: Callable[[], RankedMatches] | None = None,
        has_all_candidates: bool = True,
        notes: tuple[str, ...] = (),
        queries: tuple[Query, ...] = (),
        model: str = "",
    ) -> None:
        """Results of a ranking.

        If `ranked` has only the candidates that can have hits, `rank_all` returns the same ranking with all candidates.
        `queries` are the queries whose words are corrected. `model` is the model that ranked.
        """
        self._snapshot = snapshot
        self._ranked, self._rank_all = ranked, rank_all
        self.has_all_candidates = has_all_candidates
        """Whether `matches` contain all candidates; False if they contain only the documents of the best passages."""
        self._notes, self._queries = notes, queries
        self.model = model
        """The model that ranked, with the parameters that differ from their defaults, as in `bm25(k1=0.6)`."""

    @property
    def matches(self) -> Matches:
        """The matches of all candidates. A search may have left out documents that cannot have hits; they are read now.

        So do `score`, `ranking` and `eligible`, whose rows are those of `matches`.
        """
        return self._all.matches

    @property
    def score(self) -> Column:
        """The score of each row of `matches`."""
        return self._all.score

    @property
    def ranking(self) -> Ranking:
        """The rows of `matches` that are hits, best first."""
        return self._all.ranking

    @property
    def eligible(self) -> Mask | None:
        """The mask of rows of `matches` that may be results; None if all rows may be results."""
        return self._all.eligible

    @property
    def _all(self) -> RankedMatches:
        """The ranking with all candidates. From now on hits are read from it, so that rows have one meaning."""
        if self._rank_all is not None:
            # Threads that come here together compute the same; a reader has one of the two rankings as a whole.
            self._ranked = self._rank_all()
            self._rank_all = None
        return self._ranked

    @cached_property
    def suggestions(self) -> Suggestions:
        """The words of the query that no document contains, with near words of the index; found when first used."""
        return suggest(self._snapshot, self._queries)

    @property
    def missing_shards(self) -> tuple[int, ...]:
        """The numbers of the shards of a cluster that did not answer, so that their documents are missing."""
        return self._snapshot.missing_shards

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user about what could not be done as requested, and about words that may be misspelt."""
        notes = (*note_on_missing(self.missing_shards), *self._notes)
        return tuple(map(abridged, (*notes, self.suggestions.note) if self.suggestions else notes))

    def __len__(self) -> int:
        return len(self._ranked.ranking)

    @property
    def of_several_languages(self) -> bool:
        """Whether the index that was searched has text in more than one language."""
        return has_several_languages(self._snapshot)

    @overload
    def __getitem__(self, number: int) -> Hit: ...
    @overload
    def __getitem__(self, number: slice) -> list[Hit]: ...
    def __getitem__(self, number: int | slice) -> Hit | list[Hit]:
        if isinstance(number, slice):
            return self._read(np.arange(*number.indices(len(self))))
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        return self._read(np.array([number % len(self)]))[0]

    def __iter__(self) -> Iterator[Hit]:
        for first in range(0, len(self), _PORTION):
            yield from self[first : first + _PORTION]

    def _read(self, numbers: Integers) -> list[Hit]:
        """The hits with these numbers, which count from 0."""
        matches, ranking = self._ranked.matches, self._ranked.ranking
        return read_hits(self._snapshot, matches, ranking.rows[numbers], ranking.offset + numbers + 1, ranking.scores[numbers])

    def names(self) -> list[tuple[str, float]]:
        """The name (`document#passage`) and score of each hit, as in a run file."""
        ranked = self._ranked
        names = naming.names_of(self._snapshot, ranked.matches, ranked.ranking.rows)
        return list(zip(names, ranked.ranking.scores.tolist(), strict=True))

    def ranked_names(self) -> RankedNames:
        """The same as `names`, for many hits: as one text, which `write_run` writes without an object per hit."""
        ranked = self._ranked
        return RankedNames(naming.lines_of_names(self._snapshot, ranked.matches, ranked.ranking.rows), ranked.ranking.scores)

    def names_of(self, rows: Integers) -> list[str]:
        """The names of the given rows of `matches`, in the same order. The rows need not be hits."""
        return naming.names_of(self._snapshot, self.matches, rows)

    def places_of(self, rows: Integers) -> list[Place | None]:
        """The location of each given row of `matches` in the file that it was read from; None if none was recorded."""
        return naming.places_of(self._snapshot, self.matches, rows)

    def rows_of(self, names: Iterable[str]) -> dict[str, int]:
        """A dictionary from the given names to rows of `matches`.

        Names of passages whose documents are not candidates are left out.
        """
        return naming.rows_of(self._snapshot, self.matches, names)

    def signals(self) -> dict[str, Array]:
        """The signals of the model, one value per hit, as columns for a data frame.

        The first columns are `document`, `passage`, `rank` and `score`. A signal with one of these names gets the
        prefix `signal_`.
        """
        ranked = self._ranked
        rows = ranked.ranking.rows
        names = [split_name(name) for name in naming.names_of(self._snapshot, ranked.matches, rows)]
        columns: dict[str, Array] = {
            "document": np.array([document for document, _ in names], object),
            "passage": np.array([passage for _, passage in names], object),
            "rank": ranked.ranking.offset + np.arange(1, rows.size + 1),
            "score": ranked.ranking.scores.copy(),
        }
        return columns | {f"signal_{name}" if name in columns else name: column.values[rows] for name, column in ranked.signals.items()}

    def document_ranking(self, method: str = "maxp", k: int = 1000, *, offset: int = 0) -> list[tuple[str, float]]:
        """Id and score of the best `k` documents after `offset`, ranked by their passages.

        See `perikope.browse.document_ranking`.
        """
        if not self.has_all_candidates:
            raise UsageError(
                "documents cannot be ranked by their passages if all documents are searched; set documents (--documents) to a number"
            )
        groups = self._all.groups
        most = offset + k if groups is None else self.matches.documents
        best = rank_documents(self.matches, self.score, parse_method(method), most, eligible=self.eligible)
        rows = slice(None) if groups is None else first_of_group(groups[best.documents])
        numbers, scores = self.matches.number_of_document[best.documents[rows]], best.scores[rows]
        page = zip(numbers[offset : offset + k].tolist(), scores[offset : offset + k].tolist(), strict=True)
        return [(self._snapshot.document_id(number), score) for number, score in page]

    def documents(self, method: str = "maxp", k: int = 10, *, offset: int = 0) -> list[RankedDocument]:
        """The best `k` documents after `offset`, ranked by their passages, with title and metadata.

        See `perikope.browse.document_ranking`.
        """
        ranking = self.document_ranking(method, k, offset=offset)
        return [read_document(self._snapshot, id, rank, score) for rank, (id, score) in enumerate(ranking, offset + 1)]

    def facets(self, field: str, *, level: str = "full") -> dict[str, int]:
        """The number of candidate documents that have each value of a metadata field, most frequent first.

        Counted are all documents that have a passage that may be a result, not only those of the returned hits: the
        documents that `document_ranking` ranks. `one_per` has no influence. A document with several values counts once
        for each. Values with equal counts are in alphabetical order.

        Classification codes are counted at `level`: class, subclass, group or full.
        """
        if not self.has_all_candidates:
            raise UsageError("values cannot be counted if all documents are searched in batches; set documents (--documents) to a number")
        rows = np.arange(self.matches.passages) if self.eligible is None else np.flatnonzero(self.eligible)
        candidates = np.unique(self.matches.document_of_passage[rows])
        return count_values(self._snapshot, self.matches.number_of_document[candidates], field_named(self._snapshot, field), level)

    def context(self, budget: int = BUDGET, *, tokens: TokenCounter = count_words, around: int = AROUND) -> Context:
        """The hits as one text for a reader or a language model, of at most `budget` tokens.

        `tokens` counts the tokens of a text, by default its words. The text contains as many hits as fit, best first,
        then up to `around` passages on either side of each; see `perikope.search.context`.
        """
        return build_context(self._snapshot, self._ranked.matches, self._ranked.ranking, budget, tokens, around)

    def explain(self, number: int) -> Node:
        """Explain the score of a hit. `number` is the position of the hit in the results, from 0."""
        ranked = self._ranked
        return ranked.score.explain(int(ranked.ranking.rows[number]))

    def reasons(self, number: int) -> ScoreReasons:
        """What the score of a hit is made of, by text and by word. `number` is as in `explain`."""
        return reasons_of(self.explain(number))
