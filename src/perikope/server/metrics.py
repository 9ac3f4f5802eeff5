"""Numbers about a server, in the format of Prometheus."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper limits of latencies, in seconds."""
MOST_MODELS = 50
"""The most models that have their own latencies. Further ones are counted as `other`, since a client can invent names
by changing parameters."""


@dataclass(frozen=True, slots=True)
class _KeptCounter(Collector):
    """A counter whose numbers are read when Prometheus asks for them."""

    name: str
    help: str
    read: Callable[[], Mapping[str, int]]
    label: str = ""
    """The name of its label; empty if it has none."""

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The counter with its numbers."""
        family = CounterMetricFamily(self.name, self.help, labels=[self.label] if self.label else [])
        for value, number in self.read().items():
            family.add_metric([value] if self.label else [], number)
        yield family


class Metrics:
    """What a server counts and measures."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("perikope_requests", "Answers.", ["operation", "status"], registry=self.registry)
        self.seconds = Histogram(
            "perikope_request_seconds", "Time from the request to the answer.", ["operation"], buckets=BUCKETS, registry=self.registry
        )
        self.model_seconds = Histogram(
            "perikope_search_seconds", "Time of a process for a search.", ["model"], buckets=BUCKETS, registry=self.registry
        )
        self.stage_seconds = Histogram(
            "perikope_stage_seconds", "Time of a step of a request.", ["stage"], buckets=BUCKETS, registry=self.registry
        )
        self.waited = Histogram("perikope_wait_seconds", "Time in the queue.", buckets=BUCKETS, registry=self.registry)
        self.cached = Counter("perikope_cache_answers", "Answers by whether they came from the cache.", ["cached"], registry=self.registry)
        self.cache_bytes = Gauge("perikope_cache_bytes", "Bytes of answers in the cache.", registry=self.registry)
        self.waiting = Gauge("perikope_waiting", "Requests that wait for a process.", registry=self.registry)
        self.writes_waiting = Gauge("perikope_writes_waiting", "Changes that wait for a commit.", registry=self.registry)
        self.commits = Gauge("perikope_index_generation", "Number of the last commit, by index.", ["index"], registry=self.registry)
        self.readable = Gauge(
            "perikope_index_readable",
            "1 if an index can be read; 0 if a file of it is damaged or missing.",
            ["index"],
            registry=self.registry,
        )
        self.descriptors = Gauge("perikope_open_files", "Open files of a process.", ["process"], registry=self.registry)
        self.memory = Gauge("perikope_resident_bytes", "Memory of a process, shared memory included.", ["process"], registry=self.registry)
        self.connections = Gauge("perikope_connections", "Open connections of clients.", registry=self.registry)
        self._models: set[str] = set()

    def count(self, name: str, help: str, read: Callable[[], Mapping[str, int]], label: str = "") -> None:
        """Add a counter whose numbers are kept elsewhere. `read` returns them by the value of the label."""
        self.registry.register(_KeptCounter(name, help, read, label))

    def observe_answer(self, facts: Mapping[str, object], model: str) -> None:
        """Count the steps of an answer that a process computed."""
        stages = facts.get("stages")
        if not isinstance(stages, Mapping):
            return
        total = 0.0
        for stage, seconds in stages.items():
            self.stage_seconds.labels(stage).observe(seconds)
            total += seconds
        if isinstance(waited := facts.get("waited"), float):
            self.waited.observe(waited)
        if model:
            name = model.partition("(")[0]
            if len(self._models) < MOST_MODELS:
                self._models.add(name)
            self.model_seconds.labels(name if name in self._models else "other").observe(total)

    def observe_processes(self, pids: Mapping[str, int]) -> None:
        """Measure open files and memory of the processes, by kind and number."""
        for name, pid in pids.items():
            try:
                self.descriptors.labels(name).set(len(os.listdir(f"/proc/{pid}/fd")))
                with open(f"/proc/{pid}/statm", "rb") as file:
                    self.memory.labels(name).set(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
            except (OSError, ValueError, IndexError):
                continue  # the process has ended, or the system has no such files

    def text(self) -> bytes:
        """All numbers, as Prometheus reads them."""
        return generate_latest(self.registry)
