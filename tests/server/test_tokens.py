"""Tokens and permissions."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from perikope import Index
from perikope.core.errors import InputError
from perikope.server.gate import Gate, Token, allowed_hosts, new_token, read_tokens
from perikope.server.problems import Refusal
from tests.server.support import LiveServer, check_problem, web

HOSTS = allowed_hosts("127.0.0.1", (), is_socket=False)
ADDED = {"documents": [{"id": "new", "passages": ["a turbine"]}]}


def _token(name: str, read: tuple[str, ...] = (), write: tuple[str, ...] = ()) -> Token:
    """A token whose secret is `secret of NAME`."""
    digest = hashlib.sha256(f"secret-of-{name}".encode()).digest()
    return Token(name, digest, {"read": frozenset(read), "write": frozenset(write)})


def _as(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer secret-of-{name}"}


TOKENS = (_token("both", write=("*",)), _token("first", read=("first",)), _token("second", read=("second",), write=("second",)))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tokens")
    for name in ("first", "second"):
        with Index.create(folder / name) as index:
            index.add([{"id": "a", "passages": ["a pump"]}])
    return {name: folder / name for name in ("first", "second")}


@pytest.fixture(scope="module")
def open_reading(folders: dict[str, Path]) -> Iterator[LiveServer]:
    with LiveServer(folders, Gate(HOSTS, tokens=TOKENS)) as server:
        yield server


@pytest.fixture(scope="module")
def closed(folders: dict[str, Path]) -> Iterator[LiveServer]:
    """A server on which reading needs a token, too."""
    with LiveServer(folders, Gate(HOSTS, tokens=TOKENS, open_reading=False)) as server:
        yield server


def _search(server: LiveServer, index: str, headers: dict[str, str]) -> httpx.Response:
    return web.get(f"{server.url}/indexes/{index}/search?query=pump", headers=headers)


def _add(server: LiveServer, index: str, headers: dict[str, str]) -> httpx.Response:
    return web.post(f"{server.url}/indexes/{index}/documents", headers=headers, json=ADDED)


def test_nobody_writes_without_tokens(live: LiveServer) -> None:
    for headers in ({}, _as("both")):
        for operation, body in (("documents", ADDED), ("delete", {"ids": ["couplings"]})):
            answer = web.post(f"{live.url}/indexes/small/{operation}", headers=headers, json=body)
            check_problem(answer, 401 if headers else 403)


def test_everybody_reads_and_tokens_write(open_reading: LiveServer) -> None:
    assert _search(open_reading, "first", {}).status_code == 200
    refused = _add(open_reading, "first", {})
    check_problem(refused, 401)
    assert refused.headers["www-authenticate"] == "Bearer"
    assert _add(open_reading, "second", _as("both")).json()["added"] == 1
    # A commit is seen by the next request.
    assert web.get(f"{open_reading.url}/indexes/second/document?document=new").status_code == 200


def test_permissions_are_per_index(open_reading: LiveServer, closed: LiveServer) -> None:
    assert _search(closed, "first", _as("first")).status_code == 200
    check_problem(_search(closed, "second", _as("first")), 403)
    assert _search(open_reading, "second", _as("first")).status_code == 200
    for server in (open_reading, closed):
        check_problem(_add(server, "first", _as("second")), 403)
        check_problem(_add(server, "first", _as("first")), 403)
        assert _add(server, "second", _as("second")).status_code == 200


def test_reading_needs_a_token_on_request(closed: LiveServer) -> None:
    for path in ("/indexes", "/indexes/first", "/indexes/first/search?query=pump", "/metrics", "/indexes/first/document?document=a"):
        answer = web.get(f"{closed.url}{path}")
        check_problem(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/health", "/ready"):
        assert web.get(f"{closed.url}{path}").status_code == 200
    assert web.get(f"{closed.url}/indexes", headers=_as("first")).json() == {"indexes": ["first"]}
    check_problem(web.get(f"{closed.url}/metrics", headers=_as("first")), 403)
    assert web.get(f"{closed.url}/metrics", headers=_as("both")).status_code == 200


def test_names_of_indexes_are_hidden_from_those_who_may_not_read_them(closed: LiveServer) -> None:
    """A client without permission cannot tell an index that exists from one that does not."""
    for headers in ({}, _as("first")):
        there, missing = _search(closed, "second", headers), _search(closed, "third", headers)
        assert (there.status_code, there.content) == (missing.status_code, missing.content)
    document = web.get(f"{closed.url}/openapi.json").text
    assert '"first"' not in document
    assert '"second"' not in document
    document = web.get(f"{closed.url}/openapi.json", headers=_as("first")).text
    assert '"first"' in document
    assert '"second"' not in document
    check_problem(_search(closed, "third", _as("both")), 404)


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer wrong",
        "Bearer",
        "Basic secret-of-both",
        "secret-of-both",
        "Bearer Secret-of-both",
        "Bearer secret-of-both x",
        "Bearer secret-of-bot",
        "Bearer " + "x" * 20000,
        "Bearer \u00ff\u00fe",
        "Bearer " + hashlib.sha256(b"secret-of-both").hexdigest(),
    ],
)
def test_wrong_tokens_are_refused(open_reading: LiveServer, authorization: str) -> None:
    headers = {"Authorization": authorization.encode("latin-1")}
    for answer in (_search(open_reading, "first", headers), _add(open_reading, "first", headers)):  # type: ignore[arg-type]
        detail = check_problem(answer, 401)
        assert authorization[7:20] not in detail or len(authorization) < 9


def test_every_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    monkeypatch.setattr("perikope.server.gate.hmac", _Hmac(compared))
    assert Gate(HOSTS, tokens=TOKENS).check_permission("Bearer secret-of-both", "write", "first") == "both"
    # Digests of equal length are compared, and those after the right one, too.
    assert [first for first, _ in compared] == [token.digest for token in TOKENS]
    assert {len(second) for _, second in compared} == {32}


class _Hmac:
    def __init__(self, compared: list[tuple[bytes, bytes]]) -> None:
        self._compared = compared

    def compare_digest(self, first: bytes, second: bytes) -> bool:
        self._compared.append((first, second))
        return hmac.compare_digest(first, second)


def test_a_new_token_works(tmp_path: Path) -> None:
    secret, lines = new_token("ingest")
    path = tmp_path / "tokens.toml"
    path.write_text(f'read = "token"\n\n{lines}')
    tokens, is_open = read_tokens(path, ["first"])
    assert not is_open
    assert secret not in path.read_text()
    gate = Gate(HOSTS, tokens=tokens, open_reading=is_open)
    assert gate.check_permission(f"bearer {secret}", "read", "first") == "ingest"
    with pytest.raises(Refusal, match="may not write"):  # until the operator names an index
        gate.check_permission(f"bearer {secret}", "write", "first")
    path.write_text(lines.replace("write = []", 'write = ["first"]'))
    tokens, _ = read_tokens(path, ["first"])
    assert Gate(HOSTS, tokens=tokens).check_permission(f"bearer {secret}", "write", "first") == "ingest"
    assert new_token("ingest")[0] != secret


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tokens", "is not TOML"),
        ("", "is empty"),
        ("# nothing", "is empty"),
        ('read = "nobody"', 'must have read = "anyone"'),
        ('secret = "a"', "nothing else"),
        ('[tokens.a]\nsha256 = "abc"', "64 digits"),
        (f'[tokens.a]\nsha256 = "{"a" * 64}"\nread = ["third"]', "names 'third'"),
        (f'[tokens.a]\nsha256 = "{"a" * 64}"\nwrite = "*"', "must be a list"),
        (f'[tokens.a]\nsha256 = "{"a" * 64}"\nadmin = true', "may have read and write"),
    ],
)
def test_mistakes_in_the_file_of_tokens_are_reported(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        read_tokens(path, ["first", "second"])
