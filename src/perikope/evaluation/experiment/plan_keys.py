"""The keys of an experiment's file, declared once: kind, default and meaning of each.

Paths are relative to the file. `plan.py` checks what several keys say together and makes a `Plan` of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from perikope.core.composed_values import TEXTS, AnyTable, Either, ListOf
from perikope.core.configuration import Table, free_table, named_tables, options_table, table, tables
from perikope.core.options import option
from perikope.core.parameters import Range
from perikope.core.values import Notation, OneOf, Real, Switch, Text, Whole
from perikope.evaluation.io.judgements import JUDGEMENT_FORMS
from perikope.evaluation.io.topics import TOPIC_FORMS
from perikope.evaluation.learning.validation import FoldsBy, Method
from perikope.evaluation.tuning.space import Search
from perikope.search.options import RECIPE, SearchOptions, options_on
from perikope.text.analysis import STEMMERS

MEASURE = Notation(parser="perikope.evaluation.measures:parse_measure")
SEARCH_OPTIONS = tuple(name for name in options_on(RECIPE) if name not in ("model", "k"))
"""The options that `[search]` and the `options` of a system take."""


@dataclass(frozen=True, kw_only=True)
class CollectionKeys(Table):
    """`[collection]`: an index, or the documents that one is made of."""

    index: str = option("", Text(), "Folder of an index.")
    documents: tuple[str, ...] = option((), TEXTS, "Files or folders to index, in place of `index`.")
    format: str = option("auto", Text(), "Format of the documents: a name, or a profile's file.")
    language: str = option("", Notation(parser="perikope.text.analysis:language_code"), "Language of the documents.")
    stemmer: str = option("", OneOf(("", *STEMMERS)), "Stemmer of the index.")
    stopwords: str = option("", Text(), "Stop words of the index: `default`, `none`, or a file.")
    segment: str = option("markup", Notation(parser="perikope.document.segmentation:segmenter"), "How documents are cut into passages.")


@dataclass(frozen=True, kw_only=True)
class TopicsKeys(Table):
    """`[topics]`: the topics that are reported."""

    file: str = option("", Text(), "File of topics.")
    judgements: str = option("", Text(), "File of judgements.")
    form: str = option("auto", OneOf(("auto", *TOPIC_FORMS)), "Format of the topics.")
    field: str = option("", Text(), "Field of a topic that is its query, in formats with several fields.")
    judgement_form: str = option("auto", OneOf(("auto", *JUDGEMENT_FORMS)), "Format of the judgements.")
    sample: int | None = option(None, Whole(Range(1)), "Number of topics to draw; all of them where left out.")
    spans: str = option("", Text(), "Judgements of characters, for measures of characters.")


@dataclass(frozen=True, kw_only=True)
class NamedCollectionKeys(CollectionKeys):
    """`[collections.NAME]`: one of several collections, with its sets of topics."""

    topics: dict[str, TopicsKeys] = named_tables(TopicsKeys, "Sets of topics about the collection, by name.")


@dataclass(frozen=True, kw_only=True)
class TrainingKeys(Table):
    """`[training]`: what parameters are chosen on: other folds of the reported topics, or separate topics."""

    folds: int = option(5, Whole(Range(2)), "Number of folds of the reported topics.")
    folds_by: FoldsBy = option("topics", OneOf(get_args(FoldsBy)), "What a fold never shares with another: topics, or documents.")
    topics: str = option("", Text(), "File of training topics, in place of folds.")
    judgements: str = option("", Text(), "File of judgements of the training topics.")
    form: str = option("auto", OneOf(("auto", *TOPIC_FORMS)), "Format of the training topics.")
    field: str = option("", Text(), "Field of a training topic that is its query.")
    judgement_form: str = option("auto", OneOf(("auto", *JUDGEMENT_FORMS)), "Format of the judgements.")
    sample: int | None = option(None, Whole(Range(1)), "Number of training topics to draw; all of them where left out.")
    spans: str = option("", Text(), "Judgements of characters of the training topics.")
    measure: str = option("", MEASURE, "Measure that tuning raises; the first of `measures` where left out.")


@dataclass(frozen=True, kw_only=True)
class SweepKeys(Table):
    """`[sweep]`: what is varied for all systems."""

    documents: tuple[int, ...] = option((), ListOf(Whole(Range(1)), "whole numbers"), "Numbers of documents to fetch, one table each.")


@dataclass(frozen=True, kw_only=True)
class ComparisonKeys(Table):
    """`[comparison]`: how systems are compared."""

    test: str = option("t", OneOf(("t", "wilcoxon", "mannwhitney", "randomisation")), "Test of significance.")
    correction: str = option("holm", OneOf(("holm", "bonferroni", "bh", "none")), "Correction for the number of comparisons.")
    alpha: float = option(0.05, Real(Range(0, 1, low_open=True)), "Level of significance.")


@dataclass(frozen=True, kw_only=True)
class SystemKeys(Table):
    """`[[systems]]`: one system: a model, a recipe, or the run of another program."""

    name: str = option("", Text(), "Name in tables.")
    model: str = option("", Text(), "Model that ranks passages; parameters without a value are tuned.")
    recipe: str = option("", Text(), "Recipe: a name, or a file.")
    run: str = option("", Text(), "Run of another system, as a file.")
    runs: dict[str, str] = free_table(Text(), "Runs of another system on several sets of topics, by set.")
    tune: bool | tuple[str, ...] | Mapping[str, Any] = option(
        False,
        Either((Switch(), TEXTS, AnyTable()), "true, a list of parameters, or a table of the values to try"),
        "Parameters to tune: true for those without a value, a list of names, or a table of the values to try.",
    )
    search: Search = option("grid", OneOf(get_args(Search)), "How tuning goes through the values.")
    trials: int = option(100, Whole(Range(1)), "Number of settings that random search tries.")
    learn: str = option("", OneOf(("", "fusion", "prior", "tags")), "What is learned from the training topics.")
    method: Method = option("linear", OneOf(get_args(Method)), "How a fusion is learned.")
    min_occurrences: int = option(10, Whole(Range(0)), "Minimum number of occurrences of a tag whose weight is learned.")
    of: tuple[str, ...] = option(
        (), TEXTS, "For `fuse` and `rrf`: systems listed above this one. Their models are fused, with their tuned parameters."
    )
    options: dict[str, Any] = options_table(
        SearchOptions, lambda: SEARCH_OPTIONS, "Options of this system; they take precedence over its recipe, and that over [search]."
    )


@dataclass(frozen=True, kw_only=True)
class ExperimentKeys(Table):
    """The whole file. `[collection]`, `[topics]` and `[training]` may be given on the command line instead."""

    kind: str = option("", Text(), "Kind of systems that are no models, recipes or runs, such as `neural`.")
    title: str = option("", Text(), "Title of the report.")
    description: str = option("", Text(), "Paragraph below the title.")
    measures: tuple[str, ...] = option((), ListOf(MEASURE, "measures"), "Measures to report; the first is the main one.")
    k: int = option(1000, Whole(Range(1)), "Number of results per topic.")
    seed: int = option(1, Whole(Range(0)), "Seed of samples, folds and random search.")
    collection: CollectionKeys = table(CollectionKeys, "The documents.")
    topics: TopicsKeys = table(TopicsKeys, "The topics that are reported.")
    collections: dict[str, NamedCollectionKeys] = named_tables(
        NamedCollectionKeys, "Several collections by name, in place of [collection] and [topics]."
    )
    report_on: tuple[str, ...] = option((), TEXTS, "Sets of topics that are reported, as `collection/set`.")
    train_on: tuple[str, ...] = option((), TEXTS, "Sets of topics that are trained on, as `collection/set`.")
    training: TrainingKeys = table(TrainingKeys, "What parameters are chosen on.")
    search: dict[str, Any] = options_table(SearchOptions, lambda: SEARCH_OPTIONS, "Options of a search for all systems.")
    sweep: SweepKeys = table(SweepKeys, "What is varied for all systems.")
    comparison: ComparisonKeys = table(ComparisonKeys, "How systems are compared.")
    systems: tuple[SystemKeys, ...] = tables(SystemKeys, "The systems, in the order of the report.")

    def documents_to_fetch(self) -> tuple[int, ...]:
        """The numbers of documents to fetch, one per sweep."""
        sweep, common = self.sweep, self.search.get("documents", 1000)
        if "documents" in sweep.given and not sweep.documents:
            raise sweep.wrong("documents", "is empty: list how many documents are fetched, or leave [sweep] out")
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

    seeds: int = option(1, Whole(Range(1)), "Number of repetitions; their seeds count from 1.")
    table: str = option("", Text(), "Title of a separate table in which the system is reported; with all others where left out.")
    also_in: tuple[str, ...] = option((), TEXTS, "Titles of separate tables in which the system is reported too.")


@dataclass(frozen=True, kw_only=True)
class RepeatedExperimentKeys(ExperimentKeys):
    """The whole file of an experiment whose rankers are repeated with several seeds."""

    values: str = option("", Text(), "Folder with `values/` of finished jobs; those with the same settings are used.")
    systems: tuple[RepeatedSystemKeys, ...] = tables(RepeatedSystemKeys, "The systems, in the order of the report.")
