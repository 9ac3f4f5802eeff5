"""Runs an experiment: for each sweep, parameters are chosen on training topics, and all systems rank the topics that are reported.

Topics are looked into a few at a time, once for all systems that fetch alike. What is done is kept (see `state`), and figures do not depend
on how often the work was interrupted or by how many processes it was done.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from perikope import __version__
from perikope.browse.models import Model, parse_model
from perikope.browse.models.features import VERSION as FEATURES_VERSION
from perikope.browse.tags import Selection, learn_tags
from perikope.build.indexing import build
from perikope.core.errors import MissingExtra, PerikopeError, UsageError
from perikope.core.grammar import Call, parse
from perikope.core.parallel import usable_cores
from perikope.evaluation.experiment.facts import facts_of, notes_on_syntax, uses_trees
from perikope.evaluation.experiment.material import Material, read_material, read_run_of, topics_digest
from perikope.evaluation.experiment.outcome import FILE, VALUES, Outcome, Sweep, SystemOutcome, slug, system_facts, system_of
from perikope.evaluation.experiment.plan import Plan, SystemPlan
from perikope.evaluation.experiment.state import State, digest, file_digest, locked, remove_others
from perikope.evaluation.experiment.topics import (
    CANDIDATES,
    RankedTopics,
    RankerSpec,
    RankingTask,
    Setup,
    TopicWork,
    Trained,
    TrainingTask,
    add_seconds,
)
from perikope.evaluation.figures import RECALL_POINTS, precision_curve
from perikope.evaluation.io.judgements import disagreement
from perikope.evaluation.io.runs import Run
from perikope.evaluation.learning.examples import Group, JudgedTopics
from perikope.evaluation.learning.prior import learn_prior_of_run
from perikope.evaluation.learning.validation import NORMALIZATION, Learner
from perikope.evaluation.measures import parse_measure, parse_measures, ranked_names
from perikope.evaluation.measures.significance import check_test
from perikope.evaluation.measuring import Measuring, TopicFigures
from perikope.evaluation.pool import Pool, open_pool
from perikope.evaluation.tuning.outcome import TuningOutcome
from perikope.evaluation.tuning.scores import outcome_of
from perikope.evaluation.views import Looking
from perikope.index.reader import Snapshot
from perikope.query.topic import Topic
from perikope.search.facade import Index
from perikope.search.recipes import load_recipe

CHUNK = 20
"""Topics that are ranked at a time; what an interruption can lose."""

TRAINING_CHUNK = 5
"""Training topics that are looked into at a time: all settings of all systems score each, which takes longer than to rank it once."""

_BEGUN = "begun"
"""Where the state says which experiment the folder is for."""

_KEPT = ("done.json", "chosen.json")
"""Of a system that is finished."""

OnProgress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Done:
    """An experiment that was run."""

    outcome: Outcome
    problems: tuple[str, ...]
    """Topics that were passed over."""
    seconds: Mapping[str, float]
    """Where the time of all processes went."""
    resumed: int
    """Systems, counted once a sweep, that were finished before."""
    notes: tuple[str, ...] = ()
    """What is not as the file says, and is no mistake."""


def run_experiment(
    plan: Plan, folder: Path, *, fresh: bool = False, workers: int | None = None, on_progress: OnProgress = lambda stage, done, all: None
) -> Done:
    """Run an experiment in a folder, or what is left of it; writes runs, values, `experiment.json` and the report."""
    _check_folder(folder)
    _check_installed(plan)
    _check_collection(plan)
    material = read_material(plan)
    runs = {system.name: read_run_of(plan, system) for system in plan.systems if system.run is not None}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder} (--out): {error.strerror}") from None
    with locked(folder):
        if fresh:
            remove_others(folder, ())
        else:
            _check_title(folder, plan.title)
        State(folder, _BEGUN).write("title", plan.title)
        index = Index.open(plan.collection.index) if plan.collection.index is not None else _built(plan, folder, on_progress)
        experiment = _Experiment(plan, folder, index, material, on_progress)
        experiment.measure_runs(runs)
        experiment.notes += notes_on_syntax(plan, index, material.topics)
        # They can be large, and forked workers would hold them too.
        runs.clear()
        experiment.rehearse()
        setup = Setup(
            index.folder,
            plan.systems,
            material.topics,
            material.judgements,
            material.training_topics,
            material.training_judgements,
            plan.measures,
            plan.training.measure if plan.training is not None and plan.training.measure else plan.measures[0],
            plan.k,
            plan.seed,
            plan.topics.text,
            None if plan.training is None else (plan.training.topics or plan.topics).text,
        )
        with open_pool(TopicWork, setup, workers or usable_cores()) as pool:
            sweeps = tuple(experiment.sweep(documents, pool) for documents in plan.documents)
        experiment.tidy()
        notes = (*material.notes, *experiment.notes)
        outcome = Outcome(plan.title, plan.description, facts_of(plan, index, material, notes), plan.measures, sweeps, plan.comparison)
        outcome.save(folder)
        _write_report(outcome, folder)
    problems = tuple(dict.fromkeys([*material.problems, *experiment.problems]))
    return Done(outcome, problems, experiment.seconds, experiment.resumed, notes)


def _write_report(outcome: Outcome, folder: Path) -> None:
    try:
        from perikope.evaluation.experiment.report import write_report
    except ModuleNotFoundError:
        return
    write_report(outcome, folder)


def _check_folder(folder: Path) -> None:
    """Results are put in place of older ones, and of nothing else."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file; results need a folder of their own (--out)")
    known = {FILE, VALUES, "runs", "index", "index.json", ".work"}
    others = [file.name for file in folder.iterdir() if file.name not in known]
    if others and not (folder / FILE).exists() and not (folder / ".work").exists():
        raise UsageError(f"{folder} holds other files, such as {sorted(others)[0]}; name a folder of its own (--out)")


def _check_title(folder: Path, title: str) -> None:
    """An experiment of another title was not edited to become this one: its results are not to be lost."""
    # The one that was begun last, and where `.work` was deleted, the one whose results are there.
    earlier = State(folder, _BEGUN).read("title")
    if earlier is None:
        with suppress(OSError, ValueError, AttributeError):
            earlier = json.loads((folder / FILE).read_text("utf-8")).get("title")
    if earlier not in (None, title):
        raise UsageError(
            f"{folder} holds the experiment {earlier!r}, this one is {title!r}: name another folder (--out), or replace it (--fresh)"
        )


def _check_collection(plan: Plan) -> None:
    """What is searched must be there."""
    if plan.collection.index is not None:
        with plan.reading("collection", "index", "index"):
            Index.open(plan.collection.index)
    for path in plan.collection.documents:
        with plan.reading("collection", "documents", "documents"):
            if not path.exists():
                raise UsageError(f"there is no file or folder {path} to index")


def _check_installed(plan: Plan) -> None:
    """What is needed at the end, or in the middle, must be there at the beginning."""
    if len(plan.systems) > 1:
        check_test(plan.comparison.test)
    if uses_trees(plan) and find_spec("lightgbm") is None:
        raise MissingExtra("lightgbm", "ltr")


def _built(plan: Plan, folder: Path, on_progress: OnProgress) -> Index:
    """The index of the plan's documents, in the folder of the results; made anew where documents or settings have changed."""
    place, note = folder / "index", State(folder, "index")
    sources = {str(path): _files_digest(path) for path in plan.collection.documents}
    settings = {name: value for name, value in asdict(plan.collection.build).items() if name not in ("memory", "workers", "wait")}
    wanted = digest([__version__, sorted(sources.values()), settings])
    if note.read("made") == wanted:
        return Index.open(place)
    shutil.rmtree(place, ignore_errors=True)
    on_progress("index", 0, 1)
    # By one process: how documents are cut into segments must not depend on the machine.
    report = build(str(place), list(sources), replace(plan.collection.build, workers=1))
    if report.skipped:
        raise UsageError(f"some documents cannot be read: {report.skipped[0]}")
    note.write("made", wanted)
    on_progress("index", 1, 1)
    return Index.open(place)


def _files_digest(path: Path) -> str:
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return digest([[str(file.relative_to(path)), file_digest(file)] for file in files])


@dataclass(slots=True)
class _Work:
    """A system in a sweep, on its way."""

    number: int
    system: SystemPlan
    state: State
    rankers: tuple[RankerSpec, ...] = ()
    tuned: TuningOutcome | None = None
    notes: list[str] = field(default_factory=list)


class _Experiment:
    """The state of a running experiment."""

    def __init__(self, plan: Plan, folder: Path, index: Index, material: Material, on_progress: OnProgress) -> None:
        self.plan, self.folder, self.index, self.material, self.on_progress = plan, folder, index, material, on_progress
        self.measures = parse_measures(plan.measures)
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.seconds: dict[str, float] = {}
        self.resumed = 0
        self._measured: dict[str, SystemOutcome] = {}
        self._keys: dict[tuple[str, int], str] = {}
        self._common = [
            __version__, FEATURES_VERSION, CHUNK, index.fingerprint, topics_digest(material.topics, material.judgements),
            topics_digest(material.training_topics, material.training_judgements), sorted(material.fold.items()), plan.measures, plan.k,
            plan.seed, plan.training.measure if plan.training is not None else "", *(file_digest(Path(text)) for text in self._texts()),
        ]  # fmt: skip

    def _texts(self) -> list[str]:
        """The files of relevant text, where there are any."""
        own = self.plan.training.topics if self.plan.training is not None else None
        return [topics.spans for topics in (self.plan.topics, own) if topics is not None and topics.spans]

    def key(self, system: SystemPlan, documents: int) -> str:
        """A name for everything that the figures of a system in a sweep depend on."""
        if (system.name, documents) not in self._keys:
            by_name = {other.name: other for other in self.plan.systems}
            space = system.space
            own = [
                system.name, system.model, sorted(system.options.items()), None if space is None else [list(space.values), space.settings],
                system.learn, system.method, system.min_occurrences, [self.key(by_name[other], documents) for other in system.of],
                "" if system.run is None else file_digest(system.run), documents,
            ]  # fmt: skip
            self._keys[system.name, documents] = f"{documents}-{slug(system.name)}-{digest([self._common, own])[:16]}"
        return self._keys[system.name, documents]

    def run_path(self, system: SystemPlan, documents: int) -> Path:
        return self.folder / "runs" / f"{documents}-{slug(system.name)}.run.gz"

    def sweep(self, documents: int, pool: Pool[TrainingTask | RankingTask, Trained | RankedTopics]) -> Sweep:
        """All systems with so many documents fetched."""
        label = f"{documents} document{'' if documents == 1 else 's'} fetched"
        finished = {system.name: self._finished(system, documents) for system in self.plan.systems}
        self.resumed += sum(found is not None for found in finished.values())
        needed = {other for system in self.plan.systems if finished[system.name] is None for other in system.of}
        works = [
            _Work(number, system, State(self.folder, self.key(system, documents)))
            for number, system in enumerate(self.plan.systems)
            if system.run is None and (finished[system.name] is None or system.name in needed)
        ]
        self._choose(works, documents, pool, label)
        left = [work for work in works if finished[work.system.name] is None]
        self._rank(left, documents, pool, label)
        made = {work.system.name: self._finish(work, documents) for work in left}
        made |= self._measured
        return Sweep(label, tuple(made.get(system.name) or _there(finished[system.name]) for system in self.plan.systems))

    def _finished(self, system: SystemPlan, documents: int) -> SystemOutcome | None:
        if system.run is not None:
            return None
        done = State(self.folder, self.key(system, documents)).read("done")
        path = self.run_path(system, documents)
        if not isinstance(done, dict) or not path.is_file() or done.get("run") != file_digest(path):
            return None
        return system_of(done["system"], done["values"])

    # Choosing.

    def _choose(self, works: list[_Work], documents: int, pool: Pool[Any, Any], label: str) -> None:
        """Find out what ranks the topics of each fold, for each system."""
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

    def _is_trained(self, work: _Work) -> bool:
        """Whether training topics must be looked into for the system."""
        return (work.system.space is not None or work.system.learn == "fusion") and work.state.read("chosen") is None

    def _train(
        self, works: Sequence[_Work], documents: int, pool: Pool[Any, Any], label: str
    ) -> tuple[dict[int, dict[int, Any]], dict[int, list[Group]]]:
        topics = self.material.training_topics
        scores: dict[int, dict[int, Any]] = {work.number: {} for work in works if work.system.space is not None}
        groups: dict[int, list[Group]] = {work.number: [] for work in works if work.system.space is None}
        tasks = []
        for chunk, numbers in enumerate(_chunks(len(topics), TRAINING_CHUNK)):
            missing = []
            for work in works:
                space = work.system.space
                kept = None if space is None else work.state.read_scores(numbers, len(space.settings))
                if kept is None:
                    missing.append(work.number)
                else:
                    scores[work.number][chunk] = kept
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
            for number, own in result.groups.items():
                by_chunk[number, task.chunk] = own
            self.on_progress(f"{label}: training", done, len(tasks))
        for number in groups:
            groups[number] = [group for key in sorted(by_chunk) if key[0] == number for group in by_chunk[key]]
        return scores, groups

    def _tune(self, work: _Work, scores: Mapping[int, Mapping[int, Any]]) -> None:
        space = work.system.space
        assert space is not None
        kept = work.state.read("chosen")
        if kept is None:
            own = scores[work.number]
            matrix = np.ascontiguousarray(np.concatenate([own[chunk] for chunk in sorted(own)]).T)
            qids = [topic.qid for topic in self.material.training_topics]
            measure = parse_measure(
                self.plan.training.measure if self.plan.training and self.plan.training.measure else self.plan.measures[0]
            )
            work.tuned, numbers = outcome_of(space, matrix, qids, measure, self._fold_of(qids))
            work.rankers = tuple(RankerSpec(str(space.models[number])) for number in numbers)
            best = space.settings.index(tuple(work.tuned.chosen[path] for path in space.values))
            kept = {
                "rankers": [ranker.written() for ranker in work.rankers],
                "best": str(space.models[best]),
                "system": system_facts(SystemOutcome(work.system.name, "", {}, (), work.tuned)),
            }
            work.state.write("chosen", kept)
        work.rankers = tuple(RankerSpec(**ranker) for ranker in kept["rankers"])
        work.tuned = system_of(kept["system"], {}).tuned

    def _fold_of(self, qids: Iterable[str]) -> dict[str, int]:
        return {qid: self.material.fold[qid] for qid in qids} if self.material.fold else {}

    def _fit(self, work: _Work, groups: Sequence[Group]) -> None:
        kept = work.state.read("chosen")
        if kept is None:
            learner = Learner(work.system.method, seed=self.plan.seed)
            normalize = NORMALIZATION[work.system.method]
            rankers = []
            for number in range(self.material.folds or 1):
                taught = [group for group in groups if not self.material.fold or self.material.fold[group.qid] != number]
                rankers.append(RankerSpec(combination=learner.fit(taught, normalize)[0].values()))
            kept = {"rankers": [ranker.written() for ranker in rankers], "topics": len(groups)}
            work.state.write("chosen", kept)
        work.rankers = tuple(RankerSpec(**ranker) for ranker in kept["rankers"])
        work.notes.append(
            f"learned by {work.system.method} from {kept['topics']} topics, the best passages of {CANDIDATES} and others drawn by chance"
        )

    def _learn(self, work: _Work, documents: int) -> None:
        """The weights of tags or of places, for each fold from the other folds' topics."""
        kept = work.state.read("chosen")
        if kept is None:
            models, notes = [], []
            learn = self._learned_tags if work.system.learn == "tags" else self._learned_prior
            for number in range(self.material.folds or 1):
                taught = [
                    topic for topic in self.material.training_topics if not self.material.fold or self.material.fold[topic.qid] != number
                ]
                model, note = learn(work.system, taught, documents)
                models.append(model)
                notes.append(note)
            kept = {"rankers": [RankerSpec(model).written() for model in models], "notes": list(dict.fromkeys(notes))}
            work.state.write("chosen", kept)
        work.rankers = tuple(RankerSpec(**ranker) for ranker in kept["rankers"])
        work.notes += kept["notes"]

    def _learned_tags(self, system: SystemPlan, topics: Sequence[Topic], documents: int) -> tuple[str, str]:
        judged = {topic.qid: self.material.training_judgements.get(topic.qid, {}) for topic in topics}
        table = learn_tags(Snapshot.open(self.index.folder), judged, selection=Selection(occurrences=system.min_occurrences)).table
        weights = {tag: float(f"{weight:.6g}") for tag, weight in table.weights.items()}
        call = parse(system.model)
        usable = {tag: weight for tag, weight in weights.items() if _can_be_written(tag)}
        model = replace(call, arguments={**call.arguments, "weights": Call("tags", usable)})
        heaviest = ", ".join(f"{tag} {weight:.2f}" for tag, weight in list(usable.items())[:5])
        return str(parse_model(model)), f"weights of {len(usable)} tags learned from judgements, the heaviest: {heaviest}"

    def _learned_prior(self, system: SystemPlan, topics: Sequence[Topic], documents: int) -> tuple[str, str]:
        model = parse_model(system.model)
        base = model.parameters["base"]
        assert isinstance(base, Model)
        options = system.search_options(documents, self.plan.k).updated({"model": base})
        learned = learn_prior_of_run(JudgedTopics(self.index.snapshot, tuple(topics), self.material.training_judgements, options))
        weights = tuple(float(f"{weight:.6g}") for weight in learned.weights)
        shown = " ".join(f"{weight:.2f}" for weight in weights)
        return str(replace(model, parameters={**model.parameters, "weights": weights})), f"weights of the tenths: {shown}"

    def _put_together(self, work: _Work, parts: Sequence[_Work]) -> None:
        call = parse(work.system.model)
        count = max(len(part.rankers) for part in parts)
        for number in range(count):
            models = tuple(parse(part.rankers[number if len(part.rankers) > 1 else 0].model) for part in parts)
            model = parse_model(replace(call, arguments={**call.arguments, "models": models}))
            work.rankers = (*work.rankers, RankerSpec(str(model)))
        work.notes.append(f"puts together {', '.join(work.system.of)}, each as it was chosen")

    # Ranking.

    def _rank(self, works: Sequence[_Work], documents: int, pool: Pool[Any, Any], label: str) -> None:
        tasks = []
        for chunk, numbers in enumerate(_chunks(len(self.material.topics))):
            missing = [work for work in works if not self._is_ranked(work, chunk, len(numbers))]
            if missing:
                qids = [self.material.topics[number].qid for number in numbers]
                rankers = {work.number: work.rankers for work in missing}
                runs = {work.number: work.state.run(chunk) for work in missing}
                tasks.append(RankingTask(chunk, numbers, documents, rankers, self._fold_of(qids), runs))
        state_of = {work.number: work.state for work in works}
        self.on_progress(f"{label}: ranking", 0, len(tasks))
        for done, (task, result) in enumerate(pool.results(tasks), 1):
            add_seconds(self.seconds, result.seconds)
            self.problems += result.problems
            for number, figures in result.figures.items():
                run = file_digest(state_of[number].run(task.chunk))
                rows = [[one.values, one.ranks, one.relevant] for one in figures]
                state_of[number].write(f"figures-{task.chunk}", {"run": run, "topics": rows})
            self.on_progress(f"{label}: ranking", done, len(tasks))

    def _is_ranked(self, work: _Work, chunk: int, topics: int) -> bool:
        kept = work.state.read(f"figures-{chunk}")
        path = work.state.run(chunk)
        return isinstance(kept, dict) and len(kept["topics"]) == topics and path.is_file() and kept["run"] == file_digest(path)

    def _finish(self, work: _Work, documents: int) -> SystemOutcome:
        """The outcome of a system whose topics are all ranked."""
        chunks = range(len(_chunks(len(self.material.topics))))
        figures = [TopicFigures(*row) for chunk in chunks for row in work.state.read(f"figures-{chunk}")["topics"]]
        outcome = self._outcome(work.system.name, self._settings(work, documents), figures, work.tuned, self._notes(work))
        run = work.state.join_runs(chunks, self.run_path(work.system, documents))
        work.state.write("done", {"run": run, "system": system_facts(outcome), "values": outcome.values})
        work.state.keep_only(_KEPT)
        return outcome

    def _outcome(
        self, name: str, settings: str, figures: Sequence[TopicFigures], tuned: TuningOutcome | None, notes: Iterable[str]
    ) -> SystemOutcome:
        qids = [topic.qid for topic in self.material.topics]
        values = {
            measure: {qid: one.values[place] for qid, one in zip(qids, figures, strict=True)}
            for place, measure in enumerate(self.plan.measures)
        }
        curves = [precision_curve(one.ranks, one.relevant) for one in figures if one.relevant]
        curve = tuple(math.fsum(own[point] for own in curves) / max(len(curves), 1) for point in range(RECALL_POINTS))
        return SystemOutcome(name, settings, values, curve, tuned, tuple(notes))

    def _settings(self, work: _Work, documents: int) -> str:
        ranker = work.rankers[0]
        if work.tuned is not None:
            model = str(work.state.read("chosen")["best"])
        else:
            model = ranker.model or f"{work.system.model}, {work.system.method}"
        options = {**work.system.options, "documents": documents}
        varies = " (of the first fold)" if len(work.rankers) > 1 and work.tuned is None and ranker.model else ""
        return "; ".join([f"model {model}{varies}", *(f"{name} {value}" for name, value in sorted(options.items()) if value)])

    def _notes(self, work: _Work) -> list[str]:
        notes = list(work.notes)
        if work.system.recipe:
            notes += load_recipe(work.system.recipe).complaints(self.index.settings)
        return notes

    def measure_runs(self, runs: Mapping[str, Run]) -> None:
        """Measure the runs of other systems: what is wrong with one must be told before the systems of the plan have taken their time."""
        for system in self.plan.systems:
            if system.run is not None:
                try:
                    self._measured[system.name] = self._measure_run(system.name, system.run.name, runs[system.name])
                except PerikopeError as error:
                    raise self.plan.wrong(f"system {system.name}", f"run is wrong: {error}") from error

    def rehearse(self) -> None:
        """Look into a document with every system: what only the index can refuse (a table, a part, a tag) must be told now as well."""
        looking = Looking(self.index.snapshot, {})
        for system in self.plan.systems:
            if system.run is not None:
                continue
            try:
                options = system.search_options(1, self.plan.k)
                read = (looking.prepare(topic, options) for topic in self.material.topics)
                asked = next((one for one in read if not one.problem), None)
                if asked is None:
                    continue
                matches = looking.view(asked).matches
                if not system.of and system.learn != "fusion":
                    model = parse_model(system.model) if system.space is None else system.space.model(system.space.settings[0])
                    # Not the combination: of values to tune, some may not go together.
                    model.signals(matches)
            except PerikopeError as error:
                raise self.plan.wrong(f"system {system.name}", str(error)) from error

    def _measure_run(self, name: str, file: str, run: Run) -> SystemOutcome:
        """A run of another system, as it is."""
        measuring = Measuring(self.material.judgements, self.plan.topics.text, self.index.folder)
        rankings = {qid: [(name, scores[name]) for name in ranked_names(scores)] for qid, scores in run.items()}
        qids = [topic.qid for topic in self.material.topics]
        missing = sum(not rankings.get(qid) for qid in qids)
        figures = [measuring.figures(self.measures, qid, rankings.get(qid, [])) for qid in qids]
        notes = ["a run that was there already: the number of documents fetched does not change it"]
        notes += [f"{missing} topics are not in it and count 0"] if missing else []
        by_name = any(measure.level == "names" for measure in self.measures)
        if missing == len(qids):
            self.notes.append(f"[system {name}] {file} has none of the topics that are reported: it counts 0 everywhere")
        elif by_name and (complaint := disagreement(self.material.judgements, {qid: run[qid] for qid in qids if qid in run})):
            self.notes.append(f"[system {name}] {file} {complaint}")
        return self._outcome(name, f"run {file}", figures, None, notes)

    def tidy(self) -> None:
        """Remove what belongs to no system of the plan, and what an interruption has left of a finished one."""
        pairs = [(system, documents) for system in self.plan.systems for documents in self.plan.documents]
        keys = {self.key(system, documents) for system, documents in pairs}
        remove_others(self.folder, keys | {"index", _BEGUN})
        for key in keys:
            State(self.folder, key).keep_only(_KEPT)
        kept = {self.run_path(system, documents).name for system, documents in pairs if system.run is None}
        runs = self.folder / "runs"
        for file in runs.iterdir() if runs.is_dir() else ():
            if file.name not in kept:
                file.unlink()


def _there(found: SystemOutcome | None) -> SystemOutcome:
    if found is None:
        raise PerikopeError("a system has neither been run nor found")
    return found


def _can_be_written(tag: str) -> bool:
    """Whether a tag can stand in the notation of models."""
    try:
        call = parse(f"tags({tag}=1)")
    except UsageError:
        return False
    return list(call.arguments) == [tag]


def _chunks(topics: int, size: int = CHUNK) -> list[tuple[int, ...]]:
    return [tuple(range(first, min(first + size, topics))) for first in range(0, topics, size)]
