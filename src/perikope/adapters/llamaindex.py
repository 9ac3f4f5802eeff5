"""LlamaIndex: a retriever, a reader, a node parser that keeps section trees as relationships, and chunks as nodes."""

from __future__ import annotations

import warnings
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from os import PathLike
from typing import TYPE_CHECKING, Any
from zlib import crc32

from perikope.adapters.searched import SearchedIndex, facts_of_hits
from perikope.core.errors import MissingExtra, UsageError
from perikope.core.names import encode
from perikope.document import tree
from perikope.document.chunks import Chunk, chunks_of, count_tokens
from perikope.document.pieces import CHUNK_TOKENS
from perikope.formats import FileLimits, OnIgnored, OnProblem, Source, documents, read
from perikope.search.columns import flat

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.node_parser.interface import NodeParser
    from llama_index.core.readers.base import BaseReader
    from llama_index.core.schema import (
        BaseNode,
        Document,
        NodeRelationship,
        NodeWithScore,
        QueryBundle,
        RelatedNodeInfo,
        TextNode,
    )
except ModuleNotFoundError as missing:
    raise MissingExtra(missing.name or "llama_index", "llamaindex") from None

if TYPE_CHECKING:
    from perikope.client.results import RemoteResults
    from perikope.search.results import Results

__all__ = ["PerikopeIndexRetriever", "PerikopeNodeParser", "PerikopeReader", "as_llamaindex"]

TREE = "perikope_tree"
"""The metadata field in which the reader keeps the tree of a document for the node parser."""
SHOWN = "path"
"""The only metadata field that is embedded and shown to a language model."""
Paths = str | PathLike[str] | Iterable[str | PathLike[str]]
_LIMITS = FileLimits()


class PerikopeIndexRetriever(BaseRetriever):
    """Searches an index for passages, from LlamaIndex.

    `index` is an `Index`, a folder, or the address of a server, for which `name_of_index` may be needed. Every keyword
    that is not named here is an option of a search. A node has the text of a passage, its name as id, and the
    properties of a `Hit` as metadata; its source is the perikope document. Only the heading path is shown to a language
    model.
    """

    def __init__(
        self, index: Any, *, name_of_index: str = "", token: str = "", recipe: str = "", reasons: bool = False,
        callback_manager: Any = None, **given: Any,
    ) -> None:  # fmt: skip
        """Open the index, and check the options; see the class."""
        self._searched = SearchedIndex(index, name=name_of_index, token=token, recipe=recipe, options=given)
        self._reasons = reasons
        super().__init__(callback_manager=callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(self._searched.search(query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await self._searched.run(query_bundle.query_str, self._nodes)

    def _nodes(self, results: Results | RemoteResults) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=_node(
                    hit.name, hit.text, {**facts, "path": " › ".join(hit.path)}, hit.start, hit.end,
                    {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=hit.document)},
                ),
                score=hit.score,
            )
            for hit, facts in facts_of_hits(results, reasons=self._reasons)
        ]  # fmt: skip


class PerikopeReader(BaseReader):
    """Reads files, folders and archives in all formats of perikope. One LlamaIndex document per perikope document."""

    def lazy_load_data(  # type: ignore[override]
        self, paths: Paths, *, format: str = "auto", language: str = "en", on_problem: OnProblem | None = None,
        on_ignored: OnIgnored | None = None, limits: FileLimits = _LIMITS,
    ) -> Iterator[Document]:  # fmt: skip
        """Yield the documents. Their trees are kept in the metadata, for `PerikopeNodeParser`.

        The arguments are those of `perikope.read`: `on_problem` is called with the error for each file in a folder or
        an archive that cannot be read, or else the error is raised. `on_ignored` is called with the path of each file
        that no format reads, or else a warning counts them.
        """
        given: dict[str, Any] = {"on_problem": on_problem, "on_ignored": on_ignored, "limits": limits}
        for document in read(paths, format=format, language=language, hashes=False, **given):
            facts = {"document": document.id, "title": document.title, "language": document.language, "source": document.source}
            metadata = {**dict(flat(dict(document.metadata))), **facts, TREE: _tree_facts(document)}
            yield Document(
                doc_id=document.id, text=document.text, metadata=metadata, excluded_embed_metadata_keys=list(metadata),
                excluded_llm_metadata_keys=list(metadata),
            )  # fmt: skip

    def load_data(  # type: ignore[override]
        self, paths: Paths, *, format: str = "auto", language: str = "en", on_problem: OnProblem | None = None,
        on_ignored: OnIgnored | None = None, limits: FileLimits = _LIMITS,
    ) -> list[Document]:  # fmt: skip
        """The documents as a list; see `lazy_load_data`."""
        given: dict[str, Any] = {"on_problem": on_problem, "on_ignored": on_ignored, "limits": limits}
        return list(self.lazy_load_data(paths, format=format, language=language, **given))


class PerikopeNodeParser(NodeParser):
    """Cuts documents into chunks, below one node per section.

    The tree is that of a document of `PerikopeReader`. The text of any other document is read as `format`, and so is,
    with a warning, a text that was changed after it was read. Nodes of sections have the whole text of the section.
    PARENT and CHILD relationships are the tree, PREVIOUS and NEXT connect the chunks of a document, and SOURCE is the
    document. `get_leaf_nodes` of LlamaIndex returns the chunks.
    """

    budget: int = Field(default=CHUNK_TOKENS, description="The largest number of tokens of a chunk with its heading path.")
    join: bool = Field(default=True, description="Whether consecutive passages of a section become one chunk.")
    format: str = Field(default="markdown", description="The format of documents that PerikopeReader has not read.")
    tokens: Any = Field(default=None, exclude=True, description="The function that counts tokens; None for words.")
    include_prev_next_rel: bool = Field(default=False, description="The parser sets these relationships itself.")
    id_func: Any = Field(default=None, exclude=True, description="Ids are those of chunks, the same every time.")

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex writes the parser."""
        return "PerikopeNodeParser"

    def _parse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any) -> list[BaseNode]:
        return [made for node in nodes for made in self._nodes_of(node)]

    def _postprocess_parsed_nodes(self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]) -> list[BaseNode]:
        """The nodes as they are: they have their characters, metadata and relationships already."""
        return nodes

    def _nodes_of(self, node: BaseNode) -> list[BaseNode]:
        if not node.get_content(metadata_mode="none").strip():  # type: ignore[arg-type]
            warnings.warn(f"the document {node.node_id!r} is empty and gives no nodes", stacklevel=2)
            return []
        document = _perikope_document(node, self.format)
        source = RelatedNodeInfo(node_id=node.node_id)
        chunks = chunks_of(document, budget=self.budget, tokens=self.tokens or count_tokens, join=self.join)
        if not chunks:
            warnings.warn(f"the document {node.node_id!r} has no text besides titles and gives no nodes", stacklevel=2)
        section_of_chunk = _innermost_sections(document, chunks)
        titles, nodes = _titles(document), dict[int, TextNode]()
        for span in _with_sections_around(document, section_of_chunk):
            start, end = document.spans.start[span], document.spans.end[span]
            facts = {"document": document.id, "section": titles.get(span, "")}
            name = f"{encode(document.id)}#section-{span}"
            nodes[span] = _node(name, document.text_of(span), facts, start, end, {NodeRelationship.SOURCE: source})
            if (around := _section_around(document, span, nodes)) is not None:
                _connect(nodes[around], nodes[span])
        leaves = [_chunk_node(chunk, chunk.text, source) for chunk in chunks]
        for number, (section, leaf) in enumerate(zip(section_of_chunk, leaves, strict=True)):
            _connect(nodes[section], leaf)
            if number:
                leaf.relationships[NodeRelationship.PREVIOUS] = leaves[number - 1].as_related_node_info()
                leaves[number - 1].relationships[NodeRelationship.NEXT] = leaf.as_related_node_info()
        if self.include_metadata:
            for made in (*nodes.values(), *leaves):
                _inherit(node, made)
        return [*nodes.values(), *leaves]


def as_llamaindex(chunks: Iterable[Chunk]) -> Iterator[TextNode]:
    """Yield chunks (`perikope.split`) as nodes of LlamaIndex. The text begins with the heading path.

    PREVIOUS and NEXT are the neighbours of a chunk, and SOURCE is its document.
    """
    for chunk in chunks:
        node = _chunk_node(chunk, chunk.content, RelatedNodeInfo(node_id=chunk.document))
        for relation, id in ((NodeRelationship.PREVIOUS, chunk.before), (NodeRelationship.NEXT, chunk.after)):
            if id:
                node.relationships[relation] = RelatedNodeInfo(node_id=id)
        node.excluded_embed_metadata_keys = node.excluded_llm_metadata_keys = list(node.metadata)
        yield node


def _chunk_node(chunk: Chunk, text: str, source: RelatedNodeInfo) -> TextNode:
    facts = {
        "document": chunk.document, "title": chunk.title, "path": " › ".join(chunk.path), "passages": list(chunk.passages),
        "citation": chunk.citation, "part": chunk.part, "language": chunk.language, "source": chunk.source,
    }  # fmt: skip
    place = {"place": asdict(chunk.place)} if chunk.place is not None else {}
    metadata = {**dict(flat(chunk.metadata)), **facts, **place}
    return _node(chunk.id, text, metadata, chunk.start, chunk.end, {NodeRelationship.SOURCE: source})


def _node(id: str, text: str, metadata: dict[str, Any], start: int, end: int, relationships: dict[Any, Any]) -> TextNode:
    hidden = [name for name in metadata if name != SHOWN]
    return TextNode(
        id_=id, text=text, metadata=metadata, excluded_embed_metadata_keys=hidden, excluded_llm_metadata_keys=list(hidden),
        start_char_idx=start, end_char_idx=end, relationships=dict(relationships),
    )  # fmt: skip


def _inherit(document: BaseNode, node: TextNode) -> None:
    """Give a node the metadata of its document. What the document hides, the node hides too."""
    node.metadata = {**{name: value for name, value in document.metadata.items() if name != TREE}, **node.metadata}
    shown = {SHOWN} & node.metadata.keys()
    for keys in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
        hidden = {*getattr(document, keys), *getattr(node, keys)} - shown
        setattr(node, keys, sorted(hidden & node.metadata.keys()))


def _connect(parent: TextNode, child: TextNode) -> None:
    parent.relationships[NodeRelationship.CHILD] = [*(parent.child_nodes or []), RelatedNodeInfo(node_id=child.node_id)]
    child.relationships[NodeRelationship.PARENT] = RelatedNodeInfo(node_id=parent.node_id)


def _section_around(document: tree.Document, span: int, known: dict[int, TextNode]) -> int | None:
    """The nearest section around a section that has a node."""
    while (span := document.spans.parent[span]) >= 0:
        if span in known:
            return span
    return None


def _innermost_sections(document: tree.Document, chunks: Sequence[Chunk]) -> list[int]:
    """For each chunk, the innermost section that contains it."""
    spans, sections = document.spans, list(document.of_kind(tree.Kind.SECTION))
    starts = [spans.start[section] for section in sections]
    found = []
    for chunk in chunks:
        span = sections[bisect_right(starts, chunk.start) - 1]
        while spans.kind[span] != tree.Kind.SECTION or spans.end[span] < chunk.end:
            span = spans.parent[span]
        found.append(span)
    return found


def _with_sections_around(document: tree.Document, sections: Iterable[int]) -> list[int]:
    """The given sections and all sections around them, in reading order."""
    found = set(sections)
    for span in tuple(found):
        while (span := document.spans.parent[span]) >= 0:
            if document.spans.kind[span] == tree.Kind.SECTION:
                found.add(span)
    return sorted(found)


def _titles(document: tree.Document) -> dict[int, str]:
    """The first title of each section that has one."""
    found: dict[int, str] = {}
    for span in document.of_kind(tree.Kind.TITLE):
        found.setdefault(document.spans.parent[span], document.text_of(span))
    return found


def _tree_facts(document: tree.Document) -> dict[str, Any]:
    """The tree of a document as values for JSON."""
    columns = {name: getattr(document.spans, name).tolist() for name in document.spans.__slots__}
    return {
        "checksum": _checksum(document.text), "spans": columns, "labels": list(document.labels),
        "span_ids": {str(span): id for span, id in document.span_ids.items()},
        "places": {str(span): asdict(place) for span, place in document.places.items()},
        "citations": {str(span): citation for span, citation in document.citations.items()},
    }  # fmt: skip


def _checksum(text: str) -> int:
    """A number that tells whether a text was changed after it was read."""
    return crc32(text.encode("utf-8", "replace"))


def _perikope_document(node: BaseNode, format: str) -> tree.Document:
    """The perikope document of a LlamaIndex document."""
    text = node.get_content(metadata_mode="none")  # type: ignore[arg-type]
    facts = node.metadata.get(TREE)
    if isinstance(facts, dict) and facts.get("checksum", _checksum(text)) != _checksum(text):
        warnings.warn(f"the text of the document {node.node_id!r} was changed after it was read; it is read as {format}", stacklevel=2)
        facts = None
    if facts is None:
        found = list(
            documents(Source(f"the document {node.node_id!r}", node.node_id, format=format, content=text.encode("utf-8", "replace")))
        )
        if len(found) != 1:
            raise UsageError(f"the text of the document {node.node_id!r} must be one document of the format {format}, not {len(found)}")
        return found[0]
    try:
        types = {name: getattr(tree.Spans(), name).typecode for name in tree.Spans.__slots__}
        spans = tree.Spans(**{name: array(types[name], facts["spans"][name]) for name in types})
        ids = {int(span): str(id) for span, id in facts["span_ids"].items()}
        places = {int(span): tree.Place(**{**place, "box": tuple(place["box"])}) for span, place in facts.get("places", {}).items()}
        citations = {int(span): str(citation) for span, citation in facts.get("citations", {}).items()}
        return tree.Document(
            node.node_id, text, spans, tuple(facts["labels"]), span_ids=ids, places=places, citations=citations,
            source=node.metadata.get("source", ""),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UsageError(f"the metadata field {TREE} is not one that PerikopeReader has written; read the files again") from None
