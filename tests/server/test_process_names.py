"""`ps` and `top` tell the processes of a server apart."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from perikope.server.pool import ReaderPool
from perikope.server.process_names import FORK_SERVER, READER, name_process
from tests.server.support import TOKEN, ServerProcess, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no names of processes")


def _shown(pid: int, column: str) -> str:
    """What `ps` shows of a process."""
    return subprocess.run(["ps", "-o", f"{column}=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout.strip()


def test_each_process_of_a_server_has_its_name(process: ServerProcess) -> None:
    with process.client(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        assert client.post("/indexes/small/documents", json={"documents": [{"id": "n", "passages": ["a"]}]}).status_code == 200
    found = process.processes()
    assert sorted(_shown(pid, "args") for pid in found["forked"]) == ["perikope: reader 0", "perikope: reader 1", "perikope: writer"]
    assert sorted(_shown(pid, "comm") for pid in found["forked"]) == ["perikope-reader"] * 2 + ["perikope-writer"]
    (fork_server,) = found["forkserver"]
    assert (_shown(fork_server, "args"), _shown(fork_server, "comm")) == ("perikope: fork server", "perikope-fork")
    assert _shown(process.pid, "comm") == "perikope-server"
    assert "tests.server.program" in _shown(process.pid, "args"), "the command of the server itself is kept"


def _names(server: ServerProcess) -> dict[str, int]:
    """The processes that answer requests, by their names; those that end meanwhile are left out."""
    found = {}
    for pid in server.processes()["forked"]:
        with contextlib.suppress(OSError):
            found[Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0")] = pid
    return found


def test_a_process_that_takes_the_place_of_another_has_its_number(process: ServerProcess) -> None:
    before = _names(process)
    os.kill(before["perikope: reader 0"], signal.SIGKILL)
    wait_until(lambda: _names(process).get("perikope: reader 0", before["perikope: reader 0"]) != before["perikope: reader 0"])
    assert _names(process)["perikope: reader 1"] == before["perikope: reader 1"]


def test_numbers_of_processes_are_those_of_metrics() -> None:
    pool = ReaderPool(lambda: None, (), 2, 1)
    for number, pid in ((0, 11), (1, 12)):
        pool._processes[number] = SimpleNamespace(pid=pid)  # type: ignore[assignment]
    del pool._processes[0]
    pool._processes[0] = SimpleNamespace(pid=13)  # type: ignore[assignment]
    assert list(pool.pids.items()) == [(0, 13), (1, 12)]


def test_a_long_name_is_cut_and_the_environment_stays() -> None:
    code = (
        "import json, os, pathlib; from perikope.server.process_names import _overwrite_command; "
        "_overwrite_command('x' * 100_000); _overwrite_command('y' * 100_000); "
        "print(json.dumps([pathlib.Path('/proc/self/cmdline').read_text(), pathlib.Path('/proc/self/environ').read_text()]))"
    )
    arguments = [sys.executable, "-c", code]
    done = subprocess.run(
        arguments, env={**os.environ, "A_MARK": "kept"}, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    command, environment = json.loads(done.stdout)
    assert set(command) == {"y", "\0"}
    assert len(command) == sum(len(argument.encode()) + 1 for argument in arguments)
    assert "A_MARK=kept" in environment


def test_a_process_that_may_not_know_its_memory_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Path("/proc/self/cmdline").read_bytes()
    read = Path.read_bytes
    hidden = b"1 (python) R" + b" 0" * 50
    monkeypatch.setattr(Path, "read_bytes", lambda path: hidden if path.name == "stat" else read(path))
    name = Path("/proc/self/comm").read_text().strip()
    try:
        name_process(FORK_SERVER)
        assert Path("/proc/self/comm").read_text().strip() == "perikope-fork"
        assert read(Path("/proc/self/cmdline")) == before
    finally:
        Path("/proc/self/comm").write_text(name)


def test_other_systems_keep_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    before = Path("/proc/self/comm").read_text()
    name_process(READER, 3)
    assert Path("/proc/self/comm").read_text() == before
