"""HTTP itself: methods, headers of every answer, versions, and bytes that are not HTTP."""

from __future__ import annotations

import json
import time

import pytest

from tests.server.support import LiveServer, check_problem, connected, exchange, head, read_all, web

SEARCH = "/indexes/small/search?query=magnetic"
PROMISED = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def _parsed(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    top, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    return int(first.split()[1]), dict(line.lower().split(": ", 1) for line in lines), body


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", SEARCH, 200), ("GET", "/nothing", 404), ("GET", "/indexes/nothing/search", 404), ("GET", "/health", 200),
        ("GET", "/ready", 200), ("GET", "/metrics", 200),
        ("GET", "/openapi.json", 200), ("GET", "/indexes", 200), ("GET", "/indexes/", 404),
        ("GET", "/indexes/small", 200), ("GET", "/indexes/small/", 404), ("GET", "/indexes/small/search/", 404), ("PUT", SEARCH, 405),
        ("DELETE", "/indexes/small", 405), ("POST", "/health", 405), ("GET", "/indexes/small/documents", 405), ("OPTIONS", SEARCH, 405),
        ("TRACE", SEARCH, 405), ("PATCH", "/indexes/small/documents", 405), ("POST", SEARCH, 415), ("GET", "/indexes/small/search", 400),
        ("GET", "/indexes/small/document?document=nothing", 404), ("PROPFIND", "/", 405), ("PROPFIND", "/nothing", 404),
    ],
)  # fmt: skip
def test_every_answer_has_security_headers(live: LiveServer, method: str, path: str, status: int) -> None:
    answer = web.request(method, f"{live.url}{path}")
    assert answer.status_code == status
    assert {name: answer.headers.get(name) for name in PROMISED} == PROMISED
    assert "server" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers
    if status >= 400:
        check_problem(answer, status)
    if status == 405:
        assert answer.headers["allow"] in ("GET, HEAD", "GET, POST, HEAD", "POST")


def test_head_is_get_without_the_body(live: LiveServer) -> None:
    for path in (SEARCH, "/health", "/indexes/small", "/nothing"):
        got, headed = web.get(f"{live.url}{path}"), web.head(f"{live.url}{path}")
        assert (headed.status_code, headed.content) == (got.status_code, b"")
        assert headed.headers["content-length"] == str(len(got.content))


@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"FOO / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\x00b\r\n\r\n",
        b"\r\n\r\n\x00\x00", b"GET \xff HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"GET http:// HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"CONNECT a.example:80 HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)  # fmt: skip
def test_malformed_http_is_refused(live: LiveServer, data: bytes) -> None:
    status, headers, body = _parsed(exchange(live.port, data))
    assert status in (400, 421)
    assert headers["content-type"] == "application/problem+json"
    assert {name: headers.get(name) for name in PROMISED} == PROMISED
    assert json.loads(body)["status"] == status


@pytest.mark.parametrize("pause", [0.0, 0.2])
@pytest.mark.parametrize("chunks", [b"zz\r\n\r\n", b"ffffffffffffffffff\r\n", b"-1\r\n\r\n", b"2\r\n{}}}}"])
def test_malformed_chunks_are_refused(live: LiveServer, chunks: bytes, pause: float) -> None:
    """The client is told so, whether the body comes with the head or after it."""
    with connected(live.port) as connection:
        connection.sendall(head("POST", "/indexes/small/search", live.port, "Content-Type: application/json", "Transfer-Encoding: chunked"))
        time.sleep(pause)
        connection.sendall(chunks)
        answer = read_all(connection)
    assert answer.count(b"HTTP/1.1 ") == 1
    status, headers, body = _parsed(answer)
    assert status == 400
    assert {name: headers.get(name) for name in PROMISED} == PROMISED
    assert "is not HTTP/1.1" in json.loads(body)["detail"]


def test_a_malformed_request_is_not_the_answer_to_the_one_before(live: LiveServer) -> None:
    """The first request is not answered yet when the second one is read."""
    first = head("GET", SEARCH, live.port).replace(b"Connection: close\r\n", b"")
    answer = exchange(live.port, first + b"GARBAGE\r\n\r\n")
    assert b" 400 " not in answer


def test_long_heads_are_refused(live: LiveServer) -> None:
    for name in ("X-Long", "Cookie", "Authorization"):
        with connected(live.port) as connection:
            connection.sendall(f"GET /health HTTP/1.1\r\nHost: localhost\r\n{name}: ".encode())
            try:
                for _ in range(100):
                    connection.sendall(b"x" * 10_000)
                answer = connection.recv(100)
            except ConnectionError:
                continue  # the server closed the connection while the head was being sent
            assert answer.startswith(b"HTTP/1.1 431 ")
    # Many short headers are a long head, too.
    with connected(live.port) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
        try:
            for number in range(20_000):
                connection.sendall(f"X-{number}: 1\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 431 ")
        except ConnectionError:
            pass
    assert web.get(f"{live.url}/health").status_code == 200


def test_http_1_0_is_answered_and_closed(live: LiveServer) -> None:
    answer = exchange(live.port, f"GET /health HTTP/1.0\r\nHost: 127.0.0.1:{live.port}\r\n\r\n".encode())
    assert _parsed(answer)[0] == 200


def test_pipelined_requests_are_answered_in_order(live: LiveServer) -> None:
    paths = ["/health", SEARCH, "/nothing", "/indexes", SEARCH]
    heads = [head("GET", path, live.port).replace(b"Connection: close\r\n", b"") for path in paths[:-1]]
    answer = exchange(live.port, b"".join([*heads, head("GET", paths[-1], live.port)]))
    statuses = [piece[:3] for piece in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"200", b"404", b"200", b"200"]


def test_upgrades_are_ignored(live: LiveServer) -> None:
    for protocol in ("websocket", "h2c"):
        lines = ["Connection: Upgrade, close", f"Upgrade: {protocol}", "Sec-WebSocket-Key: YQ==", "Sec-WebSocket-Version: 13"]
        data = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\n" + "\r\n".join([*lines, "", ""])
        assert _parsed(exchange(live.port, data.encode()))[0] == 200


def _kept(method: str, path: str, port: int, *lines: str) -> bytes:
    """The head of a request that keeps its connection."""
    return head(method, path, port, *lines).replace(b"Connection: close\r\n", b"")


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("split", [False, True])
def test_the_body_of_a_request_with_upgrade_is_read(live: LiveServer, chunked: bool, split: bool) -> None:
    # Several clients ask for HTTP/2 with each request. What they send as a body must never be taken for a request.
    body = b'{"query": "magnetic", "k": 1}'
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    lines = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk", "Content-Type: application/json"]
    search = _kept("POST", "/indexes/small/search", live.port, *lines, length)
    sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    with connected(live.port) as connection:
        connection.sendall(search)
        for piece in [sent[:9], sent[9:]] if split else [sent]:
            if split:
                time.sleep(0.05)
            connection.sendall(piece)
        connection.sendall(search + sent + _kept("GET", "/health", live.port, "Upgrade: h2c", "Connection: Upgrade"))
        connection.sendall(head("GET", "/indexes", live.port))
        answer = read_all(connection)
    assert answer.count(b"HTTP/1.1 ") == answer.count(b"HTTP/1.1 200 OK") == 4
    assert answer.count(b'"hits":[{') == 2
    assert answer.index(b'"status":"ok"') < answer.index(b'"indexes":')


def test_a_body_after_upgrade_is_no_request(live: LiveServer) -> None:
    hidden = _kept("GET", "/health", live.port)
    lines = ["Connection: Upgrade", "Upgrade: h2c", "Content-Type: application/json", f"Content-Length: {len(hidden)}"]
    with connected(live.port) as connection:
        connection.sendall(_kept("POST", "/indexes/small/search", live.port, *lines))
        time.sleep(0.1)
        connection.sendall(hidden)
        connection.sendall(head("GET", "/indexes", live.port))
        answer = read_all(connection)
    assert [piece[:3] for piece in answer.split(b"HTTP/1.1 ")[1:]] == [b"400", b"200"]
    assert b'"status":"ok"' not in answer


def test_a_defect_of_the_server_is_a_problem_without_details(live: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("/some/folder")

    monkeypatch.setattr(live.app, "_read", fail)
    answer = web.get(f"{live.url}{SEARCH}")
    detail = check_problem(answer, 500)
    assert "folder" not in answer.text
    assert {name: answer.headers.get(name) for name in PROMISED} == PROMISED
    (incident,) = [line for line in live.lines() if line["event"] == "error" and "incident" in line]
    assert incident["incident"] in detail
    assert incident["error"] == "KeyError"
    assert "test_http" in incident["trace"]


def test_a_batch_has_one_answer_per_query(live: LiveServer) -> None:
    """Also if queries are equal or empty."""
    asked = {"queries": ["pump", "strainer", "pump", ""], "k": 1}
    answers = web.post(f"{live.url}/indexes/small/search-many", json=asked).json()["answers"]
    assert len(answers) == 4
    assert answers[0] == answers[2]
    assert answers[3]["answer"] is None
    assert "empty" in answers[3]["problem"]
