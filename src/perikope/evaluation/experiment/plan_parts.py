"""The parts of a plan: collections, topics, training and systems, each checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perikope.build.indexing import BuildOptions
from perikope.evaluation.learning.validation import FoldsBy, Method
from perikope.evaluation.tuning.space import Space
from perikope.search.options import SearchOptions


@dataclass(frozen=True, slots=True)
class TopicsPlan:
    """Topics and their judgements."""

    file: str
    judgements: str
    form: str = "auto"
    field: str = ""
    judgement_form: str = "auto"
    sample: int | None = None
    """Number of topics to draw; None for all of them."""
    spans: str = ""
    """Judgements of characters, for measures of characters."""
    location: tuple[str, str] = ("topics", "file")
    """Table and key of the file of topics, for errors."""
    options: tuple[str, str] = ("", "")
    """Fields of `Given` that can replace topics and judgements; empty where the command line cannot."""

    @property
    def text(self) -> tuple[str, str]:
        """The file that says which text is relevant, and its form; without spans, all text of relevant passages is."""
        return (self.spans, "auto") if self.spans else (self.judgements, self.judgement_form)


@dataclass(frozen=True, slots=True)
class CollectionPlan:
    """Documents, as an index or as files to index, and sets of topics about them."""

    index: Path | None = None
    documents: tuple[Path, ...] = ()
    build: BuildOptions = field(default_factory=BuildOptions)
    topics: Mapping[str, TopicsPlan] = field(default_factory=dict)
    """Sets of topics by name."""
    table: str = "collection"
    """The table of the file, for errors."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """Topics on which parameters are chosen: separate ones, or the other folds of the reported topics."""

    folds: int = 0
    folds_by: FoldsBy = "topics"
    topics: TopicsPlan | None = None
    sample: int | None = None
    """Number of training topics to draw; None for all of them."""
    measure: str = ""
    """Measure that tuning raises; empty for the main measure of the experiment."""


@dataclass(frozen=True, slots=True)
class TopicSet:
    """One set of topics that is reported, with its collection and what is trained on for it."""

    name: str
    """`collection/set`."""
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
    min_occurrences: int = 10
    of: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """All given options, with those of the recipe and of [search], without model, k and number of documents."""
    ranker: Any = None
    """Settings of a ranker of the experiment's kind; None for other systems."""
    seeds: int = 0
    """Number of repetitions of a ranker."""
    is_random: bool = True
    """Whether a ranker depends on its seed."""
    derived: tuple[str, ...] = ()
    """Names of further systems that a repetition of the ranker gives values for."""
    table: str = ""
    """The title of a separate table in which it is reported; empty: with all others."""
    also_in: tuple[str, ...] = ()
    """Titles of separate tables in which it is reported too."""

    @property
    def searches(self) -> bool:
        """Whether it is a model that ranks the passages of an index."""
        return bool(self.model)

    @property
    def fuses(self) -> bool:
        """Whether it is the fusion of a ranker with a system that has a run."""
        return bool(self.of) and not self.model

    def search_options(self, documents: int, k: int) -> SearchOptions:
        """The options of its searches with this number of fetched documents; the model is chosen elsewhere."""
        return SearchOptions.of({**self.options, "documents": documents, "k": k})


@dataclass(frozen=True, slots=True)
class Given:
    """Values of the command line that replace those of the file."""

    index: str = ""
    documents: tuple[str, ...] = ()
    topics: str = ""
    judgements: str = ""
    training_topics: str = ""
    training_judgements: str = ""

    @property
    def options(self) -> list[str]:
        """The options that were given, as they are written on a command line."""
        return sorted(f"--{name.replace('_', '-')}" for name in self.__slots__ if getattr(self, name))
