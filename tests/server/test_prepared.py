"""Served indexes whose shards are elsewhere: commits are prepared before they are shown, and shards may be missing."""

import shutil
from pathlib import Path

import pytest

from perikope.cluster.building import append, build_cluster
from perikope.index import manifest as manifests
from perikope.search.facade import Index
from perikope.server.opening import COUNTED, SHARDS
from perikope.server.served import LOOKS, PREPARED, READABLE, PreparedIndex, ServedIndexes, state_folder
from tests.server.support import LiveServer, PoolHere, check_problem
from tests.support.cluster import coordinator
from tests.unit.cluster.test_building import lines


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp("prepared")
    (place / "documents.jsonl").write_text(lines(0, 30))
    build_cluster(str(place / "cluster"), [str(place / "documents.jsonl")], 3)
    return place / "cluster"


@pytest.fixture
def folder(built, tmp_path):
    return shutil.copytree(built, tmp_path / "cluster")


def commit(folder: Path, first: int) -> None:
    more = folder.parent / "more.jsonl"
    more.write_text(lines(first, first + 5))
    append(str(folder), [str(more)])


def test_a_commit_is_shown_when_it_is_prepared(folder, tmp_path):
    index = PreparedIndex("c", folder, states=tmp_path / "states")
    assert index.look()
    assert (index.generation, index.commit, index.is_behind) == (2, manifests.load(folder).generation, False)
    first = manifests.load(folder)
    commit(folder, 30)
    assert index.look()
    assert not index.look()
    assert (index.generation, index.newest, index.commit) == (2, 3, first.generation)
    assert index.lag[0] == 1
    index.learn({PREPARED: False}, 3)
    assert index.is_behind
    commit(folder, 35)
    index.look()
    index.learn({PREPARED: True}, 3)  # about the commit before the last one
    assert (index.generation, index.newest, index.lag[0]) == (2, 4, 2)
    index.learn({PREPARED: True}, 4)
    assert (index.generation, index.commit, index.lag) == (4, manifests.load(folder).generation, (0, 0.0))
    assert manifests.load(state_folder(index.states, "c", 2)) == first, "requests that have begun may need it"
    assert manifests.load(state_folder(index.states, "c", 4)) == manifests.load(folder)


def test_old_commits_are_not_kept(folder, tmp_path):
    index = PreparedIndex("c", folder, states=tmp_path / "states")
    index.look()
    for number in range(4):
        commit(folder, 40 + 5 * number)
        index.look()
        index.learn({PREPARED: True}, index.newest)
    assert sorted(path.name for path in index.states.iterdir()) == ["c-4", "c-5", "c-6"]


def test_a_damaged_manifest_is_not_noticed(folder, tmp_path):
    index = PreparedIndex("c", folder, states=tmp_path / "states")
    index.look()
    (folder / manifests.FILE).write_text("{")
    assert not index.look()
    assert not index.is_behind


class OpenerHere:
    """Opens clusters whose shards answer in this process."""

    def __init__(self, states: Path, partial: bool) -> None:
        self.states, self.partial, self.down = states, partial, set()

    def open(self, name, number):
        index = coordinator(self.folder, partial=self.partial)
        index.shards.down, self.index = self.down, index
        return index

    def show(self, name, index, number):
        index.show(manifests.load(state_folder(self.states, name, number)))

    def facts(self, name, index):
        return {COUNTED: {"questions": 2, "hedges": 1}}

    def status(self, name, index, number):
        return {PREPARED: True, READABLE: not self.down, SHARDS: [(2, 2)] * 3}


def served(folder, tmp_path, partial):
    states = tmp_path / "states"
    index = PreparedIndex("c", folder, states=states)
    index.look()
    opener = OpenerHere(states, partial)
    opener.folder = folder
    indexes = ServedIndexes({"c": index})
    server = LiveServer({}, served=indexes)
    server.app.pool = PoolHere(indexes, server.settings, opener)
    return server, index, opener


def number(client, name):
    return [float(line.rpartition(" ")[2]) for line in client.get("/metrics").text.splitlines() if line.startswith(name)]


def test_all_requests_after_the_switch_see_the_commit_and_none_before(folder, tmp_path):
    server, index, opener = served(folder, tmp_path, False)
    with server, server.client() as client:
        before = Index.open(folder)
        ask = {"query": "rotor seal", "k": 50}

        def found():
            answer = client.post("/indexes/c/search", json=ask)
            return answer.headers["perikope-generation"], [(hit["document"], hit["score"]) for hit in answer.json()["hits"]]

        def expected(index):
            return str(index.snapshot.manifest.generation), [(hit.document, hit.score) for hit in index.search(**ask)]

        assert found() == expected(before)
        commit(folder, 60)
        index.look()
        assert found() == expected(before)
        assert number(client, 'perikope_cluster_lag_commits{index="c"}') == [1.0]
        index.learn(opener.status("c", None, index.newest), index.newest)
        assert found() == expected(Index.open(folder))
        assert expected(before) != expected(Index.open(folder))
        assert number(client, 'perikope_cluster_lag_commits{index="c"}') == [0.0]
        assert number(client, "perikope_cluster_replicas{") == [2.0, 2.0, 2.0]
        assert number(client, 'perikope_cluster_hedges_total{index="c"}') == [2.0], "one answer came from the cache"


def test_a_partial_answer_is_marked_and_not_kept(folder, tmp_path):
    server, index, opener = served(folder, tmp_path, True)
    with server, server.client() as client:
        opener.down.add(1)
        for _ in range(2):
            answer = client.get("/indexes/c/search?query=rotor")
            assert (answer.status_code, answer.headers["perikope-missing-shards"], answer.json()["missing_shards"]) == (200, "1", [1])
        assert number(client, 'perikope_cluster_partial_answers_total{index="c"}') == [2.0]
        assert server.lines()[-2]["missing_shards"] == [1]
        check_problem(client.get("/indexes/c/count"), 503)
        for _ in range(LOOKS):
            assert client.get("/ready").status_code == 200
            index.learn(opener.status("c", None, index.newest), index.newest)
        check_problem(client.get("/ready"), 503)
        opener.down.clear()
        index.learn(opener.status("c", None, index.newest), index.newest)
        assert client.get("/ready").status_code == 200
        opener.index.shards.missing._next_look.clear()
        answer = client.get("/indexes/c/search?query=rotor")
        assert "perikope-missing-shards" not in answer.headers
        assert answer.json()["complete"] is True


def test_without_partial_answers_a_missing_shard_is_a_503(folder, tmp_path):
    server, _, opener = served(folder, tmp_path, False)
    with server, server.client() as client:
        opener.down.add(2)
        assert "do not answer" in check_problem(client.get("/indexes/c/search?query=rotor"), 503)
        assert client.get("/indexes/c/search?query=rotor").headers["retry-after"] == "2"
