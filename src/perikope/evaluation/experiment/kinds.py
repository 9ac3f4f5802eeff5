"""Kinds of systems that other packages add to experiments: rankers that are run in jobs, one per system and seed.

A package adds a kind by an entry point of the group `perikope.system_kinds` that leads to a `SystemKind`. A file with
`kind = "neural"` has the keys of that kind besides those of every experiment. Its systems that are no models,
recipes, runs or fusions are rankers of the kind. Everything that their jobs need is put into a folder, which can be
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
    from perikope.evaluation.experiment.plan import Plan
    from perikope.evaluation.experiment.plan_keys import ExperimentKeys
    from perikope.evaluation.experiment.plan_parts import CollectionPlan, SystemPlan
    from perikope.evaluation.experiment.report.tables import ExtraTable
    from perikope.evaluation.experiment.state import Job

GROUP = "perikope.system_kinds"


@dataclass(frozen=True, slots=True)
class JobSetup:
    """What a process needs to do jobs of a prepared folder."""

    kind: str
    folder: Path
    machine: Mapping[str, str]
    """Settings of this machine that values do not depend on, such as `device`."""
    scratch: Path
    """A temporary folder for what `SystemKind.share` computes."""
    is_alone: bool
    """Whether one process does all jobs; nothing is shared then."""


@dataclass(frozen=True, slots=True)
class SystemKind:
    """The functions that make a kind of system."""

    keys: type[ExperimentKeys]
    """The keys of a file."""
    read: Callable[[Any, Mapping[str, CollectionPlan]], Any]
    """Check the keys of a file; returns the settings that all rankers share."""
    read_system: Callable[[Any, Any], Mapping[str, Any]]
    """Check the keys of a system; returns `ranker`, `seeds`, `is_random` and `derived` of its `SystemPlan`."""
    fingerprint: Callable[[Plan, SystemPlan], str]
    """A fingerprint of everything but the seed that the values of a ranker depend on."""
    prepare: Callable[[Plan, Mapping[str, Path], Path, Callable[[str], None]], Mapping[str, tuple[str, ...]]]
    """Put what jobs need into a folder, from the index of each collection; returns ids of reported topics by set."""
    share: Callable[[JobSetup], None]
    """Compute once what all processes need, into the folder `scratch`."""
    open: Callable[[JobSetup], Callable[[Job], Mapping[str, Any]]]
    """A function that does a job and returns its values as `FinishedJobs` keeps them."""
    describe: Callable[[Plan, SystemPlan], str]
    """The settings of a ranker in one line."""
    facts: Callable[[Plan, Path], dict[str, str]]
    """Facts for the report on a prepared folder: sizes of collections and settings."""
    tables: Callable[[Plan, Mapping[str, Sequence[Mapping[str, Any]]]], list[ExtraTable]]
    """Tables of what rankers learned, from the values of the jobs of each ranker."""


@cache
def system_kind(name: str) -> SystemKind:
    """A kind of system by the name that a file gives as `kind`."""
    known = {entry_point.name: entry_point for entry_point in entry_points(group=GROUP)}
    if name not in known:
        raise unknown("kind of systems", name, known)
    kind: SystemKind = known[name].load()
    return kind
