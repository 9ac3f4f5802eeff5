"""Topics and judgements of an experiment, read before anything runs, so that a mistake in them is told at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from perikope.core.errors import PerikopeError, UsageError
from perikope.evaluation.experiment.plan import Plan, SystemPlan, TopicsPlan, TrainingPlan
from perikope.evaluation.experiment.state import digest
from perikope.evaluation.folds import fold_of_documents, fold_of_topic
from perikope.evaluation.io.judgements import Judgements
from perikope.evaluation.io.runs import Run, read_run
from perikope.evaluation.io.topics import read_topics
from perikope.evaluation.measures.files import judgements_in
from perikope.query.topic import Topic


@dataclass(frozen=True, slots=True)
class Material:
    """Topics and judgements, those reported and those for training."""

    topics: tuple[Topic, ...]
    judgements: Judgements
    training_topics: tuple[Topic, ...]
    training_judgements: Judgements
    fold: Mapping[str, int]
    """Of each reported topic; empty without a cross-validation."""
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    shared: int = 0
    """Topics that are reported and, without a cross-validation, trained on."""

    @property
    def folds(self) -> int:
        """How many folds there are."""
        return max(self.fold.values(), default=-1) + 1


def read_material(plan: Plan) -> Material:
    """All that the plan names and that can be read without an index, so that a mistake in it is told before anything runs."""
    problems: list[str] = []
    notes: list[str] = []
    topics, judgements = _read(plan, plan.topics, ("topics", "file", "topics", "judgements"), problems)
    topics = _sampled(topics, plan.topics.sample, plan.seed, "topics", notes)
    training = plan.training
    if training is None:
        return Material(topics, judgements, (), {}, {}, tuple(problems), tuple(notes))
    own, judged, fold = topics, judgements, dict[str, int]()
    if training.topics is not None:
        own, judged = _read(plan, training.topics, ("training", "topics", "training_topics", "training_judgements"), [])
    else:
        fold = _folds(plan, training, topics, judgements)
    taught = _sampled(_with_relevant(own, judged), training.sample, plan.seed, "training", notes)
    trains = any(system.space is not None or system.learn for system in plan.systems)
    if fold and trains and len({fold[topic.qid] for topic in taught}) < 2:
        raise plan.wrong("training", "leaves a fold no topic to tune on or to learn from; use fewer folds, or a larger sample")
    by_qid = {topic.qid: topic for topic in topics}
    shared = 0 if fold else sum(by_qid.get(topic.qid) == topic for topic in taught)
    if shared and trains:
        if shared in (len(taught), len(topics)):
            whose = "all topics to train on are" if shared == len(taught) else "all topics that are reported are"
            other = "reported too" if shared == len(taught) else "trained on"
            raise plan.wrong("training", f"topics is wrong: {whose} {other} ({shared}); name others, or cross-validate: folds = 5")
        notes.append(f"{shared} of {len(taught)} topics to train on are among the {len(topics)} reported: figures are too good")
    return Material(topics, judgements, taught, judged, fold, tuple(problems), tuple(notes), shared)


def _folds(plan: Plan, training: TrainingPlan, topics: Sequence[Topic], judgements: Judgements) -> dict[str, int]:
    qids = [topic.qid for topic in topics]
    try:
        if training.folds_by == "documents":
            return fold_of_documents(qids, judgements, training.folds, plan.seed)
        return fold_of_topic(qids, training.folds, plan.seed)
    except UsageError as error:
        # What the command line calls --folds-by is folds_by in a file.
        said = re.sub(r"--([a-z-]+)", lambda option: option[1].replace("-", "_"), str(error))
        raise plan.wrong("training", said) from error


def _read(plan: Plan, own: TopicsPlan, named: tuple[str, str, str, str], problems: list[str]) -> tuple[tuple[Topic, ...], Judgements]:
    """Topics that are judged, and judgements; `named` says by which table, key and options they were given."""
    table, key, of_topics, of_judgements = named
    with plan.reading(table, key, of_topics):
        topics = read_topics(own.file, own.form, own.field)
    with plan.reading(table, "judgements", of_judgements):
        judgements = judgements_in(own.judgements, own.judgement_form)
        judged = tuple(topic for topic in topics if topic.qid in judgements)
        if not judged:
            raise UsageError(f"{own.judgements} judges no topic of {own.file}")
    if own.spans:
        with plan.reading(table, "spans"):
            judgements_in(own.spans)
    problems += [f"topic {topic.qid}: nobody judged it" for topic in topics if topic.qid not in judgements]
    return judged, judgements


def read_run_of(plan: Plan, system: SystemPlan) -> Run:
    """The run of another system that the plan names."""
    assert system.run is not None
    try:
        return read_run(system.run)
    except PerikopeError as error:
        raise plan.wrong(f"system {system.name}", f"run is wrong: {error}") from error


def _with_relevant(topics: Iterable[Topic], judgements: Judgements) -> tuple[Topic, ...]:
    found = tuple(topic for topic in topics if any(grade > 0 for grade in judgements.get(topic.qid, {}).values()))
    if not found:
        raise UsageError("no training topic has anything judged relevant; check that the judgements are of these topics")
    return found


def _sampled(topics: Sequence[Topic], sample: int | None, seed: int, table: str, notes: list[str]) -> tuple[Topic, ...]:
    """Some topics by chance, in their order; it depends on which topics there are and not on that order."""
    if sample is None or sample >= len(topics):
        if sample is not None and sample > len(topics):
            notes.append(f"[{table}] sample = {sample} asks for more topics than the {len(topics)} there are: all of them are taken")
        return tuple(topics)
    by_name = sorted(topic.qid for topic in topics)
    drawn = np.random.default_rng(seed).choice(len(by_name), sample, replace=False)
    kept = {by_name[i] for i in drawn.tolist()}
    return tuple(topic for topic in topics if topic.qid in kept)


def topics_digest(topics: Sequence[Topic], judgements: Judgements) -> str:
    """A fingerprint of topics and their judgements."""
    return digest([[asdict(topic), sorted(judgements.get(topic.qid, {}).items())] for topic in topics])
