"""`perikope experiment`: run what a file says, and report it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from perikope.cli.output import count, printable


@click.command(name="experiment")
@click.argument("file", metavar="FILE.toml|PROTOCOL", required=False, default="")
@click.option("--out", default="", metavar="FOLDER", help="Where results go; beside the file under its name where not given.")
@click.option("--resume/--fresh", "resume", default=True, show_default=True, help="Keep what an earlier run has finished, or begin anew.")
@click.option("--index", default="", metavar="INDEX", help="Search this index instead of what the file says.")
@click.option("--documents", multiple=True, metavar="PATH", help="Index these instead of what the file says. May be given several times.")
@click.option("--topics", default="", metavar="FILE", help="Report these topics instead of those of the file.")
@click.option("--judgements", "--qrels", "judgements", default="", metavar="FILE", help="Their judgements.")
@click.option("--training-topics", default="", metavar="FILE", help="Tune on and learn from these topics.")
@click.option("--training-judgements", default="", metavar="FILE", help="Their judgements.")
@click.option("--workers", default=0, type=click.IntRange(0), metavar="N", help="How many processes; as many as cores where not given.")
@click.option("--list", "list_protocols", is_flag=True, help="Name the protocols that come with the program.")
def command(file: str, out: str, resume: bool, workers: int, list_protocols: bool, **given: str) -> int:
    """Run an experiment: tune, learn, rank, measure and compare systems, as a TOML file says.

    The folder gets runs, values by topic, experiment.json and the report. The same file gives the same figures; interrupted, it goes on
    where it was. The protocols of the papers come with the program and run on any collection.

    \b
    Example:
      perikope experiment experiments/conditionalqa.toml --out results
      perikope experiment carmel2013 --index idx --topics topics.tsv --judgements qrels.txt --out results
    """
    from pathlib import Path

    from perikope.errors import UsageError
    from perikope.experiment.plan import Given, load_plan, protocol_names
    from perikope.experiment.running import run_experiment

    if list_protocols:
        for name in protocol_names():
            click.echo(name)
        return 0
    if not file:
        raise UsageError(f"name an experiment file, or one of the protocols: {', '.join(protocol_names())}")
    started = time.perf_counter()
    plan = load_plan(file, Given(**{name: tuple(value) if name == "documents" else value for name, value in given.items()}))  # type: ignore[arg-type]
    folder = Path(out) if out else Path(file).with_suffix("")
    done = run_experiment(plan, folder, fresh=not resume, workers=workers or None, on_progress=_progress())
    main = plan.measures[0]
    for sweep in done.outcome.sweeps:
        click.echo(f"{sweep.label}")
        width = max(len(printable(system.name)) for system in sweep.systems)
        click.echo(" " * (width + 2) + "".join(name.rjust(max(len(name), 6) + 2) for name in plan.measures))
        for system in sorted(sweep.systems, key=lambda system: -system.mean(main)):
            values = "".join(f"{system.mean(name):.4f}".rjust(max(len(name), 6) + 2) for name in plan.measures)
            click.echo(f"  {printable(system.name).ljust(width)}{values}")
    click.echo(f"written to {folder} in {time.perf_counter() - started:.1f} s")
    if done.resumed:
        click.echo(f"  {count(done.resumed, 'system')} finished before", err=True)
    for stage, seconds in sorted(done.seconds.items(), key=lambda item: -item[1]):
        click.echo(f"  {stage}: {seconds:.1f} s", err=True)
    for note in done.notes:
        click.echo(f"  note: {printable(note)}", err=True)
    for problem in done.problems[:20]:
        click.echo(f"  {printable(problem)}", err=True)
    return 1 if done.problems else 0


def _progress() -> Callable[[str, int, int], None]:
    """Progress as one line that is written over where stderr is a terminal, else as a line a stage."""
    last = [""]

    def show(stage: str, done: int, total: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done == total else ""
            click.echo(f"\r{stage}: {done} of {total}\x1b[K{end}", err=True, nl=False)
        elif stage != last[0] and total:
            click.echo(f"{stage}: {total} pieces", err=True)
        last[0] = stage

    return show
