"""The checked parts of a `Plan`: collections, topics, training and systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perikope.build.indexing import BuildOptions
from perikope.evaluation.learning.validation import FoldsBy, Method
from perikope.evaluation.tuning.space import Space
from perikope.query.topic import Topic
from perikope.search.options import SearchOptions

CANDIDATES = "qsf_v_title"
"""The model whose best passages become training examples, because they are the hardest to order."""


@dataclass(frozen=True, slots=True)
class TopicsPlan:
    """The files of a set of topics and of its judgements."""

    file: str
    judgements: str
    form: str = "auto"
    field: str = ""
    judgement_form: str = "auto"
    language: str = ""
    """Language of the topics; empty if topics of all languages are used."""
    sample: int | None = None
    """Number of topics to draw at random; None for all topics."""
    spans: str = ""
    """File of judgements as ranges of characters, for measures that count characters. Empty if there is none."""
    location: tuple[str, str] = ("topics", "file")
    """The table and the key that name the file of topics, for error messages."""
    options: tuple[str, str] = ("", "")
    """The fields of `Given` that can replace `file` and `judgements`. Empty if the command line cannot replace them."""

    @property
    def text(self) -> tuple[str, str]:
        """The file that says which text is relevant, and its form.

        This is the file of spans. If there is none, it is the file of judgements, and all text of a relevant passage is
        relevant.
        """
        return (self.spans, "auto") if self.spans else (self.judgements, self.judgement_form)


@dataclass(frozen=True, slots=True)
class CollectionPlan:
    """An index, or documents to index, with the sets of topics about them."""

    index: Path | None = None
    documents: tuple[Path, ...] = ()
    build: BuildOptions = field(default_factory=BuildOptions)
    """How the file indexes documents. An index that the command line names can differ from it."""
    topics: Mapping[str, TopicsPlan] = field(default_factory=dict)
    """Sets of topics by name."""
    table: str = "collection"
    """The table of the file that describes the collection, for error messages."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """The topics to tune and learn on: separate topics, or the other folds of the reported topics."""

    folds: int = 0
    """Number of folds of the reported topics; 0 if `topics` is given."""
    folds_by: FoldsBy = "topics"
    topics: TopicsPlan | None = None
    ids: tuple[str, ...] = ()
    """Patterns of ids: reported topics with such ids are trained on instead, in place of folds."""
    sample: int | None = None
    """Number of training topics to draw at random; None for all of them."""
    measure: str = ""
    """Measure that tuning maximises; empty for the main measure of the experiment."""


@dataclass(frozen=True, slots=True)
class TopicSet:
    """A reported set of topics, with its collection and its training topics."""

    name: str
    """The name of the collection and of the set, as `collection/set`."""
    collection: CollectionPlan
    topics: TopicsPlan
    training: TrainingPlan | None = None

    @property
    def collection_name(self) -> str:
        """The name of the collection."""
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class SystemPlan:
    """One system: a model that searches, runs of another program, a ranker, or a fusion with a ranker."""

    name: str
    model: str = ""
    recipe: str = ""
    runs: Mapping[str, Path] = field(default_factory=dict)
    """Runs of another program, by set of topics."""
    space: Space | None = None
    learn: str = ""
    method: Method = "linear"
    learn_documents: int = 0
    """Number of documents to fetch for the run that a prior is learned from; 0 for the number of each sweep."""
    min_occurrences: int = 10
    of: tuple[str, ...] = ()
    browse_field: str = ""
    """The field of a topic whose text scores passages. Empty if the query of the topic does."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The search options of [search], the recipe and the system, without `model`, `k` and `documents`."""
    ranker: Any = None
    """Settings of a ranker of the experiment's kind; None for other systems."""
    seeds: int = 0
    """Number of repetitions of a ranker; 0 for other systems."""
    is_random: bool = True
    """Whether a ranker depends on its seed."""
    derived: tuple[str, ...] = ()
    """Names of further systems whose values a job of the ranker also computes."""
    table: str = ""
    """The title of the separate table that reports the system. Empty if the table of all systems reports it."""
    also_in: tuple[str, ...] = ()
    """Titles of further separate tables that report the system."""

    @property
    def searches(self) -> bool:
        """Whether the system is a model that ranks the passages of an index."""
        return bool(self.model)

    @property
    def fuses(self) -> bool:
        """Whether the system is the fusion of a ranker with a system that has a run."""
        return bool(self.of) and not self.model

    def for_topic(self, topic: Topic, options: SearchOptions) -> SearchOptions:
        """The search options of the system for one topic: `options`, with the text of the topic's `browse_field`."""
        text = topic.fields.get(self.browse_field, "") if self.browse_field else ""
        return options.updated({"browse_query": text}) if text else options

    def search_options(self, documents: int, k: int) -> SearchOptions:
        """The search options of the system with a number of fetched documents and of results, without its model.

        They name a model of their own, which expands queries for learned combinations (`browse_expand`), so that
        neither vectors nor the default of an index changes an experiment.
        """
        return SearchOptions.of({"model": CANDIDATES, **self.options, "documents": documents, "k": k})


@dataclass(frozen=True, slots=True)
class Given:
    """Options of the command line that replace keys of the file. Options that are not given are empty."""

    index: str = ""
    documents: tuple[str, ...] = ()
    topics: str = ""
    judgements: str = ""
    training_topics: str = ""
    training_judgements: str = ""
    translate: str = ""
    """Address of the server that translates the patents of topics."""
    encoder: str = ""
    """Encoder of neural rankers."""

    @property
    def options(self) -> list[str]:
        """The names of the given options on collections and topics, as the command line writes them: `--index` …"""
        not_of_input = ("translate", "encoder")
        return sorted(f"--{name.replace('_', '-')}" for name in self.__slots__ if name not in not_of_input and getattr(self, name))
