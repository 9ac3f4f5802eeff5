"""Prepared experiments: a folder with all files that the jobs of rankers need. It can be copied to another machine.

    prepared.json       the plan with runs in place of models, and the outcomes of these systems
    collections/        files that the kind of rankers needs, such as texts and graphs
    runs/               runs of all systems that are not rankers
    values/JOB.json     the values of finished jobs

Jobs need neither the documents nor the indexes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perikope.core.errors import InputError, UsageError
from perikope.core.files import replacing
from perikope.core.reading import read_saved_object
from perikope.evaluation.experiment.extras import ExtraTable, plain, tables_of
from perikope.evaluation.experiment.outcome import Sweep, system_facts, system_of
from perikope.evaluation.experiment.plan import Plan, plan_of

PREPARED, COLLECTIONS, RUNS = "prepared.json", "collections", "runs"


@dataclass(frozen=True, slots=True)
class PreparedExperiment:
    """An experiment whose systems are all finished, except the rankers."""

    plan: Plan
    """The plan with runs in place of models. Its run files are in the prepared folder."""
    sweeps: tuple[tuple[str, Sweep], ...]
    """For each sweep: the name of its set of topics, and the outcomes of all systems that are not rankers."""
    topics: Mapping[str, tuple[str, ...]]
    """The ids of the reported topics, by set."""
    facts: Mapping[str, str]
    tables: tuple[ExtraTable, ...] = ()
    """Tables of the report that need the index, such as statistics of the collection."""

    @classmethod
    def load(cls, folder: Path) -> PreparedExperiment:
        """Read a prepared folder."""
        content = _read(folder)
        try:
            plan = plan_of(content["plan"], str(folder / PREPARED), folder)
            sweeps = tuple(
                (
                    sweep["set"],
                    Sweep(
                        sweep["label"],
                        tuple(system_of(system, system["values"]) for system in sweep["systems"]),
                        sweep["set"],
                        sweep.get("documents", 0),
                    ),
                )
                for sweep in content["sweeps"]
            )
            topics = {name: tuple(qids) for name, qids in content["topics"].items()}
            return cls(plan, sweeps, topics, content["facts"], tables_of(content.get("tables", ())))
        except (KeyError, TypeError, AttributeError):
            raise _damaged(folder) from None


def save_prepared(
    plan: Plan, folder: Path, runs: Mapping[str, Mapping[str, str]], sweeps: Sequence[tuple[str, Sweep]],
    topics: Mapping[str, Sequence[str]], facts: Mapping[str, str], tables: Sequence[ExtraTable] = (),
) -> None:  # fmt: skip
    """Write `prepared.json`.

    `runs` has the names of run files in the folder `runs/`, by system and set of topics. `sweeps` has pairs of the name
    of a set of topics and its sweep. `topics` has the ids of the reported topics, by set.
    """
    content = {
        "sources": _sources(plan),
        "plan": _portable(plan, runs),
        "sweeps": [
            {
                "set": name,
                "label": sweep.label,
                "documents": sweep.documents,
                "systems": [{**system_facts(system), "values": system.values} for system in sweep.systems],
            }
            for name, sweep in sweeps
        ],
        "topics": topics,
        "facts": facts,
        "tables": plain(tables),
    }
    with replacing(folder / PREPARED) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False))


def check_prepared(plan: Plan, folder: Path) -> None:
    """Raise an error if a folder was prepared for other collections, because its jobs have values for other topics."""
    if (folder / PREPARED).is_file() and _read(folder).get("sources") != json.loads(json.dumps(_sources(plan))):
        raise UsageError(
            f"{folder} was made with other collections than {Path(plan.path).name} has now; name another folder (--out), or remove this one"
        )


def _sources(plan: Plan) -> Mapping[str, Any]:
    """The collections with the paths that the file or the command line gives, independent of the working directory."""
    collections: Mapping[str, Any] = plan.content.get("collections") or _collections(plan)
    return collections


def _portable(plan: Plan, runs: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """The content of an experiment file for another machine. Systems that are not rankers or fusions become runs."""
    systems = [
        {"name": system["name"], "runs": {name: f"{RUNS}/{file}" for name, file in runs[system["name"]].items()}}
        if system["name"] in runs
        else system
        for system in plan.content["systems"]
    ]
    without = ("values", "sweep", "collection", "topics")
    content = {key: value for key, value in plan.content.items() if key not in without}
    return {**content, "collections": _collections(plan), "systems": systems}


def _collections(plan: Plan) -> dict[str, Any]:
    """The collections of a plan, as the content of the table `collections` of an experiment file."""
    tables = {}
    for name, collection in plan.collections.items():
        documents = (
            {"documents": [str(path) for path in collection.documents]} if collection.documents else {"index": str(collection.index)}
        )
        topics = {}
        for set_name, topics_plan in collection.topics.items():
            keys = {"file": topics_plan.file, "judgements": topics_plan.judgements}
            topics[set_name] = keys if topics_plan.sample is None else {**keys, "sample": topics_plan.sample}
        tables[name] = {**documents, "topics": topics}
    return tables


def _read(folder: Path) -> dict[str, Any]:
    try:
        return read_saved_object(folder / PREPARED)
    except FileNotFoundError:
        raise InputError("is missing: the folder was not prepared; prepare the experiment first", path=folder / PREPARED) from None
    except (OSError, ValueError):
        pass
    raise _damaged(folder)


def _damaged(folder: Path) -> InputError:
    return InputError("is damaged; remove the folder and prepare the experiment again", path=folder / PREPARED)
