"""SIGHUP: the file of tokens is read again, and the server goes on."""

from __future__ import annotations

import hashlib
import signal
from pathlib import Path

from tests.server.support import ServerProcess, check_problem, wait_until


def _lines(*names: str) -> str:
    """The lines of a file of tokens, whose secrets are their names."""
    tables = [f'[tokens.{name}]\nsha256 = "{hashlib.sha256(name.encode()).hexdigest()}"\nread = ["*"]\n' for name in names]
    return "\n".join(['read = "token"', *tables])


def _reload(server: ServerProcess, event: str) -> dict[str, object]:
    """Send the signal; the new line of the log."""
    before = len([line for line in server.lines() if line["event"].startswith("tokens")])
    server.signal(signal.SIGHUP)
    wait_until(lambda: len([line for line in server.lines() if line["event"].startswith("tokens")]) > before)
    (line,) = [line for line in server.lines() if line["event"].startswith("tokens")][before:]
    assert line["event"] == event
    return line


def test_tokens_are_read_again(index: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(_lines("first", "second"))

    def status(name: str) -> int:
        return client.get("/indexes/small/search?query=pump", headers={"Authorization": f"Bearer {name}"}).status_code

    with ServerProcess(f"small={index}", "--workers", "1", "--tokens", str(tokens)) as server, server.client() as client:
        assert [status(name) for name in ("first", "second", "third")] == [200, 200, 401]
        tokens.write_text(_lines("second", "third"))
        assert _reload(server, "tokens read")["tokens"] == 2
        # An answer that was kept for a removed token is not given to it.
        assert [status(name) for name in ("first", "second", "third")] == [401, 200, 200]
        for broken in ("tokens", "", _lines("fourth").replace("sha256", "sha"), None):
            tokens.unlink() if broken is None else tokens.write_text(broken)
            assert str(tokens) in str(_reload(server, "tokens not read")["error"])
            assert [status(name) for name in ("first", "second", "third", "fourth")] == [401, 200, 200, 401]


def test_a_server_without_tokens_goes_on(index: Path) -> None:
    with ServerProcess(f"small={index}", "--workers", "1") as server, server.client() as client:
        assert "--tokens" in str(_reload(server, "tokens not read")["error"])
        assert client.get("/indexes/small/search?query=pump").status_code == 200
        check_problem(client.post("/indexes/small/documents", json={"documents": []}), 403)
