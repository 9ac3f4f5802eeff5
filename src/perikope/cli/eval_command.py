"""`perikope eval`: measure runs against judgements."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perikope.cli.output import printable

if TYPE_CHECKING:
    from perikope.evaluation.measures import Evaluation
    from perikope.evaluation.measures.significance import Comparison


@click.command(name="eval")
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option(
    "--measures",
    default=None,
    metavar="NAMES",
    help="See `perikope measures`.  [default: nDCG@10 AP MAP(D); for INEX judgements nDCG@10 AP]",
)
@click.option(
    "--qrels-format",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "trec", "clef-ip", "inex", "beir", "spans"]),
    help="The form of QRELS; auto sees it from the content.",
)
@click.option(
    "--run-format",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "trec", "clef-ip", "inex"]),
    help="The form of the runs; auto sees it from the content.",
)
@click.option("--index", default="", metavar="INDEX", help="Where the passages stand, for measures of characters.")
@click.option(
    "--test",
    default="none",
    show_default=True,
    type=click.Choice(["none", "t", "wilcoxon", "mannwhitney", "randomisation"]),
    help="Compare the runs, two-tailed over the queries; each run shows the letters of those that it beats.",
)
@click.option(
    "--correction",
    default="holm",
    show_default=True,
    type=click.Choice(["holm", "bonferroni", "bh", "none"]),
    help="How p is corrected for the number of pairs.",
)
@click.option("--alpha", default=0.05, show_default=True, type=float, metavar="P", help="The highest p that is significant.")
@click.option("--seed", default=0, show_default=True, type=int, metavar="N", help="Of the randomisation test.")
@click.option("--per-query", is_flag=True, help="Print the value of each query too.")
@click.option("--only-run-queries", is_flag=True, help="Average over the queries in the run instead of all judged ones.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines: an object a run.")
def command(
    qrels: str,
    runs: tuple[str, ...],
    measures: str | None,
    qrels_format: str,
    run_format: str,
    index: str,
    test: str,
    correction: str,
    alpha: float,
    seed: int,
    per_query: bool,
    only_run_queries: bool,
    as_json: bool,
) -> int:
    """Measure runs against judgements; a judged query that a run leaves out counts 0.

    Both may be TREC, CLEF-IP or INEX files, and judgements also a BEIR folder, a data set of ir_datasets, `irds:NAME`, or spans of
    relevant text in passages, `qid document#passage start end`. Measures of characters (iP, AiP, gP, gR, AgP) take INEX files, or with
    --index any file that names passages; those of names see the documents of INEX files.

    \b
    Example:
      perikope eval qrels.txt bm25.run qsf_v.run --measures "nDCG@10 MAP(D) PRES@100" --test t
      perikope eval spans.tsv bm25.run --index idx --measures "iP[0.01] MAiP MAgP T2I(300)"
    """
    import os

    from perikope.core.errors import UsageError
    from perikope.evaluation.io.judgements import disagreement
    from perikope.evaluation.measures import parse_measures
    from perikope.evaluation.measures.files import JudgementFile
    from perikope.evaluation.measures.significance import check_test, compare

    named = parse_measures(measures or "")
    if measures is not None and not named:
        raise UsageError("--measures is empty: give at least one, such as nDCG@10, or leave it out; see `perikope measures`")
    names_of: dict[str, str] = {}
    for path in runs:
        place = os.path.realpath(path)
        if place in names_of:
            before = "" if names_of[place] == path else f", before as {names_of[place]}"
            raise UsageError(f"{path} is given twice{before}: name each run once")
        names_of[place] = path
    if test != "none":
        check_test(test)
    judgements = JudgementFile(qrels, qrels_format, index)
    wanted = named or parse_measures("nDCG@10 AP" if judgements.form == "inex" else "nDCG@10 AP MAP(D)")
    by_name = any(measure.level == "names" for measure in wanted)
    evaluations = {}
    for path in runs:
        run = judgements.run(path, run_format)
        if not run.names.keys() & judgements.names.keys():
            click.echo(f"warning: {printable(path)} has no query that {printable(qrels)} judges", err=True)
        elif by_name and (complaint := disagreement(judgements.names, run.names)):
            click.echo(f"warning: {printable(path)} {complaint}", err=True)
        evaluations[path] = judgements.evaluate(wanted, run, only_run_queries=only_run_queries)
    names = list(next(iter(evaluations.values())).mean)
    comparisons: dict[str, Comparison] = {}
    if test != "none":
        comparisons = {
            name: compare(
                {path: evaluation.per_query[name] for path, evaluation in evaluations.items()},
                test=test,
                correction=correction,
                alpha=alpha,
                seed=seed,
            )
            for name in names
        }
    if as_json:
        for path, evaluation in evaluations.items():
            click.echo(json.dumps(_record(path, evaluation, comparisons, per_query)))
        return 0
    if len(runs) == 1 and comparisons:
        click.echo("warning: there is one run, and nothing to compare it with", err=True)
        comparisons = {}
    _table(names, evaluations, comparisons, per_query)
    if comparisons:
        note = f"letters: the runs that this one beats ({test}, {'not corrected' if correction == 'none' else correction}, p <= {alpha:g})"
        click.echo(note)
    return 0


def _record(path: str, evaluation: Evaluation, comparisons: dict[str, Comparison], per_query: bool) -> dict[str, object]:
    record: dict[str, object] = {"run": path, "queries": len(evaluation.queries), "mean": dict(evaluation.mean)}
    if comparisons:
        record["beats"] = {name: list(comparison.beaten[path]) for name, comparison in comparisons.items()}
        record["p"] = {
            name: {other: p for (one, other), p in comparison.p.items() if one == path} for name, comparison in comparisons.items()
        }
    if per_query:
        record["per_query"] = {name: dict(values) for name, values in evaluation.per_query.items()}
    return record


def _table(names: list[str], evaluations: dict[str, Evaluation], comparisons: dict[str, Comparison], per_query: bool) -> None:
    labels = next(iter(comparisons.values())).labels if comparisons else {}
    shown = {path: f"{labels[path]}  {path}" if labels else path for path in evaluations}
    first = max(len("run"), *(len(printable(label)) for label in shown.values())) + 2
    # Letters stand behind the value, in a column of their own, so that values stay below each other.
    room = {name: max(map(len, comparison.letters.values())) for name, comparison in comparisons.items()}
    room = {name: width + 1 for name, width in room.items() if width}
    head = "".join(name.rjust(max(len(name), 6) + 2) + " " * room.get(name, 0) for name in names)
    click.echo("run".ljust(first) + head + "  queries")
    for path, evaluation in evaluations.items():
        if per_query:
            for qid in evaluation.queries:
                _row(f"  {qid}", first, {name: evaluation.per_query[name][qid] for name in names}, room, {})
        letters = {name: comparison.letters[path] for name, comparison in comparisons.items()}
        _row(shown[path], first, dict(evaluation.mean), room, letters, f"  {len(evaluation.queries)}")


def _row(label: str, width: int, values: dict[str, float], room: dict[str, int], letters: dict[str, str], end: str = "") -> None:
    cells = []
    for name, value in values.items():
        after = f" {letters[name]}" if letters.get(name) else ""
        cells.append(f"{value:.4f}".rjust(max(len(name), 6) + 2) + after.ljust(room.get(name, 0)))
    click.echo((printable(label).ljust(width) + "".join(cells) + end).rstrip())
