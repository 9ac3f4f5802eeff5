"""The coordinator of shards on Ray, with actors in threads: failures, slow replicas, generations and deadlines."""

import itertools
import pickle
import random
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="clusters on Ray are not tested: ray is not installed (pip install 'perikope[cluster]')")

from ray.exceptions import RayActorError, RayTaskError

from perikope.cluster import ray_shards
from perikope.cluster.building import append, build_cluster
from perikope.cluster.ray_shards import RayShards, ShardError, ShardReplica
from perikope.cluster.snapshot import ClusterSnapshot
from perikope.core.errors import UsageError
from perikope.index import manifest as manifests
from perikope.search.facade import Index
from tests.unit.cluster.test_building import QUERIES, lines

SHARDS = 2


class Actor:
    """A replica in threads. It can die, be slow, and start anew; what travels is pickled."""

    def __init__(self, pool, folder, number):
        self._pool, self._folder, self._number = pool, str(folder), number
        self.dead, self.pause, self.calls = False, 0.0, 0
        self.start()
        self.answer = SimpleNamespace(remote=self._remote)

    def start(self):
        self._replica, self.dead = ShardReplica(self._folder, self._number), False

    def _remote(self, *given):
        self.calls += 1
        return self._pool.submit(self._answer, pickle.dumps(given))

    def _answer(self, given):
        time.sleep(self.pause)
        if self.dead:
            raise RayActorError
        try:
            return pickle.loads(pickle.dumps(self._replica.answer(*pickle.loads(given))))
        except Exception as error:
            raise RayTaskError("answer", "", error) from None


def ray_wait(references: list[Future], num_returns=1, timeout=None):
    done, _ = wait(references, timeout, FIRST_COMPLETED)
    return [one for one in references if one in done][:num_returns], []


@pytest.fixture
def actors(tmp_path, monkeypatch):
    (tmp_path / "documents.jsonl").write_text(lines(0, 60))
    folder = tmp_path / "cluster"
    build_cluster(str(folder), [str(tmp_path / "documents.jsonl")], SHARDS)
    monkeypatch.setattr(ray_shards, "ray", SimpleNamespace(wait=ray_wait, get=lambda one, timeout=None: one.result(timeout)))
    with ThreadPoolExecutor(32) as pool:
        yield folder, [[Actor(pool, folder, shard) for _ in range(2)] for shard in range(SHARDS)]


def searching(folder, actors, deadline=20.0):
    index = Index.open(folder)
    manifest = index.snapshot.manifest
    shards = RayShards(manifest, actors, deadline=deadline)
    index._snapshot = ClusterSnapshot(folder, manifest, shards)
    return index, shards


def names(index):
    return {query: index.search(query, k=100).names() for query in QUERIES}


def test_answers_are_those_of_the_folder_and_replicas_share_the_work(actors):
    folder, replicas = actors
    index, shards = searching(folder, replicas)
    assert names(index) == names(Index.open(folder))
    assert shards.figures.failures == 0
    assert all(replica.calls > 5 for of_shard in replicas for replica in of_shard)


def test_two_hundred_deaths_cost_no_search(actors):
    folder, replicas = actors
    index, shards = searching(folder, replicas)
    expected, chosen = names(Index.open(folder)), random.Random(1)
    queries = itertools.cycle(QUERIES)
    for _ in range(200):
        died = chosen.choice(replicas)[chosen.randrange(2)]
        died.dead = True
        query = next(queries)
        assert index.search(query, k=100).names() == expected[query]
        died.start()  # without any generation opened
    assert shards.figures.failures > 0


def test_a_slow_replica_is_not_waited_for(actors):
    folder, replicas = actors
    index, shards = searching(folder, replicas)
    expected = names(Index.open(folder))
    assert names(index) == expected
    for of_shard in replicas:
        of_shard[0].pause = 1.0
    before = shards.figures.hedges
    calls = [sum(of_shard[i].calls for of_shard in replicas) for i in (0, 1)]
    assert names(index) == expected
    assert shards.figures.hedges > before
    slow, quick = (sum(of_shard[i].calls for of_shard in replicas) - calls[i] for i in (0, 1))
    assert quick > slow, "a replica with open questions is asked less"


def test_a_shard_without_an_answer_is_an_error_that_names_it(actors):
    folder, replicas = actors
    index, _ = searching(folder, replicas, deadline=0.5)
    names(index)
    for replica in replicas[1]:
        replica.dead = True
    with pytest.raises(ShardError, match=r"shard 1 has not answered within 0.5 s; the answer would be incomplete"):
        index.search("rotor seal")
    for replica in replicas[1]:
        replica.start()
    assert names(index) == names(Index.open(folder))


def test_an_error_of_a_search_is_raised_and_is_no_failure_of_a_replica(actors):
    folder, replicas = actors
    index, shards = searching(folder, replicas)
    with pytest.raises(UsageError, match="unknown metadata field"):
        index.search("rotor", one_per="absent")
    assert shards.figures.failures == 0


def test_replicas_open_a_new_generation_beside_the_old_one(actors, tmp_path):
    folder, replicas = actors
    old, shards = searching(folder, replicas)
    before = names(Index.open(folder))
    (tmp_path / "more.jsonl").write_text(lines(60, 90))
    append(str(folder), [str(tmp_path / "more.jsonl")])
    new = Index.open(folder)
    new._snapshot = ClusterSnapshot(folder, manifests.load(folder), shards.at(manifests.load(folder)))
    after = names(Index.open(folder))
    assert before != after
    for _ in range(2):
        assert names(new) == after
        assert names(old) == before
