"""Reads an experiment file into a `Plan` and checks every key before anything runs. `plan_keys` declares the keys.

A file has one collection with one set of topics (`[collection]`, `[topics]`), or several named collections
(`[collections.NAME]`, `report_on`). A plan has the same form in both cases: the single collection is called
`collection`, its reported topics `topics` and its training topics `training`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from perikope.build.indexing import BuildOptions
from perikope.core.configuration import SUFFIX, Location, Table, parse_toml, read_text
from perikope.core.errors import InputError, MissingExtra, PerikopeError, UsageError, unknown
from perikope.evaluation.depth import Depth, depth_of
from perikope.evaluation.experiment.kinds import SystemKind, system_kind
from perikope.evaluation.experiment.outcome import ComparisonSettings, slug
from perikope.evaluation.experiment.plan_keys import (
    CollectionKeys,
    ComparisonKeys,
    ExperimentKeys,
    JudgedTopicsKeys,
    RepeatedExperimentKeys,
    TopicsKeys,
    TrainingKeys,
)
from perikope.evaluation.experiment.plan_parts import CollectionPlan, Given, SystemPlan, TopicSet, TopicsPlan, TrainingPlan
from perikope.evaluation.experiment.plan_systems import read_systems
from perikope.evaluation.experiment.published import PublishedTable, read_published
from perikope.evaluation.measures import parse_measures
from perikope.formats import format_named
from perikope.search.recipes import ExpectsKeys
from perikope.text.analysis import language_code, read_stopwords

PROTOCOLS = "protocols"
COLLECTION, TOPICS, TRAINING = "collection", "topics", "training"
"""Names of the collection, the reported topics and the training topics in a file with a single collection."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked experiment file, combined with the options of the command line."""

    title: str
    description: str
    measures: tuple[str, ...]
    """The names of the measures to report, the main measure first."""
    depth: Depth
    """Number of results per topic."""
    seed: int
    """Seed of samples, folds and random search."""
    collections: Mapping[str, CollectionPlan]
    sets: tuple[TopicSet, ...]
    """The sets of topics that are reported."""
    documents: tuple[int, ...]
    """Numbers of documents to fetch. All systems run once with each number; such a pass is a sweep."""
    comparison: ComparisonSettings
    expects: Mapping[str, str]
    """Settings that indexes should have been made with, by name."""
    systems: tuple[SystemPlan, ...]
    published: tuple[PublishedTable, ...] = ()
    """Tables of the paper that the experiment repeats."""
    names_sets: bool = False
    """Whether labels and file names contain the names of the sets of topics."""
    kind: str = ""
    """The name of the kind of its rankers. Empty if there are no rankers."""
    shared: Any = None
    """The settings that all rankers share. None if there are no rankers."""
    earlier: Path | None = None
    """A folder with `values/` of jobs that were finished before, maybe on another machine."""
    content: Mapping[str, Any] = field(default_factory=dict)
    """The parsed content of the file."""
    source: str = ""
    """The text of the file. Empty if the plan was read from `prepared.json`."""
    path: str = ""
    """The name of the file, for error messages."""
    given: Given = field(default_factory=Given)
    """The options of the command line."""

    @property
    def rankers(self) -> tuple[SystemPlan, ...]:
        """The systems that are rankers, which run as jobs."""
        return tuple(system for system in self.systems if system.ranker is not None)

    def system(self, name: str) -> SystemPlan:
        """The system with a name."""
        return next(system for system in self.systems if system.name == name)

    def fusions_of(self, name: str) -> list[tuple[SystemPlan, SystemPlan]]:
        """The fusions that contain a ranker. Returns each fusion with the other system that it fuses."""
        fusions = [system for system in self.systems if system.fuses and name in system.of]
        return [(fusion, self.system(next(part for part in fusion.of if part != name))) for fusion in fusions]

    @property
    def is_protocol(self) -> bool:
        """Whether the plan is a protocol of the package, not a file of the user."""
        name = self.path.removesuffix(SUFFIX)
        return name in protocol_names() and self.source == protocol_text(name)

    def label(self, topics: TopicSet, documents: int) -> str:
        """The title of the sweep over a set of topics with a number of fetched documents."""
        fetched = f"{documents} document{'' if documents == 1 else 's'} fetched"
        if not self.names_sets:
            return fetched
        return topics.name if len(self.documents) == 1 else f"{topics.name}, {fetched}"

    def wrong(self, table: str, what: str) -> InputError:
        """Make the error for a table of the file; `what` is its message."""
        return InputError(f"[{table}] {what}", path=self.path or None)

    @contextmanager
    def reading(self, table: str, key: str, option: str = "") -> Iterator[None]:
        """Add the table and key to errors inside the `with` block, or the command-line option that replaces the key."""
        try:
            yield
        except PerikopeError as error:
            message = str(error)
            for name, key_of_option in _KEY_OF_OPTION.items():
                message = message.replace(name, f"{key_of_option} in [{table}]")
            if option and getattr(self.given, option):
                raise UsageError(f"--{option.replace('_', '-')} is wrong: {message}") from error
            raise self.wrong(table, f"{key} is wrong: {message}") from error


_KEY_OF_OPTION = {
    "--topic-format": "form",
    "--topic-field": "field",
    "--qrels-format": "judgement_form",
    "--format": "format",
    "--languages": "languages",
}
"""Command-line options in messages of file readers, with the keys of an experiment file that replace them."""


def protocol_names() -> list[str]:
    """The names of the protocols, experiment files of published papers that are part of the package."""
    folder = resources.files("perikope.search.recipes").joinpath(PROTOCOLS)
    return sorted(file.name.removesuffix(SUFFIX) for file in folder.iterdir() if file.name.endswith(SUFFIX))


def protocol_text(name: str) -> str:
    """The TOML text of a protocol."""
    if name not in (names := protocol_names()):
        raise unknown("protocol", name, [*names, f"a file that ends in {SUFFIX}"])
    return resources.files("perikope.search.recipes").joinpath(PROTOCOLS, f"{name}{SUFFIX}").read_text("utf-8")


def load_plan(name: str, given: Given | None = None) -> Plan:
    """Read the plan of an experiment file, if `name` ends in `.toml`, or of the protocol with this name."""
    if not name.endswith(SUFFIX):
        return parse_plan(protocol_text(name), f"{name}{SUFFIX}", Path(), given or Given())
    path = Path(name)
    return parse_plan(read_text(path, "an experiment"), name, path.parent, given or Given())


def parse_plan(text: str, path: str, folder: Path, given: Given | None = None) -> Plan:
    """Read a plan from TOML text. Paths in the text are relative to `folder`; `path` is used in error messages."""
    return plan_of(parse_toml(text, path), path, folder, given, text)


def plan_of(content: Mapping[str, Any], path: str, folder: Path, given: Given | None = None, source: str = "") -> Plan:
    """Read a plan from the parsed content of a file. Paths in it are relative to `folder`.

    `path` is used in error messages. `source` is the text of the file.
    """
    chosen, location = given or Given(), Location(path, "an experiment")
    kind = _kind(content, location)
    if chosen.translate:
        content = {**content, "search": {**_table(content, "search", location), "translator": chosen.translate}}
    if chosen.encoder:
        if kind is None:
            raise UsageError("--encoder applies to neural rankers only, and this experiment has none; leave --encoder out")
        content = {**content, "encoder": chosen.encoder}
    keys: ExperimentKeys = (ExperimentKeys if kind is None else kind.keys).read(content, location)
    if not keys.measures:
        raise keys.wrong("measures", 'must name at least one measure, such as "nDCG@10"')
    if len(set(keys.measures)) < len(keys.measures):
        raise keys.wrong("measures", "names a measure twice; list each measure once")
    training = _training(keys.training, folder, chosen) if isinstance(keys.training, TrainingKeys) else None
    collections = _collections(keys, folder, chosen, training)
    sets = _sets(keys, collections, training)
    shared = None if kind is None else kind.read(keys, collections)
    systems = read_systems(keys, folder, sets, kind, shared)
    documents = keys.documents_to_fetch()
    return Plan(
        title=keys.title or Path(path).stem,
        description=keys.description,
        measures=keys.measures,
        depth=depth_of(parse_measures(keys.measures), keys.k),
        seed=keys.seed,
        collections=collections,
        sets=sets,
        documents=documents,
        comparison=_comparison(keys.comparison, systems),
        expects=keys.expects.values,
        systems=systems,
        published=read_published(keys, systems, sets, documents if kind is None else ()),
        names_sets=bool(keys.collections) or kind is not None,
        kind=keys.kind,
        shared=shared,
        earlier=_earlier(keys, folder),
        content=content,
        source=source,
        path=path,
        given=chosen,
    )


def _table(content: Mapping[str, Any], name: str, location: Location) -> Mapping[str, Any]:
    value = content.get(name, {})
    if not isinstance(value, dict):
        raise location.wrong(name, "must be a table")
    return value


def _earlier(keys: ExperimentKeys, folder: Path) -> Path | None:
    """The folder of an earlier experiment whose finished jobs are reused; None if the file names none."""
    if not isinstance(keys, RepeatedExperimentKeys) or not keys.values:
        return None
    if not (folder / keys.values).is_dir():
        raise keys.wrong("values", f"is wrong: there is no folder {folder / keys.values}; correct the path, or remove the key")
    return folder / keys.values


def _kind(content: Mapping[str, Any], location: Location) -> SystemKind | None:
    name = content.get("kind", "")
    if not isinstance(name, str):
        raise location.wrong("kind", "must be text")
    if not name:
        return None
    try:
        return system_kind(name)
    except MissingExtra as error:
        raise location.error(f"kind = {name!r}: {error}") from None
    except UsageError as error:
        raise location.wrong("kind", f"is wrong: {error}") from None


def _collections(keys: ExperimentKeys, folder: Path, given: Given, training: TrainingPlan | None) -> dict[str, CollectionPlan]:
    """The collections of a file, by name."""
    if not keys.collections:
        alone = _collection(keys.collection, keys.expects, folder, given)
        topics = {TOPICS: _topics(keys.topics, folder, given.topics, given.judgements)}
        if training is not None and training.topics is not None:
            topics[TRAINING] = training.topics
        elif given.training_topics and given.training_judgements:
            topics[TRAINING] = TopicsPlan(
                given.training_topics,
                given.training_judgements,
                language=keys.topics.language,
                options=("training_topics", "training_judgements"),
            )
        return {COLLECTION: replace(alone, topics=topics)}
    if given.options:
        raise UsageError(f"{', '.join(given.options)}: {keys.location.path} names its collections and topics itself; leave the option out")
    if of_one := sorted(keys.given & {"collection", "topics"}):
        raise keys.wrong(of_one[0], "is for a file with one collection, but this file has [collections]; remove one of the two")
    plans = {}
    for name, collection in keys.collections.items():
        table = collection.location.table
        if wrong := [word for word in (name, *collection.topics) if not _NAME.fullmatch(word)]:
            raise keys.wrong("collections", f"has a wrong name: {wrong[0]!r}; use letters, digits, points, _ and -")
        topics = {set_name: _topics(topic_keys, folder, "", "") for set_name, topic_keys in collection.topics.items()}
        topics = {
            set_name: replace(plan, location=(f"{table}.topics.{set_name}", "file"), options=("", "")) for set_name, plan in topics.items()
        }
        plans[name] = replace(_collection(collection, keys.expects, folder, Given()), topics=topics, table=table)
    return plans


_NAME = re.compile(r"\w[\w.-]*")
"""Valid names of collections and sets of topics. The names become parts of file names."""


def _sets(keys: ExperimentKeys, collections: Mapping[str, CollectionPlan], training: TrainingPlan | None) -> tuple[TopicSet, ...]:
    """The reported sets of topics, each with its training topics."""
    names = keys.report_on or (() if keys.collections else (f"{COLLECTION}/{TOPICS}",))
    if not names:
        raise keys.wrong("report_on", 'must name the sets of topics that are reported, such as ["collection/set"]')
    if len({slug(name) for name in names}) < len(names):
        raise keys.wrong("report_on", "names a set twice, or two sets whose names differ in no letter or digit; rename one of them")
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
    """Raise an error if a key names a set of topics that no collection has."""
    known = [f"{collection}/{topics}" for collection, plan in collections.items() for topics in plan.topics]
    for name in names:
        if name not in known:
            hint = "; give --training-topics and --training-judgements" if name == f"{COLLECTION}/{TRAINING}" else ""
            raise keys.wrong(key, f"is wrong: {unknown('set of topics', name, known)}{hint}")


def _collection(keys: CollectionKeys, expects: ExpectsKeys, folder: Path, given: Given) -> CollectionPlan:
    """The plan of a collection. `expects` has the settings of the index that the collection does not give."""
    form = str(folder / keys.format) if keys.format.endswith(SUFFIX) else keys.format
    if form != "auto":
        keys.check("format", lambda: format_named(form))
    stopwords = keys.stopwords if keys.stopwords in ("", "default", "none") else str(folder / keys.stopwords)
    if stopwords not in ("", "default", "none"):
        keys.check("stopwords", lambda: read_stopwords(stopwords))
    keys.check("languages", lambda: [language_code(language) for language in keys.languages])
    build = BuildOptions(
        format=form,
        language=keys.language or expects.language or None,
        stemmer=keys.stemmer or expects.stemmer or None,
        stopwords=stopwords or expects.stopwords or None,
        segment=keys.segment,
        languages=keys.languages,
        # Which of two documents is indexed must not be left to chance: a collection has each id once.
        duplicates="error",
    )
    if given.index and given.documents:
        raise UsageError("give --index or --documents, not both")
    if given.index:
        return CollectionPlan(Path(given.index), build=build)
    if given.documents:
        return CollectionPlan(None, tuple(map(Path, given.documents)), build)
    if "documents" in keys.given and not keys.documents:
        raise keys.wrong("documents", "is empty; name the files or folders to index")
    if bool(keys.index) == bool(keys.documents):
        raise keys.wrong("index", "or documents must be given, but not both (or --index, --documents)")
    if not keys.index:
        return CollectionPlan(None, tuple(folder / path for path in keys.documents), build)
    if of_build := sorted(keys.given - {"index", "documents", "topics"}):
        raise keys.wrong(of_build[0], "does not apply to an existing index; remove it, or give documents in place of index")
    return CollectionPlan(folder / keys.index)


def _topics(keys: JudgedTopicsKeys, folder: Path, topics: str, judgements: str) -> TopicsPlan:
    """The topics of a table. `topics` and `judgements` are paths from the command line, which take precedence."""
    key, prefix = ("file", "") if isinstance(keys, TopicsKeys) else ("topics", "training_")
    file = topics or _located(getattr(keys, key), folder)
    judged = judgements or _located(keys.judgements, folder)
    for name, value, given_by in ((key, file, "topics"), ("judgements", judged, "judgements")):
        if not value:
            hint = "" if keys.location.table.startswith("collections.") else f" (or --{prefix.replace('_', '-')}{given_by})"
            raise keys.wrong(name, f"must name a file{hint}")
    location, options = (keys.location.table, key), (f"{prefix}topics", f"{prefix}judgements")
    spans = _located(keys.spans, folder)
    return TopicsPlan(file, judged, keys.form, keys.field, keys.judgement_form, keys.language, keys.sample, spans, location, options)


def _located(name: str, folder: Path) -> str:
    return name if not name or name.startswith("irds:") else str(folder / name)


def _training(keys: TrainingKeys, folder: Path, given: Given) -> TrainingPlan | None:
    if bool(given.training_topics) != bool(given.training_judgements):
        raise UsageError("give both --training-topics and --training-judgements, or neither")
    if "ids" in keys.given and not keys.ids:
        raise keys.wrong("ids", "is empty; name ids of training topics, or remove the key")
    if given.training_topics or "topics" in keys.given:
        if "folds" in keys.given and not given.training_topics:
            raise keys.wrong("folds", "cannot be combined with topics; remove one of the two")
        topics = _topics(keys, folder, given.training_topics, given.training_judgements)
        return TrainingPlan(0, "topics", replace(topics, sample=None), sample=keys.sample, measure=keys.measure)
    return TrainingPlan(keys.folds, keys.folds_by, None, keys.ids, keys.sample, keys.measure) if keys.given else None


def _comparison(keys: ComparisonKeys, systems: Sequence[SystemPlan]) -> ComparisonSettings:
    if keys.alpha >= 1:
        raise keys.wrong("alpha", "must be below 1")
    names = [name for system in systems for name in (system.name, *system.derived)]
    if keys.reference and keys.reference not in names:
        raise keys.wrong("reference", f"is wrong: {unknown('system', keys.reference, names)}")
    return ComparisonSettings(keys.test, keys.correction, keys.alpha, keys.reference)
