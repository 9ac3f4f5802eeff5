"""`perikope learn`: what judgements say, saved as a table that models use by its name."""

from __future__ import annotations

from typing import Any

import click

from perikope.cli.output import count, printable


@click.group(name="learn")
def command() -> None:
    """Learn tables that models use by their names.

    \b
    Example:
      perikope learn tags idx topics.tsv qrels.txt --name my-tags
    """


@command.command(name="tags")
@click.argument("index", metavar="INDEX")
@click.argument("topics", metavar="TOPICS")
@click.argument("qrels", metavar="QRELS")
@click.option("--name", required=True, metavar="NAME", help="Under which name the table is saved in the index.")
@click.option("--grade", default=1, show_default=True, metavar="N", help="What is judged at least this good is relevant.")
@click.option("--smoothing", default=0.5, show_default=True, metavar="X", help="Added to every count.")
@click.option(
    "--min-occurrences", default=1000, show_default=True, type=click.IntRange(0), metavar="N", help="A weighted tag is so frequent."
)
@click.option(
    "--min-coverage", default=0.0001, show_default=True, type=click.FloatRange(0, 1), metavar="X", help="And marks this share of all words."
)
@click.option(
    "--logical-coverage", default=0.01, show_default=True, type=click.FloatRange(0, 1), metavar="X", help="A logical one marks this share."
)
@click.option(
    "--logical-rank",
    default=25,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="And is among so many that hold relevant text most often.",
)
@click.option("--exclude", default="", metavar="TAG,…", help="Tags that get no weight.")
def learn_tags(index: str, topics: str, qrels: str, name: str, grade: int, smoothing: float, exclude: str, **thresholds: Any) -> int:
    """Learn how well each tag marks what is relevant.

    QRELS judge passages (document#passage), elements (document#/article[1]/sec[2]) or documents.

    \b
    Example:
      perikope learn tags idx topics.tsv qrels.txt --name my-tags --min-occurrences 10
      perikope search idx "composer museum" --model 'prox_h(weights="my-tags")'
    """
    from pathlib import Path

    from perikope.errors import UsageError
    from perikope.index.reader import Snapshot
    from perikope.io.judgements import read_judgements
    from perikope.io.topics import read_topics
    from perikope.tables import check_name, write_table
    from perikope.tags import KIND, Selection, learn_tags

    check_name(name)
    wanted = read_topics(topics)
    judged = read_judgements(qrels)
    if not wanted:
        raise UsageError(f"{topics} holds no topics; write one a line, as qid<TAB>text")
    selection = Selection(
        thresholds["min_occurrences"],
        thresholds["min_coverage"],
        thresholds["logical_coverage"],
        thresholds["logical_rank"],
        frozenset(exclude.split(",")),
    )
    judgements = {topic.qid: judged.get(topic.qid, {}) for topic in wanted}
    learned = learn_tags(Snapshot.open(Path(index)), judgements, selection=selection, smoothing=smoothing, grade=grade)
    path = write_table(Path(index), name, KIND, learned.table.values())
    width = max(len("tag"), *(len(printable(tag)) for tag in learned.table.rows))
    click.echo(f"{'tag':{width}}  weight  coverage  occurrences  logical")
    for tag, row in learned.table.rows.items():
        logical = "x" if tag in learned.table.logical else ""
        click.echo(f"{printable(tag):{width}}  {row.weight:6.2f}  {row.coverage:8.2%}  {row.occurrences:11}  {logical}".rstrip())
    click.echo(f"{count(len(learned.table.rows), 'tag')} learned from {count(learned.table.queries, 'topic')} into {path}")
    for qid in learned.without_relevant[:20]:
        click.echo(f"  topic {printable(qid)}: no relevant text", err=True)
    if learned.unknown:
        click.echo(
            f"  {count(len(learned.unknown), 'relevant passage')} not in the index, such as {printable(learned.unknown[0])}", err=True
        )
    return 1 if learned.unknown else 0
