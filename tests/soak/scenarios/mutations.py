"""Bytes of an index, its stores and its tables change: answers stay the same, or an error says what is damaged."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from perikope.core.errors import PerikopeError
from perikope.index.manifest import FILE
from perikope.index.saved_tables import FOLDER as TABLES
from perikope.index.saved_tables import write_table
from perikope.index.vector_stores import FOLDER as STORES
from perikope.neural.models import add_vectors
from perikope.neural.stores.update import update_store
from perikope.search.facade import Index
from tests.durability.harms import regions
from tests.durability.probe import Probe, small_index
from tests.soak.operations import DIMENSION, vector
from tests.soak.scenario import Trial, defect, scenario

MEGABYTES = 1024
"""Memory that reading a damaged index may take, besides that of reading an undamaged one."""
MOST_LINES, MOST_CHARACTERS = 2, 1000
"""The length of an error."""
KINDS = ("segments", "deletions", "manifest", "stores", "store manifests", "tables")
ANSWERS = ("look", "tables", "stores")
"""The steps of the probe that answer questions."""

_planted = ""
"""The defect of the probe, as `module:name`."""


@scenario("mutations", most=1_000_000, reduced=24)
def mutations(trial: Trial) -> None:
    """Bytes are changed, cut off, blanked and exchanged; answers are equal or an error, within a limit of memory."""
    folder = trial.folder / "index"
    make_index(folder)
    by_kind = files_by_kind(folder)
    probe = Probe(folder, megabytes=MEGABYTES, defect=_planted)
    probe.start()
    silent: dict[str, int] = {}
    try:
        while trial.goes_on():
            kind = KINDS[trial.operations % len(KINDS)]
            harm = mutation(folder, by_kind[kind], trial.chance)
            trial.doing(str(harm))
            for _, outcome in probe.run([harm]):
                wrong = problem(probe.whole, outcome)
                if kind == "tables" and harm["do"] in ("lose", "swap"):
                    continue  # nothing names the tables of an index, so a person may remove and rename them
                if wrong:
                    silent[kind] = silent.get(kind, 0) + 1
                    trial.fail(f"{harm}: {wrong}", cause=f"{kind}: {wrong.strip().splitlines()[-1][:80]}")
            trial.did()
            trial.watch(processes=probe.processes)
    finally:
        probe.close()
    if silent:
        trial.note("failures: " + ", ".join(f"{kind} {count}" for kind, count in silent.items()))


def make_index(folder: Path) -> None:
    """A small index with tables of all kinds, and stores of single vectors and of packed token vectors."""
    small_index(folder)
    write_table(folder, "a-prior", "prior", {"weights": [1.0, 0.5, 0.25, 0.0, 2.0, 1.5, 0.75, 0.1, 0.9, 3.0]})
    tags = {tag: {"weight": 1.0 + number, "coverage": 0.5, "occurrences": 10} for number, tag in enumerate(("sec", "p", "title"))}
    write_table(folder, "some-tags", "tags", {"queries": 3, "logical": ["sec", "document"], "tags": tags})
    index = Index.open(folder)
    add_vectors(index, "single", lambda texts: [vector(text) for text in texts], vector, DIMENSION)
    update_store(index.snapshot, "packed", token_vectors, DIMENSION, code="residual")


def token_vectors(texts: Sequence[str]) -> Any:
    """One vector per word, as an encoder would make them."""
    for number, text in enumerate(texts):
        words = text.split()[:20]
        yield number, np.array([vector(word) for word in words], np.float32).reshape(-1, DIMENSION), np.arange(len(words))


def files_by_kind(folder: Path) -> dict[str, list[str]]:
    """The files of the index by what they hold."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    kind_of = {name: _kind(name) for name in names}
    return {kind: [name for name in names if kind_of[name] == kind] for kind in KINDS}


def _kind(name: str) -> str:
    if name.startswith(f"{TABLES}/"):
        return "tables"
    if name.startswith(f"{STORES}/"):
        return "store manifests" if name.endswith(".json") else "stores"
    return "manifest" if name == FILE else "deletions" if "deleted" in name else "segments"


def mutation(folder: Path, names: Sequence[str], chance: random.Random) -> dict[str, Any]:
    """A random harm to one of the files."""
    name = chance.choice(names)
    size = (folder / name).stat().st_size
    if name.endswith(".columns"):
        # Small columns are changed as often as large ones.
        at = chance.choice([chance.choice(positions) for positions in regions(folder / name).values() if positions])
    else:
        at = chance.randrange(max(size, 1))
    others = [other for other in names if other != name]
    harms: list[dict[str, Any]] = [{"do": "flip", "at": at, "mask": chance.choice([0xFF, 1 << chance.randrange(8)])}] * 5
    harms += [{"do": "cut", "length": chance.choice([0, at, size - 1])}, {"do": "blank", "at": at, "length": chance.choice([1, 16, 4096])}]
    harms += [
        {"do": "grow", "length": chance.choice([1, 64])},
        {"do": "lose"},
        {"do": "put", "data": chance.choice(["", "{}", "[" * 9999])},
    ]
    harms += [{"do": "swap", "other": chance.choice(others)}] if others else []
    return {"file": name, **chance.choice(harms)}


def problem(whole: Mapping[str, Any], outcome: Mapping[str, Any]) -> str:
    """What is wrong with the outcome of reading a damaged index; empty if answers are equal or refused."""
    if "raised" in outcome:
        return f"raised: {outcome['raised'][-1500:]}"
    for step in ANSWERS:
        message = outcome.get(f"{step} refused")
        if message is not None and (len(message.splitlines()) > MOST_LINES or len(message) > MOST_CHARACTERS):
            return f"a long message: {message[:300]}"
        if message is None and outcome[step] != whole[step]:
            found = [*outcome.get("check", ["refused"]), *outcome.get("check stores", [])]
            return f"other answers ({step}), without an error; `perikope check` says {found or 'nothing'}"
    return ""


def _plant(name: str) -> None:
    global _planted
    _planted = f"{__name__}:{name}"


def _on_error(probe: ModuleType, react: Any) -> None:
    """Do something else in the process of the probe where it would raise an error."""
    for name in ("look", "look_at_stores", "look_at_tables"):
        original = getattr(probe, name)

        def wrapped(folder: Path, original: Any = original) -> str:
            try:
                return str(original(folder))
            except PerikopeError:
                return str(react())

        setattr(probe, name, wrapped)


def answer_nonsense(probe: ModuleType) -> None:
    """Answer although the files are damaged."""
    _on_error(probe, lambda: "nonsense")


def die(probe: ModuleType) -> None:
    """End the process, as a crash would."""
    _on_error(probe, lambda: os._exit(3))


def take_memory(probe: ModuleType) -> None:
    """Take more memory than is allowed."""
    _on_error(probe, lambda: len(bytearray((MEGABYTES + 64) << 20)))


def raise_another(probe: ModuleType) -> None:
    """Raise an error that is not in the family."""
    _on_error(probe, lambda: [][0])


for _name, _does, _reported in (
    ("answer_nonsense", "damage is treated as fine", "other answers"),
    ("die", "damage ends the process", "died with 3"),
    ("take_memory", "damage takes memory", "MemoryError"),
    ("raise_another", "damage raises another error", "IndexError"),
):
    defect(mutations, _does, reported=_reported)(lambda name=_name: _plant(name))
