"""`perikope run`: rank passages for every topic of a file and write a run."""

from __future__ import annotations

import time

import click

from perikope.cli.options import GivenSearch, GroupedCommand, document_ranking_option, search_options, topic_options
from perikope.cli.output import printable, progress

NOTES = 10
"""So many notes on topics that are patents are shown."""


@click.command(name="run", cls=GroupedCommand)
@click.argument("index", metavar="INDEX")
@click.argument("topics", metavar="TOPICS")
@click.option("--out", required=True, metavar="RUN", help="The run file to write; .gz compresses it.")
@click.option(
    "--run-format",
    default="trec",
    show_default=True,
    type=click.Choice(["trec", "clef-ip", "inex"]),
    help="The form to write: passages by name, by XPath in the XML that was indexed, or by character offset and length in its text.",
)
@click.option("--name", "run_tag", default="", metavar="NAME", help="The run's name in the last column; the model's name where not given.")
@click.option(
    "--threads",
    default=0,
    type=click.IntRange(0),
    metavar="N",
    help="How many topics at a time; as many as there are cores where not given.",
)
@topic_options
@document_ranking_option
@search_options(k=1000, help={"k": "Number of passages per topic, or of documents with --document-ranking."})
def command(
    index: str,
    topics: str,
    out: str,
    document_ranking: str,
    run_format: str,
    run_tag: str,
    threads: int,
    topic_format: str,
    topic_field: str,
    search: GivenSearch,
) -> int:
    """Rank passages for every topic and write a run.

    Topics are TSV, `qid<TAB>text`; JSON Lines with `qid`, `query` (or `patent`) and optionally `browse`, a second form that scores
    passages; TREC, CLEF-IP or INEX topics; a BEIR folder; or a data set of ir_datasets, `irds:NAME`.

    \b
    Example:
      perikope run idx topics.tsv --model "qsf_v(alpha=0.8)" --out qsf_v.run
      perikope run idx topics.tsv --document-ranking maxp --out documents.run
      perikope run idx clef-ip-topics.xml --run-format clef-ip --one-per family --out claims.run
      perikope run idx inex-topics.xml --topic-field phrasetitle --run-format inex --out inex.run
    """
    from perikope.browse.models import parse_model
    from perikope.core.errors import UsageError
    from perikope.evaluation.io.runs import ranking_in, write_run
    from perikope.evaluation.io.topics import read_topics
    from perikope.search.batch import search_topics
    from perikope.search.facade import Index

    started = time.perf_counter()
    model = parse_model(search.options.model)
    if document_ranking and run_format != "trec":
        raise UsageError(f"--run-format {run_format} is of passages; leave --document-ranking out, or write a TREC run")
    wanted = read_topics(topics, topic_format, topic_field)
    if not wanted:
        raise UsageError(f"{topics} holds no topics; write one a line, as qid<TAB>text")
    without: list[str] = []
    notes: list[str] = []
    rankings = search_topics(
        Index.open(index),
        search.with_candidates(wanted),
        without.append,
        threads=threads or None,
        document_ranking=document_ranking,
        ranking_of=ranking_in(run_format),
        on_note=notes.append,
        **search.keywords,
    )
    write_run(out, progress(rankings, len(wanted), "topics"), run_tag or model.definition.name, form=run_format)
    click.echo(f"{len(wanted) - len(without)} topics ranked with {model} into {out} in {time.perf_counter() - started:.1f} s")
    for note in notes[:NOTES]:
        click.echo(f"  note: {printable(note)}", err=True)
    if len(notes) > NOTES:
        click.echo(f"  … and {len(notes) - NOTES} notes more", err=True)
    for problem in without[:20]:
        click.echo(f"  without results: {printable(problem)}", err=True)
    if len(without) > 20:
        click.echo(f"  … and {len(without) - 20} more", err=True)
    return 1 if without else 0
