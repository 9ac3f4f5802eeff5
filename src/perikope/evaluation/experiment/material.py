"""Reads the topics and judgements of an experiment before anything runs, so that errors in them are reported early."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np

from perikope.core.errors import PerikopeError, UsageError
from perikope.evaluation.experiment.plan import Plan
from perikope.evaluation.experiment.plan_parts import CollectionPlan, SystemPlan, TopicSet, TopicsPlan, TrainingPlan
from perikope.evaluation.experiment.state import digest
from perikope.evaluation.folds import fold_of_documents, fold_of_topic
from perikope.evaluation.io.fitting import fit_judgements
from perikope.evaluation.io.judgements import Judgements
from perikope.evaluation.io.runs import Run, read_run
from perikope.evaluation.io.topics import read_topics
from perikope.evaluation.measures.files import judgements_in
from perikope.index.reader import Snapshot
from perikope.query.topic import Topic


@dataclass(frozen=True, slots=True)
class Material:
    """The topics and judgements of one reported set of topics, and those that systems are trained on."""

    topics: tuple[Topic, ...]
    judgements: Judgements
    training_topics: tuple[Topic, ...]
    training_judgements: Judgements
    fold: Mapping[str, int]
    """The fold of each reported topic, by its id. Empty without cross-validation."""
    problems: tuple[str, ...]
    """One line per reported topic that is left out because it has no judgements."""
    notes: tuple[str, ...]
    """Remarks for the report, such as a sample that is larger than the set of topics."""
    shared: int = 0
    """Number of topics that are both reported and trained on. 0 with cross-validation."""
    written: Judgements = field(default_factory=dict)
    """The judgements with the names of the file, for runs of other programs that use these names."""

    @property
    def folds(self) -> int:
        """The number of folds, 0 without cross-validation."""
        return max(self.fold.values(), default=-1) + 1

    def fold_of(self, qids: Iterable[str]) -> dict[str, int]:
        """The folds of the given topics, by id. Empty without cross-validation."""
        return {qid: self.fold[qid] for qid in qids} if self.fold else {}

    def only(self, qids: Collection[str]) -> Material:
        """A copy of the material whose reported topics are limited to the given ids."""
        return replace(self, topics=tuple(topic for topic in self.topics if topic.qid in qids))


def read_material(plan: Plan, reported: TopicSet) -> Material:
    """Read the topics and judgements of one reported set of topics, and of its training topics."""
    problems: list[str] = []
    notes: list[str] = []
    topics, judgements = _read(plan, reported.topics, problems, notes)
    training = reported.training
    taught_by_id = _with_ids(plan, topics, training, notes) if training is not None and training.ids else ()
    topics = tuple(topic for topic in topics if topic not in taught_by_id)
    # In an experiment with rankers, the kind draws the sample later, from the topics that its rankers can use.
    sample = None if plan.kind else reported.topics.sample
    topics = _sampled(topics, sample, plan.seed, reported.topics.location[0], notes)
    if training is None:
        return Material(topics, judgements, (), {}, {}, tuple(problems), tuple(notes))
    candidates, judged, fold = topics, judgements, dict[str, int]()
    if training.topics is not None:
        candidates, judged = _read(plan, training.topics, [], notes)
    elif taught_by_id:
        candidates = taught_by_id
    else:
        fold = _folds(plan, training, topics, judgements)
    taught = _sampled(_with_relevant(candidates, judged), training.sample, plan.seed, "training", notes)
    trains = any(system.space is not None or system.learn for system in plan.systems)
    if fold and trains and len({fold[topic.qid] for topic in taught}) < 2:
        raise plan.wrong("training", "leaves a fold no topic to tune on or to learn from; use fewer folds, or a larger sample")
    by_qid = {topic.qid: topic for topic in topics}
    shared = 0 if fold else sum(by_qid.get(topic.qid) == topic for topic in taught)
    if shared and trains:
        if shared in (len(taught), len(topics)):
            whose = "all topics to train on are" if shared == len(taught) else "all topics that are reported are"
            other = "reported too" if shared == len(taught) else "trained on"
            raise plan.wrong(
                "training", f"topics is wrong: {whose} {other} ({shared}); name other training topics, or cross-validate: folds = 5"
            )
        notes.append(f"{shared} of {len(taught)} topics to train on are among the {len(topics)} reported: figures are too good")
    return Material(topics, judgements, taught, judged, fold, tuple(problems), tuple(notes), shared)


def fit_material(plan: Plan, reported: TopicSet, material: Material, snapshot: Snapshot) -> Material:
    """The material with judgements in the names that rankings of the index have (see `fit_judgements`).

    Notes count the judgements that do not fit the index. If none fits, an error names the file.
    """
    notes: list[str] = []
    judgements = _fitted(plan, reported.topics, reported.collection, snapshot, notes)
    training = reported.training.topics if reported.training is not None else None
    taught = judgements if material.training_judgements is material.judgements else material.training_judgements
    if training is not None and material.training_judgements:
        taught = _fitted(plan, training, reported.collection, snapshot, notes)
    return replace(
        material, judgements=judgements, training_judgements=taught, written=material.judgements, notes=(*material.notes, *notes)
    )


def _fitted(plan: Plan, topics_plan: TopicsPlan, collection: CollectionPlan, snapshot: Snapshot, notes: list[str]) -> Judgements:
    with plan.reading(topics_plan.location[0], "judgements", topics_plan.options[1]):
        fitted = fit_judgements(topics_plan.judgements, snapshot, topics_plan.judgement_form)
    languages = " ".join(collection.build.languages) if collection.index is None else ""
    why = f"; text in other languages than {languages} was left out by languages in [{collection.table}]" if languages else ""
    notes += [fitted.warning + why] if fitted.warning else []
    return fitted.names


def _folds(plan: Plan, training: TrainingPlan, topics: Sequence[Topic], judgements: Judgements) -> dict[str, int]:
    qids = [topic.qid for topic in topics]
    try:
        if training.folds_by == "documents":
            return fold_of_documents(qids, judgements, training.folds, plan.seed)
        return fold_of_topic(qids, training.folds, plan.seed)
    except UsageError as error:
        # The error names command-line options such as --folds-by. The key of the file is folds_by.
        message = re.sub(r"--([a-z-]+)", lambda option: option[1].replace("-", "_"), str(error))
        raise plan.wrong("training", message) from error


def _with_ids(plan: Plan, topics: Sequence[Topic], training: TrainingPlan, notes: list[str]) -> tuple[Topic, ...]:
    """The topics whose ids match a pattern of `ids`, such as `tPSG-*`.

    If none or all match, there is no split. This is an error in a user's file. In a protocol, whose ids are those of
    the paper's collection, the topics are cross-validated, and a note says so.
    """
    matching = tuple(topic for topic in topics if any(fnmatchcase(topic.qid, pattern) for pattern in training.ids))
    if 0 < len(matching) < len(topics):
        return matching
    patterns = ", ".join(training.ids)
    which = f"matches all {len(topics)} topics" if matching else "matches no topic"
    if not plan.is_protocol:
        other = "none is left to report" if matching else f"the first has the id {topics[0].qid}"
        raise plan.wrong("training", f"ids ({patterns}) {which}: {other}; correct ids, or use folds in its place")
    notes.append(
        f"the training topics of the paper ({patterns}) are not told from the others, because the pattern {which}: "
        f"{training.folds} folds take their place"
    )
    return ()


def _read(plan: Plan, topics_plan: TopicsPlan, problems: list[str], notes: list[str]) -> tuple[tuple[Topic, ...], Judgements]:
    """Read topics and judgements. Returns the topics that have judgements, and all judgements.

    Adds a line to `problems` for each topic without judgements, and one to `notes` if topics of other languages are
    left out.
    """
    (table, key), (of_topics, of_judgements) = topics_plan.location, topics_plan.options
    with plan.reading(table, key, of_topics):
        topics = read_topics(topics_plan.file, topics_plan.form, topics_plan.field, topics_plan.language, notes.append)
        if not topics:
            raise UsageError(f"{topics_plan.file} has no topics; name another file")
    with plan.reading(table, "judgements", of_judgements):
        judgements = judgements_in(topics_plan.judgements, topics_plan.judgement_form)
        judged = tuple(topic for topic in topics if topic.qid in judgements)
        if not judged:
            raise UsageError(f"{topics_plan.judgements} judges no topic of {topics_plan.file}; check that they belong together")
    if topics_plan.spans:
        with plan.reading(table, "spans"):
            judgements_in(topics_plan.spans)
    problems += [f"topic {topic.qid}: nobody judged it" for topic in topics if topic.qid not in judgements]
    return judged, judgements


def read_run_of(plan: Plan, system: SystemPlan, reported: TopicSet) -> Run:
    """Read the run of another program on a set of topics.

    If the experiment has rankers, results after the depth of the plan are left out.
    """
    try:
        run = read_run(system.runs[reported.name])
    except PerikopeError as error:
        raise plan.wrong(f"system {system.name}", f"run is wrong: {error}") from error
    if not plan.kind:
        return run
    ranked = {qid: sorted(scores.items(), key=lambda pair: -pair[1]) for qid, scores in run.items()}
    return {qid: dict(results[: plan.depth.cut_names([name for name, _ in results])]) for qid, results in ranked.items()}


def _with_relevant(topics: Iterable[Topic], judgements: Judgements) -> tuple[Topic, ...]:
    usable = tuple(topic for topic in topics if any(grade > 0 for grade in judgements.get(topic.qid, {}).values()))
    if not usable:
        raise UsageError("no training topic has anything judged relevant; check that the judgements are of these topics")
    return usable


def _sampled(topics: Sequence[Topic], sample: int | None, seed: int, table: str, notes: list[str]) -> tuple[Topic, ...]:
    """Draw `sample` topics at random, or return all topics if there are no more than that.

    The drawn topics keep their order. Which topics are drawn does not depend on their order in the file.
    """
    if sample is None or sample >= len(topics):
        if sample is not None and sample > len(topics):
            notes.append(f"[{table}] sample = {sample} asks for more topics than the {len(topics)} there are: all of them are taken")
        return tuple(topics)
    by_name = sorted(topic.qid for topic in topics)
    drawn = np.random.default_rng(seed).choice(len(by_name), sample, replace=False)
    chosen = {by_name[i] for i in drawn.tolist()}
    return tuple(topic for topic in topics if topic.qid in chosen)


def topics_digest(topics: Sequence[Topic], judgements: Judgements) -> str:
    """A fingerprint of topics and their judgements."""
    return digest([[asdict(topic), sorted(judgements.get(topic.qid, {}).items())] for topic in topics])
