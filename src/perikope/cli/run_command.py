"""`perikope run`: rank passages for each topic of a file and write a run."""

from __future__ import annotations

import time

import click

from perikope.cli.options import (
    GivenSearch,
    GroupedCommand,
    document_ranking_option,
    search_options,
    threads_option,
    topic_options,
)
from perikope.cli.output import as_command_line, progress, show_problems

NOTES = 10
"""Maximum number of notes about topics that are printed."""


_GROUPS = {
    "Topics": ("topic_format", "topic_field", "topic_language", "threads"),
    "Output": ("out", "run_format", "run_tag", "document_ranking"),
}


@click.command(name="run", cls=GroupedCommand, groups=_GROUPS)
@click.argument("index", metavar="INDEX")
@click.argument("topics", metavar="TOPICS")
@click.option("--out", required=True, metavar="RUN", help="Run file to write; .gz compresses it.")
@click.option(
    "--run-format",
    default="trec",
    show_default=True,
    type=click.Choice(["trec", "clef-ip", "inex"]),
    help="Format of the run. It names passages by id (trec), by XPath in the indexed XML (clef-ip), or by character offset and length "
    "(inex).",
)
@click.option(
    "--name",
    "run_tag",
    default="",
    metavar="NAME",
    help="Name of the run, which is written in the last column.  [default: the name of the model]",
)
@threads_option
@topic_options
@document_ranking_option
@search_options(without={"offset"}, k=1000, help={"k": "Number of passages per topic, or of documents with --document-ranking."})
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
    topic_language: str,
    search: GivenSearch,
) -> int:
    """Rank passages for each topic and write a run.

    TOPICS is a TSV file with lines `qid<TAB>text`; JSON Lines with `qid`, `query` (or `patent`) and optionally
    `browse`, a second query that scores passages; a file of TREC, CLEF-IP or INEX topics; a BEIR folder; or a data set
    of ir_datasets (`irds:NAME`).

    \b
    Example:
      perikope run idx topics.tsv --model "qsf_v(alpha=0.8)" --out qsf_v.run
      perikope run idx topics.tsv --document-ranking maxp --out documents.run
      perikope run idx clef-ip-topics.xml --run-format clef-ip --one-per family --out claims.run
      perikope run idx inex-topics.xml --topic-field phrasetitle --run-format inex --out inex.run
    """
    from perikope.browse.models import parse_model
    from perikope.cli.opening import open_index
    from perikope.core.errors import UsageError
    from perikope.evaluation.io.runs import ranking_in, write_run
    from perikope.evaluation.io.topics import read_topics
    from perikope.search.batch import search_topics
    from perikope.search.best import best_model

    started = time.perf_counter()
    if document_ranking and run_format != "trec":
        raise UsageError(f"--run-format {run_format} is for passages; leave --document-ranking out, or use --run-format trec")
    notes: list[str] = []
    known_topics = read_topics(topics, topic_format, topic_field, topic_language, notes.append)
    if not known_topics:
        raise UsageError(f"{topics} contains no topics; write one topic per line, as qid<TAB>text")
    without: list[str] = []
    opened = open_index(index)
    best = best_model(opened.snapshot, search.options)
    model = parse_model(search.options.model) if best is None else best.model
    rankings = search_topics(
        opened,
        search.with_candidates(known_topics),
        without.append,
        threads=threads or None,
        document_ranking=document_ranking,
        ranking_of=ranking_in(run_format),
        on_note=notes.append,
        **search.keywords,
    )
    write_run(out, progress(rankings, len(known_topics), "topics"), run_tag or model.definition.name, form=run_format)
    click.echo(f"{len(known_topics) - len(without)} topics ranked with {model} into {out} in {time.perf_counter() - started:.1f} s")
    show_problems("note", list(map(as_command_line, notes)), most=NOTES)
    show_problems("without results", without)
    return 1 if without else 0
