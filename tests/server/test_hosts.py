"""Under which names a server answers, and which web pages may use it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from perikope.core.errors import UsageError
from perikope.server.gate import Gate, allowed_hosts
from perikope.server.settings import ServerSettings
from tests.server.support import LiveServer, check_problem, exchange, head, web

SEARCH = "/indexes/small/search?query=magnetic"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "localhost:9999", "[::1]:80"])
def test_names_of_this_machine_are_answered(live: LiveServer, host: str) -> None:
    assert web.get(f"{live.url}{SEARCH}", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "evil.example:8321", "localhost@evil.example", "127.0.0.1.nip.io", "0.0.0.0", ""]
)
def test_foreign_hosts_are_refused(live: LiveServer, host: str) -> None:
    # A page of evil.example whose name was changed to 127.0.0.1 sends its own name (DNS rebinding).
    for path in (SEARCH, "/health", "/openapi.json", "/metrics", "/nothing"):
        detail = check_problem(web.get(f"{live.url}{path}", headers={"Host": host}), 421)
        assert "evil" not in detail


def test_a_request_without_host_is_refused(live: LiveServer) -> None:
    for version, status in (("1.0", b"421"), ("1.1", b"400")):
        answer = exchange(live.port, f"GET /health HTTP/{version}\r\nConnection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 " + status)


def _status(live: LiveServer, target: str, *, host: str = "127.0.0.1", version: str = "1.1") -> int:
    """The status of the answer to a request line with this target."""
    answer = exchange(live.port, f"GET {target} HTTP/{version}\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode("latin-1"))
    return int(answer[9:12])


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://127.0.0.1/health", 200), ("http://localhost:8321/health", 200), ("HTTP://LOCALHOST./health", 200),
        ("http://[::1]:80/health", 200), ("https://localhost/health", 200), ("http://evil.example/health", 421),
        ("http://evil.example:80/health", 421), ("HTTP://EVIL.EXAMPLE/health", 421), ("http://localhost.evil.example/health", 421),
        ("http://localhost@evil.example/health", 421), ("http://evil.example@localhost/health", 421), ("ftp://localhost/health", 421),
        ("http://localhost:evil/health", 400), ("http:///health", 400), ("//evil.example/health", 404), ("/http://localhost/health", 404),
    ],
)  # fmt: skip
def test_a_whole_address_is_checked_like_the_header(live: LiveServer, target: str, status: int) -> None:
    for version in ("1.0", "1.1"):
        assert _status(live, target, version=version) == status
    assert _status(live, target, host="evil.example") in (400, 421)


def test_spellings_of_a_name_are_one_name(live: LiveServer) -> None:
    for host in ("LOCALHOST", "localhost.", "localhost.:80", "Localhost:", "127.0.0.1.:8321", "[::1]:9"):
        assert _status(live, "/health", host=host) == 200, host
    for host in ("localhost..", ".localhost", "localhost:80:80", "local host", "localhost,evil.example", "localhost/"):
        assert _status(live, "/health", host=host) == 421, host


def test_two_hosts_are_refused(live: LiveServer) -> None:
    # A proxy may look at one of them, and the server at the other.
    assert exchange(live.port, head("GET", "/health", live.port, "Host: evil.example")).startswith(b"HTTP/1.1 400 ")
    twice = head("GET", SEARCH, live.port, "Authorization: Bearer a", "Authorization: Bearer b")
    assert exchange(live.port, twice).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://evil.example://127.0.0.1"},
        {"Origin": "file://"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ],
)
def test_requests_of_foreign_pages_are_refused(live: LiveServer, headers: dict[str, str]) -> None:
    for method, path in (("GET", SEARCH), ("POST", "/indexes/small/search"), ("POST", "/indexes/small/documents"), ("OPTIONS", SEARCH)):
        answer = web.request(method, f"{live.url}{path}", headers=headers, json={"query": "magnetic"} if method == "POST" else None)
        check_problem(answer, 403)
        assert "access-control-allow-origin" not in answer.headers


def test_own_pages_and_links_are_answered(live: LiveServer) -> None:
    for headers in (
        {"Origin": live.url, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
    ):
        answer = web.get(f"{live.url}{SEARCH}", headers=headers)
        assert answer.status_code == 200
        assert "access-control-allow-origin" not in answer.headers


@pytest.fixture(scope="module")
def shared(index: Path) -> Iterator[LiveServer]:
    """A server that one web site may read from."""
    gate = Gate(allowed_hosts("127.0.0.1", ("search.example.org",), is_socket=False), frozenset({"https://app.example.org"}))
    with LiveServer({"small": index}, gate) as server:
        yield server


def test_allowed_origins_may_read(shared: LiveServer) -> None:
    headers = {"Origin": "https://app.example.org", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    answer = web.get(f"{shared.url}{SEARCH}", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://app.example.org"
    assert answer.headers["vary"] == "origin"
    asked = web.options(f"{shared.url}{SEARCH}", headers={**headers, "Access-Control-Request-Method": "POST"})
    assert asked.status_code == 204
    assert "content-length" not in asked.headers
    assert "authorization" not in asked.headers["access-control-allow-headers"]
    for other in ("https://app.example.org.evil.example", "http://app.example.org", "https://APP.example.org"):
        check_problem(web.get(f"{shared.url}{SEARCH}", headers={**headers, "Origin": other}), 403)


def test_allowed_names_are_answered(shared: LiveServer) -> None:
    assert web.get(f"{shared.url}{SEARCH}", headers={"Host": "search.example.org:443"}).status_code == 200
    check_problem(web.get(f"{shared.url}{SEARCH}", headers={"Host": "example.org"}), 421)


def test_the_default_is_loopback_without_foreign_names() -> None:
    settings = ServerSettings.of({})
    assert settings.host == "127.0.0.1"
    assert allowed_hosts(settings.host, settings.allow_host, is_socket=False) == {"localhost", "127.0.0.1", "[::1]"}
    assert not settings.allow_origin
    assert allowed_hosts("0.0.0.0", (), is_socket=False) == {"localhost", "127.0.0.1", "[::1]"}


def test_other_machines_need_a_name() -> None:
    from perikope.cli.serve_command import _check_address

    with pytest.raises(UsageError, match="--allow-host"):
        _check_address(ServerSettings.of({"host": "0.0.0.0"}))
    with pytest.warns(UserWarning, match="everybody"):
        _check_address(ServerSettings.of({"host": "0.0.0.0", "allow_host": ("search.example.org",)}))


def test_problems_of_the_gate_have_no_configuration(shared: LiveServer) -> None:
    text = json.dumps([check_problem(web.get(f"{shared.url}/health", headers={"Host": "x"}), 421)])
    assert "example.org" not in text
