"""Combines the values of all finished jobs of rankers with the outcomes of the other systems of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perikope.evaluation.experiment.extras import ExtraTable
from perikope.evaluation.experiment.jobs import jobs_of
from perikope.evaluation.experiment.kinds import system_kind
from perikope.evaluation.experiment.outcome import VALUES, Outcome, SystemOutcome, Values, average_by_topic
from perikope.evaluation.experiment.plan import Plan
from perikope.evaluation.experiment.plan_parts import SystemPlan
from perikope.evaluation.experiment.prepared import PreparedExperiment
from perikope.evaluation.experiment.report.tables import counted
from perikope.evaluation.experiment.state import FinishedJobs

Finished = Mapping[str, Mapping[int, Mapping[str, Any]]]
"""The content of the files of finished jobs, by system, then by seed. A job may have values for several systems."""


def gather(prepared: PreparedExperiment, folder: Path) -> tuple[Outcome, list[ExtraTable], list[str]]:
    """Gather the results of a prepared experiment from its folder.

    Returns the outcome, the tables of parameters that rankers learned, and the names of unfinished jobs.
    """
    plan, kind = prepared.plan, system_kind(prepared.plan.kind)
    finished, missing = read_finished(plan, folder)
    sweeps = []
    for topics, sweep in prepared.sweeps:
        others = {system.name: system for system in sweep.systems}
        systems = [outcome for system in plan.systems for outcome in _outcomes(prepared, system, topics, finished, others.get(system.name))]
        sweeps += [replace(sweep, systems=tuple(systems))] if systems else []
    facts = {**prepared.facts, **kind.facts(plan, folder)}
    # The report prints the settings of systems below the tables of sweeps, but not below separate tables.
    facts |= {system.name: kind.describe(plan, system) for system in plan.rankers if system.table}
    if missing:
        facts["not run"] = f"{counted(len(missing), 'job')} of {len(jobs_of(plan))}: {'; '.join(missing)}"
    outcome = Outcome(
        plan.title, plan.description, facts, plan.measures, tuple(sweeps), plan.comparison, prepared.tables, (), plan.published
    )
    by_ranker = {system.name: list(finished[system.name].values()) for system in plan.rankers if system.name in finished}
    return outcome, kind.tables(plan, by_ranker), missing


def read_finished(plan: Plan, folder: Path) -> tuple[Finished, list[str]]:
    """The finished jobs of a plan, and the names of the unfinished jobs."""
    files = FinishedJobs(folder / VALUES)
    finished: dict[str, dict[int, Mapping[str, Any]]] = {}
    missing = []
    for job in jobs_of(plan):
        content = files.read(job)
        if content is None:
            missing.append(f"{job.system}, seed {job.seed}")
            continue
        for name in content["values"]:
            finished.setdefault(name, {})[job.seed] = content
    return finished, missing


def _outcomes(
    prepared: PreparedExperiment, system: SystemPlan, topics: str, finished: Finished, outcome: SystemOutcome | None
) -> Sequence[SystemOutcome]:
    """The outcomes of a system, and of the systems derived from it, on a set of topics.

    `outcome` is the known outcome of a system that is not a ranker. The list is empty if no job is finished.
    """
    if outcome is not None:
        return [outcome]
    plan, outcomes = prepared.plan, []
    for name in (system.name, *system.derived):
        jobs = {seed: job for seed, job in finished.get(name, {}).items() if topics in job["values"][name]}
        if not jobs:
            continue
        repetitions: dict[int, Values] = {
            seed: {
                measure: dict(zip(prepared.topics[topics], values, strict=True)) for measure, values in job["values"][name][topics].items()
            }
            for seed, job in jobs.items()
        }
        settings = _describe(plan, system) + name.removeprefix(system.name)
        also_in = system.also_in if name == system.name else ()
        notes = _notes(plan, system, name, topics, jobs)
        values = average_by_topic(repetitions.values(), plan.measures)
        outcomes.append(SystemOutcome(name, settings, values, notes=notes, repetitions=repetitions, table=system.table, also_in=also_in))
    return outcomes


def _describe(plan: Plan, system: SystemPlan) -> str:
    if system.fuses:
        parts = " and ".join(system.of)
        return f"fusion of {parts}, each min-max normalised over the results of a topic; the share is chosen on other topics"
    return system_kind(plan.kind).describe(plan, system)


def _notes(plan: Plan, system: SystemPlan, name: str, topics: str, jobs: Mapping[int, Mapping[str, Any]]) -> tuple[str, ...]:
    if not system.is_random:
        return ()
    shares = [share for job in jobs.values() if (share := job["shares"].get(name, {}).get(topics)) is not None]
    note = f"mean over {counted(len(jobs), 'seed')}"
    if not shares:
        return (note,)
    ranker = next(part for part in system.of if not any(part == other.name and other.runs for other in plan.systems))
    return (note, f"share of {ranker}: {', '.join(f'{share:.2f}' for share in shares)}")
