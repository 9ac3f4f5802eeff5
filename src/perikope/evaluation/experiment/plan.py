"""Plans: an experiment's file, every key checked before anything runs. `plan_keys` declares the keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from perikope.browse.models import parse_model
from perikope.build.indexing import BuildOptions
from perikope.core.configuration import SUFFIX, parse_toml, read_text
from perikope.core.errors import InputError, PerikopeError, UsageError, unknown
from perikope.core.grammar import parse
from perikope.evaluation.experiment.outcome import ComparisonSettings, slug
from perikope.evaluation.experiment.plan_keys import (
    CollectionKeys,
    ComparisonKeys,
    ExperimentKeys,
    SystemKeys,
    TopicsKeys,
    TrainingKeys,
)
from perikope.evaluation.learning.validation import FoldsBy, Method
from perikope.evaluation.tuning.space import Space, marked_parameters, read_space
from perikope.formats import format_named
from perikope.search.options import SearchOptions
from perikope.search.recipes import load_recipe
from perikope.text.analysis import read_stopwords

PROTOCOLS = "protocols"


@dataclass(frozen=True, slots=True)
class CollectionPlan:
    """The documents: an index, or what it is made of."""

    index: Path | None = None
    documents: tuple[Path, ...] = ()
    build: BuildOptions = field(default_factory=BuildOptions)


@dataclass(frozen=True, slots=True)
class TopicsPlan:
    """Topics and their judgements."""

    file: str
    judgements: str
    form: str = "auto"
    field: str = ""
    judgement_form: str = "auto"
    sample: int | None = None
    """So many of them, drawn; None: all."""
    spans: str = ""
    """Judgements of characters, for measures of characters."""

    @property
    def text(self) -> tuple[str, str]:
        """The file that says which text is relevant, and its form; without spans, all of what is judged relevant."""
        return (self.spans, "auto") if self.spans else (self.judgements, self.judgement_form)


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """What parameters are chosen on: topics of their own, or the other folds of those reported."""

    folds: int = 0
    folds_by: FoldsBy = "topics"
    topics: TopicsPlan | None = None
    sample: int | None = None
    """So many topics are tuned on and learned from, drawn from all."""
    measure: str = ""
    """What tuning raises; the experiment's main measure where it is empty."""


@dataclass(frozen=True, slots=True)
class SystemPlan:
    """One system."""

    name: str
    model: str = ""
    recipe: str = ""
    run: Path | None = None
    space: Space | None = None
    learn: str = ""
    method: Method = "linear"
    min_occurrences: int = 10
    of: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """All that were given, those of the recipe and of the experiment included, without model, k and documents that are swept."""

    def search_options(self, documents: int, k: int) -> SearchOptions:
        """The options of its searches with so many documents fetched; what ranks is chosen elsewhere."""
        return SearchOptions.of({**self.options, "documents": documents, "k": k})


@dataclass(frozen=True, slots=True)
class Plan:
    """An experiment, ready to run."""

    title: str
    description: str
    measures: tuple[str, ...]
    k: int
    seed: int
    collection: CollectionPlan
    topics: TopicsPlan
    training: TrainingPlan | None
    documents: tuple[int, ...]
    """How many documents are fetched, one sweep each."""
    comparison: ComparisonSettings
    systems: tuple[SystemPlan, ...]
    source: str = ""
    """The text of the file."""
    path: str = ""
    """Its name, for what can only be found wrong once other files are read."""
    given: Given = field(default_factory=lambda: Given())
    """What the command line said instead."""

    def wrong(self, table: str, what: str) -> InputError:
        """The error for a table of the file."""
        return InputError(f"[{table}] {what}", path=self.path or None)

    @contextmanager
    def reading(self, table: str, key: str, option: str = "") -> Iterator[None]:
        """Names what is wrong with what a key names by that key, or where the command line said it by its option."""
        try:
            yield
        except PerikopeError as error:
            said = str(error)
            for name, own in _KEY_OF_OPTION.items():
                said = said.replace(name, f"{own} in [{table}]")
            if option and getattr(self.given, option):
                raise UsageError(f"--{option.replace('_', '-')} is wrong: {said}") from error
            raise self.wrong(table, f"{key} is wrong: {said}") from error


_KEY_OF_OPTION = {"--topic-format": "form", "--topic-field": "field", "--qrels-format": "judgement_form"}
"""What readers of files advise, by the names that an experiment has for it."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says in place of the file."""

    index: str = ""
    documents: tuple[str, ...] = ()
    topics: str = ""
    judgements: str = ""
    training_topics: str = ""
    training_judgements: str = ""


def protocol_names(kind: str | None = None) -> list[str]:
    """The experiment files that come with the program, the protocols of the papers: all, or those of a kind ("": lexical)."""
    folder = resources.files("perikope.search.recipes").joinpath(PROTOCOLS)
    names = sorted(file.name.removesuffix(SUFFIX) for file in folder.iterdir() if file.name.endswith(SUFFIX))
    return [name for name in names if kind is None or parse_toml(protocol_text(name), name).get("kind", "") == kind]


def protocol_text(name: str) -> str:
    """The file of a protocol."""
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
    keys = ExperimentKeys.parse(text, path, "an experiment")
    chosen = given or Given()
    if not keys.measures:
        raise keys.wrong("measures", 'must name at least one measure, such as "nDCG@10"')
    if len(set(keys.measures)) < len(keys.measures):
        raise keys.wrong("measures", "names a measure twice")
    training = _training(keys.training, folder, chosen)
    return Plan(
        title=keys.title or Path(path).stem,
        description=keys.description,
        measures=keys.measures,
        k=keys.k,
        seed=keys.seed,
        collection=_collection(keys.collection, folder, chosen),
        topics=_topics(keys.topics, folder, chosen.topics, chosen.judgements),
        training=training,
        documents=_documents(keys),
        comparison=_comparison(keys.comparison),
        systems=_systems(keys, folder, trains=training is not None),
        source=text,
        path=path,
        given=chosen,
    )


def _documents(keys: ExperimentKeys) -> tuple[int, ...]:
    """The numbers of documents to fetch, one per sweep."""
    sweep, common = keys.sweep, keys.search.get("documents", 1000)
    if "documents" in sweep.given and not sweep.documents:
        raise sweep.wrong("documents", "is empty: list how many documents are fetched, or leave [sweep] out")
    if sweep.documents and "documents" in keys.search:
        raise sweep.wrong("documents", "or that of [search], not both, says how many documents are fetched")
    if len(set(sweep.documents)) < len(sweep.documents):
        raise sweep.wrong("documents", "must be different whole numbers")
    if not isinstance(common, int):
        raise keys.location.inner("search").wrong("documents", "must be a whole number")
    return sweep.documents or (common,)


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
    if of_build := sorted(keys.given - {"index", "documents"}):
        raise keys.wrong(of_build[0], "is about documents that are indexed; an index has its settings")
    return CollectionPlan(folder / keys.index)


def _topics(keys: TopicsKeys | TrainingKeys, folder: Path, topics: str, judgements: str) -> TopicsPlan:
    """The topics of a table; those of the command line take precedence."""
    key, option = ("file", "--") if isinstance(keys, TopicsKeys) else ("topics", "--training-")
    file = topics or _located(getattr(keys, key), folder)
    judged = judgements or _located(keys.judgements, folder)
    for name, value, given_by in ((key, file, "topics"), ("judgements", judged, "judgements")):
        if not value:
            raise keys.wrong(name, f"must name a file (or {option}{given_by})")
    return TopicsPlan(file, judged, keys.form, keys.field, keys.judgement_form, keys.sample, _located(keys.spans, folder))


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


def _systems(keys: ExperimentKeys, folder: Path, *, trains: bool) -> tuple[SystemPlan, ...]:
    """The systems; each may refer to those above it."""
    if not keys.systems:
        raise keys.wrong("systems", "there must be at least one [[systems]]")
    systems: dict[str, SystemPlan] = {}
    for system_keys in keys.systems:
        system = _system(system_keys, folder, keys, systems, trains)
        if slug(system.name) in {slug(other) for other in systems}:
            raise keys.wrong(
                "systems", f"{system.name!r} and another one differ in no letter or digit: their files would have the same name"
            )
        systems[system.name] = system
    return tuple(systems.values())


def _system(keys: SystemKeys, folder: Path, experiment: ExperimentKeys, others: Mapping[str, SystemPlan], trains: bool) -> SystemPlan:
    if not keys.name.strip() or keys.name in others:
        raise keys.wrong("name", "must be a name of its own")
    if keys.run and not keys.model and not keys.recipe:
        if extra := sorted(keys.given - {"name", "run"}):
            raise keys.wrong(extra[0], "is not for a run that is there already")
        return SystemPlan(keys.name, run=folder / keys.run)
    if keys.run or not (keys.model or keys.recipe):
        raise keys.wrong("model", "or recipe, or run, must say what the system is")
    system = _searching(keys, folder, experiment.search)
    if keys.tune is not False:
        return _tuned(keys, system, experiment.seed, trains)
    if extra := [key for key in ("search", "trials") if key in keys.given]:
        raise keys.wrong(extra[0], "is about tuning; write tune = true as well")
    if "of" in keys.given:
        return _put_together(keys, system, others)
    _check_model(keys, system.model)
    if "learn" in keys.given:
        return _learned(keys, system, trains)
    if extra := [key for key in ("method", "min_occurrences") if key in keys.given]:
        raise keys.wrong(extra[0], "is about learning; say what is learned: learn = …")
    return system


def _searching(keys: SystemKeys, folder: Path, common: Mapping[str, Any]) -> SystemPlan:
    """A system with its model and the options of its searches, before anything is tuned or learned."""
    recipe = str(folder / keys.recipe) if keys.recipe.endswith(SUFFIX) else keys.recipe
    of_recipe = keys.check("recipe", lambda: load_recipe(recipe)).options if recipe else {}
    if "documents" in keys.options:
        raise keys.location.inner("options").wrong("documents", "is the same for all systems: say it in [sweep], or in [search]")
    options = {**common, **of_recipe, **keys.options}
    model = keys.model or str(options.get("model", ""))
    return SystemPlan(
        keys.name, model, recipe, options={name: options[name] for name in options if name not in ("model", "k", "documents")}
    )


def _check_model(keys: SystemKeys, model: str) -> None:
    try:
        parse_model(model)
    except PerikopeError as error:
        if marked := keys.check("model", lambda: marked_parameters(model)):
            raise keys.wrong("model", f"names what is to be tuned ({', '.join(marked)}): add tune = true, or give each a value") from error
        raise keys.wrong("model", f"is wrong: {error}") from error


def _tuned(keys: SystemKeys, system: SystemPlan, seed: int, trains: bool) -> SystemPlan:
    if keys.given & {"learn", "of"}:
        raise keys.wrong("tune", "does not go with learn or of")
    if not trains:
        raise keys.wrong("tune", "needs topics to tune on: write [training] with folds, or with topics and judgements")
    # A recipe gives every parameter of its model a value, which the user has not asked to keep.
    space = keys.check(
        "tune",
        lambda: read_space(system.model, keys.tune, search=keys.search, trials=keys.trials, seed=seed, keep_given=bool(keys.model)),
    )
    return replace(system, space=space)


def _put_together(keys: SystemKeys, system: SystemPlan, others: Mapping[str, SystemPlan]) -> SystemPlan:
    for other in keys.of:
        if other not in others:
            raise keys.wrong("of", f"is wrong: {unknown('system above this one', other, others)}")
        if others[other].run is not None or others[other].learn == "fusion" or others[other].of:
            raise keys.wrong("of", f"cannot hold {other!r}: only models are put together, not runs, what was learned, or other fusions")
    call = keys.check("model", lambda: parse(system.model))
    if call.name not in ("fuse", "rrf") or "models" in call.arguments:
        raise keys.wrong("model", "must be fuse or rrf, without models, where of says which systems")
    if len(keys.of) < 2:
        raise keys.wrong("of", "must name at least two systems")
    return replace(system, of=keys.of)


_LEARNERS = {"fusion": ("learned",), "prior": ("position_prior",), "tags": ("prox_h", "prox_hw")}
"""The models whose table can be learned, by what is learned."""


def _learned(keys: SystemKeys, system: SystemPlan, trains: bool) -> SystemPlan:
    if not keys.learn:
        raise keys.wrong("learn", f"is empty; write one of {', '.join(_LEARNERS)}, or leave it out")
    if not trains:
        raise keys.wrong("learn", "needs topics to learn from: write [training] with folds, or with topics and judgements")
    name, models = parse(system.model).name, _LEARNERS[keys.learn]
    if name not in models:
        raise keys.wrong("model", f"must be {' or '.join(models)} where {keys.learn} is learned, not {name}")
    for key, learn in (("method", "fusion"), ("min_occurrences", "tags")):
        if key in keys.given and keys.learn != learn:
            raise keys.wrong(key, f"is about learn = {learn!r}")
    return replace(system, learn=keys.learn, method=keys.method, min_occurrences=keys.min_occurrences)
