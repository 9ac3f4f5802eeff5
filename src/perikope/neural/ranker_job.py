"""One job of an experiment: train a neural ranker with one seed, score all passages, and measure the results.

Fusions of the ranker with other systems are measured too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from perikope.core.arrays import Floats32, Integers
from perikope.evaluation.experiment.kinds import JobSetup
from perikope.evaluation.experiment.plan_parts import SystemPlan
from perikope.evaluation.experiment.state import Job
from perikope.evaluation.folds import fold_of_groups
from perikope.evaluation.fusion import FOLDS, SHARES, choose_shares, fused_rankings
from perikope.evaluation.io.runs import Run
from perikope.evaluation.measures import parse_measure
from perikope.neural.collection import Collection, join_graphs
from perikope.neural.devices import keeping_random_state
from perikope.neural.guard import Guard, guarding_collections
from perikope.neural.hgat import HGAT, LateFusion
from perikope.neural.ranker_settings import NeuralRanker, NeuralSettings, shared_name
from perikope.neural.training import ContextRanker, TrainableRanker, Trainer, interpolate
from perikope.neural.triples import Topics, join_texts, join_topics
from perikope.neural.workplace import TOKENS, Workplace, set_key


def share_tokens(setup: JobSetup) -> None:
    """Tokenise all texts once, on all cores, and save the tokens for the other processes of the experiment."""
    Workplace.open(setup.folder, setup.machine.get("encoder", "")).save_tokens(setup.scratch / TOKENS)


def open_jobs(setup: JobSetup) -> Callable[[Job], Mapping[str, Any]]:
    """Prepare this process for jobs; returns a function that runs a job and returns its result, as `run_job` does."""
    if not setup.is_alone:
        torch.set_num_threads(1)
    workplace = Workplace.open(setup.folder, setup.machine.get("encoder", ""), None if setup.is_alone else setup.scratch / TOKENS)
    device = setup.machine.get("device") or ("cuda" if torch.cuda.is_available() else "cpu")
    return lambda job: run_job(workplace, workplace.plan.system(job.system), job.seed, device)


def run_job(workplace: Workplace, system: SystemPlan, seed: int, device: str) -> dict[str, Any]:
    """Train a ranker with a seed, and measure it and its fusions. Returns a dict with these keys:

    - `values`: by system, set of topics and measure, a list with one value per topic
    - `shares`: by fusion and set of topics, the mean share of the ranker
    - `losses`, `lambdas`, `importance`, `alpha`: what training learned, if the ranker has it
    - `seconds`: duration of the job
    """
    start = time.perf_counter()
    job = _RankerJob(workplace, system, seed, device)
    scores, learned = job.scored()
    values: dict[str, Any] = {}
    shares: dict[str, dict[str, float]] = {}
    for name, scores_by_set in job.with_untrained(scores):
        for topics, all_scores in scores_by_set.items():
            eligible = job.among_fetched(topics, all_scores)
            values.setdefault(name, {})[topics] = job.measured(topics, eligible)
            for fusion, other in workplace.plan.fusions_of(name):
                if topics in other.runs:
                    fused, share = job.fused(topics, eligible, workplace.runs[other.name, topics])
                    values.setdefault(fusion.name, {})[topics] = fused
                    shares.setdefault(fusion.name, {})[topics] = share
    return {"values": values, "shares": shares, **learned, "seconds": time.perf_counter() - start}


@dataclass
class _RankerJob:
    """One ranker with one seed. All scores are arrays (topics, passages), one per set of topics."""

    workplace: Workplace
    system: SystemPlan
    seed: int
    device: str

    @property
    def ranker(self) -> NeuralRanker:
        """The settings of this ranker."""
        ranker: NeuralRanker = self.system.ranker
        return ranker

    @property
    def shared(self) -> NeuralSettings:
        """The settings that all rankers of the experiment share."""
        shared: NeuralSettings = self.workplace.plan.shared
        return shared

    def _set_of(self, name: str) -> tuple[Collection, Topics]:
        """The collection and the topics of the set `name`, with queries made by the options of this ranker."""
        return self.workplace.set_of(name, self.system.options)

    def scored(self) -> tuple[dict[str, Floats32], dict[str, Any]]:
        """The scores by set of reported topics, and what training learned, as in the result of `run_job`.

        What was learned is empty for a ranker that is not trained.
        """
        reported = [topics.name for topics in self.workplace.plan.sets]
        if not self.ranker.trained:
            return {name: self._score(self._untrained(), name) for name in reported}, {}
        if self.ranker.folds:
            return self._cross_validated(reported)
        sets = [self._set_of(name) for name in self.ranker.train_on or self.shared.train_on]
        learned, ranker = self._train([collection for collection, _ in sets], [topics for _, topics in sets])
        return {name: self._score(ranker, name) for name in reported}, learned

    def _cross_validated(self, reported: Sequence[str]) -> tuple[dict[str, Floats32], dict[str, Any]]:
        """The scores by set of topics, and what training learned in the last fold.

        The topics of a fold are scored by a ranker that was trained on the other folds. If the ranker has `train_on`,
        sets that are not in it are skipped.
        """
        scores: dict[str, Floats32] = {}
        learned: dict[str, Any] = {}
        for name in reported:
            if self.ranker.train_on and name not in self.ranker.train_on:
                continue
            collection, topics = self._set_of(name)
            fold_of_topic = _folds(topics, self.ranker.folds, self.seed)
            scores[name] = np.zeros((len(topics), len(collection.texts.names)), np.float32)
            for fold in range(int(fold_of_topic.max()) + 1):
                inside = np.flatnonzero(fold_of_topic == fold)
                learned, ranker = self._train([collection], [topics.some(np.flatnonzero(fold_of_topic != fold).tolist())])
                scores[name][inside] = self._score(ranker, name, topics.some(inside.tolist()))
        return scores, learned

    def _untrained(self) -> TrainableRanker:
        """The encoder as it is, as a ranker without passages."""
        with keeping_random_state():
            return TrainableRanker(self.workplace.encoders[self.ranker.dimension].copied().to(self.device), ())

    def _train(self, collections: Sequence[Collection], topics: Sequence[Topics]) -> tuple[dict[str, Any], TrainableRanker]:
        """Train with the job's seed on the topics of several collections; returns what was learned, and the ranker."""
        with keeping_random_state(torch.device(self.device)):
            torch.manual_seed(self.seed)
            return self._train_seeded(collections, topics)

    def _train_seeded(self, collections: Sequence[Collection], topics: Sequence[Topics]) -> tuple[dict[str, Any], TrainableRanker]:
        """Train as `_train` does, with the random state of torch as it is."""
        settings = self.shared.training_of(self.ranker, self.seed)
        texts = join_texts([collection.texts for collection in collections])
        joined = join_topics([collection.texts for collection in collections], topics)
        encoder = self.workplace.encoders[self.ranker.dimension].copied().to(self.device)
        before = {name: value.detach().clone() for name, value in encoder.state_dict().items()}
        written = texts.written(heading_path=settings.heading_path)
        ranker = TrainableRanker(encoder, written)
        if self.ranker.variant:
            context = HGAT.variant(self.ranker.variant, dimension=encoder.dimension, **self.shared.context_of(self.ranker)).to(self.device)
            fusion = LateFusion().to(self.device) if self.ranker.is_late else None
            graphs = join_graphs(collections)
            ranker = ContextRanker(encoder, written, texts, graphs, context, fusion, neighbours_learn=self.ranker.neighbours_learn)
        guard = None
        if settings.guard:
            numbered = {str(number): collection for number, collection in enumerate(collections)}
            guard = Guard(ranker, guarding_collections(ranker, numbered, self.seed).values(), settings)
        progress = Trainer(ranker, texts, joined, None, settings, guard=guard).run()
        if self.ranker.kept < 1:
            encoder.load_state_dict(interpolate(before, encoder.state_dict(), self.ranker.kept))
        learned: dict[str, Any] = {"losses": [epoch.loss for epoch in progress.epochs]}
        if isinstance(ranker, ContextRanker):
            learned |= {"lambdas": ranker.context.lambdas, "importance": ranker.context.importance()}
            learned |= {"alpha": None if ranker.fusion is None else float(ranker.fusion.alpha.detach().clamp(0, 1))}
        return learned, ranker

    def _score(self, ranker: TrainableRanker, name: str, topics: Topics | None = None) -> Floats32:
        """The scores of all passages for `topics` of the set `name`, by default for all its topics.

        Passages of documents that were fetched for no topic of the set are not scored; they have -inf.
        """
        collection, all_topics = self._set_of(name)
        heading_path = self.shared.training_of(self.ranker).heading_path
        moved = ranker.moved(collection.texts, collection.graphs, heading_path=heading_path)
        moved.eval()
        queries, is_fetched = (topics or all_topics).queries, self.workplace.fetched.get(set_key(name, self.system.options))
        if is_fetched is None:
            return moved.score_all(queries, np.arange(len(collection.texts.names)))
        passages = np.flatnonzero(is_fetched.any(axis=0))
        scores = np.full((len(queries), len(collection.texts.names)), -np.inf, np.float32)
        scores[:, passages] = moved.score_all(queries, passages)
        return scores

    def _score_untrained(self, name: str) -> Floats32:
        """The scores of all passages by the untrained encoder for the set `name`, computed once per process."""
        known = self.workplace.untrained_scores
        key = set_key(name, self.system.options), self.ranker.dimension, self.shared.training_of(self.ranker).heading_path
        if key not in known:
            known[key] = self._score(self._untrained(), name)
        return known[key]

    def with_untrained(self, scores: Mapping[str, Floats32]) -> Iterator[tuple[str, Mapping[str, Floats32]]]:
        """Yield the name and scores of this ranker, then of one system per share of the untrained encoder.

        Such a system scores `(1 - share) · trained + share · untrained`.
        """
        yield self.system.name, scores
        if self.ranker.untrained_shares:
            untrained = {name: self._score_untrained(name) for name in scores}
            for share in self.ranker.untrained_shares:
                mixed = {name: ((1 - share) * trained + share * untrained[name]).astype(np.float32) for name, trained in scores.items()}
                yield shared_name(self.system.name, share), mixed

    def among_fetched(self, name: str, scores: Floats32) -> Floats32:
        """The scores, with -inf for passages of documents that were not fetched for the topic."""
        is_fetched = self.workplace.fetched.get(set_key(name, self.system.options))
        return scores if is_fetched is None else np.where(is_fetched, scores, np.float32(-np.inf))

    def measured(self, name: str, scores: Floats32) -> dict[str, list[float]]:
        """The values of each measure, one per topic of the set `name`; passages with the score -inf are not ranked."""
        collection, topics = self._set_of(name)
        names = collection.texts.names
        rankings = [[names[passage] for passage in self._best(collection, row).tolist()] for row in scores]
        return self._values(rankings, topics)

    def _best(self, collection: Collection, scores: Floats32) -> Integers:
        """The passages that are ranked for a topic, best first, given the score of each passage; -inf is not ranked."""
        order = np.argsort(-scores, kind="stable")
        order = order[scores[order] > -np.inf]
        return order[: self.workplace.plan.depth.cut(collection.texts.document_of_passage[order])]

    def _values(self, rankings: Sequence[Sequence[str]], topics: Topics) -> dict[str, list[float]]:
        """The values of each measure, one per topic, given the names of the ranked passages of each topic."""
        measures = {name: parse_measure(name) for name in self.workplace.plan.measures}
        pairs = list(zip(rankings, topics.judged, strict=True))
        return {name: [round(float(measure(ranking, judged)), 6) for ranking, judged in pairs] for name, measure in measures.items()}

    def fused(self, name: str, scores: Floats32, run: Run) -> tuple[dict[str, list[float]], float]:
        """Fuse the scores with a run; see `evaluation.fusion`.

        Returns the values of each measure, one per topic, and the mean share of the ranker over topics.
        """
        collection, topics = self._set_of(name)
        names, number = collection.texts.names, collection.texts.number
        by_share = [
            fused_rankings(row, run.get(qid, {}), names, number, max(self._best(collection, row).size, self.workplace.plan.depth.results))
            for qid, row in zip(topics.qids, scores, strict=True)
        ]
        main = parse_measure(self.workplace.plan.measures[0])
        values = np.array([[main(ranking, judged) for ranking in row] for row, judged in zip(by_share, topics.judged, strict=True)])
        chosen = choose_shares(values, _folds(topics, FOLDS, 1)).tolist()
        rankings = [row[share] for row, share in zip(by_share, chosen, strict=True)]
        return self._values(rankings, topics), float(np.mean([SHARES[share] for share in chosen]))


def _folds(topics: Topics, folds: int, seed: int) -> Integers:
    """The fold of each topic, (topics,); topics that share a relevant document are in the same fold."""
    return np.array(fold_of_groups(topics.qids, topics.judgements, folds, seed), np.int64)
