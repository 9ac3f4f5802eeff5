"""Haystack: a retriever component that pipelines can write and read, and chunks as documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from perikope.adapters.searched import SearchedIndex, facts_of_hits, titled
from perikope.core.errors import MissingExtra
from perikope.document.chunks import Chunk

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ModuleNotFoundError as missing:
    raise MissingExtra(missing.name or "haystack", "haystack") from None

if TYPE_CHECKING:
    from perikope.client.results import RemoteResults
    from perikope.search.results import Results

__all__ = ["PerikopePassageRetriever", "as_haystack"]


@component
class PerikopePassageRetriever:
    """Searches an index for passages, in a pipeline of Haystack.

    `index` is an `Index`, a folder, or the address of a server, for which `name_of_index` may be needed. Every keyword
    that is not named here is an option of a search, and so is every item of `options`; `run` takes further ones. A
    document has the text of a passage as its content, its name as id, and the properties of a `Hit` as metadata. With
    `heading`, the content begins with the heading path. With `reasons`, the metadata say what the score is made of.

    A pipeline writes the component as the folder or the address of its index, with the options. The `token` is never
    written: where the pipeline is read again, it comes from the environment variable `PERIKOPE_TOKEN`.
    """

    def __init__(
        self, index: Any, *, name_of_index: str = "", token: str = "", recipe: str = "", options: dict[str, Any] | None = None,
        heading: bool = False, reasons: bool = False, **given: Any,
    ) -> None:  # fmt: skip
        """Open the index, and check the options; see the class."""
        self._searched = SearchedIndex(index, name=name_of_index, token=token, recipe=recipe, options={**(options or {}), **given})
        self._heading, self._reasons = heading, reasons

    def to_dict(self) -> dict[str, Any]:
        """The component as values for a file."""
        searched = self._searched
        return default_to_dict(
            self, index=searched.location, name_of_index=searched.name, recipe=searched.recipe, options=searched.options,
            heading=self._heading, reasons=self._reasons,
        )  # fmt: skip

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PerikopePassageRetriever:
        """The component that `to_dict` has written."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(self, query: str, options: dict[str, Any] | None = None) -> dict[str, Any]:
        """The passages that are found. The given options take precedence over those of the component."""
        return self._answer(self._searched.search(query, options))

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str, options: dict[str, Any] | None = None) -> dict[str, Any]:
        """Await the passages that are found; see `run`."""
        return await self._searched.run(query, self._answer, options)

    def _answer(self, results: Results | RemoteResults) -> dict[str, Any]:
        documents = [
            Document(id=hit.name, content=titled(hit.path, hit.text) if self._heading else hit.text, meta=facts, score=hit.score)
            for hit, facts in facts_of_hits(results, reasons=self._reasons)
        ]
        return {"documents": documents}


def as_haystack(chunks: Iterable[Chunk]) -> Iterator[Document]:
    """Yield chunks (`perikope.split`) as documents of Haystack. The content begins with the heading path."""
    for chunk in chunks:
        facts = {name: value for name, value in chunk.to_dict().items() if name not in ("id", "content")}
        yield Document(id=chunk.id, content=chunk.content, meta={**facts, "path": list(chunk.path), "passages": list(chunk.passages)})
