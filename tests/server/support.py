"""Servers for the tests: one in a thread of this process, and one as a process of its own.

`LiveServer` speaks HTTP on a port, with the limits of a real one. It reads and writes in this process, so it starts at
once. `ServerProcess` is `perikope serve` with all of its processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from perikope import Index
from perikope.build.indexing import BuildOptions, build
from perikope.core.access import files_forbidden
from perikope.server.app import App
from perikope.server.gate import Gate, allowed_hosts
from perikope.server.handler import Handler, RequestLimits
from perikope.server.logs import Log
from perikope.server.opening import Opener
from perikope.server.pool import PoolCounts
from perikope.server.protocol import ConnectionLimits
from perikope.server.running import uvicorn_server
from perikope.server.served import ServedIndex, ServedIndexes
from perikope.server.settings import ServerSettings
from perikope.server.writer import Writing
from tests.support.patents import families

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
"""Seconds that a test waits for something that takes milliseconds on an idle machine."""
HOLD = "PERIKOPE_TEST_HOLD"
"""The variable with the path of a file. Processes of a server wait at their start while there is such a file."""
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
TOKEN = "a-secret-of-the-tests"
web = httpx.Client(verify=False, timeout=PATIENCE)
"""For single requests. To make a client that can check certificates takes longer than a request."""
DOCUMENTS: Sequence[Mapping[str, Any]] = [
    {"id": "couplings", "title": "Couplings", "passages": ["A magnetic coupling drives the pump.", "The rotor turns."]},
    {"id": "pumps", "title": "Pumps", "passages": ["A pump with a magnetic rotor.", "Seals leak."], "metadata": {"year": "2011"}},
    {"id": "brakes", "title": "Brakes", "passages": ["A brake slows the wheel."], "metadata": {"year": "2012"}},
]


def make_index(folder: Path) -> Path:
    """Make a small index of texts and patents."""
    patents = folder.parent / f"{folder.name}-patents"
    patents.mkdir(parents=True)
    for patent in families()[0].everything:
        (patents / f"{patent.id}.xml").write_text(patent.xml, "utf-8")
    build(str(folder), [str(patents)], BuildOptions())
    with Index.open(folder) as index:
        index.add(DOCUMENTS)
    return folder


def patent_of_index() -> str:
    """The id of a patent in the index."""
    return families()[0].members[0].id


# In this process


class PoolHere:
    """Answers in this process, one request after another."""

    def __init__(self, served: ServedIndexes, settings: ServerSettings, opener: Opener | None = None) -> None:
        limits = RequestLimits(settings.max_k, settings.max_batch)
        self.handler = Handler(served.folders, limits, served.originals(settings.originals), opener=opener)
        self.waiting, self.must_wait, self.is_ready, self.counts = 0, False, True, PoolCounts()
        self.pids: dict[int, int] = {}

    async def ask(self, meta: dict[str, Any], body: bytes, seconds: float) -> Any:
        with files_forbidden():
            return self.handler.answer({**meta, "seconds": seconds}, body)


class WriterHere:
    """Writes in this process, one change after another."""

    waiting, restarts, pid = 0, 0, 0

    def __init__(self, folders: Mapping[str, str]) -> None:
        self.writing = Writing(folders, {})

    async def ask(self, index: str, meta: dict[str, Any], body: bytes) -> Any:
        with files_forbidden():
            return self.writing.make(index, [meta], [body])[0]


class LiveServer:
    """A server in a thread of this process."""

    def __init__(
        self, folders: Mapping[str, Path], gate: Gate | None = None, pool: Any = None, log: Log | None = None,
        served: ServedIndexes | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        self.settings = ServerSettings.of({"client_timeout": 60.0, **settings})
        served = served or ServedIndexes({name: ServedIndex(name, folder) for name, folder in folders.items()})
        self.log = io.StringIO()
        self.limits = ConnectionLimits(self.settings.max_connections, self.settings.client_timeout, self.settings.max_query)
        self.app = App(
            self.settings, served, gate or Gate(allowed_hosts("127.0.0.1", (), is_socket=False)),
            pool or PoolHere(served, self.settings), WriterHere(served.folders),  # type: ignore[arg-type]
            log or Log(stream=self.log), self.limits,
        )  # fmt: skip
        self._server = uvicorn_server(self.app, self.limits)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve([self._listening])), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> LiveServer:
        self.app.log.take_over()
        self._thread.start()
        wait_until(lambda: self._server.started)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=PATIENCE, verify=False, **options)

    def lines(self) -> list[dict[str, Any]]:
        """The lines of the log."""
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


# As a process


class ServerProcess:
    """`perikope serve`, with what it loads before it is ready reduced to `tests.server.preload`."""

    def __init__(self, *arguments: str, held: Path | None = None) -> None:
        """Start a server and wait until it can search.

        If there is a file `held`, its processes do not start until the file is gone, and this is not waited for.
        """
        self._mark = f"PERIKOPE_TEST_SERVER={uuid.uuid4().hex}"
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `__exit__`
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.server.program", *arguments, "--port", "0"], stdout=subprocess.PIPE, stderr=self._log,
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **dict([self._mark.split("=")]), HOLD: str(held or "")}, text=True,
        )  # fmt: skip
        self.known: set[int] = {self.pid}
        if held:
            wait_until(lambda: ADDRESS.search(self.log_text()) or self._process.poll() is not None)
        line = self.log_text() if held else self.wait_ready()
        found = ADDRESS.search(line)
        if found is None:
            message = f"the server did not start: {line!r} {self.log_text()}"
            self.__exit__()
            raise AssertionError(message)
        self.port = int(found.group(1))

    def wait_ready(self) -> str:
        """The line that the server prints when it can search; empty if it has ended before."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE)
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for the end of the server; its exit code."""
        return self._process.wait(PATIENCE)

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=PATIENCE, verify=False, **options)

    def log_text(self) -> str:
        self._log.seek(0)
        return self._log.read().decode()

    def lines(self) -> list[dict[str, Any]]:
        """The lines of the log."""
        return [json.loads(line) for line in self.log_text().splitlines()]

    def processes(self) -> dict[str, list[int]]:
        """The ids of the processes of the server that live: `forkserver`, and `forked` (readers and the writer)."""
        found: dict[str, list[int]] = {"forkserver": [], "forked": []}
        for pid, parent, command in _processes_with(self._mark):
            self.known.add(pid)
            if command.startswith((b"perikope: reader", b"perikope: writer")):
                found["forked"].append(pid)
            elif command.startswith(b"perikope: fork server") or b"forkserver" in command:  # also a process without its name yet
                found["forkserver" if parent == self.pid else "forked"].append(pid)
        return found

    def metric(self, name: str) -> float:
        """A number of `/metrics`."""
        with self.client() as client:
            text = client.get("/metrics").text
        return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name}"))


def _processes_with(mark: str) -> list[tuple[int, int, bytes]]:
    """All processes with a mark in their environment, each with its parent and its command."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if mark.encode() in (folder / "environ").read_bytes() and is_alive(int(folder.name)):
                    parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                    found.append((int(folder.name), parent, (folder / "cmdline").read_bytes()))
    return sorted(found)


def is_alive(pid: int) -> bool:
    """Whether a process runs. One that has ended and that nobody waits for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition: Any, seconds: float = PATIENCE) -> None:
    """Wait until a condition holds."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "the condition did not come true"
        time.sleep(0.01)


# HTTP by hand


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """A connection to a server."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        yield connection


def exchange(port: int, data: bytes) -> bytes:
    """Send bytes and read until the server closes the connection. The data must make it close."""
    with connected(port) as connection:
        connection.sendall(data)
        return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    """What a server sends until it closes the connection."""
    pieces = []
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            pieces.append(piece)
    return b"".join(pieces)


def head(method: str, path: str, port: int, *lines: str, version: str = "1.1") -> bytes:
    """The head of a request that ends its connection."""
    return "\r\n".join([f"{method} {path} HTTP/{version}", f"Host: 127.0.0.1:{port}", "Connection: close", *lines, "", ""]).encode(
        "latin-1"
    )


def check_problem(answer: httpx.Response, status: int) -> str:
    """Check that an answer is a problem with this status; returns its detail."""
    assert answer.status_code == status, (answer.status_code, answer.text[:500])
    assert answer.headers["content-type"] == "application/problem+json"
    content = answer.json()
    assert set(content) - {"start", "end"} == {"type", "title", "status", "detail"}
    assert content["status"] == status
    detail: str = content["detail"]
    assert detail
    return detail
