"""Clusters on Ray, with two simulated nodes: the same answers, also while actors and nodes die; `make test-cluster`."""

import shutil
import threading
import time

import pytest

# Before Ray is imported, since it reads its settings then: otherwise it replaces loopback addresses, and hangs.
from tests.support.nodes import why_not_started

if why_not_started():
    pytest.skip(why_not_started(), allow_module_level=True)
pytest.importorskip("ray", reason="clusters on Ray are not tested: ray is not installed (pip install 'perikope[cluster]')")

import ray

import perikope
from perikope.cluster import on_ray
from perikope.cluster.building import append, build_cluster
from perikope.cluster.ray_shards import replica_name
from perikope.core.errors import ShardError, UsageError
from perikope.search.facade import Index
from tests.support.serving import served
from tests.unit.cluster.test_building import QUERIES, lines

SHARDS, KILLS = 2, 10
PATIENCE = 300.0
"""Deadline of a question in seconds. On a busy machine, a replica starts in more than the default."""
SEARCHES = [{}, {"model": "bm25"}, {"expand": "bo1"}, {"browse_expand": "rm3"}, {"elements": True}, {"documents": "all", "model": "bm25"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cluster")
    (place / "documents.jsonl").write_text(lines(0, 60))
    build_cluster(str(place / "cluster"), [str(place / "documents.jsonl")], SHARDS)
    return place / "cluster"


@pytest.fixture
def cluster(ray_nodes, folder):
    started = on_ray.start(folder, replicas=2, name="tests", deadline=PATIENCE)
    yield started
    on_ray.stop("tests")


def outcomes(index, searches=SEARCHES):
    found = []
    for query in QUERIES:
        for options in searches:
            results = index.search(query, k=100, **options)
            found.append((results.names(), [hit.to_dict() for hit in results[:3]]))
    return found


def test_a_cluster_on_ray_answers_as_its_folder(cluster, folder):
    whole = Index.open(folder)
    assert outcomes(cluster) == outcomes(whole)
    name = whole.search("rotor").names()[0][0]
    assert cluster.explain("rotor", name) == whole.explain("rotor", name)
    assert cluster.get("d3") == whole.get("d3")
    assert cluster.info() == whole.info()
    many = {query: results.names() for query, results in cluster.search_many(QUERIES)}
    assert many == {query: results.names() for query, results in whole.search_many(QUERIES)}
    assert outcomes(on_ray.find(folder, name="tests"), [{}]) == outcomes(whole, [{}])
    with pytest.raises(UsageError, match="no replica of shard 0, 1"):
        on_ray.find(folder, name="other")


def test_a_program_connects_by_the_address_of_ray(cluster, ray_nodes, folder):
    whole, address = Index.open(folder), f"ray://{ray_nodes.address}"
    for name in ("tests", ""):
        with perikope.connect(address, name) as index:
            assert outcomes(index, [{}]) == outcomes(whole, [{}])
    started = on_ray.start(folder, replicas=1, name="tests too", deadline=PATIENCE)
    assert outcomes(perikope.connect(address, "tests too"), [{}]) == outcomes(started, [{}])
    with pytest.raises(UsageError, match="name one of the started clusters, not '': 'tests', 'tests too'"):
        perikope.connect(address)
    assert on_ray.stop("tests too") == SHARDS
    with pytest.raises(UsageError, match="not 'other': 'tests'"):
        perikope.connect(address, "other")
    with pytest.raises(UsageError, match=r"is connected to Ray at .* and cannot use localhost:1 too"):
        perikope.connect("ray://localhost:1")
    with pytest.raises(UsageError, match="takes no token"):
        perikope.connect(address, token="secret")
    partial = perikope.connect(address, "tests", timeout=5.0, partial=True)
    assert partial.search("rotor seal").complete
    for replica in range(2):
        ray.kill(ray.get_actor(replica_name("tests", 1, replica), namespace=on_ray.NAMESPACE), no_restart=True)
    assert partial.search("rotor seal").missing_shards == (1,)


class Load:
    """Searches in a thread until it is stopped, and notes what failed or was wrong."""

    def __init__(self, cluster, expected):
        self.searches, self.wrong, self.stopped = 0, [], threading.Event()
        self._cluster, self._expected = cluster, expected
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.stopped.is_set():
            query = QUERIES[self.searches % len(QUERIES)]
            try:
                found = self._cluster.search(query, k=100).names()
                if found != self._expected[query]:
                    self.wrong.append((query, "another answer"))
            except Exception as error:
                self.wrong.append((query, repr(error)))
            self.searches += 1

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self.stopped.set()
        self._thread.join(60)


def answers_of(folder):
    whole = Index.open(folder)
    return {query: whole.search(query, k=100).names() for query in QUERIES}


def answers(shard, replica):
    """Whether a replica answers at all."""
    return answers_in("tests", shard, replica)


def answers_in(name, shard, replica):
    """Whether a replica of a cluster with this name answers at all."""
    try:
        ray.get(ray.get_actor(replica_name(name, shard, replica), namespace=on_ray.NAMESPACE).answer.remote("", None), timeout=30)
        return True
    except ray.exceptions.RayError:
        return False


def answers_now(shard, replica):
    """Whether a replica answers within two seconds."""
    actor = ray.get_actor(replica_name("tests", shard, replica), namespace=on_ray.NAMESPACE)
    try:
        ray.get(actor.answer.remote("", None), timeout=2)
        return True
    except (ray.exceptions.RayError, TimeoutError):
        return False


def wait_for(condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def test_no_search_fails_while_actors_are_killed(cluster, folder):
    outcomes(cluster, [{}])
    with Load(cluster, answers_of(folder)) as load:
        for number in range(KILLS):
            shard, replica = number % SHARDS, number // SHARDS % 2
            ray.kill(ray.get_actor(replica_name("tests", shard, replica), namespace=on_ray.NAMESPACE), no_restart=False)
            before = load.searches
            wait_for(lambda: load.searches >= before + 3)  # noqa: B023
            wait_for(lambda: answers(shard, replica))  # noqa: B023
    assert load.wrong == []
    assert load.searches >= 3 * KILLS


def test_a_search_uses_one_generation_and_a_refresh_shows_the_next(cluster, folder, tmp_path):
    before = answers_of(folder)
    (tmp_path / "more.jsonl").write_text(lines(60, 90))
    with Load(cluster, before) as load:
        append(str(folder), [str(tmp_path / "more.jsonl")])
        seen = load.searches
        wait_for(lambda: load.searches >= seen + 3)
    assert load.wrong == []
    assert cluster.refresh()
    assert not cluster.refresh()
    assert outcomes(cluster) == outcomes(Index.open(folder))
    assert len(cluster) == 90


def test_a_shard_without_replicas_is_an_error_that_names_it(cluster, folder):
    outcomes(cluster, [{}])
    for replica in range(2):
        ray.kill(ray.get_actor(replica_name("tests", 1, replica), namespace=on_ray.NAMESPACE), no_restart=True)
    cluster.shards.deadline = 1.0
    with pytest.raises(ShardError, match=r"shard 1 has not answered within 1 s"):
        cluster.search("rotor seal")


class Slow:
    """Stands for a replica that is slow."""

    def __init__(self, folder, number):
        from perikope.cluster.ray_shards import ShardReplica

        self._own = ShardReplica(folder, number)

    def answer(self, *given):
        time.sleep(5)
        return self._own.answer(*given)


def test_a_slow_replica_is_not_waited_for(cluster, folder):
    expected = answers_of(folder)
    slow = [ray.remote(Slow).options(max_concurrency=8, num_cpus=0).remote(str(folder), shard) for shard in range(SHARDS)]
    fast = [[replica.actor for replica in replicas][:1] for replicas in cluster.shards._replicas]
    outcomes(cluster, [{}])
    shards = on_ray.RayShards(cluster.snapshot.manifest, [[slow[shard], *fast[shard]] for shard in range(SHARDS)])
    hedged = on_ray.ClusterIndex(folder, shards, cluster.snapshot.manifest)
    assert {query: hedged.search(query, k=100).names() for query in QUERIES} == expected
    assert shards.figures.hedges > 0
    assert shards.figures.failures == 0


def test_no_search_fails_when_a_node_dies_and_the_replicas_come_back_on_another_one(ray_nodes, folder):
    ray_nodes.add()
    cluster = on_ray.start(folder, replicas=2, name="tests", deadline=PATIENCE)
    with pytest.raises(UsageError, match="runs with 2 replicas"):
        on_ray.start(folder, replicas=3, name="tests")
    outcomes(cluster, [{}])
    with Load(cluster, answers_of(folder)) as load:
        ray_nodes.kill()
        before = load.searches
        wait_for(lambda: load.searches >= before + 10)
        assert [sum(answers_now(shard, replica) for replica in range(2)) for shard in range(SHARDS)] == [1] * SHARDS, (
            "there is no node without a replica of the shard"
        )
        ray_nodes.add()
        wait_for(lambda: all(answers(shard, replica) for shard in range(SHARDS) for replica in range(2)))
    on_ray.stop("tests")
    assert load.wrong == []


def test_a_server_answers_as_the_folder_while_actors_die_and_shows_commits(ray_nodes, folder, tmp_path):
    place = tmp_path / "cluster"
    shutil.copytree(folder, place)
    on_ray.start(place, replicas=2, name="served", deadline=PATIENCE)
    arguments = ("--name", "served", "--address", ray_nodes.address)
    with served(place, *arguments, command=("cluster", "serve")) as address, perikope.connect(address) as index:
        expected = answers_of(place)

        def wrong():
            return [query for query in QUERIES if index.search(query, k=100).names() != expected[query]]

        assert wrong() == []
        for replica in range(2):
            ray.kill(ray.get_actor(replica_name("served", 0, replica), namespace=on_ray.NAMESPACE), no_restart=False)
            assert wrong() == []
            wait_for(lambda: answers_in("served", 0, replica))  # noqa: B023
        (tmp_path / "more.jsonl").write_text(lines(60, 90))
        append(str(place), [str(tmp_path / "more.jsonl")])
        expected = answers_of(place)
        wait_for(lambda: index.search("rotor").generation == Index.open(place).snapshot.manifest.generation)
        assert wrong() == []
        on_ray.stop("served")
        on_ray.start(place, replicas=2, name="served", deadline=PATIENCE)
        assert wrong() == [], "actors that were started again are found"
    on_ray.stop("served")
