"""Results of an experiment: every value of every system, and how its parameters were chosen.

Results are saved as text and read back unchanged. The folder `values/` has one table of values by topic per sweep and
system. `experiment.json` has everything else. The same results always give the same bytes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from perikope.core.errors import InputError
from perikope.core.files import replacing
from perikope.core.reading import read_saved
from perikope.evaluation.experiment.extras import ExtraFigure, ExtraTable, figures_of, plain, tables_of
from perikope.evaluation.experiment.published import PublishedTable, plain_published, published_of
from perikope.evaluation.tuning.outcome import FoldOutcome, TuningOutcome

FILE = "experiment.json"
VALUES = "values"
VERSION = 1

Values = Mapping[str, Mapping[str, float]]
"""Values by measure, then by topic."""


@dataclass(frozen=True, slots=True)
class ComparisonSettings:
    """How systems are compared: the arguments of `perikope.evaluation.measures.significance.compare`."""

    test: str = "t"
    correction: str = "holm"
    alpha: float = 0.05
    reference: str = ""
    """The system whose improvement by the others is reported in percent. Empty if there is none."""


@dataclass(frozen=True, slots=True)
class SystemOutcome:
    """The results of a system in one sweep."""

    name: str
    settings: str
    """The full model string and options."""
    values: Values
    """The value of each measure for each topic. For a system with repetitions: the mean over them, topic by topic.

    All systems of a sweep are measured on the same topics.
    """
    curve: tuple[float, ...] = ()
    """Interpolated precision at 101 recall points, as a mean over topics with relevant results. Empty if unknown."""
    tuned: TuningOutcome | None = None
    notes: tuple[str, ...] = ()
    repetitions: Mapping[int, Values] = field(default_factory=dict)
    """The values of each repetition, by seed. Empty for a system without repetitions."""
    table: str = ""
    """The title of the separate table that reports the system. Empty if the table of the sweep reports it."""
    also_in: tuple[str, ...] = ()
    """Titles of further separate tables that report the system."""
    model: str = ""
    """The model as the file writes it, without values of tuned parameters. Empty for other systems."""
    tables: tuple[ExtraTable, ...] = ()
    """Tables of what the system has learned."""
    figures: tuple[ExtraFigure, ...] = ()
    """Figures of what the system has learned."""

    def mean(self, measure: str) -> float:
        """The mean of a measure over all topics, 0 if there are none."""
        values = self.values[measure].values()
        return math.fsum(values) / max(len(values), 1)

    def mean_by_seed(self, measure: str) -> dict[str, float]:
        """The mean of a measure over all topics for each repetition, by seed as text."""
        return {str(seed): average(values[measure].values()) for seed, values in self.repetitions.items()}


def average(values: Iterable[float]) -> float:
    """The mean of at least one value."""
    listed = list(values)
    return math.fsum(listed) / len(listed)


def average_by_topic(repetitions: Iterable[Values], measures: Iterable[str]) -> Values:
    """The values averaged over at least one repetition, topic by topic."""
    listed = list(repetitions)
    return {measure: {qid: average(values[measure][qid] for values in listed) for qid in listed[0][measure]} for measure in measures}


@dataclass(frozen=True, slots=True)
class Sweep:
    """The results of all systems on one set of topics with one number of fetched documents."""

    label: str
    systems: tuple[SystemOutcome, ...]
    topics: str = ""
    """The name of the set of topics, as `collection/set`."""
    documents: int = 0
    """The number of fetched documents; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of an experiment."""

    title: str
    description: str
    facts: Mapping[str, str]
    """Names and values of everything that the figures depend on: versions, settings, fingerprints, seeds."""
    measures: tuple[str, ...]
    """The names of the reported measures, the main measure first."""
    sweeps: tuple[Sweep, ...]
    comparison: ComparisonSettings = field(default_factory=ComparisonSettings)
    tables: tuple[ExtraTable, ...] = ()
    """Tables that belong to no single system, such as statistics of the collection."""
    figures: tuple[ExtraFigure, ...] = ()
    """Figures that belong to no single system."""
    published: tuple[PublishedTable, ...] = ()
    """Tables of the paper that the experiment repeats."""

    def save(self, folder: Path) -> None:
        """Write `experiment.json` and the tables of values to a folder, replacing older ones."""
        tables = folder / VALUES
        tables.mkdir(parents=True, exist_ok=True)
        sweeps = []
        written = set()
        for number, sweep in enumerate(self.sweeps, 1):
            systems = []
            for position, system in enumerate(sweep.systems, 1):
                name = f"{number}-{position:02d}-{slug(system.name)}.tsv"
                with replacing(tables / name) as file:
                    file.writelines(_table_lines(system, self.measures))
                written.add(name)
                systems.append({**system_facts(system), "values": f"{VALUES}/{name}"})
            sweeps.append({"label": sweep.label, "topics": sweep.topics, "documents": sweep.documents, "systems": systems})
        content = {
            "version": VERSION,
            "title": self.title,
            "description": self.description,
            "facts": dict(self.facts),
            "measures": list(self.measures),
            "comparison": asdict(self.comparison),
            "sweeps": sweeps,
            "tables": plain(self.tables),
            "figures": plain(self.figures),
            "published": plain_published(self.published),
        }
        with replacing(folder / FILE) as file:
            file.write(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
        for stale in tables.glob("*.tsv"):
            if stale.name not in written:
                stale.unlink()

    @classmethod
    def load(cls, folder: Path) -> Outcome:
        """Read the outcome that `save` wrote to a folder."""
        path = folder / FILE
        try:
            content = read_saved(path)
            if content["version"] != VERSION:
                raise InputError(
                    f"has version {content['version']!r}, but this program reads version {VERSION}; run the experiment again", path=path
                )
            measures = tuple(content["measures"])
            sweeps = tuple(
                Sweep(
                    sweep["label"],
                    tuple(_read_system(folder, system, measures) for system in sweep["systems"]),
                    sweep.get("topics", ""),
                    sweep.get("documents", 0),
                )
                for sweep in content["sweeps"]
            )
            return cls(
                content["title"], content["description"], content["facts"], measures, sweeps, ComparisonSettings(**content["comparison"]),
                tables_of(content.get("tables", ())), figures_of(content.get("figures", ())), published_of(content.get("published", ())),
            )  # fmt: skip
        except FileNotFoundError as error:
            raise InputError("is missing: the folder has no finished experiment; run it first", path=error.filename) from None
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"is damaged; run the experiment again ({error!r})", path=path) from None


def slug(name: str) -> str:
    """A name shortened to characters that are safe in a file name.

    >>> slug("PLM(G), σ = 500")
    'PLM-G-500'
    """
    return re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:60] or "system"


def _columns(measures: Iterable[str], seeds: Iterable[int]) -> list[tuple[str, int | None]]:
    """The columns of a table of values as (measure, seed).

    The means of all measures come first, with None as the seed. Then follow all measures for each seed.
    """
    listed = list(measures)
    return [*((measure, None) for measure in listed), *((measure, seed) for seed in seeds for measure in listed)]


def _heads(columns: Iterable[tuple[str, int | None]]) -> tuple[str, ...]:
    return tuple(measure if seed is None else f"{measure}, seed {seed}" for measure, seed in columns)


def _table_lines(system: SystemOutcome, measures: tuple[str, ...]) -> Iterator[str]:
    columns = _columns(measures, system.repetitions)
    values = [(system.values if seed is None else system.repetitions[seed])[measure] for measure, seed in columns]
    yield "\t".join(("topic", *_heads(columns))) + "\n"
    for qid in values[0] if values else ():
        yield "\t".join((qid, *(repr(float(column[qid])) for column in values))) + "\n"


def system_facts(system: SystemOutcome) -> dict[str, Any]:
    """The fields of a system without its values, as an object for JSON."""
    tuned = system.tuned
    repeated = {"seeds": list(system.repetitions), "table": system.table, "also_in": list(system.also_in)} if system.repetitions else {}
    return {
        **repeated,
        "model": system.model,
        "tables": plain(system.tables),
        "figures": plain(system.figures),
        "name": system.name,
        "settings": system.settings,
        "notes": list(system.notes),
        "curve": list(system.curve),
        "tuned": None
        if tuned is None
        else {
            "parameters": list(tuned.parameters),
            "settings": [list(setting) for setting in tuned.settings],
            "scores": list(tuned.scores),
            "chosen": dict(tuned.chosen),
            "measure": tuned.measure,
            "folds": [
                {"chosen": dict(fold.chosen), "training_score": fold.training_score, "score": fold.score, "topics": fold.topics}
                for fold in tuned.folds
            ],
            "topics": tuned.topics,
        },
    }


def system_of(facts: Mapping[str, Any], values: Values, repetitions: Mapping[int, Values] | None = None) -> SystemOutcome:
    """The system described by the result of `system_facts`, with the given values."""
    tuning = facts["tuned"]
    tuned = None
    if tuning is not None:
        folds = tuple(
            FoldOutcome(_frozen(fold["chosen"]), fold["training_score"], fold["score"], fold["topics"]) for fold in tuning["folds"]
        )
        tuned = TuningOutcome(
            tuple(tuning["parameters"]),
            _frozen(tuning["settings"]),
            tuple(tuning["scores"]),
            _frozen(tuning["chosen"]),
            tuning["measure"],
            folds,
            tuning["topics"],
        )
    return SystemOutcome(
        facts["name"], facts["settings"], values, tuple(facts["curve"]), tuned, tuple(facts["notes"]), repetitions or {},
        facts.get("table", ""), tuple(facts.get("also_in", ())), facts.get("model", ""), tables_of(facts.get("tables", ())),
        figures_of(facts.get("figures", ())),
    )  # fmt: skip


def _read_system(folder: Path, facts: Mapping[str, Any], measures: tuple[str, ...]) -> SystemOutcome:
    name = Path(facts["values"]).name  # only the file name is used, so that no other folder is read
    columns = _columns(measures, facts.get("seeds", ()))
    table = dict(zip(columns, _read_table(folder / VALUES / name, _heads(columns)), strict=True))
    values = {measure: table[measure, None] for measure in measures}
    return system_of(facts, values, {seed: {measure: table[measure, seed] for measure in measures} for seed in facts.get("seeds", ())})


def _frozen(value: Any) -> Any:
    """A value read from JSON with all lists replaced by tuples, because values of parameters are tuples."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return {key: _frozen(one) for key, one in value.items()} if isinstance(value, dict) else value


def _read_table(path: Path, heads: tuple[str, ...]) -> list[dict[str, float]]:
    """Read a table of values. Returns one mapping of topic to value per column, in the order of `heads`."""
    columns: list[dict[str, float]] = [{} for _ in heads]
    with open(path, encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            cells = line.rstrip("\n").split("\t")
            if len(cells) != len(heads) + 1 or (number == 1 and tuple(cells[1:]) != heads):
                raise InputError("the columns are not those that experiment.json lists; run the experiment again", path=path, line=number)
            if number > 1:
                try:
                    for column, cell in zip(columns, cells[1:], strict=True):
                        column[cells[0]] = float(cell)
                except ValueError:
                    raise InputError(f"{cell[:40]!r} is not a number; run the experiment again", path=path, line=number) from None
    return columns
