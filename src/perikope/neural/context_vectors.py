"""Passages as graph attention sees them in their documents: for a store, and for the explanation of a score.

All passages of a document are computed in one pass over its graph. The texts of nodes are as in training: a passage behind the titles above
it, where the ranker was trained so, a section its title, and what has no text says nothing.
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
"""Characters of a title."""


def variant_of(context: HGAT) -> str:
    """The name of a variant in the paper."""
    switches = tuple(bool(context.settings[name]) for name in ("no_out", "lam", "no_self"))
    return next(name for name, own in VARIANTS.items() if own == switches)


def alpha_of(ranker: SavedRanker) -> float | None:
    """The share of the context in late fusion; None where there is none."""
    return None if ranker.fusion is None else float(ranker.fusion.alpha.detach().clamp(0, 1))


def read_nodes(snapshot: Snapshot, document: int, heading_path: bool) -> tuple[DocumentGraph, list[str]]:
    """The graph of a document, and the texts of its nodes as they are encoded."""
    graph = read_graph(snapshot, document)
    texts = list(graph.texts)
    for node, text in zip(graph.passage_node.tolist(), written_passages(snapshot, document, heading_path), strict=True):
        texts[node] = text
    return graph, texts


@dataclass(frozen=True)
class ContextSource:
    """The vectors of passages in their context, and in late fusion those of the passages alone."""

    ranker: SavedRanker
    kind: Kind = "context"

    @property
    def context(self) -> HGAT:
        """The graph attention."""
        assert self.ranker.context is not None
        return self.ranker.context

    @property
    def dimension(self) -> int:
        """How many values a vector has."""
        return self.context.dimension

    @property
    def heading_path(self) -> bool:
        """Whether passages are encoded behind the titles above them."""
        return self.ranker.heading_path

    @property
    def matrices(self) -> tuple[str, ...]:
        """Those in context, and of late fusion those of the passage alone."""
        return (VECTORS,) if self.ranker.fusion is None else (VECTORS, CONTENT)

    def encode(self, snapshot: Snapshot, documents: Sequence[int]) -> Iterable[list[Encoded]]:
        """See `Source`."""
        read = [read_nodes(snapshot, document, self.heading_path) for document in documents]
        tokens_of_text = encode_texts(self.ranker, [text for _, texts in read for text in texts])
        first = 0
        for graph, texts in read:
            own = tokens_of_text[first : first + len(texts)]
            first += len(texts)
            yield self._encode(graph, own)

    def sample(self, snapshot: Snapshot, document: int, passages: Sequence[int]) -> list[Encoded]:
        """See `Source`; a passage needs its neighbours, so all are computed."""
        (found,) = self.encode(snapshot, [document])
        return [found[passage] for passage in passages]

    def _encode(self, graph: DocumentGraph, nodes: Sequence[Encoded]) -> list[Encoded]:
        if not graph.passage_node.size:
            return []
        tokens, mask = padded(nodes, self.dimension, self.ranker.encoder.device)
        with torch.inference_mode(), computing(tokens.device, "auto"):
            inside, _ = self.context(graph, tokens, mask)
        seen = inside.float().cpu().numpy()
        found = []
        for row, node in enumerate(graph.passage_node.tolist()):
            position, (alone,) = nodes[node].position, nodes[node].matrices
            matrices = (seen[row, position], alone) if self.ranker.fusion is not None else (seen[row, position],)
            found.append(Encoded(matrices, position))
        return found


def encode_texts(ranker: SavedRanker, texts: Sequence[str]) -> list[Encoded]:
    """The tokens of nodes; what has no text has none."""
    there = [number for number, text in enumerate(texts) if text.strip()]
    found = [Encoded((np.zeros((0, ranker.encoder.dimension), np.float32),), np.zeros(0, np.int64))] * len(texts)
    for number, vectors, position in ranker.encoder.encode([texts[number] for number in there]):
        found[there[number]] = Encoded((vectors,), position)
    return found


def padded(nodes: Sequence[Encoded], dimension: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Tokens at their places in their texts, (nodes, tokens, dimension), and which places have one."""
    width = 1 + max((int(node.position.max()) for node in nodes if node.position.size), default=0)
    tokens, mask = np.zeros((len(nodes), width, dimension), np.float32), np.zeros((len(nodes), width), bool)
    for row, node in enumerate(nodes):
        tokens[row, node.position], mask[row, node.position] = node.matrices[0], True
    return torch.from_numpy(tokens).to(device), torch.from_numpy(mask).to(device)


@dataclass(frozen=True, slots=True)
class Part:
    """What one neighbour gave to the vectors of a passage, through one relation; all parts add up to the vectors."""

    label: str
    vectors: Floats32
    """A row a token of the passage that counts."""


def load_for_explanation(folder: Path) -> SavedRanker:
    """A ranker whose attention gives vectors before their length is made 1, which are the sums of what neighbours say."""
    ranker = load_ranker(folder)
    if ranker.context is not None:
        ranker.context.normalize_output = False
    return ranker


def parts_of_passage(snapshot: Snapshot, document: int, passage: int, ranker: SavedRanker) -> list[Part]:
    """Who said what to a passage in the last layer, computed anew with a ranker that was loaded for it."""
    context = ranker.context
    assert context is not None
    graph, texts = read_nodes(snapshot, document, ranker.heading_path)
    target = int(graph.passage_node[passage])
    nodes = encode_texts(ranker, texts)
    if not nodes[target].position.size:
        return []
    with torch.inference_mode(), computing(ranker.encoder.device, "auto"):
        tokens, mask = padded(nodes, context.dimension, ranker.encoder.device)
        said = context.contributions(graph, tokens, mask, target)
        whole, own = context(graph, tokens, mask, np.array([target]))
    matrix = whole[0][own[0]].float().cpu().numpy()
    found = [Part(f"through {one.relation} from {_described(graph, one.source, target)}", _plain(one.vectors)) for one in said]
    if context.settings["residual"]:
        heard = sum((part.vectors for part in found), np.zeros_like(matrix))
        found.append(Part("as it was before the last layer", matrix - heard))
    if not context.settings["normalize_output"]:
        return found
    lengths = np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    return [Part(part.label, part.vectors / lengths) for part in found]


def _plain(vectors: Tensor) -> Floats32:
    found: Floats32 = vectors.float().cpu().numpy()
    return found


def _described(graph: DocumentGraph, node: int, target: int) -> str:
    if node == target:
        return "itself"
    if graph.is_passage[node]:
        return f"passage {graph.names[node]}"
    return f"section {graph.names[node]} {graph.texts[node][:_SHOWN]!r}"
