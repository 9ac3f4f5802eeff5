"""Questions: requests with what their answers become, made from the declarations of the operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import orjson

from perikope.browse.reasons import ScoreReasons
from perikope.browse.signals import Node
from perikope.client.address import ServerAddress
from perikope.client.decoding import UnexpectedValue, decoder
from perikope.client.failures import check_status, unreadable
from perikope.client.warning import warn_of
from perikope.core.checked_json import parse_json
from perikope.core.errors import UsageError, unknown
from perikope.document.tree import Document
from perikope.formats._frames import is_frame, records_of
from perikope.search.context import Context, TokenCounter, count_words
from perikope.search.hits import RankedDocument
from perikope.search.options import SearchOptions
from perikope.server.routes import PREFIX, path_of
from perikope.service.answers import ContextAnswer, CountedValues, ExplainedNode, SearchAnswer
from perikope.service.operations import READ, Operation, load_operations
from perikope.service.reading import MOST_VALUES

T = TypeVar("T")
GENERATION = "perikope-generation"
"""The header with the number of the commit that was searched."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request."""

    method: str
    path: str
    body: bytes | None = None
    only_reads: bool = True


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An answer. The names of headers are in lower case."""

    address: ServerAddress
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def generation(self) -> int:
        """The number of the commit that was searched; 0 if the answer does not say it."""
        number = self.headers.get(GENERATION, "")
        return int(number) if number.isascii() and number.isdigit() else 0

    def read(self, kind: Any) -> Any:
        """The body as a value of a type. Raises an error for a problem, and for a body of another form."""
        check_status(self.address, self.status, self.body)
        try:
            return decoder(kind)(parse_json(self.body))
        except (ValueError, UnexpectedValue, RecursionError):
            raise unreadable(self.address, self.status) from None


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """A request for an operation, and how its answer is read."""

    operation: str
    values: Mapping[str, Any]
    """The given options, as values for JSON."""
    read: Callable[[Any], T]
    """Turns the answer that the operation declares into the result."""

    def request(self, index: str) -> HttpRequest:
        """The request to an index."""
        operation = operation_named(self.operation)
        path = path_of(operation).format(index=quote(index, safe=""))
        if "POST" not in operation.methods:
            return HttpRequest("GET", f"{path}?{query_string(self.values)}" if self.values else path)
        try:
            body = orjson.dumps(self.values)
        except TypeError as error:
            raise UsageError(f"the request cannot be written as JSON: {error}") from None
        return HttpRequest("POST", path, body, operation.permission == READ)

    def answer(self, reply: HttpReply) -> T:
        """The result, from the answer."""
        return self.read(reply.read(operation_named(self.operation).answer))


def operation_named(name: str) -> Operation:
    """An operation by its name; raises `UsageError` if there is none."""
    operations = load_operations()
    if name not in operations:
        raise unknown("operation", name, [known for known in operations if known])
    return operations[name]


def query_string(values: Mapping[str, Any]) -> str:
    """Options as a query string. Options with several values are repeated; tables become `name=number,name=number`."""
    return urlencode([(name, text) for name, value in values.items() for text in _texts(value)], errors="replace")


def _texts(value: Any) -> list[str]:
    match value:
        case bool():
            return ["true" if value else "false"]
        case list() | tuple():
            return [text for item in value for text in _texts(item)]
        case Mapping():
            return [",".join(f"{name}={number!r}" for name, number in value.items())]
        case _:
            return [str(value)]


LIST_INDEXES = HttpRequest("GET", PREFIX)


def only_index(reply: HttpReply) -> str:
    """The name of the only index of a server, from the list of its indexes."""
    names = reply.read(dict[str, tuple[str, ...]]).get("indexes", ())
    if len(names) == 1:
        return str(names[0])
    if not names:
        raise UsageError(f"{reply.address} has no index that may be read")
    raise UsageError(f"{reply.address} has several indexes; name one of them with index: {', '.join(names)}")


# What is asked


def any_question(operation: str, given: Mapping[str, Any]) -> Question[Any]:
    """A question with the options of an operation by name."""
    known = operation_named(operation).parameters
    for name in given:
        if name not in known:
            raise unknown("option", name, known)
    return Question(operation, {name: known[name].kind.plain(known[name].check(value)) for name, value in given.items()}, _same)


def search_question(values: Mapping[str, Any]) -> Question[SearchAnswer]:
    """The best passages."""
    return Question("search", values, _same)


def reasons_question(values: Mapping[str, Any], passage: str) -> Question[ScoreReasons]:
    """What the score of a passage is made of."""
    return Question("reasons", {**_taken("reasons", values), "passage": passage}, lambda answer: ScoreReasons(answer.score, answer.parts))


def explain_question(values: Mapping[str, Any], passage: str) -> Question[Node]:
    """The explanation of the score of a passage."""
    return Question("explain", {**_taken("explain", values), "passage": passage}, _node)


def facets_question(values: Mapping[str, Any], names: tuple[str, ...], level: str = "full") -> Question[dict[str, dict[str, int]]]:
    """The numbers of candidate documents by the values of metadata fields, with classification codes at a level."""
    return Question("facets", {**_taken("facets", values), "fields": names, "values": MOST_VALUES, "level": level}, _counts)


def documents_question(values: Mapping[str, Any], method: str, k: int, offset: int) -> Question[list[RankedDocument]]:
    """The best documents of a search."""
    return Question("search", {**values, "document_ranking": method, "k": k, "offset": offset}, lambda answer: list(answer.documents))


def context_question(values: Mapping[str, Any], budget: int, tokens: TokenCounter, around: int) -> Question[Context]:
    """The hits of a search as one text."""
    if tokens is not count_words:
        raise UsageError("a server counts words; leave tokens out, and choose a budget in words")
    return Question("context", {**values, "budget": budget, "around": around}, _context)


def view_question(name: str, query: str, language: str) -> Question[Any]:
    """The question for a document."""
    return any_question("document", {"document": name, "query": query, "language": language})


def count_question(filter: Any, ids: Any, shares_codes_with: str, code_level: str) -> Question[Any]:
    """The question for a number of documents."""
    options = SearchOptions.of({"filter": filter, "ids": ids, "shares_codes_with": shares_codes_with, "code_level": code_level})
    return any_question("count", options.plain())


def add_question(documents: Mapping[str, Any] | Iterable[Mapping[str, Any]], replace: bool) -> Question[Any]:
    """The request that adds documents."""
    given: Any = records_of(documents) if is_frame(documents) else documents
    is_one = isinstance(given, (Mapping, Document, str, bytes)) or not isinstance(given, Iterable)
    records = [given] if is_one else list(given)
    if not all(isinstance(record, Mapping) for record in records):
        raise UsageError("a server takes documents as dictionaries with the keys of a line of JSON Lines; index files where the server is")
    return any_question("documents", {"documents": [dict(record) for record in records], "replace": replace})


def delete_question(ids: str | Iterable[str]) -> Question[Any]:
    """The request that deletes documents."""
    return any_question("delete", {"ids": [ids] if isinstance(ids, str) else list(ids)})


def _taken(operation: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a search that an operation takes. Others, such as `k`, have no effect on its answer."""
    known = operation_named(operation).parameters
    return {name: value for name, value in values.items() if name in known}


def _counts(answer: Mapping[str, CountedValues]) -> dict[str, dict[str, int]]:
    """The numbers of documents by field and value. Warns if a field has more values than a server returns."""
    for field, counted in answer.items():
        if counted.distinct > len(counted.values):
            message = f"{field} has {counted.distinct} values, of which the {len(counted.values)} most frequent ones were sent"
            warn_of([message], stacklevel=6)
    return {field: dict(counted.values) for field, counted in answer.items()}


def _same(answer: Any) -> Any:
    return answer


def _context(answer: ContextAnswer) -> Context:
    return Context(answer.text, answer.pieces, answer.tokens, answer.left_out, answer.needed)


def _node(node: ExplainedNode) -> Node:
    children: Any = tuple(map(_node, node.children))
    origins: Any = tuple(node.origins.items())
    return Node(node.label, node.value, node.operation, children, node.slope, node.intercept, origins=origins, word=node.word)  # type: ignore[arg-type]
