"""The graph of a document: passages and sections with edges for order, structure and references.

The graph follows Albarede et al. 2023 (sections 3.1 and 5.1.3).

**Direction.** Messages flow along an edge, from source j to target i:

    order       from a passage to the next passage of the document
    structural  from a section to the passages and sections directly in it
    internal    from the node with a reference to the node that it refers to, in the same document
    external    from the root of a document to the root of a document that it cites

The inverse relations `order_i`, `structural_i`, `internal_i` and `external_i` have the opposite direction. So a passage
receives the title of its section along `structural`, and the section receives the passage along `structural_i`. The
paper interprets its Table 6 in the same way. Every node also has a self edge, which is not stored.

The root of the graph is a section that stands for the whole document; its text is the document's title. A cited
document is one node with its title as text, if the index contains the document. This node is at least two hops away
from the passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from perikope.browse.structure import DocumentOutline, read_spans
from perikope.core.arrays import Integers, Integers32, Mask
from perikope.core.names import running_number
from perikope.document.tree import Kind
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.kernels.structure import derive_structure
from perikope.query.publications import find_publication
from perikope.search.facade import Index

FORWARD = ("order", "structural", "internal", "external")
"""The relations without their inverses."""
INVERSE: Mapping[str, str] = MappingProxyType({name: f"{name}_i" for name in FORWARD} | {f"{name}_i": name for name in FORWARD})
RELATIONS = ("order", "order_i", "structural", "structural_i", "internal", "internal_i", "external", "external_i")
"""The relations of the paper, each followed by its inverse."""
SELF = "self"
"""The relation of a node to itself, which graph attention adds."""
OPENING = "opening"
"""A relation that is not in the paper: from the first passage of a document to its other passages. The first passage
often says what the document is about. Graph attention uses this relation only if its `relations` list it."""


@dataclass(frozen=True, slots=True)
class DocumentGraph:
    """The graph of a document: nodes in reading order, cited documents last, and edges by relation."""

    documents: tuple[str, ...]
    """Ids of the documents whose passages are nodes: one document, unless graphs were merged."""
    names: tuple[str, ...]
    """Name per node: a passage's id, a section's path (`/document[1]/sec[2]`), or the id of a cited document."""
    texts: tuple[str, ...]
    """Text per node: the text of a passage, or the title of a section or cited document, which may be empty."""
    is_passage: Mask
    """(nodes,) True for passages, false for sections and cited documents."""
    parent: Integers
    """(nodes,) Number of the section that directly contains each node; -1 for the root and for cited documents."""
    edges: Mapping[str, Integers]
    """One array (2, edges) per relation: numbers of the source nodes, and of the target nodes."""
    passage_node: Integers = field(init=False)
    """(passages,) The node number of each passage, in reading order."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "passage_node", np.flatnonzero(self.is_passage))

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.texts)

    def kind(self, node: int) -> str:
        """The kind of a node: `passage`, or `section` for sections and cited documents."""
        return "passage" if self.is_passage[node] else "section"

    def heading_path(self, node: int) -> tuple[str, ...]:
        """The titles of the sections that contain a node, from the document's title down; empty titles are left out."""
        titles: list[str] = []
        above = int(self.parent[node])
        while above >= 0:
            titles.append(self.texts[above])
            above = int(self.parent[above])
        return tuple(title for title in reversed(titles) if title)

    def list_edges(self) -> list[tuple[str, int, int]]:
        """All edges as (relation, source node, target node), in the order of `RELATIONS`; `opening` is not included."""
        return [(name, source, target) for name in RELATIONS for source, target in self.edges[name].T.tolist()]


def graph_of(index: Index, document: str) -> DocumentGraph:
    """The graph of a document, given by its id or publication number; see `find_publication`."""
    return read_graph(index.snapshot, find_publication(index.snapshot, document))


def read_graph(snapshot: Snapshot, number: int) -> DocumentGraph:
    """The graph of a document, given by its number in the snapshot."""
    segment, local = snapshot.locate(number)
    document = segment.document_id(local)
    column = read_spans(segment, np.array([local]), {})
    kind, parent_span = column["kind"], column["parent"]
    section_of_span, *_, title_of_section, _, _ = derive_structure(
        kind.astype(np.uint8), parent_span.astype(np.int32), np.array([0, kind.size])
    )
    # One node per section and per passage, in reading order. Other spans belong to the section that contains them.
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
    """Add the edges of the relation `opening` to the `edges` of a document, which are arrays (2, edges) by relation.

    `passages` (passages,) are the nodes of the document's passages, in reading order.
    """
    return {**edges, OPENING: np.stack([np.repeat(passages[:1], max(passages.size - 1, 0)), passages[1:]]).astype(np.int64)}


def with_inverses(edges: Mapping[str, Any]) -> dict[str, Integers]:
    """Add inverse relations: one array (2, edges) for each of `RELATIONS`, without self edges and duplicates.

    `edges` has arrays (2, edges) by the names in `FORWARD`. A relation that is missing there has no edges.

    >>> edges = with_inverses({"order": np.array([[0, 1], [1, 2]])})
    >>> {name: pairs.tolist() for name, pairs in edges.items() if pairs.size}
    {'order': [[0, 1], [1, 2]], 'order_i': [[1, 2], [0, 1]]}
    """
    complete = {}
    for name in FORWARD:
        pairs = np.asarray(edges.get(name, np.zeros((2, 0))), np.int64).reshape(2, -1)
        complete[name] = np.unique(pairs[:, pairs[0] != pairs[1]], axis=1)
        complete[INVERSE[name]] = complete[name][::-1].copy()
    return {name: complete[name] for name in RELATIONS}


def merge_graphs(graphs: Sequence[DocumentGraph]) -> DocumentGraph:
    """Merge several graphs into one, as a batch. No edges are added, and nodes keep their order."""
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
    """Numbers of the documents of the index that a document cites, in order of citation.

    Each number appears once. The document itself is left out. `local` is its number in the segment, `number` in the
    snapshot.
    """
    cited = segment.record(local).get("cites", [])
    if not isinstance(cited, list) or not all(isinstance(id, str) for id in cited):
        raise segment.columns.damaged(f"has damaged citations (document {local})")
    numbers = dict.fromkeys(snapshot.find_document(id) for id in cited)
    return [other for other in numbers if other >= 0 and other != number]


def _internal(segment: Segment, local: int, node_of_span: Integers, parent_span: Integers) -> Integers:
    """Edges (2, edges) of `internal`: from the node that contains a reference to the node that contains its target.

    `node_of_span` (spans,) is the node of each span, -1 for spans that are not nodes. `parent_span` (spans,) is the
    parent of each span. References to unknown ids are skipped.
    """
    try:
        references = [(int(span), str(target)) for span, target in segment.record(local).get("references", ())]
    except (TypeError, ValueError):
        raise segment.columns.damaged(f"has damaged references (document {local})") from None
    span_of_id = _spans_by_id(segment, local)
    pairs = [(span, span_of_id[target]) for span, target in references if target in span_of_id]
    if any(not 0 <= span < parent_span.size for pair in pairs for span in pair):
        raise segment.columns.damaged(f"has damaged references (document {local})")

    def node(span: int) -> int:
        # A mark belongs to its passage; a title, list or table to its section.
        while node_of_span[span] < 0:
            span = int(parent_span[span])
        return int(node_of_span[span])

    return np.array([(node(source), node(target)) for source, target in pairs], np.int64).reshape(-1, 2).T


def _spans_by_id(segment: Segment, local: int) -> dict[str, int]:
    """The spans of a document that have an id, by id. If several spans have the same id, the first one is used."""
    first, end = (int(segment["document.first_id"][local + side]) for side in (0, 1))
    name_of = segment.span_namer(local)
    span_of_id: dict[str, int] = {}
    for span in segment.rows("id.span", first, end).tolist():
        span_of_id.setdefault(name_of(span) or "", span)
    return span_of_id


def _names_and_texts(
    segment: Segment,
    local: int,
    spans: Integers,
    kind: Integers,
    section_of_span: Integers32,
    title_of_section: Integers,
) -> tuple[list[str], list[str]]:
    """Names and texts of the nodes of a document; `spans` (nodes,) is the span of each node.

    `kind` and `section_of_span` have one value per span of the document. `title_of_section` (sections,) is the span of
    each section's title, or -1.
    """
    text, first_span = segment.text(local), int(segment["document.first_span"][local])
    outline, id_of = DocumentOutline(segment, local), segment.span_namer(local)
    names, texts = [], []
    passages = 0
    for span in spans.tolist():
        if kind[span] == int(Kind.PASSAGE):
            names.append(id_of(span) or running_number(passages))
            text_span = span
            passages += 1
        else:
            names.append(outline.path(span))
            text_span = int(title_of_section[section_of_span[span]])
        texts.append(text[segment.characters(first_span + text_span)] if text_span >= 0 else "")
    return names, texts


def _title(segment: Segment, local: int) -> str:
    """The title of a document; an empty text if the document has no title."""
    title = segment.span_of("section.title_span", local, segment.sections_of(local).start)
    return segment.text(local)[segment.characters(title)] if title >= 0 else ""
