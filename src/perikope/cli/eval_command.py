"""`perikope eval`: measure runs against judgements."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from perikope.cli.options import GroupedCommand
from perikope.cli.output import printable, show_warning, table_lines

if TYPE_CHECKING:
    from perikope.evaluation.measures import Evaluation, Measure
    from perikope.evaluation.measures.effects import PairDifference
    from perikope.evaluation.measures.files import JudgementFile, RunFile
    from perikope.evaluation.measures.significance import Comparison


@dataclass(frozen=True, slots=True)
class _SignificanceTest:
    """The options of the significance test: its name, the correction of p, the largest significant p, and a seed."""

    test: str
    correction: str
    alpha: float
    seed: int

    @property
    def note(self) -> str:
        """The line below a table of values that explains the letters in the table."""
        correction = "not corrected" if self.correction == "none" else self.correction
        return f"letters: the runs that this run beats ({self.test}, {correction}, p <= {self.alpha:g})"


_GROUPS = {
    "Measures": ("measures", "only_run_queries", "index"),
    "Files": ("qrels_format", "run_format"),
    "Significance": ("test", "correction", "alpha", "seed"),
    "Output": ("per_query", "as_json"),
}


@click.command(name="eval", cls=GroupedCommand, groups=_GROUPS)
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option(
    "--measures",
    default=None,
    metavar="NAMES",
    help="Measures, with spaces between them; see `perikope measures`.  [default: nDCG@10 AP MAP(D); nDCG@10 AP for INEX judgements]",
)
@click.option(
    "--qrels-format",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "trec", "clef-ip", "inex", "beir", "spans"]),
    help="Format of QRELS; auto detects it from the content.",
)
@click.option(
    "--run-format",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "trec", "clef-ip", "inex"]),
    help="Format of the runs; auto detects it from the content.",
)
@click.option(
    "--index",
    default="",
    metavar="INDEX",
    help="Index of the passages in the runs. It converts judgements to the ids of passages, and has the positions of their characters.",
)
@click.option(
    "--test",
    default="none",
    show_default=True,
    type=click.Choice(["none", "t", "wilcoxon", "mannwhitney", "randomisation"]),
    help="Two-tailed test of significance over the queries. Each run shows the letters of the runs that it beats. A table has the "
    "difference of each pair of runs, its confidence interval, effect size and p-value.",
)
@click.option(
    "--correction",
    default="holm",
    show_default=True,
    type=click.Choice(["holm", "bonferroni", "bh", "none"]),
    help="Correction of p-values for the number of compared pairs of runs.",
)
@click.option(
    "--alpha",
    default=0.05,
    show_default=True,
    type=float,
    metavar="P",
    help="Largest p-value of a significant difference. Confidence intervals have the level 1 - P.",
)
@click.option("--seed", default=0, show_default=True, type=int, metavar="N", help="Seed of the randomisation test and of the bootstrap.")
@click.option("--per-query", is_flag=True, help="Print the values of each query too.")
@click.option("--only-run-queries", is_flag=True, help="Average over the queries of the run instead of all judged queries.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines: one object per run.")
def command(
    qrels: str,
    runs: tuple[str, ...],
    measures: str | None,
    index: str,
    per_query: bool,
    only_run_queries: bool,
    as_json: bool,
    qrels_format: str,
    run_format: str,
    **significance: Any,
) -> int:
    """Measure runs against judgements. A judged query that is missing from a run has the value 0.

    QRELS and RUN are files of TREC, CLEF-IP or INEX. QRELS may also be a BEIR folder, a data set of ir_datasets
    (`irds:NAME`), or a file of relevant spans of passages, with lines `qid document#passage start end`. Measures that
    count characters (iP, AiP, gP, gR, AgP) need INEX files or, with --index, any files that name passages. The other
    measures count the documents of INEX files.

    \b
    Example:
      perikope eval qrels.txt bm25.run qsf_v.run --measures "nDCG@10 MAP(D) PRES@100" --test t
      perikope eval spans.tsv bm25.run --index idx --measures "iP[0.01] MAiP MAgP T2I(300)"
    """
    from perikope.core.errors import UsageError
    from perikope.evaluation.measures import parse_measures
    from perikope.evaluation.measures.files import JudgementFile
    from perikope.evaluation.measures.significance import check_test

    requested = parse_measures(measures or "")
    if measures is not None and not requested:
        raise UsageError(
            "--measures is empty: give at least one measure, such as nDCG@10, or leave --measures out; see `perikope measures`"
        )
    _refuse_repeated(runs)
    test = _SignificanceTest(**significance)
    if test.test != "none":
        check_test(test.test)
    judgements = JudgementFile(qrels, qrels_format, index)
    wanted = requested or parse_measures("nDCG@10 AP" if judgements.form == "inex" else "nDCG@10 AP MAP(D)")
    evaluations = _evaluate(judgements, runs, run_format, wanted, only_run_queries)
    comparisons = _compare(evaluations, test)
    pairs = _pairs(evaluations, test)
    if as_json:
        for path, evaluation in evaluations.items():
            click.echo(json.dumps(_record(path, evaluation, comparisons, pairs, per_query)))
        return 0
    if len(runs) == 1 and comparisons:
        click.echo("warning: --test compares runs, and only one run was given", err=True)
        comparisons = {}
    _table(evaluations, comparisons, per_query)
    if comparisons:
        click.echo(test.note)
        for name, listed in pairs.items():
            click.echo("\n".join(["", *_lines_of_pairs(name, listed, comparisons[name].labels, test)]))
    return 0


def _refuse_repeated(runs: tuple[str, ...]) -> None:
    """Raise `UsageError` if a run file is given twice, even by different paths."""
    from perikope.core.errors import UsageError

    name_of_file: dict[str, str] = {}
    for path in runs:
        file = os.path.realpath(path)
        if file in name_of_file:
            before = "" if name_of_file[file] == path else f", first as {name_of_file[file]}"
            raise UsageError(f"{path} is given twice{before}: name each run once")
        name_of_file[file] = path


def _evaluate(
    judgements: JudgementFile,
    runs: tuple[str, ...],
    run_format: str,
    measures: list[Measure],
    only_run_queries: bool,
) -> dict[str, Evaluation]:
    """Evaluate each run, and return the evaluations by path.

    Raises an `InputError` if no judgement fits the index, or if every value of a run must be 0. Warns about judgements
    that do not fit the index, and about runs that do not fit the judgements.
    """
    warnings = [judgements.fitted.warning if judgements.index else ""]
    if not any(grade > 0 for judged in judgements.names.values() for grade in judged.values()):
        warnings.append(f"{judgements.path} has no relevant judgement")
    evaluations = {}
    for path in runs:
        run = judgements.run(path, run_format)
        warnings.append(_misfit(run, judgements, measures))
        missing = len(judgements.names.keys() - run.names.keys())
        if missing and not only_run_queries:
            share = f"{missing} of {len(judgements.names)} judged queries"
            warnings.append(f"{path} has no results for {share}, which count 0; --only-run-queries leaves them out")
        evaluations[path] = judgements.evaluate(measures, run, only_run_queries=only_run_queries)
    for warning in warnings:
        show_warning(warning)
    return evaluations


def _misfit(run: RunFile, judgements: JudgementFile, measures: list[Measure]) -> str:
    """A warning about a run that does not fit the judgements; empty if it fits.

    Raises an `InputError` if every value must be 0: the run has no judged query, or only names of another kind than the
    judgements, and no measure compares documents or characters.
    """
    from perikope.core.errors import InputError
    from perikope.core.names import document_name
    from perikope.evaluation.io.judgements import disagreement, kinds_of_names

    if not run.names.keys() & judgements.names.keys():
        raise InputError(f"has no query that {judgements.path} judges: check that both have the same query ids", path=run.path)
    judged = judgements.names_for(run)
    kinds, kinds_of_run = kinds_of_names(judged), kinds_of_names(run.names)
    by_name = [measure.level == "names" and not measure.definition.ranks_documents for measure in measures]
    complaint = disagreement(judged, run.names) if any(by_name) else ""
    if complaint and not kinds & kinds_of_run and all(by_name):
        raise InputError(complaint + _help_of_index(judgements, kinds, kinds_of_run), path=run.path)
    # With an index, some names are of another kind only if their judgements do not fit, which has its own warning.
    if complaint and not (judgements.index and kinds & kinds_of_run):
        return f"{run.path} {complaint}{_help_of_index(judgements, kinds, kinds_of_run)}"
    results = [(judged.get(qid, {}).keys(), scores.keys()) for qid, scores in run.names.items()]
    if not any(set(map(document_name, names)) & set(map(document_name, found)) for names, found in results):
        return f"{run.path} has no result in a document that {judgements.path} judges for the query"
    if any(by_name) and not any(names & found for names, found in results):
        return f"{run.path} has no result that {judgements.path} judges"
    return ""


def _help_of_index(judgements: JudgementFile, kinds: set[str], kinds_of_run: set[str]) -> str:
    """The end of a complaint about names: it suggests --index if the judgements then get the names of the run."""
    helps = "id" in kinds_of_run and ("path" in kinds or judgements.form == "inex")
    return "; or give the index of its passages (--index)" if helps and not judgements.index else ""


def _compare(evaluations: dict[str, Evaluation], significance: _SignificanceTest) -> dict[str, Comparison]:
    """The comparison of all runs, by name of the measure; empty if no test was chosen."""
    from perikope.evaluation.measures.significance import compare

    if significance.test == "none":
        return {}
    return {
        name: compare(
            {path: evaluation.per_query[name] for path, evaluation in evaluations.items()},
            test=significance.test,
            correction=significance.correction,
            alpha=significance.alpha,
            seed=significance.seed,
        )
        for name in _names(evaluations)
    }


def _pairs(evaluations: dict[str, Evaluation], significance: _SignificanceTest) -> dict[str, list[PairDifference]]:
    """The differences of all pairs of runs, by name of the measure; empty if no test was chosen."""
    from perikope.evaluation.measures.effects import differences

    if significance.test == "none":
        return {}
    settings = asdict(significance)
    return {
        name: differences({path: evaluation.per_query[name] for path, evaluation in evaluations.items()}, **settings)
        for name in _names(evaluations)
    }


def _lines_of_pairs(measure: str, pairs: list[PairDifference], labels: Mapping[str, str], test: _SignificanceTest) -> list[str]:
    """A table of the differences of a measure, one line per pair of runs."""
    from perikope.evaluation.measures.effects import EFFECTS

    corrected = [] if test.correction == "none" else [f"p ({test.correction})"]
    rows = [[measure, "difference", f"{100 * (1 - test.alpha):.4g}% interval", EFFECTS[test.test], "p", *corrected]]
    for pair in pairs:
        interval = "(one query)" if math.isnan(pair.low) else f"[{pair.low:+.4f}, {pair.high:+.4f}]"
        values = [pair.p, pair.corrected_p][: 1 + len(corrected)]
        row = [f"{labels[pair.one]} - {labels[pair.other]}", f"{pair.difference:+.4f}", interval, f"{pair.effect:+.3f}"]
        rows.append([*row, *(f"{p:.3g}" for p in values)])
    return table_lines(rows, right=range(1, 6))


def _plain(pair: PairDifference) -> dict[str, float | None]:
    """The numbers of a pair for JSON, which has neither infinity nor NaN."""
    names = ("difference", "low", "high", "effect", "p", "corrected_p")
    return {name: value if math.isfinite(value := getattr(pair, name)) else None for name in names}


def _names(evaluations: dict[str, Evaluation]) -> list[str]:
    """The names of the measures, as the user wrote them."""
    return list(next(iter(evaluations.values())).mean)


def _record(
    path: str, evaluation: Evaluation, comparisons: dict[str, Comparison], pairs: dict[str, list[PairDifference]], per_query: bool
) -> dict[str, object]:
    record: dict[str, object] = {"run": path, "queries": len(evaluation.queries), "mean": dict(evaluation.mean)}
    if comparisons:
        record["beats"] = {name: list(comparison.beaten[path]) for name, comparison in comparisons.items()}
        record["p"] = {
            name: {other: p for (run, other), p in comparison.p.items() if run == path} for name, comparison in comparisons.items()
        }
        record["differences"] = {
            name: {pair.other: _plain(pair) for both in listed for pair in (both, both.reversed()) if pair.one == path}
            for name, listed in pairs.items()
        }
    if per_query:
        record["per_query"] = {name: dict(values) for name, values in evaluation.per_query.items()}
    return record


def _table(evaluations: dict[str, Evaluation], comparisons: dict[str, Comparison], per_query: bool) -> None:
    names = _names(evaluations)
    labels = next(iter(comparisons.values())).labels if comparisons else {}
    shown = {path: f"{labels[path]}  {path}" if labels else path for path in evaluations}
    first = max(len("run"), *(len(printable(label)) for label in shown.values())) + 2
    # Letters follow the value in a separate column, so that values stay aligned.
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
