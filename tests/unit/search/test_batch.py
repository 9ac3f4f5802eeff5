"""Many queries at once."""

import threading

import pytest

from perikope.core.errors import ModelWarning, UsageError
from perikope.core.parallel import can_fork, in_processes
from perikope.evaluation.io.runs import ranking_in, write_run
from perikope.query.topic import Topic
from perikope.search import batch
from perikope.search.batch import search_topics
from tests.support.collections import index_of, plain_document

QUERIES = ["rotor", "seal of the pump", "valve", "pump"]


@pytest.fixture(scope="module")
def index():
    return index_of([plain_document("d1", "Pumps", "A rotor.", "A seal."), plain_document("d2", "", "The rotor of a pump.")])


@pytest.mark.parametrize("threads", [1, 3, None])
def test_many_queries_find_what_each_finds_alone(index, threads):
    found = [(query, results.names()) for query, results in index.search_many(iter(QUERIES), threads=threads, model="qsf_v", k=2)]
    assert found == [(query, index.search(query, model="qsf_v", k=2).names()) for query in QUERIES]


def test_topics_keep_their_options_and_dictionaries_become_topics(index):
    topics = [Topic("1", "rotor", options={"k": 1}), Topic("2", "pump")]
    found = {topic.qid: len(results) for topic, results in index.search_many(topics)}
    assert found == {"1": 1, "2": 3}
    assert [(topic.qid, topic.query) for topic, _ in index.search_many({"7": "rotor", "8": "seal"})] == [("7", "rotor"), ("8", "seal")]
    assert [len(results) for _, results in index.search_many([])] == []


def test_a_wrong_query_is_named_or_left_out(index):
    queries = ["rotor", "the of", Topic("t3", "?!"), "pump"]
    found = index.search_many(queries)
    assert next(found)[0] == "rotor"
    with pytest.raises(UsageError, match=r"^query 2: .*only stop words"):
        next(found)
    problems = []
    assert [query for query, _ in index.search_many(queries, on_problem=problems.append)] == ["rotor", "pump"]
    assert [problem.partition(":")[0] for problem in problems] == ["query 2", "topic t3"]


def test_wrong_options_are_told_at_once(index):
    for options in ({"model": "bm52"}, {"k": 0}, {"filter": "nofield=1"}, {"nothing": 1}):
        with pytest.raises(UsageError):
            index.search_many(QUERIES, **options)
    for single in ("rotor", Topic("1", "rotor"), 7):
        with pytest.raises(UsageError, match="use search for a single one"):
            index.search_many(single)
    with pytest.raises(UsageError, match="date_limit applies to patents only"):
        list(index.search_many(QUERIES, date_limit=False))


def test_a_batch_keeps_its_snapshot():
    index = index_of([plain_document("d1", "", "rotor")])
    found = index.search_many(["rotor"] * 3, threads=1)
    index.add(plain_document("d2", "", "rotor"))
    index.commit()
    index.close()
    assert [len(results) for _, results in found] == [1, 1, 1]


def test_a_batch_that_is_left_ends_its_threads(index):
    before = threading.active_count()
    for _ in index.search_many(QUERIES * 50, threads=3):
        break
    assert threading.active_count() == before


def test_warnings_reach_the_caller():
    plain = index_of([plain_document("d1", "", "rotor")])
    with pytest.warns(ModelWarning, match="title"):
        list(plain.search_many(["rotor"], model="qsf_v_title(alpha=0.5)"))


def test_topics_for_a_run(index):
    problems = []
    topics = [Topic("1", "rotor"), Topic("2", "?"), Topic("3", "valve")]
    assert [(qid, len(ranking)) for qid, ranking in search_topics(index, topics, problems.append)] == [("1", 3), ("2", 0), ("3", 0)]
    assert [problem.partition(":")[0] for problem in problems] == ["topic 2", "topic 3"]


@pytest.mark.parametrize("model", ["bm25", "coverage", "qsf_v"])
def test_processes_write_the_same_run(index, tmp_path, model, monkeypatch):
    topics = [*(Topic(str(number), query) for number, query in enumerate(QUERIES * 3)), Topic("wrong", "the of")]
    used = []
    monkeypatch.setattr(batch, "in_processes", lambda *given: used.append(given) or in_processes(*given))
    written = []
    for threads in (1, 2):
        problems, notes = [], []
        rankings = search_topics(
            index, topics, problems.append, threads=threads, ranking_of=ranking_in("trec"), on_note=notes.append, model=model
        )
        write_run(tmp_path / "run", rankings)
        written.append(((tmp_path / "run").read_bytes(), problems, notes))
    assert written[0] == written[1]
    assert len(used) == can_fork()
