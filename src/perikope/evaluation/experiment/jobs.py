"""Runs the jobs of an experiment. A job trains and measures one ranker with one seed. Finished jobs are not repeated.

The values of a job depend only on its settings and its seed, so processes and machines can share the jobs.
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
    """The error of a failed job, or of the worker processes as a whole."""

    name: str
    """The name of the job, or "processes"."""
    message: str
    """The error in one line."""
    traceback: str = ""
    """The Python traceback. Empty for an error in the input, whose message is enough."""

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"

    @property
    def report(self) -> str:
        """The name and the message in one line, then the traceback if there is one."""
        return f"{self}\n{self.traceback}".rstrip()


def jobs_of(plan: Plan) -> list[Job]:
    """All jobs of a plan, ordered by seed.

    Every ranker runs with the first seed before any runs with the second. An interrupted experiment therefore has
    values for as many rankers as possible.
    """
    kind = system_kind(plan.kind)
    fingerprints = {system.name: kind.fingerprint(plan, system) for system in plan.rankers}
    jobs = [Job(system.name, seed, fingerprints[system.name]) for system in plan.rankers for seed in range(1, 1 + system.seeds)]
    return sorted(jobs, key=lambda job: job.seed)


def run_jobs(folder: Path, *, workers: int = 1, on_job: Callable[[str], None] = lambda line: None, **machine: str) -> list[JobFailure]:
    """Run the unfinished jobs of a prepared folder and return the failures.

    `machine` has settings of this machine that do not change results, such as `device`. `on_job` is called with one
    line per finished job. Small models leave most of a GPU idle. In this case several `workers` are faster than one,
    if the multi-process service of the GPU runs (`nvidia-cuda-mps-control -d`).
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
        # Processes are spawned because a process that has used a GPU cannot be forked.
        with open_pool(_open, setup, workers, spawned=True) as pool:
            return list(_failures(plan, pool, waiting, finished, on_job))


def _failures(
    plan: Plan,
    pool: Pool[Job, Mapping[str, Any] | JobFailure],
    waiting: Sequence[Job],
    finished: FinishedJobs,
    on_job: Callable[[str], None],
) -> Iterator[JobFailure]:
    """Run the waiting jobs, save the values of each finished job, and yield the failures."""
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
    """The function that a worker process calls per job. It returns the values of the job, or its failure."""
    work = system_kind(setup.kind).open(setup)

    def do(job: Job) -> Mapping[str, Any] | JobFailure:
        try:
            return work(job)
        except Exception as error:
            where = "" if isinstance(error, PerikopeError) else traceback.format_exc()
            return JobFailure(job.name, f"{type(error).__name__}: {' '.join(str(error).split())}", where)

    return do
