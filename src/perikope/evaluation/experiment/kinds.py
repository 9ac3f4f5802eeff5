"""Kinds of systems that other packages add to experiments: rankers that are run in jobs, one per system and seed.

A package registers a kind by an entry point of the group `perikope.system_kinds`. A file with `kind = "neural"` has
the keys of that kind besides those of every experiment. Its systems that are no models, recipes, runs or fusions are
rankers of the kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perikope.core.registry import Registry

if TYPE_CHECKING:
    from perikope.evaluation.experiment.plan import Plan
    from perikope.evaluation.experiment.plan_keys import ExperimentKeys
    from perikope.evaluation.experiment.plan_parts import CollectionPlan, SystemPlan
    from perikope.evaluation.experiment.report.tables import ExtraTable
    from perikope.evaluation.experiment.state import Job


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


class SystemKind(ABC):
    """A kind of system. Everything that its jobs need is put into a folder, which can be copied to another machine."""

    @property
    @abstractmethod
    def keys(self) -> type[ExperimentKeys]:
        """The keys of a file."""

    @abstractmethod
    def read(self, keys: Any, collections: Mapping[str, CollectionPlan]) -> Any:
        """The settings that all rankers share, checked. `keys` is an object of the class `self.keys`."""

    @abstractmethod
    def read_system(self, keys: Any, shared: Any) -> Mapping[str, Any]:
        """Fields of `SystemPlan` for a ranker: `ranker`, `seeds` and `derived`."""

    @abstractmethod
    def fingerprint(self, plan: Plan, system: SystemPlan) -> str:
        """A fingerprint of everything but the seed that the values of a ranker depend on."""

    @abstractmethod
    def prepare(
        self, plan: Plan, indexes: Mapping[str, Path], folder: Path, on_step: Callable[[str], None]
    ) -> Mapping[str, tuple[str, ...]]:
        """Put what jobs need into a folder; returns the ids of the reported topics by set."""

    @abstractmethod
    def share(self, setup: JobSetup) -> None:
        """Compute once what all processes need, into the folder `setup.scratch`."""

    @abstractmethod
    def open(self, setup: JobSetup) -> Callable[[Job], Mapping[str, Any]]:
        """A function that does jobs: it returns the values of a job as `FinishedJobs` keeps them."""

    @abstractmethod
    def describe(self, plan: Plan, system: SystemPlan) -> str:
        """The settings of a ranker in one line."""

    @abstractmethod
    def facts(self, plan: Plan, folder: Path) -> dict[str, str]:
        """Facts for the report: sizes of collections and settings."""

    @abstractmethod
    def tables(self, plan: Plan, finished: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[ExtraTable]:
        """Tables of what rankers learned. `finished` has the values of the jobs of each ranker."""


SYSTEM_KINDS: Registry[SystemKind] = Registry("system_kind", __name__)
"""Kinds of systems by the name that a file gives as `kind`."""
