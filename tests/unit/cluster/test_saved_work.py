"""What a single index or a shard does once, or leaves out, does not change the answers of a cluster."""

import shutil

import pytest

from perikope.query.topic import Topic
from perikope.search.all_names import AllNames
from perikope.search.batch import search_topics
from perikope.search.facade import Index
from perikope.search.results import Results
from tests.support.cluster import coordinator, divide
from tests.support.collections import index_of
from tests.unit.search.test_promising import QUERY, documents

TOPICS = [Topic(str(number), text) for number, text in enumerate([QUERY, "w0 w3", "w1 w2 w7", QUERY] * 5)]


@pytest.fixture(scope="module")
def whole():
    return index_of(list(documents()), [150, 260])


@pytest.fixture(scope="module")
def folder(whole):
    made = divide(list(whole.documents()), 3, cuts=[200])
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("options", [{}, {"model": "bm25"}, {"model": "bm25", "offset": 5, "k": 3}, {"expand": "bo1", "model": "bm25"}])
def test_a_cluster_leaves_out_the_candidates_that_an_index_leaves_out(whole, folder, options):
    expected = whole.search(QUERY, **options)
    on_this_machine, by_messages = (index.search(QUERY, **options) for index in (Index.open(folder), coordinator(folder)))
    for found in (expected, on_this_machine, by_messages):
        assert found._ranked.matches.documents < found.matches.documents / 2
    for found in (on_this_machine, by_messages):
        assert found.names() == expected.names()
        assert list(map(repr, found)) == list(map(repr, expected))
        assert [found.explain(i) for i in range(len(found))] == [expected.explain(i) for i in range(len(expected))]
        assert found.document_ranking() == expected.document_ranking()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_on_a_cluster_is_that_of_an_index(whole, folder, threads):
    cluster = coordinator(folder)

    def run(index):
        found = search_topics(index, TOPICS, lambda problem: None, threads=threads, ranking_of=Results.ranked_names, model="bm25", k=1000)
        return [(topic, names.lines.to_list(), names.scores.tolist()) for topic, names in found]

    assert run(cluster) == run(whole)
    assert "names" not in cluster.snapshot.derived
    shards = cluster.snapshot._shards.shards
    assert all(isinstance(shard.derived["names"], AllNames) for shard in shards)


def test_the_terms_of_a_portion_of_topics_are_counted_by_one_question_to_each_shard(folder):
    cluster = coordinator(folder)
    asked = []
    count = cluster.snapshot._count_terms
    cluster.snapshot._terms._read_counts = lambda terms: (asked.append(tuple(terms)), count(terms))[1]
    found = dict(search_topics(cluster, TOPICS[:3], lambda problem: None, threads=1, model="bm25"))
    assert len(found) == 3
    assert len(asked) == 1


def test_hits_are_read_by_one_question_to_each_shard(folder):
    results = coordinator(folder).search(QUERY, k=12)
    asked = []
    shards = results._snapshot._shards
    ask = shards.ask
    shards.ask = lambda messages: (asked.append([number for number, _ in messages]), ask(messages))[1]
    hits = list(results)
    assert len(hits) == 12
    [numbers] = asked
    assert len(numbers) == len(set(numbers)) > 1
    assert results[:] == hits == [results[i] for i in range(12)]
