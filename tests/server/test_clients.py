"""Which client the log names: the one of the connection, or the one that a known proxy names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perikope.core.errors import UsageError
from perikope.server.clients import ADDRESS, NETWORK, NONE, Clients
from perikope.server.logs import Log
from tests.server.support import LiveServer, web

PROXY = "10.1.0.1"


def _described(clients: Clients, peer: str | None, *forwarded: str) -> str:
    headers = [(b"host", b"localhost"), *((b"x-forwarded-for", text.encode("latin-1")) for text in forwarded)]
    return clients.described({"client": (peer, 40000) if peer else None, "headers": headers})


@pytest.mark.parametrize("forwarded", [(), ("203.0.113.7",), ("127.0.0.1, 203.0.113.7",)])
def test_the_header_of_a_client_is_not_believed(forwarded: tuple[str, ...]) -> None:
    assert _described(Clients(shown=ADDRESS), "198.51.100.9", *forwarded) == "198.51.100.9"
    assert _described(Clients.of((PROXY,), ADDRESS), "198.51.100.9", *forwarded) == "198.51.100.9"
    assert _described(Clients(shown=ADDRESS), None, *forwarded) == ""


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ((), PROXY), (("",), PROXY), (("203.0.113.7",), "203.0.113.7"), (("203.0.113.7:443",), "203.0.113.7"),
        (("8.8.8.8, 203.0.113.7",), "203.0.113.7"),  # the client has written the first one itself
        (("8.8.8.8", "203.0.113.7"), "203.0.113.7"), (("203.0.113.7, 10.1.0.2",), "203.0.113.7"),
        (("10.1.0.3, 10.1.0.2",), "10.1.0.3"),  # a proxy that is a client
        (("203.0.113.7, unknown, 10.1.0.2",), "10.1.0.2"), (("<script>",), PROXY), (("203.0.113.7, ",), PROXY),
        (("[2001:db8:1:2::3]:443",), "2001:db8:1:2::3"), (("2001:db8:1:2::3",), "2001:db8:1:2::3"),
        (("::ffff:203.0.113.7",), "203.0.113.7"), (("fe80::1%a text of a user",), "fe80::1"),
        (("203.0.113.7," + "10.1.0.2," * 30 + "10.1.0.2",), "10.1.0.2"),
    ],
)  # fmt: skip
def test_a_proxy_names_its_client_last(forwarded: tuple[str, ...], client: str) -> None:
    assert _described(Clients.of((PROXY, "10.1.0.0/24"), ADDRESS), PROXY, *forwarded) == client
    assert _described(Clients.of(("unix", "10.1.0.0/24"), ADDRESS), None, *forwarded) == ("" if client == PROXY else client)


def test_a_network_stands_for_many_people() -> None:
    clients = Clients.of((), NETWORK)
    assert _described(clients, "203.0.113.7") == "203.0.113.0/24"
    assert _described(clients, "2001:db8:1:2:3:4:5:6") == "2001:db8:1::/48"
    assert _described(clients, "::ffff:203.0.113.7") == "203.0.113.0/24"
    assert _described(clients, "127.0.0.1") == "127.0.0.1"
    assert _described(Clients.of((), NONE), "203.0.113.7") == ""


@pytest.mark.parametrize("wrong", ["proxy.example", "10.0.0.0/33", "", "10.0.0.1:80", "*"])
def test_a_wrong_proxy_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="no address"):
        Clients.of((wrong,))


@pytest.mark.parametrize(("proxies", "shown"), [((), "127.0.0.1"), (("127.0.0.1",), "203.0.113.0/24")])
def test_the_log_has_the_client_of_each_request(index: Path, proxies: tuple[str, ...], shown: str) -> None:
    with LiveServer({"small": index}) as server:
        server.app.log.clients = Clients.of(proxies)
        for path in ("/health", "/nothing", "/indexes/small/search?query=pump", "/indexes/small/search"):
            web.get(f"{server.url}{path}", headers={"X-Forwarded-For": "203.0.113.7"})
        lines: list[dict[str, Any]] = [line for line in server.lines() if line["event"] == "request"]
    assert [line["client"] for line in lines] == [shown] * 4
    assert json.dumps(lines).count("203.0.113.7") == 0


def test_a_log_may_have_no_clients(index: Path) -> None:
    with LiveServer({"small": index}) as server:
        server.app.log.clients = Clients.of((), NONE)
        web.get(f"{server.url}/health")
        assert all("client" not in line for line in server.lines())


def test_the_default_has_no_whole_address() -> None:
    assert Log().clients == Clients.of((), NETWORK)
