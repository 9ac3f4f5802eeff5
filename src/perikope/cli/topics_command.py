"""`perikope topics`: make topics with known answers from the documents of an index."""

from __future__ import annotations

from pathlib import Path

import click

from perikope.cli.output import count as counted


@click.command(name="topics")
@click.argument("index", metavar="INDEX")
@click.option("--out", required=True, metavar="FOLDER", help="Write topics.tsv and qrels.txt to this folder.")
@click.option(
    "--kinds",
    default="",
    metavar="KIND,…",
    help="Kinds of topics, with commas between them.  [default: heading,keywords,reference,sentence]",
)
@click.option("--count", default=50, show_default=True, type=click.IntRange(1), metavar="N", help="Maximum number of drafts of each kind.")
@click.option(
    "--naming",
    default="both",
    show_default=True,
    type=click.Choice(["never", "always", "both"]),
    help="Whether queries begin with words of the title of their document; both makes two topics of each draft.",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), metavar="N", help="Seed of the random sample.")
def command(index: str, out: str, kinds: str, count: int, naming: str, seed: int) -> int:
    """Make topics with known answers from the documents of an index, without human judgements.

    heading: the heading of a section, answered by its passages. sentence: a sentence of a passage, answered by the rest
    of the passage. keywords: some words of such a sentence. reference: a passage that refers to a section, table or
    claim, answered by the passages of the target.

    The files are for inspection. A run of these topics finds the words that the queries were taken from. `perikope
    adapt` masks these words.

    \b
    Example:
      perikope topics idx --out topics
    """
    from perikope.evaluation.selfmade.topics import ALL_KINDS, make_topics, write_topics
    from perikope.index.reader import Snapshot

    chosen = tuple(kind.strip() for kind in kinds.split(",") if kind.strip()) or ALL_KINDS
    made = make_topics(Snapshot.open(Path(index)), chosen, count=count, seed=seed, naming=naming)  # type: ignore[arg-type]
    write_topics(made, Path(out))
    for kind, number in made.kinds.items():
        click.echo(f"{number:6d}  {kind}")
    click.echo(f"{counted(len(made.topics), 'topic')} written to {out}")
    return 0
