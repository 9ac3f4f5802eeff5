"""Neural rankers as a kind of system in experiments. Torch is imported when a file has such systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perikope.evaluation.experiment.kinds import SYSTEM_KINDS, JobSetup, SystemKind

if TYPE_CHECKING:
    from perikope.evaluation.experiment.plan import Plan
    from perikope.evaluation.experiment.plan_keys import ExperimentKeys
    from perikope.evaluation.experiment.plan_parts import CollectionPlan, SystemPlan
    from perikope.evaluation.experiment.report.tables import ExtraTable
    from perikope.evaluation.experiment.state import Job


class NeuralKind(SystemKind):
    """Encoders and graph attention over documents, trained with several seeds."""

    @property
    def keys(self) -> type[ExperimentKeys]:
        """The keys of a file; without torch this says which extra is missing."""
        from perikope.neural.system_keys import NeuralKeys

        return NeuralKeys

    def read(self, keys: Any, collections: Mapping[str, CollectionPlan]) -> Any:
        """The settings that all rankers share."""
        from perikope.neural.ranker_settings import read_shared

        return read_shared(keys, collections)

    def read_system(self, keys: Any, shared: Any) -> Mapping[str, Any]:
        """The settings of one ranker."""
        from perikope.neural.ranker_settings import read_ranker, shared_name

        ranker = read_ranker(keys, shared)
        derived = tuple(shared_name(keys.name, share) for share in ranker.untrained_shares)
        return {"ranker": ranker, "seeds": keys.seeds if ranker.trained else 1, "is_random": ranker.trained, "derived": derived}

    def fingerprint(self, plan: Plan, system: SystemPlan) -> str:
        """A fingerprint of the settings of a ranker and of those that all rankers share."""
        from perikope.neural.ranker_settings import fingerprint

        return fingerprint(plan, system)

    def prepare(
        self, plan: Plan, indexes: Mapping[str, Path], folder: Path, on_step: Callable[[str], None]
    ) -> Mapping[str, tuple[str, ...]]:
        """Write texts, graphs and topics of all collections."""
        from perikope.neural.preparing import prepare_collections

        return prepare_collections(plan, indexes, folder, on_step)

    def share(self, setup: JobSetup) -> None:
        """Tokenize all texts once, on all cores."""
        from perikope.neural.workplace import TOKENS, Workplace

        Workplace.open(setup.folder, setup.machine.get("encoder", "")).save_tokens(setup.scratch / TOKENS)

    def open(self, setup: JobSetup) -> Callable[[Job], Mapping[str, Any]]:
        """A function that trains a ranker and measures it."""
        from perikope.neural.ranker_job import open_jobs

        return open_jobs(setup)

    def describe(self, plan: Plan, system: SystemPlan) -> str:
        """Encoder, attention and training of a ranker."""
        from perikope.neural.report import describe

        return describe(plan.shared, system.ranker)

    def facts(self, plan: Plan, folder: Path) -> dict[str, str]:
        """Encoder, sizes of collections and settings of training."""
        from perikope.neural.report import facts

        return facts(plan, folder)

    def tables(self, plan: Plan, finished: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[ExtraTable]:
        """λ and α, and the importance of relations."""
        from perikope.neural.report import learned_tables

        attentive = {system.name for system in plan.rankers if system.ranker.variant}
        return learned_tables({name: jobs for name, jobs in finished.items() if name in attentive})


SYSTEM_KINDS.add("neural", NeuralKind())
