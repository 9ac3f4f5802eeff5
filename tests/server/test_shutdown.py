"""The end of a server: what runs is finished, and no process is left over."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.server.support import TOKEN, ServerProcess, head, is_alive, make_index, read_all, wait_until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_index(tmp_path_factory.mktemp("shutdown") / "index")


def test_every_accepted_request_is_answered(folder: Path, tokens: Path) -> None:
    """SIGTERM under load: running and waiting requests and changes are finished, new ones are not accepted."""
    with ServerProcess(f"small={folder}", "--workers", "2", "--tokens", str(tokens)) as server:
        paths = ["/indexes/small/probe?kind=sleep&seconds=0.5"] * 4 + ["/indexes/small/search?query=pump"] * 4
        sockets = [socket.create_connection(("127.0.0.1", server.port), timeout=120) for _ in paths]
        for connection, path in zip(sockets, paths, strict=True):
            connection.sendall(head("GET", path, server.port))
        added: list[httpx.Response] = []
        body = {"documents": [{"id": f"late{number}", "passages": ["a late pump"]} for number in range(50)]}

        def add() -> None:
            with server.client(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
                added.append(client.post("/indexes/small/documents", json=body))

        adding = threading.Thread(target=add)
        adding.start()
        wait_until(lambda: server.metric("perikope_connections") >= len(paths) + 1)
        server.processes()
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGTERM)  # a second signal changes nothing
        answers = [read_all(connection) for connection in sockets]
        adding.join()
        for connection in sockets:
            connection.close()
        assert [answer[:12] for answer in answers] == [b"HTTP/1.1 200"] * len(paths)
        assert added[0].json()["added"] == 50
        assert server.wait() == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port))
        wait_until(lambda: not any(map(is_alive, server.known)))
        assert [line["event"] for line in server.lines()][-1] == "stopped"


def test_signals_to_all_processes_are_left_to_the_server(folder: Path) -> None:
    """Ctrl-C and service managers send signals to all processes of a group. Requests are finished all the same."""
    with ServerProcess(f"small={folder}", "--workers", "2") as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=120) as connection:
            connection.sendall(head("GET", "/indexes/small/probe?kind=sleep&seconds=0.5", server.port))
            time.sleep(0.1)
            readers = server.processes()["forked"]
            for pid in readers:
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    os.kill(pid, number)
            server.signal(signal.SIGINT)
            answer = read_all(connection)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["pid"] in readers, "no reader was replaced"
        assert server.wait() == 0
        wait_until(lambda: not any(map(is_alive, server.known)))


def test_no_process_outlives_a_server_that_was_killed(folder: Path, tokens: Path) -> None:
    """Neither readers that wait, nor one that is in an endless step, nor the writer, nor the fork server."""
    with ServerProcess(f"small={folder}", "--workers", "2", "--timeout", "2", "--tokens", str(tokens)) as server:
        with server.client(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            assert client.post("/indexes/small/documents", json={"documents": [{"id": "n", "passages": ["a"]}]}).status_code == 200
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(head("GET", "/indexes/small/probe?kind=stuck&seconds=1000", server.port))
            time.sleep(0.2)
            found = server.processes()
            assert len(found["forked"]) == 3
            assert len(found["forkserver"]) == 1
            server.signal(signal.SIGKILL)
            wait_until(lambda: not any(map(is_alive, server.known)))
        assert not [line for line in server.log_text().splitlines() if not line.startswith("{")], "no trace of a process is printed"
