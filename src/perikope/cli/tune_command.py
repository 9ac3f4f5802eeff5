"""`perikope tune`: which parameters of a model rank training topics best?"""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from perikope.cli.options import GivenSearch, GroupedCommand, search_options, topic_options
from perikope.cli.output import count, printable
from perikope.search.options import OPTIONS, RECIPE


@click.command(name="tune", cls=GroupedCommand)
@click.argument("index", metavar="INDEX")
@click.argument("topics", metavar="TOPICS")
@click.argument("qrels", metavar="QRELS")
@click.option("--measure", default="MAP(D)", show_default=True, metavar="NAME", help="What is to be as high as can be.")
@click.option(
    "--search", "method", default="grid", show_default=True, type=click.Choice(["grid", "random"]), help="Try all values, or draw some."
)
@click.option("--trials", default=100, show_default=True, type=click.IntRange(1), metavar="N", help="How many settings are drawn.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), metavar="N", help="Decides all that is drawn.")
@click.option("--folds", default=5, show_default=True, type=click.IntRange(0), metavar="N", help="Of the cross-validation; 0 for none.")
@click.option("--model", default="", metavar="NAME(…)", help="Model whose parameters are tuned; the default is qsf_v_title.")
@click.option("--sweep", default="", metavar="N,…", help="Try these numbers of fetched documents too, as a parameter like the others.")
@click.option("--save", default="", metavar="RECIPE.toml", help="Write the best setting as a recipe, for --recipe.")
@click.option("--plot", default="", metavar="FILE.svg", help="Draw the scores by the values that were tried.")
@click.option("--show", default=10, show_default=True, type=click.IntRange(1), metavar="N", help="How many of the best settings to print.")
@click.option("--workers", default=0, type=click.IntRange(0), metavar="N", help="How many processes; as many as cores where not given.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: all settings with their scores.")
@topic_options
@search_options(without=("model",), k=1000, help={"k": "Number of passages per topic."})
def command(index: str, topics: str, qrels: str, search: GivenSearch, **own: Any) -> int:
    """Find the values of a model's parameters that rank topics best.

    Parameters are named in the model: qsf_section(alpha,beta) tries their declared grids, qsf_section(alpha=[0.2,0.4]) these values, and
    qsf_section everything that has a grid; what is given a value keeps it. Folds say how well a setting does on topics that did not
    choose it.

    \b
    Example:
      perikope tune idx topics.tsv qrels.txt --model "qsf_section(alpha,beta)" --measure "MAP(D)" --save mine.toml
      perikope run idx other-topics.tsv --recipe mine.toml --out mine.run
    """
    from pathlib import Path

    from perikope.core.configuration import SUFFIX
    from perikope.core.errors import UsageError
    from perikope.evaluation.io.topics import read_topics
    from perikope.evaluation.measures import parse_measure
    from perikope.evaluation.measures.files import judgements_in
    from perikope.evaluation.tuning.space import read_space
    from perikope.evaluation.tuning.tuner import tune
    from perikope.search.recipe_files import check_target, recipe_text, save_recipe

    # Before anything is read, and in this process: in a worker's it would be told as a failure of the worker.
    parse_measure(own["measure"])
    options = search.options
    # A recipe's model has a value for everything, which nobody has asked to be kept.
    typed = bool(own["model"])
    how = {"search": own["method"], "trials": own["trials"], "seed": own["seed"]}
    space = read_space(own["model"] or options.model, True, keep_given=typed, **how)
    sweep: list[Any] = [*_numbers(own["sweep"])] or [options.documents]
    if own["save"]:
        check_target(Path(own["save"]), "a recipe", SUFFIX)
    if own["plot"]:
        check_target(Path(own["plot"]), "a plot", ".svg")
        if len(space.settings) * len(sweep) < 2:
            raise UsageError("--plot has nothing to draw: there is one setting")
    with click.progressbar(length=100, label="topics", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        done = [0]

        def on_progress(finished: int, total: int) -> None:
            percent = 100 * finished // max(total, 1)
            bar.update(percent - done[0])
            done[0] = percent

        tuned, problems = tune(
            Path(index),
            search.with_candidates(read_topics(topics, own["topic_format"], own["topic_field"])),
            judgements_in(qrels),
            space,
            own["measure"],
            options,
            documents=sweep,
            folds=own["folds"],
            seed=own["seed"],
            text=qrels,
            workers=own["workers"] or None,
            on_progress=on_progress,
        )
    best = tuned.chosen
    chosen = space.model(tuple(best[path] for path in space.values))
    documents = best.get("documents", sweep[0])
    if own["save"]:
        score = max(tuned.scores)
        source = f"tuned: {own['measure']} {score:.4f} on {count(tuned.topics, 'topic')} of {Path(topics).name}"
        # Tuning returns more passages than a search needs, which is no part of what was tuned.
        tuned_options = options.updated({"documents": documents, "model": chosen, "k": OPTIONS["k"].default})
        save_recipe(Path(own["save"]), recipe_text(f"{chosen.definition.name}, tuned", tuned_options, source))
    if own["plot"]:
        from perikope.evaluation.experiment.report.surface import write_surface

        if not write_surface(Path(own["plot"]), tuned, chosen.definition.name):
            click.echo("warning: there is nothing to draw: one setting was tried", err=True)
            own["plot"] = ""
    if own["as_json"]:
        click.echo(json.dumps(_record(tuned, str(chosen)), ensure_ascii=False))
        return 1 if problems else 0
    order = sorted(range(len(tuned.settings)), key=lambda number: -tuned.scores[number])
    for number in order[: own["show"]]:
        values = "  ".join(f"{path}={_shown(value)}" for path, value in zip(tuned.parameters, tuned.settings[number], strict=True))
        click.echo(f"{tuned.scores[number]:.4f}  {values}")
    fetched = f" --documents {documents}" if len(sweep) > 1 else ""
    click.echo(f"best of {count(len(tuned.settings), 'setting')} on {count(tuned.topics, 'topic')}: {chosen}{fetched}")
    if tuned.folds:
        topics_held_out = sum(fold.topics for fold in tuned.folds)
        held_out = sum(fold.score * fold.topics for fold in tuned.folds) / max(topics_held_out, 1)
        click.echo(f"{own['measure']} {held_out:.4f} on topics that did not choose ({count(len(tuned.folds), 'fold')})")
    if own["save"]:
        click.echo(f"saved as {own['save']}")
        left_out = [OPTIONS[name].command_line for name in search.given if RECIPE not in OPTIONS[name].surfaces]
        if left_out:
            click.echo(f"note: a recipe cannot hold {', '.join(left_out)}: give it again with --recipe", err=True)
    if own["plot"]:
        click.echo(f"drawn in {own['plot']}")
    for problem in problems[:20]:
        click.echo(f"  passed over: {printable(problem)}", err=True)
    return 1 if problems else 0


def _numbers(text: str) -> list[int]:
    from perikope.core.errors import UsageError

    pieces = [piece.strip() for piece in text.split(",") if piece.strip()]
    if not all(piece.isascii() and piece.isdigit() and int(piece) > 0 for piece in pieces):
        raise UsageError(f"--sweep must be whole numbers with commas between them, not {text!r}")
    return [int(piece) for piece in pieces]


def _shown(value: object) -> str:
    from perikope.core.grammar import write

    return value if isinstance(value, str) else write(value)


def _record(tuned: Any, model: str) -> dict[str, object]:
    return {
        "measure": tuned.measure,
        "model": model,
        "chosen": dict(tuned.chosen),
        "parameters": list(tuned.parameters),
        "settings": [list(setting) for setting in tuned.settings],
        "scores": list(tuned.scores),
        "folds": [
            {"chosen": dict(fold.chosen), "training_score": fold.training_score, "score": fold.score, "topics": fold.topics}
            for fold in tuned.folds
        ],
    }
