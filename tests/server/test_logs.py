"""The log: one JSON object per line, without texts of users."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from perikope.server.gate import Gate, allowed_hosts
from perikope.server.logs import Log
from tests.server.support import TOKEN, LiveServer, connected, exchange, head, wait_until, web
from tests.server.test_tokens import TOKENS

WORD = "xylophonist"
"""A word that no line of the log may contain."""


def _logged(index: Path, log: Log, stream: io.StringIO, failing: bool = False) -> list[dict[str, object]]:
    """The lines of the log after requests of all kinds that contain `WORD`."""
    gate = Gate(allowed_hosts("127.0.0.1", (), is_socket=False), tokens=TOKENS)
    with LiveServer({"small": index}, gate, log=log) as server:
        path = f"{server.url}/indexes/small"
        if failing:
            server.app.pool.handler.operations = {}  # type: ignore[attr-defined]
        headers = {"Authorization": f"Bearer {TOKEN}{WORD}"}
        web.get(f"{path}/search", params={"query": f"magnetic {WORD}"})
        web.post(f"{path}/search", json={"query": f"magnetic {WORD}", "model": WORD})
        web.post(f"{path}/search", json={"query": "magnetic", "filter": [f"{WORD}=1"]})
        web.get(f"{path}/document", params={"document": WORD})
        web.get(f"{server.url}/{WORD}")
        web.get(f"{server.url}/indexes/{WORD}/search?query=pump", headers=headers)
        web.post(f"{server.url}/indexes/{WORD}/documents", json=[])
        web.get(f"{path}/search?query={WORD}", headers=headers)
        web.get(f"{path}/search?query=pump", headers={"Authorization": "Bearer secret-of-both"})
        exchange(server.port, f"GET /{WORD} HTTP/9\r\n\r\n".encode())
        exchange(server.port, head("GET", f"/{WORD}", server.port, "Upgrade: websocket", "Connection: upgrade"))
        with connected(server.port) as connection:
            connection.sendall(head("POST", f"/indexes/small/search?{WORD}", server.port, "Content-Length: 9"))
        wait_until(lambda: stream.getvalue().count('request"') >= 8)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_the_log_has_no_texts_of_users(index: Path, caplog: pytest.LogCaptureFixture) -> None:
    stream = io.StringIO()
    lines = _logged(index, Log(stream=stream), stream)
    assert WORD not in stream.getvalue()
    assert "secret" not in stream.getvalue()
    first = next(line for line in lines if line["event"] == "request")
    assert {"time", "ms", "method", "operation", "status", "bytes", "index", "commit", "model", "stages"} <= first.keys()
    assert first["operation"] == "search"
    assert "both" in {line.get("token") for line in lines}
    assert {line["status"] for line in lines if line["event"] == "request"} >= {200, 400, 401, 404}


def test_errors_have_no_texts_of_users(index: Path) -> None:
    stream = io.StringIO()
    lines = _logged(index, Log(stream=stream), stream, failing=True)
    assert WORD not in stream.getvalue()
    errors = [line for line in lines if line["event"] == "error" and "incident" in line]
    assert errors
    assert all(line["error"] == "KeyError" and "handler.py" in str(line["trace"]) for line in errors)
    stream = io.StringIO()
    assert "text" in next(
        line for line in _logged(index, Log(stream=stream, queries=True), stream, failing=True) if line["event"] == "error"
    )


def test_queries_are_logged_on_request(index: Path) -> None:
    stream = io.StringIO()
    lines = _logged(index, Log(stream=stream, queries=True), stream)
    assert WORD in str(lines[0]["query"])
    assert any(WORD in str(line.get("body", "")) for line in lines)
    assert "secret" not in stream.getvalue()
    assert TOKEN not in stream.getvalue(), "tokens are never logged"


def test_slow_requests_are_logged(index: Path) -> None:
    """Also if no line per request is written."""
    for slow, events in ((0.0, {"slow request"}), (1000.0, {"request"})):
        stream = io.StringIO()
        assert {line["event"] for line in _logged(index, Log(stream=stream, slow=slow), stream)} - {"error"} == events
    stream = io.StringIO()
    quiet = Log(stream=stream, slow=1000.0, access=False)
    quiet.request(999.0, {}, {}, {})
    quiet.request(1001.0, {}, {"operation": "search", "stages": {"rank": 1000.5}}, {"query": WORD})
    (line,) = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert line["event"] == "slow request"
    assert line["stages"] == {"rank": 1000.5}
    assert WORD not in stream.getvalue()


def test_a_log_that_nobody_reads_does_not_stop_the_server() -> None:
    stream = io.StringIO()
    stream.close()
    Log(stream=stream).event("anything")
