"""Clients that send or read slowly, or not at all."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.support import LiveServer, PoolHere, connected, head, read_all, wait_until, web

SECONDS = 0.5
"""The time that the server gives its clients."""
LARGE = 40_000_000
"""Bytes of an answer that does not fit into the buffers of a connection."""


class _LargeAnswers(PoolHere):
    """Answers the operation `models` with many bytes."""

    async def ask(self, meta: dict[str, Any], body: bytes, seconds: float) -> Any:
        if meta["operation"] == "models":
            return {"status": 200}, b"[" + b" " * LARGE + b"]"
        return await super().ask(meta, body, seconds)


@pytest.fixture(scope="module")
def hurried(index: Path) -> Iterator[LiveServer]:
    """A server that gives clients little time."""
    from perikope.server.served import ServedIndex, ServedIndexes
    from perikope.server.settings import ServerSettings

    settings = {"client_timeout": SECONDS, "max_connections": 30, "cache": 0}
    served = ServedIndexes({"small": ServedIndex("small", index)})
    with LiveServer({"small": index}, pool=_LargeAnswers(served, ServerSettings.of(settings)), **settings) as server:
        yield server


def _wait_for_close(connection: socket.socket) -> bytes:
    """What the server sends before it closes the connection."""
    return read_all(connection)


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\n", b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A"])
def test_slow_heads_are_refused(hurried: LiveServer, sent: bytes) -> None:
    with connected(hurried.port) as connection:
        connection.sendall(sent)
        assert b" 408 " in _wait_for_close(connection)


def test_heads_that_come_byte_by_byte_are_refused(hurried: LiveServer) -> None:
    """Every byte restarts nothing: the time is for the whole head (slowloris)."""
    with connected(hurried.port) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\n")
        ends = time.monotonic() + 60
        with pytest.raises(ConnectionError):  # noqa: PT012 - the server may close the connection at any byte
            while time.monotonic() < ends:
                connection.sendall(b"X")
                time.sleep(SECONDS / 10)
            pytest.fail("the server still listens")


def test_slow_second_heads_are_refused(hurried: LiveServer) -> None:
    with connected(hurried.port) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET /hea")
        assert b" 408 " in _wait_for_close(connection)


@pytest.mark.parametrize("length", ["Content-Length: 100", "Transfer-Encoding: chunked"])
def test_slow_bodies_are_refused(hurried: LiveServer, length: str) -> None:
    with connected(hurried.port) as connection:
        connection.sendall(head("POST", "/indexes/small/search", hurried.port, "Content-Type: application/json", length))
        connection.sendall(b"5\r\n{    \r\n")
        assert b" 408 " in _wait_for_close(connection)
    wait_until(lambda: hurried.app.bodies.held == 0)


def test_large_bodies_have_more_time(index: Path) -> None:
    """A client that sends fast enough may take longer than the time of a short body."""
    with LiveServer({"small": index}, client_timeout=SECONDS, max_query=1 << 20) as server, connected(server.port) as connection:
        body = b'{"query": "' + b"x" * 600_000 + b'"}'
        lines = ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        connection.sendall(head("POST", "/indexes/small/search", server.port, *lines))
        began = time.monotonic()
        for start in range(0, len(body), 100_000):
            connection.sendall(body[start : start + 100_000])
            time.sleep(SECONDS / 4)
        assert time.monotonic() - began > SECONDS
        assert b" 200 " in _wait_for_close(connection)[:20]


def test_clients_that_do_not_read_are_disconnected(hurried: LiveServer) -> None:
    """The memory of the answer is given back."""
    with connected(hurried.port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(head("GET", "/indexes/small/models", hurried.port))
        wait_until(lambda: hurried.limits.unsent > 1_000_000)
        wait_until(lambda: hurried.limits.unsent == 0)
        assert len(read_all(connection)) < LARGE
    wait_until(lambda: hurried.limits.open <= 1)
    assert not hurried.limits.sending


def test_clients_that_read_slowly_get_the_whole_answer(hurried: LiveServer) -> None:
    with connected(hurried.port) as connection:
        connection.sendall(head("GET", "/indexes/small/models", hurried.port))
        received, began = 0, time.monotonic()
        while piece := connection.recv(1 << 20):
            received += len(piece)
            time.sleep(0.03)
        assert received > LARGE
        assert time.monotonic() - began > SECONDS
    assert not hurried.limits.sending


def test_requests_are_refused_while_too_many_answers_are_unread(hurried: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perikope.server.app.MOST_UNSENT", 1_000_000)
    with connected(hurried.port) as connection:
        connection.sendall(head("GET", "/indexes/small/models", hurried.port))
        wait_until(lambda: hurried.limits.unsent > 1_000_000)
        answer = web.get(f"{hurried.url}/indexes/small/search?query=pump")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        wait_until(lambda: hurried.limits.unsent == 0)
    assert web.get(f"{hurried.url}/indexes/small/search?query=pump").status_code == 200


def test_connections_are_limited(hurried: LiveServer) -> None:
    wait_until(lambda: hurried.limits.open <= 1)
    opened = [socket.create_connection(("127.0.0.1", hurried.port), timeout=60) for _ in range(30)]
    try:
        wait_until(lambda: hurried.limits.open >= 30 or any(b" 408 " in one.recv(100) for one in opened[:1]))
        with connected(hurried.port) as connection:
            answer = _wait_for_close(connection)
            assert b" 503 " in answer or b" 408 " in answer
            assert b"application/problem+json" in answer
    finally:
        for one in opened:
            one.close()
    # Connections without a request end by themselves, and the next client is served.
    wait_until(lambda: hurried.limits.open <= 1)
    assert web.get(f"{hurried.url}/health").status_code == 200
