"""The keys of an experiment's file for neural rankers."""

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


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Options):
    """`[training]`, and `training` of a system: how rankers are trained; see `neural.training.TrainingSettings`."""

    epochs: int = option(6, Whole(Range(1)), "Maximum number of passes over the triples.")
    batch: int = option(32, Whole(Range(1)), "Number of triples per step.")
    strategy: str = option(
        "same_doc",
        Notation(parser="perikope.neural.triples:sources_of"),
        "Where negatives are drawn from; several sources are joined by `+`.",
    )
    negatives: int = option(1, Whole(Range(1)), "Number of negatives per triple.")
    draws: int = option(1, Whole(Range(1)), "Number of triples per relevant passage in one epoch, each with new negatives.")
    in_batch: bool = option(True, Switch(), "Whether passages of the other triples of a step are used as negatives too.")
    encoder_rate: float = option(5e-5, Real(Range(0, 1)), "Learning rate of the encoder.")
    rate: float = option(1e-3, Real(Range(0, 1)), "Learning rate of graph attention and late fusion.")
    frozen_layers: int | None = option(
        None, Whole(Range(0)), "Number of encoder layers, from the input, that are not trained; half by default."
    )
    schedule: str = option(
        "linear", OneOf(("constant", "linear")), "Learning rates over time: `constant`, or `linear`, which rises and then falls to 0."
    )
    heading_path: bool = option(True, Switch(), "Whether heading paths are prepended to passages before they are encoded.")
    measure: str = option("nDCG@10", MEASURE, "Measure on validation topics that decides which epoch is best.")
    patience: int = option(2, Whole(Range(1)), "Number of epochs without a better measure on validation topics after which training stops.")
    validation_passages: int = option(
        20_000,
        Whole(Range(1)),
        "Maximum number of passages that are ranked for the validation topics. All documents with a relevant passage are included, "
        "even if they have more passages; random documents fill the rest.",
    )
    precision: str = option("auto", OneOf(("auto", "float32")), "Precision on a GPU: `auto` is bfloat16.")
    guard: float = option(
        0.0,
        Real(Range(0)),
        "Weight of the term against forgetting: scores on self-made topics and on texts made of words stay near those of the untrained "
        "encoder.",
    )


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(Options):
    """`[context]`, and `context` of a system: the graph attention; see `neural.hgat.HGAT`."""

    heads: int = option(8, Whole(Range(1)), "Number of attention heads.")
    layers: int = option(2, Whole(Range(1)), "Number of layers.")
    dropout: float = option(0.1, Real(Range(0, 1)), "Share of attention weights that are set to zero in training.")
    positions: int = option(180, Whole(Range(1)), "Maximum number of tokens per passage or title.")
    residual: bool = option(True, Switch(), "Whether a layer adds its output to its input.")
    ns_lambda: bool = option(False, Switch(), "Whether the variants LB_NS and NO_LB_NS multiply messages to the target by λ.")
    normalize_output: bool = option(False, Switch(), "Whether output vectors are scaled to length 1.")
    relations: tuple[str, ...] = option(
        RELATIONS, ListOf(OneOf((*RELATIONS, OPENING), what="relation"), "relations"), "Relations of the graph whose edges carry messages."
    )


def _of_training() -> Iterable[str]:
    return declared(TrainingOptions)


def _of_attention() -> Iterable[str]:
    return declared(AttentionOptions)


@dataclass(frozen=True, kw_only=True)
class NeuralSystemKeys(RepeatedSystemKeys):
    """`[[systems]]`: a neural ranker, if no other key says what the system is."""

    trained: bool = option(True, Switch(), "Whether the ranker is trained, or the encoder is used as it is.")
    dimension: int = option(DIMENSION, Whole(Range(0)), "Dimension of token vectors; 0 keeps the hidden size of the encoder.")
    train_on: tuple[str, ...] = option((), TEXTS, "Sets of topics to train on, instead of the experiment's `train_on`.")
    folds: int = option(0, Whole(Range(0)), "Folds for cross-validation on the reported topics, instead of `train_on`; 0 for none.")
    training: dict[str, Any] = options_table(TrainingOptions, _of_training, "Settings of training that differ from [training].")
    variant: str = option("", Text(), "Variant of graph attention, such as `NO_LB`; if left out, passages are encoded alone.")
    context: dict[str, Any] = options_table(AttentionOptions, _of_attention, "Settings of graph attention that differ from [context].")
    late_fusion: bool | None = option(
        None, Switch(), "Whether the scores of passage and context are mixed. Default: true for the variants NO_NS and NO_LB_NS."
    )
    kept: float = option(1.0, Real(Range(0, 1)), "Interpolates the weights of the encoder between untrained (0) and trained (1).")
    untrained_shares: tuple[float, ...] = option(
        (),
        ListOf(Real(Range(0, 1, low_open=True)), "numbers between 0 and 1"),
        "Shares s of the untrained encoder, above 0 and below 1. Each adds a system with the score `(1 - s) · trained + s · untrained`.",
    )
    neighbours_learn: bool = option(False, Switch(), "Whether the encoder also learns from the neighbours of passages.")


@dataclass(frozen=True, kw_only=True)
class NeuralKeys(RepeatedExperimentKeys):
    """The whole file of an experiment with neural rankers."""

    encoder: str = option(DEFAULT, Text(), f"Encoder: `{DEFAULT}`, the name of a downloaded Hugging Face model, or a folder.")
    documents: int = option(
        0,
        Whole(Range(0)),
        "Number of fetched documents per topic; only their passages are ranked. 0 ranks all passages that the filters allow.",
    )
    ranked_by: str = option(
        "qsf_v_title",
        Notation(parser="perikope.browse.models:parse_model", required=True),
        "Model whose best results are the negatives of the strategy `ranked`.",
    )
    training: dict[str, Any] = options_table(TrainingOptions, _of_training, "How neural rankers are trained.")  # type: ignore[assignment]
    context: dict[str, Any] = options_table(AttentionOptions, _of_attention, "The graph attention of neural rankers.")
    systems: tuple[NeuralSystemKeys, ...] = tables(NeuralSystemKeys, "The systems, in the order of the report.")

    def documents_to_fetch(self) -> tuple[int, ...]:
        """The numbers of documents that systems with a model fetch."""
        return (self.documents,) if self.documents else super().documents_to_fetch()
