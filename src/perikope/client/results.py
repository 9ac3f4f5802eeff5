"""The results of a search on a server.

| where | attributes |
|---|---|
| sent with the answer | the hits, `model`, `notes`, `suggestions`, `names`, `to_dicts`, `to_pandas` and the like |
| asked for when they are used | `facets`, `documents`, `document_ranking`, `context`, `explain` |
| of an index on this machine only | those of `LOCAL_RESULTS` in `local_only.py` |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, overload

from perikope.browse.reasons import ScoreReasons
from perikope.browse.signals import Node
from perikope.client.local_only import LOCAL_RESULTS, missing_attribute
from perikope.client.questions import context_question, documents_question, explain_question, facets_question, reasons_question
from perikope.search.context import AROUND, BUDGET, Context, TokenCounter, count_words
from perikope.search.hit_sequence import HitSequence
from perikope.search.hits import Hit, RankedDocument
from perikope.search.suggestions import Suggestions
from perikope.service.answers import SearchAnswer

if TYPE_CHECKING:
    from perikope.client.async_index import AsyncRemoteIndex
    from perikope.client.index import RemoteIndex


class RemoteHits(HitSequence):
    """The hits of a search on a server, best first."""

    def __init__(self, values: Mapping[str, Any], answer: SearchAnswer) -> None:
        """The results of a request with these values."""
        self._values, self._answer = values, answer
        self.model = answer.model
        self.warnings = answer.warnings
        """What the server warned of."""
        self.suggestions = Suggestions(answer.suggestions.words, answer.suggestions.query)
        """The words of the query that no document contains, with near words of the index."""
        self.generation = answer.generation
        """The number of the commit that was searched."""
        self.fingerprint = answer.fingerprint
        """A checksum of the content that was searched."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user about what could not be done as requested, and about words that may be misspelt."""
        return self._answer.notes

    @property
    def missing_shards(self) -> tuple[int, ...]:
        """The numbers of the shards of a cluster that did not answer, so that their documents are missing."""
        return self._answer.missing_shards

    def __len__(self) -> int:
        return len(self._answer.hits)

    @overload
    def __getitem__(self, number: int) -> Hit: ...
    @overload
    def __getitem__(self, number: slice) -> list[Hit]: ...
    def __getitem__(self, number: int | slice) -> Hit | list[Hit]:
        return list(self._answer.hits[number]) if isinstance(number, slice) else self._answer.hits[number]

    def __getattr__(self, name: str) -> NoReturn:
        raise missing_attribute(name, self, LOCAL_RESULTS)


class RemoteResults(RemoteHits):
    """The hits of a search on a server, best first, with the attributes of `perikope.Results`.

    The hits were sent with the answer. `facets`, `documents`, `document_ranking`, `context` and `explain` send another
    request. If the index has changed since the search, they use the new content and give an `IndexChangedWarning`.

    `matches`, `ranking`, `signals` and others exist only for an index on this machine; `perikope.client.local_only`
    lists them.
    """

    def __init__(self, index: RemoteIndex, values: Mapping[str, Any], answer: SearchAnswer) -> None:
        super().__init__(values, answer)
        self._index = index

    def document_ranking(self, method: str = "maxp", k: int = 1000, *, offset: int = 0) -> list[tuple[str, float]]:
        """Id and score of the best `k` documents after `offset`; see `perikope.Results`."""
        found = self._index.follow(documents_question(self._values, method, k, offset), self.generation)
        return [(document.document, document.score) for document in found]

    def documents(self, method: str = "maxp", k: int = 10, *, offset: int = 0) -> list[RankedDocument]:
        """The best `k` documents after `offset`, ranked by their passages, with title and metadata."""
        return self._index.follow(documents_question(self._values, method, k, offset), self.generation)

    def facets(self, field: str, *, level: str = "full") -> dict[str, int]:
        """The number of candidate documents that have each value of a metadata field; see `perikope.Results`."""
        return self._index.follow(facets_question(self._values, (field,), level), self.generation)[field]

    def context(self, budget: int = BUDGET, *, tokens: TokenCounter = count_words, around: int = AROUND) -> Context:
        """The hits as one text for a reader or a language model, of at most `budget` words; see `perikope.Results`."""
        return self._index.follow(context_question(self._values, budget, tokens, around), self.generation)

    def explain(self, number: int) -> Node:
        """Explain the score of a hit. `number` is the position of the hit in the results, from 0."""
        return self._index.follow(explain_question(self._values, self[number].name), self.generation)

    def reasons(self, number: int) -> ScoreReasons:
        """What the score of a hit is made of, by text and by word. `number` is as in `explain`."""
        return self._index.follow(reasons_question(self._values, self[number].name), self.generation)


class AsyncRemoteResults(RemoteHits):
    """The hits of a search on a server, best first; what sends another request must be awaited. See `RemoteResults`."""

    def __init__(self, index: AsyncRemoteIndex, values: Mapping[str, Any], answer: SearchAnswer) -> None:
        super().__init__(values, answer)
        self._index = index

    async def document_ranking(self, method: str = "maxp", k: int = 1000, *, offset: int = 0) -> list[tuple[str, float]]:
        """Id and score of the best `k` documents after `offset`."""
        found = await self._index.follow(documents_question(self._values, method, k, offset), self.generation)
        return [(document.document, document.score) for document in found]

    async def documents(self, method: str = "maxp", k: int = 10, *, offset: int = 0) -> list[RankedDocument]:
        """The best `k` documents after `offset`, ranked by their passages, with title and metadata."""
        return await self._index.follow(documents_question(self._values, method, k, offset), self.generation)

    async def facets(self, field: str, *, level: str = "full") -> dict[str, int]:
        """The number of candidate documents that have each value of a metadata field."""
        return (await self._index.follow(facets_question(self._values, (field,), level), self.generation))[field]

    async def context(self, budget: int = BUDGET, *, tokens: TokenCounter = count_words, around: int = AROUND) -> Context:
        """The hits as one text for a reader or a language model, of at most `budget` words."""
        return await self._index.follow(context_question(self._values, budget, tokens, around), self.generation)

    async def explain(self, number: int) -> Node:
        """Explain the score of a hit. `number` is the position of the hit in the results, from 0."""
        return await self._index.follow(explain_question(self._values, self[number].name), self.generation)

    async def reasons(self, number: int) -> ScoreReasons:
        """What the score of a hit is made of, by text and by word. `number` is as in `explain`."""
        return await self._index.follow(reasons_question(self._values, self[number].name), self.generation)
