"""Vectors of passages in the context of their documents, by graph attention, for stores and for explanations of scores.

All passages of a document are computed in one pass over its graph. Nodes have the same texts as in training. The text
of a passage node is the passage, after its heading path if the ranker was trained with heading paths. The text of a
section node is its title. A node without text has no tokens and sends no messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from perikope.browse.signals import Origin
from perikope.core.arrays import Floats32
from perikope.index.reader import Snapshot
from perikope.neural.graph import OPENING, SELF, DocumentGraph, read_graph
from perikope.neural.hgat import HGAT, VARIANTS
from perikope.neural.saved import SavedRanker, load_ranker
from perikope.neural.stores.manifest import CONTENT, VECTORS, Kind
from perikope.neural.stores.store import written_passages
from perikope.neural.stores.writing import Encoded
from perikope.neural.training import computing

_SHOWN = 60
"""Maximum characters of a section title in an explanation; longer titles are cut."""


def variant_of(context: HGAT) -> str:
    """The name of the variant of a graph attention, as in `hgat.VARIANTS`; for example `NO_LB`."""
    switches = tuple(bool(context.settings[name]) for name in ("no_out", "lam", "no_self"))
    return next(name for name, switches_of_variant in VARIANTS.items() if switches_of_variant == switches)


def alpha_of(ranker: SavedRanker) -> float | None:
    """The learned weight α of the context score in late fusion, from 0 to 1; None if the ranker has no late fusion."""
    return None if ranker.fusion is None else float(ranker.fusion.alpha.detach().clamp(0, 1))


def read_nodes(snapshot: Snapshot, document: int, heading_path: bool) -> tuple[DocumentGraph, list[str]]:
    """The graph of a document, and the texts of its nodes as they are encoded, in the order of nodes.

    `document` is the number of the document in the snapshot. `heading_path` prepends heading paths to passages.
    """
    graph = read_graph(snapshot, document)
    texts = list(graph.texts)
    for node, text in zip(graph.passage_node.tolist(), written_passages(snapshot, document, heading_path), strict=True):
        texts[node] = text
    return graph, texts


@dataclass(frozen=True)
class ContextSource:
    """A `DocumentEncoder` for stores of kind `context`: computes vectors of passages in their context.

    With late fusion, it also returns the vectors of the passages alone.
    """

    ranker: SavedRanker
    kind: Kind = "context"

    @property
    def context(self) -> HGAT:
        """The graph attention of the ranker, which must have one."""
        assert self.ranker.context is not None
        return self.ranker.context

    @property
    def dimension(self) -> int:
        """Values per vector."""
        return self.context.dimension

    @property
    def heading_path(self) -> bool:
        """Whether the heading path is prepended to the text of a passage before it is encoded."""
        return self.ranker.heading_path

    @property
    def matrices(self) -> tuple[str, ...]:
        """Names of the matrices per passage: vectors in context and, with late fusion, vectors of the passage alone."""
        return (VECTORS,) if self.ranker.fusion is None else (VECTORS, CONTENT)

    def encode(self, snapshot: Snapshot, documents: Sequence[int]) -> Iterable[list[Encoded]]:
        """Yield, for each document, the vectors of its passages in context; see `DocumentEncoder.encode`."""
        graphs_and_texts = [read_nodes(snapshot, document, self.heading_path) for document in documents]
        encoded = encode_texts(self.ranker, [text for _, texts in graphs_and_texts for text in texts])
        first = 0
        for graph, texts in graphs_and_texts:
            nodes = encoded[first : first + len(texts)]
            first += len(texts)
            yield self._encode(graph, nodes)

    def sample(self, snapshot: Snapshot, document: int, passages: Sequence[int]) -> list[Encoded]:
        """The vectors of some passages of a document; see `DocumentEncoder.sample`.

        The whole document is encoded, because the vectors of a passage depend on its neighbours.
        """
        (encoded,) = self.encode(snapshot, [document])
        return [encoded[passage] for passage in passages]

    def _encode(self, graph: DocumentGraph, nodes: Sequence[Encoded]) -> list[Encoded]:
        """The vectors of the passages of a graph in context; `nodes` has the vectors of each node alone."""
        if not graph.passage_node.size:
            return []
        tokens, mask = padded(nodes, self.dimension, self.ranker.encoder.device)
        with torch.inference_mode(), computing(tokens.device, "auto"):
            in_context, _ = self.context(graph, tokens, mask)
        vectors = in_context.float().cpu().numpy()
        passages = []
        for row, node in enumerate(graph.passage_node.tolist()):
            position, (alone,) = nodes[node].position, nodes[node].matrices
            matrices = (vectors[row, position], alone) if self.ranker.fusion is not None else (vectors[row, position],)
            passages.append(Encoded(matrices, position))
        return passages


def encode_texts(ranker: SavedRanker, texts: Sequence[str]) -> list[Encoded]:
    """The vectors of each text alone, in the order of `texts`; a blank text has no vectors."""
    filled = [number for number, text in enumerate(texts) if text.strip()]
    encoded = [Encoded((np.zeros((0, ranker.encoder.dimension), np.float32),), np.zeros(0, np.int64))] * len(texts)
    for number, vectors, position in ranker.encoder.encode([texts[number] for number in filled]):
        encoded[filled[number]] = Encoded((vectors,), position)
    return encoded


def padded(nodes: Sequence[Encoded], dimension: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The vectors of nodes as one padded tensor (nodes, tokens, dimension), and its mask (nodes, tokens).

    A vector is at the position of its token. Values at other positions are 0.
    """
    width = 1 + max((int(node.position.max()) for node in nodes if node.position.size), default=0)
    tokens, mask = np.zeros((len(nodes), width, dimension), np.float32), np.zeros((len(nodes), width), bool)
    for row, node in enumerate(nodes):
        tokens[row, node.position], mask[row, node.position] = node.matrices[0], True
    return torch.from_numpy(tokens).to(device), torch.from_numpy(mask).to(device)


_ORIGIN_OF_RELATION: Mapping[str, Origin] = {
    SELF: "passage",
    OPENING: "document",
    **dict.fromkeys(("order", "order_i"), "neighbors"),
    **dict.fromkeys(("structural", "structural_i"), "sections"),
    **dict.fromkeys(("internal", "internal_i", "external", "external_i"), "references"),
}
"""The text that a message comes from, by its relation. The first passage of a document stands for the document."""


@dataclass(frozen=True, slots=True)
class LabelledShare:
    """One summand of the vectors of a passage, with its origin.

    The origin is a neighbour, through one relation, or the passage itself before the last layer.

    The shares of a passage add up to its vectors.
    """

    label: str
    """Origin of the share: `through RELATION from NEIGHBOUR`, or `as it was before the last layer`."""
    origin: Origin
    """The text that the share comes from."""
    vectors: Floats32
    """(vectors of the passage, dimension) What the share adds to each vector of the passage."""


def load_for_explanation(folder: Path) -> SavedRanker:
    """Load a ranker and switch off the scaling of its output vectors, so that vectors are sums of messages."""
    ranker = load_ranker(folder)
    if ranker.context is not None:
        ranker.context.normalize_output = False
    return ranker


def shares_of_passage(snapshot: Snapshot, document: int, passage: int, ranker: SavedRanker) -> list[LabelledShare]:
    """Divide the vectors of a passage among its neighbours, by their messages in the last layer.

    `document` is the number of the document in the snapshot, and `passage` the number of the passage in the document.
    `ranker` must have graph attention and come from `load_for_explanation`. A ranker with `residual` adds one share for
    the passage before the last layer. Returns an empty list if the passage has no tokens.
    """
    context = ranker.context
    assert context is not None
    graph, texts = read_nodes(snapshot, document, ranker.heading_path)
    target = int(graph.passage_node[passage])
    nodes = encode_texts(ranker, texts)
    if not nodes[target].position.size:
        return []
    with torch.inference_mode(), computing(ranker.encoder.device, "auto"):
        tokens, mask = padded(nodes, context.dimension, ranker.encoder.device)
        contributions = context.contributions(graph, tokens, mask, target)
        vectors, vector_mask = context(graph, tokens, mask, np.array([target]))
    matrix = vectors[0][vector_mask[0]].float().cpu().numpy()
    shares = [
        LabelledShare(
            f"through {message.relation} from {_described(graph, message.source, target)}",
            "passage" if message.source == target else _ORIGIN_OF_RELATION[message.relation],
            _plain(message.vectors),
        )
        for message in contributions
    ]
    if context.settings["residual"]:
        messages = sum((share.vectors for share in shares), np.zeros_like(matrix))
        shares.append(LabelledShare("as it was before the last layer", "passage", matrix - messages))
    if not context.settings["normalize_output"]:
        return shares
    lengths = np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    return [replace(share, vectors=share.vectors / lengths) for share in shares]


def _plain(vectors: Tensor) -> Floats32:
    """A tensor as a float32 array of the same shape."""
    array: Floats32 = vectors.float().cpu().numpy()
    return array


def _described(graph: DocumentGraph, node: int, target: int) -> str:
    """The label of `node` in the explanation of `target`: `itself`, `passage NAME` or `section NAME 'TITLE'`.

    `node` and `target` are numbers of nodes of the graph.
    """
    if node == target:
        return "itself"
    if graph.is_passage[node]:
        return f"passage {graph.names[node]}"
    return f"section {graph.names[node]} {graph.texts[node][:_SHOWN]!r}"
