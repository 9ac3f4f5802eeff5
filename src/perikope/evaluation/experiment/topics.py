"""Tasks of worker processes on chunks of topics: score training topics, and rank and measure reported topics."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perikope.browse.models import Model, parse_model
from perikope.browse.models.combination import KIND, Combination, CombinationScorer, combination_of
from perikope.browse.signals import Column
from perikope.core import files
from perikope.evaluation.depth import Depth
from perikope.evaluation.experiment.plan_parts import CANDIDATES, SystemPlan
from perikope.evaluation.io.runs import falling
from perikope.evaluation.learning.examples import Group, Sampling, group_of
from perikope.evaluation.learning.validation import NORMALIZATION
from perikope.evaluation.measures import parse_measure
from perikope.evaluation.measuring import Measuring, TextFile, TopicFigures
from perikope.evaluation.tuning.scores import scores_in_view
from perikope.evaluation.views import Looking, View
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import SavedTable
from perikope.query.topic import Topic
from perikope.search.batch import NOTHING_FOUND, PreparedTopic
from perikope.search.fetching import Fetched
from perikope.search.naming import PassageNames
from perikope.search.options import SearchOptions


@dataclass(frozen=True, slots=True)
class Setup:
    """The arguments with which each worker process starts."""

    index: Path
    systems: tuple[SystemPlan, ...]
    topics: tuple[Topic, ...]
    judgements: Mapping[str, Mapping[str, int]]
    training_topics: tuple[Topic, ...]
    training_judgements: Mapping[str, Mapping[str, int]]
    measures: tuple[str, ...]
    tuning_measure: str
    depth: Depth
    """Where rankings are cut."""
    seed: int
    text: TextFile
    """The file that says which text is relevant to the reported topics, for measures that count characters."""
    training_text: TextFile | None
    """The same for the training topics; None if there are none."""


@dataclass(frozen=True, slots=True)
class RankerSpec:
    """A ranker in a form that can be saved as JSON: either a model or a learned combination of features."""

    model: str = ""
    """The notation of the model; empty for a learned combination."""
    combination: Mapping[str, Any] | None = None
    """The values of a learned combination; None for a model."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Search options that were learned with the model. They take precedence over the options of the system."""

    def written(self) -> dict[str, Any]:
        """The fields as an object for JSON."""
        return {"model": self.model, "combination": self.combination, "options": dict(self.options)}


@dataclass(frozen=True, slots=True)
class TrainingTask:
    """A chunk of training topics to be scored for some systems."""

    chunk: int
    """The number of the chunk."""
    numbers: tuple[int, ...]
    """Indices of the topics in `Setup.training_topics`."""
    documents: int
    """Number of documents to fetch."""
    systems: tuple[int, ...]
    """Indices of the systems in `Setup.systems`."""


@dataclass(slots=True)
class Trained:
    """The result of a training task."""

    scores: dict[int, list[list[float]]] = field(default_factory=dict)
    """By index of the system: one row per topic, with the value of the tuning measure for each setting."""
    groups: dict[int, list[Group]] = field(default_factory=dict)
    """By index of the system: the training examples of each topic with a valid query."""
    seconds: dict[str, float] = field(default_factory=dict)
    """The time of each stage."""


@dataclass(frozen=True, slots=True)
class RankingTask:
    """A chunk of reported topics to be ranked by some systems."""

    chunk: int
    """The number of the chunk."""
    numbers: tuple[int, ...]
    """Indices of the topics in `Setup.topics`."""
    documents: int
    """Number of documents to fetch."""
    systems: Mapping[int, tuple[RankerSpec, ...]]
    """By index of the system: one ranker per fold, or a single ranker if there are no folds."""
    fold: Mapping[str, int]
    """The fold of each topic, by id. Empty without cross-validation."""
    runs: Mapping[int, Path]
    """By index of the system: the run file to write for these topics."""


@dataclass(slots=True)
class RankedTopics:
    """The result of a ranking task."""

    figures: dict[int, list[TopicFigures]] = field(default_factory=dict)
    """By index of the system: the figures of each topic."""
    problems: list[str] = field(default_factory=list)
    """One line per topic whose query is not valid, or which has no results."""
    seconds: dict[str, float] = field(default_factory=dict)
    """The time of each stage."""


class TopicWork:
    """Does tasks on topics in one worker process."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.snapshot = Snapshot.open(setup.index)
        self.measures = [parse_measure(name) for name in setup.measures]
        self.tuning_measure = parse_measure(setup.tuning_measure)
        self.sampling = Sampling(seed=setup.seed)
        self.names = PassageNames(self.snapshot)
        self.measuring = Measuring(setup.judgements, setup.text, setup.index)
        self.training = Measuring(setup.training_judgements, setup.training_text, setup.index)

    def __call__(self, task: TrainingTask | RankingTask) -> Trained | RankedTopics:
        """Do a task and return its result."""
        return self._train(task) if isinstance(task, TrainingTask) else self._rank(task)

    def _train(self, task: TrainingTask) -> Trained:
        looking = Looking(self.snapshot, self.setup.training_judgements, self.names)
        of_systems = self._options(task.systems, task.documents)
        result = Trained()
        for number in task.numbers:
            topic = self.setup.training_topics[number]
            views = _Views(looking, topic, self._options_of_topic(topic, of_systems), result.seconds)
            for system_number in task.systems:
                system = self.setup.systems[system_number]
                if system.space is not None:
                    scores = [0.0] * len(system.space.settings)
                    if not views.problem(system_number):
                        view, asked = views.view(system_number), views.asked(system_number)
                        with _timed(result.seconds, "settings"):
                            scores = scores_in_view(
                                view, system.space, self.tuning_measure, self.setup.depth, looking, asked, self.training
                            )
                    result.scores.setdefault(system_number, []).append(scores)
                elif not views.problem(system_number):
                    view = views.view(system_number)
                    with _timed(result.seconds, "examples"):
                        result.groups.setdefault(system_number, []).append(self._examples(topic, view, system))
        return result

    def _examples(self, topic: Topic, view: View, system: SystemPlan) -> Group:
        model = parse_model(CANDIDATES)
        ranking = view.rank(model.score(view.matches), Depth(max(self.sampling.depth, 1)), model)
        judged = self.setup.training_judgements.get(topic.qid, {})
        return group_of(topic.qid, self.snapshot, view.matches, ranking, judged, self.sampling, NORMALIZATION[system.method])

    def _options(self, systems: Iterable[int], documents: int) -> dict[int, SearchOptions]:
        """The search options of each system, by its index."""
        return {
            system_number: self.setup.systems[system_number].search_options(documents, self.setup.depth.results)
            for system_number in systems
        }

    def _options_of_topic(self, topic: Topic, options: Mapping[int, SearchOptions]) -> dict[int, SearchOptions]:
        """The search options of each system for one topic, with the text of the system's `browse_field`."""
        return {number: self.setup.systems[number].for_topic(topic, given) for number, given in options.items()}

    def _rank(self, task: RankingTask) -> RankedTopics:
        looking = Looking(self.snapshot, self.setup.judgements, self.names)
        of_systems = self._options(task.systems, task.documents)
        result = RankedTopics()
        rankers = {
            system_number: [(_ready(spec), of_systems[system_number].updated(spec.options)) for spec in specs]
            for system_number, specs in task.systems.items()
        }
        rankings: dict[int, list[tuple[str, list[tuple[str, float]]]]] = {system_number: [] for system_number in task.systems}
        for number in task.numbers:
            topic = self.setup.topics[number]
            chosen = {
                system_number: of_folds[task.fold[topic.qid] if len(of_folds) > 1 else 0] for system_number, of_folds in rankers.items()
            }
            options = self._options_of_topic(topic, {system_number: of_ranker for system_number, (_, of_ranker) in chosen.items()})
            views = _Views(looking, topic, options, result.seconds)
            for system_number, (ranker, _) in chosen.items():
                ranking: list[tuple[str, float]] = []
                if problem := views.problem(system_number):
                    result.problems.append(f"topic {topic.qid}: {problem}")
                else:
                    ranking = self._ranking(views, system_number, ranker, result.seconds)
                    result.problems += [] if ranking else [f"topic {topic.qid}: {NOTHING_FOUND}"]
                rankings[system_number].append((topic.qid, ranking))
                with _timed(result.seconds, "measures"):
                    figures = self.measuring.figures(self.measures, topic.qid, ranking)
                result.figures.setdefault(system_number, []).append(figures)
        with _timed(result.seconds, "runs written"):
            for system_number, path in task.runs.items():
                write_packed(path, rankings[system_number], tag_of(self.setup.systems[system_number].name))
        return result

    def _ranking(
        self, views: _Views, system_number: int, ranker: Model | Combination, seconds: dict[str, float]
    ) -> list[tuple[str, float]]:
        if isinstance(ranker, Model):
            view = views.view(system_number, ranker)
            with _timed(seconds, "scores"):
                column = ranker.score(view.matches)
        else:
            view = views.view(system_number)
            with _timed(seconds, "scores, learned"):
                column = views.learned(system_number, ranker)
        with _timed(seconds, "rankings"):
            ranking = view.rank(column, self.setup.depth, ranker if isinstance(ranker, Model) else None)
            return list(zip(view.names(ranking), ranking.scores.tolist(), strict=True))


class _Views:
    """The views of one topic for several systems. Systems with the same search options share one view."""

    def __init__(self, looking: Looking, topic: Topic, options: Mapping[int, SearchOptions], seconds: dict[str, float]) -> None:
        self._looking, self._topic, self._options, self._seconds = looking, topic, options, seconds
        distinct: list[SearchOptions] = []
        self._key: dict[int, int] = {}
        """By index of the system: the index of its options in `distinct`."""
        for system_number, of_system in options.items():
            if of_system not in distinct:
                distinct.append(of_system)
            self._key[system_number] = distinct.index(of_system)
        self._asked: dict[int, PreparedTopic] = {}
        self._views: dict[int, View] = {}
        self._fetched: dict[int, Fetched] = {}
        self._scorers: dict[int, CombinationScorer] = {}

    def asked(self, system_number: int) -> PreparedTopic:
        """The topic, prepared with the search options of a system."""
        key = self._key[system_number]
        if key not in self._asked:
            self._asked[key] = self._looking.prepare(self._topic, self._options[system_number])
        return self._asked[key]

    def problem(self, system_number: int) -> str:
        """The reason why the topic is not a valid query for a system; empty if it is valid."""
        return self.asked(system_number).problem

    def view(self, system_number: int, model: Model | None = None) -> View:
        """The view of the topic for a system. `model` is only used if the matches depend on the model."""
        asked, key = self.asked(system_number), self._key[system_number]
        with _timed(self._seconds, "fetch and join"):
            if model is not None and asked.search.matches_depend_on_model:
                view = self._looking.view(asked, model, self._fetched.get(key))
                self._fetched[key] = view.fetched
                return view
            if key not in self._views:
                self._views[key] = self._looking.view(asked)
            return self._views[key]

    def learned(self, system_number: int, combination: Combination) -> Column:
        """The scores of all passages in the view of a system, by a learned combination."""
        key = self._key[system_number]
        if key not in self._scorers:
            self._scorers[key] = CombinationScorer(self.view(system_number).matches)
        return self._scorers[key].score(combination)


def _ready(ranker: RankerSpec) -> Model | Combination:
    if ranker.combination is None:
        return parse_model(ranker.model)
    return combination_of(SavedTable("of the experiment", KIND, ranker.combination))


def write_packed(path: Path, rankings: Iterable[tuple[str, Sequence[tuple[str, float]]]], tag: str) -> None:
    """Write a part of a run like `write_run`, but faster. Names must be unique and must not contain spaces.

    An experiment writes millions of lines. Lower compression and no checks of names reduce the time to a fifth.
    """
    lines = []
    for qid, ranking in rankings:
        scores = falling([score for _, score in ranking])
        start, end = f"{qid} Q0 ", f" {tag}\n"
        lines += [f"{start}{name} {rank} {score:.9g}{end}" for rank, ((name, _), score) in enumerate(zip(ranking, scores, strict=True), 1)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with files.replacing_binary(path) as file:
        # The gzip header has no file name and no time, so that the same content gives the same bytes.
        file.write(gzip.compress("".join(lines).encode(), 4, mtime=0))


def tag_of(name: str) -> str:
    """The tag of a system, for the last column of a run: its name with hyphens in place of spaces."""
    return "-".join(name.split()) or "perikope"


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - started


def add_seconds(total: dict[str, float], more: Mapping[str, float]) -> None:
    """Add the seconds of each stage to `total`, in place."""
    for stage, seconds in more.items():
        total[stage] = total.get(stage, 0.0) + seconds
