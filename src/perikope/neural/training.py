"""Learning to rank passages: an encoder is fine-tuned on triples of a query, a relevant passage and others.

    loss = -log exp(s(q, p⁺)) / (exp(s(q, p⁺)) + Σ exp(s(q, p⁻)))          pairwise softmax cross-entropy, over one negative or more

Adam, with one rate for the encoder, whose lower half is frozen, and one for all that is new (Albarede et al. 2023, 5.2.3). What was best on
validation topics is kept. Everything drawn depends on the seed and the epoch alone, so that a run that is stopped and resumed ends where an
unbroken one does.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from perikope.core import files
from perikope.core.arrays import Floats32, Integers, Mask
from perikope.core.errors import InputError, UsageError
from perikope.evaluation.measures import parse_measure
from perikope.neural.encoder import Encoder, keeping_random_state, save_weights, similarity
from perikope.neural.triples import Texts, Topics, draw_triples, sources_of

if TYPE_CHECKING:
    from perikope.neural.graph import DocumentGraph
    from perikope.neural.hgat import HGAT, LateFusion

PROGRESS = "progress.json"
LATEST, BEST = "latest", "best"
_OPTIMIZER = "optimizer.safetensors"
_PIECE = 1 << 21
"""Passage tokens that queries are compared with at a time, over all queries."""


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How an encoder is fine-tuned. The rates of the paper are 3e-6 and 1e-3, its negatives `mixed`, one a triple and none of the batch."""

    epochs: int = 6
    batch: int = 32
    """Triples a step."""
    strategy: str = "same_doc"
    """Where negatives come from; see `triples.draw_negatives`."""
    negatives: int = 1
    in_batch: bool = True
    """Whether the passages of the other triples of a step are negatives too, unless they are relevant."""
    encoder_rate: float = 5e-5
    rate: float = 1e-3
    """Of everything that is not the encoder's own."""
    frozen_layers: int | None = None
    """From below; half of them where not given."""
    schedule: Literal["constant", "linear"] = "linear"
    """Of the rates: the same throughout, or rising over the first tenth of the steps and then falling to 0."""
    heading_path: bool = True
    measure: str = "nDCG@10"
    patience: int = 2
    """Epochs without a better measure on validation after which training stops."""
    validation_passages: int = 20_000
    """At most so many passages are ranked for a validation topic: those of documents with anything relevant, and others drawn by chance."""
    seed: int = 1
    precision: Literal["auto", "float32"] = "auto"
    """`auto` computes in bfloat16 on a GPU; weights are float32 either way."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "negatives", "patience"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("encoder_rate", "rate"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{name} must be from 0 to below 1, not {getattr(self, name)}")
        sources_of(self.strategy)


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one pass over the triples came to."""

    number: int
    loss: float
    measure: float
    seconds: float


@dataclass(slots=True)
class Progress:
    """How far training has come."""

    epochs: list[Epoch] = field(default_factory=list)
    best: int = -1
    """The epoch that did best on validation; -1 before the first, when the untrained encoder counts."""
    best_measure: float = -math.inf
    untrained: float = 0.0

    def stalled(self, patience: int) -> bool:
        """Whether nothing has become better for so many epochs."""
        return bool(self.epochs) and self.epochs[-1].number - self.best >= patience


class TrainableRanker(nn.Module):
    """What is trained: something that scores passages, by their numbers in some texts, for queries."""

    def __init__(self, encoder: Encoder, written: Sequence[str]) -> None:
        """`written` are the passages as they are encoded."""
        super().__init__()
        self.encoder, self.written = encoder, written

    def new_parameters(self) -> list[nn.Parameter]:
        """What starts from nothing and learns at the higher rate. The projection is not: it starts as principal components."""
        return []

    def represent(self, passages: Integers) -> tuple[Tensor, Tensor]:
        """The vectors of passages, and which of them count."""
        return self.encoder.passages([self.written[number] for number in passages.tolist()], full=False)

    def forward(self, queries: Sequence[str], passages: Integers) -> Tensor:
        """The score of every passage for every query."""
        vectors, mask = self.encoder.queries(queries, full=False)
        return similarity(vectors, mask, *self.represent(passages))

    def moved(self, texts: Texts, graphs: Sequence[DocumentGraph], *, heading_path: bool) -> TrainableRanker:
        """The same ranker, with the same weights, for the passages of another collection."""
        return TrainableRanker(self.encoder, texts.written(heading_path=heading_path))

    def score_all(self, queries: Sequence[str], passages: Integers) -> Floats32:
        """The same for many passages, without gradients, some at a time."""
        return score_all(self.encoder, queries, [self.written[number] for number in passages.tolist()])


class ContextRanker(TrainableRanker):
    """Passages as graph attention sees them among their neighbours, encoder and attention trained together.

    The standard framework compares queries with what comes out, `sim(E_q, E_in-context)`; late fusion mixes that with the passage alone,
    `(1 - α) sim(E_q, E_p) + α sim(E_q, E_context)` (equations 4 and 5).
    """

    def __init__(
        self,
        encoder: Encoder,
        written: Sequence[str],
        texts: Texts,
        graphs: Sequence[DocumentGraph],
        context: HGAT,
        fusion: LateFusion | None = None,
        *,
        neighbours_learn: bool = True,
    ) -> None:
        """`graphs` has the graph of each document of the texts.

        Without `neighbours_learn` the encoder learns from the passages that are scored and not from their neighbours, who in two layers
        are ten times as many: nothing has to be kept of these for a backward pass.
        """
        super().__init__(encoder, written)
        self.texts, self.graphs, self.context, self.fusion = texts, graphs, context, fusion
        self.neighbours_learn = neighbours_learn

    def moved(self, texts: Texts, graphs: Sequence[DocumentGraph], *, heading_path: bool) -> TrainableRanker:
        """The same ranker, with the same weights, for the passages of another collection."""
        written = texts.written(heading_path=heading_path)
        return ContextRanker(self.encoder, written, texts, graphs, self.context, self.fusion, neighbours_learn=self.neighbours_learn)

    def new_parameters(self) -> list[nn.Parameter]:
        """Of the attention, and α."""
        return [*self.context.parameters(), *([] if self.fusion is None else self.fusion.parameters())]

    def forward(self, queries: Sequence[str], passages: Integers) -> Tensor:
        """The score of every passage for every query."""
        vectors, mask = self.encoder.queries(queries, full=False)
        return self._scores(vectors, mask, passages, similarity)

    def score_all(self, queries: Sequence[str], passages: Integers, *, documents_at_once: int = 0) -> Floats32:
        """The same for many passages, without gradients, some documents at a time."""
        documents_at_once = documents_at_once or (32 if self.encoder.device.type == "cuda" else 16)
        documents = self.texts.document_of_passage[passages]
        scores = np.zeros((len(queries), passages.size), np.float32)
        group = np.unique(documents, return_inverse=True)[1] // documents_at_once
        with torch.inference_mode(), computing(self.encoder.device, "auto"):
            vectors, mask = self.encoder.queries(queries, full=False)
            for number in range(int(group.max()) + 1 if group.size else 0):
                own = np.flatnonzero(group == number)
                scores[:, own] = self._scores(vectors, mask, passages[own], compare).float().cpu().numpy()
        return scores

    def represent(self, passages: Integers) -> tuple[Tensor, Tensor]:
        """The vectors of passages in their context, and which of them count."""
        graph, texts, targets = self._neighbourhood(passages)
        vectors, mask = self._encode(texts, targets)
        found: tuple[Tensor, Tensor] = self.context(graph, vectors, mask, targets)
        return found

    def _scores(self, queries: Tensor, query_mask: Tensor, passages: Integers, compared: Callable[..., Tensor]) -> Tensor:
        graph, texts, targets = self._neighbourhood(passages)
        vectors, mask = self._encode(texts, targets)
        inside, inside_mask = self.context(graph, vectors, mask, targets)
        score = compared(queries, query_mask, inside.float(), inside_mask)
        if self.fusion is None:
            return score
        rows = torch.from_numpy(targets).to(vectors.device)
        found: Tensor = self.fusion(compared(queries, query_mask, vectors[rows], mask[rows]), score)
        return found

    def _encode(self, texts: Sequence[str], targets: Integers) -> tuple[Tensor, Tensor]:
        """The tokens of nodes; a section without a title has none."""
        if self.neighbours_learn or not torch.is_grad_enabled():
            vectors, mask = self.encoder.passages(texts, full=False)
        else:
            with torch.no_grad():
                vectors, mask = self.encoder.passages(texts, full=False)
            own, _ = self.encoder.passages([texts[node] for node in targets.tolist()], full=False)
            width = vectors.shape[1] - own.shape[1]
            vectors = vectors.index_copy(0, torch.from_numpy(targets).to(vectors.device), nn.functional.pad(own, (0, 0, 0, width)))
        there = torch.tensor([bool(text.strip()) for text in texts], device=mask.device)
        return vectors, mask & there[:, None]

    def _neighbourhood(self, passages: Integers) -> tuple[DocumentGraph, list[str], Integers]:
        """The graph around passages, as far as messages come from; the texts of its nodes, and which nodes the passages are."""
        documents, place = np.unique(self.texts.document_of_passage[passages], return_inverse=True)
        graphs = [self.graphs[document] for document in documents.tolist()]
        first_node = np.cumsum([0, *(graph.nodes for graph in graphs)])
        first_passage = self.texts.first_passage[documents]
        inside = passages - first_passage[place]
        targets = np.array(
            [graphs[g].passage_node[i] + first_node[g] for g, i in zip(place.tolist(), inside.tolist(), strict=True)], np.int64
        )
        texts: list[str] = []
        for graph, first in zip(graphs, first_passage.tolist(), strict=True):
            own = list(graph.texts)
            for number, node in enumerate(graph.passage_node.tolist()):
                own[node] = self.written[first + number]
            texts += own
        based = list(zip(graphs, first_node.tolist(), strict=False))
        edges = {name: np.concatenate([graph.edges[name] + base for graph, base in based], axis=1) for name in self.context.relations}
        kept = reached(edges, targets, int(first_node[-1]), len(self.context.layers))
        number_of = np.cumsum(kept) - 1
        nodes = np.flatnonzero(kept)
        merged = replace(
            graphs[0],
            documents=tuple(document for graph in graphs for document in graph.documents),
            names=("",) * nodes.size,
            texts=tuple(texts[node] for node in nodes.tolist()),
            is_passage=np.concatenate([graph.is_passage for graph in graphs])[nodes],
            parent=np.full(nodes.size, -1),
            edges={name: number_of[pairs[:, kept[pairs].all(axis=0)]] for name, pairs in edges.items()},
        )
        return merged, list(merged.texts), number_of[targets]


def reached(edges: Mapping[str, Integers], targets: Integers, nodes: int, steps: int) -> Mask:
    """Which nodes have something to say to the targets, in so many steps along the edges."""
    pairs = np.concatenate([np.zeros((2, 0), np.int64), *edges.values()], axis=1)
    kept = np.zeros(nodes, bool)
    kept[targets] = True
    for _ in range(steps):
        kept[pairs[0, kept[pairs[1]]]] = True
    return kept


def triple_loss(scores: Tensor, positive: Tensor, allowed: Tensor) -> Tensor:
    """Softmax cross-entropy of the positive among what is allowed, `-log exp(s⁺) / Σ exp(s)`; a row a triple."""
    return nn.functional.cross_entropy(scores.masked_fill(~allowed, -math.inf), positive)


def batch_of(topics: Topics, triples: Integers, in_batch: bool) -> tuple[Integers, Integers, Mask]:
    """The distinct passages of some triples, where among them each triple's positive stands, and which each is compared with."""
    passages, place = np.unique(triples[:, 1:], return_inverse=True)
    place = place.reshape(triples.shape[0], -1)
    allowed = np.full((triples.shape[0], passages.size), in_batch)
    if in_batch:
        for row, topic in enumerate(triples[:, 0].tolist()):
            allowed[row] = ~np.isin(passages, topics.relevant[topic])
    np.put_along_axis(allowed, place, True, axis=1)
    return passages, place[:, 0], allowed


class Trainer:
    """Trains a ranker on topics of some texts, epoch by epoch, and keeps in a folder what is needed to go on or to use it."""

    def __init__(
        self,
        ranker: TrainableRanker,
        texts: Texts,
        topics: Topics,
        validation: Validation | None,
        settings: TrainingSettings,
        folder: Path | None = None,
        on_progress: Callable[[int, int, float], None] = lambda epoch, step, loss: None,
    ) -> None:
        """Resumes where `folder` holds a run with the same settings; `on_progress` hears epoch, step and loss.

        Without validation nothing is chosen: all epochs are run, and the last is kept.
        """
        self.ranker, self.texts, self.topics, self.validation, self.settings = ranker, texts, topics, validation, settings
        self.folder, self._on_progress = folder, on_progress
        self.progress = Progress()
        self._kept: Mapping[str, Tensor] = {}
        encoder = ranker.encoder.float()
        encoder.freeze(settings.frozen_layers)
        new = ranker.new_parameters()
        fresh = {id(parameter) for parameter in new}
        old = [parameter for parameter in ranker.parameters() if parameter.requires_grad and id(parameter) not in fresh]
        groups = [{"params": old, "lr": settings.encoder_rate}, *([{"params": new, "lr": settings.rate}] if new else [])]
        self.optimizer = torch.optim.Adam(groups, fused=encoder.device.type == "cuda")
        self._rates = [group["lr"] for group in self.optimizer.param_groups]
        if folder is not None:
            files.remove_temporaries(folder)
            if (folder / PROGRESS).is_file():
                self._resume(folder)

    def run(self) -> Progress:
        """Train until the epochs are done or nothing becomes better; the ranker then is as it was best."""
        settings, progress = self.settings, self.progress
        if progress.best == -1 and not progress.epochs:
            if self.validation is not None:
                progress.untrained = progress.best_measure = self.validation.measure(self.ranker)
            self._save(best=True)
        for number in range(len(progress.epochs), settings.epochs):
            if progress.stalled(settings.patience):
                break
            done = self._epoch(number)
            progress.epochs.append(done)
            better = self.validation is None or done.measure > progress.best_measure
            if better:
                progress.best, progress.best_measure = number, done.measure
            self._save(best=better)
        self._restore_best()
        return progress

    def _epoch(self, number: int) -> Epoch:
        settings, start = self.settings, time.perf_counter()
        triples = draw_triples(self.texts, self.topics, settings.strategy, seed=settings.seed, epoch=number, negatives=settings.negatives)
        steps = -(-triples.shape[0] // settings.batch)
        self.ranker.train()
        losses = []
        with keeping_random_state(self.ranker.encoder.device):
            torch.manual_seed(settings.seed * 1_000_003 + number)
            for step in range(steps):
                self._set_rates((number * steps + step) / (settings.epochs * steps))
                losses.append(self._step(triples[step * settings.batch : (step + 1) * settings.batch]))
                self._on_progress(number, step, losses[-1])
        self.ranker.eval()
        measured = 0.0 if self.validation is None else self.validation.measure(self.ranker)
        return Epoch(number, math.fsum(losses) / max(len(losses), 1), measured, time.perf_counter() - start)

    def _step(self, triples: Integers) -> float:
        passages, positive, allowed = batch_of(self.topics, triples, self.settings.in_batch)
        device = self.ranker.encoder.device
        with computing(device, self.settings.precision):
            scores = self.ranker([self.topics.queries[topic] for topic in triples[:, 0].tolist()], passages)
        loss = triple_loss(scores.float(), torch.from_numpy(positive).to(device), torch.from_numpy(allowed).to(device))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_([p for group in self.optimizer.param_groups for p in group["params"]], 1.0)
        self.optimizer.step()
        return float(loss.detach())

    def _set_rates(self, done: float) -> None:
        factor = 1.0 if self.settings.schedule == "constant" else min(done / 0.1, (1 - done) / 0.9) + 1e-3
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor

    def _save(self, *, best: bool) -> None:
        if self.folder is None:
            if best:
                self._kept = {name: value.detach().clone() for name, value in self.ranker.state_dict().items()}
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().cpu().contiguous() for name, value in self.ranker.state_dict().items()}
        for name in (LATEST, *([BEST] if best else [])):
            save_weights(weights, self.folder / f"{name}.safetensors")
        save_weights(_flat(self.optimizer), self.folder / _OPTIMIZER)
        content = {
            "settings": asdict(self.settings),
            "untrained": self.progress.untrained,
            "best": self.progress.best,
            "best_measure": self.progress.best_measure,
            "epochs": [asdict(epoch) for epoch in self.progress.epochs],
        }
        # Last: what it names is there by then.
        with files.replacing(self.folder / PROGRESS) as file:
            file.write(json.dumps(content, indent=1))

    def _resume(self, folder: Path) -> None:
        try:
            content = json.loads((folder / PROGRESS).read_text("utf-8"))
            own, given = content["settings"], asdict(self.settings)
            differing = [name for name, value in given.items() if own.get(name) != value and name != "patience"]
            if differing:
                names = ", ".join(f"{name} {own.get(name)!r}" for name in differing)
                raise UsageError(f"{folder} holds a run with other settings ({names}); go on with these, or choose another folder")
            self.progress = Progress(
                [Epoch(**epoch) for epoch in content["epochs"]], content["best"], content["best_measure"], content["untrained"]
            )
            self.ranker.load_state_dict(load_file(folder / f"{LATEST}.safetensors"))
            _restore(self.optimizer, load_file(folder / _OPTIMIZER))
        except (OSError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
            raise InputError(f"holds a run that cannot be resumed ({' '.join(str(error).split())[:120]}); remove it", path=folder) from None

    def _restore_best(self) -> None:
        kept = self._kept if self.folder is None else load_file(self.folder / f"{BEST}.safetensors")
        self.ranker.load_state_dict(kept)


@contextmanager
def computing(device: torch.device, precision: str) -> Iterator[None]:
    """How is computed on a GPU: in bfloat16 where nothing else is asked for, and without cuDNN's attention.

    That one plans anew for every shape, and here almost every batch has another: on an H200, three epochs of graph attention did not end in
    ten minutes with it, and took one without.
    """
    if device.type != "cuda":
        yield
        return
    with (
        sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]),
        torch.autocast("cuda", torch.bfloat16, enabled=precision == "auto"),
    ):
        yield


def _flat(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimizer as tensors by name."""
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": torch.as_tensor(value).detach().cpu().contiguous()
        for number, own in state.items()
        for name, value in own.items()
    }


def _restore(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


@dataclass(frozen=True)
class Validation:
    """Topics that are not learned from, the passages that are ranked for them, and the measure."""

    texts: Texts
    topics: Topics
    passages: Integers
    name: str = "nDCG@10"

    @classmethod
    def of(cls, texts: Texts, topics: Topics, settings: TrainingSettings) -> Validation:
        """With as many passages as the settings allow: whole documents, first those with anything relevant."""
        wanted = np.unique(texts.document_of_passage[np.concatenate([*topics.relevant])])
        rest = np.setdiff1d(np.arange(len(texts.documents)), wanted)
        order = np.concatenate([wanted, np.random.default_rng([settings.seed, 7]).permutation(rest)]).astype(np.int64)
        sizes = np.diff(texts.first_passage)[order]
        kept = np.sort(order[(np.cumsum(sizes) <= settings.validation_passages) | (np.arange(order.size) < wanted.size)])
        passages = np.concatenate([np.arange(texts.first_passage[d], texts.first_passage[d + 1]) for d in kept.tolist()])
        return cls(texts, topics, passages.astype(np.int64), settings.measure)

    def measure(self, ranker: TrainableRanker) -> float:
        """The mean over all topics."""
        return float(np.mean(self.measured(ranker.score_all(self.topics.queries, self.passages))))

    def measured(self, scores: Floats32, name: str = "") -> list[float]:
        """The measure of each topic, by the score of every passage."""
        measure = parse_measure(name or self.name)
        found = []
        for row, judged in zip(scores, self.topics.judged, strict=True):
            best = np.argsort(-row, kind="stable")[:1000]
            found.append(float(measure([self.texts.names[self.passages[place]] for place in best.tolist()], judged)))
        return found


@torch.inference_mode()
def score_all(encoder: Encoder, queries: Sequence[str], passages: Sequence[str], *, tokens_at_once: int = 1 << 16) -> Floats32:
    """MaxSim of every query with every passage, some passages at a time."""
    with computing(encoder.device, "auto"):
        vectors, mask = encoder.queries(queries, full=False)
        scores = np.zeros((len(queries), len(passages)), np.float32)
        for rows, own, counted in in_pieces(encoder, passages, tokens_at_once):
            scores[:, rows] = compare(vectors, mask, own, counted).float().cpu().numpy()
    return scores


def in_pieces(encoder: Encoder, passages: Sequence[str], tokens_at_once: int) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Passages by length, as many at a time as have so many tokens with their padding: their numbers, vectors and which of them count."""
    # Characters tell the order well enough, and need no second pass of the tokenizer.
    order = sorted(range(len(passages)), key=lambda row: -len(passages[row]))
    size = max(tokens_at_once // encoder.settings.passage_tokens, 1)
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        vectors, mask = encoder.passages([passages[row] for row in rows], full=False)
        yield rows, vectors, mask


def compare(queries: Tensor, query_mask: Tensor, passages: Tensor, passage_mask: Tensor) -> Tensor:
    """MaxSim of many queries with many passages: as `similarity`, in pieces that fit the memory."""
    size = max(_PIECE // max(passages.shape[1] * passages.shape[0], 1), 1)
    pieces = [
        similarity(queries[start : start + size], query_mask[start : start + size], passages, passage_mask)
        for start in range(0, queries.shape[0], size)
    ]
    return torch.cat(pieces)


def interpolate(untrained: Mapping[str, Tensor], trained: Mapping[str, Tensor], weight: float) -> dict[str, Tensor]:
    """Weights between those of two encoders, `(1 - w) · untrained + w · trained`: what was learned, with less of what was known forgotten.

    (Wortsman et al. 2022, Robust fine-tuning of zero-shot models)
    """
    return {
        name: (1 - weight) * untrained[name] + weight * value if value.is_floating_point() else value for name, value in trained.items()
    }


def settings_from(values: Mapping[str, Any]) -> TrainingSettings:
    """Settings by name, as a command line or a file gives them; None leaves the default."""
    known = {one.name for one in fields(TrainingSettings)}
    return TrainingSettings(**{name: value for name, value in values.items() if name in known and value is not None})
