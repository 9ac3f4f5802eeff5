"""The keys of an experiment's file that are about neural rankers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from perikope.core.composed_values import TEXTS, ListOf
from perikope.core.configuration import options_table, tables
from perikope.core.options import Options, declared, option
from perikope.core.parameters import Range
from perikope.core.values import Notation, OneOf, Real, Switch, Text, Whole
from perikope.evaluation.experiment.plan_keys import MEASURE, RepeatedExperimentKeys, RepeatedSystemKeys
from perikope.neural.defaults import DEFAULT, DIMENSION
from perikope.neural.graph import OPENING, RELATIONS

K = 200
"""Results per topic, where a file does not say."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Options):
    """`[training]`, and `training` of a system: how rankers are trained; see `neural.training.TrainingSettings`."""

    epochs: int = option(6, Whole(Range(1)), "Number of passes over the triples.")
    batch: int = option(32, Whole(Range(1)), "Number of triples per step.")
    strategy: str = option("same_doc", Notation(parser="perikope.neural.triples:sources_of"), "Where negatives are drawn from.")
    negatives: int = option(1, Whole(Range(1)), "Number of negatives per triple.")
    in_batch: bool = option(True, Switch(), "Whether passages of the other triples of a step are negatives too.")
    encoder_rate: float = option(5e-5, Real(Range(0, 1)), "Learning rate of the encoder.")
    rate: float = option(1e-3, Real(Range(0, 1)), "Learning rate of everything else.")
    frozen_layers: int | None = option(None, Whole(Range(0)), "Layers of the encoder that do not learn; half of them where left out.")
    schedule: str = option("linear", OneOf(("constant", "linear")), "Whether rates stay the same, or rise and then fall to 0.")
    heading_path: bool = option(True, Switch(), "Whether passages are encoded behind their heading path.")
    measure: str = option("nDCG@10", MEASURE, "Measure on validation topics.")
    patience: int = option(2, Whole(Range(1)), "Epochs without a better measure on validation after which training stops.")
    validation_passages: int = option(20_000, Whole(Range(1)), "Largest number of passages that are ranked for a validation topic.")
    precision: str = option("auto", OneOf(("auto", "float32")), "Precision on a GPU: bfloat16 where `auto`.")


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(Options):
    """`[context]`, and `context` of a system: the graph attention; see `neural.hgat.HGAT`."""

    heads: int = option(8, Whole(Range(1)), "Number of attention heads.")
    layers: int = option(2, Whole(Range(1)), "Number of layers.")
    dropout: float = option(0.1, Real(Range(0, 1)), "Share of values that are dropped in training.")
    positions: int = option(180, Whole(Range(1)), "Largest number of tokens of a passage.")
    residual: bool = option(True, Switch(), "Whether a layer adds to its input.")
    ns_lambda: bool = option(False, Switch(), "Whether the last layer of variants without self attention has a λ.")
    normalize_output: bool = option(False, Switch(), "Whether vectors of the output have length 1.")
    relations: tuple[str, ...] = option(
        RELATIONS, ListOf(OneOf((*RELATIONS, OPENING), what="relation"), "relations"), "Relations of the graph."
    )


def _of_training() -> Iterable[str]:
    return declared(TrainingOptions)


def _of_attention() -> Iterable[str]:
    return declared(AttentionOptions)


@dataclass(frozen=True, kw_only=True)
class NeuralSystemKeys(RepeatedSystemKeys):
    """`[[systems]]`: a neural ranker, if no other key says what the system is."""

    trained: bool = option(True, Switch(), "Whether the ranker is trained, or the encoder is used as it is.")
    dimension: int = option(DIMENSION, Whole(Range(0)), "Length of a token's vector; 0 for that of the encoder.")
    train_on: tuple[str, ...] = option((), TEXTS, "Sets of topics to train on, in place of the experiment's.")
    folds: int = option(0, Whole(Range(0)), "Folds of the reported topics to train on in turn, in place of `train_on`; 0 for none.")
    training: dict[str, Any] = options_table(TrainingOptions, _of_training, "Settings of training that differ from [training].")
    variant: str = option("", Text(), "Variant of graph attention; without it passages are encoded alone.")
    context: dict[str, Any] = options_table(AttentionOptions, _of_attention, "Settings of graph attention that differ from [context].")
    late_fusion: bool | None = option(None, Switch(), "Whether content and context are fused late; where left out, the variant decides.")
    kept: float = option(1.0, Real(Range(0, 1)), "How far the encoder's weights go from untrained (0) to trained (1).")
    untrained_shares: tuple[float, ...] = option(
        (),
        ListOf(Real(Range(0, 1, low_open=True)), "numbers between 0 and 1"),
        "Shares of the untrained encoder's score; each share gives one more system.",
    )
    neighbours_learn: bool = option(False, Switch(), "Whether the encoder learns from the neighbours of a passage too.")


@dataclass(frozen=True, kw_only=True)
class NeuralKeys(RepeatedExperimentKeys):
    """The whole file of an experiment with neural rankers."""

    k: int = option(K, Whole(Range(1)), "Number of results per topic.")
    encoder: str = option(DEFAULT, Text(), "Encoder: the name of a downloaded model, or a folder.")
    documents: int = option(0, Whole(Range(0)), "Documents that BM25 fetches and whose passages are ranked; 0 to rank all passages.")
    ranked_by: str = option(
        "qsf_v_title",
        Notation(parser="perikope.browse.models:parse_model", required=True),
        "Model whose best results are negatives, where `strategy` has `ranked`.",
    )
    training: dict[str, Any] = options_table(TrainingOptions, _of_training, "How neural rankers are trained.")  # type: ignore[assignment]
    context: dict[str, Any] = options_table(AttentionOptions, _of_attention, "The graph attention of neural rankers.")
    systems: tuple[NeuralSystemKeys, ...] = tables(NeuralSystemKeys, "The systems, in the order of the report.")

    def documents_to_fetch(self) -> tuple[int, ...]:
        """The numbers of documents that systems with a model fetch."""
        return (self.documents,) if self.documents else super().documents_to_fetch()
