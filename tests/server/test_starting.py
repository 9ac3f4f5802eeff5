"""A server that starts: it answers at once, and says when it can search."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.server.support import ServerProcess, check_problem, is_alive, wait_until


@pytest.fixture
def held(tmp_path: Path) -> Path:
    """A file that holds processes at their start."""
    path = tmp_path / "held"
    path.touch()
    return path


@pytest.mark.parametrize("kind", ["index", "folder"])
def test_requests_are_answered_while_the_server_starts(kind: str, index: Path, held: Path, tmp_path: Path, own_cache: Path) -> None:
    """Kernels are compiled, or a folder is read for the first time."""
    manuals = tmp_path / "manuals"
    manuals.mkdir()
    (manuals / "pump.md").write_text("# Pumps\n\nA magnetic pump.\n")
    with ServerProcess(f"small={index if kind == 'index' else manuals}", "--workers", "1", held=held) as server, server.client() as client:
        assert client.get("/health").json() == {"status": "ok"}
        for path in ("/ready", "/indexes", "/indexes/small", "/indexes/small/search?query=pump", "/metrics", "/openapi.json"):
            answer = client.get(path)
            assert "starting" in check_problem(answer, 503)
            assert int(answer.headers["retry-after"]) >= 1
        held.unlink()
        assert "serving small" in server.wait_ready()
        assert client.get("/ready").json() == {"status": "ready"}
        assert client.get("/indexes/small/search?query=pump").json()["hits"]
        events = [line["event"] for line in server.lines()]
        assert events.index("starting") < events.index("request") < events.index("ready")
        assert ("folder read" in events[: events.index("ready")]) == (kind == "folder")


@pytest.mark.parametrize("kind", ["index", "folder"])
def test_a_server_that_starts_can_be_ended(kind: str, index: Path, held: Path, tmp_path: Path, own_cache: Path) -> None:
    """While it compiles kernels, or reads a folder. No process stays behind."""
    (tmp_path / "manuals").mkdir()
    with ServerProcess(str(index if kind == "index" else tmp_path / "manuals"), "--workers", "1", held=held) as server:
        with server.client() as client:
            assert client.get("/health").status_code == 200
        server.processes()
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        wait_until(lambda: not any(map(is_alive, server.known)))


def test_a_folder_without_documents_is_reported(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "manuals").mkdir()
    with pytest.raises(AssertionError, match="no file in this folder is of a known format"):
        ServerProcess(str(tmp_path / "manuals"), "--workers", "1")
