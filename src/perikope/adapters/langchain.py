"""LangChain: retrievers, a compressor that keeps what fits into a budget, and chunks as documents.

retriever = PerikopeRetriever(index="idx", k=5, filter="year>=2010")
retriever.invoke("pump with a magnetic coupling")
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from perikope.adapters.searched import SearchedIndex, facts_of_hits, titled
from perikope.core.errors import MissingExtra, UsageError
from perikope.document.chunks import Chunk
from perikope.search.context import AROUND, BUDGET, Excerpt, TokenCounter, count_words, no_room, render

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun, Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import Field, PrivateAttr
except ModuleNotFoundError as missing:
    raise MissingExtra(missing.name or "langchain_core", "langchain") from None

if TYPE_CHECKING:
    from perikope.client.results import RemoteResults
    from perikope.search.results import Results

__all__ = ["PerikopeCompressor", "PerikopeContextRetriever", "PerikopeRetriever", "as_langchain", "context_of"]


class PerikopeRetriever(BaseRetriever):
    """Searches an index for passages, from LangChain.

    `index` is an `Index`, a folder, or the address of a server, for which `name_of_index` may be needed. Every other
    keyword that is no field is an option of a search, and so is every keyword of `invoke`. A document has the text of a
    passage as its content, its name as id, and the properties of a `Hit` as metadata; `metadata["metadata"]` is that of
    the perikope document.

    The retriever can be pickled, and `langchain_core.load` writes and reads it: as the folder or the address of its
    index, with its options. The `token` for a server is never written: where the retriever is read again, it comes from
    the environment variable `PERIKOPE_TOKEN`.
    """

    index: str = ""
    """The folder of the index, or the address of its server."""
    name_of_index: str = ""
    """The name of the index on its server."""
    recipe: str = ""
    """The recipe of the searches; see `perikope recipes`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """The options of the searches, by name."""
    reasons: bool = False
    """Whether the metadata say what the score is made of."""
    heading: bool = False
    """Whether the content begins with the heading path."""
    _searched: SearchedIndex = PrivateAttr()

    def __init__(
        self, index: Any, *, name_of_index: str = "", token: str = "", options: dict[str, Any] | None = None, **given: Any
    ) -> None:  # fmt: skip
        """Open the index, and check the options; see the class."""
        own = {name: value for name, value in given.items() if name in type(self).model_fields}
        searching = {**(options or {}), **{name: value for name, value in given.items() if name not in own}}
        searched = SearchedIndex(index, name=name_of_index, token=token, recipe=own.get("recipe", ""), options=searching)
        super().__init__(index=searched.location, name_of_index=searched.name, options=searched.options, **own)  # type: ignore[call-arg]
        self._searched = searched

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Whether LangChain can write the retriever."""
        return True

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **given: Any) -> list[Document]:
        return self._documents(self._searched.search(query, given))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:  # fmt: skip
        return await self._searched.run(query, self._documents, given)

    def _documents(self, results: Results | RemoteResults) -> list[Document]:
        return [
            Document(id=hit.name, page_content=titled(hit.path, hit.text) if self.heading else hit.text, metadata=facts)
            for hit, facts in facts_of_hits(results, reasons=self.reasons)
        ]


class PerikopeContextRetriever(PerikopeRetriever):
    """Searches for passages, and returns excerpts that together have at most `budget` tokens.

    The excerpts are those of `Results.context`: hits, best first, then up to `around` neighbours of each. `context_of`
    makes one text of them. `tokens` counts the tokens of a text, by default its words; a server counts words only.
    If not even the best hit fits, there are no excerpts, and a warning says how many tokens it needs.
    """

    budget: int = BUDGET
    """The largest number of tokens of the text that `context_of` makes of the excerpts."""
    around: int = AROUND
    """The number of neighbouring passages on either side of a hit, if they fit."""
    tokens: Any = Field(default=None, exclude=True)
    """The function that counts tokens; None for words."""

    def _documents(self, results: Results | RemoteResults) -> list[Document]:
        context = results.context(self.budget, tokens=self.tokens or count_words, around=self.around)
        if context.needed:
            warnings.warn(no_room(self.budget, context.needed, "tokens"), stacklevel=2)
        scores = {hit.rank: hit for hit in results}
        return [_excerpt_document(piece, scores) for piece in context.pieces]


def _excerpt_document(piece: Excerpt, hit_of_rank: dict[int, Any]) -> Document:
    best = hit_of_rank[min(piece.ranks)]
    facts = {
        "document": piece.document, "passages": list(piece.passages), "ranks": list(piece.ranks), "path": list(piece.path),
        "start": piece.start, "end": piece.end, "title": best.title, "score": best.score, "source": best.source,
        "citation": best.citation, "metadata": best.metadata, "name": best.name, "cited": piece.citation,
    }  # fmt: skip
    return Document(id=best.name, page_content=piece.text, metadata=facts)


class PerikopeCompressor(BaseDocumentCompressor):
    """Keeps as many documents of a `PerikopeRetriever` as fit into a budget of tokens, in the given order.

    So it can follow a re-ranker. Documents inside another kept document are left out. Tokens are counted in the text
    that `context_of` makes of the kept documents, with its borders and headings. If none fits, a warning says so.
    """

    budget: int = BUDGET
    """The largest number of tokens."""
    tokens: Any = Field(default=None, exclude=True)
    """The function that counts tokens; None for words."""

    def compress_documents(self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None) -> Sequence[Document]:
        """The documents that fit."""
        count: TokenCounter = self.tokens or count_words
        kept: list[Document] = []
        for document in documents:
            if not _is_inside(document, kept) and count(context_of([*kept, document])) <= self.budget:
                kept.append(document)
        if documents and not kept:
            warnings.warn(no_room(self.budget, count(context_of(documents[:1])), "tokens"), stacklevel=2)
        return kept


def _is_inside(document: Document, kept: Iterable[Document]) -> bool:
    facts = document.metadata
    return any(
        other.metadata["document"] == facts["document"]
        and other.metadata["start"] <= facts["start"]
        and facts["end"] <= other.metadata["end"]
        for other in kept
    )


def context_of(documents: Sequence[Document]) -> str:
    """One text for a language model, made of documents of a retriever of this module; see `perikope.search.context`.

    Documents of one perikope document are together, in reading order.
    """
    first: dict[str, int] = {}
    for number, document in enumerate(documents):
        if not {"document", "start", "end", "path"} <= document.metadata.keys():
            raise UsageError("a context needs documents of a PerikopeRetriever; their metadata say where each text is")
        first.setdefault(document.metadata["document"], number)
    ordered = sorted(documents, key=lambda document: (first[document.metadata["document"]], document.metadata["start"]))
    return render(Excerpt(
        facts["document"], tuple(facts.get("passages") or [facts["passage"]]), (), tuple(facts["path"]), facts["start"], facts["end"],
        _text_below(document), _cited(facts),
    ) for document in ordered for facts in [document.metadata])  # fmt: skip


def _cited(facts: dict[str, Any]) -> str:
    """The citation of an excerpt, or that of a hit without the id of its document."""
    if "cited" in facts or (facts.get("metadata") or {}).get("publication"):
        return str(facts.get("cited", facts.get("citation", "")))
    return str(facts.get("citation", "")).removeprefix(f"{facts['document']} ")


def _text_below(document: Document) -> str:
    """The text of a document without the heading path that it may begin with; a context has its own."""
    heading = titled(document.metadata["path"], "")
    return document.page_content.removeprefix(heading) if heading else document.page_content


def as_langchain(chunks: Iterable[Chunk]) -> Iterator[Document]:
    """Yield chunks (`perikope.split`) as documents of LangChain. The content begins with the heading path."""
    for chunk in chunks:
        facts = {name: value for name, value in chunk.to_dict().items() if name not in ("id", "content")}
        facts |= {"path": list(chunk.path), "passages": list(chunk.passages)}
        yield Document(id=chunk.id, page_content=chunk.content, metadata=facts)
