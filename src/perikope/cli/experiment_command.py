"""`perikope experiment`: run the experiment that a file describes, and write a report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perikope.cli.options import GroupedCommand
from perikope.cli.output import count, printable
from perikope.cli.spreading import machines_option, spread_over

if TYPE_CHECKING:
    from perikope.evaluation.experiment.outcome import Sweep
    from perikope.evaluation.experiment.plan import Plan
    from perikope.evaluation.experiment.running import Done

SHOWN = 20
"""Maximum number of problems that are printed."""


_GROUPS = {
    "Data in place of those of the file": (
        "index", "documents", "topics", "judgements", "training_topics", "training_judgements", "translate", "encoder",
    ),
    "Running": ("out", "resume", "workers", "address", "device", "only_prepare"),
    "Protocols": ("show", "list_protocols"),
}  # fmt: skip


@click.command(name="experiment", cls=GroupedCommand, groups=_GROUPS)
@click.argument("file", metavar="FILE.toml|PROTOCOL|FOLDER", required=False, default="")
@click.option("--out", default="", metavar="FOLDER", help="Folder for the results.  [default: the path of the file without its suffix]")
@click.option(
    "--resume/--fresh",
    "resume",
    default=True,
    show_default=True,
    help="Keep the results of an earlier, interrupted run, or start again from the beginning.",
)
@click.option("--index", default="", metavar="INDEX", help="Search this index instead of the collection that the file names.")
@click.option(
    "--documents",
    multiple=True,
    metavar="PATH",
    help="Index and search these documents instead of the collection that the file names. May be given several times.",
)
@click.option("--topics", default="", metavar="FILE", help="Evaluate on these topics instead of the topics that the file names.")
@click.option("--judgements", "--qrels", "judgements", default="", metavar="FILE", help="Judgements of --topics.")
@click.option(
    "--training-topics",
    default="",
    metavar="FILE",
    help="Tune and train on these topics instead of the training topics that the file names.",
)
@click.option("--training-judgements", default="", metavar="FILE", help="Judgements of --training-topics.")
@click.option(
    "--translate",
    default="",
    metavar="URL",
    help="LibreTranslate server that translates the patents of topics into a searched language. The server receives their text.",
)
@click.option(
    "--workers", default=0, type=click.IntRange(0), metavar="N", help="Number of processes, at most four per core.  [default: one per core]"
)
@machines_option
@click.option("--device", default="", metavar="NAME", help="Device for neural rankers: cpu or cuda.  [default: cuda if there is a GPU]")
@click.option(
    "--encoder",
    default="",
    metavar="FOLDER|NAME",
    help="Encoder of neural rankers, instead of the encoder that the file names. With a FOLDER from another machine: the same "
    "encoder, where it is on this machine.",
)
@click.option(
    "--prepare",
    "only_prepare",
    is_flag=True,
    help="Do everything except the training of neural rankers. The folder can then be copied to another machine (FOLDER).",
)
@click.option("--show", is_flag=True, help="Print the file of PROTOCOL, for a copy with other settings.")
@click.option("--list", "list_protocols", is_flag=True, help="List the experiments of papers that come with the program (PROTOCOL).")
def command(
    file: str,
    out: str,
    resume: bool,
    workers: int,
    address: str | None,
    device: str,
    encoder: str,
    only_prepare: bool,
    show: bool,
    list_protocols: bool,
    **given: Any,
) -> int:
    """Run the experiment of a TOML file: tune, learn, train, rank, measure and compare systems.

    The folder of --out receives the runs, the values of each topic, experiment.json and a report. The same file always
    gives the same values. An interrupted experiment continues. PROTOCOL is the name of a paper's experiment that comes
    with the program; it runs on any collection.

    A file with kind = "neural" contains neural rankers, each trained with several seeds. FOLDER is the results folder
    of such an experiment, which may come from another machine. Its unfinished jobs are done, without documents or
    index.

    \b
    Example:
      perikope experiment experiments/conditionalqa.toml --out results
      perikope experiment carmel2013 --index idx --topics topics.tsv --judgements qrels.txt --out results
      perikope experiment experiments/neural.toml --out results
      perikope experiment albarede2023 --encoder FOLDER --index idx --topics topics.xml --judgements qrels.txt
        --training-topics train.xml --training-judgements train-qrels.txt --out results
    """
    from perikope.core.errors import UsageError
    from perikope.evaluation.experiment.plan import load_plan, protocol_names, protocol_text
    from perikope.evaluation.experiment.plan_parts import Given
    from perikope.evaluation.experiment.running import finish_experiment, run_experiment

    if list_protocols:
        for name in protocol_names():
            click.echo(name)
        return 0
    if not file:
        raise UsageError(f"give the file of an experiment, or one of the protocols: {', '.join(protocol_names())}")
    if show:
        click.echo(protocol_text(file), nl=False)
        return 0
    started, options = time.perf_counter(), Given(**given, encoder=encoder)
    if file not in protocol_names() and Path(file).is_dir():
        if options.options:
            raise UsageError(f"leave out {', '.join(options.options)}: a prepared folder already has its collections and topics")
        if address:
            raise UsageError("--address is for topics; the jobs of a prepared folder run on this machine, so leave it out")
        folder = Path(out or file)
        done = finish_experiment(
            Path(file), folder, fresh=not resume, workers=workers or None, device=device, encoder=encoder, on_step=_say
        )
    else:
        plan = load_plan(file, options)
        if device and not plan.kind:
            raise UsageError("--device applies to neural rankers only, and this experiment has none; leave --device out")
        folder = Path(out) if out else Path(file).with_suffix("")
        with spread_over(address, workers):
            if only_prepare:
                return _prepare(plan, folder, fresh=not resume, workers=workers or None)
            done = run_experiment(
                plan, folder, fresh=not resume, workers=workers or None, device=device, on_progress=_progress(), on_step=_say
            )
    _show_sweeps(done.outcome.sweeps, done.outcome.measures)
    click.echo(f"written to {folder} in {time.perf_counter() - started:.1f} s")
    _show_details(done)
    return 1 if done.problems or done.failures or done.missing else 0


def _prepare(plan: Plan, folder: Path, *, fresh: bool, workers: int | None) -> int:
    """Run everything except the jobs of neural rankers, and print how to run these."""
    from perikope.core.errors import UsageError
    from perikope.evaluation.experiment.jobs import jobs_of
    from perikope.evaluation.experiment.running import prepare_experiment

    if not plan.kind:
        raise UsageError("--prepare applies to neural rankers only, and this experiment has none; leave --prepare out")
    prepared = prepare_experiment(plan, folder, fresh=fresh, workers=workers, on_step=_say)
    click.echo(f"prepared {folder}: {count(len(jobs_of(prepared.plan)), 'job')}; to run them: perikope experiment {folder}")
    return 0


def _show_details(done: Done) -> None:
    """Print details on standard error: finished systems that were kept, the time of each stage, notes and problems."""
    if done.resumed:
        click.echo(f"  {count(done.resumed, 'system')} finished before", err=True)
    for stage, seconds in sorted(done.seconds.items(), key=lambda item: -item[1]):
        click.echo(f"  {stage}: {seconds:.1f} s", err=True)
    failures = [failure.report for failure in done.failures]
    missing = [f"not done: {job}" for job in done.missing]
    for lines in ([f"note: {note}" for note in done.notes], done.problems[:SHOWN], failures[:SHOWN], missing[:SHOWN]):
        for line in lines:
            _say(f"  {line}")


def _show_sweeps(sweeps: Sequence[Sweep], measures: Sequence[str]) -> None:
    """Print the mean values of all systems, ordered by the first measure. Systems of separate tables are left out."""
    for sweep in sweeps:
        systems = [system for system in sweep.systems if not system.table]
        click.echo(f"{sweep.label}")
        width = max((len(printable(system.name)) for system in systems), default=0)
        click.echo(" " * (width + 2) + "".join(name.rjust(max(len(name), 6) + 2) for name in measures))
        for system in sorted(systems, key=lambda system: -system.mean(measures[0])):
            values = "".join(f"{system.mean(name):.4f}".rjust(max(len(name), 6) + 2) for name in measures)
            click.echo(f"  {printable(system.name).ljust(width)}{values}")


def _say(line: str) -> None:
    click.echo(printable(line), err=True)


def _progress() -> Callable[[str, int, int], None]:
    """A function that shows progress on standard error.

    On a terminal, it overwrites one line. Elsewhere, it prints one line per stage.
    """
    last = [""]

    def show(stage: str, done: int, total: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done == total else ""
            click.echo(f"\r{stage}: {done} of {total}\x1b[K{end}", err=True, nl=False)
        elif stage != last[0] and total:
            click.echo(f"{stage}: {count(total, 'piece')}", err=True)
        last[0] = stage

    return show
