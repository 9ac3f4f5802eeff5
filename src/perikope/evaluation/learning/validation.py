"""Learns a combination of features from judged topics, and measures it on held-out topics by cross-validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from perikope.browse.models import MODELS, Model, parse_model
from perikope.browse.models.combination import Combination, CombinationScorer, LinearCombination, TreeCombination
from perikope.browse.models.features import FEATURES, FeatureNormalization
from perikope.browse.models.shortlist import SHORTLIST
from perikope.browse.signals import Column
from perikope.core.cores import usable_cores
from perikope.core.names import document_name
from perikope.core.parallel import in_parallel
from perikope.evaluation.depth import depth_of
from perikope.evaluation.folds import fold_of_documents, fold_of_topic
from perikope.evaluation.learning.examples import Group, JudgedTopics, Judgements, Sampling
from perikope.evaluation.learning.lambdamart import fit_trees
from perikope.evaluation.learning.linear import fit_linear
from perikope.evaluation.measures import Measure
from perikope.evaluation.views import cut_ranking
from perikope.query.topic import Topic
from perikope.search.naming import names_of

Method = Literal["linear", "lambdamart"]
FoldsBy = Literal["topics", "documents"]
NORMALIZATION: Mapping[Method, FeatureNormalization] = {"linear": "zscore", "lambdamart": "minmax"}
"""The normalisation of features for each method: the better one on most of three collections.

With min-max normalisation, one outlier changes the scale of a feature. This affects the weight of a linear combination,
but not the thresholds of trees, which depend only on the order of values.
"""
Figures = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Values by system, then by measure, then by query id."""


@dataclass(frozen=True, slots=True)
class Learner:
    """A method that learns a combination from examples, with its settings."""

    method: Method = "linear"
    l2: float = 0.03
    """Penalty on large weights of the method `linear`."""
    seed: int = 1
    """Seed of the method `lambdamart`, of folds and of samples."""

    def fit(self, groups: Sequence[Group], normalize: FeatureNormalization) -> tuple[Combination, str]:
        """Fit a combination to examples. Returns the combination, and its trees in the text format of LightGBM.

        `normalize` is the normalisation of the features. The text is empty for a linear combination.
        """
        names = tuple(FEATURES)
        if self.method == "linear":
            return LinearCombination(names, normalize, fit_linear(groups, l2=self.l2), shortlist=SHORTLIST), ""
        trees, text = fit_trees(groups, names, seed=self.seed)
        return TreeCombination(names, normalize, trees, shortlist=SHORTLIST), text

    def facts(self) -> dict[str, Any]:
        """The settings that affect the method, as values for JSON."""
        return {"l2": self.l2} if self.method == "linear" else {"seed": self.seed}


@dataclass(frozen=True, slots=True)
class LearnedCombination:
    """A combination learned from all topics, with the figures of a cross-validation."""

    combination: Combination
    text: str
    """The trees in the text format of LightGBM; empty for a linear combination."""
    figures: Figures
    """The values of `HELD_OUT` and of the models that it is compared with."""
    shared: int = 0
    """Number of topics that share a relevant document with a topic of another fold. Their values may be too high."""

    def mean(self, system: str, measure: str) -> float:
        """The mean of a measure over all topics for a system of `figures`, 0 if there are no topics."""
        values = self.figures[system][measure].values()
        return math.fsum(values) / max(len(values), 1)


HELD_OUT = "learned, held out"
"""The name of the system that ranks each topic by a combination learned from the other folds."""


def single_models() -> tuple[str, ...]:
    """The names of the models that are not learned, contain no other models and need no vector store."""
    return tuple(name for name, definition in MODELS.items() if definition.is_ready and not (parse_model(name).inner or name == "learned"))


def _shared(fold: Mapping[str, int], judgements: Judgements) -> int:
    """Number of topics that share a relevant document with a topic of another fold."""
    relevant = {qid: {document_name(name) for name, grade in judgements.get(qid, {}).items() if grade > 0} for qid in fold}
    folds_of: dict[str, set[int]] = {}
    for qid, documents in relevant.items():
        for document in documents:
            folds_of.setdefault(document, set()).add(fold[qid])
    return sum(any(len(folds_of[document]) > 1 for document in documents) for documents in relevant.values())


def learn(
    source: JudgedTopics,
    learner: Learner,
    measures: Sequence[Measure],
    *,
    folds: int = 5,
    folds_by: FoldsBy = "topics",
    sampling: Sampling | None = None,
    compare: Sequence[str] = (),
    on_topic: Callable[[str], None] = lambda stage: None,
) -> LearnedCombination:
    """Learn a combination from all topics, and measure the method by cross-validation.

    Each topic is ranked by a combination that is learned from the other folds. It is searched twice: once for examples,
    and once to rank all its passages. With `folds_by="documents"`, topics that share a relevant document are in the
    same fold. `compare` has models that are measured on the same topics. `on_topic` is called with the stage,
    `examples` or `figures`, once per finished topic.
    """
    qids = [topic.qid for topic in source.topics]
    if folds_by == "documents":
        fold = fold_of_documents(qids, source.judgements, folds, learner.seed)
    else:
        fold = fold_of_topic(qids, folds, learner.seed)
    models = {name: parse_model(name) for name in compare}
    chosen = sampling or Sampling(seed=learner.seed)
    groups = []
    for group in source.groups(chosen):
        groups.append(group)
        on_topic("examples")
    others = {number: [group for group in groups if fold[group.qid] != number] for number in range(folds)}
    held_out = {number: learner.fit(taught, source.normalize)[0] for number, taught in others.items()}
    figures = evaluate_combinations(source, lambda topic: {HELD_OUT: held_out[fold[topic.qid]]}, models, measures, on_topic)
    combination, text = learner.fit(groups, source.normalize)
    first = measures[0].asked or str(measures[0])
    learned = LearnedCombination(combination, text, figures, _shared(fold, source.judgements))
    facts = {
        **source.facts(),
        "sampling": {"model": str(parse_model(source.options.model)), "depth": chosen.depth, "others": chosen.others},
        "folds": folds,
        "folds_by": folds_by,
        "topics_sharing_documents": learned.shared,
        "seed": learner.seed,
        **learner.facts(),
        "measure": first,
        "figures": {system: round(learned.mean(system, first), 6) for system in figures},
    }
    return replace(learned, combination=replace(combination, training=facts))


def evaluate_combinations(
    source: JudgedTopics,
    combinations: Callable[[Topic], Mapping[str, Combination]],
    models: Mapping[str, Model],
    measures: Sequence[Measure],
    on_topic: Callable[[str], None] = lambda stage: None,
) -> Figures:
    """Rank the passages of each topic by combinations and by models, and return the values of the measures.

    `combinations` returns the combinations for a topic, by name; they may differ between topics.
    """
    depth = depth_of(measures)

    def measured(topic: Topic) -> dict[str, dict[str, float]]:
        search, matches = source.look_into(topic)
        judged = source.judgements.get(topic.qid, {})
        scorer = CombinationScorer(matches)
        scores: dict[str, tuple[Column, Model | None]] = {
            name: (scorer.score(combination), None) for name, combination in combinations(topic).items()
        }
        scores |= {name: (model.score(matches), model) for name, model in models.items()}
        values = {}
        allowed, groups = search.eligibility.allowed(matches), search.eligibility.groups(matches)
        for name, (column, model) in scores.items():
            ranked_by, eligible = search.eligibility.results_by(matches, column, model, allowed)
            ranking = cut_ranking(search, matches, ranked_by, depth, eligible, groups)
            ranked = names_of(search.snapshot, matches, ranking.rows)
            values[name] = {measure.asked or str(measure): measure(ranked, judged) for measure in measures}
        return values

    figures: dict[str, dict[str, dict[str, float]]] = {}
    for topic, values_of_topic in in_parallel(measured, source.topics, source.threads or usable_cores()):
        for system, values in values_of_topic.items():
            for measure, value in values.items():
                figures.setdefault(system, {}).setdefault(measure, {})[topic.qid] = value
        on_topic("figures")
    return figures
