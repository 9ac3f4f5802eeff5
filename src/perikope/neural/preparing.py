"""Write the files that jobs of neural rankers need: texts, graphs and topics of each collection.

They are read from the index of the collection.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.names import encode
from perikope.evaluation.experiment.plan import Plan
from perikope.evaluation.experiment.plan_parts import TopicsPlan
from perikope.evaluation.experiment.prepared import COLLECTIONS
from perikope.evaluation.io.fitting import fit_judgements
from perikope.evaluation.io.runs import write_run
from perikope.evaluation.io.topics import read_topics
from perikope.fetch.filters import codes_of
from perikope.index.reader import Snapshot
from perikope.neural.collection import Collection
from perikope.neural.triples import Texts, Topics, read_texts, sources_of, topics_of
from perikope.neural.workplace import fetched_file, set_key
from perikope.search.batch import prepare_topic, search_topics
from perikope.search.facade import Index
from perikope.search.options import SearchOptions

DRAWN_FROM = 100
"""Number of results per topic that the strategy `ranked` draws negatives from."""


def prepare_collections(
    plan: Plan, indexes: Mapping[str, Path], folder: Path, on_step: Callable[[str], None]
) -> dict[str, tuple[str, ...]]:
    """Write the file of each collection, unless it exists.

    Returns the topic ids of each reported set, by `collection/set`.

    `indexes` has the folder of each collection's index, by name. A run names the documents whose passages are ranked
    for each topic, unless all passages are. `on_step` is called with a line of text before a collection is read, and
    for each topic that cannot be used.
    """
    qids: dict[str, tuple[str, ...]] = {}
    for name, index in indexes.items():
        path = folder / COLLECTIONS / name
        wanted = {set_key(topics, options) for topics in plan.collections[name].topics for options in _options(plan)}
        collection = Collection.load(path) if path.is_file() else None
        if collection is None or not wanted <= collection.topics.keys():
            on_step(f"reading {name}")
            collection = _read_collection(plan, name, index, on_step)
            collection.save(path)
        first = _options(plan)[0]
        qids |= {f"{name}/{topics}": collection.topics[set_key(topics, first)].qids for topics in plan.collections[name].topics}
    for reported in plan.sets:
        for options in _options(plan):
            path = fetched_file(folder, set_key(reported.name, options))
            if not path.is_file():
                _fetch(
                    Index.open(indexes[reported.collection_name]), reported.topics, SearchOptions.of(options), plan.shared.documents, path
                )
    return {reported.name: qids[reported.name] for reported in plan.sets}


def _options(plan: Plan) -> list[Mapping[str, Any]]:
    """The different search options of the rankers. Those of the first ranker come first."""
    distinct: list[Mapping[str, Any]] = []
    for system in plan.rankers:
        if system.options not in distinct:
            distinct.append(system.options)
    return distinct or [{}]


def _read_collection(plan: Plan, name: str, index: Path, on_step: Callable[[str], None]) -> Collection:
    """Read a collection of the plan, with all its sets of topics, from its index.

    A set of topics is there once for each of the different search options of rankers, with the same topics.
    """
    snapshot = Snapshot.open(index)
    texts = read_texts(snapshot)
    topics: dict[str, Topics] = {}
    for set_name, topics_plan in plan.collections[name].topics.items():
        (table, key), (option, _) = topics_plan.location, topics_plan.options
        ranked_by = plan.shared.ranked_by if _is_drawn_from_rankings(plan, f"{name}/{set_name}") else ""
        forms = (topics_plan.form, topics_plan.field, topics_plan.judgement_form)
        first: Topics | None = None
        for options in _options(plan):
            with plan.reading(table, key, option):
                read = read_judged(
                    Index.open(index),
                    texts,
                    topics_plan.file,
                    topics_plan.judgements,
                    sample=(topics_plan.sample or 0) if first is None else 0,
                    ranked_by=ranked_by,
                    forms=forms,
                    options=SearchOptions.of(options),
                    language=topics_plan.language,
                    on_problem=on_step,
                )
            first = first or read
            topics[set_key(set_name, options)] = read.aligned(first)
    return Collection.read(snapshot, topics, texts)


def _fetch(index: Index, topics: TopicsPlan, options: SearchOptions, documents: int, path: Path) -> None:
    """Write a run with the documents per topic whose passages are ranked to `path`.

    These are the best `documents` documents of a search with `options`. If `documents` is 0, they are all documents
    that satisfy the conditions of the topic, and no run is written if no topic has a condition.
    """
    rankings: list[tuple[str, list[tuple[str, float]]]] = []
    is_limited = bool(documents)
    for topic in read_topics(topics.file, topics.form, topics.field, topics.language):
        asked = prepare_topic(index.snapshot, topic, options.updated({"documents": documents or "all"}))
        numbers: list[int] = []
        if asked.problem:
            is_limited = is_limited or bool(options.changed())
        elif documents:
            numbers = asked.search.candidates(asked.prepared).candidates.documents.tolist()
        else:
            is_limited = is_limited or bool(asked.search.conditions or asked.prepared.filters)
            numbers = np.flatnonzero(asked.search.fetching(asked.prepared).allowed()).tolist()
        rankings.append((topic.qid, [(encode(index.snapshot.document_id(number)), -float(rank)) for rank, number in enumerate(numbers)]))
    if is_limited:
        write_run(path, rankings)


def read_judged(
    index: Index,
    texts: Texts,
    topics: str | os.PathLike[str],
    judgements: str | os.PathLike[str],
    *,
    sample: int = 0,
    ranked_by: str = "",
    forms: tuple[str, str, str] = ("auto", "", "auto"),
    language: str = "",
    options: SearchOptions | None = None,
    on_problem: Callable[[str], None] = lambda problem: None,
) -> Topics:
    """Read the topics of a file that have a relevant passage in an index.

    - `sample`: number of topics to draw at random; 0 for all.
    - `ranked_by`: a model whose best results are kept for each topic, to draw negatives from; empty for none.
    - `forms`: format of the topics, name of the topic field that is the query, and format of the judgements.
    - `language`: language of the topics; topics of other languages are left out. Empty for all.
    - `options`: the options of a search that make the query of a topic, and that `ranked_by` ranks with.
    - `on_problem`: called with a line of text for each topic that cannot be used, and if some judgements do not fit.

    If a topic is a patent, its query is the text that scores passages in a search: the natural-language claims, not
    their words with the highest tf-idf (Albarede et al. 2023, 5.1.2). The topic then has the patent's classification
    codes too.
    """
    form, field, judgement_form = forms
    asked = {topic.qid: topic for topic in read_topics(topics, form, field, language)}
    queries: dict[str, str] = {}
    codes: dict[str, frozenset[str]] = {}
    for qid, topic in asked.items():
        prepared = prepare_topic(index.snapshot, topic, options or SearchOptions())
        if prepared.problem:
            on_problem(f"topic {qid}: {prepared.problem}")
            continue
        if prepared.prepared.patent is not None:
            # Codes that no document has are left out. A topic without codes uses the codes of its relevant documents.
            codes[qid] = frozenset(map(str, codes_of(prepared.prepared.patent.metadata))) & texts.documents_sharing.keys()
        queries[qid] = prepared.prepared.scoring.plain_text
    fitted = fit_judgements(judgements, index.snapshot, judgement_form)
    if fitted.warning:
        on_problem(fitted.warning)
    judged = topics_of(texts, queries, fitted.names)
    judged = replace(judged, codes=tuple(codes.get(qid, frozenset()) for qid in judged.qids))
    if 0 < sample < len(judged):
        judged = judged.some(np.sort(np.random.default_rng(1).permutation(len(judged))[:sample]).tolist())
    if not ranked_by:
        return judged
    chosen = [asked[qid] for qid in judged.qids]
    rankings = search_topics(index, chosen, lambda problem: None, options=options, k=DRAWN_FROM, model=ranked_by)
    passages = {qid: [texts.number[name] for name, _ in ranking] for qid, ranking in rankings}
    return replace(judged, ranked=tuple(np.array(passages.get(qid, []), np.int64) for qid in judged.qids))


def _is_drawn_from_rankings(plan: Plan, name: str) -> bool:
    """Whether a ranker of the plan trains on the set of topics `name` with negatives from rankings (`ranked`)."""
    return any(
        "ranked" in sources_of(plan.shared.training_of(system.ranker).strategy) and name in (system.ranker.train_on or plan.shared.train_on)
        for system in plan.rankers
    )
