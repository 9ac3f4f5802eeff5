"""What an assistant can do with indexes: four tools, and documents as resources. No protocol is known here.

    search     the best passages as one text within a budget of words, with names and citations
    open       a document, a section or a passage with its neighbours, by its name
    outline    the sections of a document
    explain    what the score of a passage is made of

Each tool asks one or two operations, and takes its parameters from their declarations. Texts of documents are between
borders that no text can imitate (`perikope.search.context`), so that an assistant can tell them from the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from perikope.browse.reasons import ScorePart, ScoreReasons, in_words
from perikope.core.errors import NotFound, UsageError, unknown
from perikope.core.names import encode, passage_name, split_name
from perikope.core.options import Option
from perikope.core.parameters import Range
from perikope.core.values import Text, Whole
from perikope.search.context import border_length, count_words, no_room
from perikope.service.operations import load_operations

Ask = Callable[[str, str, Mapping[str, Any]], Awaitable[Any]]
"""Runs an operation on an index, both given by name, with options; returns the answer as values for JSON."""
Listing = Callable[[str, int, int], Sequence[tuple[str, str]]]
"""Id and title of documents of an index: its name, the number of the first document, and the number of documents."""

SCHEME = "perikope"
WORDS = 1500
"""The default budget of an answer, in words."""
WHOLE_DOCUMENT = 200_000
"""The budget of a resource, in words."""
PER_PAGE = 200
"""The number of resources that are listed at a time."""
REQUIRED = {"search": ("query",), "open": (), "outline": ("document",), "explain": ("query", "passage")}
"""The tools, each with the parameters that it needs. `open` needs one of two: a document or a passage."""
OF_SEARCH = ("k", "offset", "filter", "part", "tag", "language", "syntax", "model")
"""The options of a search that an assistant can set."""


@dataclass(frozen=True, slots=True)
class AssistantTool:
    """A tool: its name, what it does, and the JSON schema of its parameters."""

    name: str
    help: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer of a tool: a text for the assistant, and the same facts as values for JSON."""

    text: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class DocumentResource:
    """A document, or the description of an index, that an assistant can read."""

    uri: str
    title: str
    help: str


class Assistant:
    """Tools and resources for the indexes with these names."""

    def __init__(self, names: Sequence[str], ask: Ask, listing: Listing | None = None) -> None:
        """Answer with `ask`. With `listing`, documents are listed as resources; they can be read in any case."""
        self.names, self._ask, self._listing = tuple(names), ask, listing
        self._run = {"search": self._search, "open": self._open, "outline": self._outline, "explain": self._explain}

    def tools(self) -> list[AssistantTool]:
        """The tools with their parameters."""
        return [AssistantTool(name, " ".join((run.__doc__ or "").split()), self._schema(name)) for name, run in self._run.items()]

    async def call(self, tool: str, given: Mapping[str, Any]) -> ToolAnswer:
        """Run a tool. Raises `PerikopeError` if the parameters are wrong."""
        if tool not in self._run:
            raise unknown("tool", tool, self._run)
        parameters = _parameters(tool)
        for name in given:
            if name not in (*parameters, "index"):
                raise unknown(f"parameter of {tool}", name, (*parameters, "index"))
        for name in REQUIRED[tool]:
            if not given.get(name):
                raise UsageError(f"the tool {tool} needs {name}: {parameters[name].help}")
        checked = {name: parameters[name].check(value) for name, value in given.items() if name in parameters and value is not None}
        plain = {name: parameters[name].kind.plain(value) for name, value in checked.items()}
        return await self._run[tool](self._index(given.get("index")), plain)

    async def _search(self, index: str, given: Mapping[str, Any]) -> ToolAnswer:
        """Search for passages. Returns the best ones as one text within a budget of words, each with its name, its
        heading path and, if it has one, its citation. Cite passages by these. The tool `open` reads more around them.
        """
        budget, around = int(given.get("budget", WORDS)), int(given.get("around", 1))
        asked = {name: value for name, value in given.items() if name not in ("budget", "around")}
        found = await self._ask(index, "search", asked)
        hits = {hit["rank"]: hit for hit in found["hits"]}
        notes = [f"Note: {note}" for note in found["notes"]]
        nothing: dict[str, Any] = {"text": "No passage matches the query.", "pieces": [], "left_out": 0, "needed": 0}
        context, below = nothing, notes
        left = budget if hits else 0
        while left > 0:
            context = await self._ask(index, "context", {**asked, "budget": left, "around": around})
            below = [*_citations(context["pieces"], hits), *notes]
            excess = count_words("\n".join([context["text"], *below])) - budget
            if excess <= 0 or not context["pieces"]:
                break
            left -= excess
        if hits and (left <= 0 or not context["pieces"]):
            best = await self._ask(index, "context", {**asked, "budget": 1, "around": 0})
            beside = count_words("\n".join([*_citation(hits[min(hits)]), *notes]))
            text = f"{no_room(budget, best['needed'] + beside).capitalize()}. Set a larger budget, or open a passage by its name."
            context, below = {**nothing, "text": text, "left_out": len(hits), "needed": best["needed"] + beside}, notes
        passages = [_excerpt_facts(index, piece, hits) for piece in context["pieces"]]
        facts = {"index": index, "model": found["model"], "passages": passages, "left_out": context["left_out"], "notes": found["notes"]}
        return ToolAnswer("\n".join([context["text"], *below]), facts)

    async def _open(self, index: str, given: Mapping[str, Any]) -> ToolAnswer:
        """Read a `document`, or a `passage` or section with the passages around it. A document that does not fit into
        the budget is continued with `start`, the id of the passage to begin with.
        """
        budget, name = int(given.get("budget", WORDS)), given.get("passage", "")
        if bool(name) == bool(given.get("document")):
            raise UsageError("the tool open needs either document or passage: document#passage, as a search returns it")
        if not name:
            return await self._document(index, split_name(given["document"])[0], str(given.get("start", "")), budget)
        view = await self._ask(index, "passage", {"passage": name, "around": int(given.get("around", 2))})
        beside = [[(other["id"], other["path"], other["text"]) for other in view[side]] for side in ("before", "after")]
        texts = [*beside[0], (view["passage"], view["path"], view["text"]), *beside[1]]
        cited = f"\nCite as: {view['citation']}" if view["citation"] else ""
        left = budget - count_words(cited)
        text = _framed(view["document"], _nearest(view["document"], texts, len(beside[0]), left), left).text + cited
        facts = {"index": index, **{key: view[key] for key in ("name", "document", "title", "path", "citation", "source", "place")}}
        return ToolAnswer(text, {**facts, "uri": uri_of(index, view["document"])})

    async def _document(self, index: str, id: str, start: str, budget: int) -> ToolAnswer:
        view = await self._ask(index, "document", {"document": id})
        tree = await self._ask(index, "outline", {"document": id})
        texts = [text for text in view["texts"] if text["kind"] != "title"]
        first = 0
        if start:
            ids = [text["id"] for text in texts]
            if start not in ids:
                raise NotFound(f"{view['document']!r} has no passage {start!r}; the outline names the first passage of each section")
            first = ids.index(start)
        shown = _framed(view["document"], ((text["id"], _path_at(tree["nodes"], text), text["text"]) for text in texts[first:]), budget)
        following = texts[first + shown.count]["id"] if first + shown.count < len(texts) else ""
        more = len(texts) - first - shown.count
        below = f"\n{more} more texts; open {encode(view['document'])} again with start={following}" if more else ""
        facts = {"index": index, "document": view["document"], "title": view["title"], "metadata": view["metadata"], "next": following}
        return ToolAnswer(shown.text + below, {**facts, "source": view["source"], "uri": uri_of(index, view["document"])})

    async def _outline(self, index: str, given: Mapping[str, Any]) -> ToolAnswer:
        """The sections of a document with their titles, the number of passages, and the name of the first passage."""
        tree = await self._ask(index, "outline", {"document": split_name(given["document"])[0]})
        lines: list[str] = []
        left = int(given.get("budget", WORDS))
        for number, node in enumerate(tree["nodes"]):
            counted = f"{node['passages']} passage{'' if node['passages'] == 1 else 's'}"
            first = f", from {passage_name(tree['document'], node['first_passage'])}" if node["first_passage"] else ""
            line = f"{'  ' * node['depth']}{' '.join(node['title'].split()) or '(no title)'} · {counted}{first}"
            left -= count_words(line)
            if left < 0 and lines:
                lines.append(f"… {len(tree['nodes']) - number} more sections; set a larger budget")
                break
            lines.append(line)
        return ToolAnswer("\n".join(lines), {"index": index, **tree})

    async def _explain(self, index: str, given: Mapping[str, Any]) -> ToolAnswer:
        """What the score of a passage is made of for a query: the passage itself, titles, sections, document and so on,
        with the words that count most.
        """
        found = await self._ask(index, "reasons", given)
        parts = tuple(ScorePart(part["origin"], part["value"], part["words"]) for part in found["parts"])
        reasons = ScoreReasons(found["score"], parts)
        lines = [f"{given['passage']} has the score {reasons.score:.3f}, {in_words(reasons) or 'since it contains no word of the query'}"]
        for part in parts:
            words = ", ".join(f"{word} {value:.3f}" for word, value in part.words.items())
            lines.append(f"{part.origin}: {part.value:.3f}" + (f" ({words})" if words else ""))
        return ToolAnswer("\n".join(lines), {"index": index, "name": given["passage"], "score": found["score"], "parts": found["parts"]})

    async def resources(self, cursor: str = "") -> tuple[list[DocumentResource], str]:
        """A page of resources, and the cursor of the next page, which is empty at the end.

        Each index is a resource: its description. Its documents follow, if they can be listed.
        """
        number, _, offset = (cursor or "0:0").partition(":")
        if not (number.isdigit() and offset.isdigit()):
            raise UsageError("the cursor is not one that a listing has returned; list resources from the beginning")
        listed: list[DocumentResource] = []
        for place in range(int(number), len(self.names)):
            name, first = self.names[place], int(offset) if place == int(number) else 0
            if not first:
                listed.append(DocumentResource(uri_of(name), name, f"What the index {name} contains."))
            while self._listing is not None:
                page = self._listing(name, first, PER_PAGE - len(listed))
                listed += [DocumentResource(uri_of(name, id), title or id, f"A document of {name}.") for id, title in page]
                first += len(page)
                if len(listed) >= PER_PAGE:
                    return listed, f"{place}:{first}"
                if not page:
                    break
        return listed, ""

    async def read(self, uri: str) -> tuple[str, str]:
        """The media type and the text of a resource: a document, or the description of an index."""
        parts = urlsplit(uri)
        index, id = unquote(parts.netloc), unquote(parts.path.removeprefix("/"))
        if parts.scheme != SCHEME or index not in self.names:
            raise NotFound("there is no such resource; list the resources, or write perikope://INDEX/DOCUMENT")
        if not id:
            import orjson

            return "application/json", orjson.dumps(await self._ask(index, "", {})).decode()
        return "text/plain", (await self._document(index, id, "", WHOLE_DOCUMENT)).text

    def _index(self, given: object) -> str:
        if given is None and len(self.names) == 1:
            return self.names[0]
        if not isinstance(given, str) or given not in self.names:
            if given is None:
                raise UsageError(f"index is missing; name one of: {', '.join(self.names)}")
            raise unknown("index", str(given), self.names)
        return given

    def _schema(self, tool: str) -> dict[str, Any]:
        parameters = {name: {**option.kind.schema(), "description": option.help} for name, option in _parameters(tool).items()}
        several = len(self.names) > 1
        index = {"index": {"type": "string", "enum": list(self.names), "description": "The index to use."}}
        properties = {**(index if self.names else {}), **parameters}
        return {
            "type": "object", "properties": properties, "required": [*(["index"] if several else []), *REQUIRED[tool]],
            "additionalProperties": False,
        }  # fmt: skip


def uri_of(index: str, document: str = "") -> str:
    """The address of a document, or of an index, as a resource.

    >>> uri_of("manuals", "report 7")
    'perikope://manuals/report%207'
    """
    return f"{SCHEME}://{quote(index, safe='')}" + (f"/{quote(document, safe='')}" if document else "")


def _parameters(tool: str) -> dict[str, Option]:
    """The parameters of a tool besides the index, taken from the operations that it asks."""
    operations = load_operations()
    context, passage = operations["context"].parameters, operations["passage"].parameters
    budget = Option("budget", WORDS, Whole(Range(1, 1_000_000)), f"The largest number of words of the answer, by default {WORDS}.")
    document = operations["outline"].parameters["document"]
    if tool == "search":
        return {"query": context["query"], "budget": budget, "around": context["around"], **{one: context[one] for one in OF_SEARCH}}
    if tool == "open":
        start = Option("start", "", Text(), "Of a document: the id of the passage to begin with.")
        return {"document": document, **passage, "budget": budget, "start": start}
    if tool == "outline":
        return {"document": document, "budget": budget}
    restrictions = [one for one in OF_SEARCH if one not in ("k", "offset")]
    return {
        "query": context["query"],
        "passage": operations["reasons"].parameters["passage"],
        **{one: context[one] for one in (*restrictions, "documents")},
    }


@dataclass(frozen=True, slots=True)
class _Framed:
    """Texts between borders, and how many of them there are."""

    text: str
    count: int


def _nearest(
    document: str, texts: Sequence[tuple[str, Sequence[str], str]], wanted: int, budget: int
) -> list[tuple[str, Sequence[str], str]]:
    """A text and its neighbours, in reading order, as many as fit with it; nearer ones come first."""

    def words(place: int) -> int:
        id, path, text = texts[place]
        return 1 + count_words(" · ".join([encode(id) or "-", " › ".join(path)])) + count_words(text)

    left = budget - count_words(encode(document)) - 2 - words(wanted)
    taken = {wanted}
    for place in sorted(set(range(len(texts))) - taken, key=lambda place: (abs(place - wanted), -place)):
        inner = place + 1 if place < wanted else place - 1
        if inner in taken and words(place) <= left:
            taken.add(place)
            left -= words(place)
    return [texts[place] for place in sorted(taken)]


def _framed(
    document: str, texts: Iterator[tuple[str, Sequence[str], str]] | Sequence[tuple[str, Sequence[str], str]], budget: int
) -> _Framed:
    """Texts of a document with id and heading path, as many as fit. The first one is cut if it does not fit alone."""
    taken: list[tuple[str, str]] = []
    left, path_before = budget - count_words(encode(document)) - 2, None
    for id, path, text in texts:
        heading = " › ".join(" ".join(title.split()) for title in path)
        head = " · ".join(filter(None, [encode(id) or "-", heading if heading != path_before else ""]))
        needed = 1 + count_words(head) + count_words(text)
        if needed > left:
            if not taken:
                words = text.split()
                taken.append((head, " ".join(words[: max(left - 2 - count_words(head), 1)]) + " …"))
            break
        taken.append((head, text))
        left, path_before = left - needed, heading
    length = border_length(text for _, text in taken)
    lines = [f"{'=' * length} {encode(document)}"]
    for head, text in taken:
        lines += [f"{'-' * length} {head}", text]
    return _Framed("\n".join([*lines, "=" * length]), len(taken))


def _path_at(nodes: Sequence[Mapping[str, Any]], text: Mapping[str, Any]) -> list[str]:
    """The heading path of a text, from the sections of its document."""
    around = [node for node in nodes if node["start"] <= text["start"] and text["end"] <= node["end"]]
    return [node["title"] for node in around if node["title"]]


def _citations(pieces: Sequence[Mapping[str, Any]], hits: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """One line per hit of a context that has a citation."""
    return [line for piece in pieces for rank in piece["ranks"] for line in _citation(hits[rank])]


def _citation(hit: Mapping[str, Any]) -> list[str]:
    return [f"Cite {passage_name(hit['document'], hit['passage'])} as: {hit['citation']}"] if hit["citation"] else []


def _excerpt_facts(index: str, piece: Mapping[str, Any], hits: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    best = hits[min(piece["ranks"])]
    return {
        "name": passage_name(best["document"], best["passage"]), "passages": list(piece["passages"]), "path": list(piece["path"]),
        "score": best["score"], "rank": best["rank"], "citation": best["citation"], "title": best["title"], "source": best["source"],
        "start": piece["start"], "end": piece["end"], "uri": uri_of(index, best["document"]),
    }  # fmt: skip
