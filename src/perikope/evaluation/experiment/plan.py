"""Plans: what an experiment file says, every key checked before anything runs.

    title = "…"                     description = "…"
    measures = ["nDCG@10", "MAP(D)"]            the first is the main one
    k = 1000                        results a topic
    seed = 1

    [collection]                    index = FOLDER, or documents = [PATH, …] with format, language, stemmer, stopwords, segment
    [topics]                        file, judgements; form, field, judgement_form, sample, spans
    [training]                      folds = 5 [folds_by = "topics"|"documents"], or topics and judgements of its own; sample, measure
    [search]                        options of a search for all systems, as `SearchOptions` declares them
    [sweep]                         documents = [10, 50, 1000]
    [comparison]                    test, correction, alpha

    [[systems]]
    name = "…"
    model = "qsf_section(alpha,beta)"           or recipe = NAME|FILE, or run = FILE of another system
    tune = true                     or names of parameters, or { alpha = [0.1, 0.2], beta = true }; search = "random", trials
    learn = "fusion"                or "prior", "tags"; method = "linear"|"lambdamart", min_occurrences
    of = ["…", "…"]                 for fuse and rrf: the systems whose models are put together, as they were chosen
    options = { fetch = "pl2" }     of this system; they take precedence over those of its recipe, and these over [search]

Paths are relative to the file. Collection, topics and training may be given from outside instead, so that one file runs on any collection.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from perikope.browse.models import parse_model
from perikope.build.indexing import BuildOptions
from perikope.core.errors import InputError, PerikopeError, UsageError, unknown
from perikope.core.grammar import parse
from perikope.document.segmentation import segmenter
from perikope.evaluation.experiment.outcome import ComparisonSettings, slug
from perikope.evaluation.io.judgements import JUDGEMENT_FORMS
from perikope.evaluation.io.topics import TOPIC_FORMS
from perikope.evaluation.learning.validation import FoldsBy, Method
from perikope.evaluation.measures import parse_measure
from perikope.evaluation.tuning.space import Search, Space, Wanted, marked_parameters, read_space
from perikope.formats import format_named
from perikope.search.options import OPTIONS, RECIPE, SearchOptions, options_on
from perikope.search.recipes import SUFFIX, load_recipe
from perikope.text.analysis import STEMMERS, language_code, read_stopwords

MAX_BYTES = 1 << 20
PROTOCOLS = "protocols"
LEARN = ("fusion", "prior", "tags")
TESTS = ("t", "wilcoxon", "mannwhitney", "randomisation")
CORRECTIONS = ("holm", "bonferroni", "bh", "none")


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
    return [name for name in names if kind is None or tomllib.loads(protocol_text(name)).get("kind", "") == kind]


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
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError("is too large for an experiment", path=path)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read the experiment: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", path=path) from None
    return parse_plan(text, name, path.parent, given or Given())


_KEYS = (
    "title", "description", "measures", "k", "seed", "collection", "topics", "training", "search", "sweep", "comparison", "systems",
)  # fmt: skip


def parse_plan(text: str, path: str, folder: Path, given: Given | None = None) -> Plan:
    """The plan that a text in TOML describes; paths in it are relative to the folder."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"is not TOML: {error}", path=path) from None
    top = _Table(content, "", path)
    top.allow(_KEYS)
    chosen = given or Given()
    measures = tuple(top.texts("measures"))
    if not measures:
        raise top.wrong("measures", 'must name at least one measure, such as "nDCG@10"')
    top.check("measures", lambda: [parse_measure(measure) for measure in measures])
    if len(set(measures)) < len(measures):
        raise top.wrong("measures", "names a measure twice")
    k, seed = top.whole("k", 1000, 1), top.whole("seed", 1, 0)
    collection = _collection(top.table("collection"), folder, chosen)
    topics = _topics(top.table("topics"), folder, chosen.topics, chosen.judgements)
    training = _training(top, folder, chosen)
    common = _search_options(top.table("search"))
    sweep = top.table("sweep")
    sweep.allow(("documents",))
    if "documents" in sweep.values and not sweep.wholes("documents"):
        raise sweep.wrong("documents", "is empty: list how many documents are fetched, or leave [sweep] out")
    if sweep.values and "documents" in common:
        raise sweep.wrong("documents", "or that of [search], not both, says how many documents are fetched")
    documents = tuple(sweep.wholes("documents")) or (int(common.pop("documents", 1000)),)
    if len(set(documents)) < len(documents) or min(documents) < 1:
        raise sweep.wrong("documents", "must be different whole numbers of at least 1")
    common.pop("documents", None)
    comparison = _comparison(top.table("comparison"))
    tables = content.get("systems")
    if not isinstance(tables, list) or not tables:
        raise top.wrong("systems", "there must be at least one [[systems]]")
    systems: dict[str, SystemPlan] = {}
    for number, table in enumerate(tables, 1):
        if not isinstance(table, dict):
            raise top.wrong("systems", "must be tables: write [[systems]]")
        system = _system(_Table(table, f"system {number}", path), folder, common, seed, systems, training is not None)
        if slug(system.name) in {slug(other) for other in systems}:
            raise top.wrong(
                "systems", f"{system.name!r} and another one differ in no letter or digit: their files would have the same name"
            )
        systems[system.name] = system
    return Plan(
        top.text("title") or Path(path).stem, top.text("description"), measures, k, seed, collection, topics, training, documents,
        comparison, tuple(systems.values()), text, path, chosen,
    )  # fmt: skip


class _Table:
    """A table of the file, whose values are checked as they are asked for; what is wrong is named with file and key."""

    def __init__(self, values: Mapping[str, Any], where: str, path: str) -> None:
        self.values, self.where, self.path = values, where, path

    def wrong(self, key: str, what: str) -> InputError:
        name = f"[{self.where}] {key}" if self.where else key
        return InputError(f"{name} {what}", path=self.path)

    def check(self, key: str, action: Callable[[], Any]) -> Any:
        """What an action gives; its complaint is named with the key."""
        try:
            return action()
        except PerikopeError as error:
            raise self.wrong(key, f"is wrong: {error}") from error

    def allow(self, keys: Collection[str]) -> None:
        for key in self.values:
            if key not in keys:
                place = f"key in [{self.where}]" if self.where else "key of an experiment"
                raise InputError(str(unknown(place, key, keys)), path=self.path)

    def table(self, key: str) -> _Table:
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, f"must be a table: write [{key}]")
        return _Table(value, f"{self.where}.{key}" if self.where else key, self.path)

    def text(self, key: str, default: str = "") -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "must be text")
        return value

    def texts(self, key: str) -> list[str]:
        value = self.values.get(key, [])
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
            raise self.wrong(key, "must be a list of texts")
        return listed

    def one_of(self, key: str, valid: Sequence[str], default: str) -> str:
        value = self.text(key, default)
        if value not in valid:
            raise self.wrong(key, f"is wrong: {unknown(key, value, valid)}")
        return value

    def whole(self, key: str, default: int, least: int) -> int:
        value = self.values.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.wrong(key, f"must be a whole number of at least {least}")
        return value

    def wholes(self, key: str) -> list[int]:
        value = self.values.get(key, [])
        listed = value if isinstance(value, list) else [value]
        if not all(isinstance(one, int) and not isinstance(one, bool) for one in listed):
            raise self.wrong(key, "must be a list of whole numbers")
        return listed


def _collection(table: _Table, folder: Path, given: Given) -> CollectionPlan:
    table.allow(("index", "documents", "format", "language", "stemmer", "stopwords", "segment"))
    build = BuildOptions(
        format=_format(table, folder),
        language=table.text("language") or None,
        stemmer=table.text("stemmer") or None,
        stopwords=_stopwords(table, folder),
        segment=table.text("segment", "markup"),
    )
    table.check("segment", lambda: segmenter(build.segment))
    if build.stemmer:
        table.one_of("stemmer", STEMMERS, "")
    if build.language:
        table.check("language", lambda: language_code(build.language or ""))
    if build.format != "auto":
        table.check("format", lambda: format_named(build.format))
    if build.stopwords not in (None, "default", "none"):
        table.check("stopwords", lambda: read_stopwords(str(build.stopwords)))
    if given.index and given.documents:
        raise UsageError("give --index or --documents, not both")
    if given.index:
        return CollectionPlan(Path(given.index))
    if given.documents:
        return CollectionPlan(None, tuple(map(Path, given.documents)), build)
    index, documents = table.text("index"), table.texts("documents")
    if "documents" in table.values and not documents:
        raise table.wrong("documents", "is empty: name the files or folders that are indexed")
    if bool(index) == bool(documents):
        raise table.wrong("index", "or documents, one of them, must say what is searched (or --index, --documents)")
    if index:
        used = [key for key in ("format", "language", "stemmer", "stopwords", "segment") if key in table.values]
        if used:
            raise table.wrong(used[0], "is about documents that are indexed; an index has its settings")
        return CollectionPlan(folder / index)
    return CollectionPlan(None, tuple(folder / one for one in documents), build)


def _format(table: _Table, folder: Path) -> str:
    given = table.text("format", "auto")
    return str(folder / given) if given.endswith(SUFFIX) else given


def _stopwords(table: _Table, folder: Path) -> str | None:
    given = table.text("stopwords")
    return given or None if given in ("", "default", "none") else str(folder / given)


def _topics(table: _Table, folder: Path, topics: str = "", judgements: str = "") -> TopicsPlan:
    table.allow(("file", "judgements", "form", "field", "judgement_form", "sample", "spans"))
    file, judged = topics or _located(table.text("file"), folder), judgements or _located(table.text("judgements"), folder)
    for key, value, option in (("file", file, "--topics"), ("judgements", judged, "--judgements")):
        if not value:
            raise table.wrong(key, f"must name a file (or {option})")
    form = table.one_of("form", ("auto", *TOPIC_FORMS), "auto")
    judgement_form = table.one_of("judgement_form", ("auto", *JUDGEMENT_FORMS), "auto")
    return TopicsPlan(file, judged, form, table.text("field"), judgement_form, _sample(table), _located(table.text("spans"), folder))


def _located(name: str, folder: Path) -> str:
    return name if not name or name.startswith("irds:") else str(folder / name)


def _sample(table: _Table) -> int | None:
    return table.whole("sample", 1, 1) if "sample" in table.values else None


def _training(top: _Table, folder: Path, given: Given) -> TrainingPlan | None:
    table = top.table("training")
    table.allow(("folds", "folds_by", "topics", "judgements", "form", "field", "judgement_form", "sample", "spans", "measure"))
    if bool(given.training_topics) != bool(given.training_judgements):
        raise UsageError("give both --training-topics and --training-judgements, or neither")
    measure = table.text("measure")
    if measure:
        table.check("measure", lambda: parse_measure(measure))
    if given.training_topics or "topics" in table.values:
        if "folds" in table.values and not given.training_topics:
            raise table.wrong("folds", "or topics, not both, say what is tuned on")
        named = {"file": table.values.get("topics", ""), **{key: table.values[key] for key in _OF_TOPICS if key in table.values}}
        topics = _topics(_Table(named, "training", table.path), folder, given.training_topics, given.training_judgements)
        return TrainingPlan(0, "topics", topics, _sample(table), measure)
    if not table.values:
        return None
    folds_by = table.one_of("folds_by", get_args(FoldsBy), "topics")
    chosen: FoldsBy = "documents" if folds_by == "documents" else "topics"
    return TrainingPlan(table.whole("folds", 5, 2), chosen, None, _sample(table), measure)


_OF_TOPICS = ("judgements", "form", "field", "judgement_form", "spans")


def _comparison(table: _Table) -> ComparisonSettings:
    table.allow(("test", "correction", "alpha"))
    alpha = table.values.get("alpha", 0.05)
    if not isinstance(alpha, (int, float)) or isinstance(alpha, bool) or not 0 < alpha < 1:
        raise table.wrong("alpha", "must be a number between 0 and 1")
    return ComparisonSettings(table.one_of("test", TESTS, "t"), table.one_of("correction", CORRECTIONS, "holm"), float(alpha))


def _search_options(table: _Table) -> dict[str, Any]:
    """The options of a search that a table holds, each checked."""
    table.allow([name for name in options_on(RECIPE) if name not in ("model", "k")])
    options = {name: table.check(name, partial(OPTIONS[name].check, value)) for name, value in table.values.items()}
    if not isinstance(options.get("documents", 1), int):
        raise table.wrong("documents", "must be a whole number")
    return options


_OF_SYSTEM = ("name", "model", "recipe", "run", "tune", "search", "trials", "learn", "method", "min_occurrences", "of", "options")


def _system(
    table: _Table, folder: Path, common: Mapping[str, Any], seed: int, others: Mapping[str, SystemPlan], trains: bool
) -> SystemPlan:
    table.allow(_OF_SYSTEM)
    name = table.text("name")
    if not name.strip() or name in others:
        raise table.wrong("name", "must be a name of its own")
    table.where = f"system {name}"
    kinds = [kind for kind in ("model", "recipe", "run") if table.text(kind)]
    if not kinds or ("run" in kinds and len(kinds) > 1):
        raise table.wrong("model", "or recipe, or run, must say what the system is")
    if kinds == ["run"]:
        if extra := [key for key in table.values if key not in ("name", "run")]:
            raise table.wrong(extra[0], "is not for a run that is there already")
        return SystemPlan(name, run=folder / table.text("run"))
    recipe = table.text("recipe")
    recipe = str(folder / recipe) if recipe.endswith(SUFFIX) else recipe
    loaded = table.check("recipe", lambda: load_recipe(recipe)) if recipe else None
    own = dict(loaded.options) if loaded is not None else {}
    model = table.text("model") or str(own.get("model", ""))
    given = table.table("options")
    if "documents" in given.values:
        raise given.wrong("documents", "is the same for all systems: say it in [sweep], or in [search]")
    options = {**common, **own, **_search_options(given)}
    for key in ("model", "k", "documents"):
        options.pop(key, None)
    system = SystemPlan(name, model, recipe, options=options)
    if table.values.get("tune", False) is not False:
        return _tuned(table, system, seed, trains)
    if extra := [key for key in ("search", "trials") if key in table.values]:
        raise table.wrong(extra[0], "is about tuning; write tune = true as well")
    if "of" in table.values:
        return _put_together(table, system, others)
    _check_model(table, model)
    if "learn" not in table.values:
        if extra := [key for key in ("method", "min_occurrences") if key in table.values]:
            raise table.wrong(extra[0], "is about learning; say what is learned: learn = …")
        return system
    return _learned(table, system, trains)


def _check_model(table: _Table, model: str) -> None:
    try:
        parse_model(model)
    except PerikopeError as error:
        if marked := table.check("model", lambda: marked_parameters(model)):
            raise table.wrong("model", f"names what is to be tuned ({', '.join(marked)}): add tune = true, or give each a value") from error
        raise table.wrong("model", f"is wrong: {error}") from error


def _tuned(table: _Table, system: SystemPlan, seed: int, trains: bool) -> SystemPlan:
    if "learn" in table.values or "of" in table.values:
        raise table.wrong("tune", "does not go with learn or of")
    if not trains:
        raise table.wrong("tune", "needs topics to tune on: write [training] with folds, or with topics and judgements")
    tune = table.values["tune"]
    if not isinstance(tune, (bool, list, dict)) or (isinstance(tune, list) and not all(isinstance(one, str) for one in tune)):
        raise table.wrong("tune", "must be true, a list of parameters, or a table of the values to try")
    wanted: Wanted = tune
    search: Search = "random" if table.one_of("search", get_args(Search), "grid") == "random" else "grid"
    trials = table.whole("trials", 100, 1)
    # A recipe's model has a value for everything, which nobody has asked to be kept.
    keep = bool(table.text("model"))
    space = table.check("tune", lambda: read_space(system.model, wanted, search=search, trials=trials, seed=seed, keep_given=keep))
    return replace(system, space=space)


def _put_together(table: _Table, system: SystemPlan, others: Mapping[str, SystemPlan]) -> SystemPlan:
    of = tuple(table.texts("of"))
    for other in of:
        if other not in others:
            raise table.wrong("of", f"is wrong: {unknown('system above this one', other, others)}")
        if others[other].run is not None or others[other].learn == "fusion" or others[other].of:
            raise table.wrong("of", f"cannot hold {other!r}: only models are put together, not runs, what was learned, or other fusions")
    call = table.check("model", lambda: parse(system.model))
    if call.name not in ("fuse", "rrf") or "models" in call.arguments:
        raise table.wrong("model", "must be fuse or rrf, without models, where of says which systems")
    if len(of) < 2:
        raise table.wrong("of", "must name at least two systems")
    return replace(system, of=of)


def _learned(table: _Table, system: SystemPlan, trains: bool) -> SystemPlan:
    learn = table.one_of("learn", LEARN, "")
    if not trains:
        raise table.wrong("learn", "needs topics to learn from: write [training] with folds, or with topics and judgements")
    name = parse(system.model).name
    wanted = {"fusion": ("learned",), "prior": ("position_prior",), "tags": ("prox_h", "prox_hw")}[learn]
    if name not in wanted:
        raise table.wrong("model", f"must be {' or '.join(wanted)} where {learn} is learned, not {name}")
    for key, of in (("method", "fusion"), ("min_occurrences", "tags")):
        if key in table.values and learn != of:
            raise table.wrong(key, f"is about learn = {of!r}")
    method: Method = "lambdamart" if table.one_of("method", get_args(Method), "linear") == "lambdamart" else "linear"
    return replace(system, learn=learn, method=method, min_occurrences=table.whole("min_occurrences", 10, 0))
