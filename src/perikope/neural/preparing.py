"""Make of a study's file a folder that has everything in it; see `study`."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import InputError, UsageError
from perikope.core.files import replacing, replacing_binary
from perikope.evaluation.io.judgements import read_judgements
from perikope.evaluation.io.runs import read_run, write_run
from perikope.evaluation.io.topics import read_topics
from perikope.fetch.filters import codes_of
from perikope.index.reader import Snapshot
from perikope.neural.collection import Collection
from perikope.neural.study import COLLECTIONS, CONTENT, DEPTH, RUNS, Study, StudySystem, fetched_file, load_study, plain, value_file
from perikope.neural.triples import Texts, Topics, read_texts, sources_of, topics_of
from perikope.search.batch import prepare_topic, search_topics
from perikope.search.facade import Index
from perikope.search.options import SearchOptions

INDEXES = "indexes"
FETCHED = 1000
"""Documents whose passages a lexical model ranks, where the study does not say."""
DRAWN_FROM = 100
"""Results of a topic that negatives are drawn from, where they are drawn from a ranking."""


def prepare(path: Path, folder: Path, on_step: Callable[[str], None] = lambda step: None) -> Study:
    """Read and index what a study's file names; what is there already is kept."""
    return prepare_study(load_study(path), path, folder, on_step)


def prepare_study(study: Study, path: Path, folder: Path, on_step: Callable[[str], None] = lambda step: None) -> Study:
    """The same for a study that has been read; paths in it are relative to the folder of `path`."""
    ready = folder / CONTENT
    if ready.is_file() and (title := _content_of(ready)["title"]) != study.title:
        raise UsageError(f"{folder} holds another study, {title!r}: choose another folder (--out), or remove it")
    _check_files(study, path)
    if ready.is_file() and _content_of(ready)["collections"] != json.loads(json.dumps(plain(study)["collections"])):
        raise UsageError(f"{folder} was made with other collections than {path.name} has now; choose another folder, or remove it")
    for name, content in study.collections.items():
        if not (folder / COLLECTIONS / name).is_file():
            on_step(f"reading {name}")
            _collection(study, name, content, path.parent, folder)
    (folder / RUNS).mkdir(parents=True, exist_ok=True)
    written = replace(study, systems=tuple(_with_runs(study, system, path.parent, folder, on_step) for system in study.systems))
    for name in study.report_on if study.documents else ():
        _search(study, name, "bm25", path.parent, folder, folder / RUNS / fetched_file(name), document_ranking="maxp")
    with replacing(ready) as file:
        file.write(json.dumps(plain(written), indent=1, ensure_ascii=False))
    if study.values:
        _take_values(written, path.parent / study.values, folder)
    return written


def _check_files(study: Study, path: Path) -> None:
    """What a study names must be there before anything is read."""
    named = [name for content in study.collections.values() for name in content.get("documents", ())]
    topics = [own for content in study.collections.values() for own in content.get("topics", {}).values()]
    named += [content["index"] for content in study.collections.values() if "index" in content]
    named += [own[key] for own in topics for key in ("file", "judgements") if key in own]
    named += [file for system in study.systems for file in system.runs.values()]
    for name in named:
        if not (path.parent / name).exists():
            raise InputError(f"is not there, and {path.name} names it", path=path.parent / name)


def _content_of(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
        return {name: content[name] for name in ("title", "collections")}
    except (ValueError, KeyError, TypeError):
        raise InputError("is damaged; remove its folder", path=path) from None


def _take_values(study: Study, source: Path, folder: Path) -> None:
    """Copy what was done before and is not done here."""
    for system, seed in study.jobs():
        known, path = value_file(source, system, seed), value_file(folder, system, seed)
        if known.is_file() and not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing_binary(path) as file:
                file.write(known.read_bytes())


def _with_runs(study: Study, system: StudySystem, beside: Path, folder: Path, on_step: Callable[[str], None]) -> StudySystem:
    """With the runs of another system in the folder, or with those that its model makes; their names say what they are of."""
    runs = {}
    for topics, file in system.runs.items():
        found = {qid: sorted(own.items(), key=lambda pair: -pair[1])[:DEPTH] for qid, own in read_run(beside / file).items()}
        runs[topics] = f"{_short_hash(json.dumps(found).encode())}.gz"
        if not (folder / RUNS / runs[topics]).is_file():
            write_run(folder / RUNS / runs[topics], found.items())
    for topics in study.report_on if system.model else ():
        runs[topics] = f"{_short_hash(json.dumps([system.model, topics, study.documents]).encode())}.gz"
        if not (folder / RUNS / runs[topics]).is_file():
            on_step(f"ranking {topics} by {system.model}")
            _search(study, topics, system.model, beside, folder, folder / RUNS / runs[topics])
    return replace(system, runs=runs)


def _search(study: Study, topics: str, model: str, beside: Path, folder: Path, path: Path, **options: Any) -> None:
    """Write the run of a lexical model."""
    if path.is_file():
        return
    collection, _, name = topics.partition("/")
    asked = read_topics(beside / study.collections[collection]["topics"][name]["file"])
    documents = study.documents or FETCHED
    depth = documents if options else DEPTH
    write_run(
        path,
        search_topics(
            Index.open(index_of(study.collections[collection], collection, beside, folder)),
            asked,
            lambda problem: None,
            k=depth,
            model=model,
            documents=documents,
            **options,
        ),
    )


def _short_hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def index_of(content: Mapping[str, Any], name: str, beside: Path, folder: Path) -> Path:
    """The index of a collection: one that it names, or the study's own."""
    return beside / content["index"] if content.get("index") else folder / INDEXES / name


def _collection(study: Study, name: str, content: Mapping[str, Any], beside: Path, folder: Path) -> None:
    index = index_of(content, name, beside, folder)
    if not index.is_dir():
        build(str(index), [str(beside / document) for document in content["documents"]], BuildOptions())
    texts = read_texts(Snapshot.open(index))
    topics = {own: _topics(study, index, texts, f"{name}/{own}", files, beside) for own, files in content["topics"].items()}
    Collection.read(Snapshot.open(index), topics, texts).save(folder / COLLECTIONS / name)


def _topics(study: Study, index: Path, texts: Texts, name: str, files: Mapping[str, Any], beside: Path) -> Topics:
    try:
        file, judgements = beside / files["file"], beside / files["judgements"]
    except KeyError as missing:
        raise InputError(f"{name} has no {missing}") from None
    ranked_by = study.ranked_by if _is_drawn_from_rankings(study, name) else ""
    return read_judged(Index.open(index), texts, file, judgements, sample=files.get("sample", 0), ranked_by=ranked_by)


def read_judged(
    index: Index,
    texts: Texts,
    topics: str | os.PathLike[str],
    judgements: str | os.PathLike[str],
    *,
    sample: int = 0,
    ranked_by: str = "",
    on_problem: Callable[[str], None] = lambda problem: None,
) -> Topics:
    """The topics of a file that have something relevant in an index, or so many of them, drawn.

    A topic that is a patent asks with the words that score passages for it in a search, and has its codes. With `ranked_by`, a model,
    topics have its best results to draw negatives from.
    """
    asked = {topic.qid: topic for topic in read_topics(topics)}
    queries: dict[str, str] = {}
    codes: dict[str, frozenset[str]] = {}
    for qid, topic in asked.items():
        read = prepare_topic(index.snapshot, topic, SearchOptions())
        if read.problem:
            on_problem(f"topic {qid}: {read.problem}")
            continue
        if read.prepared.patent is not None:
            # What no document has would lead nowhere: without any, codes are those of relevant documents.
            codes[qid] = frozenset(map(str, codes_of(read.prepared.patent.metadata))) & texts.documents_sharing.keys()
        queries[qid] = read.prepared.scoring.text
    found = topics_of(texts, queries, read_judgements(judgements))
    found = replace(found, codes=tuple(codes.get(qid, frozenset()) for qid in found.qids))
    if 0 < sample < len(found):
        found = found.some(np.sort(np.random.default_rng(1).permutation(len(found))[:sample]).tolist())
    if not ranked_by:
        return found
    chosen = [asked[qid] for qid in found.qids]
    rankings = search_topics(index, chosen, lambda problem: None, k=DRAWN_FROM, model=ranked_by)
    names = {qid: [texts.number[own] for own, _ in ranking] for qid, ranking in rankings}
    return replace(found, ranked=tuple(np.array(names.get(qid, []), np.int64) for qid in found.qids))


def _is_drawn_from_rankings(study: Study, name: str) -> bool:
    """Whether a system draws negatives of these topics from rankings."""
    return any(
        "ranked" in sources_of(study.settings_of(system).strategy) and name in (system.train_on or study.train_on)
        for system in study.systems
    )
