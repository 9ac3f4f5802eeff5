"""Runs an experiment: the systems that search, on each set of topics, then the jobs of rankers, then the report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from perikope.core.cores import usable_cores
from perikope.core.errors import MissingExtra, PerikopeError, UsageError
from perikope.core.reading import read_saved
from perikope.evaluation.experiment.facts import facts_of, notes_on_depth, notes_on_fields, notes_on_index, notes_on_syntax, uses_trees
from perikope.evaluation.experiment.indexes import OnProgress, check_collections, open_index, state_of_index
from perikope.evaluation.experiment.jobs import JobFailure, jobs_of, run_jobs
from perikope.evaluation.experiment.kinds import system_kind
from perikope.evaluation.experiment.lexical import KEPT, LexicalSystems
from perikope.evaluation.experiment.material import Material, fit_material, read_material, read_run_of
from perikope.evaluation.experiment.outcome import FILE, VALUES, Outcome, Sweep
from perikope.evaluation.experiment.plan import Plan
from perikope.evaluation.experiment.prepared import COLLECTIONS, PREPARED, RUNS, PreparedExperiment, check_prepared, save_prepared
from perikope.evaluation.experiment.state import FinishedJobs, State, locked, remove_others
from perikope.evaluation.experiment.statistics import statistics_tables
from perikope.evaluation.experiment.topics import TopicWork, add_seconds
from perikope.evaluation.io.runs import Run, write_run
from perikope.evaluation.measures.significance import check_test
from perikope.evaluation.pool import default_workers, open_pool
from perikope.search.facade import Index

_BEGUN = "begun"
"""The key of the `State` that stores the title of the experiment in the folder."""

OnStep = Callable[[str], None]
"""Called with one line of text per step of preparing and per finished job."""


@dataclass(frozen=True, slots=True)
class Done:
    """The results of running an experiment."""

    outcome: Outcome
    problems: tuple[str, ...]
    """One line per topic that was left out, with the reason."""
    seconds: Mapping[str, float]
    """The time of each stage, summed over all processes."""
    resumed: int
    """Number of systems that an earlier run had already finished, counted once per sweep."""
    notes: tuple[str, ...] = ()
    """Warnings: deviations from the file, or input that makes figures doubtful."""
    failures: tuple[JobFailure, ...] = ()
    """Jobs of rankers that failed."""
    missing: tuple[str, ...] = ()
    """Names of the jobs of rankers that are not finished."""


def run_experiment(
    plan: Plan,
    folder: Path,
    *,
    fresh: bool = False,
    workers: int | None = None,
    device: str = "",
    on_progress: OnProgress = lambda stage, done, all: None,
    on_step: OnStep = lambda line: None,
) -> Done:
    """Run an experiment and write runs, values, `experiment.json` and the report to a folder.

    Work that an earlier run has finished in the folder is reused, unless `fresh` is set. `workers` is the number of
    processes, by default one per core. `device` is the device of neural rankers, such as `cuda`.
    """
    with _opened(plan, folder, fresh) as begun:
        done = _search(plan, folder, begun, workers or default_workers(), on_progress, on_step)
        if not plan.kind:
            done.outcome.save(folder)
            _write_report(done.outcome, folder)
            return done
        return _finish(folder, folder, done, workers or usable_cores(), on_step, device=device)


def prepare_experiment(
    plan: Plan, folder: Path, *, fresh: bool = False, workers: int | None = None, on_step: OnStep = lambda line: None
) -> PreparedExperiment:
    """Run everything except the jobs of rankers, and write the files that they need to a folder (see `prepared`)."""
    with _opened(plan, folder, fresh) as begun:
        _search(plan, folder, begun, workers or default_workers(), lambda stage, done, all: None, on_step)
        return PreparedExperiment.load(folder)


def finish_experiment(
    folder: Path,
    report: Path,
    *,
    fresh: bool = False,
    workers: int | None = None,
    device: str = "",
    encoder: str = "",
    on_step: OnStep = lambda line: None,
) -> Done:
    """Run the unfinished jobs of a prepared folder, and write values and report to the folder `report`.

    With `fresh`, finished jobs are run again. `encoder` is the folder of the encoder on this machine; empty to load it
    by the name or folder that it had when the experiment was prepared.
    """
    prepared = PreparedExperiment.load(folder)
    with locked(folder):
        if fresh:
            for job in jobs_of(prepared.plan):
                FinishedJobs(folder / VALUES).path(job).unlink(missing_ok=True)
        nothing = Outcome(prepared.plan.title, "", {}, (), ())
        return _finish(folder, report, Done(nothing, (), {}, 0), workers or usable_cores(), on_step, device=device, encoder=encoder)


@dataclass(frozen=True, slots=True)
class _Read:
    """The input that is read before anything runs, by set of topics."""

    materials: Mapping[str, Material]
    runs: Mapping[str, dict[str, Run]]
    """Runs of other programs, by set of topics, then by system."""


@contextmanager
def _opened(plan: Plan, folder: Path, fresh: bool) -> Iterator[_Read]:
    """Check the plan, read its input, and lock the folder of the results. Errors are raised before anything runs."""
    _check_folder(folder)
    _check_installed(plan)
    check_collections(plan)
    materials = {topics.name: read_material(plan, topics) for topics in plan.sets}
    runs = {
        topics.name: {system.name: read_run_of(plan, system, topics) for system in plan.systems if topics.name in system.runs}
        for topics in plan.sets
    }
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder} (--out): {error.strerror}; name another folder") from None
    with locked(folder):
        if fresh:
            _remove(folder)
        else:
            _check_title(folder, plan.title)
            check_prepared(plan, folder)
        State(folder, _BEGUN).write("title", plan.title)
        try:
            yield _Read(materials, runs)
        except PerikopeError:
            if is_new and not _has_work(folder):
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _has_work(folder: Path) -> bool:
    """Whether a folder has an index, results, or finished work that a later run can reuse."""
    begun = State(folder, _BEGUN).folder
    return any(file.name != begun.parent.name for file in folder.iterdir()) or any(
        state.is_dir() and state != begun for state in begun.parent.iterdir()
    )


def _search(plan: Plan, folder: Path, read: _Read, workers: int, on_progress: OnProgress, on_step: OnStep) -> Done:
    """Run everything except the jobs of rankers. If there are rankers, prepare the folder for them."""
    needed = plan.collections if plan.kind else dict.fromkeys(topics.collection_name for topics in plan.sets)
    indexes = {name: open_index(plan, name, folder, on_progress) for name in needed}
    materials = {}
    for reported in plan.sets:
        snapshot = indexes[reported.collection_name].snapshot
        materials[reported.name] = fit_material(plan, reported, read.materials[reported.name], snapshot)
    if plan.kind:
        qids = system_kind(plan.kind).prepare(plan, {name: index.folder for name, index in indexes.items()}, folder, on_step)
        materials = {name: _usable(material, qids[name]) for name, material in materials.items()}
    parts = _parts(plan, folder, indexes, materials, read.runs, on_progress)
    if plan.kind:
        _copy_runs(plan, parts, read.runs)
    # Runs can be large, and forked workers would keep copies of them.
    for runs in read.runs.values():
        runs.clear()
    sweeps: list[tuple[str, Sweep]] = []
    for part in parts:
        with open_pool(TopicWork, part.setup, workers) as pool:
            sweeps += [(part.topics.name, part.sweep(documents, pool)) for documents in plan.documents]
    _tidy(plan, folder, parts)
    notes = tuple(dict.fromkeys(note for part in parts for note in (*part.material.notes, *part.notes)))
    facts, tables = facts_of(plan, parts, notes), statistics_tables(parts)
    if plan.kind:
        files = {
            system.name: {part.topics.name: part.run_path(system, plan.documents[0]).name for part in parts if system in part.systems}
            for system in plan.systems
            if system.searches or system.runs
        }
        topics = {part.topics.name: [topic.qid for topic in part.material.topics] for part in parts}
        save_prepared(plan, folder, files, sweeps, topics, facts, tables)
        if plan.earlier is not None:
            FinishedJobs(folder / VALUES).copy_from(plan.earlier / VALUES, jobs_of(plan))
    outcome = Outcome(
        plan.title, plan.description, facts, plan.measures, tuple(sweep for _, sweep in sweeps), plan.comparison, tables, (), plan.published
    )
    problems = tuple(dict.fromkeys(problem for part in parts for problem in (*part.material.problems, *part.problems)))
    seconds: dict[str, float] = {}
    for part in parts:
        add_seconds(seconds, part.seconds)
    return Done(outcome, problems, seconds, sum(part.resumed for part in parts), notes)


def _usable(material: Material, qids: Sequence[str]) -> Material:
    """The material of the topics that rankers can use. The other topics are named as problems."""
    usable = set(qids)
    left_out = [topic.qid for topic in material.topics if topic.qid not in usable]
    problems = [
        f"topic {qid}: left out for all systems, because no query can be made of it, or nothing in the index is relevant"
        for qid in left_out
    ]
    return replace(material.only(usable), problems=(*material.problems, *problems))


def _parts(
    plan: Plan,
    folder: Path,
    indexes: Mapping[str, Index],
    materials: Mapping[str, Material],
    runs: Mapping[str, Mapping[str, Run]],
    on_progress: OnProgress,
) -> list[LexicalSystems]:
    """One `LexicalSystems` per set of topics. Raises an error if an index lacks data that a system needs."""
    parts = []
    for topics in plan.sets:
        index, material = indexes[topics.collection_name], materials[topics.name]
        part = LexicalSystems(plan, topics, folder, index, material, on_progress)
        part.measure_runs(runs[topics.name])
        part.notes += notes_on_depth(plan)
        part.notes += notes_on_index(plan, topics.collection, index)
        part.notes += notes_on_fields(plan, material.topics)
        part.notes += notes_on_syntax(plan, index, material.topics)
        part.rehearse()
        parts.append(part)
    return parts


def _copy_runs(plan: Plan, parts: Sequence[LexicalSystems], runs: Mapping[str, Mapping[str, Run]]) -> None:
    """Copy the runs of other programs into the folder of the results, because fusions with rankers need them."""
    for part in parts:
        for system in part.systems:
            if system.runs:
                run = runs[part.topics.name][system.name]
                path = part.run_path(system, plan.documents[0])
                path.parent.mkdir(parents=True, exist_ok=True)
                write_run(path, ((qid, list(scores.items())) for qid, scores in run.items()))


def _finish(folder: Path, report: Path, done: Done, workers: int, on_step: OnStep, **machine: str) -> Done:
    """Run the unfinished jobs, and write values and report of all systems to the folder `report`.

    `machine` has settings of this machine for `run_jobs`, such as `device`.
    """
    from perikope.evaluation.experiment.rankers import gather
    from perikope.evaluation.experiment.report import write_report

    prepared = PreparedExperiment.load(folder)
    failures = run_jobs(folder, workers=workers, on_job=on_step, **machine)
    outcome, extra, missing = gather(prepared, folder)
    outcome.save(report)
    write_report(outcome, report, extra)
    return replace(done, outcome=outcome, failures=tuple(failures), missing=tuple(missing))


def _tidy(plan: Plan, folder: Path, parts: Sequence[LexicalSystems]) -> None:
    """Remove files of systems that are not in the plan, and temporary files of finished systems."""
    keys = {key for part in parts for key in part.state_keys()}
    remove_others(folder, keys | {_BEGUN, *map(state_of_index, plan.collections)})
    for key in keys:
        State(folder, key).keep_only(KEPT)
    kept = {path.name for part in parts for path in part.run_paths()}
    runs = folder / RUNS
    for file in runs.iterdir() if runs.is_dir() else ():
        if file.name not in kept:
            file.unlink()


def _remove(folder: Path) -> None:
    """Remove the finished work of an earlier experiment, and the files that it prepared for rankers."""
    remove_others(folder, ())
    if (folder / PREPARED).is_file():
        for name in (COLLECTIONS, RUNS, "indexes"):
            shutil.rmtree(folder / name, ignore_errors=True)
        for file in (folder / VALUES).glob("*.json"):
            file.unlink()
        (folder / PREPARED).unlink()


def _write_report(outcome: Outcome, folder: Path) -> None:
    try:
        from perikope.evaluation.experiment.report import write_report
    except ModuleNotFoundError:
        return
    write_report(outcome, folder)


def _check_folder(folder: Path) -> None:
    """Raise an error if a folder has files that are not results of an experiment, so that they are not overwritten."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file, but results need a folder; name another one (--out)")
    known = {FILE, VALUES, RUNS, "index", "index.json", ".work", PREPARED, COLLECTIONS, "indexes"}
    others = [file.name for file in folder.iterdir() if file.name not in known]
    if others and not (folder / FILE).exists() and not (folder / ".work").exists():
        raise UsageError(f"{folder} holds other files, such as {sorted(others)[0]}; name an empty or new folder (--out)")


def _check_title(folder: Path, title: str) -> None:
    """Raise an error if a folder has results of an experiment with another title, so that they are not overwritten."""
    # The title is that of the experiment that began last. If `.work` was deleted, `experiment.json` has the title.
    earlier = State(folder, _BEGUN).read("title")
    if earlier is None:
        with suppress(OSError, ValueError, AttributeError):
            earlier = read_saved(folder / FILE).get("title")
    if earlier not in (None, title):
        raise UsageError(
            f"{folder} holds the experiment {earlier!r}, not {title!r}: name another folder (--out), or replace the results (--fresh)"
        )


def _check_installed(plan: Plan) -> None:
    """Raise an error if a package that the experiment needs later is not installed."""
    if len(plan.systems) > 1:
        check_test(plan.comparison.test)
    if uses_trees(plan) and find_spec("lightgbm") is None:
        raise MissingExtra("lightgbm", "ltr")
