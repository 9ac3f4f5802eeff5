"""Train rankers of passages: fine-tune an encoder on triples of a query, a relevant passage and non-relevant passages.

    loss = -log exp(s(q, p⁺)) / (exp(s(q, p⁺)) + Σ exp(s(q, p⁻)))       softmax cross-entropy over one or more negatives

The optimiser is Adam, with one learning rate for the encoder, whose lower half is frozen, and one for new parameters
(Albarede et al. 2023, 5.2.3). The weights of the best epoch on validation topics are kept. Random draws depend only on
the seed and the epoch, so that an interrupted and resumed run ends with the same weights as an uninterrupted one.
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
from perikope.core.reading import read_saved_object
from perikope.evaluation.depth import depth_of
from perikope.evaluation.measures import parse_measure
from perikope.neural.devices import keeping_random_state
from perikope.neural.encoder import Encoder
from perikope.neural.encoder_weights import save_weights
from perikope.neural.similarity import similarity
from perikope.neural.triples import Texts, Topics, draw_triples, mix_evenly, sources_of

if TYPE_CHECKING:
    from perikope.neural.graph import DocumentGraph
    from perikope.neural.guard import Guard
    from perikope.neural.hgat import HGAT, LateFusion

PROGRESS = "progress.json"
LATEST, BEST = "latest", "best"
_OPTIMIZER = "optimizer.safetensors"
_PIECE = 1 << 21
"""Maximum pairs of a query and a passage token per comparison, padding included."""


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How an encoder is fine-tuned, alone or with graph attention.

    The paper trains with `encoder_rate` 3e-6, `rate` 1e-3, `schedule` constant, `strategy` mixed, one negative per
    triple, and without negatives of the batch.
    """

    epochs: int = 6
    """Maximum passes over all triples, at least 1; `patience` may end training earlier."""
    batch: int = 32
    """Triples per optimisation step, at least 1. Larger batches also give more negatives with `in_batch`."""
    strategy: str = "same_doc"
    """Where negatives come from; see `triples.draw_negatives`."""
    negatives: int = 1
    """Negatives drawn per triple, at least 1."""
    draws: int = 1
    """Triples per relevant passage in one epoch, at least 1, each with newly drawn negatives; 1000 in the paper."""
    in_batch: bool = True
    """Whether the passages of other triples of a step are negatives too, unless they are relevant. In trials they
    raised nDCG@10 by 0.06."""
    encoder_rate: float = 5e-5
    """Learning rate of the encoder, from 0 to below 1. In trials, the encoder learned less with 2e-5, and remained
    better for other collections."""
    rate: float = 1e-3
    """Learning rate of the new parameters (graph attention and α), from 0 to below 1; by default as in the paper."""
    frozen_layers: int | None = None
    """Number of the encoder's layers, from the input, that are not trained; None freezes half, as in the paper."""
    schedule: Literal["constant", "linear"] = "linear"
    """Learning rates over time: constant, or rising over the first tenth of the steps and then falling to 0."""
    heading_path: bool = True
    """Whether the heading path is prepended to the text of a passage before it is encoded."""
    measure: str = "nDCG@10"
    """Measure on validation topics that decides which epoch is best."""
    patience: int = 2
    """Epochs without a better measure on validation topics after which training stops, at least 1."""
    validation_passages: int = 20_000
    """Maximum number of passages that are ranked for the validation topics. All documents with a relevant passage are
    included, even if they have more passages; random documents fill the rest."""
    seed: int = 1
    """Decides all random draws of training: triples, their order, and dropout."""
    precision: Literal["auto", "float32"] = "auto"
    """Precision of the computation: `auto` is bfloat16 on a GPU and float32 on a CPU. Weights are always float32."""
    guard: float = 0.0
    """Weight of the term that keeps scores near those of the untrained encoder, at least 0; see `neural.guard`."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "negatives", "draws", "patience"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("encoder_rate", "rate"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{name} must be from 0 to below 1, not {getattr(self, name)}")
        if not 0 <= self.guard < math.inf:
            raise UsageError(f"guard must be at least 0, not {self.guard}")
        sources_of(self.strategy)


@dataclass(frozen=True, slots=True)
class Epoch:
    """The result of one pass over the triples."""

    number: int
    """Number of the epoch, from 0."""
    loss: float
    """Mean loss over the steps of the epoch."""
    measure: float
    """Measure on validation topics; 0 if there is no validation."""
    seconds: float
    """Duration of the epoch in seconds, validation included."""


@dataclass(slots=True)
class Progress:
    """The epochs of a training run so far, and the best one."""

    epochs: list[Epoch] = field(default_factory=list)
    best: int = -1
    """Number of the best epoch on validation topics; -1 for the untrained ranker."""
    best_measure: float = -math.inf
    untrained: float = 0.0
    """Measure of the untrained ranker on validation topics."""

    def stalled(self, patience: int) -> bool:
        """Whether none of the last `patience` epochs had a better measure than the best epoch before them."""
        return bool(self.epochs) and self.epochs[-1].number - self.best >= patience


class TrainableRanker(nn.Module):
    """A ranker that can be trained: scores passages, given by their numbers, for queries with an encoder."""

    def __init__(self, encoder: Encoder, written: Sequence[str]) -> None:
        """`written` has the text of every passage as it is encoded."""
        super().__init__()
        self.encoder, self.written = encoder, written

    def new_parameters(self) -> list[nn.Parameter]:
        """Parameters that start at random and have the learning rate `rate`.

        The projection is not among them: it starts as principal components.
        """
        return []

    def represent(self, passages: Integers) -> tuple[Tensor, Tensor]:
        """The vectors of `passages` (passages,): (passages, tokens, dimension), and their mask (passages, tokens)."""
        return self.encoder.passages([self.written[number] for number in passages.tolist()], full=False)

    def forward(self, queries: Sequence[str], passages: Integers) -> Tensor:
        """The scores (queries, passages) of `passages` (passages,) for every query."""
        vectors, mask = self.encoder.queries(queries, full=False)
        return similarity(vectors, mask, *self.represent(passages))

    def moved(self, texts: Texts, graphs: Sequence[DocumentGraph], *, heading_path: bool) -> TrainableRanker:
        """A ranker with the same weights for the passages of another collection; `graphs` has a graph per document."""
        return TrainableRanker(self.encoder, texts.written(heading_path=heading_path))

    def score_all(self, queries: Sequence[str], passages: Integers) -> Floats32:
        """The scores (queries, passages) of many passages (passages,), in batches and without gradients."""
        return score_all(self.encoder, queries, [self.written[number] for number in passages.tolist()])


class ContextRanker(TrainableRanker):
    """A ranker with graph attention over the neighbours of passages; encoder and attention are trained together.

    The standard framework compares queries with vectors in context, `sim(E_q, E_in-context)`. Late fusion adds the
    passage alone: `(1 - α) sim(E_q, E_p) + α sim(E_q, E_context)` (equations 4 and 5).
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
        """`graphs` has one graph per document of `texts`; `written` has the text of every passage as it is encoded.

        Without `neighbours_learn`, the encoder learns only from the passages that are scored. Their neighbours, which
        with two layers are ten times as many, then need no memory for a backward pass.
        """
        super().__init__(encoder, written)
        self.texts, self.graphs, self.context, self.fusion = texts, graphs, context, fusion
        self.neighbours_learn = neighbours_learn

    def moved(self, texts: Texts, graphs: Sequence[DocumentGraph], *, heading_path: bool) -> TrainableRanker:
        """A ranker with the same weights for the passages of another collection; see `TrainableRanker.moved`."""
        written = texts.written(heading_path=heading_path)
        return ContextRanker(self.encoder, written, texts, graphs, self.context, self.fusion, neighbours_learn=self.neighbours_learn)

    def new_parameters(self) -> list[nn.Parameter]:
        """The parameters of graph attention and, with late fusion, α."""
        return [*self.context.parameters(), *([] if self.fusion is None else self.fusion.parameters())]

    def forward(self, queries: Sequence[str], passages: Integers) -> Tensor:
        """The scores (queries, passages) of `passages` (passages,) for every query."""
        vectors, mask = self.encoder.queries(queries, full=False)
        return self._scores(vectors, mask, passages, similarity)

    def score_all(self, queries: Sequence[str], passages: Integers, *, documents_at_once: int = 0) -> Floats32:
        """The scores (queries, passages) of many passages (passages,), without gradients.

        `documents_at_once` is the number of documents per batch; 0 chooses it by device.
        """
        documents_at_once = documents_at_once or (32 if self.encoder.device.type == "cuda" else 16)
        documents = self.texts.document_of_passage[passages]
        scores = np.zeros((len(queries), passages.size), np.float32)
        group = np.unique(documents, return_inverse=True)[1] // documents_at_once
        with torch.inference_mode(), computing(self.encoder.device, "auto"):
            vectors, mask = self.encoder.queries(queries, full=False)
            for number in range(int(group.max()) + 1 if group.size else 0):
                of_group = np.flatnonzero(group == number)
                scores[:, of_group] = self._scores(vectors, mask, passages[of_group], compare).float().cpu().numpy()
        return scores

    def represent(self, passages: Integers) -> tuple[Tensor, Tensor]:
        """The vectors of `passages` (passages,) in context, (passages, tokens, dimension), and their mask."""
        graph, texts, targets = self._neighbourhood(passages)
        vectors, mask = self._encode(texts, targets)
        in_context: tuple[Tensor, Tensor] = self.context(graph, vectors, mask, targets)
        return in_context

    def _scores(self, queries: Tensor, query_mask: Tensor, passages: Integers, compared: Callable[..., Tensor]) -> Tensor:
        """The scores (queries, passages) of `passages` (passages,), with the MaxSim function `compared`.

        `queries` is (queries, query tokens, dimension), `query_mask` (queries, query tokens).
        """
        graph, texts, targets = self._neighbourhood(passages)
        vectors, mask = self._encode(texts, targets)
        in_context, in_context_mask = self.context(graph, vectors, mask, targets)
        context_scores = compared(queries, query_mask, in_context.float(), in_context_mask)
        if self.fusion is None:
            return context_scores
        rows = torch.from_numpy(targets).to(vectors.device)
        fused: Tensor = self.fusion(compared(queries, query_mask, vectors[rows], mask[rows]), context_scores)
        return fused

    def _encode(self, texts: Sequence[str], targets: Integers) -> tuple[Tensor, Tensor]:
        """The vectors (nodes, tokens, dimension) and mask (nodes, tokens) of nodes with these texts.

        `targets` (targets,) are the nodes that are scored. A node with an empty text has no tokens.
        """
        if self.neighbours_learn or not torch.is_grad_enabled():
            vectors, mask = self.encoder.passages(texts, full=False)
        else:
            with torch.no_grad():
                vectors, mask = self.encoder.passages(texts, full=False)
            of_targets, _ = self.encoder.passages([texts[node] for node in targets.tolist()], full=False)
            width = vectors.shape[1] - of_targets.shape[1]
            of_targets = nn.functional.pad(of_targets, (0, 0, 0, width))
            vectors = vectors.index_copy(0, torch.from_numpy(targets).to(vectors.device), of_targets)
        has_text = torch.tensor([bool(text.strip()) for text in texts], device=mask.device)
        return vectors, mask & has_text[:, None]

    def _neighbourhood(self, passages: Integers) -> tuple[DocumentGraph, list[str], Integers]:
        """The part of the graphs that `passages` (passages,) depend on.

        Returns one graph, the texts of its nodes, and the nodes of the passages (passages,).
        """
        documents, graph_of_passage = np.unique(self.texts.document_of_passage[passages], return_inverse=True)
        graphs = [self.graphs[document] for document in documents.tolist()]
        first_node = np.cumsum([0, *(graph.nodes for graph in graphs)])
        first_passage = self.texts.first_passage[documents]
        number_in_document = passages - first_passage[graph_of_passage]
        pairs = zip(graph_of_passage.tolist(), number_in_document.tolist(), strict=True)
        targets = np.array([graphs[g].passage_node[i] + first_node[g] for g, i in pairs], np.int64)
        texts: list[str] = []
        for graph, first in zip(graphs, first_passage.tolist(), strict=True):
            texts_of_graph = list(graph.texts)
            for number, node in enumerate(graph.passage_node.tolist()):
                texts_of_graph[node] = self.written[first + number]
            texts += texts_of_graph
        based = list(zip(graphs, first_node.tolist(), strict=False))
        edges = {name: np.concatenate([graph.edges[name] + base for graph, base in based], axis=1) for name in self.context.relations}
        is_needed = reached(edges, targets, int(first_node[-1]), len(self.context.layers))
        number_of = np.cumsum(is_needed) - 1
        nodes = np.flatnonzero(is_needed)
        merged = replace(
            graphs[0],
            documents=tuple(document for graph in graphs for document in graph.documents),
            names=("",) * nodes.size,
            texts=tuple(texts[node] for node in nodes.tolist()),
            is_passage=np.concatenate([graph.is_passage for graph in graphs])[nodes],
            parent=np.full(nodes.size, -1),
            edges={name: number_of[ends[:, is_needed[ends].all(axis=0)]] for name, ends in edges.items()},
        )
        return merged, list(merged.texts), number_of[targets]


def reached(edges: Mapping[str, Integers], targets: Integers, nodes: int, steps: int) -> Mask:
    """Mask (nodes,) of the nodes from which a target is at most `steps` edges away, targets included.

    `edges` has arrays (2, edges) of sources and targets by relation; `targets` is (targets,); `nodes` is their number.
    """
    pairs = np.concatenate([np.zeros((2, 0), np.int64), *edges.values()], axis=1)
    is_reached = np.zeros(nodes, bool)
    is_reached[targets] = True
    for _ in range(steps):
        is_reached[pairs[0, is_reached[pairs[1]]]] = True
    return is_reached


def triple_loss(scores: Tensor, positive: Tensor, allowed: Tensor) -> Tensor:
    """Softmax cross-entropy of the positive passage, `-log exp(s⁺) / Σ exp(s)`: the mean over triples, ().

    `scores` is (triples, passages), `positive` (triples,) the column of each positive passage, and `allowed` (triples,
    passages) true for passages in the sum.
    """
    return nn.functional.cross_entropy(scores.masked_fill(~allowed, -math.inf), positive)


def batch_of(topics: Topics, triples: Integers, in_batch: bool) -> tuple[Integers, Integers, Mask]:
    """The distinct passages (passages,) of `triples` (triples, 2 + negatives), with the arguments of `triple_loss`.

    These are the column of each triple's positive passage (triples,), and which passages each triple is compared with
    (triples, passages): its own ones and, with `in_batch`, all others that are not relevant.
    """
    passages, column = np.unique(triples[:, 1:], return_inverse=True)
    column = column.reshape(triples.shape[0], -1)
    allowed = np.full((triples.shape[0], passages.size), in_batch)
    if in_batch:
        for row, topic in enumerate(triples[:, 0].tolist()):
            allowed[row] = ~np.isin(passages, topics.relevant[topic])
    np.put_along_axis(allowed, column, True, axis=1)
    return passages, column[:, 0], allowed


class Trainer:
    """Trains a ranker epoch by epoch, and saves in a folder what is needed to resume the run or to use its result."""

    def __init__(
        self,
        ranker: TrainableRanker,
        texts: Texts,
        topics: Topics,
        validation: Validation | None,
        settings: TrainingSettings,
        folder: Path | None = None,
        on_progress: Callable[[int, int, float], None] = lambda epoch, step, loss: None,
        *,
        guard: Guard | None = None,
        collection_of_topic: Integers | None = None,
    ) -> None:
        """Prepare the training of a ranker on `topics`, or resume a run in `folder` that has the same settings.

        - `validation`: decides which epoch is best. With None, all epochs are run and the last one is kept.
        - `guard`: adds its term to the loss, with the weight `settings.guard`.
        - `collection_of_topic` (topics,): the number of each topic's collection. If it is given, collections have the
          same number of triples in each batch; see `triples.mix_evenly`.
        - `folder`: where the run is saved after each epoch; None keeps it in memory.
        - `on_progress`: called after each step with the epoch, the step and the loss.
        """
        self.ranker, self.texts, self.topics, self.validation, self.settings = ranker, texts, topics, validation, settings
        self.folder, self._on_progress = folder, on_progress
        self._guard, self._collection_of_topic = guard, collection_of_topic
        self.progress = Progress()
        self._best_weights: Mapping[str, Tensor] = {}
        encoder = ranker.encoder.float()
        encoder.freeze(settings.frozen_layers)
        new = ranker.new_parameters()
        ids_of_new = {id(parameter) for parameter in new}
        old = [parameter for parameter in ranker.parameters() if parameter.requires_grad and id(parameter) not in ids_of_new]
        groups = [{"params": old, "lr": settings.encoder_rate}, *([{"params": new, "lr": settings.rate}] if new else [])]
        self.optimizer = torch.optim.Adam(groups, fused=encoder.device.type == "cuda")
        self._rates = [group["lr"] for group in self.optimizer.param_groups]
        if folder is not None:
            files.remove_temporaries(folder)
            if (folder / PROGRESS).is_file():
                self._resume(folder)

    def run(self) -> Progress:
        """Train for all epochs, or until `patience` epochs in a row are not better than the best one.

        The ranker then has the weights of the best epoch.
        """
        settings, progress = self.settings, self.progress
        if progress.best == -1 and not progress.epochs:
            if self.validation is not None:
                progress.untrained = progress.best_measure = self.validation.measure(self.ranker)
            self._save(best=True)
        for number in range(len(progress.epochs), settings.epochs):
            if progress.stalled(settings.patience):
                break
            epoch = self._epoch(number)
            progress.epochs.append(epoch)
            better = self.validation is None or epoch.measure > progress.best_measure
            if better:
                progress.best, progress.best_measure = number, epoch.measure
            self._save(best=better)
        self._restore_best()
        return progress

    def _epoch(self, number: int) -> Epoch:
        """Train on new triples for one epoch, then measure on validation topics."""
        settings, start = self.settings, time.perf_counter()
        triples = draw_triples(
            self.texts, self.topics, settings.strategy, seed=settings.seed, epoch=number, negatives=settings.negatives, draws=settings.draws
        )
        if self._collection_of_topic is not None:
            triples = mix_evenly(triples, self._collection_of_topic[triples[:, 0]])
        steps = -(-triples.shape[0] // settings.batch)
        self.ranker.train()
        losses = []
        with keeping_random_state(self.ranker.encoder.device):
            torch.manual_seed(settings.seed * 1_000_003 + number)
            for step in range(steps):
                self._set_rates((number * steps + step) / (settings.epochs * steps))
                losses.append(self._step(triples[step * settings.batch : (step + 1) * settings.batch], number, step))
                self._on_progress(number, step, losses[-1])
        self.ranker.eval()
        measured = 0.0 if self.validation is None else self.validation.measure(self.ranker)
        return Epoch(number, math.fsum(losses) / max(len(losses), 1), measured, time.perf_counter() - start)

    def _step(self, triples: Integers, epoch: int, step: int) -> float:
        """Make one step of the optimiser on `triples` (triples, 2 + negatives), and return the loss without guard."""
        passages, positive, allowed = batch_of(self.topics, triples, self.settings.in_batch)
        device = self.ranker.encoder.device
        with computing(device, self.settings.precision):
            scores = self.ranker([self.topics.queries[topic] for topic in triples[:, 0].tolist()], passages)
        loss = triple_loss(scores.float(), torch.from_numpy(positive).to(device), torch.from_numpy(allowed).to(device))
        guarded = loss if self._guard is None else loss + self.settings.guard * self._guard.loss(epoch, step)
        self.optimizer.zero_grad(set_to_none=True)
        guarded.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_([p for group in self.optimizer.param_groups for p in group["params"]], 1.0)
        self.optimizer.step()
        return float(loss.detach())

    def _set_rates(self, done: float) -> None:
        """Set the learning rates when a share `done` of all steps, from 0 to 1, is done."""
        factor = 1.0 if self.settings.schedule == "constant" else min(done / 0.1, (1 - done) / 0.9) + 1e-3
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor

    def _save(self, *, best: bool) -> None:
        """Save weights, optimiser and progress; with `best`, also save the weights as the best ones so far.

        Without a folder, only the best weights are kept, in memory.
        """
        if self.folder is None:
            if best:
                self._best_weights = {name: value.detach().clone() for name, value in self.ranker.state_dict().items()}
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
        # The progress is written last: if its file exists, all other files do too.
        with files.replacing(self.folder / PROGRESS) as file:
            file.write(json.dumps(content, indent=1))

    def _resume(self, folder: Path) -> None:
        """Load progress, weights and optimiser of an earlier run; raises an error if it has other settings."""
        try:
            content = read_saved_object(folder / PROGRESS)
            saved, given = content["settings"], asdict(self.settings)
            differing = [name for name, value in given.items() if saved.get(name) != value and name != "patience"]
            if differing:
                names = ", ".join(f"{name} {saved.get(name)!r}" for name in differing)
                raise UsageError(f"{folder} holds a run with other settings ({names}); use these settings, or choose another folder")
            self.progress = Progress(
                [Epoch(**epoch) for epoch in content["epochs"]], content["best"], content["best_measure"], content["untrained"]
            )
            self.ranker.load_state_dict(load_file(folder / f"{LATEST}.safetensors"))
            _restore(self.optimizer, load_file(folder / _OPTIMIZER))
        except (OSError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
            why = " ".join(str(error).split())[:120]
            raise InputError(f"holds a run that cannot be resumed ({why}); remove the folder", path=folder) from None

    def _restore_best(self) -> None:
        weights = self._best_weights if self.folder is None else load_file(self.folder / f"{BEST}.safetensors")
        self.ranker.load_state_dict(weights)


@contextmanager
def computing(device: torch.device, precision: str) -> Iterator[None]:
    """A context for computations on `device`. On a CPU it changes nothing.

    On a GPU, computations are in bfloat16 if `precision` is `auto`, and attention is not computed by cuDNN. cuDNN makes
    a plan for every new shape of its input, and almost every batch has a new shape. On an H200, three epochs of graph
    attention took one minute without cuDNN. With cuDNN, they were not finished after ten minutes.
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
    """The state of an optimiser as tensors, named by the number of the parameter and the name of the value."""
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": torch.as_tensor(value).detach().cpu().contiguous()
        for number, values in state.items()
        for name, value in values.items()
    }


def _restore(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Load what `_flat` returned into an optimiser."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


@dataclass(frozen=True)
class Validation:
    """Topics that are held out of training, the passages that are ranked for them, and the measure."""

    texts: Texts
    topics: Topics
    passages: Integers
    """(passages,) Numbers of passages in `texts`."""
    name: str = "nDCG@10"
    """Name of the measure."""

    @classmethod
    def of(cls, texts: Texts, topics: Topics, settings: TrainingSettings) -> Validation:
        """Validation on the passages of all documents with a relevant passage, and of random other documents.

        Other documents are added as long as there are at most `settings.validation_passages` passages.
        """
        relevant = np.unique(texts.document_of_passage[np.concatenate([*topics.relevant])])
        rest = np.setdiff1d(np.arange(len(texts.documents)), relevant)
        order = np.concatenate([relevant, np.random.default_rng([settings.seed, 7]).permutation(rest)]).astype(np.int64)
        sizes = np.diff(texts.first_passage)[order]
        documents = np.sort(order[(np.cumsum(sizes) <= settings.validation_passages) | (np.arange(order.size) < relevant.size)])
        passages = np.concatenate([np.arange(texts.first_passage[d], texts.first_passage[d + 1]) for d in documents.tolist()])
        return cls(texts, topics, passages.astype(np.int64), settings.measure)

    def measure(self, ranker: TrainableRanker) -> float:
        """The measure of a ranker, as the mean over all topics."""
        return float(np.mean(self.measured(ranker.score_all(self.topics.queries, self.passages))))

    def measured(self, scores: Floats32, name: str = "") -> list[float]:
        """The value of a measure for each topic, given `scores` (topics, passages).

        `name` is the name of the measure; if it is empty, the measure of this validation is used.
        """
        measure = parse_measure(name or self.name)
        depth, document = depth_of([measure]), self.texts.document_of_passage[self.passages]
        values = []
        for row, judged in zip(scores, self.topics.judged, strict=True):
            order = np.argsort(-row, kind="stable")
            best = order[: depth.cut(document[order])]
            values.append(float(measure([self.texts.names[self.passages[column]] for column in best.tolist()], judged)))
        return values


@torch.inference_mode()
def score_all(encoder: Encoder, queries: Sequence[str], passages: Sequence[str], *, tokens_at_once: int = 1 << 16) -> Floats32:
    """MaxSim of every query with every passage, (queries, passages).

    `tokens_at_once` is the number of passage tokens per batch, padding included.
    """
    with computing(encoder.device, "auto"):
        vectors, mask = encoder.queries(queries, full=False)
        scores = np.zeros((len(queries), len(passages)), np.float32)
        for rows, passage_vectors, passage_mask in in_pieces(encoder, passages, tokens_at_once):
            scores[:, rows] = compare(vectors, mask, passage_vectors, passage_mask).float().cpu().numpy()
    return scores


def in_pieces(encoder: Encoder, passages: Sequence[str], tokens_at_once: int) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Encode passages in batches of at most `tokens_at_once` tokens, padding included, longest passages first.

    Yields the numbers of a batch's passages, their vectors (passages, tokens, dimension) and mask (passages, tokens).
    """
    # Sorted by characters, which is close enough to tokens and needs no second pass of the tokenizer.
    order = sorted(range(len(passages)), key=lambda row: -len(passages[row]))
    size = max(tokens_at_once // encoder.settings.passage_tokens, 1)
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        vectors, mask = encoder.passages([passages[row] for row in rows], full=False)
        yield rows, vectors, mask


def compare(queries: Tensor, query_mask: Tensor, passages: Tensor, passage_mask: Tensor) -> Tensor:
    """MaxSim of every query with every passage, (queries, passages), in batches of queries that fit into memory.

    Arguments have the shapes of those of `encoder.similarity`.
    """
    size = max(_PIECE // max(passages.shape[1] * passages.shape[0], 1), 1)
    pieces = [
        similarity(queries[start : start + size], query_mask[start : start + size], passages, passage_mask)
        for start in range(0, queries.shape[0], size)
    ]
    return torch.cat(pieces)


def interpolate(untrained: Mapping[str, Tensor], trained: Mapping[str, Tensor], weight: float) -> dict[str, Tensor]:
    """The weighted mean `(1 - w) · untrained + w · trained` of the weights of two encoders or rankers, by name.

    It keeps most of what was learned and forgets less of what the untrained encoder knew (Wortsman et al. 2022, Robust
    fine-tuning of zero-shot models). `weight` is w, from 0 to 1. Integer values are taken from `trained`.
    """
    return {
        name: (1 - weight) * untrained[name] + weight * value if value.is_floating_point() else value for name, value in trained.items()
    }


def settings_from(values: Mapping[str, Any]) -> TrainingSettings:
    """Settings from values by name, such as the options of a command.

    None stands for the default. Names that are no settings are ignored.
    """
    known = {setting.name for setting in fields(TrainingSettings)}
    return TrainingSettings(**{name: value for name, value in values.items() if name in known and value is not None})
