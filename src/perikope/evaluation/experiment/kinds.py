"""Kinds of rankers that other packages add to experiments. A ranker runs as jobs, one per seed.

A package adds a kind with an entry point of the group `perikope.system_kinds` that refers to a `SystemKind`. An
experiment file with `kind = "neural"` may use the additional keys of that kind. A system of the file that is no model,
recipe, run or fusion is a ranker of the kind. All files that the jobs need are written to one folder, which can be
copied to another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perikope.core.errors import unknown

if TYPE_CHECKING:
    from perikope.evaluation.experiment.extras import ExtraTable
    from perikope.evaluation.experiment.plan import Plan
    from perikope.evaluation.experiment.plan_keys import ExperimentKeys
    from perikope.evaluation.experiment.plan_parts import CollectionPlan, SystemPlan
    from perikope.evaluation.experiment.state import Job

GROUP = "perikope.system_kinds"


@dataclass(frozen=True, slots=True)
class JobSetup:
    """The arguments with which a worker process starts to do jobs of a prepared folder."""

    kind: str
    folder: Path
    machine: Mapping[str, str]
    """Settings of this machine that do not change the values of jobs, such as `device`."""
    scratch: Path
    """A temporary folder for the files that `SystemKind.share` writes."""
    is_alone: bool
    """Whether one process does all jobs. `SystemKind.share` is not called in this case."""


@dataclass(frozen=True, slots=True)
class SystemKind:
    """A kind of ranker: the functions that an experiment calls to read, prepare, run and report rankers."""

    keys: type[ExperimentKeys]
    """The class that declares all keys of an experiment file of this kind."""
    read: Callable[[Any, Mapping[str, CollectionPlan]], Any]
    """Check the keys of a file against its collections and return the settings that all rankers share."""
    read_system: Callable[[Any, Any], Mapping[str, Any]]
    """Check the keys of a system, given the shared settings.

    Returns the fields `ranker`, `seeds`, `is_random` and `derived` of its `SystemPlan`.
    """
    fingerprint: Callable[[Plan, SystemPlan], str]
    """Return a fingerprint of all settings that change the values of a ranker, except the seed."""
    prepare: Callable[[Plan, Mapping[str, Path], Path, Callable[[str], None]], Mapping[str, tuple[str, ...]]]
    """Write the files that jobs need to a folder.

    The arguments are the plan, the index folder of each collection, the target folder, and a function that is called
    with one line per step. Returns the ids of the reported topics, by set of topics.
    """
    share: Callable[[JobSetup], None]
    """Compute data that all processes need and write it to the folder `JobSetup.scratch`."""
    open: Callable[[JobSetup], Callable[[Job], Mapping[str, Any]]]
    """Return a function that does a job and returns its values in the form that `FinishedJobs` saves."""
    describe: Callable[[Plan, SystemPlan], str]
    """Return the settings of a ranker in one line."""
    facts: Callable[[Plan, Path], dict[str, str]]
    """Return facts on a prepared folder for the report, such as sizes of collections and settings."""
    tables: Callable[[Plan, Mapping[str, Sequence[Mapping[str, Any]]]], list[ExtraTable]]
    """Return tables of the parameters that rankers learned, from the values of the jobs of each ranker."""


@cache
def system_kind(name: str) -> SystemKind:
    """The kind with a name, as written in the key `kind` of an experiment file."""
    known = {entry_point.name: entry_point for entry_point in entry_points(group=GROUP)}
    if name not in known:
        raise unknown("kind of systems", name, known)
    kind: SystemKind = known[name].load()
    return kind
