"""The file of a Unix socket: who makes it, and who removes it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from perikope.core.errors import UsageError
from perikope.server.running import listening_socket
from perikope.server.settings import ServerSettings

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")


def _settings(path: Path) -> ServerSettings:
    return ServerSettings.of({"socket": str(path)})


def test_a_server_that_does_not_start_leaves_no_socket_behind(index: Path, tmp_path: Path) -> None:
    (tmp_path / "tokens.toml").write_text("broken [")
    command = [sys.executable, "-m", "perikope", "serve", str(index), "--socket", "k.sock", "--tokens", "tokens.toml"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "tokens.toml: is not TOML" in ended.stderr
    assert not (tmp_path / "k.sock").exists()


def test_a_server_that_ends_keeps_the_socket_of_the_next_one(tmp_path: Path) -> None:
    """A server that was told to end answers what it has, but no longer listens, so the next one may start."""
    path = tmp_path / "k.sock"
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(listening_socket(_settings(path))).close()
        listening = second.enter_context(listening_socket(_settings(path)))
        listening.listen()
        first.close()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(path))
    assert not path.exists()


def test_a_socket_in_use_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "k.sock"
    with listening_socket(_settings(path)) as listening:
        listening.listen()
        with pytest.raises(UsageError, match="in use by another server"), listening_socket(_settings(path)):
            pass
        assert path.exists()


def test_a_file_is_not_replaced_by_a_socket(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text("{}")
    with pytest.raises(UsageError, match="exists and is no socket"), listening_socket(_settings(path)):
        pass
    assert path.read_text() == "{}"
