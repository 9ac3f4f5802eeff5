"""Numbers about served indexes whose shards are on other machines, in the format of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge

from perikope.server.handler import MISSING
from perikope.server.opening import COUNTED, SHARDS
from perikope.server.served import PreparedIndex

_COUNTERS = {
    "questions": "Questions to shards.",
    "hedges": "Questions that were sent to a second replica, because the first was slow.",
    "failures": "Questions that a replica did not answer, because it died or could not be reached.",
    "given_up": "Questions that no replica answered before the deadline.",
}


class ClusterMetrics:
    """What a server counts and learns about its clusters."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counters = {name: Counter(f"perikope_cluster_{name}", help, ["index"], registry=registry) for name, help in _COUNTERS.items()}
        self._partial = Counter("perikope_cluster_partial_answers", "Answers that lack shards.", ["index"], registry=registry)
        self._shards = Gauge("perikope_cluster_shards", "Shards.", ["index"], registry=registry)
        self._replicas = Gauge("perikope_cluster_replicas", "Replicas that answer.", ["index", "shard"], registry=registry)
        self._ready = Gauge(
            "perikope_cluster_prepared_replicas", "Replicas that have prepared the last commit.", ["index", "shard"], registry=registry
        )
        self._lag = Gauge("perikope_cluster_lag_commits", "Commits that requests do not see yet.", ["index"], registry=registry)
        self._lag_seconds = Gauge(
            "perikope_cluster_lag_seconds", "Seconds since the first of these commits was noticed.", ["index"], registry=registry
        )

    def count(self, index: str, facts: Mapping[str, Any]) -> None:
        """Count what a process said with an answer."""
        for name, number in facts.get(COUNTED, {}).items():
            self._counters[name].labels(index).inc(number)
        if facts.get(MISSING):
            self._partial.labels(index).inc()

    def observe(self, index: PreparedIndex) -> None:
        """Set the numbers that were last learned about an index."""
        shards = index.status.get(SHARDS, [])
        self._shards.labels(index.name).set(len(shards))
        for number, (alive, ready) in enumerate(shards):
            self._replicas.labels(index.name, str(number)).set(alive)
            self._ready.labels(index.name, str(number)).set(ready)
        commits, seconds = index.lag
        self._lag.labels(index.name).set(commits)
        self._lag_seconds.labels(index.name).set(seconds)
