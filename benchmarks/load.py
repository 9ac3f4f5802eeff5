"""A load generator: sends searches to a server on this machine, and prints what it measured as JSON.

    python -m benchmarks.load PORT FILE --clients 16 --seconds 10   closed loop: each client waits for its answer
    python -m benchmarks.load PORT FILE --rate 50 --seconds 10      open loop: requests come by a Poisson process

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

    async def get(self, path: str) -> tuple[int, int]:
        """The status and the size of an answer; status 0 if the connection broke."""
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
            self.writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            head = await self.reader.readuntil(b"\r\n\r\n")
            status = int(head[9:12])
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            await self.reader.readexactly(length)
            return status, length
        except (OSError, asyncio.IncompleteReadError, ValueError):
            self.close()
            return 0, 0

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


class Measured:
    """What was measured."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.latencies: list[float] = []
        self.refusals: list[float] = []
        self.bytes = 0

    def add(self, status: int, size: int, seconds: float) -> None:
        self.statuses[status] += 1
        (self.latencies if status == 200 else self.refusals).append(seconds)
        self.bytes += size


async def closed_loop(port: int, paths: list[str], clients: int, seconds: float, measured: Measured) -> None:
    ends = time.perf_counter() + seconds
    waiting = deque(paths)

    async def client() -> None:
        connection = Connection(port)
        while time.perf_counter() < ends:
            path = waiting[0]
            waiting.rotate(-1)
            began = time.perf_counter()
            status, size = await connection.get(path)
            measured.add(status, size, time.perf_counter() - began)
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)))


async def open_loop(port: int, paths: list[str], rate: float, clients: int, seconds: float, measured: Measured, seed: int) -> None:
    rng, idle = random.Random(seed), deque(Connection(port) for _ in range(clients))
    began, due, tasks, number = time.perf_counter(), 0.0, set(), 0

    async def ask(path: str, due: float) -> None:
        connection = idle.pop() if idle else Connection(port)
        status, size = await connection.get(path)
        measured.add(status, size, time.perf_counter() - began - due)
        idle.append(connection)

    while due < seconds:
        due += rng.expovariate(rate)
        await asyncio.sleep(max(due - (time.perf_counter() - began), 0))
        task = asyncio.create_task(ask(paths[number % len(paths)], due))
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
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    paths = options.paths.read_text().split("\n")
    random.Random(options.seed).shuffle(paths)
    measured = Measured()
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    began = time.perf_counter()
    if options.rate:
        asyncio.run(open_loop(options.port, paths, options.rate, options.clients, options.seconds, measured, options.seed))
    else:
        asyncio.run(closed_loop(options.port, paths, options.clients, options.seconds, measured))
    took, usage = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    ok = measured.statuses[200]
    print(
        json.dumps(
            {
                "clients": options.clients, "rate": options.rate, "seconds": took, "answers": ok, "per_second": ok / took,
                "statuses": dict(measured.statuses), "p50": quantile(measured.latencies, 0.5), "p95": quantile(measured.latencies, 0.95),
                "p99": quantile(measured.latencies, 0.99), "max": max(measured.latencies, default=float("nan")),
                "refused_p50": quantile(measured.refusals, 0.5), "refused_p99": quantile(measured.refusals, 0.99),
                "bytes": measured.bytes / max(ok, 1), "cpu": (usage.ru_utime + usage.ru_stime) / took,
            }
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
