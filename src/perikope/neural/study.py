"""A study of neural rankers: systems, trained with several seeds each, measured on topics that none of them has seen.

A file says which (`experiments/neural.toml` is one); `prepare` makes of it a folder that holds all that is needed, so that training can
go on elsewhere, on a machine with a GPU and without an index:

    study.json          the file's content
    collections/NAME    texts, graphs and topics
    runs/…              the runs of other systems that are compared
    values/JOB.json     what a job came to: a job is a system and a seed

`run_jobs` does what is missing there, several jobs at a time. A job depends on its settings and its seed alone.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import queue
import time
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from inspect import signature
from multiprocessing.context import SpawnProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from perikope.browse.models import parse_model
from perikope.core.arrays import Floats, Floats32, Integers, Mask
from perikope.core.errors import InputError, PerikopeError, UsageError, unknown
from perikope.core.files import replacing
from perikope.evaluation.folds import fold_of_documents, group_of_topic
from perikope.evaluation.io.runs import Run, read_run
from perikope.evaluation.measures import parse_measure
from perikope.neural.collection import Collection, join_graphs
from perikope.neural.encoder import DEFAULT, DIMENSION, Encoder, keeping_random_state
from perikope.neural.hgat import HGAT, LATE_FUSION, OWN_FORM, LateFusion
from perikope.neural.training import ContextRanker, TrainableRanker, Trainer, TrainingSettings, interpolate
from perikope.neural.triples import Topics, join_texts, join_topics

CONTENT, COLLECTIONS, RUNS, VALUES = "study.json", "collections", "runs", "values"
PASSAGES, QUERIES = "passages", "queries"
DEPTH = 200
"""Results of a topic that are measured."""
SHARES = tuple(step / 20 for step in range(21))
"""Of a neural system in a fusion; the best on other topics is taken."""
FUSION_FOLDS = 5


@dataclass(frozen=True, slots=True)
class StudySystem:
    """One system: a neural ranker, runs of another system, or a fusion of both."""

    name: str
    seeds: int = 1
    trained: bool = True
    dimension: int = DIMENSION
    train_on: tuple[str, ...] = ()
    """Sets of topics, as `collection/set`; those of the study where none are given."""
    folds: int = 0
    """Trained on the topics that are reported, each on those of the other folds: topics that share a relevant document stay together."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Settings of training that are other than the study's."""
    variant: str = ""
    """Of graph attention; none where it is empty."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """Settings of graph attention: layers, dropout, residual …"""
    late_fusion: bool | None = None
    """Whether content and context are fused late; where not said, for the variants that have no content of their own."""
    kept: float = 1.0
    """How far the encoder's weights go from untrained (0) to trained (1)."""
    untrained_shares: tuple[float, ...] = ()
    """Each makes a system of its own, in whose score the untrained encoder has this share."""
    neighbours_learn: bool = False
    """See `ContextRanker`."""
    table: str = ""
    """The title of a table of its own that it is reported in, with others of the same; none: with all others."""
    also_in: tuple[str, ...] = ()
    """Titles of tables of others that it is compared in, too."""
    runs: Mapping[str, str] = field(default_factory=dict)
    """The run of another system, by the set of topics."""
    model: str = ""
    """A lexical model: its runs are made when the study is prepared."""
    of: tuple[str, ...] = ()
    """A fusion of these two: a system with runs and a neural one."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its own, and those of the systems that mix its score with the untrained encoder's."""
        return (self.name, *(shared_name(self.name, share) for share in self.untrained_shares))

    @property
    def is_late(self) -> bool:
        """Whether content and context are fused late."""
        return self.variant in LATE_FUSION if self.late_fusion is None else self.late_fusion

    @property
    def runs_of_training(self) -> int:
        """Without training there is nothing that a seed would change."""
        return self.seeds if self.trained else 1

    @property
    def is_neural(self) -> bool:
        """Whether it has jobs of its own."""
        return not self.runs and not self.of and not self.model


@dataclass(frozen=True)
class Study:
    """What a file says."""

    title: str
    measures: tuple[str, ...]
    report_on: tuple[str, ...]
    systems: tuple[StudySystem, ...]
    train_on: tuple[str, ...] = ()
    training: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    collections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    description: str = ""
    encoder: str = DEFAULT
    documents: int = 0
    """Documents that BM25 fetches for a topic, whose passages are ranked; 0: all passages of the collection are."""
    ranked_by: str = "qsf_v_title"
    """The lexical model whose best results are negatives, where these are drawn from rankings."""
    values: str = ""
    """A folder with values of jobs that were done before, maybe elsewhere; they are taken where their settings are the same."""

    @classmethod
    def parse(cls, content: Mapping[str, Any], where: str) -> Study:
        """Check what a file holds; nothing is read or trained before all of it is right."""
        try:
            top = _known(cls, content)
            study = cls(systems=tuple(_system(own) for own in top.pop("systems", ())), **top)
            study._check()
        except (TypeError, KeyError, ValueError, UsageError) as error:
            raise InputError(f"is no study that can be run: {error}", path=Path(where)) from None
        return study

    def _check(self) -> None:
        for measure in self.measures:
            parse_measure(measure)
        parse_model(self.ranked_by)
        _known(TrainingSettings, self.training)
        _made_attention("BASE", DIMENSION, self.context)
        names = [system.name for system in self.systems]
        if len(set(names)) != len(names) or not names:
            raise UsageError("systems must be there, each with a name of its own")
        derived = [shared_name(system.name, share) for system in self.systems for share in system.untrained_shares]
        for system in self.systems:
            try:
                self._check_system(system, [*names, *derived])
            except (TypeError, ValueError, UsageError) as error:
                raise UsageError(f"system {system.name!r}: {error}") from None
        for name in {*self.report_on, *self.train_on, *(one for system in self.systems for one in system.train_on)}:
            collection, _, topics = name.partition("/")
            if topics not in self.collections.get(collection, {}).get("topics", {}):
                raise UsageError(f"there is no set of topics {name!r}")

    def _check_system(self, system: StudySystem, names: Sequence[str]) -> None:
        if system.seeds < 1 or system.folds < 0 or system.folds == 1 or system.dimension < 0:
            raise UsageError("there must be at least one seed, two folds or none (0), and a dimension of at least 0")
        if not all(0 < share < 1 for share in system.untrained_shares) or not 0 <= system.kept <= 1:
            raise UsageError("untrained_shares must be between 0 and 1, and kept from 0 to 1")
        if system.model:
            parse_model(system.model)
        _known(TrainingSettings, system.training)
        self.settings_of(system)
        if system.variant:
            _made_attention(system.variant, system.dimension or DIMENSION, self.context_of(system))
        for part in system.of:
            if part not in names:
                raise unknown("system", part, names)
        tables = [one.table for one in self.systems if one.table]
        for title in system.also_in:
            if title not in tables:
                raise unknown("table", title, dict.fromkeys(tables))
        own = {one.name for one in self.systems}
        if system.of and sorted(part not in own or self.system(part).is_neural for part in system.of) != [False, True]:
            raise UsageError("a fusion is of one system with runs and one neural system")
        if system.is_neural and system.trained and not system.folds and not (system.train_on or self.train_on):
            raise UsageError("there are no topics to train on")

    def system(self, name: str) -> StudySystem:
        """A system by its name."""
        return next(system for system in self.systems if system.name == name)

    def settings_of(self, system: StudySystem, seed: int = 1) -> TrainingSettings:
        """How a system is trained."""
        return TrainingSettings(**{**self.training, **system.training, "seed": seed})

    def context_of(self, system: StudySystem) -> dict[str, Any]:
        """The settings of its graph attention."""
        return {**OWN_FORM, **self.context, **system.context}

    def fusions_of(self, name: str) -> list[tuple[StudySystem, StudySystem]]:
        """The fusions that a neural system takes part in, each with the system of runs."""
        return [(fusion, self.system(next(part for part in fusion.of if part != name))) for fusion in self.systems if name in fusion.of]

    def jobs(self) -> list[tuple[StudySystem, int]]:
        """Neural systems with their seeds, the first seed of all first: a study that is cut short has all systems."""
        found = [(system, seed) for system in self.systems if system.is_neural for seed in range(1, 1 + system.runs_of_training)]
        return sorted(found, key=lambda job: job[1])


def _made_attention(variant: str, dimension: int, settings: Mapping[str, Any]) -> None:
    """Made and thrown away: what is wrong with its settings is told now."""
    known = [name for name in signature(HGAT).parameters if name not in ("dimension", "no_out", "lam", "no_self")]
    for name in settings:
        if name not in known:
            raise unknown("setting of the attention", name, known)
    with keeping_random_state():
        HGAT.variant(variant, dimension=dimension, **settings)


def _system(values: Mapping[str, Any]) -> StudySystem:
    try:
        return StudySystem(**_known(StudySystem, values))
    except (TypeError, UsageError) as error:
        raise UsageError(f"system {values.get('name', '?')!r}: {error}") from None


def _known(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a file, those of fields that are tuples as such; each must be of its field's type."""
    known = {one.name: str(one.type) for one in fields(kind)}
    for name, value in values.items():
        if name not in known:
            raise unknown("setting", name, known)
        fits, wanted = _TYPES.get(known[name], (lambda value: True, ""))
        if not fits(value):
            raise UsageError(f"{name} must be {wanted}, not {value!r}")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "str": (lambda value: isinstance(value, str), "a text"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "bool | None": (lambda value: value is None or isinstance(value, bool), "true or false"),
    "int": (_is_whole, "a whole number"),
    "int | None": (lambda value: value is None or _is_whole(value), "a whole number"),
    "float": (_is_number, "a number"),
    "tuple[str, ...]": (lambda value: isinstance(value, list | tuple) and all(isinstance(one, str) for one in value), "a list of texts"),
    "tuple[float, ...]": (lambda value: isinstance(value, list | tuple) and all(map(_is_number, value)), "a list of numbers"),
}
"""By the type of a field as it is written: what a value must be; of others everything is taken."""


def load_study(path: Path) -> Study:
    """Read a file of TOML, or the JSON of a prepared folder."""
    try:
        text = path.read_text("utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", path=path) from None
    except ValueError as error:
        raise InputError(f"is no TOML: {error}", path=path) from None
    return study_of(content, str(path))


def study_of(content: dict[str, Any], where: str, collection: Mapping[str, Any] | None = None) -> Study:
    """What a file holds; a protocol of a paper has no collection of its own, and gets the one that is given."""
    content.pop("kind", None)
    if collection is not None:
        content["collections"] = {"collection": dict(collection)}
    return Study.parse(content, where)


def shared_name(name: str, share: float) -> str:
    """The name of a system in whose score the untrained encoder has a share."""
    return f"{name}, {share:g} untrained"


def job_name(system: StudySystem, seed: int) -> str:
    """The name of a job's file."""
    return f"{''.join(letter if letter.isalnum() else '_' for letter in system.name)}.{seed}"


@dataclass(frozen=True, slots=True)
class JobFailure:
    """A job, or a process of several, that came to nothing."""

    name: str
    """The name of the job, or of the process."""
    message: str
    """What went wrong, in one line."""
    traceback: str = ""
    """Where it went wrong, as Python prints it; empty where the message says what to do."""

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"

    @property
    def report(self) -> str:
        """The line that says what went wrong, and the traceback below it where there is one."""
        return f"{self}\n{self.traceback}".rstrip()


@dataclass
class Workplace:
    """A prepared folder and what jobs share: collections, tokens, runs, scores of the untrained encoder."""

    study: Study
    folder: Path
    encoder: str = ""
    """Where the study's encoder lies here, on a machine that does not know it by its name."""
    tokens: Path | None = None
    """What `cut_texts` wrote; without, texts are cut where they are needed."""
    untrained_scores: dict[tuple[str, int, bool], Floats32] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path, encoder: str = "", tokens: Path | None = None) -> Workplace:
        """Of a folder that was prepared."""
        return cls(load_study(folder / CONTENT), folder, encoder, tokens)

    @cached_property
    def collections(self) -> dict[str, Collection]:
        """By name."""
        return {name: Collection.load(self.folder / COLLECTIONS / name) for name in self.study.collections}

    @cached_property
    def runs(self) -> dict[tuple[str, str], Run]:
        """By system and set of topics."""
        return {
            (system.name, name): read_run(self.folder / RUNS / path) for system in self.study.systems for name, path in system.runs.items()
        }

    @cached_property
    def fetched(self) -> dict[str, Mask]:
        """Which passages may be found, (topics, passages), by set; empty where all may."""
        found = {}
        for name in self.study.report_on if self.study.documents else ():
            run = read_run(self.folder / RUNS / fetched_file(name))
            collection, topics = self.set_of(name)
            number = {document: i for i, document in enumerate(collection.texts.documents)}
            inside = np.zeros((len(topics), len(collection.texts.documents)), bool)
            for row, qid in enumerate(topics.qids):
                inside[row, [number[document] for document in run.get(qid, {}) if document in number]] = True
            found[name] = inside[:, collection.texts.document_of_passage]
        return found

    @cached_property
    def encoders(self) -> dict[int, Encoder]:
        """The untrained encoder by dimension, with the tokens of all texts."""
        found = {}
        for dimension in sorted({system.dimension for system in self.study.systems if system.is_neural}):
            found[dimension] = Encoder.load(self.encoder or self.study.encoder, dimension, device="cpu", precision="float32")
        first = next(iter(found.values()))
        cut = np.load(self.tokens) if self.tokens else None
        for kind, texts in self._texts().items():
            own = (cut[kind], cut[f"first {kind}"]) if cut else None
            first.remember(texts, query=kind == QUERIES, cut=own)
        for encoder in found.values():
            encoder.share_remembered(first)
        return found

    def cut_texts(self, path: Path) -> None:
        """Write the tokens of all texts into a file, for `tokens` of other processes."""
        encoder = Encoder.load(self.encoder or self.study.encoder, device="cpu", precision="float32")
        found = {}
        for kind, texts in self._texts().items():
            found[kind], found[f"first {kind}"] = encoder.cut(texts, query=kind == QUERIES)
        with path.open("wb") as file:
            np.savez(file, **found)  # type: ignore[arg-type]

    def _texts(self) -> dict[str, list[str]]:
        """All passages, with and without heading paths, and titles; and all queries."""
        passages: dict[str, None] = {}
        queries: dict[str, None] = {}
        for collection in self.collections.values():
            for heading_path in (False, True):
                passages |= dict.fromkeys(collection.texts.written(heading_path=heading_path))
            passages |= dict.fromkeys(text for graph in collection.graphs for text in graph.texts)
            queries |= dict.fromkeys(query for topics in collection.topics.values() for query in topics.queries)
        return {PASSAGES: [*passages], QUERIES: [*queries]}

    def set_of(self, name: str) -> tuple[Collection, Topics]:
        """A collection and a set of its topics, by `collection/set`."""
        collection, _, topics = name.partition("/")
        return self.collections[collection], self.collections[collection].topics[topics]


def fetched_file(topics: str) -> str:
    """The name of the run of the documents that are fetched for a set of topics."""
    return f"fetched-{topics.replace('/', '-')}.gz"


def value_file(folder: Path, system: StudySystem, seed: int) -> Path:
    """Where a job's values are kept."""
    return folder / VALUES / f"{job_name(system, seed)}.json"


def fingerprint(study: Study, system: StudySystem) -> str:
    """What the values of a system's jobs depend on, but the seed; how many seeds there are does not count, nor what it is called."""
    does_not_count = ("name", "seeds", "table", "also_in", "runs", "model", "of")
    own = {name: value for name, value in asdict(system).items() if name not in does_not_count}
    shared: list[Any] = [
        dict(study.training),
        dict(study.context),
        study.measures,
        study.report_on,
        system.train_on or study.train_on,
        study.encoder,
    ]
    shared += [study.documents] if study.documents else []
    fused = [[fusion.name, other.name, *fusion.of] for name in system.names for fusion, other in study.fusions_of(name)]
    return hashlib.blake2b(json.dumps([own, shared, fused], sort_keys=True).encode(), digest_size=8).hexdigest()


def known_values(folder: Path, study: Study, system: StudySystem, seed: int) -> dict[str, Any] | None:
    """What a job came to, where it was done with these settings."""
    path = value_file(folder, system, seed)
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text("utf-8"))
        found: dict[str, Any] | None = content if content["fingerprint"] == fingerprint(study, system) else None
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError("holds no values of a study, or is damaged; remove it", path=path) from None
    return found


def run_job(place: Workplace, system: StudySystem, seed: int, device: str) -> dict[str, Any]:
    """Train a system and measure it, alone and in its fusions."""
    start = time.perf_counter()
    ran = _Job(place, system, seed, device)
    scores, told = ran.scored()
    values: dict[str, Any] = {}
    shares: dict[str, dict[str, float]] = {}
    for own_name, own_scores in ran.with_untrained(scores):
        own_scores = {name: ran.among_fetched(name, own) for name, own in own_scores.items()}
        values[own_name] = {name: ran.measured(name, own) for name, own in own_scores.items()}
        for fusion, other in place.study.fusions_of(own_name):
            for name, own in own_scores.items():
                if name in other.runs:
                    found, share = ran.fused(name, own, place.runs[other.name, name])
                    values.setdefault(fusion.name, {})[name] = found
                    shares.setdefault(fusion.name, {})[name] = share
    made = {"system": system.name, "seed": seed, "fingerprint": fingerprint(place.study, system)}
    return {**made, "values": values, "shares": shares, **told, "seconds": time.perf_counter() - start}


@dataclass
class _Job:
    """One system with one seed."""

    place: Workplace
    system: StudySystem
    seed: int
    device: str

    def scored(self) -> tuple[dict[str, Floats32], dict[str, Any]]:
        """The scores of all passages for all topics that are reported, by set; and what training came to."""
        system, study = self.system, self.place.study
        if not system.trained:
            return {name: self._score(self._untrained(), name) for name in study.report_on}, {}
        if system.folds:
            return self._cross_validated()
        names = system.train_on or study.train_on
        collections = [self.place.set_of(name)[0] for name in names]
        topics = [self.place.set_of(name)[1] for name in names]
        told, ranker = self._train(collections, topics)
        return {name: self._score(ranker, name) for name in study.report_on}, told

    def _cross_validated(self) -> tuple[dict[str, Floats32], dict[str, Any]]:
        scores: dict[str, Floats32] = {}
        told: dict[str, Any] = {}
        for name in self.place.study.report_on:
            if self.system.train_on and name not in self.system.train_on:
                continue
            collection, topics = self.place.set_of(name)
            fold_of_topic = folds_of(topics, self.system.folds, self.seed)
            scores[name] = np.zeros((len(topics), len(collection.texts.names)), np.float32)
            for fold in range(int(fold_of_topic.max()) + 1):
                inside = np.flatnonzero(fold_of_topic == fold)
                told, ranker = self._train([collection], [topics.some(np.flatnonzero(fold_of_topic != fold).tolist())])
                scores[name][inside] = self._score(ranker, name, topics.some(inside.tolist()))
        return scores, told

    def _untrained(self) -> TrainableRanker:
        with keeping_random_state():
            return TrainableRanker(self.place.encoders[self.system.dimension].copied().to(self.device), ())

    def _train(self, collections: Sequence[Collection], topics: Sequence[Topics]) -> tuple[dict[str, Any], TrainableRanker]:
        with keeping_random_state(torch.device(self.device)):
            torch.manual_seed(self.seed)
            return self._train_seeded(collections, topics)

    def _train_seeded(self, collections: Sequence[Collection], topics: Sequence[Topics]) -> tuple[dict[str, Any], TrainableRanker]:
        system, study = self.system, self.place.study
        settings = study.settings_of(system, self.seed)
        texts = join_texts([collection.texts for collection in collections])
        joined = join_topics([collection.texts for collection in collections], topics)
        encoder = self.place.encoders[system.dimension].copied().to(self.device)
        before = {name: value.detach().clone() for name, value in encoder.state_dict().items()}
        written = texts.written(heading_path=settings.heading_path)
        ranker = TrainableRanker(encoder, written)
        if system.variant:
            context = HGAT.variant(system.variant, dimension=encoder.dimension, **study.context_of(system)).to(self.device)
            fusion = LateFusion().to(self.device) if system.is_late else None
            graphs = join_graphs(collections)
            ranker = ContextRanker(encoder, written, texts, graphs, context, fusion, neighbours_learn=system.neighbours_learn)
        progress = Trainer(ranker, texts, joined, None, settings).run()
        if system.kept < 1:
            encoder.load_state_dict(interpolate(before, encoder.state_dict(), system.kept))
        told: dict[str, Any] = {"losses": [epoch.loss for epoch in progress.epochs]}
        if isinstance(ranker, ContextRanker):
            told |= {"lambdas": ranker.context.lambdas, "importance": ranker.context.importance()}
            told |= {"alpha": None if ranker.fusion is None else float(ranker.fusion.alpha.detach().clamp(0, 1))}
        return told, ranker

    def _score(self, ranker: TrainableRanker, name: str, topics: Topics | None = None) -> Floats32:
        collection, own = self.place.set_of(name)
        own = topics or own
        settings = self.place.study.settings_of(self.system)
        moved = ranker.moved(collection.texts, collection.graphs, heading_path=settings.heading_path)
        moved.eval()
        passages: Integers = np.arange(len(collection.texts.names))
        return moved.score_all(own.queries, passages)

    def _score_untrained(self, name: str) -> Floats32:
        """The scores of the untrained encoder, computed once a process."""
        kept = self.place.untrained_scores
        key = name, self.system.dimension, self.place.study.settings_of(self.system).heading_path
        if key not in kept:
            kept[key] = self._score(self._untrained(), name)
        return kept[key]

    def with_untrained(self, scores: Mapping[str, Floats32]) -> Iterator[tuple[str, Mapping[str, Floats32]]]:
        """The system's scores, and those with a share of the untrained encoder's, by the name of the system."""
        yield self.system.name, scores
        if self.system.untrained_shares:
            untrained = {name: self._score_untrained(name) for name in scores}
            for share in self.system.untrained_shares:
                yield (
                    shared_name(self.system.name, share),
                    {name: ((1 - share) * own + share * untrained[name]).astype(np.float32) for name, own in scores.items()},
                )

    def among_fetched(self, name: str, scores: Floats32) -> Floats32:
        """Scores with nothing for passages of documents that were not fetched."""
        inside = self.place.fetched.get(name)
        return scores if inside is None else np.where(inside, scores, np.float32(-np.inf))

    def measured(self, name: str, scores: Floats32) -> dict[str, list[float]]:
        """The values of each measure, topic by topic."""
        collection, topics = self.place.set_of(name)
        names = collection.texts.names
        ranked = [[names[place] for place in np.argsort(-row, kind="stable")[:DEPTH].tolist() if row[place] > -np.inf] for row in scores]
        return self._values(ranked, topics)

    def _values(self, ranked: Sequence[Sequence[str]], topics: Topics) -> dict[str, list[float]]:
        measures = {name: parse_measure(name) for name in self.place.study.measures}
        pairs = list(zip(ranked, topics.judged, strict=True))
        return {name: [round(float(measure(own, judged)), 6) for own, judged in pairs] for name, measure in measures.items()}

    def fused(self, name: str, scores: Floats32, run: Run) -> tuple[dict[str, list[float]], float]:
        """The values of a fusion with another system's run, and the mean share of the neural system.

        `(1 - w) · run + w · neural`, both brought to 0 … 1 over the results of a topic. For a fold of the topics w is what is best for
        the others.
        """
        collection, topics = self.place.set_of(name)
        main = parse_measure(self.place.study.measures[0])
        rankings = [
            fused_rankings(row, run.get(qid, {}), collection.texts.names, collection.texts.number)
            for qid, row in zip(topics.qids, scores, strict=True)
        ]
        values = np.array([[main(own, judged) for own in row] for row, judged in zip(rankings, topics.judged, strict=True)])
        fold_of_topic = folds_of(topics, FUSION_FOLDS, 1)
        chosen = np.zeros(len(topics), np.int64)
        for fold in range(int(fold_of_topic.max()) + 1):
            inside = fold_of_topic == fold
            chosen[inside] = int(values[~inside].mean(axis=0).argmax())
        found = self._values([row[share] for row, share in zip(rankings, chosen.tolist(), strict=True)], topics)
        return found, float(np.mean([SHARES[share] for share in chosen.tolist()]))


def fused_rankings(
    scores: Floats32, run: Mapping[str, float], names: Sequence[str], number: Mapping[str, int], shares: Sequence[float] = SHARES
) -> list[list[str]]:
    """The results of a topic by `(1 - share) · run + share · scores`, for each share; both from 0 to 1 over their best, absent is 0."""
    best = np.argpartition(-scores, min(DEPTH, scores.size) - 1)[:DEPTH]
    best = best[scores[best] > -np.inf]
    listed = np.array([number[name] for name in run if name in number], np.int64)
    listed_scores = np.array([run[name] for name in run if name in number])
    found = np.union1d(best, listed)
    own = _spread(scores[best].astype(np.float64), scores[found].astype(np.float64))
    other = np.zeros(found.size)
    other[np.searchsorted(found, listed)] = _spread(listed_scores, listed_scores)
    orders = (np.lexsort((found, -((1 - share) * other + share * own)))[:DEPTH] for share in shares)
    return [[names[place] for place in found[order].tolist()] for order in orders]


def _spread(over: Floats, values: Floats) -> Floats:
    low, high = (over.min(), over.max()) if over.size else (0.0, 1.0)
    return np.clip((values - low) / (high - low if high > low else 1.0), 0.0, 1.0)


def folds_of(topics: Topics, folds: int, seed: int) -> Integers:
    """The fold of each topic; those that share a relevant document are in one, and where there are few such groups, so are the folds."""
    groups = set(group_of_topic(topics.qids, topics.judgements).values())
    fold = fold_of_documents(topics.qids, topics.judgements, min(folds, len(groups)), seed)
    return np.array([fold[qid] for qid in topics.qids], np.int64)


def run_jobs(
    folder: Path, *, workers: int = 1, device: str = "", encoder: str = "", on_job: Callable[[str], None] = lambda line: None
) -> list[JobFailure]:
    """Do the jobs of a prepared folder that are not done, several at a time; returns those that failed.

    `encoder` is the folder of the study's encoder, on a machine that does not know it by its name. `on_job` gets one
    line for each job that is done. Small models leave most of a GPU idle: several processes are faster than one there,
    if its multi-process service runs (`nvidia-cuda-mps-control -d`).
    """
    waiting = _waiting(folder)
    (folder / VALUES).mkdir(exist_ok=True)
    if workers == 1 or len(waiting) < 2:
        place = Workplace.open(folder, encoder)
        return _told((_done(place, place.study.system(name), seed, device) for name, seed in waiting), on_job)
    with TemporaryDirectory() as scratch:
        tokens = Path(scratch) / "tokens"
        # Once, on all cores, and not by each process beside the others.
        Workplace.open(folder, encoder).cut_texts(tokens)
        return _share_out(folder, waiting, min(workers, len(waiting)), (device, encoder, tokens), on_job)


def _told(done: Iterable[str | JobFailure], on_job: Callable[[str], None]) -> list[JobFailure]:
    """Tell of each job that is done, and return those that failed."""
    failures = []
    for result in done:
        if isinstance(result, JobFailure):
            failures.append(result)
        else:
            on_job(result)
    return failures


def _share_out(
    folder: Path, waiting: Sequence[tuple[str, int]], workers: int, options: tuple[str, str, Path], on_job: Callable[[str], None]
) -> list[JobFailure]:
    # Not forked: what has touched a GPU cannot be.
    context = multiprocessing.get_context("spawn")
    taken, said = context.Value("i", 0), context.Queue()
    processes = [context.Process(target=_work, args=(folder, waiting, taken, said, *options)) for _ in range(workers)]
    for process in processes:
        process.start()
    failures = _told(_received(processes, said), on_job)
    return failures + [
        JobFailure(f"process {number}", f"ended with {process.exitcode}")
        for number, process in enumerate(processes, start=1)
        if process.exitcode
    ]


def _received(processes: Sequence[SpawnProcess], said: Any) -> Iterator[str | JobFailure]:
    """What processes say of their jobs, until the last of them has ended."""
    while any(process.is_alive() for process in processes) or not said.empty():
        with suppress(queue.Empty):
            yield said.get(timeout=1.0)


def _waiting(folder: Path) -> list[tuple[str, int]]:
    study = load_study(folder / CONTENT)
    return [(system.name, seed) for system, seed in study.jobs() if known_values(folder, study, system, seed) is None]


def _work(folder: Path, waiting: Sequence[tuple[str, int]], taken: Any, said: Any, device: str, encoder: str, tokens: Path) -> None:
    """A process: takes the next job until there is none."""
    torch.set_num_threads(1)
    place = Workplace.open(folder, encoder, tokens)
    while True:
        with taken.get_lock():
            number = taken.value
            taken.value += 1
        if number >= len(waiting):
            return
        name, seed = waiting[number]
        said.put(_done(place, place.study.system(name), seed, device))


def _done(place: Workplace, system: StudySystem, seed: int, device: str) -> str | JobFailure:
    """Do a job and write its values; returns a line about it, or what went wrong."""
    name = job_name(system, seed)
    try:
        found = run_job(place, system, seed, device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except Exception as error:
        where = "" if isinstance(error, PerikopeError) else traceback.format_exc()
        return JobFailure(name, f"{type(error).__name__}: {' '.join(str(error).split())}", where)
    path = value_file(place.folder, system, seed)
    with replacing(path) as file:
        file.write(json.dumps(found))
    main = place.study.measures[0]
    figures = "; ".join(
        f"{own}: " + " ".join(f"{np.mean(measured[main]):.4f}" for measured in sets.values()) for own, sets in found["values"].items()
    )
    return f"{name} {found['seconds']:.0f} s  {figures}"


def plain(study: Study) -> dict[str, Any]:
    """A study as JSON has it."""
    content = asdict(study)
    content["systems"] = [asdict(system) for system in study.systems]
    return content
