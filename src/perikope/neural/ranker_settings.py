"""Settings of neural rankers in experiments, read from the keys of a file and checked, and a fingerprint of these."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from perikope.evaluation.experiment.plan import Plan, check_sets
from perikope.evaluation.experiment.plan_parts import CollectionPlan, SystemPlan
from perikope.neural.defaults import DIMENSION
from perikope.neural.encoder import keeping_random_state
from perikope.neural.hgat import HGAT, LATE_FUSION, OWN_FORM
from perikope.neural.system_keys import K, NeuralKeys, NeuralSystemKeys
from perikope.neural.training import TrainingSettings


@dataclass(frozen=True, slots=True)
class NeuralRanker:
    """The settings of one ranker. Every field is part of the fingerprint of its values."""

    trained: bool = True
    dimension: int = DIMENSION
    train_on: tuple[str, ...] = ()
    """Sets of topics as `collection/set`; empty for those of the experiment."""
    folds: int = 0
    """Folds of the reported topics, by relevant documents; 0 to train on other topics."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Settings of training that differ from those of the experiment."""
    variant: str = ""
    """Variant of graph attention; empty for none."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """Settings of graph attention that differ from those of the experiment."""
    late_fusion: bool | None = None
    """Whether content and context are fused late; None: in the variants that leave the content out."""
    kept: float = 1.0
    """How far the encoder's weights go from untrained (0) to trained (1)."""
    untrained_shares: tuple[float, ...] = ()
    neighbours_learn: bool = False
    """See `ContextRanker`."""

    @property
    def is_late(self) -> bool:
        """Whether content and context are fused late."""
        return self.variant in LATE_FUSION if self.late_fusion is None else self.late_fusion


@dataclass(frozen=True, slots=True)
class NeuralSettings:
    """The settings that all rankers of an experiment share."""

    encoder: str
    train_on: tuple[str, ...] = ()
    training: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    documents: int = 0
    """Documents that BM25 fetches for a topic and whose passages are ranked; 0 to rank all passages."""
    ranked_by: str = ""
    """The model whose best results are negatives, where these are drawn from rankings."""

    def training_of(self, ranker: NeuralRanker, seed: int = 1) -> TrainingSettings:
        """How a ranker is trained."""
        return TrainingSettings(**{**self.training, **ranker.training, "seed": seed})

    def context_of(self, ranker: NeuralRanker) -> dict[str, Any]:
        """The settings of a ranker's graph attention."""
        return {**OWN_FORM, **self.context, **ranker.context}


def shared_name(name: str, share: float) -> str:
    """The name of a system in whose score the untrained encoder has a share.

    >>> shared_name("HGAT", 0.3)
    'HGAT, 0.3 untrained'
    """
    return f"{name}, {share:g} untrained"


def read_shared(keys: NeuralKeys, collections: Mapping[str, CollectionPlan]) -> NeuralSettings:
    """The settings that all rankers share."""
    shared = NeuralSettings(keys.encoder, keys.train_on, keys.training, keys.context, keys.documents, keys.ranked_by)
    keys.check("training", lambda: shared.training_of(NeuralRanker()))
    keys.check("context", lambda: _check_attention("BASE", DIMENSION, keys.context))
    for system in keys.systems:
        check_sets(system, "train_on", system.train_on, collections)
    return shared


def read_ranker(keys: NeuralSystemKeys, shared: NeuralSettings) -> dict[str, Any]:
    """The fields of `SystemPlan` for one ranker."""
    ranker = NeuralRanker(
        keys.trained, keys.dimension, keys.train_on, keys.folds, keys.training, keys.variant, keys.context, keys.late_fusion, keys.kept,
        keys.untrained_shares, keys.neighbours_learn,
    )  # fmt: skip
    if keys.folds == 1:
        raise keys.wrong("folds", "must be 0 for none, or at least 2")
    if any(share >= 1 for share in keys.untrained_shares):
        raise keys.wrong("untrained_shares", "must be between 0 and 1")
    keys.check("training", lambda: shared.training_of(ranker))
    if keys.variant:
        keys.check("variant", lambda: _check_attention(keys.variant, keys.dimension or DIMENSION, shared.context_of(ranker)))
    if keys.trained and not keys.folds and not (keys.train_on or shared.train_on):
        raise keys.wrong("train_on", "is missing: there are no topics to train on")
    derived = tuple(shared_name(keys.name, share) for share in keys.untrained_shares)
    return {"ranker": ranker, "seeds": keys.seeds if keys.trained else 1, "is_random": keys.trained, "derived": derived}


def _check_attention(variant: str, dimension: int, settings: Mapping[str, Any]) -> None:
    """Raise the error for settings that graph attention cannot have, by making it once."""
    with keeping_random_state():
        HGAT.variant(variant, dimension=dimension, **settings)


def fingerprint(plan: Plan, system: SystemPlan) -> str:
    """A fingerprint of what the values of a ranker depend on, without its name and the number of its seeds."""
    ranker, shared = system.ranker, plan.shared
    reported = [topics.name for topics in plan.sets]
    common: list[Any] = [
        dict(shared.training), dict(shared.context), plan.measures, reported, ranker.train_on or shared.train_on, shared.encoder,
    ]  # fmt: skip
    common += [shared.documents] if shared.documents else []
    common += [{"k": plan.k}] if plan.k != K else []
    names = (system.name, *system.derived)
    fused = [[fusion.name, other.name, *fusion.of] for name in names for fusion, other in plan.fusions_of(name)]
    return hashlib.blake2b(json.dumps([asdict(ranker), common, fused], sort_keys=True).encode(), digest_size=8).hexdigest()
