"""The graph of a document: passages and sections, joined by order, structure and references (Albarede et al. 2023, 3.1 and 5.1.3).

**Direction.** An edge runs as its relation is read, and messages flow along it, from source j to target i:

    order       from a passage to the one that follows it in the document
    structural  from a section to the passages and sections that stand directly in it
    internal    from what refers to what it refers to, inside the document
    external    from the root of a document to the root of one that it cites

`order_i`, `structural_i`, `internal_i` and `external_i` run the other way. So a passage hears of its section's title along `structural`
and is heard by its section along `structural_i`, which is how the paper reads its Table 6. Every node also has a self edge; those are
not listed, being known.

The document itself is the section at the root; its text is the document's title. A cited document takes part if the index holds it, as
its root alone: a title to hear of, two or three hops away from the passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from perikope.browse.structure import DocumentOutline, read_spans
from perikope.core.arrays import Integers, Integers32, Mask
from perikope.core.errors import UsageError
from perikope.core.names import running_number
from perikope.document.tree import Kind
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.kernels.structure import derive_structure
from perikope.search.facade import Index

FORWARD = ("order", "structural", "internal", "external")
INVERSE: Mapping[str, str] = MappingProxyType({name: f"{name}_i" for name in FORWARD} | {f"{name}_i": name for name in FORWARD})
RELATIONS = ("order", "order_i", "structural", "structural_i", "internal", "internal_i", "external", "external_i")
SELF = "self"
OPENING = "opening"
"""Our own: from the first passage of a document, which tells what it is about, to all its others. Only models that ask for it hear it."""


@dataclass(frozen=True, slots=True)
class DocumentGraph:
    """Nodes in reading order, cited documents last; edges as (2, n) arrays of sources and targets, by relation."""

    documents: tuple[str, ...]
    """The ids of the documents whose passages these are: one, unless graphs were merged."""
    names: tuple[str, ...]
    """A passage's id, a section's path (`/document[1]/sec[2]`), or the id of a cited document."""
    texts: tuple[str, ...]
    """A passage's text, or a section's title, which may be empty."""
    is_passage: Mask
    parent: Integers
    """The section that each node stands in, or -1."""
    edges: Mapping[str, Integers]
    passage_node: Integers = field(init=False)
    """The node of each passage, in reading order."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "passage_node", np.flatnonzero(self.is_passage))

    @property
    def nodes(self) -> int:
        """How many there are."""
        return len(self.texts)

    def kind(self, node: int) -> str:
        """`passage` or `section`."""
        return "passage" if self.is_passage[node] else "section"

    def heading_path(self, node: int) -> tuple[str, ...]:
        """The titles above a node, from the document's own down; sections without a title are passed over."""
        titles: list[str] = []
        above = int(self.parent[node])
        while above >= 0:
            titles.append(self.texts[above])
            above = int(self.parent[above])
        return tuple(title for title in reversed(titles) if title)

    def list_edges(self) -> list[tuple[str, int, int]]:
        """Relation, source and target of every edge, in the order of `RELATIONS`."""
        return [(name, source, target) for name in RELATIONS for source, target in self.edges[name].T.tolist()]


def graph_of(index: Index, document: str) -> DocumentGraph:
    """The graph of a document of the index, by its id."""
    snapshot = index.snapshot
    number = snapshot.find_document(document)
    if number < 0:
        raise UsageError(f"there is no document {document!r} in {index.folder}")
    return read_graph(snapshot, number)


def read_graph(snapshot: Snapshot, number: int) -> DocumentGraph:
    """The graph of a document, by its number in a snapshot."""
    segment, local = snapshot.locate(number)
    document = segment.document_id(local)
    column = read_spans(segment, np.array([local]), {})
    kind, parent_span = column["kind"], column["parent"]
    section_of_span, *_, title_of_section, _, _ = derive_structure(
        kind.astype(np.uint8), parent_span.astype(np.int32), np.array([0, kind.size])
    )
    # A node a section and a node a passage, in reading order; whatever else there is belongs to the section above it.
    is_section, is_passage = kind == int(Kind.SECTION), kind == int(Kind.PASSAGE)
    spans = np.flatnonzero(is_section | is_passage)
    node_of_span = np.full(kind.size, -1, np.int64)
    node_of_span[spans] = np.arange(spans.size)
    node_of_section = node_of_span[np.flatnonzero(is_section)]
    parent = np.where(spans > 0, node_of_section[section_of_span[np.maximum(parent_span[spans], 0)]], -1)

    cited = _cited_documents(snapshot, segment, local, number)
    node_names, node_texts = _names_and_texts(segment, local, spans, kind, section_of_span, title_of_section)
    nodes = spans.size
    passages, below = np.flatnonzero(is_passage[spans]), np.flatnonzero(parent >= 0)
    edges = {
        "order": np.stack([passages[:-1], passages[1:]]),
        "structural": np.stack([parent[below], below]),
        "internal": _internal(segment, local, node_of_span, parent_span),
        "external": np.stack([np.zeros(len(cited), np.int64), np.arange(nodes, nodes + len(cited))]),
    }
    return DocumentGraph(
        documents=(document,),
        names=(*node_names, *(snapshot.document_id(other) for other in cited)),
        texts=(*node_texts, *(_title(*snapshot.locate(other)) for other in cited)),
        is_passage=np.concatenate([is_passage[spans], np.zeros(len(cited), bool)]),
        parent=np.concatenate([parent, np.full(len(cited), -1)]).astype(np.int64),
        edges=with_opening(with_inverses(edges), passages),
    )


def with_opening(edges: Mapping[str, Integers], passages: Integers) -> dict[str, Integers]:
    """The edges of one document, and those of its opening."""
    return {**edges, OPENING: np.stack([np.repeat(passages[:1], max(passages.size - 1, 0)), passages[1:]]).astype(np.int64)}


def with_inverses(edges: Mapping[str, Any]) -> dict[str, Integers]:
    """The edges of the four relations and their inverses, each edge once; a relation that is not given has none.

    >>> {name: edges.tolist() for name, edges in with_inverses({"order": np.array([[0, 1], [1, 2]])}).items() if edges.size}
    {'order': [[0, 1], [1, 2]], 'order_i': [[1, 2], [0, 1]]}
    """
    found = {}
    for name in FORWARD:
        pairs = np.asarray(edges.get(name, np.zeros((2, 0))), np.int64).reshape(2, -1)
        found[name] = np.unique(pairs[:, pairs[0] != pairs[1]], axis=1)
        found[INVERSE[name]] = found[name][::-1].copy()
    return {name: found[name] for name in RELATIONS}


def merge_graphs(graphs: Sequence[DocumentGraph]) -> DocumentGraph:
    """Several graphs side by side, with no edge between them: a batch."""
    bases = np.cumsum([0, *(graph.nodes for graph in graphs)])[:-1].tolist()
    based = list(zip(graphs, bases, strict=True))
    return DocumentGraph(
        documents=tuple(document for graph in graphs for document in graph.documents),
        names=tuple(name for graph in graphs for name in graph.names),
        texts=tuple(text for graph in graphs for text in graph.texts),
        is_passage=np.concatenate([np.zeros(0, bool), *(graph.is_passage for graph in graphs)]),
        parent=np.concatenate([np.zeros(0, np.int64), *(np.where(graph.parent >= 0, graph.parent + base, -1) for graph, base in based)]),
        edges={
            name: np.concatenate([np.zeros((2, 0), np.int64), *(graph.edges[name] + base for graph, base in based)], axis=1)
            for name in (graphs[0].edges if graphs else RELATIONS)
        },
    )


def _cited_documents(snapshot: Snapshot, segment: Segment, local: int, number: int) -> list[int]:
    """The numbers of the documents that one cites and the index holds, each once, as they are cited."""
    cited = segment.record(local).get("cites", [])
    if not isinstance(cited, list) or not all(isinstance(id, str) for id in cited):
        raise segment.columns.damaged(f"has damaged citations (document {local})")
    found = dict.fromkeys(snapshot.find_document(id) for id in cited)
    return [other for other in found if other >= 0 and other != number]


def _internal(segment: Segment, local: int, node_of_span: Integers, parent_span: Integers) -> Integers:
    """From the node that holds what refers to the node that holds what it refers to; ids that lead nowhere are passed over."""
    try:
        references = [(int(span), str(target)) for span, target in segment.record(local).get("references", ())]
    except (TypeError, ValueError):
        raise segment.columns.damaged(f"has damaged references (document {local})") from None
    span_of_id = _spans_by_id(segment, local)
    pairs = [(span, span_of_id[target]) for span, target in references if target in span_of_id]
    if any(not 0 <= span < parent_span.size for pair in pairs for span in pair):
        raise segment.columns.damaged(f"has damaged references (document {local})")

    def node(span: int) -> int:
        # A mark belongs to its passage, a title, list or table to its section.
        while node_of_span[span] < 0:
            span = int(parent_span[span])
        return int(node_of_span[span])

    return np.array([(node(source), node(target)) for source, target in pairs], np.int64).reshape(-1, 2).T


def _spans_by_id(segment: Segment, local: int) -> dict[str, int]:
    first, end = (int(segment["document.first_id"][local + side]) for side in (0, 1))
    name_of = segment.span_namer(local)
    found: dict[str, int] = {}
    for span in segment["id.span"][first:end].tolist():
        found.setdefault(name_of(span) or "", span)
    return found


def _names_and_texts(
    segment: Segment,
    local: int,
    spans: Integers,
    kind: Integers,
    section_of_span: Integers32,
    title_of_section: Integers,
) -> tuple[list[str], list[str]]:
    text, first_span = segment.text(local), int(segment["document.first_span"][local])
    outline, id_of = DocumentOutline(segment, local), segment.span_namer(local)
    names, texts = [], []
    passages = 0
    for span in spans.tolist():
        if kind[span] == int(Kind.PASSAGE):
            names.append(id_of(span) or running_number(passages))
            shown = span
            passages += 1
        else:
            names.append(outline.path(span))
            shown = int(title_of_section[section_of_span[span]])
        texts.append(text[segment.characters(first_span + shown)] if shown >= 0 else "")
    return names, texts


def _title(segment: Segment, local: int) -> str:
    """The title of a document."""
    title = segment.span_of("section.title_span", local, segment.sections_of(local).start)
    return segment.text(local)[segment.characters(title)] if title >= 0 else ""
