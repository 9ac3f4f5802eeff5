"""A load generator: sends searches to a server on this machine, and prints what it measured as JSON.

    python -m benchmarks.load PORT FILE --clients 16 --seconds 10   closed loop: each client waits for its answer
    python -m benchmarks.load PORT FILE --rate 50 --seconds 10      open loop: requests come by a Poisson process
    python -m benchmarks.load PORT FILE --rate 90 --seconds 120 --then 30 20     the same, then another rate at once

FILE has one path per line, such as /indexes/ei/search?query=pump. Every path is asked for once before any is repeated.
In the open loop, the latency of a request counts from the moment when it should have been sent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import resource
import time
from collections import Counter, deque
from pathlib import Path


class Connection:
    """One connection that asks for paths, one at a time."""

    def __init__(self, port: int) -> None:
        self.port, self.reader, self.writer = port, None, None

    async def get(self, path: str) -> tuple[int, int, bool]:
        """Status and size of an answer, and whether it says when to try again; status 0 if the connection broke."""
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
            self.writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            head = await self.reader.readuntil(b"\r\n\r\n")
            status = int(head[9:12])
            fields = head.lower()
            length = int(fields.partition(b"content-length:")[2].partition(b"\r\n")[0])
            await self.reader.readexactly(length)
            return status, length, b"\r\nretry-after:" in fields
        except (OSError, asyncio.IncompleteReadError, ValueError):
            self.close()
            return 0, 0, False

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


class Measured:
    """What was measured."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.latencies: list[float] = []
        self.by_time: list[tuple[float, float]] = []
        """When a request was due, and the seconds until its answer."""
        self.refusals: list[float] = []
        self.bytes = self.told_when = 0

    def add(self, status: int, size: int, told_when: bool, seconds: float) -> None:
        self.statuses[status] += 1
        (self.latencies if status == 200 else self.refusals).append(seconds)
        self.bytes += size
        self.told_when += told_when

    def content(self) -> dict[str, object]:
        """The numbers of answers and their latencies."""
        return {
            "answers": self.statuses[200], "statuses": dict(self.statuses), "told_when": self.told_when,
            "p50": quantile(self.latencies, 0.5), "p95": quantile(self.latencies, 0.95), "p99": quantile(self.latencies, 0.99),
            "max": max(self.latencies, default=float("nan")),
            "refused_p50": quantile(self.refusals, 0.5), "refused_p99": quantile(self.refusals, 0.99),
        }  # fmt: skip


async def closed_loop(port: int, paths: list[str], clients: int, seconds: float, measured: Measured) -> None:
    ends = time.perf_counter() + seconds
    waiting = deque(paths)

    async def client() -> None:
        connection = Connection(port)
        while time.perf_counter() < ends:
            path = waiting[0]
            waiting.rotate(-1)
            began = time.perf_counter()
            answer = await connection.get(path)
            measured.add(*answer, time.perf_counter() - began)
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)))


Phase = tuple[float, float, Measured]
"""Requests per second, the number of seconds, and what was measured of the requests that were due in them."""


async def open_loop(port: int, paths: list[str], phases: list[Phase], clients: int, seed: int) -> None:
    rng, idle = random.Random(seed), deque(Connection(port) for _ in range(clients))
    began, due, tasks, number, ends = time.perf_counter(), 0.0, set(), 0, 0.0

    async def ask(path: str, due: float, measured: Measured) -> None:
        connection = idle.pop() if idle else Connection(port)
        answer = await connection.get(path)
        measured.add(*answer, taken := time.perf_counter() - began - due)
        measured.by_time.append((due, taken))
        idle.append(connection)

    for rate, seconds, measured in phases:
        ends += seconds
        while due < ends:
            due += rng.expovariate(rate)
            await asyncio.sleep(max(due - (time.perf_counter() - began), 0))
            task = asyncio.create_task(ask(paths[number % len(paths)], due, measured))
            number += 1
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("paths", type=Path)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--then", type=float, nargs=2, metavar=("RATE", "SECONDS"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    paths = options.paths.read_text().split("\n")
    random.Random(options.seed).shuffle(paths)
    measured, after = Measured(), Measured()
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    began = time.perf_counter()
    if options.rate:
        phases = [(options.rate, options.seconds, measured), *([(*options.then, after)] if options.then else [])]
        asyncio.run(open_loop(options.port, paths, phases, options.clients, options.seed))
    else:
        asyncio.run(closed_loop(options.port, paths, options.clients, options.seconds, measured))
    took, usage = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    ok = measured.statuses[200]
    content = {
        "clients": options.clients, "rate": options.rate, "seconds": took,
        "per_second": ok / (options.seconds if options.then else took), **measured.content(),
        "bytes": measured.bytes / max(ok, 1), "cpu": (usage.ru_utime + usage.ru_stime) / took,
    }  # fmt: skip
    if options.then:
        by_time = [(due - options.seconds, taken) for due, taken in after.by_time]
        content["after"] = {**after.content(), "by_time": by_time}
    print(json.dumps(content))


if __name__ == "__main__":
    main()
