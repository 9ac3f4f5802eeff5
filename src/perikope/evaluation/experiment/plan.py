"""Plans: the file of an experiment, every key checked before anything runs. `plan_keys` declares the keys.

A file has one collection with one set of topics (`[collection]`, `[topics]`), or several with names
(`[collections.NAME]`, `report_on`). A plan has one form for both: the single collection is called `collection`, its
reported topics `topics` and its training topics `training`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from perikope.build.indexing import BuildOptions
from perikope.core.configuration import SUFFIX, Location, Table, parse_toml, read_text
from perikope.core.errors import InputError, PerikopeError, UsageError, unknown
from perikope.evaluation.experiment.kinds import SystemKind, system_kind
from perikope.evaluation.experiment.outcome import ComparisonSettings, slug
from perikope.evaluation.experiment.plan_keys import (
    CollectionKeys,
    ComparisonKeys,
    ExperimentKeys,
    RepeatedExperimentKeys,
    TopicsKeys,
    TrainingKeys,
)
from perikope.evaluation.experiment.plan_parts import CollectionPlan, Given, SystemPlan, TopicSet, TopicsPlan, TrainingPlan
from perikope.evaluation.experiment.plan_systems import read_systems
from perikope.formats import format_named
from perikope.text.analysis import read_stopwords

PROTOCOLS = "protocols"
COLLECTION, TOPICS, TRAINING = "collection", "topics", "training"
"""Names of the single collection, of its reported topics and of its training topics."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An experiment, ready to run."""

    title: str
    description: str
    measures: tuple[str, ...]
    """The first is the main one."""
    k: int
    seed: int
    collections: Mapping[str, CollectionPlan]
    sets: tuple[TopicSet, ...]
    """The sets of topics that are reported."""
    documents: tuple[int, ...]
    """Numbers of documents to fetch, one sweep each."""
    comparison: ComparisonSettings
    systems: tuple[SystemPlan, ...]
    names_sets: bool = False
    """Whether collections and sets of topics have names, which are part of labels and file names then."""
    kind: str = ""
    """The kind of its rankers; empty where there are none."""
    shared: Any = None
    """The settings that all rankers share."""
    earlier: Path | None = None
    """A folder with values of jobs that were finished before, maybe elsewhere."""
    content: Mapping[str, Any] = field(default_factory=dict)
    """The content of the file, as TOML or JSON has it."""
    source: str = ""
    """The text of the file."""
    path: str = ""
    """The name of the file, for errors that are found when other files are read."""
    given: Given = field(default_factory=Given)

    @property
    def rankers(self) -> tuple[SystemPlan, ...]:
        """The systems that are run as jobs."""
        return tuple(system for system in self.systems if system.ranker is not None)

    def system(self, name: str) -> SystemPlan:
        """A system by its name."""
        return next(system for system in self.systems if system.name == name)

    def fusions_of(self, name: str) -> list[tuple[SystemPlan, SystemPlan]]:
        """The fusions that a ranker takes part in, each with the other system, which has runs."""
        fusions = [system for system in self.systems if system.fuses and name in system.of]
        return [(fusion, self.system(next(part for part in fusion.of if part != name))) for fusion in fusions]

    def label(self, topics: TopicSet, documents: int) -> str:
        """The title of a sweep."""
        fetched = f"{documents} document{'' if documents == 1 else 's'} fetched"
        if not self.names_sets:
            return fetched
        return topics.name if len(self.documents) == 1 else f"{topics.name}, {fetched}"

    def wrong(self, table: str, what: str) -> InputError:
        """The error for a table of the file."""
        return InputError(f"[{table}] {what}", path=self.path or None)

    @contextmanager
    def reading(self, table: str, key: str, option: str = "") -> Iterator[None]:
        """Name the key in errors about its file, or the command-line option that replaces the key."""
        try:
            yield
        except PerikopeError as error:
            message = str(error)
            for name, key_of_option in _KEY_OF_OPTION.items():
                message = message.replace(name, f"{key_of_option} in [{table}]")
            if option and getattr(self.given, option):
                raise UsageError(f"--{option.replace('_', '-')} is wrong: {message}") from error
            raise self.wrong(table, f"{key} is wrong: {message}") from error


_KEY_OF_OPTION = {"--topic-format": "form", "--topic-field": "field", "--qrels-format": "judgement_form"}
"""Keys that stand for command-line options in the messages of file readers."""


def protocol_names() -> list[str]:
    """The names of the experiment files that come with the program: the protocols of the papers."""
    folder = resources.files("perikope.search.recipes").joinpath(PROTOCOLS)
    return sorted(file.name.removesuffix(SUFFIX) for file in folder.iterdir() if file.name.endswith(SUFFIX))


def protocol_text(name: str) -> str:
    """The text of a protocol's file."""
    if name not in (names := protocol_names()):
        raise unknown("protocol", name, [*names, f"a file that ends in {SUFFIX}"])
    return resources.files("perikope.search.recipes").joinpath(PROTOCOLS, f"{name}{SUFFIX}").read_text("utf-8")


def load_plan(name: str, given: Given | None = None) -> Plan:
    """The plan of a file that ends in `.toml`, or of a protocol by its name."""
    if not name.endswith(SUFFIX):
        return parse_plan(protocol_text(name), f"{name}{SUFFIX}", Path(), given or Given())
    path = Path(name)
    return parse_plan(read_text(path, "an experiment"), name, path.parent, given or Given())


def parse_plan(text: str, path: str, folder: Path, given: Given | None = None) -> Plan:
    """The plan that a text in TOML describes; paths in it are relative to the folder."""
    return plan_of(parse_toml(text, path), path, folder, given, text)


def plan_of(content: Mapping[str, Any], path: str, folder: Path, given: Given | None = None, source: str = "") -> Plan:
    """The plan that the content of a file describes; paths in it are relative to the folder."""
    chosen, location = given or Given(), Location(path, "an experiment")
    kind = _kind(content, location)
    keys: ExperimentKeys = (ExperimentKeys if kind is None else kind.keys).read(content, location)
    if not keys.measures:
        raise keys.wrong("measures", 'must name at least one measure, such as "nDCG@10"')
    if len(set(keys.measures)) < len(keys.measures):
        raise keys.wrong("measures", "names a measure twice")
    training = _training(keys.training, folder, chosen) if isinstance(keys.training, TrainingKeys) else None
    collections = _collections(keys, folder, chosen, training)
    sets = _sets(keys, collections, training)
    shared = None if kind is None else kind.read(keys, collections)
    return Plan(
        title=keys.title or Path(path).stem,
        description=keys.description,
        measures=keys.measures,
        k=keys.k,
        seed=keys.seed,
        collections=collections,
        sets=sets,
        documents=keys.documents_to_fetch(),
        comparison=_comparison(keys.comparison),
        systems=read_systems(keys, folder, sets, kind, shared),
        names_sets=bool(keys.collections) or kind is not None,
        kind=keys.kind,
        shared=shared,
        earlier=folder / keys.values if isinstance(keys, RepeatedExperimentKeys) and keys.values else None,
        content=content,
        source=source,
        path=path,
        given=chosen,
    )


def _kind(content: Mapping[str, Any], location: Location) -> SystemKind | None:
    name = content.get("kind", "")
    if not isinstance(name, str):
        raise location.wrong("kind", "must be text")
    if not name:
        return None
    try:
        return system_kind(name)
    except UsageError as error:
        raise location.wrong("kind", f"is wrong: {error}") from None


def _collections(keys: ExperimentKeys, folder: Path, given: Given, training: TrainingPlan | None) -> dict[str, CollectionPlan]:
    """The collections by name."""
    if not keys.collections:
        alone = _collection(keys.collection, folder, given)
        topics = {TOPICS: _topics(keys.topics, folder, given.topics, given.judgements)}
        if training is not None and training.topics is not None:
            topics[TRAINING] = training.topics
        elif given.training_topics and given.training_judgements:
            topics[TRAINING] = TopicsPlan(
                given.training_topics, given.training_judgements, options=("training_topics", "training_judgements")
            )
        return {COLLECTION: replace(alone, topics=topics)}
    if given.options:
        raise UsageError(f"{', '.join(given.options)}: {keys.location.path} names its collections and topics itself")
    if of_one := sorted(keys.given & {"collection", "topics"}):
        raise keys.wrong(of_one[0], "is for a file with one collection; this one has [collections]")
    plans = {}
    for name, collection in keys.collections.items():
        table = collection.location.table
        if wrong := [word for word in (name, *collection.topics) if not _NAME.fullmatch(word)]:
            raise keys.wrong("collections", f"has a wrong name: {wrong[0]!r}; use letters, digits, points, _ and -")
        topics = {set_name: _topics(topic_keys, folder, "", "") for set_name, topic_keys in collection.topics.items()}
        topics = {
            set_name: replace(plan, location=(f"{table}.topics.{set_name}", "file"), options=("", "")) for set_name, plan in topics.items()
        }
        plans[name] = replace(_collection(collection, folder, Given()), topics=topics, table=table)
    return plans


_NAME = re.compile(r"\w[\w.-]*")
"""Names of collections and sets of topics: they are part of file names."""


def _sets(keys: ExperimentKeys, collections: Mapping[str, CollectionPlan], training: TrainingPlan | None) -> tuple[TopicSet, ...]:
    """The sets of topics that are reported, each with what is trained on for it."""
    names = keys.report_on or (() if keys.collections else (f"{COLLECTION}/{TOPICS}",))
    if not names:
        raise keys.wrong("report_on", "must name the sets of topics that are reported, as collection/set")
    if len({slug(name) for name in names}) < len(names):
        raise keys.wrong("report_on", "names a set twice, or two sets that differ in no letter or digit")
    for key in ("report_on", "train_on"):
        check_sets(keys, key, getattr(keys, key), collections)
    sets = []
    for name in names:
        collection, _, set_name = name.partition("/")
        others = [other for other in keys.train_on if other.startswith(f"{collection}/") and other != name]
        chosen = training
        if others and (training is None or training.topics is None):
            topics = collections[collection].topics[others[0].partition("/")[2]]
            chosen = TrainingPlan(topics=topics, sample=topics.sample)
        sets.append(TopicSet(name, collections[collection], collections[collection].topics[set_name], chosen))
    return tuple(sets)


def check_sets(keys: Table, key: str, names: tuple[str, ...], collections: Mapping[str, CollectionPlan]) -> None:
    """Raise the error for a key that names a set of topics which is not there."""
    known = [f"{collection}/{topics}" for collection, plan in collections.items() for topics in plan.topics]
    for name in names:
        if name not in known:
            hint = "; give --training-topics and --training-judgements" if name == f"{COLLECTION}/{TRAINING}" else ""
            raise keys.wrong(key, f"is wrong: {unknown('set of topics', name, known)}{hint}")


def _collection(keys: CollectionKeys, folder: Path, given: Given) -> CollectionPlan:
    form = str(folder / keys.format) if keys.format.endswith(SUFFIX) else keys.format
    if form != "auto":
        keys.check("format", lambda: format_named(form))
    stopwords = keys.stopwords if keys.stopwords in ("", "default", "none") else str(folder / keys.stopwords)
    if stopwords not in ("", "default", "none"):
        keys.check("stopwords", lambda: read_stopwords(stopwords))
    build = BuildOptions(
        format=form, language=keys.language or None, stemmer=keys.stemmer or None, stopwords=stopwords or None, segment=keys.segment
    )
    if given.index and given.documents:
        raise UsageError("give --index or --documents, not both")
    if given.index:
        return CollectionPlan(Path(given.index))
    if given.documents:
        return CollectionPlan(None, tuple(map(Path, given.documents)), build)
    if "documents" in keys.given and not keys.documents:
        raise keys.wrong("documents", "is empty: name the files or folders that are indexed")
    if bool(keys.index) == bool(keys.documents):
        raise keys.wrong("index", "or documents, one of them, must say what is searched (or --index, --documents)")
    if not keys.index:
        return CollectionPlan(None, tuple(folder / path for path in keys.documents), build)
    if of_build := sorted(keys.given - {"index", "documents", "topics"}):
        raise keys.wrong(of_build[0], "is about documents that are indexed; an index has its settings")
    return CollectionPlan(folder / keys.index)


def _topics(keys: TopicsKeys | TrainingKeys, folder: Path, topics: str, judgements: str) -> TopicsPlan:
    """The topics of a table; those of the command line take precedence."""
    key, prefix = ("file", "") if isinstance(keys, TopicsKeys) else ("topics", "training_")
    file = topics or _located(getattr(keys, key), folder)
    judged = judgements or _located(keys.judgements, folder)
    for name, value, given_by in ((key, file, "topics"), ("judgements", judged, "judgements")):
        if not value:
            hint = "" if keys.location.table.startswith("collections.") else f" (or --{prefix.replace('_', '-')}{given_by})"
            raise keys.wrong(name, f"must name a file{hint}")
    location, options = (keys.location.table, key), (f"{prefix}topics", f"{prefix}judgements")
    spans = _located(keys.spans, folder)
    return TopicsPlan(file, judged, keys.form, keys.field, keys.judgement_form, keys.sample, spans, location, options)


def _located(name: str, folder: Path) -> str:
    return name if not name or name.startswith("irds:") else str(folder / name)


def _training(keys: TrainingKeys, folder: Path, given: Given) -> TrainingPlan | None:
    if bool(given.training_topics) != bool(given.training_judgements):
        raise UsageError("give both --training-topics and --training-judgements, or neither")
    if given.training_topics or "topics" in keys.given:
        if "folds" in keys.given and not given.training_topics:
            raise keys.wrong("folds", "or topics, not both, say what is tuned on")
        topics = _topics(keys, folder, given.training_topics, given.training_judgements)
        return TrainingPlan(0, "topics", replace(topics, sample=None), keys.sample, keys.measure)
    return TrainingPlan(keys.folds, keys.folds_by, None, keys.sample, keys.measure) if keys.given else None


def _comparison(keys: ComparisonKeys) -> ComparisonSettings:
    if keys.alpha >= 1:
        raise keys.wrong("alpha", "must be below 1")
    return ComparisonSettings(keys.test, keys.correction, keys.alpha)
