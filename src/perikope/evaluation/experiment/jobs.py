"""Jobs of an experiment's rankers: one ranker with one seed each. Jobs that are finished are not done again.

A job depends on its settings and its seed alone, so several processes, and several machines, can share the work.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from perikope.core.errors import PerikopeError
from perikope.evaluation.experiment.kinds import JobSetup, system_kind
from perikope.evaluation.experiment.outcome import VALUES, average
from perikope.evaluation.experiment.plan import Plan
from perikope.evaluation.experiment.prepared import PreparedExperiment
from perikope.evaluation.experiment.state import FinishedJobs, Job
from perikope.evaluation.pool import Pool, open_pool


@dataclass(frozen=True, slots=True)
class JobFailure:
    """A job, or all processes, that ended with an error."""

    name: str
    message: str
    """What went wrong, in one line."""
    traceback: str = ""
    """The traceback of Python; empty where the message says what to do."""

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"

    @property
    def report(self) -> str:
        """The line that says what went wrong, and the traceback below it where there is one."""
        return f"{self}\n{self.traceback}".rstrip()


def jobs_of(plan: Plan) -> list[Job]:
    """All jobs, those with the first seed first: an experiment that is cut short has values for all rankers."""
    kind = system_kind(plan.kind)
    fingerprints = {system.name: kind.fingerprint(plan, system) for system in plan.rankers}
    jobs = [Job(system.name, seed, fingerprints[system.name]) for system in plan.rankers for seed in range(1, 1 + system.seeds)]
    return sorted(jobs, key=lambda job: job.seed)


def run_jobs(folder: Path, *, workers: int = 1, on_job: Callable[[str], None] = lambda line: None, **machine: str) -> list[JobFailure]:
    """Run the unfinished jobs of a prepared folder; return those that failed.

    `machine` has settings of this machine that do not change results, such as `device`. `on_job` is called with one
    line per finished job. Small models leave most of a GPU idle. Several `workers` are then faster than one, if the
    GPU's multi-process service runs (`nvidia-cuda-mps-control -d`).
    """
    plan, finished = PreparedExperiment.load(folder).plan, FinishedJobs(folder / VALUES)
    waiting = [job for job in jobs_of(plan) if finished.read(job) is None]
    if not waiting:
        return []
    with TemporaryDirectory() as scratch:
        workers = min(workers, len(waiting))
        setup = JobSetup(plan.kind, folder, machine, Path(scratch), workers == 1)
        if workers > 1:
            system_kind(plan.kind).share(setup)
        # Spawned, not forked: a process that has used a GPU cannot be forked.
        with open_pool(_open, setup, workers, spawned=True) as pool:
            return list(_failures(plan, pool, waiting, finished, on_job))


def _failures(
    plan: Plan,
    pool: Pool[Job, Mapping[str, Any] | JobFailure],
    waiting: Sequence[Job],
    finished: FinishedJobs,
    on_job: Callable[[str], None],
) -> Iterator[JobFailure]:
    """Keep the values of finished jobs; yields the failed ones."""
    try:
        for job, result in pool.results(waiting):
            if isinstance(result, JobFailure):
                yield result
                continue
            finished.write(job, result)
            figures = (
                f"{name}: " + " ".join(f"{average(values[plan.measures[0]]):.4f}" for values in sets.values())
                for name, sets in result["values"].items()
            )
            on_job(f"{job.name} {result['seconds']:.0f} s  {'; '.join(figures)}")
    except PerikopeError as error:
        yield JobFailure("processes", str(error))


def _open(setup: JobSetup) -> Callable[[Job], Mapping[str, Any] | JobFailure]:
    """The work of a process: the values of a job, or why it failed."""
    work = system_kind(setup.kind).open(setup)

    def do(job: Job) -> Mapping[str, Any] | JobFailure:
        try:
            return work(job)
        except Exception as error:
            where = "" if isinstance(error, PerikopeError) else traceback.format_exc()
            return JobFailure(job.name, f"{type(error).__name__}: {' '.join(str(error).split())}", where)

    return do
