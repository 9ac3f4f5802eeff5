"""`perikope train`: an encoder that learns from judgements which passages answer which queries."""

from __future__ import annotations

import sys
from typing import Any

import click

from perikope.cli.output import count, printable


@click.command(name="train")
@click.argument("index", metavar="INDEX")
@click.argument("topics", metavar="TOPICS")
@click.argument("qrels", metavar="QRELS")
@click.option("--to", "folder", required=True, metavar="FOLDER", help="Where the encoder is put; a run that stopped there goes on.")
@click.option("--validation-topics", default="", metavar="TOPICS", help="Choose the best epoch on these; else on a tenth of the topics.")
@click.option("--validation-qrels", default="", metavar="QRELS", help="Judgements of --validation-topics; QRELS where not given.")
@click.option("--encoder", default="all-MiniLM-L6-v2", show_default=True, metavar="NAME|FOLDER", help="What training starts from.")
@click.option(
    "--dimension", default=128, show_default=True, type=click.IntRange(0), metavar="N", help="Of the vectors; 0 for the encoder's own."
)
@click.option("--epochs", default=6, show_default=True, type=click.IntRange(1), metavar="N", help="Passes over all topics, at most.")
@click.option("--batch", default=32, show_default=True, type=click.IntRange(1), metavar="N", help="Triples a step.")
@click.option(
    "--negatives-from",
    "strategy",
    default="same_doc",
    show_default=True,
    type=click.Choice(["random", "same_doc", "relevant_docs", "shared_codes", "mixed"]),
    help="Where passages that are not relevant are drawn from.",
)
@click.option("--negatives", default=2, show_default=True, type=click.IntRange(1), metavar="N", help="So many for each relevant passage.")
@click.option("--in-batch/--no-in-batch", default=True, show_default=True, help="Take the passages of the other triples as negatives too.")
@click.option("--encoder-rate", default=5e-5, show_default=True, metavar="X", help="Learning rate of the encoder; the paper's is 3e-6.")
@click.option("--rate", default=1e-3, show_default=True, metavar="X", help="Learning rate of what is new.")
@click.option("--frozen-layers", default=None, type=click.IntRange(0), metavar="N", help="So many, from below, stay; half where not given.")
@click.option("--heading-path/--no-heading-path", default=True, show_default=True, help="Put the titles above a passage in front of it.")
@click.option("--measure", default="nDCG@10", show_default=True, metavar="NAME", help="Decides which epoch is best.")
@click.option(
    "--patience", default=2, show_default=True, type=click.IntRange(1), metavar="N", help="Stop after so many epochs without gain."
)
@click.option(
    "--keep", default=1.0, show_default=True, type=click.FloatRange(0, 1), metavar="W",
    help="Weights between untrained (0) and trained (1): less than 1 forgets less of what other collections need.",
)  # fmt: skip
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), metavar="N", help="Decides all that is drawn.")
@click.option("--device", default="", metavar="NAME", help="cpu or cuda; a GPU where there is one.")
def command(index: str, topics: str, qrels: str, folder: str, **options: Any) -> int:
    """Fine-tune an encoder on the topics of an index, for `perikope encode`.

    What is best on validation topics is kept, the untrained encoder too if nothing is better.

    \b
    Example:
      perikope train idx train-topics.tsv train-qrels.txt --to my-encoder
      perikope encode idx --encoder my-encoder --name mine
      perikope search idx "magnetic coupling" --model 'colbert(store="mine")'
    """
    from pathlib import Path

    from perikope.index.reader import Snapshot
    from perikope.io.judgements import read_judgements
    from perikope.io.topics import read_topics
    from perikope.measures import parse_measure
    from perikope.neural.encoder import Encoder
    from perikope.neural.training import Ranker, Trainer, Validation, interpolate, settings_from
    from perikope.neural.triples import hold_out, read_texts, topics_of

    settings = settings_from(options)
    parse_measure(settings.measure)
    texts = read_texts(Snapshot.open(Path(index)))
    judgements = read_judgements(qrels)
    learned = topics_of(texts, {topic.qid: topic.browse or topic.query for topic in read_topics(topics)}, judgements)
    if options["validation_topics"]:
        others = read_judgements(options["validation_qrels"]) if options["validation_qrels"] else judgements
        held_out = topics_of(texts, {topic.qid: topic.browse or topic.query for topic in read_topics(options["validation_topics"])}, others)
    else:
        learned, held_out = hold_out(texts, learned, 0.1, settings.seed)
    encoder = Encoder.load(options["encoder"], options["dimension"], device=options["device"], precision="float32")
    written = texts.written(heading_path=settings.heading_path)
    untrained = {name: value.detach().clone() for name, value in encoder.state_dict().items()}
    click.echo(f"learning from {count(len(learned), 'topic')}, choosing on {count(len(held_out), 'topic')}", err=True)
    shown = sys.stderr.isatty()

    def on_step(epoch: int, step: int, loss: float) -> None:
        if shown:
            click.echo(f"\repoch {epoch + 1} step {step + 1} loss {loss:.4f} ", nl=False, err=True)

    place = Path(folder)
    trainer = Trainer(Ranker(encoder, written), texts, learned, Validation.of(texts, held_out, settings), settings, place / "run", on_step)
    progress = trainer.run()
    click.echo(f"epoch    loss  {settings.measure}")
    click.echo(f"{'-':>5}  {'-':>6}  {progress.untrained:.4f}")
    for epoch in progress.epochs:
        best = "  best" if epoch.number == progress.best else ""
        click.echo(f"{epoch.number + 1:5}  {epoch.loss:6.4f}  {epoch.measure:.4f}{best}")
    if options["keep"] < 1:
        encoder.load_state_dict(
            interpolate(untrained, {name: value.detach() for name, value in encoder.state_dict().items()}, options["keep"])
        )
    encoder.save(place)
    click.echo(f"saved in {printable(folder)}; use it: perikope encode {printable(index)} --encoder {printable(folder)} --name NAME")
    return 0
