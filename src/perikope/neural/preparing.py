"""Write the files that jobs of neural rankers need: texts, graphs and topics of each collection.

They are read from the index of the collection.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

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
from perikope.neural.ranker_settings import NeuralSettings
from perikope.neural.triples import Texts, Topics, read_texts, sources_of, topics_of
from perikope.neural.workplace import fetched_file
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

    `indexes` has the folder of each collection's index, by name. If the plan fetches `documents` per topic, the run of
    these documents is written too. `on_step` is called with a line of text before a collection is read.
    """
    qids: dict[str, tuple[str, ...]] = {}
    for name, index in indexes.items():
        path = folder / COLLECTIONS / name
        if path.is_file():
            collection = Collection.load(path)
        else:
            on_step(f"reading {name}")
            collection = _read_collection(plan, name, index)
            collection.save(path)
        qids |= {f"{name}/{topics}": content.qids for topics, content in collection.topics.items()}
    for reported in plan.sets if plan.shared.documents else ():
        path = fetched_file(folder, reported.name)
        if not path.is_file():
            write_run(path, _fetched(indexes[reported.collection_name], reported.topics, plan.shared))
    return {reported.name: qids[reported.name] for reported in plan.sets}


def _read_collection(plan: Plan, name: str, index: Path) -> Collection:
    """Read a collection of the plan, with all its sets of topics, from its index."""
    snapshot = Snapshot.open(index)
    texts = read_texts(snapshot)
    topics = {}
    for set_name, topics_plan in plan.collections[name].topics.items():
        (table, key), (option, _) = topics_plan.location, topics_plan.options
        ranked_by = plan.shared.ranked_by if _is_drawn_from_rankings(plan, f"{name}/{set_name}") else ""
        forms = (topics_plan.form, topics_plan.field, topics_plan.judgement_form)
        with plan.reading(table, key, option):
            topics[set_name] = read_judged(
                Index.open(index),
                texts,
                topics_plan.file,
                topics_plan.judgements,
                sample=topics_plan.sample or 0,
                ranked_by=ranked_by,
                forms=forms,
                options=plan.shared.search_options,
                language=topics_plan.language,
            )
    return Collection.read(snapshot, topics, texts)


def _fetched(index: Path, topics: TopicsPlan, shared: NeuralSettings) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """Yield the id of each topic with the documents that are fetched for it, and their scores."""
    snapshot = Snapshot.open(index)
    options = shared.search_options.updated({"documents": shared.documents})
    for topic in read_topics(topics.file, topics.form, topics.field, topics.language):
        asked = prepare_topic(snapshot, topic, options)
        if not asked.problem:
            found = asked.search.candidates(asked.prepared).candidates
            names = [encode(snapshot.document_id(number)) for number in found.documents.tolist()]
            yield topic.qid, list(zip(names, found.scores.tolist(), strict=True))


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
    - `options`: options of a search, which say how a topic becomes a query; None for the defaults.
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
