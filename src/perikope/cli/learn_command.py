"""`perikope learn`: what judgements say, saved as a table that models use by its name."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from perikope.cli.options import GivenSearch, GroupedCommand, search_options, topic_options
from perikope.cli.output import count, printable, progress

if TYPE_CHECKING:
    from perikope.browse.models.features import FeatureNormalization
    from perikope.evaluation.learning.examples import JudgedTopics


@click.group(name="learn")
def command() -> None:
    """Learn tables that models use by their names.

    \b
    Example:
      perikope learn tags idx topics.tsv qrels.txt --name my-tags --min-occurrences 10
      perikope learn prior idx topics.tsv qrels.txt --name my-prior
      perikope learn fusion idx topics.tsv qrels.txt --name mine
      perikope learn show idx mine
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

    from perikope.browse.tags import KIND, Selection, learn_tags
    from perikope.cli.table_output import lines_of_tags
    from perikope.core.errors import UsageError
    from perikope.evaluation.io.judgements import read_judgements
    from perikope.evaluation.io.topics import read_topics
    from perikope.index.reader import Snapshot
    from perikope.index.saved_tables import check_name, write_table

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
    click.echo("\n".join(lines_of_tags(learned.table)))
    click.echo(f"{count(len(learned.table.rows), 'tag')} learned from {count(learned.table.queries, 'topic')} into {path}")
    for qid in learned.without_relevant[:20]:
        click.echo(f"  topic {printable(qid)}: no relevant text", err=True)
    if learned.unknown:
        click.echo(
            f"  {count(len(learned.unknown), 'relevant passage')} not in the index, such as {printable(learned.unknown[0])}", err=True
        )
    return 1 if learned.unknown else 0


@command.command(name="prior", cls=GroupedCommand)
@click.argument("index", metavar="INDEX")
@click.argument("topics", metavar="TOPICS")
@click.argument("qrels", metavar="QRELS")
@click.option("--name", "--save", "name", required=True, metavar="NAME", help="Under which name the table is saved in the index.")
@click.option("--threads", default=0, type=click.IntRange(0), metavar="N", help="How many topics at a time.")
@topic_options
@search_options(k=1000, help={"k": "Number of passages per topic that the run returns."})
def learn_prior(index: str, topics: str, qrels: str, name: str, threads: int, search: GivenSearch, **reading: str) -> int:
    """Learn in which tenths of a description relevant passages stand more often than a run returns them.

    The weight of a tenth is its share of the relevant passages ÷ its share of what `perikope run` returns with the same options; a tenth
    without anything relevant weighs 0, and one of which nothing is returned 1. QRELS judge passages (document#passage); descriptions are
    parts of that name (Gobeill and Ruch 2012).

    \b
    Example:
      perikope learn prior idx topics.tsv qrels.txt --recipe gobeill2012 --name my-prior
      perikope search idx "magnetic coupling" --model 'position_prior(base=qsf_section,weights="my-prior")'
    """
    from pathlib import Path

    from perikope.browse.models.prior import KIND
    from perikope.cli.table_output import lines_of_prior
    from perikope.evaluation.learning.prior import learn_prior_of_run
    from perikope.index.saved_tables import check_name, write_table

    check_name(name)
    source, problems = _source(index, topics, qrels, search, threads, reading)
    with click.progressbar(length=len(source.topics), label="topics", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        learned = learn_prior_of_run(source, lambda: bar.update(1))
    path = write_table(Path(index), name, KIND, learned.values())
    click.echo("\n".join(lines_of_prior(learned.values())))
    click.echo(f"learned from {count(len(source.topics), 'topic')} into {path}")
    if learned.elsewhere:
        click.echo(f"  {count(learned.elsewhere, 'relevant passage')} in no description", err=True)
    if learned.unknown:
        click.echo(
            f"  {count(len(learned.unknown), 'relevant passage')} not in the index, such as {printable(learned.unknown[0])}", err=True
        )
    for problem in problems[:20]:
        click.echo(f"  passed over: {printable(problem)}", err=True)
    return 1 if problems or learned.unknown else 0


def learning_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where the examples of fusion come from."""
    for option in reversed(
        (
            click.argument("index", metavar="INDEX"),
            click.argument("topics", metavar="TOPICS"),
            click.argument("qrels", metavar="QRELS"),
            click.option(
                "--normalize",
                type=click.Choice(["zscore", "minmax"]),
                help="How features are normalised over the candidate passages; zscore for linear and else minmax where not given.",
            ),
            click.option(
                "--depth", default=200, show_default=True, type=click.IntRange(0), metavar="N", help="Passages of --model to learn from."
            ),
            click.option(
                "--others", default=200, show_default=True, type=click.IntRange(0), metavar="N", help="Other passages, drawn by chance."
            ),
            click.option("--seed", default=1, show_default=True, type=click.IntRange(0), metavar="N", help="Decides all that is drawn."),
            click.option("--threads", default=0, type=click.IntRange(0), metavar="N", help="How many topics at a time."),
            topic_options,
            search_options(without=("k",), help={"model": "Model whose best passages are learned from: they are hard to tell apart."}),
        )
    ):
        function = option(function)
    return function


@command.command(name="fusion", cls=GroupedCommand)
@learning_options
@click.option("--name", required=True, metavar="NAME", help="Under which name the table is saved in the index.")
@click.option(
    "--method",
    default="linear",
    show_default=True,
    type=click.Choice(["linear", "lambdamart"]),
    help="A weight for each feature, or trees (needs perikope[ltr]).",
)
@click.option(
    "--measure", default="nDCG@10 MAP(D) AP", show_default=True, metavar="NAMES", help="What is reported; the first decides the order."
)
@click.option("--folds", default=5, show_default=True, type=click.IntRange(2), metavar="N", help="Into how many parts the topics are cut.")
@click.option(
    "--folds-by",
    default="topics",
    show_default=True,
    type=click.Choice(["topics", "documents"]),
    help="Cut by documents, topics that share a relevant document stay in one fold: figures for documents that nobody has asked about.",
)
@click.option(
    "--l2", default=0.03, show_default=True, type=click.FloatRange(0, min_open=True), metavar="X", help="Penalty on large weights."
)
@click.option("--compare", multiple=True, metavar="NAME(…)", help="Compare with these models; with all single ones where not given.")
def learn_fusion(
    index: str,
    topics: str,
    qrels: str,
    name: str,
    measure: str,
    folds: int,
    l2: float,
    compare: tuple[str, ...],
    search: GivenSearch,
    **options: Any,
) -> int:
    """Learn how all signals count together, so that no model has to be picked by hand.

    The figures are of topics that were not learned from: each is ranked by what the other folds taught. What is saved is learned from all.

    \b
    Example:
      perikope learn fusion idx topics.tsv qrels.txt --name mine
      perikope search idx "magnetic coupling" --model 'learned(name="mine")'
    """
    from pathlib import Path

    from perikope.core.errors import UsageError
    from perikope.evaluation.learning.examples import Sampling
    from perikope.evaluation.learning.saving import save
    from perikope.evaluation.learning.validation import HELD_OUT, Learner, learn, single_models
    from perikope.evaluation.measures import parse_measures
    from perikope.index.saved_tables import check_name

    check_name(name)
    wanted = parse_measures(measure)
    if not wanted:
        raise UsageError("give at least one measure, such as nDCG@10; see `perikope measures`")
    source, problems = _examples(index, topics, qrels, search, options)
    learner = Learner(options["method"], l2, options["seed"])
    sampling = Sampling(options["depth"], options["others"], options["seed"])
    models = list(dict.fromkeys([source.options.model, *(compare or single_models())]))
    with click.progressbar(length=2 * len(source.topics), label="topics", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        learned = learn(
            source,
            learner,
            wanted,
            folds=folds,
            folds_by=options["folds_by"],
            sampling=sampling,
            compare=models,
            on_topic=lambda _: bar.update(1),
        )
    path = save(Path(index), name, learned)
    names = [one.asked or str(one) for one in wanted]
    width = max(len(system) for system in learned.figures)
    click.echo("system".ljust(width) + "".join(one.rjust(max(len(one), 6) + 2) for one in names))
    for system in sorted(learned.figures, key=lambda system: (-learned.mean(system, names[0]), system)):
        values = "".join(f"{learned.mean(system, one):.4f}".rjust(max(len(one), 6) + 2) for one in names)
        click.echo(system.ljust(width) + values + (f"  ({folds} folds)" if system == HELD_OUT else ""))
    click.echo(f"learned from {count(len(source.topics), 'topic')} into {path}")
    if learned.shared:
        click.echo(
            f"  {count(learned.shared, 'topic')} of {len(source.topics)} have a relevant document "
            f"in common with topics of other folds, so the "
            "figures may be too good; --folds-by documents keeps such topics together"
        )
    for problem in problems[:20]:
        click.echo(f"  passed over: {printable(problem)}", err=True)
    return 1 if problems else 0


@command.command(name="export", cls=GroupedCommand)
@learning_options
@click.option("--out", required=True, metavar="FILE", help="The file to write: .csv, .tsv, and else SVMlight; .gz compresses it.")
def export(index: str, topics: str, qrels: str, out: str, search: GivenSearch, **options: Any) -> int:
    """Write what fusion is learned from, for other programs.

    A line of SVMlight is `grade qid:1 1:0.5 2:0.25 … # document#passage`; the names of the features stand in front, as comments. CSV and
    TSV have columns qid, name (document#passage), grade and one a feature, as a data frame has.

    \b
    Example:
      perikope learn export idx topics.tsv qrels.txt --out examples.txt
      perikope learn export idx topics.tsv qrels.txt --out examples.csv.gz
    """
    from perikope.evaluation.learning.examples import Sampling
    from perikope.evaluation.learning.export import write_examples

    source, problems = _examples(index, topics, qrels, search, options)
    groups = source.groups(Sampling(options["depth"], options["others"], options["seed"]))
    lines = write_examples(out, progress(groups, len(source.topics), "topics"), [topic.qid for topic in source.topics])
    click.echo(f"{count(lines, 'example')} of {count(len(source.topics), 'topic')} into {out}")
    for problem in problems[:20]:
        click.echo(f"  passed over: {printable(problem)}", err=True)
    return 1 if problems else 0


@command.command(name="show")
@click.argument("index", metavar="INDEX")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the table as it is saved.")
def show_table(index: str, name: str | None, as_json: bool) -> int:
    """List the tables that models can use, or show one.

    \b
    Example:
      perikope learn show idx
      perikope learn show idx my-tags
    """
    from pathlib import Path

    from perikope.cli.table_output import lines_of
    from perikope.index.reader import Snapshot
    from perikope.index.saved_tables import FOLDER, read_table, table_names

    folder = Snapshot.open(Path(index)).folder
    if name is not None:
        table = read_table(name, folder=folder)
        click.echo(json.dumps({"name": table.name, "kind": table.kind, "values": dict(table.values)}) if as_json else lines_of(table))
        return 0
    names = table_names(folder=folder)
    width = max(map(len, names))
    for one in names:
        own = (folder / FOLDER / f"{one}.json").is_file()
        kind, place = read_table(one, folder=folder).kind, "index" if own else "program"
        click.echo(json.dumps({"name": one, "kind": kind, "place": place}) if as_json else f"{one:<{width}}  {kind:<6}  {place}")
    return 0


@command.command(name="delete")
@click.argument("index", metavar="INDEX")
@click.argument("name", metavar="NAME")
def delete_table(index: str, name: str) -> int:
    """Delete a table of the index.

    \b
    Example:
      perikope learn delete idx my-tags
    """
    from pathlib import Path

    from perikope.evaluation.learning.saving import delete
    from perikope.index.reader import Snapshot

    delete(Snapshot.open(Path(index)).folder, name)
    click.echo(f"deleted {name}")
    return 0


@command.command(name="features")
def list_features() -> int:
    """List what fusion is learned from: the features of a passage, and what each of them says."""
    from perikope.browse.models.features import FEATURES

    width = max(map(len, FEATURES))
    for number, feature in enumerate(FEATURES.values(), 1):
        click.echo(f"{number:>3}  {feature.name:<{width}}  {feature.meaning}")
    return 0


def _examples(index: str, topics: str, qrels: str, search: GivenSearch, options: dict[str, Any]) -> tuple[JudgedTopics, list[str]]:
    """Where the examples of fusion come from, and which topics were passed over."""
    from perikope.evaluation.learning.validation import NORMALIZATION

    normalize = options["normalize"] or NORMALIZATION[options.get("method", "lambdamart")]
    return _source(index, topics, qrels, search, options["threads"], options, normalize)


def _source(
    index: str,
    topics: str,
    qrels: str,
    search: GivenSearch,
    threads: int,
    reading: Mapping[str, Any],
    normalize: FeatureNormalization = "zscore",
) -> tuple[JudgedTopics, list[str]]:
    """What is learned from, and which topics were passed over; `reading` says of which form the topics are."""
    from pathlib import Path

    from perikope.core.errors import UsageError
    from perikope.evaluation.io.judgements import read_judgements
    from perikope.evaluation.io.topics import read_topics
    from perikope.evaluation.learning.examples import JudgedTopics, check_options, judged_topics
    from perikope.index.reader import Snapshot

    check_options(search.options)
    snapshot, judgements = Snapshot.open(Path(index)), read_judgements(qrels)
    wanted = search.with_candidates(read_topics(topics, reading["topic_format"], reading["topic_field"]))
    if not wanted:
        raise UsageError(f"{topics} holds no topics; write one a line, as qid<TAB>text")
    problems: list[str] = []
    kept = judged_topics(snapshot, wanted, judgements, search.options, problems.append)
    return JudgedTopics(snapshot, kept, judgements, search.options, normalize, threads or None), problems
