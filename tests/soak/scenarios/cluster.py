"""Replicas and nodes of a cluster on Ray die under load: no search fails, and no answer is another than the index's.

Four simulated nodes hold four shards with two replicas each. In turns, a replica of each shard is killed, a node is
killed, and a node is frozen: it keeps its connections and answers nothing, as after a loss of power, until Ray gives it
up. The head is spared. The next kill waits until every shard has both replicas again, on different nodes, and until a
lost node is replaced.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest

from perikope.build.indexing import build
from perikope.cluster.building import build_cluster
from perikope.cluster.snapshot import ClusterSnapshot
from perikope.cluster.writer import load_cluster
from perikope.core.errors import ShardError
from perikope.search.facade import Index
from tests.soak.scenario import Skipped, Trial, defect, scenario
from tests.support.nodes import Nodes, nodes, why_not_started

NODES, SHARDS, REPLICAS, LOADS = 4, 4, 2, 2
DOCUMENTS, WORDS, K = 400, [f"{first}{second}" for first in ("rot", "sea", "pum", "mag", "val") for second in "abcdefgh"], 100
QUERIES = [" ".join(WORDS[at : at + 3]) for at in range(0, len(WORDS), 3)]
SEARCHES: tuple[dict[str, Any], ...] = ({}, {"model": "bm25"}, {"expand": "bo1"}, {"browse_expand": "rm3"}, {"documents": 20})
NAME = "soak"
RESTORED = 180.0
"""Seconds within which a cluster must have all replicas again."""
ANSWERED, PAUSE = 1.0, 0.1
"""Seconds that a replica may take to say where it is, and seconds between two looks."""
REPLICA, NODE, FROZEN = "replicas killed", "nodes killed", "nodes frozen"
TURNS = (REPLICA, NODE, REPLICA, FROZEN)


@scenario("cluster", most=200, reduced=SHARDS + 1, seconds=300)
def cluster(trial: Trial) -> None:
    """Replicas and nodes of a cluster on Ray die under load; searches go on, with the answers of a single index."""
    _require_ray()
    os.environ["RAY_TMPDIR"] = str(trial.folder)  # names of sockets have at most 107 bytes
    expected = make_collection(trial)
    try:
        with nodes(NODES) as started:
            from perikope.cluster import on_ray

            on_ray.start(trial.folder / "cluster", replicas=REPLICAS, name=NAME)
            disturb(trial, started, expected)
    except pytest.skip.Exception as busy:
        raise Skipped(str(busy)) from None


def make_collection(trial: Trial) -> dict[tuple[int, int], bytes]:
    """Write an index and a cluster of the same documents; returns the answers of the index by query and search."""
    lines = []
    for number in range(DOCUMENTS):
        passages = [" ".join(trial.chance.choices(WORDS, k=trial.chance.randint(3, 12))) for _ in range(trial.chance.randint(1, 4))]
        lines.append(json.dumps({"id": f"d{number}", "title": trial.chance.choice(WORDS), "passages": passages}))
    documents = trial.folder / "documents.jsonl"
    documents.write_text("\n".join(lines) + "\n")
    build(str(trial.folder / "index"), [str(documents)])
    build_cluster(str(trial.folder / "cluster"), [str(documents)], SHARDS)
    with Index.open(trial.folder / "index") as index:
        return {(query, search): answer(index, query, search) for query in range(len(QUERIES)) for search in range(len(SEARCHES))}


def answer(index: Index, query: int, search: int) -> bytes:
    """The answer to a query: the ranking with all digits of the scores, and the first hits."""
    results = index.search(QUERIES[query], k=K, **SEARCHES[search])
    return json.dumps([results.names(), [hit.to_dict() for hit in results[:3]]]).encode()


def disturb(trial: Trial, started: Nodes, expected: dict[tuple[int, int], bytes]) -> None:
    """Kill replicas and nodes while searches run."""
    replicas = Replicas(trial.folder / "cluster")
    seconds: dict[str, list[float]] = {kind: [] for kind in TURNS}
    replicas.wait_until_whole(trial, set())
    with load(trial, expected) as counted:
        for kind in cycle(TURNS):
            if not trial.goes_on():
                break
            trial.doing(kind)
            before = counted["searches"]
            restored = kill_replicas(trial, replicas) if kind == REPLICA else kill_node(trial, replicas, started, kind)
            seconds[kind] += restored
            if counted["searches"] == before:
                trial.fail(f"{kind}: no search ended within {max(restored):.0f} s")
            trial.did(len(restored))
            trial.watch(trial.folder / "cluster")
    for kind, taken in seconds.items():
        if taken:
            trial.note(f"{len(taken)} {kind}; all replicas again after {median(taken):.1f} s (median), {max(taken):.1f} s (worst)")
    trial.note(", ".join(f"{number} {what}" for what, number in counted.items()))
    trial.require_flat()


def kill_replicas(trial: Trial, replicas: Replicas) -> list[float]:
    """Kill the process of one replica of each shard; returns the seconds until each shard has all again."""
    killed = {trial.chance.choice(places).process for places in replicas.places().values()}
    for process in killed:
        os.kill(process, signal.SIGKILL)
    return replicas.wait_until_whole(trial, killed)


def kill_node(trial: Trial, replicas: Replicas, started: Nodes, kind: str) -> list[float]:
    """Kill or freeze a node, and add another one; returns the seconds until all shards have all replicas again."""
    number = trial.chance.randrange(len(started.others))
    lost = {place.process for places in replicas.places().values() for place in places if place.node == started.id_of(number)}
    if kind == NODE:
        started.kill(number)
    else:
        started.freeze(number)
    restored = max(replicas.wait_until_whole(trial, lost))
    if kind == FROZEN:
        started.kill(number)
    started.add()
    return [restored]


class Place(NamedTuple):
    """Where a replica is."""

    node: str
    process: int
    is_open: bool
    """Whether it has opened the shard."""


class Replicas:
    """The replicas of all shards, as a server watches them: it lets them open the cluster."""

    def __init__(self, folder: Path) -> None:
        import ray

        from perikope.cluster import on_ray
        from perikope.cluster.ray_shards import replica_name

        self._manifest, self._shards = load_cluster(folder), on_ray.find(folder, name=NAME).shards
        names = {(shard, replica): replica_name(NAME, shard, replica) for shard in range(SHARDS) for replica in range(REPLICAS)}
        self._actors = {number: ray.get_actor(name, namespace=on_ray.NAMESPACE) for number, name in names.items()}

    def places(self) -> dict[int, list[Place]]:
        """The replicas that answer, by shard."""
        import ray

        where = lambda replica: (ray.get_runtime_context().get_node_id(), os.getpid(), bool(replica._opened))  # noqa: E731
        asked = {actor.__ray_call__.remote(where): shard for (shard, _), actor in self._actors.items()}
        places: dict[int, list[Place]] = {shard: [] for shard in range(SHARDS)}
        for reference in ray.wait([*asked], num_returns=len(asked), timeout=ANSWERED)[0]:
            with suppress(ray.exceptions.RayError):
                places[asked[reference]].append(Place(*ray.get(reference)))
        return places

    def wait_until_whole(self, trial: Trial, killed: set[int]) -> list[float]:
        """The seconds until each shard has all replicas, none of them in a process that was killed."""
        began = time.monotonic()
        whole: dict[int, float] = {}
        while len(whole) < SHARDS:
            time.sleep(PAUSE)
            self._shards.prepare(self._manifest)
            for shard, places in self.places().items():
                ready = [place for place in places if place.is_open and place.process not in killed]
                if shard not in whole and len(ready) == REPLICAS:
                    whole[shard] = time.monotonic() - began
                    if len({place.node for place in ready}) < REPLICAS:
                        trial.fail(f"all replicas of shard {shard} are on one node", cause="replicas on one node")
            if time.monotonic() - began > RESTORED:
                missing = sorted(set(range(SHARDS)) - set(whole))
                raise AssertionError(f"shards {missing} do not have all replicas after {RESTORED:.0f} s")
        return [*whole.values()]


@contextmanager
def load(trial: Trial, expected: dict[tuple[int, int], bytes]) -> Iterator[dict[str, int]]:
    """Search in threads, and compare every answer; yields what was counted."""
    from perikope.cluster import on_ray

    index = on_ray.find(trial.folder / "cluster", name=NAME)
    asked, counted, longest = list(expected), {"searches": 0, "failed": 0, "wrong": 0}, [0.0]
    stopped, lock = threading.Event(), threading.Lock()

    def search(number: int) -> None:
        while not stopped.is_set():
            query, search = asked[number % len(asked)]
            number += LOADS
            began, problem = time.monotonic(), ""
            try:
                if answer(index, query, search) != expected[query, search]:
                    problem = "wrong"
            except Exception as error:
                problem = "failed"
                text = f"{type(error).__name__}: {error}"
            with lock:
                counted["searches"] += 1
                longest[0] = max(longest[0], time.monotonic() - began)
                if problem:
                    counted[problem] += 1
                    what = "another answer than that of the index" if problem == "wrong" else f"a search failed: {text}"
                    trial.fail(f"{what}; query {QUERIES[query]!r}, {SEARCHES[search]}", cause=what)

    threads = [threading.Thread(target=search, args=(number,)) for number in range(LOADS)]
    for thread in threads:
        thread.start()
    try:
        yield counted
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    counted |= asdict(index.shards.figures)
    trial.note(f"the longest search took {longest[0]:.1f} s")


def _require_ray() -> None:
    """Skip the scenario where Ray cannot be used."""
    if why_not_started():
        raise Skipped(why_not_started())
    if find_spec("ray") is None:
        raise Skipped("ray is not installed (make test-cluster)")


@defect(cluster, "a question is sent to one replica only", reported="a search failed")
def _ask_once() -> None:
    _require_ray()
    from perikope.cluster.ray_shards import RayShards

    original = RayShards._send
    RayShards._send = lambda shards, question: not question.tried and original(shards, question)  # type: ignore[method-assign]
    RayShards._failed = _raise  # type: ignore[method-assign]


def _raise(shards: Any, question: Any, replica: Any, error: Exception) -> None:
    raise ShardError(f"shard {replica.shard} has not answered", [replica.shard])


@defect(cluster, "replicas are placed anywhere", reported="are on one node")
def _place_anywhere() -> None:
    _require_ray()
    import ray

    original = ray.util.placement_group
    ray.util.placement_group = lambda places, strategy, *given, **named: original(places, "PACK", *given, **named)


@defect(cluster, "a shard counts its own documents only", reported="another answer than that of the index")
def _count_own() -> None:
    original = ClusterSnapshot._count_terms

    def count(snapshot: ClusterSnapshot, terms: Any) -> Any:
        snapshot._asked, asked = snapshot._asked[:1], snapshot._asked
        try:
            return original(snapshot, terms)
        finally:
            snapshot._asked = asked

    ClusterSnapshot._count_terms = count  # type: ignore[method-assign]
