"""`perikope experiment`: run what a file says, and report it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perikope.cli.output import count, printable

if TYPE_CHECKING:
    from perikope.evaluation.experiment.outcome import Sweep
    from perikope.neural.study import Study

_NEURAL, _PREPARED = "neural", "study.json"


@click.command(name="experiment")
@click.argument("file", metavar="FILE.toml|PROTOCOL|FOLDER", required=False, default="")
@click.option("--out", default="", metavar="FOLDER", help="Where results go; beside the file under its name where not given.")
@click.option("--resume/--fresh", "resume", default=True, show_default=True, help="Keep what an earlier run has finished, or begin anew.")
@click.option("--index", default="", metavar="INDEX", help="Search this index instead of what the file says.")
@click.option("--documents", multiple=True, metavar="PATH", help="Index these instead of what the file says. May be given several times.")
@click.option("--topics", default="", metavar="FILE", help="Report these topics instead of those of the file.")
@click.option("--judgements", "--qrels", "judgements", default="", metavar="FILE", help="Their judgements.")
@click.option("--training-topics", default="", metavar="FILE", help="Tune on and learn from these topics.")
@click.option("--training-judgements", default="", metavar="FILE", help="Their judgements.")
@click.option("--workers", default=0, type=click.IntRange(0), metavar="N", help="How many processes; as many as cores where not given.")
@click.option("--device", default="", metavar="NAME", help="Of neural studies: cpu or cuda; a GPU where there is one.")
@click.option("--list", "list_protocols", is_flag=True, help="Name the protocols that come with the program.")
def command(file: str, out: str, resume: bool, workers: int, device: str, list_protocols: bool, **given: Any) -> int:
    """Run an experiment: tune, learn, rank, measure and compare systems, as a TOML file says.

    The folder gets runs, values by topic, experiment.json and the report. The same file gives the same figures; interrupted, it goes on
    where it was. The protocols of the papers come with the program and run on any collection.

    A file with kind = "neural" is a study of neural rankers, trained with several seeds each; FOLDER is one that such a study has prepared,
    and may have been copied from another machine.

    \b
    Example:
      perikope experiment experiments/conditionalqa.toml --out results
      perikope experiment carmel2013 --index idx --topics topics.tsv --judgements qrels.txt --out results
      perikope experiment experiments/neural.toml --out results
    """
    from perikope.core.errors import UsageError
    from perikope.evaluation.experiment.plan import Given, load_plan, protocol_names
    from perikope.evaluation.experiment.running import run_experiment

    if list_protocols:
        for name in protocol_names():
            click.echo(name)
        return 0
    if not file:
        raise UsageError(f"name an experiment file, or one of the protocols: {', '.join(protocol_names())}")
    started = time.perf_counter()
    if _is_study(file):
        return _run_study(file, given, out, fresh=not resume, workers=workers, device=device, started=started)
    if device:
        raise UsageError("--device is for neural studies: nothing of this experiment is computed by a GPU")
    plan = load_plan(file, Given(**given))
    folder = Path(out) if out else Path(file).with_suffix("")
    done = run_experiment(plan, folder, fresh=not resume, workers=workers or None, on_progress=_progress())
    _show_sweeps(done.outcome.sweeps, plan.measures)
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


def _show_sweeps(sweeps: Sequence[Sweep], measures: Sequence[str]) -> None:
    """The means of all systems, the best by the main measure first."""
    for sweep in sweeps:
        click.echo(f"{sweep.label}")
        width = max(len(printable(system.name)) for system in sweep.systems)
        click.echo(" " * (width + 2) + "".join(name.rjust(max(len(name), 6) + 2) for name in measures))
        for system in sorted(sweep.systems, key=lambda system: -system.mean(measures[0])):
            values = "".join(f"{system.mean(name):.4f}".rjust(max(len(name), 6) + 2) for name in measures)
            click.echo(f"  {printable(system.name).ljust(width)}{values}")


def _is_study(file: str) -> bool:
    """Whether a file, a protocol, or a folder that was prepared is a study of neural rankers."""
    import tomllib

    from perikope.evaluation.experiment.plan import protocol_names

    path = Path(file)
    if file in protocol_names() or path.is_dir():
        return file in protocol_names(_NEURAL) or (path / _PREPARED).is_file()
    try:
        return tomllib.loads(path.read_text("utf-8-sig")).get("kind") == _NEURAL
    except (OSError, ValueError, RecursionError):
        # What is wrong with it is told by those who read it.
        return False


def _run_study(file: str, given: Mapping[str, Any], out: str, *, fresh: bool, workers: int, device: str, started: float) -> int:
    # First: without torch it is what says how to get it.
    from perikope.neural import encoder  # noqa: F401, I001
    from perikope.evaluation.experiment.state import locked
    from perikope.neural.preparing import prepare_study
    from perikope.neural.report import write_study_report
    from perikope.neural.study import Workplace, run_jobs
    from perikope.core.parallel import usable_cores

    path = Path(file)
    study = _study(file, given)
    folder = Path(out) if out and study is not None else path if study is None else path.with_suffix("")
    report = Path(out) if out else folder
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        if fresh:
            _remove(folder, keep_prepared=study is None)
        if study is not None:
            prepare_study(study, path, folder, _say)
        problems = run_jobs(folder, workers=workers or usable_cores(), device=device, on_job=_say)
        outcome, missing = write_study_report(Workplace.open(folder), report)
    _show_sweeps(outcome.sweeps, outcome.measures)
    click.echo(f"written to {report} in {time.perf_counter() - started:.1f} s")
    for line in (*(problem.report for problem in problems[:20]), *(f"not done: {job}" for job in missing[:20])):
        _say(f"  {line}")
    return 1 if problems or missing else 0


def _study(file: str, given: Mapping[str, Any]) -> Study | None:
    """The study of a file, or of a protocol with the collection that is given; None for a folder, which has its own."""
    import tomllib

    from perikope.core.errors import UsageError
    from perikope.evaluation.experiment.plan import protocol_names, protocol_text
    from perikope.neural.study import load_study, study_of

    options = {name: f"--{name.replace('_', '-')}" for name in given}
    if file not in protocol_names(_NEURAL):
        if useless := sorted(option for name, option in options.items() if given[name]):
            raise UsageError(f"{', '.join(useless)}: a neural study has its collections and topics in its file")
        return None if Path(file).is_dir() else load_study(Path(file))
    needed = ("topics", "judgements", "training_topics", "training_judgements")
    lacking = [options[name] for name in needed if not given[name]]
    lacking += [] if given["index"] or given["documents"] else ["--index or --documents"]
    if lacking:
        raise UsageError(f"the protocol {file} runs on a collection of yours: say {', '.join(lacking)}")
    if given["index"] and given["documents"]:
        raise UsageError("name either an index or documents (--index, --documents), not both")
    collection: dict[str, Any] = {"index": given["index"]} if given["index"] else {"documents": list(given["documents"])}
    collection["topics"] = {
        "topics": {"file": given["topics"], "judgements": given["judgements"]},
        "training": {"file": given["training_topics"], "judgements": given["training_judgements"]},
    }
    return study_of(tomllib.loads(protocol_text(file)), file, collection)


def _remove(folder: Path, *, keep_prepared: bool) -> None:
    """Remove what a study has made in a folder, and nothing of others."""
    from shutil import rmtree

    from perikope.neural.preparing import INDEXES
    from perikope.neural.study import COLLECTIONS, RUNS, VALUES

    if (folder / _PREPARED).is_file():
        for name in (VALUES,) if keep_prepared else (VALUES, COLLECTIONS, RUNS, INDEXES):
            rmtree(folder / name, ignore_errors=True)
        if not keep_prepared:
            (folder / _PREPARED).unlink()


def _say(line: str) -> None:
    click.echo(printable(line), err=True)


def _progress() -> Callable[[str, int, int], None]:
    """Progress as one line that is written over where stderr is a terminal, else as a line a stage."""
    last = [""]

    def show(stage: str, done: int, total: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done == total else ""
            click.echo(f"\r{stage}: {done} of {total}\x1b[K{end}", err=True, nl=False)
        elif stage != last[0] and total:
            click.echo(f"{stage}: {count(total, 'piece')}", err=True)
        last[0] = stage

    return show
