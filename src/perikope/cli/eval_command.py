"""`perikope eval`: measure runs against judgements."""

from __future__ import annotations

import json

import click

from perikope.cli.output import printable


@click.command(name="eval")
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option(
    "--measures",
    default="",
    metavar="NAMES",
    help="See `perikope measures`.  [default: nDCG@10 AP MAP(D); for INEX judgements nDCG@10 AP]",
)
@click.option(
    "--qrels-format",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "trec", "clef-ip", "inex", "beir"]),
    help="The form of QRELS; auto sees it from the content.",
)
@click.option(
    "--run-format",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "trec", "clef-ip", "inex"]),
    help="The form of the runs; auto sees it from the content.",
)
@click.option("--per-query", is_flag=True, help="Print the value of each query too.")
@click.option("--only-run-queries", is_flag=True, help="Average over the queries in the run instead of all judged ones.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    qrels: str,
    runs: tuple[str, ...],
    measures: str,
    qrels_format: str,
    run_format: str,
    per_query: bool,
    only_run_queries: bool,
    as_json: bool,
) -> int:
    """Measure runs against judgements; a judged query that a run leaves out counts 0.

    Both may be TREC, CLEF-IP or INEX files, and judgements also a BEIR folder or a data set of ir_datasets, `irds:NAME`. INEX judgements
    and runs, which speak of characters, are compared by document: one with relevant text is relevant.

    \b
    Example:
      perikope eval qrels.txt bm25.run qsf_v.run --measures "nDCG@10 MAP(D) PRES@100"
    """
    from perikope.errors import UsageError
    from perikope.io.judgements import disagreement, judgement_form, read_judgements
    from perikope.io.runs import read_run
    from perikope.measures import evaluate, parse_measures

    named = parse_measures(measures)
    if measures and not named:
        raise UsageError("give at least one measure, such as nDCG@10; see `perikope measures`")
    form = judgement_form(qrels) if qrels_format == "auto" else qrels_format
    wanted = named or parse_measures("nDCG@10 AP" if form == "inex" else "nDCG@10 AP MAP(D)")
    judgements = read_judgements(qrels, form)
    loaded = {path: read_run(path, run_format) for path in runs}
    for path, run in loaded.items():
        if not run.keys() & judgements.keys():
            click.echo(f"warning: {printable(path)} has no query that {printable(qrels)} judges", err=True)
        elif complaint := disagreement(judgements, run):
            click.echo(f"warning: {printable(path)} {complaint}", err=True)
    evaluations = {path: evaluate(wanted, judgements, run, only_run_queries=only_run_queries) for path, run in loaded.items()}
    if as_json:
        for path, evaluation in evaluations.items():
            record: dict[str, object] = {"run": path, "queries": len(evaluation.queries), "mean": dict(evaluation.mean)}
            if per_query:
                record["per_query"] = {name: dict(values) for name, values in evaluation.per_query.items()}
            click.echo(json.dumps(record))
        return 0
    names = list(next(iter(evaluations.values())).mean)
    first = max(len("run"), *(len(path) for path in runs)) + 2
    click.echo("run".ljust(first) + "".join(name.rjust(max(len(name), 6) + 2) for name in names) + "  queries")
    for path, evaluation in evaluations.items():
        if per_query:
            for qid in evaluation.queries:
                _row(f"  {qid}", first, {name: evaluation.per_query[name][qid] for name in names})
        _row(path, first, dict(evaluation.mean), f"  {len(evaluation.queries)}")
    return 0


def _row(label: str, width: int, values: dict[str, float], end: str = "") -> None:
    click.echo(printable(label).ljust(width) + "".join(f"{value:.4f}".rjust(max(len(name), 6) + 2) for name, value in values.items()) + end)
