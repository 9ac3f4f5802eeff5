"""Processes that end by themselves: the log tells how, and no change is counted twice."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from perikope import Index
from perikope.index import manifest as manifests
from perikope.server.ends import ProcessEnd
from perikope.server.frames import receive
from perikope.server.handler import PREPARED
from perikope.server.problems import Refusal
from perikope.server.writer import Writing, settled
from tests.server.support import TOKEN, ServerProcess, check_problem, wait_until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Index.create(tmp_path / "index") as index:
        index.add([{"id": id, "passages": [f"magnetic pump {id}"]} for id in "abc"])
    return tmp_path / "index"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, tokens: Path) -> Iterator[tuple[ServerProcess, Path]]:
    """A server, and the folder of its index."""
    folder = tmp_path_factory.mktemp("ends") / "index"
    with Index.create(folder) as index:
        index.add([{"id": id, "passages": [f"magnetic pump {id}"]} for id in "abc"])
    with ServerProcess(f"small={folder}", "--workers", "1", "--tokens", str(tokens), "--timeout", "100") as server:
        yield server, folder


def _ends(server: ServerProcess) -> list[dict[str, Any]]:
    return [line for line in server.lines() if line["event"] == "process ended"]


def _change(server: ServerProcess, operation: str, body: dict[str, Any]) -> httpx.Response:
    with server.client(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        return client.post(f"/indexes/small/{operation}", json=body)


def test_readers_that_end_are_logged(shared: tuple[ServerProcess, Path]) -> None:
    """One that is killed while it waits, and three that a request ends."""
    server, _ = shared
    with server.client() as client:
        pid = client.get("/indexes/small/probe").json()["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(_ends(server)) == 1)
        (end,) = _ends(server)
        assert {**end, "time": 0} == {
            "time": 0, "event": "process ended", "process": "reader", "pid": pid, "signal": "SIGKILL", "request": "none",
        }  # fmt: skip
        check_problem(client.get("/indexes/small/probe?kind=crash"), 500)
        wait_until(lambda: len(_ends(server)) == 4)
    assert [end["request"] for end in _ends(server)[1:]] == ["given to another process"] * 2 + ["answered with 500"]
    assert len({end["pid"] for end in _ends(server)}) == 4


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_change_is_counted_once(shared: tuple[ServerProcess, Path], moment: str) -> None:
    """The process that writes is killed before or after its commit. The answer says what the change has done."""
    server, folder = shared
    order, before = folder.parent / f"die-{moment}-commit", len(_ends(server))
    order.touch()
    new = [{"id": "a", "passages": ["another"]}, {"id": f"new-{moment}", "passages": ["a magnetic pump"]}]
    written = _change(server, "documents", {"documents": new, "replace": False}).json()
    assert not order.exists(), "the process was ended"
    assert (written["added"], written["left_out"]) == (1, ["a"])
    order.touch()
    deleted = _change(server, "delete", {"ids": [f"new-{moment}", "zzz"]})
    assert not order.exists()
    if moment == "after":
        # All documents of the segment are gone, so no file of the commit is left that would prove it.
        assert "may have been made" in check_problem(deleted, 503)
    else:
        assert deleted.json()["deleted"] == 1
    last = manifests.load(folder)
    assert last.documents == len(Index.open(folder)) == 3
    assert (written["documents"], written["generation"]) == (4, last.generation - 1)
    wait_until(lambda: len(_ends(server)) == before + 2)
    ends = _ends(server)[before:]
    assert {(end["process"], end["signal"]) for end in ends} == {("writer", "SIGKILL")}
    expected = ["given to another process"] * 2 if moment == "before" else ["answered with 200", "answered with 503"]
    assert [end["request"] for end in ends] == expected


def _prepared(folder: Path, operation: str, body: bytes) -> Any:
    """What a process says before its commit."""
    said: list[bytes] = []
    Writing({"small": str(folder)}, {}).make("small", [{"operation": operation, "query": "", "method": "POST"}], [body], said.append)
    here, there = socket.socketpair()
    with here, there:
        there.sendall(said[0])
        return receive(here)


def test_a_delete_of_some_documents_leaves_its_mark(folder: Path) -> None:
    prepared = _prepared(folder, "delete", b'{"ids": ["a"]}')
    ((facts, content),) = settled(prepared, folder) or ()
    assert facts["status"] == 200
    assert b'"deleted":1' in content
    assert b'"documents":2' in content


def test_the_commit_of_another_program_is_not_taken_for_the_own_one(folder: Path) -> None:
    before = manifests.load(folder).generation
    prepared = ({PREPARED: before, "stamp": "0" * 8, "answers": [{"status": 200}], "lengths": [2]}, b"{}")
    assert settled(prepared, folder) is None
    with Index.open(folder) as index:
        index.add({"id": "d", "passages": ["d"]})
    with pytest.raises(Refusal, match="may have been made"):
        settled(prepared, folder)


def test_ends_in_words() -> None:
    assert ProcessEnd("reader", 7, 1, "none").facts() == {"process": "reader", "pid": 7, "status": 1, "request": "none"}
    assert ProcessEnd("reader", 7, -11, "none").facts()["signal"] == "SIGSEGV"
    assert ProcessEnd("reader", 7, -63, "none").facts()["signal"] == 63
    assert ProcessEnd("reader", 7, None, "none").facts()["status"] is None
