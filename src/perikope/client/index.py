"""`RemoteIndex`: an index on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Unpack

from perikope.browse.signals import Node
from perikope.client.asking import option_values, query_values, search_values
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
from perikope.client.results import RemoteResults
from perikope.client.warning import warn_of, warn_of_change, warn_of_duplicates
from perikope.core.errors import NotFound, UsageError
from perikope.core.parallel import in_parallel
from perikope.index.duplicates import DEFAULT_REPLACE
from perikope.query.completion import SuggestedWord
from perikope.query.topic import Topic
from perikope.search.batch import listed_queries, report_refusal
from perikope.search.hits import Hit
from perikope.search.keywords import SearchKeywords
from perikope.search.landscape import BINS, SIGMA, Landscape
from perikope.search.options import SearchOptions, with_signature
from perikope.search.outline import DocumentTree
from perikope.search.passage_view import PassageView
from perikope.search.viewing import DocumentView
from perikope.service.answers import IndexSummary, Written

if TYPE_CHECKING:
    from perikope.client.transport import Connection

T = TypeVar("T")
Query = str | Topic
"""The types of queries that a server accepts."""
AT_ONCE = 4
"""The number of searches that `search_many` sends at the same time."""


class RemoteIndex:
    """An index on a server, which can be used by many threads at the same time.

    `perikope.connect` makes it. `search`, `search_many`, `explain`, `count` and `delete` have the parameters of
    `perikope.Index`. A `with` block closes the connections at its end. Changes are on disk when the server has
    answered, so there is no `commit`. Mistakes raise `UsageError` or `NotFound`, as with an index on this machine. A
    server that cannot be reached, refuses a request or fails raises `ServerError`.

    `snapshot`, `sync`, `documents` and others exist only for an index on this machine; `perikope.client.local_only`
    lists them.
    """

    def __init__(self, connection: Connection, name: str = "") -> None:
        self._connection, self._name = connection, name

    @property
    def name(self) -> str:
        """The name of the index. If it was not given, the server is asked, which must have exactly one index."""
        if not self._name:
            self._name = only_index(self._connection.send(LIST_INDEXES))
        return self._name

    @property
    def address(self) -> str:
        """The address of the server, as `perikope.connect` takes it."""
        return str(self._connection.address)

    def _ask(self, question: Question[T]) -> T:
        return question.answer(self._connection.send(question.request(self.name)))

    def follow(self, question: Question[T], generation: int) -> T:
        """The answer to a further question about results of a commit. Warns if it is about another commit."""
        reply = self._connection.send(question.request(self.name))
        answer = question.answer(reply)
        warn_of_change(generation, reply.generation)
        return answer

    @with_signature()
    def search(
        self, query: Query, *, recipe: str = "", options: SearchOptions | None = None, **given: Unpack[SearchKeywords]
    ) -> RemoteResults:
        """Search for the best `k` passages in the best `documents` documents; see `perikope.Index.search`.

        `query` is a text or a `Topic`; its patent is one of the index. A `recipe` is given by name. An option that
        names a file, such as `synonyms`, reads it on this machine.
        """
        results = self._search(query, recipe, options, given)
        warn_of(results.warnings, stacklevel=3)
        return results

    def _search(self, query: Query, recipe: str, options: SearchOptions | None, given: Mapping[str, Any]) -> RemoteResults:
        values = search_values(query, recipe, options, given)
        return RemoteResults(self, values, self._ask(search_question(values)))

    @with_signature()
    def search_many(
        self,
        queries: Iterable[Query] | Mapping[str, str],
        *,
        threads: int = AT_ONCE,
        on_problem: Callable[[str], None] | None = None,
        recipe: str = "",
        options: SearchOptions | None = None,
        **given: Unpack[SearchKeywords],
    ) -> Iterator[tuple[Query, RemoteResults]]:
        """Search for many queries, and yield pairs of a query and its results; see `perikope.Index.search_many`.

        Each query is one request, and `threads` of them are sent at the same time, so that all processes of the server
        can work. If the index changes meanwhile, later queries see the new content.
        """
        asked = listed_queries(queries)
        option_values(None, recipe, options, given)  # raises an error if the options are wrong
        return self._search_all(asked, threads, on_problem, recipe, options, given)

    def _search_all(
        self, asked: Iterable[Query], threads: int, on_problem: Callable[[str], None] | None, recipe: str, options: SearchOptions | None,
        given: Mapping[str, Any],
    ) -> Iterator[tuple[Query, RemoteResults]]:  # fmt: skip
        def search(query: Query) -> RemoteResults | UsageError:
            try:
                return self._search(query, recipe, options, given)
            except UsageError as error:
                return error

        for number, (query, outcome) in zip(count(1), in_parallel(search, asked, threads), strict=False):
            if isinstance(outcome, UsageError):
                report_refusal(number, query, str(outcome), on_problem)
                continue
            warn_of(outcome.warnings, stacklevel=3)
            yield query, outcome

    @with_signature()
    def explain(
        self, query: Query, passage: str | Hit, *, recipe: str = "", options: SearchOptions | None = None, **given: Unpack[SearchKeywords]
    ) -> Node:
        """Explain the score of a passage or element, given by its name (`document#passage`) or as a hit of a search."""
        name = passage.name if isinstance(passage, Hit) else passage
        return self._ask(explain_question(search_values(query, recipe, options, given), name))

    @with_signature()
    def facets(
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
        return self._ask(facets_question(search_values(query, recipe, options, given), names))

    def view(self, name: str, *, query: str = "", language: str = "") -> DocumentView:
        """A document with its titles and passages in reading order. Raises `NotFound` if the index does not have it.

        `name` is the id of a document, a publication number, or the name of a passage, which is then marked. Words that
        match the `query` are highlighted.
        """
        view: DocumentView = self._ask(view_question(name, query, language))
        return view

    def get(self, id: str) -> DocumentView | None:
        """A document with its titles and passages in reading order; None if the index has no such document.

        An index on this machine returns a `Document` instead, which is not sent by a server.
        """
        try:
            return self.view(id)
        except NotFound:
            return None

    def passage(self, name: str, *, around: int = 2) -> PassageView:
        """A passage or element, given by its name (`document#passage`), with heading path, source and neighbours."""
        view: PassageView = self._ask(any_question("passage", {"passage": name, "around": around}))
        return view

    def outline(self, id: str) -> DocumentTree:
        """The sections of a document with their titles, as a flat list of nodes that name their parents."""
        tree: DocumentTree = self._ask(any_question("outline", {"document": id}))
        return tree

    def landscape(
        self, query: Query, document: str, *, bins: int = BINS, sigma: float = SIGMA, language: str = "", syntax: str = "words"
    ) -> Landscape:
        """The relevance landscape of a document: how near each place is to the words of a query, from 0 to 1."""
        given = {"document": document, "bins": bins, "sigma": sigma, "language": language, "syntax": syntax}
        landscape: Landscape = self._ask(any_question("landscape", {**query_values(query), **given}))
        return landscape

    def suggest(self, prefix: str, *, k: int = 10, language: str = "") -> tuple[SuggestedWord, ...]:
        """Words of the index that complete the last word of what a user has typed so far, most frequent first."""
        words: tuple[SuggestedWord, ...] = self._ask(any_question("suggest", {"prefix": prefix, "k": k, "language": language}))
        return words

    def values(self, field: str, *, prefix: str = "", k: int = 20) -> dict[str, int]:
        """The `k` most frequent values of a metadata field, each with its number of documents, most frequent first."""
        counted: dict[str, int] = self._ask(any_question("values", {"field": field, "prefix": prefix, "k": k}))
        return counted

    def count(
        self,
        filter: str | Sequence[str] = (),
        *,
        ids: str | Sequence[str] | None = None,
        shares_codes_with: str = "",
        code_level: str = "full",
    ) -> int:
        """The number of documents that satisfy all given conditions, which have the same meaning as in `search`."""
        return int(self._ask(count_question(filter, ids, shares_codes_with, code_level)).documents)

    def info(self) -> IndexSummary:
        """What the index contains: sizes, languages, parts, metadata fields, stores and tables."""
        summary: IndexSummary = self._ask(any_question("", {}))
        return summary

    def add(self, documents: Mapping[str, Any] | Iterable[Mapping[str, Any]], *, replace: bool = DEFAULT_REPLACE) -> Written:
        """Add documents in one request. They are on disk and can be found when the server has answered.

        A document is a dictionary with the keys of a line of JSON Lines. With `replace`, a document replaces one with
        the same id. Otherwise the document of the index is kept, and a warning names those that were left out.
        """
        written: Written = self._ask(add_question(documents, replace))
        warn_of_duplicates(written, stacklevel=3)
        return written

    def delete(self, ids: str | Iterable[str]) -> int:
        """Delete documents by id, and return the number of deleted documents. The change is on disk afterwards.

        Ids that the index does not have are ignored, so that a request can be repeated; on this machine they are an
        error.
        """
        return int(self._ask(delete_question(ids)).deleted)

    def ask(self, operation: str, **given: Any) -> Any:
        """The answer of any operation of the server, such as `models`, with its options by name."""
        return self._ask(any_question(operation, given))

    def close(self) -> None:
        """Close the connections to the server."""
        self._connection.close()

    def __enter__(self) -> RemoteIndex:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __getattr__(self, name: str) -> NoReturn:
        raise missing_attribute(name, self, LOCAL_INDEX)

    def __repr__(self) -> str:
        return f"RemoteIndex({str(self._connection.address)!r}, {self._name!r})"
