"""`perikope run`: rank passages for every topic of a file and write a run."""

from __future__ import annotations

import time
from typing import Any

import click

from perikope.cli.options import search_arguments, search_options
from perikope.cli.output import printable, progress


@click.command(name="run")
@click.argument("index", metavar="INDEX")
@click.argument("topics", metavar="TOPICS")
@click.option("--out", required=True, metavar="RUN", help="The run file to write; .gz compresses it.")
@click.option("--candidates", default="", metavar="RUN", help="Look into the documents of this run instead of fetching.")
@click.option("-k", default=1000, show_default=True, type=click.IntRange(1), metavar="N", help="How many passages, or documents, a topic.")
@click.option(
    "--document-ranking",
    default="",
    metavar="NAME",
    help="Rank documents by their passages instead: maxp (the best), sump (all), firstp (the first) or meanp(n=3) (the best three).",
)
@click.option("--name", "run_tag", default="", metavar="NAME", help="The run's name in the last column; the model's name where not given.")
@click.option(
    "--threads",
    default=0,
    type=click.IntRange(0),
    metavar="N",
    help="How many topics at a time; as many as there are cores where not given.",
)
@search_options
def command(
    index: str, topics: str, out: str, candidates: str, k: int, document_ranking: str, run_tag: str, threads: int, **options: Any
) -> int:
    """Rank passages for every topic and write a TREC run.

    Topics are TSV, `qid<TAB>text`, or JSON Lines with `qid`, `query` and optionally `browse`, a second form that scores passages.

    \b
    Example:
      perikope run idx topics.tsv --model "qsf_v(alpha=0.8)" --out qsf_v.run
      perikope run idx topics.tsv --document-ranking maxp --out documents.run
    """
    from perikope.api import Index
    from perikope.batch import search_topics
    from perikope.errors import UsageError
    from perikope.io.runs import read_run, write_run
    from perikope.io.topics import read_topics
    from perikope.models import parse_model

    started = time.perf_counter()
    model = parse_model(str(options.pop("model")))
    wanted = read_topics(topics)
    if not wanted:
        raise UsageError(f"{topics} holds no topics; write one a line, as qid<TAB>text")
    without: list[str] = []
    foreign = read_run(candidates) if candidates else None
    rankings = search_topics(
        Index.open(index),
        wanted,
        without.append,
        candidates=foreign,
        threads=threads or None,
        model=model,
        k=k,
        document_ranking=document_ranking,
        **search_arguments(options),
    )
    write_run(out, progress(rankings, len(wanted), "topics"), run_tag or model.definition.name)
    click.echo(f"{len(wanted) - len(without)} topics ranked with {model} into {out} in {time.perf_counter() - started:.1f} s")
    for problem in without[:20]:
        click.echo(f"  without results: {printable(problem)}", err=True)
    return 1 if without else 0
