"""Tunes and learns the systems of one sweep on training topics: chooses one ranker per system and fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from perikope.browse.models import Model, parse_model
from perikope.browse.tags import Selection, learn_tags
from perikope.core.errors import UsageError
from perikope.core.grammar import Call, parse
from perikope.evaluation.experiment.extras import ExtraFigure, ExtraTable, figures_of, plain, tables_of
from perikope.evaluation.experiment.indexes import OnProgress
from perikope.evaluation.experiment.learned import prior_figure, prior_table, tag_table
from perikope.evaluation.experiment.material import Material
from perikope.evaluation.experiment.outcome import SystemOutcome, system_facts, system_of
from perikope.evaluation.experiment.plan import Plan
from perikope.evaluation.experiment.plan_parts import CANDIDATES, SystemPlan
from perikope.evaluation.experiment.state import State
from perikope.evaluation.experiment.topics import RankerSpec, TrainingTask, add_seconds
from perikope.evaluation.io.fitting import TokenRanges, relevant_tokens
from perikope.evaluation.learning.examples import Group, JudgedTopics
from perikope.evaluation.learning.prior import learn_prior_of_run
from perikope.evaluation.learning.validation import NORMALIZATION, Learner
from perikope.evaluation.measures import parse_measure
from perikope.evaluation.measuring import TextFile
from perikope.evaluation.pool import Pool
from perikope.evaluation.tuning.outcome import TuningOutcome
from perikope.evaluation.tuning.scores import outcome_of
from perikope.query.topic import Topic
from perikope.search.facade import Index

LOGICAL_ONLY = "prox"
"""The model that has no weights of tags: with `learn = "tags"`, only its logical tags are learned."""
DOCUMENT = "document"
"""The tag of documents in formats that have no tags."""
TRAINING_CHUNK = 5
"""Training topics per task. Tasks are small because every setting of every system scores each topic."""


@dataclass(slots=True)
class Work:
    """An unfinished system in one sweep, with the rankers chosen for it so far."""

    number: int
    """Index of the system in `Plan.systems`."""
    system: SystemPlan
    state: State
    rankers: tuple[RankerSpec, ...] = ()
    """One ranker per fold, which ranks the topics of that fold. A single ranker if there are no folds."""
    tuned: TuningOutcome | None = None
    notes: list[str] = field(default_factory=list)
    tables: list[ExtraTable] = field(default_factory=list)
    """Tables of what the system has learned, for the report."""
    figures: list[ExtraFigure] = field(default_factory=list)
    """Figures of what the system has learned, for the report."""


@dataclass(frozen=True, slots=True)
class Learned:
    """A model with learned weights and search options, and what the report says about them."""

    ranker: RankerSpec
    note: str
    tables: tuple[ExtraTable, ...] = ()
    figures: tuple[ExtraFigure, ...] = ()


def chunks(topics: int, size: int) -> list[tuple[int, ...]]:
    """The indices 0 to `topics` - 1, split into consecutive chunks of at most `size`."""
    return [tuple(range(first, min(first + size, topics))) for first in range(0, topics, size)]


class Choosing:
    """Chooses the rankers of systems on the training topics of one set of topics."""

    def __init__(
        self,
        plan: Plan,
        tuning_measure: str,
        index: Index,
        material: Material,
        text: TextFile | None,
        seconds: dict[str, float],
        on_progress: OnProgress,
    ) -> None:
        """`text` is the file that says which text is relevant to the training topics; None without training topics.

        `seconds` is updated in place with the time of each stage, summed over all processes.
        """
        self.plan, self.tuning_measure, self.index, self.material, self._text = plan, tuning_measure, index, material, text
        self.seconds, self.on_progress = seconds, on_progress
        self._learned: dict[tuple[str, int], dict[str, Any]] = {}

    def choose(self, works: list[Work], documents: int, pool: Pool[Any, Any], label: str) -> None:
        """Choose the rankers of each system and set `rankers`, `tuned` and `notes` of its `Work`."""
        scores, groups = self._train([work for work in works if self._is_trained(work)], documents, pool, label)
        for work in works:
            system = work.system
            if system.space is not None:
                self._tune(work, scores)
            elif system.learn == "fusion":
                self._fit(work, groups.get(work.number, []))
            elif system.learn:
                self._learn(work, documents)
            elif not system.of:
                work.rankers = (RankerSpec(str(parse_model(system.model))),)
        by_name = {work.system.name: work for work in works}
        for work in works:
            if work.system.of:
                self._put_together(work, [by_name[name] for name in work.system.of])

    def _is_trained(self, work: Work) -> bool:
        """Whether the training topics must be scored for the system: it is tuned or fitted, and no choice is saved."""
        return (work.system.space is not None or work.system.learn == "fusion") and work.state.read("chosen") is None

    def _train(
        self, works: Sequence[Work], documents: int, pool: Pool[Any, Any], label: str
    ) -> tuple[dict[int, dict[int, Any]], dict[int, list[Group]]]:
        """Score the training topics in the pool, except those whose scores are saved.

        Returns the scores of tuned systems, by number of the system and chunk, as (topics, settings). Returns also the
        training examples of the other systems, by number of the system.
        """
        topics = self.material.training_topics
        scores: dict[int, dict[int, Any]] = {work.number: {} for work in works if work.system.space is not None}
        groups: dict[int, list[Group]] = {work.number: [] for work in works if work.system.space is None}
        tasks = []
        for chunk, numbers in enumerate(chunks(len(topics), TRAINING_CHUNK)):
            missing = []
            for work in works:
                space = work.system.space
                known_scores = None if space is None else work.state.read_scores(numbers, len(space.settings))
                if known_scores is None:
                    missing.append(work.number)
                else:
                    scores[work.number][chunk] = known_scores
            if missing:
                tasks.append(TrainingTask(chunk, numbers, documents, tuple(missing)))
        state_of = {work.number: work.state for work in works}
        by_chunk: dict[tuple[int, int], list[Group]] = {}
        self.on_progress(f"{label}: training", 0, len(tasks))
        for done, (task, result) in enumerate(pool.results(tasks), 1):
            add_seconds(self.seconds, result.seconds)
            for number, rows in result.scores.items():
                scores[number][task.chunk] = np.array(rows, np.float64)
                state_of[number].write_scores(task.numbers, scores[number][task.chunk])
            for number, examples in result.groups.items():
                by_chunk[number, task.chunk] = examples
            self.on_progress(f"{label}: training", done, len(tasks))
        for number in groups:
            groups[number] = [group for key in sorted(by_chunk) if key[0] == number for group in by_chunk[key]]
        return scores, groups

    def _tune(self, work: Work, scores: Mapping[int, Mapping[int, Any]]) -> None:
        space = work.system.space
        assert space is not None
        chosen = work.state.read("chosen")
        if chosen is None:
            by_chunk = scores[work.number]
            matrix = np.ascontiguousarray(np.concatenate([by_chunk[chunk] for chunk in sorted(by_chunk)]).T)
            qids = [topic.qid for topic in self.material.training_topics]
            work.tuned, numbers = outcome_of(space, matrix, qids, parse_measure(self.tuning_measure), self.material.fold_of(qids))
            work.rankers = tuple(RankerSpec(str(space.models[number])) for number in numbers)
            best = space.settings.index(tuple(work.tuned.chosen[path] for path in space.values))
            chosen = {
                "rankers": [ranker.written() for ranker in work.rankers],
                "best": str(space.models[best]),
                "system": system_facts(SystemOutcome(work.system.name, "", {}, (), work.tuned)),
            }
            work.state.write("chosen", chosen)
        work.rankers = tuple(RankerSpec(**ranker) for ranker in chosen["rankers"])
        work.tuned = system_of(chosen["system"], {}).tuned

    def _fit(self, work: Work, groups: Sequence[Group]) -> None:
        chosen = work.state.read("chosen")
        if chosen is None:
            learner = Learner(work.system.method, seed=self.plan.seed)
            normalize = NORMALIZATION[work.system.method]
            rankers = []
            for number in range(self.material.folds or 1):
                taught = [group for group in groups if not self.material.fold or self.material.fold[group.qid] != number]
                rankers.append(RankerSpec(combination=learner.fit(taught, normalize)[0].values()))
            chosen = {"rankers": [ranker.written() for ranker in rankers], "topics": len(groups)}
            work.state.write("chosen", chosen)
        work.rankers = tuple(RankerSpec(**ranker) for ranker in chosen["rankers"])
        work.notes.append(
            f"learned by {work.system.method} from {chosen['topics']} topics, the best passages of {CANDIDATES} and others drawn by chance"
        )

    def _learn(self, work: Work, documents: int) -> None:
        """Learn weights of tags or of positions. The ranker of a fold learns from the topics of all other folds."""
        chosen = work.state.read("chosen")
        if chosen is None:
            # Sweeps that learn from a run with the same number of documents share what is learned.
            fetched = work.system.learn_documents or documents
            if (work.system.name, fetched) not in self._learned:
                self._learned[work.system.name, fetched] = self._learned_in_folds(work.system, fetched)
            chosen = self._learned[work.system.name, fetched]
            work.state.write("chosen", chosen)
        work.rankers = tuple(RankerSpec(**ranker) for ranker in chosen["rankers"])
        work.notes += chosen["notes"]
        work.tables += tables_of(chosen.get("tables", ()))
        work.figures += figures_of(chosen.get("figures", ()))

    def _learned_in_folds(self, system: SystemPlan, documents: int) -> dict[str, Any]:
        """What is saved of a system that learns: a ranker per fold, notes, tables and figures."""
        learned = []
        learn = self._learned_tags if system.learn == "tags" else self._learned_prior
        for number in range(self.material.folds or 1):
            taught = [topic for topic in self.material.training_topics if not self.material.fold or self.material.fold[topic.qid] != number]
            learned.append(learn(system, taught, documents))
        return {
            "rankers": [one.ranker.written() for one in learned],
            "notes": list(dict.fromkeys(one.note for one in learned)),
            # The report shows what the first fold has learned, because folds differ little.
            "tables": plain(learned[0].tables),
            "figures": plain(learned[0].figures),
        }

    @cached_property
    def _relevant_tokens(self) -> dict[str, TokenRanges] | None:
        """The relevant tokens of the training topics, if ranges of characters are judged; the same for all folds."""
        return None if self._text is None else relevant_tokens(self._text[0], self.index.snapshot, self._text[1])

    def _learned_tags(self, system: SystemPlan, topics: Sequence[Topic], documents: int) -> Learned:
        """Learn weights of tags and, if the system ranks all elements, which logical tags results may have."""
        judged = {topic.qid: self.material.training_judgements.get(topic.qid, {}) for topic in topics}
        table = learn_tags(
            self.index.snapshot, judged, tokens=self._relevant_tokens, selection=Selection(occurrences=system.min_occurrences)
        ).table
        call, notes = parse(system.model), []
        arguments, options = dict(call.arguments), dict[str, Any]()
        if call.name != LOGICAL_ONLY:
            weights = {tag: float(f"{weight:.6g}") for tag, weight in table.weights.items() if _can_be_written(tag)}
            heaviest = ", ".join(f"{tag} {weight:.2f}" for tag, weight in list(weights.items())[:5])
            notes.append(f"weights of {len(weights)} tags learned from judgements, the heaviest: {heaviest}")
            if not weights:
                # The notation of weights cannot be empty. A single weight of 1 changes no score.
                weights = {DOCUMENT: 1.0}
                notes[0] = f"no tag occurs {system.min_occurrences} times, so all words have weight 1; set min_occurrences lower"
            arguments["weights"] = Call("tags", weights)
        if system.options.get("elements") is True and table.logical:
            arguments.setdefault("logical", table.logical)
            options["elements"] = list(table.logical)
            notes.append(f"results have one of the learned logical tags: {', '.join(table.logical)}")
        model = parse_model(replace(call, arguments=arguments))
        tables = (tag_table(table),) if "weights" in arguments else ()
        return Learned(RankerSpec(str(model), options=options), "; ".join(notes), tables)

    def _learned_prior(self, system: SystemPlan, topics: Sequence[Topic], documents: int) -> Learned:
        model = parse_model(system.model)
        base = model.parameters["base"]
        assert isinstance(base, Model)
        options = system.search_options(documents, self.plan.depth.results).updated({"model": base})
        learned = learn_prior_of_run(JudgedTopics(self.index.snapshot, tuple(topics), self.material.training_judgements, options))
        weights = tuple(float(f"{weight:.6g}") for weight in learned.weights)
        shown = " ".join(f"{weight:.2f}" for weight in weights)
        weighted = str(replace(model, parameters={**model.parameters, "weights": weights}))
        return Learned(RankerSpec(weighted), f"weights of the tenths: {shown}", (prior_table(learned),), (prior_figure(learned),))

    def _put_together(self, work: Work, parts: Sequence[Work]) -> None:
        call = parse(work.system.model)
        count = max(len(part.rankers) for part in parts)
        for number in range(count):
            chosen = [part.rankers[number if len(part.rankers) > 1 else 0] for part in parts]
            models = tuple(parse(ranker.model) for ranker in chosen)
            model = parse_model(replace(call, arguments={**call.arguments, "models": models}))
            options = {name: value for ranker in chosen for name, value in ranker.options.items()}
            work.rankers = (*work.rankers, RankerSpec(str(model), options=options))
        work.notes.append(f"fuses {', '.join(work.system.of)}, each with its chosen parameters")


def _can_be_written(tag: str) -> bool:
    """Whether a tag is a valid parameter name in the notation of models, such as `tags(title=2)`."""
    try:
        call = parse(f"tags({tag}=1)")
    except UsageError:
        return False
    return list(call.arguments) == [tag]
