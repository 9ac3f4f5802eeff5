"""Make of a study's file a folder that has everything in it; see `study`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from perikope.api import Index
from perikope.batch import search_topics
from perikope.build import BuildOptions, build
from perikope.errors import InputError, UsageError
from perikope.index.reader import Snapshot
from perikope.io.judgements import read_judgements
from perikope.io.runs import read_run, write_run
from perikope.io.topics import read_topics
from perikope.neural.collection import Collection
from perikope.neural.study import COLLECTIONS, CONTENT, DEPTH, RUNS, Study, StudySystem, load_study, plain, value_file
from perikope.neural.triples import Texts, Topics, read_texts, sources_of, topics_of

INDEXES = "indexes"
DRAWN_FROM = 100
"""Results of a topic that negatives are drawn from, where they are drawn from a ranking."""


def prepare(path: Path, folder: Path, on_step: Callable[[str], None] = lambda step: None) -> Study:
    """Read and index what a study's file names; what is there already is kept."""
    study = load_study(path)
    ready = folder / CONTENT
    if ready.is_file() and _collections_of(ready) != json.loads(json.dumps(plain(study)["collections"])):
        raise UsageError(f"{folder} was made with other collections than {path.name} has now; choose another folder, or remove it")
    written = _located(study, path.parent, folder)
    for name, content in study.collections.items():
        if not (folder / COLLECTIONS / name).is_file():
            on_step(f"reading {name}")
            _collection(study, name, content, path.parent, folder)
    folder.mkdir(parents=True, exist_ok=True)
    ready.write_text(json.dumps(plain(written), indent=1, ensure_ascii=False), "utf-8")
    if study.values:
        _take_values(written, path.parent / study.values, folder)
    return written


def _collections_of(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))["collections"]
    except (ValueError, KeyError, TypeError):
        raise InputError("is damaged; remove its folder", path=path) from None


def _take_values(study: Study, source: Path, folder: Path) -> None:
    """Copy what was done before and is not done here."""
    for system, seed in study.jobs():
        known, path = value_file(source, system, seed), value_file(folder, system, seed)
        if known.is_file() and not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(known.read_bytes())


def _located(study: Study, beside: Path, folder: Path) -> Study:
    """With the runs of other systems copied into the folder."""
    systems: list[StudySystem] = []
    for number, system in enumerate(study.systems):
        runs = {}
        for place, (topics, file) in enumerate(system.runs.items()):
            runs[topics] = f"{number}-{place}.gz"
            copy = folder / RUNS / runs[topics]
            if not copy.is_file():
                found = read_run(beside / file)
                copy.parent.mkdir(parents=True, exist_ok=True)
                write_run(copy, [(qid, sorted(own.items(), key=lambda pair: -pair[1])[:DEPTH]) for qid, own in found.items()])
        systems.append(replace(system, runs=runs))
    return replace(study, systems=tuple(systems))


def _collection(study: Study, name: str, content: Mapping[str, Any], beside: Path, folder: Path) -> None:
    index = folder / INDEXES / name
    if not index.is_dir():
        build(str(index), [str(beside / document) for document in content["documents"]], BuildOptions())
    texts = read_texts(Snapshot.open(index))
    topics = {own: _topics(study, index, texts, f"{name}/{own}", files, beside) for own, files in content["topics"].items()}
    Collection.read(Snapshot.open(index), topics, texts).save(folder / COLLECTIONS / name)


def _topics(study: Study, index: Path, texts: Texts, name: str, files: Mapping[str, Any], beside: Path) -> Topics:
    try:
        asked = read_topics(beside / files["file"])
        judgements = read_judgements(beside / files["judgements"])
    except KeyError as missing:
        raise InputError(f"{name} has no {missing}") from None
    found = topics_of(texts, {topic.qid: topic.browse or topic.query for topic in asked}, judgements)
    sample = files.get("sample", 0)
    if 0 < sample < len(found):
        found = found.some(np.sort(np.random.default_rng(1).permutation(len(found))[:sample]).tolist())
    if not _is_drawn_from_rankings(study, name):
        return found
    kept = set(found.qids)
    rankings = search_topics(
        Index.open(index), [topic for topic in asked if topic.qid in kept], lambda problem: None, k=DRAWN_FROM, model=study.ranked_by
    )
    names = {qid: [texts.number[own] for own, _ in ranking] for qid, ranking in rankings}
    return replace(found, ranked=tuple(np.array(names.get(qid, []), np.int64) for qid in found.qids))


def _is_drawn_from_rankings(study: Study, name: str) -> bool:
    """Whether a system draws negatives of these topics from rankings."""
    return any(
        "ranked" in sources_of(study.settings_of(system).strategy) and name in (system.train_on or study.train_on)
        for system in study.systems
    )
