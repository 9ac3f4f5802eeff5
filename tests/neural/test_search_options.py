"""Search options of rankers: they decide which documents are ranked and how a topic becomes a query, as in a search."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import InputError
from perikope.evaluation.experiment.plan import load_plan, parse_plan
from perikope.evaluation.experiment.plan_keys import RANKER_OPTIONS, SEARCH_OPTIONS
from perikope.evaluation.experiment.running import prepare_experiment
from perikope.evaluation.io.topics import read_topics
from perikope.index.reader import Snapshot
from perikope.neural.workplace import Workplace, set_key
from perikope.search.batch import prepare_topic
from perikope.search.options import SearchOptions
from perikope.search.recipe_files import toml_value
from tests.contracts.test_options import CASES, FAMILY, OTHERS, PATENT, stand_ins  # noqa: F401
from tests.support.patents import families

TOPICS = {name: case.query for name, case in CASES.items() if name in RANKER_OPTIONS and not case.with_patent}


def experiment(folder, documents, rankers, search=""):
    systems = "".join(
        f"[[systems]]\nname = {json.dumps(name)}\ntrained = false\noptions = {toml_value(options)}\n" for name, options in rankers.items()
    )
    return f"""
        kind = "neural"
        title = "t"
        measures = ["nDCG@10"]
        report_on = ["patents/asked"]
        documents = {documents}
        {search}
        [collections.patents]
        index = "{folder / "idx"}"
        topics.asked = {{ file = "{folder / "topics.jsonl"}", judgements = "{folder / "qrels.txt"}" }}
    {systems}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rankers")
    (folder / "documents").mkdir()
    for family in families():
        for patent in family.everything:
            (folder / "documents" / f"{patent.id}.xml").write_text(patent.xml, encoding="utf-8")
    (folder / "documents" / "others.jsonl").write_text("".join(json.dumps(document) + "\n" for document in OTHERS))
    build(str(folder / "idx"), [str(folder / "documents")], BuildOptions(workers=1))
    topics = [*({"qid": qid, "query": query} for qid, query in TOPICS.items()), {"qid": "patent", "patent": PATENT}]
    (folder / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    (folder / "qrels.txt").write_text("".join(f"{topic['qid']} 0 {FAMILY.later.id}#claim-1 1\n" for topic in topics))
    return folder


def of_search(folder, qid, options, documents):
    """What a search makes of a topic: the query that scores passages, and the documents that may have results."""
    snapshot = Snapshot.open(folder / "idx")
    topic = next(topic for topic in read_topics(folder / "topics.jsonl") if topic.qid == qid)
    asked = prepare_topic(snapshot, topic, SearchOptions.of({**options, "documents": documents or "all"}))
    if documents:
        numbers = asked.search.candidates(asked.prepared).candidates.documents
    else:
        numbers = np.flatnonzero(asked.search.fetching(asked.prepared).allowed())
    return asked.prepared.scoring.plain_text, {snapshot.document_id(number) for number in numbers.tolist()}


def of_ranker(place, qid, options):
    """The query of a topic, and the documents whose passages a ranker with these options ranks."""
    collection, topics = place.set_of("patents/asked", options)
    row = topics.qids.index(qid)
    mask = place.fetched.get(set_key("patents/asked", options))
    passages = np.arange(len(collection.texts.names)) if mask is None else np.flatnonzero(mask[row])
    documents = {collection.texts.documents[number] for number in np.unique(collection.texts.document_of_passage[passages]).tolist()}
    return topics.queries[row], documents


@pytest.mark.parametrize("documents", [2, 0])
def test_rankers_get_what_a_search_gets(folder, tmp_path, documents):
    cases = {name: CASES[name] for name in RANKER_OPTIONS}
    rankers = {}
    for name, case in cases.items():
        base = {key: value for key, value in case.base.items() if key in RANKER_OPTIONS}
        rankers |= {f"{name} without": base, f"{name} with": {**base, name: case.value}}
    (tmp_path / "plan.toml").write_text(experiment(folder, documents, rankers))
    prepare_experiment(load_plan(str(tmp_path / "plan.toml")), tmp_path / "out", workers=1)
    place = Workplace.open(tmp_path / "out")
    changed = set()
    for name, case in cases.items():
        qid = "patent" if case.with_patent else name
        seen = {}
        for which in ("with", "without"):
            options = dict(place.plan.system(f"{name} {which}").options)
            assert of_ranker(place, qid, options) == of_search(folder, qid, rankers[f"{name} {which}"], documents), (name, which)
            seen[which] = of_ranker(place, qid, options)
        changed |= {name} if seen["with"] != seen["without"] else set()
    # Rankers read the whole text of a patent's claims, so browse_words only limits the words of other models.
    of_filters = {"filter", "code_filter", "date_limit", "family_filter", "browse_from", "translator"}
    of_fetch = {"fetch", "syntax", "also_nearest", "fetch_words", "fetch_from"}
    assert changed >= of_filters | (of_fetch if documents else {"code_level"})


def test_all_rankers_share_the_options_of_search(folder, tmp_path):
    search = "[search]\ndate_limit = false\nbrowse_from = 'claims'"
    (tmp_path / "plan.toml").write_text(experiment(folder, 0, {"a": {}, "b": {"browse_from": "title"}}, search))
    plan = load_plan(str(tmp_path / "plan.toml"))
    assert [system.options for system in plan.systems] == [
        {"date_limit": False, "browse_from": ("claims",)},
        {"date_limit": False, "browse_from": ("title",)},
    ]
    prepared = prepare_experiment(plan, tmp_path / "out", workers=1)
    assert [system.options for system in prepared.plan.systems] == [system.options for system in plan.systems]
    place = Workplace.open(tmp_path / "out")
    queries = [of_ranker(place, "patent", system.options)[0] for system in plan.systems]
    assert queries == [of_search(folder, "patent", system.options, 0)[0] for system in plan.systems]
    assert queries[0] != queries[1]


@pytest.mark.parametrize("name", [name for name in SEARCH_OPTIONS if name not in RANKER_OPTIONS])
def test_other_options_are_refused(folder, name):
    value = CASES[name].value
    with pytest.raises(InputError, match=rf"options\] {name} "):
        parse_plan(experiment(folder, 0, {"a": {name: value}}), "plan.toml", folder)
    if name != "documents":
        with pytest.raises(InputError, match=rf"\[search\] {name} does not apply to the ranker 'a'"):
            parse_plan(experiment(folder, 0, {"a": {}}, f"[search]\n{name} = {toml_value(value)}"), "plan.toml", folder)


@pytest.mark.parametrize("line", ["tune = true", 'learn = "prior"', "trials = 3", "min_occurrences = 3"])
def test_keys_of_other_systems_are_refused(folder, line):
    with pytest.raises(InputError, match=f"{line.split()[0]} does not apply to a ranker"):
        parse_plan(experiment(folder, 0, {"a": {}}) + line + "\n", "plan.toml", folder)


def test_topics_that_rankers_cannot_use_are_named(folder, tmp_path):
    (tmp_path / "topics.tsv").write_text("1\tgasket\n2\tthe of\n")
    (tmp_path / "qrels.txt").write_text("".join(f"{qid} 0 {FAMILY.later.id}#claim-1 1\n" for qid in "12"))
    text = (
        experiment(folder, 0, {"a": {}}).replace(str(folder / "topics.jsonl"), "topics.tsv").replace(str(folder / "qrels.txt"), "qrels.txt")
    )
    (tmp_path / "plan.toml").write_text(text)
    lines: list[str] = []
    prepare_experiment(load_plan(str(tmp_path / "plan.toml")), tmp_path / "out", workers=1, on_step=lines.append)
    assert [line for line in lines if line.startswith("topic 2: ")]
