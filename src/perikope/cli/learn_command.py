"""`perikope learn`: learn tables of weights from judgements, for models that use such a table."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from perikope.cli.options import GivenSearch, GroupedCommand, search_options, threads_option, topic_options
from perikope.cli.output import count, printable, progress, show_problems, show_warning
from perikope.search.options import LEXICAL

if TYPE_CHECKING:
    from perikope.browse.models.features import FeatureNormalization
    from perikope.evaluation.learning.examples import JudgedTopics
    from perikope.evaluation.learning.validation import LearnedCombination
    from perikope.evaluation.measures import Measure

_NAME_HELP = "Name of the table, which is saved in the index. A table of the index with this name is replaced."


@click.group(name="learn")
def command() -> None:
    """Learn tables of weights from judgements. A table is saved in the index, and models use it by its name.

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
@click.option("--name", required=True, metavar="NAME", help=_NAME_HELP)
@click.option("--grade", default=1, show_default=True, metavar="N", help="Lowest grade of a relevant judgement.")
@click.option(
    "--smoothing", default=0.5, show_default=True, metavar="X", help="Number that is added to every count, so that no count is 0."
)
@click.option(
    "--min-occurrences",
    default=1000,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Minimum number of occurrences of a tag that gets a weight.",
)
@click.option(
    "--min-coverage",
    default=0.0001,
    show_default=True,
    type=click.FloatRange(0, 1),
    metavar="X",
    help="A tag gets a weight only if it marks at least this share of all words.",
)
@click.option(
    "--logical-coverage",
    default=0.01,
    show_default=True,
    type=click.FloatRange(0, 1),
    metavar="X",
    help="A tag is logical, such as a section or paragraph, only if it marks at least this share of all words.",
)
@click.option(
    "--logical-rank",
    default=25,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="A tag is logical only if it is one of this number of tags with the most elements that contain relevant text.",
)
@click.option("--exclude", default="", metavar="TAG,…", help="Tags that get no weight, with commas between them.")
@click.option(
    "--semantic",
    is_flag=True,
    help="Also weigh tags that state the meaning of their words, such as INEX tags that have a wordnetid wherever they occur.",
)
def learn_tags(index: str, topics: str, qrels: str, name: str, grade: int, smoothing: float, exclude: str, **thresholds: Any) -> int:
    """Learn one weight per tag: how much more often the tag marks relevant than irrelevant text.

    QRELS judge passages (document#passage), elements (document#/article[1]/sec[2]), documents, or ranges of characters.
    The table also lists the logical tags. A search takes the name of the table for them: elements with these
    tags can be results, and limit the influence of words.

    \b
    Example:
      perikope learn tags idx topics.tsv qrels.txt --name my-tags --min-occurrences 10
      perikope search idx "composer museum" --model 'prox_h(weights="my-tags")'
      perikope search idx "composer museum" --model 'prox_h(weights="my-tags",logical="my-tags")' --elements=my-tags
    """
    from pathlib import Path

    from perikope.browse.tags import KIND, Selection, learn_tags
    from perikope.cli.table_output import lines_of_tags
    from perikope.core.errors import UsageError
    from perikope.evaluation.io.fitting import fit_judgements, relevant_tokens
    from perikope.evaluation.io.topics import read_topics
    from perikope.index.reader import Snapshot
    from perikope.index.saved_tables import check_name, write_table

    check_name(name)
    known_topics = read_topics(topics)
    snapshot = Snapshot.open(Path(index))
    judged, tokens = fit_judgements(qrels, snapshot), relevant_tokens(qrels, snapshot)
    show_warning(judged.warning)
    if not known_topics:
        raise UsageError(f"{topics} contains no topics; write one topic per line, as qid<TAB>text")
    selection = Selection(
        thresholds["min_occurrences"],
        thresholds["min_coverage"],
        thresholds["logical_coverage"],
        thresholds["logical_rank"],
        frozenset(exclude.split(",")),
        thresholds["semantic"],
    )
    judgements = {topic.qid: judged.names.get(topic.qid, {}) for topic in known_topics}
    learned = learn_tags(snapshot, judgements, tokens=tokens, selection=selection, smoothing=smoothing, grade=grade)
    if not learned.table.rows:
        raise UsageError("no tag is frequent enough to be weighted; lower --min-occurrences or --min-coverage")
    path = write_table(Path(index), name, KIND, learned.table.values())
    click.echo("\n".join(lines_of_tags(learned.table)))
    click.echo(f"{count(len(learned.table.rows), 'tag')} learned from {count(learned.table.queries, 'topic')} into {path}")
    show_problems("skipped", [f"topic {qid}: no relevant text" for qid in learned.without_relevant])
    _show_unknown(learned.unknown)
    return 1 if learned.unknown else 0


def _show_unknown(passages: Sequence[str]) -> None:
    """Report relevant passages that the index does not contain."""
    if passages:
        missing = count(len(passages), "relevant passage")
        click.echo(f"  {missing} not in the index, such as {printable(passages[0])}", err=True)


@command.command(name="prior", cls=GroupedCommand)
@click.argument("index", metavar="INDEX")
@click.argument("topics", metavar="TOPICS")
@click.argument("qrels", metavar="QRELS")
@click.option("--name", "--save", "name", required=True, metavar="NAME", help=_NAME_HELP)
@threads_option
@topic_options
@search_options(without={"offset"}, k=1000, model=LEXICAL, help={"k": "Number of returned passages per topic."})
def learn_prior(index: str, topics: str, qrels: str, name: str, threads: int, search: GivenSearch, **reading: str) -> int:
    """Learn ten weights, one for the passages in each tenth of a description (Gobeill and Ruch 2012).

    The weight of a tenth is its share of the relevant passages, divided by its share of the passages that `perikope
    run` returns with the same options. The weight is 0 if no passage of the tenth is relevant, and 1 if none is
    returned. QRELS judge passages (document#passage). A description is the part of a document named description.

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
    _show_unknown(learned.unknown)
    show_problems("skipped", problems)
    return 1 if problems or learned.unknown else 0


def learning_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that adds the arguments and options for the training examples of fusion to a command."""
    for option in reversed(
        (
            click.argument("index", metavar="INDEX"),
            click.argument("topics", metavar="TOPICS"),
            click.argument("qrels", metavar="QRELS"),
            click.option(
                "--normalize",
                type=click.Choice(["zscore", "minmax"]),
                help="Normalisation of features over the candidate passages.  [default: zscore for linear, else minmax]",
            ),
            click.option(
                "--depth",
                default=200,
                show_default=True,
                type=click.IntRange(0),
                metavar="N",
                help="Number of top passages of --model per topic to learn from.",
            ),
            click.option(
                "--others",
                default=200,
                show_default=True,
                type=click.IntRange(0),
                metavar="N",
                help="Number of other passages per topic to learn from, drawn at random.",
            ),
            click.option("--seed", default=1, show_default=True, type=click.IntRange(0), metavar="N", help="Seed of all random choices."),
            threads_option,
            topic_options,
            search_options(without=("k", "offset"), model=LEXICAL, help={"model": "Model whose top passages are training examples."}),
        )
    ):
        function = option(function)
    return function


@command.command(name="fusion", cls=GroupedCommand)
@learning_options
@click.option("--name", required=True, metavar="NAME", help=_NAME_HELP)
@click.option(
    "--method",
    default="linear",
    show_default=True,
    type=click.Choice(["linear", "lambdamart"]),
    help="One weight per feature (linear), or regression trees (lambdamart, needs the extra ltr).",
)
@click.option(
    "--measure",
    default="nDCG@10 MAP(D) AP",
    show_default=True,
    metavar="NAMES",
    help="Measures to report; the first one orders the systems.",
)
@click.option("--folds", default=5, show_default=True, type=click.IntRange(2), metavar="N", help="Number of folds of the cross-validation.")
@click.option(
    "--folds-by",
    default="topics",
    show_default=True,
    type=click.Choice(["topics", "documents"]),
    help="Split topics at random, or keep topics with a common relevant document in one fold, which tests on unseen documents.",
)
@click.option(
    "--l2",
    default=0.03,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="X",
    help="L2 penalty on the weights of --method linear.",
)
@click.option(
    "--compare",
    multiple=True,
    metavar="NAME(…)",
    help="Model to compare with. May be given several times.  [default: all single models]",
)
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
    """Learn to combine all features of passages into one score. `perikope learn features` lists the features.

    The printed scores are cross-validated: each topic is ranked by a combination that was learned from the other folds.
    The saved combination is learned from all topics.

    \b
    Example:
      perikope learn fusion idx topics.tsv qrels.txt --name mine
      perikope search idx "magnetic coupling" --model 'learned(name="mine")'
    """
    from pathlib import Path

    from perikope.core.errors import UsageError
    from perikope.evaluation.learning.examples import Sampling
    from perikope.evaluation.learning.saving import save
    from perikope.evaluation.learning.validation import Learner, learn, single_models
    from perikope.evaluation.measures import parse_measures
    from perikope.index.saved_tables import check_name

    check_name(name)
    measures = parse_measures(measure)
    if not measures:
        raise UsageError("--measure is empty: give at least one measure, such as nDCG@10; see `perikope measures`")
    source, problems = _examples(index, topics, qrels, search, options)
    learner = Learner(options["method"], l2, options["seed"])
    sampling = Sampling(options["depth"], options["others"], options["seed"])
    models = list(dict.fromkeys([source.options.model, *(compare or single_models())]))
    with click.progressbar(length=2 * len(source.topics), label="topics", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        learned = learn(
            source,
            learner,
            measures,
            folds=folds,
            folds_by=options["folds_by"],
            sampling=sampling,
            compare=models,
            on_topic=lambda _: bar.update(1),
        )
    path = save(Path(index), name, learned)
    _show_figures(learned, measures, folds)
    click.echo(f"learned from {count(len(source.topics), 'topic')} into {path}")
    if learned.shared:
        click.echo(
            f"  {count(learned.shared, 'topic')} of {len(source.topics)} have a relevant document in common with topics of other folds, "
            "so the scores may be too high; --folds-by documents keeps such topics in one fold"
        )
    show_problems("skipped", problems)
    return 1 if problems else 0


def _show_figures(learned: LearnedCombination, measures: Sequence[Measure], folds: int) -> None:
    """Print the scores of all systems, best first by the first measure."""
    from perikope.evaluation.learning.validation import HELD_OUT

    names = [measure.asked or str(measure) for measure in measures]
    width = max(len(system) for system in learned.figures)
    click.echo("system".ljust(width) + "".join(name.rjust(max(len(name), 6) + 2) for name in names))
    for system in sorted(learned.figures, key=lambda system: (-learned.mean(system, names[0]), system)):
        values = "".join(f"{learned.mean(system, name):.4f}".rjust(max(len(name), 6) + 2) for name in names)
        click.echo(system.ljust(width) + values + (f"  ({folds} folds)" if system == HELD_OUT else ""))


@command.command(name="export", cls=GroupedCommand)
@learning_options
@click.option("--out", required=True, metavar="FILE", help="File to write: CSV for .csv, TSV for .tsv, else SVMlight; .gz compresses it.")
def export(index: str, topics: str, qrels: str, out: str, search: GivenSearch, **options: Any) -> int:
    """Write the training examples of `perikope learn fusion` to a file, for other programs.

    A line of SVMlight is `grade qid:1 1:0.5 2:0.25 … # document#passage`; comments at the top name the features. CSV
    and TSV have the columns qid, name (document#passage), grade, and one column per feature.

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
    show_problems("skipped", problems)
    return 1 if problems else 0


@command.command(name="show")
@click.argument("index", metavar="INDEX")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the content of the table, or one object per table without a NAME.")
def show_table(index: str, name: str | None, as_json: bool) -> int:
    """List the tables that models can use, and name those that are damaged. With a NAME, show the table.

    \b
    Example:
      perikope learn show idx
      perikope learn show idx my-tags
    """
    from pathlib import Path

    from perikope.cli.table_output import lines_of
    from perikope.core.errors import InputError
    from perikope.index.reader import Snapshot
    from perikope.index.saved_tables import FOLDER, check_tables, read_table, table_names

    folder = Snapshot.open(Path(index)).folder
    if name is not None:
        table = read_table(name, folder=folder)
        click.echo(json.dumps({"name": table.name, "kind": table.kind, "values": dict(table.values)}) if as_json else lines_of(table))
        return 0
    names = table_names(folder=folder)
    width = max(map(len, names))
    for known in names:
        try:
            kind = read_table(known, folder=folder).kind
        except InputError:  # a damaged table of the index has the name of a table of the program
            continue
        source = "index" if (folder / FOLDER / f"{known}.json").is_file() else "program"
        click.echo(json.dumps({"name": known, "kind": kind, "place": source}) if as_json else f"{known:<{width}}  {kind:<6}  {source}")
    problems = check_tables(folder).problems
    show_problems("damaged", problems)
    return 1 if problems else 0


@command.command(name="delete")
@click.argument("index", metavar="INDEX")
@click.argument("name", metavar="NAME")
def delete_table(index: str, name: str) -> int:
    """Delete a learned table from the index.

    \b
    Example:
      perikope learn delete idx my-tags
    """
    from pathlib import Path

    from perikope.index.reader import Snapshot
    from perikope.index.saved_tables import delete_table

    delete_table(Snapshot.open(Path(index)).folder, name)
    click.echo(f"deleted {name}")
    return 0


@command.command(name="features")
def list_features() -> int:
    """List the features of passages that `perikope learn fusion` combines, with their meaning.

    \b
    Example:
      perikope learn features
    """
    from perikope.browse.models.features import FEATURES

    width = max(map(len, FEATURES))
    for number, feature in enumerate(FEATURES.values(), 1):
        click.echo(f"{number:>3}  {feature.name:<{width}}  {feature.meaning}")
    return 0


def _examples(index: str, topics: str, qrels: str, search: GivenSearch, options: dict[str, Any]) -> tuple[JudgedTopics, list[str]]:
    """The judged topics for the training examples of fusion, and one message per skipped topic."""
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
    """The judged topics to learn from, and one message per skipped topic.

    `reading` has the values of --topic-format, --topic-field and --topic-language.
    """
    from pathlib import Path

    from perikope.core.errors import UsageError
    from perikope.evaluation.io.fitting import fit_judgements
    from perikope.evaluation.io.topics import read_topics
    from perikope.evaluation.learning.examples import JudgedTopics, check_options, judged_topics
    from perikope.index.reader import Snapshot

    check_options(search.options)
    snapshot = Snapshot.open(Path(index))
    fitted = fit_judgements(qrels, snapshot)
    show_warning(fitted.warning)
    asked = read_topics(topics, reading["topic_format"], reading["topic_field"], reading["topic_language"], show_warning)
    known_topics = search.with_candidates(asked)
    if not known_topics:
        raise UsageError(f"{topics} contains no topics; write one topic per line, as qid<TAB>text")
    problems: list[str] = []
    usable = judged_topics(snapshot, known_topics, fitted.names, search.options, problems.append, show_warning)
    return JudgedTopics(snapshot, usable, fitted.names, search.options, normalize, threads or None), problems
