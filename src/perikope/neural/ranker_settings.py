"""Settings of neural rankers in experiments: read from the experiment's file, checked, and hashed to a fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from perikope.evaluation.depth import Depth
from perikope.evaluation.experiment.plan import Plan, check_sets
from perikope.evaluation.experiment.plan_parts import CollectionPlan, SystemPlan
from perikope.neural.defaults import DIMENSION
from perikope.neural.devices import keeping_random_state
from perikope.neural.hgat import HGAT, LATE_FUSION, OWN_FORM
from perikope.neural.system_keys import NeuralKeys, NeuralSystemKeys
from perikope.neural.training import TrainingSettings
from perikope.search.options import SearchOptions


@dataclass(frozen=True, slots=True)
class NeuralRanker:
    """The settings of one ranker. All of them are part of its fingerprint."""

    trained: bool = True
    """Whether the ranker is trained; otherwise the encoder is used as it is."""
    dimension: int = DIMENSION
    """Dimension of token vectors; 0 keeps the hidden size of the encoder."""
    train_on: tuple[str, ...] = ()
    """Sets of topics to train on, as `collection/set`; empty to use the sets of the experiment."""
    folds: int = 0
    """Number of folds for cross-validation on the reported topics; 0 to train on `train_on` instead."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Settings of training that differ from the experiment's `[training]`."""
    variant: str = ""
    """Variant of graph attention, such as `NO_LB`; empty for a ranker without graph attention."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """Settings of graph attention that differ from the experiment's `[context]`."""
    late_fusion: bool | None = None
    """Whether the scores of the passage alone and of its context are fused; None is true for the variants in
    `LATE_FUSION` only."""
    kept: float = 1.0
    """Weight of the trained encoder when its weights are averaged with the untrained ones; 1 keeps the trained
    encoder."""
    untrained_shares: tuple[float, ...] = ()
    """Shares of the untrained encoder in a mixed score. Each share adds one system with the score
    `(1 - share) · trained + share · untrained`."""
    neighbours_learn: bool = False
    """Whether the encoder also learns from the neighbours of passages; see `ContextRanker`."""

    @property
    def is_late(self) -> bool:
        """Whether the scores of the passage alone and of its context are fused."""
        return self.variant in LATE_FUSION if self.late_fusion is None else self.late_fusion


@dataclass(frozen=True, slots=True)
class NeuralSettings:
    """The settings that all rankers of an experiment share."""

    encoder: str
    """Name or folder of the encoder."""
    train_on: tuple[str, ...] = ()
    """Sets of topics to train on, as `collection/set`."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Settings of training that differ from the defaults of `TrainingSettings`."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """Settings of graph attention that differ from the defaults in `OWN_FORM`."""
    documents: int = 0
    """Number of documents that are fetched per topic. Only their passages are ranked; 0 ranks all passages."""
    ranked_by: str = ""
    """Model whose best results are the negatives of the strategy `ranked`."""

    def training_of(self, ranker: NeuralRanker, seed: int = 1) -> TrainingSettings:
        """The complete training settings of a ranker: its own settings take precedence over the shared ones."""
        return TrainingSettings(**{**self.training, **ranker.training, "seed": seed})

    def context_of(self, ranker: NeuralRanker) -> dict[str, Any]:
        """The settings of a ranker's graph attention: its own settings take precedence over the shared ones."""
        return {**OWN_FORM, **self.context, **ranker.context}


def shared_name(name: str, share: float) -> str:
    """The name of a system in whose score the untrained encoder has a share.

    >>> shared_name("HGAT", 0.3)
    'HGAT, 0.3 untrained'
    """
    return f"{name}, {share:g} untrained"


def read_shared(keys: NeuralKeys, collections: Mapping[str, CollectionPlan]) -> NeuralSettings:
    """Read and check the settings that all rankers of an experiment share."""
    shared = NeuralSettings(keys.encoder, keys.train_on, keys.training, keys.context, keys.documents, keys.ranked_by)
    keys.check("training", lambda: shared.training_of(NeuralRanker()))
    keys.check("context", lambda: _check_attention("BASE", DIMENSION, keys.context))
    for system in keys.systems:
        check_sets(system, "train_on", system.train_on, collections)
    return shared


def read_ranker(keys: NeuralSystemKeys, shared: NeuralSettings) -> dict[str, Any]:
    """Read and check the settings of one ranker; returns fields of its `SystemPlan`.

    These are `ranker`, `seeds`, `is_random` and `derived`.
    """
    ranker = NeuralRanker(
        keys.trained, keys.dimension, keys.train_on, keys.folds, keys.training, keys.variant, keys.context, keys.late_fusion, keys.kept,
        keys.untrained_shares, keys.neighbours_learn,
    )  # fmt: skip
    if keys.folds == 1:
        raise keys.wrong("folds", "must be 0 for no folds, or at least 2")
    if any(share >= 1 for share in keys.untrained_shares):
        raise keys.wrong("untrained_shares", "must list only numbers above 0 and below 1")
    keys.check("training", lambda: shared.training_of(ranker))
    if keys.variant:
        keys.check("variant", lambda: _check_attention(keys.variant, keys.dimension or DIMENSION, shared.context_of(ranker)))
    if keys.trained and not keys.folds and not (keys.train_on or shared.train_on):
        raise keys.wrong("train_on", "is missing: name the sets of topics to train on, or set folds")
    derived = tuple(shared_name(keys.name, share) for share in keys.untrained_shares)
    return {"ranker": ranker, "seeds": keys.seeds if keys.trained else 1, "is_random": keys.trained, "derived": derived}


def _check_attention(variant: str, dimension: int, settings: Mapping[str, Any]) -> None:
    """Raise an error if graph attention cannot be made with these settings."""
    with keeping_random_state():
        HGAT.variant(variant, dimension=dimension, **settings)


_FIRST_DEPTH = Depth(200)
"""The depth that is not part of fingerprints. It was the only one when the first values were stored."""


def fingerprint(plan: Plan, system: SystemPlan) -> str:
    """A hash of all settings that the values of a ranker depend on.

    The name of the ranker and the number of its seeds are not part of it.
    """
    ranker, shared = system.ranker, plan.shared
    reported = [topics.name for topics in plan.sets]
    common: list[Any] = [
        dict(shared.training), dict(shared.context), plan.measures, reported, ranker.train_on or shared.train_on, shared.encoder,
    ]  # fmt: skip
    common += [shared.documents] if shared.documents else []
    common += [{"options": SearchOptions.of(system.options).plain()}] if system.options else []
    common += [{"k": str(plan.depth)}] if plan.depth != _FIRST_DEPTH else []
    names = (system.name, *system.derived)
    fused = [[fusion.name, other.name, *fusion.of] for name in names for fusion, other in plan.fusions_of(name)]
    return hashlib.blake2b(json.dumps([asdict(ranker), common, fused], sort_keys=True).encode(), digest_size=8).hexdigest()
