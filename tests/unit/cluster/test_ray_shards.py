"""The coordinator of shards on Ray, with actors in threads: failures, slow replicas, generations and deadlines."""

import itertools
import pickle
import random
import time
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="clusters on Ray are not tested: ray is not installed (pip install 'perikope[cluster]')")

from ray.exceptions import ActorDiedError, RayActorError, RayTaskError

from perikope.cluster import ray_shards
from perikope.cluster.building import append, build_cluster
from perikope.cluster.index import ClusterIndex
from perikope.cluster.ray_shards import RayShards, ShardReplica
from perikope.cluster.snapshot import ClusterSnapshot
from perikope.core.errors import IndexFormatError, ShardError, UsageError
from perikope.index import manifest as manifests
from perikope.search.facade import Index
from tests.unit.cluster.test_building import QUERIES, lines

SHARDS = 2


class Actor:
    """A replica in threads. It can die, be slow, and start anew; what travels is pickled."""

    def __init__(self, pool, folder, number):
        self._pool, self._folder, self._number = pool, str(folder), number
        self.dead, self.pause, self.calls, self._error = False, 0.0, 0, RayActorError()
        self.start()
        self.answer = SimpleNamespace(remote=self._remote)
        self.prepare = SimpleNamespace(options=lambda concurrency_group: SimpleNamespace(remote=self._prepare))

    def start(self):
        self._replica, self.dead = ShardReplica(self._folder, self._number), False

    def _remote(self, *given):
        self.calls += 1
        return self._pool.submit(self._answer, pickle.dumps(given))

    def _prepare(self, *given):
        if self.dead:
            failed = Future()
            failed.set_exception(ActorDiedError())
            return failed
        return self._pool.submit(self._call, self._replica.prepare, given)

    def _answer(self, given):
        time.sleep(self.pause)
        if self.dead:
            raise self._error
        return self._call(lambda *given: pickle.loads(pickle.dumps(self._replica.answer(*given))), pickle.loads(given))

    def _call(self, method, given):
        try:
            return method(*given)
        except Exception as error:
            raise RayTaskError("method", "", error) from None


def ray_wait(references: list[Future], num_returns=1, timeout=None):
    done, _ = wait(references, timeout, FIRST_COMPLETED if num_returns == 1 else ALL_COMPLETED)
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


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_a_generation_is_opened_before_it_is_asked_about(actors, tmp_path):
    folder, replicas = actors
    index, shards = searching(folder, replicas)
    names(index)
    (tmp_path / "more.jsonl").write_text(lines(60, 90))
    append(str(folder), [str(tmp_path / "more.jsonl")])
    manifest = manifests.load(folder)
    replicas[1][0].dead = True
    assert [alive for alive, _ in shards.prepare(manifest)] == [2, 1]
    until(lambda: shards.prepare(manifest) == [(2, 2), (1, 1)])
    for actor in (*replicas[0], replicas[1][1]):
        assert len(actor._replica._opened) == 2
    assert shards.figures.failures == 0, "nobody asked a question"


def test_the_reason_why_a_replica_cannot_open_a_generation_is_known(actors):
    folder, replicas = actors
    manifest = manifests.load(folder)
    (folder / manifest.segments[0]["file"]).unlink()
    shards = RayShards(manifest, replicas)
    until(lambda: shards.prepare(manifest) and shards.problem is not None)
    assert isinstance(shards.problem, IndexFormatError)
    until(lambda: shards.prepare(manifest) == [(2, 0), (2, 2)])


def test_an_actor_that_was_stopped_and_started_again_is_found(actors):
    folder, replicas = actors
    started = {(1, 0): replicas[1][0]}
    manifest = manifests.load(folder)
    gone = Actor(replicas[1][0]._pool, folder, 1)
    gone.dead, gone._error = True, ActorDiedError()
    shards = RayShards(manifest, [replicas[0], [gone]], deadline=20.0, find=lambda shard, number: started.get((shard, number)))
    index = Index.open(folder)
    index._snapshot = ClusterSnapshot(folder, manifest, shards)
    assert names(index) == names(Index.open(folder))
    assert shards.figures.failures == 1


def test_shards_at_a_later_generation_know_what_was_counted_and_which_replicas_fail(actors, tmp_path):
    folder, replicas = actors
    index, shards = searching(folder, replicas, deadline=0.3)
    names(index)
    for replica in replicas[1]:
        replica.dead = True
    with pytest.raises(ShardError) as error:
        index.search("rotor seal")
    shards.missing.note(error.value.shards)
    later = shards.at(manifests.load(folder))
    assert later.figures.questions == shards.figures.questions > 0
    assert later.figures.given_up == 1
    assert later.missing.known() == {1}
    for replica in replicas[1]:
        replica.start()
    until(lambda: later.missing.known() == frozenset())


def test_a_partial_search_over_replicas_goes_on_without_a_shard_and_with_it_again(actors):
    folder, replicas = actors
    manifest = manifests.load(folder)
    index = ClusterIndex(folder, RayShards(manifest, replicas, deadline=0.5), manifest, partial=True)
    expected = names(index)
    for replica in replicas[1]:
        replica.dead = True
    assert index.search("rotor seal").missing_shards == (1,)
    began = time.monotonic()
    assert index.search("rotor seal").missing_shards == (1,)
    assert time.monotonic() - began < 20, "the deadline is not waited for again"
    for replica in replicas[1]:
        replica.start()
    until(lambda: index.search("rotor seal").complete)
    assert names(index) == expected == names(Index.open(folder))
