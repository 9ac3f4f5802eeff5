"""Vectors of passages in the context of their documents, by graph attention, for stores and for explanations of scores.

All passages of a document are computed in one pass over its graph. The texts of nodes are those of training. The text
of a passage follows its heading path, if the ranker was trained so. The text of a section is its title. A node without
text has no tokens and sends no messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from perikope.core.arrays import Floats32
from perikope.index.reader import Snapshot
from perikope.neural.graph import DocumentGraph, read_graph
from perikope.neural.hgat import HGAT, VARIANTS
from perikope.neural.saved import SavedRanker, load_ranker
from perikope.neural.stores.store import CONTENT, VECTORS, Kind, written_passages
from perikope.neural.stores.update import Encoded
from perikope.neural.training import computing

_SHOWN = 60
"""Maximum characters of a section's title in an explanation."""


def variant_of(context: HGAT) -> str:
    """The name in the paper of the variant of graph attention, such as `NO_LB`."""
    switches = tuple(bool(context.settings[name]) for name in ("no_out", "lam", "no_self"))
    return next(name for name, switches_of_variant in VARIANTS.items() if switches_of_variant == switches)


def alpha_of(ranker: SavedRanker) -> float | None:
    """The share of the context in late fusion, from 0 to 1; None without late fusion."""
    return None if ranker.fusion is None else float(ranker.fusion.alpha.detach().clamp(0, 1))


def read_nodes(snapshot: Snapshot, document: int, heading_path: bool) -> tuple[DocumentGraph, list[str]]:
    """The graph of the document with a number, and the texts of its nodes as they are encoded."""
    graph = read_graph(snapshot, document)
    texts = list(graph.texts)
    for node, text in zip(graph.passage_node.tolist(), written_passages(snapshot, document, heading_path), strict=True):
        texts[node] = text
    return graph, texts


@dataclass(frozen=True)
class ContextSource:
    """A `DocumentEncoder` for vectors of passages in their context and, with late fusion, of the passages alone."""

    ranker: SavedRanker
    kind: Kind = "context"

    @property
    def context(self) -> HGAT:
        """The graph attention of the ranker."""
        assert self.ranker.context is not None
        return self.ranker.context

    @property
    def dimension(self) -> int:
        """Values per vector."""
        return self.context.dimension

    @property
    def heading_path(self) -> bool:
        """Whether the text of a passage follows its heading path when it is encoded."""
        return self.ranker.heading_path

    @property
    def matrices(self) -> tuple[str, ...]:
        """Names of the matrices per passage: that in context and, with late fusion, that of the passage alone."""
        return (VECTORS,) if self.ranker.fusion is None else (VECTORS, CONTENT)

    def encode(self, snapshot: Snapshot, documents: Sequence[int]) -> Iterable[list[Encoded]]:
        """The vectors of each passage in its context, per document; see `DocumentEncoder.encode`."""
        graphs_and_texts = [read_nodes(snapshot, document, self.heading_path) for document in documents]
        encoded = encode_texts(self.ranker, [text for _, texts in graphs_and_texts for text in texts])
        first = 0
        for graph, texts in graphs_and_texts:
            nodes = encoded[first : first + len(texts)]
            first += len(texts)
            yield self._encode(graph, nodes)

    def sample(self, snapshot: Snapshot, document: int, passages: Sequence[int]) -> list[Encoded]:
        """The vectors of some passages of a document; see `DocumentEncoder.sample`.

        Passages depend on their neighbours, so the whole document is encoded.
        """
        (encoded,) = self.encode(snapshot, [document])
        return [encoded[passage] for passage in passages]

    def _encode(self, graph: DocumentGraph, nodes: Sequence[Encoded]) -> list[Encoded]:
        """The vectors of the passages of a graph, given those of each node alone."""
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
    """The vectors (vectors, dimension) of each text alone; a text without words has none."""
    filled = [number for number, text in enumerate(texts) if text.strip()]
    encoded = [Encoded((np.zeros((0, ranker.encoder.dimension), np.float32),), np.zeros(0, np.int64))] * len(texts)
    for number, vectors, position in ranker.encoder.encode([texts[number] for number in filled]):
        encoded[filled[number]] = Encoded((vectors,), position)
    return encoded


def padded(nodes: Sequence[Encoded], dimension: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The vectors of nodes at their token positions (nodes, tokens, dimension), and their mask (nodes, tokens)."""
    width = 1 + max((int(node.position.max()) for node in nodes if node.position.size), default=0)
    tokens, mask = np.zeros((len(nodes), width, dimension), np.float32), np.zeros((len(nodes), width), bool)
    for row, node in enumerate(nodes):
        tokens[row, node.position], mask[row, node.position] = node.matrices[0], True
    return torch.from_numpy(tokens).to(device), torch.from_numpy(mask).to(device)


@dataclass(frozen=True, slots=True)
class LabelledShare:
    """The share of a neighbour in the vectors of a passage, through one relation; all shares add up to the vectors."""

    label: str
    vectors: Floats32
    """(vectors of the passage, dimension)"""


def load_for_explanation(folder: Path) -> SavedRanker:
    """Load a ranker whose attention does not scale its output, so that vectors are sums of messages."""
    ranker = load_ranker(folder)
    if ranker.context is not None:
        ranker.context.normalize_output = False
    return ranker


def shares_of_passage(snapshot: Snapshot, document: int, passage: int, ranker: SavedRanker) -> list[LabelledShare]:
    """The share of each neighbour in the vectors of a passage, by its messages in the last layer.

    `document` is the number of the document in the snapshot, `passage` that of the passage in the document. `ranker`
    must come from `load_for_explanation`.
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
        LabelledShare(f"through {message.relation} from {_described(graph, message.source, target)}", _plain(message.vectors))
        for message in contributions
    ]
    if context.settings["residual"]:
        messages = sum((share.vectors for share in shares), np.zeros_like(matrix))
        shares.append(LabelledShare("as it was before the last layer", matrix - messages))
    if not context.settings["normalize_output"]:
        return shares
    lengths = np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    return [LabelledShare(share.label, share.vectors / lengths) for share in shares]


def _plain(vectors: Tensor) -> Floats32:
    """A tensor as a float32 array of the same shape."""
    array: Floats32 = vectors.float().cpu().numpy()
    return array


def _described(graph: DocumentGraph, node: int, target: int) -> str:
    """What a node is called in the explanation of a target."""
    if node == target:
        return "itself"
    if graph.is_passage[node]:
        return f"passage {graph.names[node]}"
    return f"section {graph.names[node]} {graph.texts[node][:_SHOWN]!r}"
