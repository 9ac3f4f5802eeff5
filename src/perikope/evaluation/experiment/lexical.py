"""Runs the systems that search on one set of topics. Each sweep chooses rankers, ranks the topics and measures.

Systems with the same search options share the retrieval of each topic. Finished work is saved (see `state`). Figures
depend neither on interruptions nor on the number of processes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perikope import __version__
from perikope.browse.models import parse_model
from perikope.browse.models.features import VERSION as FEATURES_VERSION
from perikope.core.errors import PerikopeError
from perikope.evaluation.experiment.choosing import Choosing, Work, chunks
from perikope.evaluation.experiment.extras import ExtraFigure
from perikope.evaluation.experiment.indexes import OnProgress
from perikope.evaluation.experiment.influence import example_of_influence
from perikope.evaluation.experiment.material import Material, topics_digest
from perikope.evaluation.experiment.outcome import Sweep, SystemOutcome, slug, system_facts, system_of
from perikope.evaluation.experiment.plan import Plan
from perikope.evaluation.experiment.plan_parts import SystemPlan, TopicSet
from perikope.evaluation.experiment.state import State, digest, file_digest
from perikope.evaluation.experiment.topics import RankedTopics, RankingTask, Setup, Trained, TrainingTask, add_seconds
from perikope.evaluation.figures import RECALL_POINTS, precision_curve
from perikope.evaluation.io.judgements import Judgements, disagreement, kinds_of_names
from perikope.evaluation.io.runs import Run
from perikope.evaluation.measures import parse_measures, ranked_names
from perikope.evaluation.measuring import Measuring, TextFile, TopicFigures
from perikope.evaluation.pool import Pool
from perikope.evaluation.tuning.outcome import TuningOutcome
from perikope.evaluation.views import Looking
from perikope.query.topic import Topic
from perikope.search.facade import Index
from perikope.search.options import SearchOptions
from perikope.search.recipes import load_recipe

CHUNK = 20
"""Topics per ranking task. An interruption loses at most the tasks in progress."""

SHOWN = 3
"""Number of topics that a note names."""
KEPT = ("done.json", "chosen.json")
"""The files in the `State` of a finished system that are kept; all others are removed."""


def _written(value: object) -> str:
    """The value of an option as a user writes it in a file.

    >>> _written(("title", "abstract")), _written(False)
    ('title,abstract', 'false')
    """
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


class LexicalSystems:
    """The systems of a plan that search or have runs, on one set of topics."""

    def __init__(self, plan: Plan, topics: TopicSet, folder: Path, index: Index, material: Material, on_progress: OnProgress) -> None:
        self.plan, self.topics, self.folder, self.index, self.material = plan, topics, folder, index, material
        self.on_progress = on_progress
        self.systems = [system for system in plan.systems if system.searches or topics.name in system.runs]
        self.measures = parse_measures(plan.measures)
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.seconds: dict[str, float] = {}
        self.resumed = 0
        training = topics.training
        self.tuning_measure = training.measure if training is not None and training.measure else plan.measures[0]
        self._choosing = Choosing(plan, self.tuning_measure, index, material, self._training_text, self.seconds, on_progress)
        self._measured: dict[str, SystemOutcome] = {}
        self._keys: dict[tuple[str, int], str] = {}
        self._common = [
            __version__, FEATURES_VERSION, CHUNK, index.fingerprint, topics_digest(material.topics, material.judgements),
            topics_digest(material.training_topics, material.training_judgements), sorted(material.fold.items()), plan.measures,
            str(plan.depth), plan.seed, training.measure if training is not None else "",
            *(file_digest(Path(text)) for text in self._texts()),
        ]  # fmt: skip

    def _texts(self) -> list[str]:
        """The files of character-level judgements, of the reported and of the training topics."""
        training = self.topics.training.topics if self.topics.training is not None else None
        return [topics.spans for topics in (self.topics.topics, training) if topics is not None and topics.spans]

    @property
    def _training_text(self) -> TextFile | None:
        """The file that says which text is relevant to the training topics; None without training topics."""
        training = self.topics.training
        return None if training is None else (training.topics or self.topics.topics).text

    @property
    def setup(self) -> Setup:
        """The arguments with which each worker process starts."""
        return Setup(
            self.index.folder,
            self.plan.systems,
            self.material.topics,
            self.material.judgements,
            self.material.training_topics,
            self.material.training_judgements,
            self.plan.measures,
            self.tuning_measure,
            self.plan.depth,
            self.plan.seed,
            self.topics.topics.text,
            self._training_text,
        )

    def key(self, system: SystemPlan, documents: int) -> str:
        """The key of the `State` of a system in a sweep.

        It contains a fingerprint of everything that changes the figures.
        """
        if (system.name, documents) not in self._keys:
            by_name = {other.name: other for other in self.plan.systems}
            space, run = system.space, system.runs.get(self.topics.name)
            settings = [
                system.name, system.model, sorted(system.options.items()), None if space is None else [list(space.values), space.settings],
                system.learn, system.method, system.min_occurrences, system.browse_field, system.learn_documents,
                [self.key(by_name[other], documents) for other in system.of],
                "" if run is None else file_digest(run), documents,
            ]  # fmt: skip
            self._keys[system.name, documents] = f"{documents}-{slug(system.name)}-{digest([self._common, settings])[:16]}"
        return self._keys[system.name, documents]

    def state_keys(self) -> set[str]:
        """The keys of the `State`s of all systems in all sweeps."""
        return {self.key(system, documents) for system in self.systems for documents in self.plan.documents}

    def run_path(self, system: SystemPlan, documents: int) -> Path:
        """The path of the run file of a system in a sweep."""
        of_set = f"{slug(self.topics.name)}-" if self.plan.names_sets else ""
        return self.folder / "runs" / f"{of_set}{documents}-{slug(system.name)}.run.gz"

    def run_paths(self) -> list[Path]:
        """The paths of all run files in the folder of the results.

        Runs of other programs are among them only if the experiment has rankers, which need a copy.
        """
        kept = [system for system in self.systems if system.searches or self.plan.kind]
        return [self.run_path(system, documents) for system in kept for documents in self.plan.documents]

    def sweep(self, documents: int, pool: Pool[TrainingTask | RankingTask, Trained | RankedTopics]) -> Sweep:
        """Run all systems with this number of fetched documents and return their outcomes."""
        label = self.plan.label(self.topics, documents)
        finished = {system.name: self._finished(system, documents) for system in self.systems}
        self.resumed += sum(outcome is not None for outcome in finished.values())
        needed = {other for system in self.systems if finished[system.name] is None for other in system.of}
        works = [
            Work(number, system, State(self.folder, self.key(system, documents)))
            for number, system in enumerate(self.plan.systems)
            if system.searches and (finished[system.name] is None or system.name in needed)
        ]
        self._choosing.choose(works, documents, pool, label)
        left = [work for work in works if finished[work.system.name] is None]
        self._rank(left, documents, pool, label)
        outcomes = {work.system.name: self._finish(work, documents) for work in left} | self._measured
        outcomes |= {name: outcome for name, outcome in finished.items() if outcome is not None}
        return Sweep(label, tuple(outcomes[system.name] for system in self.systems), self.topics.name, documents)

    def _finished(self, system: SystemPlan, documents: int) -> SystemOutcome | None:
        if not system.searches:
            return None
        done = State(self.folder, self.key(system, documents)).read("done")
        path = self.run_path(system, documents)
        if not isinstance(done, dict) or not path.is_file() or done.get("run") != file_digest(path):
            return None
        return system_of(done["system"], done["values"])

    def _rank(self, works: Sequence[Work], documents: int, pool: Pool[Any, Any], label: str) -> None:
        tasks = []
        for chunk, numbers in enumerate(chunks(len(self.material.topics), CHUNK)):
            missing = [work for work in works if not self._is_ranked(work, chunk, len(numbers))]
            if missing:
                qids = [self.material.topics[number].qid for number in numbers]
                rankers = {work.number: work.rankers for work in missing}
                runs = {work.number: work.state.run(chunk) for work in missing}
                tasks.append(RankingTask(chunk, numbers, documents, rankers, self.material.fold_of(qids), runs))
        state_of = {work.number: work.state for work in works}
        self.on_progress(f"{label}: ranking", 0, len(tasks))
        for done, (task, result) in enumerate(pool.results(tasks), 1):
            add_seconds(self.seconds, result.seconds)
            self.problems += result.problems
            for number, figures in result.figures.items():
                run = file_digest(state_of[number].run(task.chunk))
                rows = [[topic.values, topic.ranks, topic.relevant] for topic in figures]
                state_of[number].write(f"figures-{task.chunk}", {"run": run, "topics": rows})
            self.on_progress(f"{label}: ranking", done, len(tasks))

    def _is_ranked(self, work: Work, chunk: int, topics: int) -> bool:
        kept = work.state.read(f"figures-{chunk}")
        path = work.state.run(chunk)
        return isinstance(kept, dict) and len(kept["topics"]) == topics and path.is_file() and kept["run"] == file_digest(path)

    def _finish(self, work: Work, documents: int) -> SystemOutcome:
        """The outcome of a system whose topics are all ranked."""
        numbers = range(len(chunks(len(self.material.topics), CHUNK)))
        figures = [TopicFigures(*row) for chunk in numbers for row in work.state.read(f"figures-{chunk}")["topics"]]
        outcome = self._outcome(work.system.name, self._settings(work, documents), figures, work.tuned, self._notes(work))
        outcome = replace(
            outcome, model=work.system.model, tables=tuple(work.tables), figures=(*work.figures, *self._example(work, documents))
        )
        run = work.state.join_runs(numbers, self.run_path(work.system, documents))
        work.state.write("done", {"run": run, "system": system_facts(outcome), "values": outcome.values})
        work.state.keep_only(KEPT)
        return outcome

    def _example(self, work: Work, documents: int) -> list[ExtraFigure]:
        """A figure of the influence of a query, if the model of the system has such curves."""
        if not work.rankers[0].model:
            return []
        # With folds, the ranker of the first fold ranks the example.
        topics = [topic for topic in self.material.topics if len(work.rankers) == 1 or self.material.fold[topic.qid] == 0]
        options = work.system.search_options(documents, self.plan.depth.results).updated(work.rankers[0].options)
        asked = ((topic, work.system.for_topic(topic, options)) for topic in topics)
        figure = example_of_influence(self.index.snapshot, work.rankers[0].model, asked)
        return [figure] if figure is not None else []

    def _outcome(
        self, name: str, settings: str, figures: Sequence[TopicFigures], tuned: TuningOutcome | None, notes: Iterable[str]
    ) -> SystemOutcome:
        qids = [topic.qid for topic in self.material.topics]
        values = {
            measure: {qid: topic.values[number] for qid, topic in zip(qids, figures, strict=True)}
            for number, measure in enumerate(self.plan.measures)
        }
        curves = [precision_curve(topic.ranks, topic.relevant) for topic in figures if topic.relevant]
        mean_curve = tuple(math.fsum(curve[point] for curve in curves) / max(len(curves), 1) for point in range(RECALL_POINTS))
        return SystemOutcome(name, settings, values, mean_curve, tuned, tuple(notes))

    def _settings(self, work: Work, documents: int) -> str:
        ranker = work.rankers[0]
        if work.tuned is not None:
            model = str(work.state.read("chosen")["best"])
        else:
            model = ranker.model or f"{work.system.model}, {work.system.method}"
        options = {**work.system.options, **ranker.options, "documents": documents}
        usual = SearchOptions()
        # An option that is switched off is listed if it is usually on.
        shown = {name: value for name, value in sorted(options.items()) if value or value != getattr(usual, name)}
        varies = " (of the first fold)" if len(work.rankers) > 1 and work.tuned is None and ranker.model else ""
        return "; ".join([f"model {model}{varies}", *(f"{name} {_written(value)}" for name, value in shown.items())])

    def _notes(self, work: Work) -> list[str]:
        notes = list(work.notes)
        if work.system.recipe:
            notes += load_recipe(work.system.recipe).complaints(self.index.settings, languages=self.index.languages)
        return notes

    def measure_runs(self, runs: Mapping[str, Run]) -> None:
        """Measure the runs of other programs, given by name of the system.

        This is done before anything slow, so that errors in a run are reported early.
        """
        for system in self.systems:
            if system.runs:
                try:
                    outcome = self._measure_run(system.name, system.runs[self.topics.name].name, runs[system.name])
                except PerikopeError as error:
                    raise self.plan.wrong(f"system {system.name}", f"run is wrong: {error}") from error
                self._measured[system.name] = outcome

    def rehearse(self) -> None:
        """Score one document with every system, so that a table, part or tag missing in the index is reported early."""
        looking = Looking(self.index.snapshot, {})
        noted: list[SearchOptions] = []
        for system in self.systems:
            if not system.searches:
                continue
            try:
                options = system.search_options(1, self.plan.depth.results)
                if options not in noted:
                    noted.append(options)
                    self.notes += notes_on_queries(looking, self.material.topics, options)
                prepared = (looking.prepare(topic, options) for topic in self.material.topics)
                asked = next((topic for topic in prepared if not topic.problem), None)
                if asked is None:
                    continue
                matches = looking.view(asked).matches
                if not system.of and system.learn != "fusion":
                    model = parse_model(system.model) if system.space is None else system.space.model(system.space.settings[0])
                    # Only the signals are computed: the first setting to tune may be an invalid combination of values.
                    model.signals(matches)
            except PerikopeError as error:
                raise self.plan.wrong(f"system {system.name}", str(error)) from error

    def _judgements_for(self, run: Run) -> Judgements:
        """The judgements in the names of a run: names of rankings, or the names of the file if these agree with it."""
        fitted, written = self.material.judgements, self.material.written
        return written if disagreement(fitted, run) and not disagreement(written, run) else fitted

    def _measure_run(self, name: str, file: str, run: Run) -> SystemOutcome:
        """The outcome of a run of another program. The run is measured without changes."""
        judgements = self._judgements_for(run)
        measuring = Measuring(judgements, self.topics.topics.text, self.index.folder)
        rankings = {qid: [(name, scores[name]) for name in ranked_names(scores)] for qid, scores in run.items()}
        qids = [topic.qid for topic in self.material.topics]
        missing = sum(not rankings.get(qid) for qid in qids)
        figures = [measuring.figures(self.measures, qid, rankings.get(qid, [])) for qid in qids]
        notes = ["run of another program: the number of fetched documents does not change it"]
        notes += [f"{missing} topics are not in it and count 0"] if missing else []
        by_name = any(measure.level == "names" for measure in self.measures)
        if missing == len(qids):
            self.notes.append(f"[system {name}] {file} has none of the topics that are reported: it counts 0 everywhere")
        elif by_name and not kinds_of_names(judgements) & kinds_of_names(run):
            # Judgements that do not fit the index keep the names of their file, so a run may agree with some only.
            self.notes.append(f"[system {name}] {file} {disagreement(judgements, {qid: run[qid] for qid in qids if qid in run})}")
        return self._outcome(name, f"run {file}", figures, None, notes)


def notes_on_queries(looking: Looking, topics: Iterable[Topic], options: SearchOptions) -> list[str]:
    """What could not be done as requested, such as a missing translation, or a filter that no document satisfies.

    Equal notes on several topics are one line.
    """
    patents_of_note: dict[str, list[str]] = {}
    for topic in topics:
        # Plain words have no notes, and preparing many topics takes time.
        restricted = options.filter or options.ids is not None or topic.options
        if not (topic.patent or restricted) or (asked := looking.prepare(topic, options)).problem:
            continue
        name = asked.prepared.patent.name if asked.prepared.patent is not None else topic.patent
        for note in asked.prepared.notes:
            patents_of_note.setdefault(note.replace(name, "the patent"), []).append(topic.qid)
    return [f"topic{'s' * (len(qids) > 1)} {_some(qids)}: {note}" for note, qids in patents_of_note.items()]


def _some(qids: Sequence[str]) -> str:
    """The first ids of a list, and the number of the others."""
    return ", ".join(qids[:SHOWN]) + (f" and {len(qids) - SHOWN} more" if len(qids) > SHOWN else "")
