"""Declares the keys of an experiment file: type, default and meaning of each.

Paths are relative to the file. `plan.py` checks keys that depend on each other and turns them into a `Plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from perikope.core.composed_values import TEXTS, AnyTable, Either, FilledText, ListOf
from perikope.core.configuration import Table, free_table, named_tables, options_table, table, tables
from perikope.core.options import option
from perikope.core.parameters import Range
from perikope.core.values import Notation, OneOf, Real, Switch, Text, Whole
from perikope.evaluation.io.judgements import JUDGEMENT_FORMS
from perikope.evaluation.io.topics import TOPIC_FORMS
from perikope.evaluation.learning.validation import FoldsBy, Method
from perikope.evaluation.tuning.space import Search
from perikope.search.options import FETCH, OPTIONS, PATENTS, RECIPE, SearchOptions, options_on
from perikope.search.recipes import ExpectsKeys
from perikope.text.analysis import STEMMERS

MEASURE = Notation(parser="perikope.evaluation.measures:parse_measure")
REQUIRED_MEASURE = Notation(parser=MEASURE.parser, required=True)
SEARCH_OPTIONS = tuple(name for name in options_on(RECIPE) if name not in ("model", "k"))
"""The search options that are valid in `[search]` and in the `options` of a system."""
RANKER_OPTIONS = tuple(
    name
    for name in SEARCH_OPTIONS
    if (OPTIONS[name].group in (FETCH, PATENTS) or name in ("language", "syntax", "filter", "code_level"))
    and name not in ("documents", "rescore", "rescore_weight")
)
"""The search options that decide which documents a ranker gets and how a topic becomes its query. Other options are
about the passages of a search, which a ranker does not use."""


@dataclass(frozen=True, kw_only=True)
class CollectionKeys(Table):
    """`[collection]`: an index, or documents to index."""

    index: str = option("", Text(), "Folder of an index.")
    documents: tuple[str, ...] = option((), TEXTS, "Files or folders to index, in place of `index`.")
    format: str = option("auto", Text(), "Format of the documents: its name, or the TOML file of a profile.")
    language: str = option("", Notation(parser="perikope.text.analysis:language_code"), "Language of the documents.")
    languages: tuple[str, ...] = option((), TEXTS, "Languages whose text is indexed. If left out, all languages.")
    stemmer: str = option("", OneOf(("", *STEMMERS)), "Stemmer of the index.")
    stopwords: str = option("", Text(), "Stop words of the index: `default`, `none`, or a file.")
    segment: str = option("markup", Notation(parser="perikope.document.segmentation:segmenter"), "How documents are cut into passages.")


@dataclass(frozen=True, kw_only=True)
class JudgedTopicsKeys(Table):
    """The keys that all sets of topics have, apart from the file of topics."""

    judgements: str = option("", Text(), "File of judgements.")
    form: str = option("auto", OneOf(("auto", *TOPIC_FORMS)), "Format of the topics.")
    field: str = option("", Text(), "Fields of a topic that form the query, such as `title` or `title,desc`.")
    judgement_form: str = option("auto", OneOf(("auto", *JUDGEMENT_FORMS)), "Format of the judgements.")
    language: str = option(
        "",
        Notation(parser="perikope.text.analysis:language_code"),
        "Language of the topics, such as `en`. Topics of other languages are left out; the report counts and names them. The language "
        "is that of the topic or, if its file names none, that of its patent.",
    )
    sample: int | None = option(None, Whole(Range(1)), "Number of topics to draw at random. If left out, all topics are used.")
    spans: str = option(
        "",
        Text(),
        "File of judgements as ranges of characters, for measures that count characters. If left out, these measures use `judgements`.",
    )


@dataclass(frozen=True, kw_only=True)
class TopicsKeys(JudgedTopicsKeys):
    """`[topics]`: the topics that are reported."""

    file: str = option("", Text(), "File of topics.")


@dataclass(frozen=True, kw_only=True)
class NamedCollectionKeys(CollectionKeys):
    """`[collections.NAME]`: one of several collections, with its sets of topics."""

    topics: dict[str, TopicsKeys] = named_tables(TopicsKeys, "Sets of topics about the collection, by name.")


@dataclass(frozen=True, kw_only=True)
class TrainingKeys(JudgedTopicsKeys):
    """`[training]`: the topics to tune and learn on: other folds of the reported topics, or separate topics."""

    folds: int = option(5, Whole(Range(2)), "Number of folds of a cross-validation over the reported topics.")
    folds_by: FoldsBy = option(
        "topics", OneOf(get_args(FoldsBy)), "`documents` puts topics that share a relevant document into the same fold; `topics` does not."
    )
    topics: str = option("", Text(), "File of training topics, in place of folds.")
    ids: tuple[str, ...] = option(
        (),
        TEXTS,
        "Ids of training topics, in which `*` stands for any characters. Topics of [topics] with such an id are trained on and "
        "the others are reported, in place of folds. If no topic or every topic has such an id, this is an error.",
    )
    measure: str = option("", MEASURE, "Measure that tuning maximises. If left out, it is the first of `measures`.")


@dataclass(frozen=True, kw_only=True)
class SweepKeys(Table):
    """`[sweep]`: settings that are varied for all systems."""

    documents: tuple[int, ...] = option(
        (),
        ListOf(Whole(Range(1)), "whole numbers"),
        "Numbers of documents to fetch. All systems run with each number, and the report has one table per number.",
    )


@dataclass(frozen=True, kw_only=True)
class ComparisonKeys(Table):
    """`[comparison]`: how systems are compared."""

    test: str = option("t", OneOf(("t", "wilcoxon", "mannwhitney", "randomisation")), "Test of significance.")
    correction: str = option("holm", OneOf(("holm", "bonferroni", "bh", "none")), "Correction for the number of comparisons.")
    alpha: float = option(0.05, Real(Range(0, 1, low_open=True)), "Level of significance.")
    reference: str = option(
        "", Text(), "System that the others are compared with: the report has a table of their improvement over it in percent."
    )


@dataclass(frozen=True, kw_only=True)
class SystemKeys(Table):
    """`[[systems]]`: a system, which is a model, a recipe, or the run of another program."""

    name: str = option("", Text(), "Name of the system in the tables of the report.")
    model: str = option("", Text(), "Model that ranks passages. With `tune = true`, its parameters without a value are tuned.")
    recipe: str = option("", Text(), "Recipe to search with: its name, or its file.")
    run: str = option("", Text(), "File of a run that another program made.")
    runs: dict[str, str] = free_table(Text(), "Files of runs that another program made, by set of topics.")
    tune: bool | tuple[str, ...] | Mapping[str, Any] = option(
        False,
        Either((Switch(), TEXTS, AnyTable()), "true, a list of parameters, or a table of the values to try"),
        "Parameters to tune: `true` for those without a value, a list of names, or a table of the values to try.",
    )
    search: Search = option(
        "grid",
        OneOf(get_args(Search)),
        "Settings that tuning tries: all combinations of values (`grid`), or `trials` random ones (`random`).",
    )
    trials: int = option(100, Whole(Range(1)), "Number of settings that random search tries.")
    learn: str = option(
        "",
        OneOf(("", "fusion", "prior", "tags")),
        "What to learn from the training topics: a combination of features, a prior over positions, or weights of tags.",
    )
    method: Method = option("linear", OneOf(get_args(Method)), 'Learning method, with `learn = "fusion"`.')
    learn_documents: int | None = option(
        None,
        Whole(Range(1)),
        'With `learn = "prior"`: number of documents to fetch for the run that the prior is learned from. If left out, the '
        "prior is learned for each number of [sweep].",
    )
    min_occurrences: int = option(
        10, Whole(Range(0)), 'With `learn = "tags"`: minimum number of occurrences of a tag whose weight is learned.'
    )
    of: tuple[str, ...] = option(
        (), TEXTS, "With the model `fuse` or `rrf`: names of systems above this one, whose tuned models are fused."
    )
    browse_field: str = option(
        "",
        Text(),
        "Field of a topic whose text scores passages, such as `castitle`, or `boolean` for a query written by hand. "
        "A topic without this field is scored by its query, which also fetches documents.",
    )
    options: dict[str, Any] = options_table(
        SearchOptions,
        lambda: SEARCH_OPTIONS,
        "Search options of this system. They take precedence over its recipe, which takes precedence over [search].",
    )


@dataclass(frozen=True, kw_only=True)
class PublishedRowKeys(Table):
    """`[[published.rows]]`: one row of a published table."""

    name: str = option("", Text(), "Name of the row as the paper prints it. If left out, the name of the system.")
    system: str = option(
        "", Text(), "System of this experiment that repeats the row, or row of the table `beside`. If left out, no system repeats the row."
    )
    documents: int | None = option(None, Whole(Range(1)), "Number of fetched documents that the row is about, with [sweep].")
    values: tuple[str, ...] = option(
        (), TEXTS, 'Cells as printed, one per column, such as `"0.1835"`, `"0.1835^* (27.8%)"`, `"46.4^ln ± 1.5"` or `"-"`.'
    )


@dataclass(frozen=True, kw_only=True)
class PublishedKeys(Table):
    """`[[published]]`: a table of the paper that the experiment repeats. The report shows its figures beside ours."""

    name: str = option("", Text(), "Number of the table in the paper.")
    source: str = option("", Text(), "Paper and place of the table.")
    about: str = option("", Text(), "Collection and topics of the table.")
    note: str = option("", Text(), "Meaning of the marks in the table, and what could not be read.")
    beside: str = option(
        "measures",
        FilledText(),
        "What the columns are: `measures`, tuned `parameters`, or the title of another table of the report with such columns.",
    )
    topics: str = option("", Text(), "Set of topics that the table is about, as `collection/set`. If left out, all reported sets.")
    percent: bool = option(False, Switch(), "Whether the values are printed in percent.")
    columns: tuple[str, ...] = option((), TEXTS, "Names of the measures, parameters or columns, in the order of the values.")
    rows: tuple[PublishedRowKeys, ...] = tables(PublishedRowKeys, "The rows, in the order of the paper.")


@dataclass(frozen=True, kw_only=True)
class ExperimentKeys(Table):
    """The whole experiment file. The command line can replace `[collection]`, `[topics]` and `[training]`."""

    kind: str = option("", Text(), "Kind of the systems without `model`, `recipe` or `run`, such as `neural`.")
    title: str = option("", Text(), "Title of the report.")
    description: str = option("", Text(), "Text below the title of the report.")
    measures: tuple[str, ...] = option((), ListOf(REQUIRED_MEASURE, "measures"), "Measures to report; the first is the main one.")
    k: int | None = option(
        None,
        Whole(Range(1)),
        "Number of results per topic. If left out, 1000, or more if a measure needs more. `PRES@100` needs results of 100 documents.",
    )
    seed: int = option(1, Whole(Range(0)), "Seed of samples, folds and random search.")
    collection: CollectionKeys = table(CollectionKeys, "The documents to search.")
    topics: TopicsKeys = table(TopicsKeys, "The topics that are reported.")
    collections: dict[str, NamedCollectionKeys] = named_tables(
        NamedCollectionKeys, "Several collections by name, in place of [collection] and [topics]."
    )
    report_on: tuple[str, ...] = option((), TEXTS, "Sets of topics that are reported, as `collection/set`.")
    train_on: tuple[str, ...] = option((), TEXTS, "Sets of topics to tune and learn on, as `collection/set`.")
    training: TrainingKeys = table(TrainingKeys, "The topics to tune and learn on.")
    expects: ExpectsKeys = table(
        ExpectsKeys,
        "Settings of the index that the figures depend on. Documents are indexed with them unless the collection says otherwise, and the "
        "report warns about an index that differs.",
    )
    search: dict[str, Any] = options_table(SearchOptions, lambda: SEARCH_OPTIONS, "Search options of all systems.")
    sweep: SweepKeys = table(SweepKeys, "Settings that are varied for all systems.")
    comparison: ComparisonKeys = table(ComparisonKeys, "How systems are compared.")
    systems: tuple[SystemKeys, ...] = tables(SystemKeys, "The systems, in the order of the report.")
    published: tuple[PublishedKeys, ...] = tables(PublishedKeys, "Published tables that the report shows beside ours.")

    def documents_to_fetch(self) -> tuple[int, ...]:
        """The numbers of documents to fetch, one per sweep. The default is one sweep with 1000 documents."""
        sweep, common = self.sweep, self.search.get("documents", 1000)
        if "documents" in sweep.given and not sweep.documents:
            raise sweep.wrong("documents", "is empty; list numbers of documents to fetch, or leave [sweep] out")
        if sweep.documents and "documents" in self.search:
            raise sweep.wrong("documents", "is also set in [search]; remove one of the two")
        if len(set(sweep.documents)) < len(sweep.documents):
            raise sweep.wrong("documents", "lists a number twice; list each number once")
        if not isinstance(common, int):
            raise self.location.inner("search").wrong("documents", "must be a whole number")
        return sweep.documents or (common,)


@dataclass(frozen=True, kw_only=True)
class RepeatedSystemKeys(SystemKeys):
    """`[[systems]]` of an experiment whose rankers are repeated with several seeds."""

    seeds: int = option(1, Whole(Range(1)), "Number of repetitions, with the seeds 1, 2 and so on.")
    table: str = option("", Text(), "Title of a separate table for the system, which is then left out of the main table.")
    also_in: tuple[str, ...] = option((), TEXTS, "Titles of further tables that report the system. Each must be the `table` of a system.")


@dataclass(frozen=True, kw_only=True)
class RepeatedExperimentKeys(ExperimentKeys):
    """The whole file of an experiment whose rankers are repeated with several seeds."""

    values: str = option("", Text(), "Folder of an earlier experiment. Its finished jobs with the same settings are reused.")
    systems: tuple[RepeatedSystemKeys, ...] = tables(RepeatedSystemKeys, "The systems, in the order of the report.")
