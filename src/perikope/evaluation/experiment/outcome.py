"""What came of an experiment: every value of every system, and how its parameters were chosen; saved as text, read back as it was.

`experiment.json` holds everything but the values by topic, which stand in `values/`, one table a sweep and system; the same content gives
the same bytes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perikope.core.errors import InputError
from perikope.core.files import replacing
from perikope.evaluation.tuning.outcome import FoldOutcome, TuningOutcome

FILE = "experiment.json"
VALUES = "values"
VERSION = 1


@dataclass(frozen=True, slots=True)
class ComparisonSettings:
    """How systems are compared: names of `perikope.evaluation.measures.significance.compare`."""

    test: str = "t"
    correction: str = "holm"
    alpha: float = 0.05


@dataclass(frozen=True, slots=True)
class SystemOutcome:
    """A system in one sweep."""

    name: str
    settings: str
    """The full model string and options."""
    values: Mapping[str, Mapping[str, float]]
    """By measure, then by topic; every system has the same topics."""
    curve: tuple[float, ...] = ()
    """Interpolated precision at 101 recall points, the mean over all topics; empty where it is not known."""
    tuned: TuningOutcome | None = None
    notes: tuple[str, ...] = ()

    def mean(self, measure: str) -> float:
        """The mean of a measure over all topics."""
        values = self.values[measure].values()
        return math.fsum(values) / max(len(values), 1)


@dataclass(frozen=True, slots=True)
class Sweep:
    """All systems under one setting of what is swept, such as how many documents are fetched."""

    label: str
    systems: tuple[SystemOutcome, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an experiment."""

    title: str
    description: str
    facts: Mapping[str, str]
    """What must be the same for the figures to be: versions, settings, fingerprint of the index, seeds."""
    measures: tuple[str, ...]
    """The first is the main one."""
    sweeps: tuple[Sweep, ...]
    comparison: ComparisonSettings = field(default_factory=ComparisonSettings)

    def save(self, folder: Path) -> None:
        """Write `experiment.json` and the tables of values in place of what is there."""
        tables = folder / VALUES
        tables.mkdir(parents=True, exist_ok=True)
        sweeps = []
        written = set()
        for number, sweep in enumerate(self.sweeps, 1):
            systems = []
            for place, system in enumerate(sweep.systems, 1):
                name = f"{number}-{place:02d}-{slug(system.name)}.tsv"
                with replacing(tables / name) as file:
                    file.writelines(_table_lines(system.values, self.measures))
                written.add(name)
                systems.append({**system_facts(system), "values": f"{VALUES}/{name}"})
            sweeps.append({"label": sweep.label, "systems": systems})
        content = {
            "version": VERSION,
            "title": self.title,
            "description": self.description,
            "facts": dict(self.facts),
            "measures": list(self.measures),
            "comparison": {"test": self.comparison.test, "correction": self.comparison.correction, "alpha": self.comparison.alpha},
            "sweeps": sweeps,
        }
        with replacing(folder / FILE) as file:
            file.write(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
        for stale in tables.glob("*.tsv"):
            if stale.name not in written:
                stale.unlink()

    @classmethod
    def load(cls, folder: Path) -> Outcome:
        """The outcome that `save` wrote to a folder."""
        path = folder / FILE
        try:
            content = json.loads(path.read_text("utf-8"))
            if content["version"] != VERSION:
                raise InputError(f"is of version {content['version']!r}, this program reads {VERSION}", path=path)
            measures = tuple(content["measures"])
            sweeps = tuple(
                Sweep(sweep["label"], tuple(_read_system(folder, system, measures) for system in sweep["systems"]))
                for sweep in content["sweeps"]
            )
            comparison = ComparisonSettings(**content["comparison"])
            return cls(content["title"], content["description"], content["facts"], measures, sweeps, comparison)
        except FileNotFoundError as error:
            raise InputError("is not there: no finished experiment in this folder", path=error.filename) from None
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"is damaged: {error!r}", path=path) from None


def slug(name: str) -> str:
    """A name as part of a file's name.

    >>> slug("PLM(G), σ = 500")
    'PLM-G-500'
    """
    return re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:60] or "system"


def _table_lines(values: Mapping[str, Mapping[str, float]], measures: tuple[str, ...]) -> Iterator[str]:
    yield "\t".join(("topic", *measures)) + "\n"
    for qid in values[measures[0]] if measures else ():
        yield "\t".join((qid, *(repr(float(values[measure][qid])) for measure in measures))) + "\n"


def system_facts(system: SystemOutcome) -> dict[str, Any]:
    """Everything but the values, as JSON takes it."""
    tuned = system.tuned
    return {
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


def system_of(facts: Mapping[str, Any], values: Mapping[str, Mapping[str, float]]) -> SystemOutcome:
    """The system of these facts, as `system_facts` gives them, and values."""
    found = facts["tuned"]
    tuned = None
    if found is not None:
        folds = tuple(
            FoldOutcome(_frozen(fold["chosen"]), fold["training_score"], fold["score"], fold["topics"]) for fold in found["folds"]
        )
        tuned = TuningOutcome(
            tuple(found["parameters"]),
            _frozen(found["settings"]),
            tuple(found["scores"]),
            _frozen(found["chosen"]),
            found["measure"],
            folds,
            found["topics"],
        )
    return SystemOutcome(facts["name"], facts["settings"], values, tuple(facts["curve"]), tuned, tuple(facts["notes"]))


def _read_system(folder: Path, facts: Mapping[str, Any], measures: tuple[str, ...]) -> SystemOutcome:
    name = Path(facts["values"]).name  # whatever the file says, tables are in their folder
    return system_of(facts, _read_table(folder / VALUES / name, measures))


def _frozen(value: Any) -> Any:
    """Lists as tuples, as values of parameters are."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return {key: _frozen(one) for key, one in value.items()} if isinstance(value, dict) else value


def _read_table(path: Path, measures: tuple[str, ...]) -> dict[str, dict[str, float]]:
    values: dict[str, dict[str, float]] = {measure: {} for measure in measures}
    with open(path, encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            cells = line.rstrip("\n").split("\t")
            if len(cells) != len(measures) + 1 or (number == 1 and tuple(cells[1:]) != measures):
                raise InputError("is not a table of these measures", path=path, line=number)
            if number > 1:
                try:
                    for measure, cell in zip(measures, cells[1:], strict=True):
                        values[measure][cells[0]] = float(cell)
                except ValueError:
                    raise InputError(f"{cell!r} is not a number", path=path, line=number) from None
    return values
