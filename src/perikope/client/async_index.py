"""`AsyncRemoteIndex`: an index on a server, for programs that use `asyncio`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Unpack

from perikope.browse.signals import Node
from perikope.client.asking import option_values, query_values, search_values
from perikope.client.index import AT_ONCE, Query
from perikope.client.local_only import LOCAL_INDEX, missing_attribute
from perikope.client.questions import (
    LIST_INDEXES,
    Question,
    add_question,
    any_question,
    count_question,
    delete_question,
    explain_question,
    facets_question,
    only_index,
    search_question,
    view_question,
)
from perikope.client.results import AsyncRemoteResults
from perikope.client.warning import warn_of, warn_of_change, warn_of_duplicates
from perikope.core.errors import NotFound, UsageError
from perikope.index.duplicates import DEFAULT_REPLACE
from perikope.query.completion import SuggestedWord
from perikope.search.batch import listed_queries, report_refusal
from perikope.search.hits import Hit
from perikope.search.keywords import SearchKeywords
from perikope.search.landscape import BINS, SIGMA, Landscape
from perikope.search.options import SearchOptions, with_signature
from perikope.search.outline import DocumentTree
from perikope.search.passage_view import PassageView
from perikope.search.viewing import DocumentView
from perikope.service.answers import IndexSummary, SearchAnswer, Written

if TYPE_CHECKING:
    from perikope.client.transport import AsyncConnection

T = TypeVar("T")


class AsyncRemoteIndex:
    """An index on a server, which many tasks can use at the same time. Its methods are those of `RemoteIndex`."""

    def __init__(self, connection: AsyncConnection, name: str = "") -> None:
        self._connection, self._name = connection, name

    async def name(self) -> str:
        """The name of the index. If it was not given, the server is asked, which must have exactly one index."""
        if not self._name:
            self._name = only_index(await self._connection.send(LIST_INDEXES))
        return self._name

    @property
    def address(self) -> str:
        """The address of the server, as `perikope.connect_async` takes it."""
        return str(self._connection.address)

    async def _ask(self, question: Question[T]) -> T:
        return question.answer(await self._connection.send(question.request(await self.name())))

    async def follow(self, question: Question[T], generation: int) -> T:
        """The answer to a further question about results of a commit. Warns if it is about another commit."""
        reply = await self._connection.send(question.request(await self.name()))
        answer = question.answer(reply)
        warn_of_change(generation, reply.generation)
        return answer

    @with_signature()
    async def search(
        self, query: Query, *, recipe: str = "", options: SearchOptions | None = None, **given: Unpack[SearchKeywords]
    ) -> AsyncRemoteResults:
        """Search for the best `k` passages in the best `documents` documents; see `RemoteIndex.search`."""
        return await self._search(query, recipe, options, given)

    async def _search(self, query: Query, recipe: str, options: SearchOptions | None, given: Mapping[str, Any]) -> AsyncRemoteResults:
        values = search_values(query, recipe, options, given)
        answer: SearchAnswer = await self._ask(search_question(values))
        warn_of(answer.warnings, stacklevel=4)
        return AsyncRemoteResults(self, values, answer)

    @with_signature()
    async def search_many(
        self,
        queries: Iterable[Query] | Mapping[str, str],
        *,
        at_once: int = AT_ONCE,
        on_problem: Callable[[str], None] | None = None,
        recipe: str = "",
        options: SearchOptions | None = None,
        **given: Unpack[SearchKeywords],
    ) -> AsyncIterator[tuple[Query, AsyncRemoteResults]]:
        """Search for many queries, and yield pairs of a query and its results; see `RemoteIndex.search_many`.

        `at_once` is the number of requests that are sent at the same time.
        """
        option_values(None, recipe, options, given)  # raises an error if the options are wrong
        waiting: deque[tuple[int, Query, asyncio.Task[AsyncRemoteResults]]] = deque()
        asked = zip(count(1), listed_queries(queries), strict=False)
        try:
            while True:
                while len(waiting) < max(at_once, 1) and (following := next(asked, None)) is not None:
                    number, query = following
                    waiting.append((number, query, asyncio.create_task(self._search(query, recipe, options, given))))
                if not waiting:
                    return
                number, query, task = waiting.popleft()
                try:
                    found = await task
                except UsageError as error:
                    report_refusal(number, query, str(error), on_problem)
                    continue
                yield query, found
        finally:
            for _, _, task in waiting:
                task.cancel()
            await asyncio.gather(*(task for _, _, task in waiting), return_exceptions=True)

    @with_signature()
    async def explain(
        self, query: Query, passage: str | Hit, *, recipe: str = "", options: SearchOptions | None = None, **given: Unpack[SearchKeywords]
    ) -> Node:
        """Explain the score of a passage or element; see `RemoteIndex.explain`."""
        name = passage.name if isinstance(passage, Hit) else passage
        return await self._ask(explain_question(search_values(query, recipe, options, given), name))

    @with_signature()
    async def facets(
        self,
        query: Query,
        fields: str | Sequence[str],
        *,
        recipe: str = "",
        options: SearchOptions | None = None,
        **given: Unpack[SearchKeywords],
    ) -> dict[str, dict[str, int]]:
        """For each metadata field, the number of candidate documents of a search that have each value."""
        names = (fields,) if isinstance(fields, str) else tuple(fields)
        return await self._ask(facets_question(search_values(query, recipe, options, given), names))

    async def view(self, name: str, *, query: str = "", language: str = "") -> DocumentView:
        """A document with its titles and passages in reading order; see `RemoteIndex.view`."""
        view: DocumentView = await self._ask(view_question(name, query, language))
        return view

    async def get(self, id: str) -> DocumentView | None:
        """A document with its titles and passages in reading order; None if the index has no such document."""
        try:
            return await self.view(id)
        except NotFound:
            return None

    async def passage(self, name: str, *, around: int = 2) -> PassageView:
        """A passage or element, given by its name (`document#passage`), with heading path, source and neighbours."""
        view: PassageView = await self._ask(any_question("passage", {"passage": name, "around": around}))
        return view

    async def outline(self, id: str) -> DocumentTree:
        """The sections of a document with their titles, as a flat list of nodes that name their parents."""
        tree: DocumentTree = await self._ask(any_question("outline", {"document": id}))
        return tree

    async def landscape(
        self, query: Query, document: str, *, bins: int = BINS, sigma: float = SIGMA, language: str = "", syntax: str = "words"
    ) -> Landscape:
        """The relevance landscape of a document: how near each place is to the words of a query, from 0 to 1."""
        given = {"document": document, "bins": bins, "sigma": sigma, "language": language, "syntax": syntax}
        landscape: Landscape = await self._ask(any_question("landscape", {**query_values(query), **given}))
        return landscape

    async def suggest(self, prefix: str, *, k: int = 10, language: str = "") -> tuple[SuggestedWord, ...]:
        """Words of the index that complete the last word of what a user has typed so far, most frequent first."""
        words: tuple[SuggestedWord, ...] = await self._ask(any_question("suggest", {"prefix": prefix, "k": k, "language": language}))
        return words

    async def values(self, field: str, *, prefix: str = "", k: int = 20) -> dict[str, int]:
        """The `k` most frequent values of a metadata field, each with its number of documents, most frequent first."""
        counted: dict[str, int] = await self._ask(any_question("values", {"field": field, "prefix": prefix, "k": k}))
        return counted

    async def count(
        self,
        filter: str | Sequence[str] = (),
        *,
        ids: str | Sequence[str] | None = None,
        shares_codes_with: str = "",
        code_level: str = "full",
    ) -> int:
        """The number of documents that satisfy all given conditions, which have the same meaning as in `search`."""
        return int((await self._ask(count_question(filter, ids, shares_codes_with, code_level))).documents)

    async def info(self) -> IndexSummary:
        """What the index contains: sizes, languages, parts, metadata fields, stores and tables."""
        summary: IndexSummary = await self._ask(any_question("", {}))
        return summary

    async def add(self, documents: Mapping[str, Any] | Iterable[Mapping[str, Any]], *, replace: bool = DEFAULT_REPLACE) -> Written:
        """Add documents in one request; see `RemoteIndex.add`."""
        written: Written = await self._ask(add_question(documents, replace))
        warn_of_duplicates(written, stacklevel=3)
        return written

    async def delete(self, ids: str | Iterable[str]) -> int:
        """Delete documents by id, and return the number of deleted documents. The change is on disk afterwards."""
        return int((await self._ask(delete_question(ids))).deleted)

    async def ask(self, operation: str, **given: Any) -> Any:
        """The answer of any operation of the server, such as `models`, with its options by name."""
        return await self._ask(any_question(operation, given))

    async def close(self) -> None:
        """Close the connections to the server."""
        await self._connection.close()

    async def __aenter__(self) -> AsyncRemoteIndex:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __getattr__(self, name: str) -> NoReturn:
        raise missing_attribute(name, self, LOCAL_INDEX)

    def __repr__(self) -> str:
        return f"AsyncRemoteIndex({str(self._connection.address)!r}, {self._name!r})"
