"""The guard of `perikope train`: what is measured apart from validation topics, and which trained weights are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from perikope.cli.output import printable
from perikope.neural.guard import WORDS, Guard, Kept, Measured, guarding_collections, keep_share, set_share
from perikope.neural.training import ContextRanker, Progress, TrainableRanker, TrainingSettings, Validation

if TYPE_CHECKING:
    from torch import Tensor

    from perikope.neural.collection import Collection
    from perikope.neural.triples import Topics


@dataclass(frozen=True)
class Watch:
    """The guard of a training, and the topics on which it must not lose."""

    guard: Guard | None
    """The term in the loss; None if its weight is 0."""
    measured: Sequence[Measured]
    settings: TrainingSettings

    @classmethod
    def of(
        cls,
        ranker: TrainableRanker,
        trained_on: Mapping[str, Collection],
        guards: Mapping[str, tuple[Collection, Topics]],
        settings: TrainingSettings,
    ) -> Watch:
        """The guard of an untrained ranker. Both mappings are by the path of an index.

        Self-made topics of all indexes are in the loss. For the indexes of `guards`, the given topics are measured, and
        for the others the self-made ones and those of words.
        """
        others = {index: collection for index, (collection, _) in guards.items()}
        made = guarding_collections(ranker, {**trained_on, **others}, settings.seed)
        measured = [Measured.guarding(_title(name), collection, settings) for name, collection in made.items() if name not in guards]
        for index, (collection, topics) in guards.items():
            validation = Validation.of(collection.texts, topics, settings)
            measured.append(Measured(f"topics of {index}", collection, validation))
        return cls(Guard(ranker, made.values(), settings) if settings.guard and made else None, measured, settings)


def _title(name: str) -> str:
    """How the report calls the topics of a guarding collection."""
    return "texts made of words" if name == WORDS else f"self-made topics of {name}"


def keep_weights(
    ranker: TrainableRanker,
    before: Mapping[str, Tensor],
    validation: Validation,
    progress: Progress,
    watch: Watch | None,
    keep: float | None,
    tolerance: float,
) -> None:
    """Set the weights of a trained ranker to the share that is kept, and report what was gained and lost.

    `before` has the weights before training. `keep` is the share; None lets the guard choose it, or keeps all weights
    without a guard.
    """
    measured, heading_path = (watch.measured, watch.settings.heading_path) if watch else ((), True)
    if keep is None:
        kept = keep_share(ranker, before, measured, tolerance, heading_path)
    else:
        kept = _given_share(ranker, before, measured, keep, heading_path)
    at_home = validation.measure(ranker) if kept.share < 1 else progress.best_measure
    if keep is not None and keep < 1:
        click.echo(f"with --keep {keep:g}: {validation.name} {at_home:.4f}")
    if 0 < kept.share < 1 and isinstance(ranker, ContextRanker) and not ranker.context.settings["residual"]:
        click.echo("perikope: warning: attention without a residual stays as trained; only the encoder is interpolated", err=True)
    if watch is not None:
        _report(kept, measured, validation.name, (progress.untrained, progress.best_measure, at_home), tolerance, chosen=keep is None)


def _given_share(
    ranker: TrainableRanker, before: Mapping[str, Tensor], measured: Sequence[Measured], share: float, heading_path: bool
) -> Kept:
    """Set the weights to a given share, and measure it."""
    kept = keep_share(ranker, before, measured, float("inf"), heading_path)
    if share == 1:
        return kept
    after = {name: value.detach().clone() for name, value in ranker.state_dict().items()}
    set_share(ranker, before, after, share)
    return Kept(share, kept.untrained, kept.trained, tuple(topics.measure(ranker, heading_path) for topics in measured))


def _report(
    kept: Kept, measured: Sequence[Measured], measure: str, at_home: tuple[float, float, float], tolerance: float, *, chosen: bool
) -> None:
    """Print a table of the measure on all topics: untrained, with all trained weights, and with the share of them."""
    rows = [("validation topics", at_home)]
    rows += [
        (topics.name, values) for topics, values in zip(measured, zip(kept.untrained, kept.trained, kept.kept, strict=True), strict=True)
    ]
    names = [printable(name) for name, _ in rows]
    width = max(map(len, (measure, *names)))
    click.echo(f"{measure.ljust(width)}  untrained  trained  saved")
    for name, (_, (untrained, trained, saved)) in zip(names, rows, strict=True):
        click.echo(f"{name.ljust(width)}  {untrained:9.4f}  {trained:7.4f}  {saved:.4f}  {saved - untrained:+.4f}")
    if chosen and kept.share < 1:
        click.echo(f"saved: {kept.share:g} of the way from the untrained to the trained weights, to lose at most {tolerance:g}")
    if kept.lost > tolerance:
        click.echo(f"perikope: warning: the ranker lost {kept.lost:.3f} on other topics; try a larger --guard-strength", err=True)
    click.echo(
        "This ranker belongs to the collections that it was trained on. Before you use it on another one, measure it there (--guard)."
    )
