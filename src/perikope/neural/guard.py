"""Guard a ranker against forgetting while it is trained on one collection.

Training on the topics of one collection makes a ranker worse on others, sometimes far worse than the untrained encoder.
A guard limits this in two ways.

    loss = loss of the triples + w · KL(softmax s₀ ‖ softmax s)       scores s, scores s₀ of the untrained encoder

The second term is computed on self-made topics (`self_made`) and on texts made of words (`word_texts`), which no
judgement is about. On these texts the ranker learns to score as the untrained encoder does (Li and Hoiem 2016, Learning
without forgetting). The topics of the training are not in this term, so it hardly limits what is learned from them.

After training, the weights are interpolated with those before it (Wortsman et al. 2022, Robust fine-tuning of zero-shot
models), if the ranker still loses more than it may on topics that are measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from perikope.core.arrays import Integers
from perikope.neural.collection import Collection
from perikope.neural.self_made import LEARNED, MEASURED, MEASURED_PASSAGES, self_made
from perikope.neural.training import ContextRanker, TrainableRanker, TrainingSettings, Validation, computing, interpolate
from perikope.neural.triples import Topics
from perikope.neural.word_texts import of_words

WORDS = "words"
"""Name of the texts made of words in `guarding_collections`."""
STRENGTH = 2.0
"""Default weight of the term in the loss."""
TOLERANCE = 0.03
"""Default loss, in units of the measure, that a guarded ranker may have on each measured set of topics."""
_TOPICS = 8
"""Topics per step. Each brings its own passage, one of the same document and one of any document."""
SHARES = tuple(round(1 - 0.1 * step, 1) for step in range(10))
"""Shares of the trained weights that are tried, largest first."""


class Guard:
    """The term of the loss that keeps a ranker near the untrained encoder on guarding collections."""

    def __init__(self, ranker: TrainableRanker, collections: Iterable[Collection], settings: TrainingSettings) -> None:
        """`ranker` is not trained yet. `collections` guard it; they take turns, one per step."""
        self._seed = settings.seed
        self._precision = settings.precision
        untrained = ranker.encoder.copied().float()
        untrained.requires_grad_(False)
        self._sources = [_Source.of(ranker, untrained, collection, settings.heading_path) for collection in collections]

    def loss(self, epoch: int, step: int) -> Tensor:
        """The Kullback-Leibler divergence of trained from untrained scores for some topics: the mean over topics, ().

        Topics and passages depend only on the seed, `epoch` and `step`.
        """
        source = self._sources[step % len(self._sources)]
        generator = np.random.default_rng([self._seed, 23, epoch, step])
        queries, passages = source.draw(generator)
        with computing(source.trained.encoder.device, self._precision):
            with torch.no_grad():
                untrained = source.untrained(queries, passages).float()
            trained = source.trained(queries, passages).float()
        return divergence(trained, untrained)


@dataclass(frozen=True)
class _Source:
    """A guarding collection, and the trained and untrained ranker of its passages."""

    collection: Collection
    topics: Topics
    trained: TrainableRanker
    untrained: TrainableRanker

    @classmethod
    def of(cls, ranker: TrainableRanker, untrained: nn.Module, collection: Collection, heading_path: bool) -> _Source:
        """The source of a guarding collection; `untrained` is the encoder before training."""
        trained = ranker.moved(collection.texts, collection.graphs, heading_path=heading_path)
        return cls(collection, collection.topics[LEARNED], trained, TrainableRanker(untrained, trained.written))  # type: ignore[arg-type]

    def draw(self, generator: np.random.Generator) -> tuple[list[str], Integers]:
        """Some queries, and the distinct passages (passages,) that are compared with all of them."""
        texts, topics = self.collection.texts, self.topics
        rows = generator.choice(len(topics), min(_TOPICS, len(topics)), replace=False).tolist()
        own = np.array([int(generator.choice(topics.relevant[row])) for row in rows], np.int64)
        document = texts.document_of_passage[own]
        beside = generator.integers(texts.first_passage[document], texts.first_passage[document + 1])
        anywhere = generator.integers(len(texts.names), size=len(rows))
        return [topics.queries[row] for row in rows], np.unique(np.concatenate([own, beside, anywhere]))


def divergence(trained: Tensor, untrained: Tensor) -> Tensor:
    """`KL(softmax untrained ‖ softmax trained)` over passages, as the mean over queries, ().

    Both arguments are scores (queries, passages).
    """
    return nn.functional.kl_div(
        torch.log_softmax(trained, dim=1), torch.log_softmax(untrained, dim=1), log_target=True, reduction="batchmean"
    )


def guarding_collections(ranker: TrainableRanker, collections: Mapping[str, Collection], seed: int) -> dict[str, Collection]:
    """Collections that guard a training: self-made topics of each of `collections`, under its name, and `WORDS`.

    A collection without sentences gives none. Graphs are needed if the ranker has graph attention. `seed` is that of
    the words.
    """
    made: dict[str, Collection | None] = {name: self_made(collection) for name, collection in collections.items()}
    made[WORDS] = of_words(ranker.encoder, seed)
    return {name: collection for name, collection in made.items() if collection is not None and len(collection.topics[LEARNED])}


@dataclass(frozen=True)
class Measured:
    """A set of topics on which the loss by training is measured."""

    name: str
    collection: Collection
    validation: Validation

    @classmethod
    def guarding(cls, name: str, collection: Collection, settings: TrainingSettings) -> Measured:
        """The topics `MEASURED` of a guarding collection."""
        few = replace(settings, validation_passages=MEASURED_PASSAGES)
        return cls(name, collection, Validation.of(collection.texts, collection.topics[MEASURED], few))

    def measure(self, ranker: TrainableRanker, heading_path: bool) -> float:
        """The measure of a ranker, as the mean over topics."""
        moved = ranker.moved(self.collection.texts, self.collection.graphs, heading_path=heading_path)
        moved.eval()
        return self.validation.measure(moved)


@dataclass(frozen=True, slots=True)
class Kept:
    """The share of the trained weights that was kept, and the measures of the sets of topics, in their order."""

    share: float
    untrained: tuple[float, ...]
    trained: tuple[float, ...]
    """With all trained weights."""
    kept: tuple[float, ...]
    """With the share of them."""

    @property
    def lost(self) -> float:
        """The largest loss over all sets of topics; negative if all of them gained."""
        return max((before - after for before, after in zip(self.untrained, self.kept, strict=True)), default=0.0)


def keep_share(
    ranker: TrainableRanker, before: Mapping[str, Tensor], measured: Sequence[Measured], tolerance: float, heading_path: bool
) -> Kept:
    """Give a ranker the largest share of its trained weights with which no set of topics loses more than `tolerance`.

    `before` has the weights before training. If every share loses more, the smallest one is used.
    """
    after = {name: value.detach().clone() for name, value in ranker.state_dict().items()}

    def measures(share: float) -> tuple[float, ...]:
        set_share(ranker, before, after, share)
        return tuple(topics.measure(ranker, heading_path) for topics in measured)

    untrained, trained = measures(0.0), measures(1.0)
    found = Kept(1.0, untrained, trained, trained)
    for share in SHARES[1:]:
        if found.lost <= tolerance:
            break
        found = Kept(share, untrained, trained, measures(share))
    return found


def set_share(ranker: TrainableRanker, before: Mapping[str, Tensor], after: Mapping[str, Tensor], share: float) -> None:
    """Set the weights of a ranker to a share of its training: 0 for the weights `before`, 1 for those `after`.

    Graph attention takes part if it has a residual, because its messages are then zero before training. Other attention
    is random before training. It stays as trained, unless the share is 0.
    """
    weights = interpolate(before, after, share)
    if share and isinstance(ranker, ContextRanker) and not ranker.context.settings["residual"]:
        weights |= {name: value for name, value in after.items() if not name.startswith("encoder.")}
    ranker.load_state_dict(weights)
