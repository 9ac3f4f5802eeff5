"""`perikope adapt`: fit the default model to the documents of an index, without human judgements."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perikope.cli.output import count as counted

if TYPE_CHECKING:
    from perikope.evaluation.adapting.adapt import Adaptation


@click.command(name="adapt")
@click.argument("index", metavar="INDEX")
@click.option(
    "--count", default=100, show_default=True, type=click.IntRange(1), metavar="N", help="Maximum number of self-made topics of each kind."
)
@click.option(
    "--seed", default=1, show_default=True, type=click.IntRange(0), metavar="N", help="Seed of the topics and of the held-back half."
)
@click.option("--workers", default=0, type=click.IntRange(0), metavar="N", help="Number of processes.  [default: one per core]")
@click.option("--dry-run", is_flag=True, help="Print what was found, and change nothing.")
@click.option("--remove", is_flag=True, help="Remove the index's own default, so that searches use the general one again.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the models, the topics and the gain.")
def command(index: str, count: int, seed: int, workers: int, dry_run: bool, remove: bool, as_json: bool) -> int:
    """Fit the context weights of the default model to the documents of an index, without human judgements.

    Topics with known answers are made from the documents (see `perikope topics`). One half chooses the weights, the
    other half tests them. The weights become the index's own default if they gain significantly there. Otherwise the
    index keeps the general weights, and an own default from an earlier run is removed.

    \b
    Example:
      perikope adapt idx --dry-run
      perikope adapt idx
    """
    from perikope.core.errors import UsageError
    from perikope.evaluation.adapting.adapt import adapt, settle
    from perikope.search.facade import Index
    from perikope.search.own_default import remove_own_default

    folder = Path(index)
    Index.open(folder)
    if remove:
        if dry_run:
            raise UsageError("--remove and --dry-run exclude each other; give one of them")
        removed = remove_own_default(folder)
        click.echo("removed the index's own default" if removed else "the index has no default of its own; nothing was removed")
        return 0
    with click.progressbar(length=6 * count, label="topics", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        found = adapt(folder, count=count, seed=seed, workers=workers or None, on_progress=bar.update)
    if not dry_run:
        settle(folder, found)
    if as_json:
        facts = {"model": found.model, "chosen": found.chosen, "adopted": found.is_adopted, "reason": found.reason, **found.facts()}
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        _show(found, saved=found.is_adopted and not dry_run)
    return 0


def _show(found: Adaptation, saved: bool) -> None:
    """Print the topics, the gain on held-back topics, and the model."""
    from perikope.evaluation.adapting.adapt import MEASURE

    for kind, number in found.kinds.items():
        click.echo(f"{counted(number, 'topic'):>12}  {kind:24s}  gain {found.gain_of_kind.get(kind, 0.0):+.4f}")
    chosen, held_back = found.documents
    click.echo(f"topics of {counted(chosen, 'document')} chose among {counted(found.settings, 'setting')}: {found.chosen}")
    click.echo(f"{MEASURE} on held-back topics of {counted(held_back, 'document')}: {found.before:.4f} -> {found.after:.4f}")
    if not found.is_adopted:
        click.echo(f"the general weights are kept: {found.reason}")
    else:
        click.echo(f"{found.reason}; " + ("saved as the default of the index" if saved else "nothing was saved (--dry-run)"))
