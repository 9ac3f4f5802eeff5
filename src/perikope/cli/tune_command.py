"""`perikope tune`: find the parameters of a model that rank training topics best."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perikope.cli.options import GivenSearch, GroupedCommand, search_options, topic_options
from perikope.cli.output import count, show_problems, show_warning
from perikope.cli.spreading import machines_option, spread_over
from perikope.search.options import LEXICAL, OPTIONS, RECIPE

if TYPE_CHECKING:
    from perikope.browse.models import Model
    from perikope.evaluation.tuning.outcome import TuningOutcome
    from perikope.evaluation.tuning.space import Space

DEFAULT_MEASURES = ("MAP(D)", "nDCG@10")
"""The measures to choose from if none is given. MAP(D) sees only the order inside each document. So it does not depend
on a parameter that weights documents, such as `alpha` of `qsf_v`."""


@dataclass(frozen=True, slots=True)
class _Tuned:
    """The outcome of tuning, with the best setting: the model with its parameters, and the number of documents."""

    outcome: TuningOutcome
    model: Model
    documents: Any
    """The number of fetched documents, or `all`."""

    @property
    def held_out_score(self) -> float:
        """The mean cross-validated score: each topic is scored with the setting that was chosen without its fold."""
        folds = self.outcome.folds
        return sum(fold.score * fold.topics for fold in folds) / max(sum(fold.topics for fold in folds), 1)


_GROUPS = {
    "Tuning": ("measure", "model", "method", "trials", "seed", "folds", "sweep", "workers", "address"),
    "Topics": ("topic_format", "topic_field", "topic_language"),
    "Output": ("save", "plot", "show", "as_json"),
}


@click.command(name="tune", cls=GroupedCommand, groups=_GROUPS)
@click.argument("index", metavar="INDEX")
@click.argument("topics", metavar="TOPICS")
@click.argument("qrels", metavar="QRELS")
@click.option(
    "--measure",
    default="",
    metavar="NAME",
    help="Measure to maximise; see `perikope measures`.  "
    f"[default: {DEFAULT_MEASURES[0]}, or {DEFAULT_MEASURES[1]} if that depends on more of the tuned parameters]",
)
@click.option(
    "--search",
    "method",
    default="grid",
    show_default=True,
    type=click.Choice(["grid", "random"]),
    help="Try all combinations of values, or a random sample of them.",
)
@click.option(
    "--trials", default=100, show_default=True, type=click.IntRange(1), metavar="N", help="Number of settings that --search random tries."
)
@click.option(
    "--seed", default=1, show_default=True, type=click.IntRange(0), metavar="N", help="Seed of the random search and of the folds."
)
@click.option(
    "--folds",
    default=5,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Number of folds of the cross-validation; 0 for no cross-validation.",
)
@click.option("--model", default="", metavar="NAME(…)", help=f"Model whose parameters are tuned.  [default: {LEXICAL}]")
@click.option(
    "--sweep",
    default="",
    metavar="N,…",
    help="Tune the number of fetched documents too: values of --documents to try, with commas between them.",
)
@click.option("--save", default="", metavar="RECIPE.toml", help="Write the best setting to this file, as a recipe for the option --recipe.")
@click.option("--plot", default="", metavar="FILE.svg", help="Write a plot of the scores of all tried settings to this file.")
@click.option("--show", default=10, show_default=True, type=click.IntRange(1), metavar="N", help="Number of best settings to print.")
@click.option(
    "--workers", default=0, type=click.IntRange(0), metavar="N", help="Number of processes, at most four per core.  [default: one per core]"
)
@machines_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON: all settings with their scores.")
@topic_options
@search_options(
    without=("model", "offset"),
    k=1000,
    model=LEXICAL,
    help={"k": "Number of passages per topic, or more if --measure ranks documents and needs more."},
)
def command(index: str, topics: str, qrels: str, search: GivenSearch, **options: Any) -> int:
    """Find the values of a model's parameters that rank topics best.

    The model names the parameters to tune. qsf_section(alpha,beta) tries the declared grids of both,
    qsf_section(alpha=[0.2,0.4]) tries these two values, and qsf_section tries the grids of all parameters. A parameter
    with a single value keeps it. Cross-validation reports the score on topics that were not used to choose the setting.

    \b
    Example:
      perikope tune idx topics.tsv qrels.txt --model "qsf_section(alpha,beta)" --measure "MAP(D)" --save mine.toml
      perikope run idx other-topics.tsv --recipe mine.toml --out mine.run
    """
    from perikope.evaluation.measures import parse_measure
    from perikope.evaluation.tuning.space import read_space

    # Checked here, because a worker process would report the mistake as a failure of the worker.
    if options["measure"]:
        parse_measure(options["measure"])
    # A recipe's model has values for all parameters; only values that the user typed are kept.
    typed = bool(options["model"])
    how = {"search": options["method"], "trials": options["trials"], "seed": options["seed"]}
    space = read_space(options["model"] or search.options.model, True, keep_given=typed, **how)
    sweep: list[Any] = [*_numbers(options["sweep"])] or [search.options.documents]
    _check_files(options, len(space.settings) * len(sweep))
    with spread_over(options["address"], options["workers"]):
        tuned, problems = _tune(index, topics, qrels, search, space, sweep, options)
    if options["save"]:
        _save(Path(options["save"]), tuned, search, Path(topics).name)
    _note_idle(tuned.outcome, options["measure"])
    is_drawn = bool(options["plot"]) and _draw(Path(options["plot"]), tuned)
    if options["as_json"]:
        click.echo(json.dumps(_record(tuned.outcome, str(tuned.model)), ensure_ascii=False))
        return 1 if problems else 0
    _show(tuned, options["show"], is_swept=len(sweep) > 1)
    if options["save"]:
        click.echo(f"saved as {options['save']}")
        left_out = [OPTIONS[name].command_line for name in search.given if RECIPE not in OPTIONS[name].surfaces]
        if left_out:
            click.echo(f"note: a recipe cannot contain {', '.join(left_out)}; give this again when you use --recipe", err=True)
    if is_drawn:
        click.echo(f"drawn in {options['plot']}")
    show_problems("skipped", problems)
    return 1 if problems else 0


def _check_files(options: dict[str, Any], settings: int) -> None:
    """Raise `UsageError`, before tuning starts, if the file of --save or --plot cannot be written."""
    from perikope.core.configuration import SUFFIX
    from perikope.core.errors import UsageError
    from perikope.search.recipe_files import check_target

    if options["save"]:
        check_target(Path(options["save"]), "a recipe", SUFFIX)
    if options["plot"]:
        check_target(Path(options["plot"]), "a plot", ".svg")
        if settings < 2:
            raise UsageError(
                "--plot needs at least two settings, and there is only one; tune a parameter with several values, or leave --plot out"
            )


def _tune(
    index: str, topics: str, qrels: str, search: GivenSearch, space: Space, sweep: list[Any], options: dict[str, Any]
) -> tuple[_Tuned, list[str]]:
    """Tune with a progress bar; returns the outcome and one message per skipped topic."""
    from perikope.core.errors import UsageError
    from perikope.evaluation.io.fitting import fit_judgements
    from perikope.evaluation.io.topics import read_topics
    from perikope.evaluation.measures import parse_measures
    from perikope.evaluation.tuning.tuner import tune
    from perikope.index.reader import Snapshot

    measures = (options["measure"],) if options["measure"] else DEFAULT_MEASURES
    judgements = fit_judgements(qrels, Snapshot.open(Path(index)))
    show_warning(judgements.warning)
    known_topics = read_topics(topics, options["topic_format"], options["topic_field"], options["topic_language"], show_warning)
    if not known_topics:
        raise UsageError(f"{topics} has no topics; name another file")
    with click.progressbar(length=100, label="topics", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        shown = [0]

        def on_progress(finished: int, total: int) -> None:
            percent = 100 * finished // max(total, 1)
            bar.update(percent - shown[0])
            shown[0] = percent

        outcome, problems = tune(
            Path(index),
            search.with_candidates(known_topics),
            judgements.names,
            space,
            measures,
            search.options,
            documents=sweep,
            folds=options["folds"],
            seed=options["seed"],
            text=qrels,
            depth=search.depth(parse_measures(measures)),
            workers=options["workers"] or None,
            on_progress=on_progress,
            on_note=show_warning,
        )
    chosen = outcome.chosen
    model = space.model(tuple(chosen[path] for path in space.values))
    return _Tuned(outcome, model, chosen.get("documents", sweep[0])), problems


def _note_idle(outcome: TuningOutcome, measure: str) -> None:
    """Say on standard error which measure was chosen if none is given, and which parameters it does not depend on."""
    if not measure and outcome.measure != DEFAULT_MEASURES[0]:
        click.echo(f"note: {outcome.measure} is maximised, because {DEFAULT_MEASURES[0]} does not depend on all tuned parameters", err=True)
    if outcome.idle:
        others = ", ".join(name for name in DEFAULT_MEASURES if name != outcome.measure)
        show_warning(f"{outcome.idle_note}; to tune {' and '.join(outcome.idle)}, try another --measure, such as {others}")


def _save(path: Path, tuned: _Tuned, search: GivenSearch, topics: str) -> None:
    """Write the chosen setting as a recipe."""
    from perikope.search.recipe_files import recipe_text, save_recipe

    outcome = tuned.outcome
    source = f"tuned: {outcome.measure} {max(outcome.scores):.4f} on {count(outcome.topics, 'topic')} of {topics}"
    # Tuning returns more passages than a search needs, so k is not part of the tuned setting.
    options = search.options.updated({"documents": tuned.documents, "model": tuned.model, "k": OPTIONS["k"].default})
    save_recipe(path, recipe_text(f"{tuned.model.definition.name}, tuned", options, source))


def _draw(path: Path, tuned: _Tuned) -> bool:
    """Draw the scores of all settings; False, with a warning, if only one setting was tried."""
    from perikope.evaluation.experiment.report.surface import write_surface

    if write_surface(path, tuned.outcome, tuned.model.definition.name):
        return True
    click.echo("warning: no plot is drawn, because only one setting was tried", err=True)
    return False


def _show(tuned: _Tuned, most: int, *, is_swept: bool) -> None:
    """Print the best settings, the chosen one, and its cross-validated score."""
    outcome = tuned.outcome
    chosen = tuple(outcome.chosen.values())
    # The chosen setting is the first of those with the best score.
    order = sorted(range(len(outcome.settings)), key=lambda number: (outcome.settings[number] != chosen, -outcome.scores[number]))
    for number in order[:most]:
        values = "  ".join(f"{path}={_written(value)}" for path, value in zip(outcome.parameters, outcome.settings[number], strict=True))
        click.echo(f"{outcome.scores[number]:.4f}  {values}")
    fetched = f" --documents {tuned.documents}" if is_swept else ""
    click.echo(f"best of {count(len(outcome.settings), 'setting')} on {count(outcome.topics, 'topic')}: {tuned.model}{fetched}")
    click.echo(f"{outcome.measure} {max(outcome.scores):.4f} on these topics")
    if outcome.folds:
        click.echo(f"{outcome.measure} {tuned.held_out_score:.4f} on held-out topics ({count(len(outcome.folds), 'fold')})")


def _numbers(text: str) -> list[int]:
    from perikope.core.errors import UsageError

    pieces = [piece.strip() for piece in text.split(",") if piece.strip()]
    if not all(re.fullmatch("0*[1-9][0-9]{0,8}", piece) for piece in pieces):
        raise UsageError(f"--sweep must be a list of whole numbers above 0 with commas between them, such as 100,1000, not {text!r}")
    return [int(piece) for piece in pieces]


def _written(value: object) -> str:
    from perikope.core.grammar import write

    return value if isinstance(value, str) else write(value)


def _record(outcome: TuningOutcome, model: str) -> dict[str, object]:
    return {
        "measure": outcome.measure,
        "model": model,
        "chosen": dict(outcome.chosen),
        "parameters": list(outcome.parameters),
        "settings": [list(setting) for setting in outcome.settings],
        "scores": list(outcome.scores),
        "idle": list(outcome.idle),
        "folds": [
            {"chosen": dict(fold.chosen), "training_score": fold.training_score, "score": fold.score, "topics": fold.topics}
            for fold in outcome.folds
        ],
    }
