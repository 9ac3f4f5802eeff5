"""`perikope serve` as a process of its own, and a tiny server whose answers a test writes."""

from __future__ import annotations

import re
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STARTING, ENDING = 600.0, 60.0
"""The most seconds that a server may take to start and to end. The first start on a machine compiles kernels."""


@contextmanager
def served(*arguments: object, command: Sequence[str] = ("serve",)) -> Iterator[str]:
    """Serve indexes on a free port of this machine, with the given arguments; the address, as clients take it."""
    program = [sys.executable, "-m", "perikope", *command, *map(str, arguments), "--port", "0", "--workers", "2", "--timeout", "300"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            yield _address(process, log)
        finally:
            process.terminate()
            try:
                process.wait(ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(ENDING)
            assert process.stdout is not None
            process.stdout.close()


def _address(process: subprocess.Popen[str], log: object) -> str:
    """The address in the first line that a server prints."""
    assert process.stdout is not None
    ends = time.monotonic() + STARTING
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not selector.select(1.0):
            assert process.poll() is None, "the server has ended"
            assert time.monotonic() < ends, "the server has not started"
    line = process.stdout.readline()
    found = re.search(r" at (?:unix socket (?P<socket>\S+)|(?P<url>http://\S+))", line)
    if found is None:
        log.seek(0)  # type: ignore[attr-defined]
        raise AssertionError(f"the server has not started: {line}{log.read()[-2000:]}")  # type: ignore[attr-defined]
    return f"unix:{found['socket']}" if found["socket"] else found["url"]


@dataclass
class Scripted:
    """What a tiny server answers, and what it was asked."""

    answer: Callable[[str, str], tuple[int, dict[str, str], bytes]]
    """Status, headers and body for a method and a path."""
    address: str = ""
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    """Method, path, headers and body of each request."""


@contextmanager
def scripted(answer: Callable[[str, str], tuple[int, dict[str, str], bytes]]) -> Iterator[Scripted]:
    """A server on this machine that answers what a test says."""
    script = Scripted(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            script.asked.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            status, headers, content = script.answer(self.command, self.path)
            self.send_response(status)
            for name, value in {"content-length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815 - the name that the base class calls

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    script.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
