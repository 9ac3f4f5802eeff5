"""An index that is damaged while it is served: readiness and numbers say so, until it is repaired or replaced."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from perikope import Index
from perikope.core.errors import IndexFormatError
from tests.server.support import LiveServer, check_problem, make_index, web


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_index(tmp_path / "index")


def _damage(folder: Path) -> dict[Path, bytes]:
    """Replace all files of segments by damaged ones, which can still be opened; returns the right contents."""
    right = {}
    for path in folder.glob("segment-*"):
        right[path] = path.read_bytes()
        other = path.with_name("other")
        half = len(right[path]) // 2
        other.write_bytes(right[path][:64] + bytes(half - 64) + right[path][half:])
        os.replace(other, path)
    return right


def _readable(server: LiveServer) -> dict[str, float]:
    lines = web.get(f"{server.url}/metrics").text.splitlines()
    found = (line.partition("perikope_index_readable{index=")[2] for line in lines)
    return {line.split('"')[1]: float(line.split()[1]) for line in found if line}


def _found_damaged(server: LiveServer, folder: Path) -> dict[Path, bytes]:
    """Damage the index, and let the server find it."""
    assert web.get(f"{server.url}/ready").status_code == 200
    right = _damage(folder)
    server.app.pool.handler._open.clear()  # type: ignore[attr-defined]  # what a process has read before stays right
    check_problem(web.get(f"{server.url}/indexes/small/search?query=rotor&k=7"), 500)
    return right


def test_readiness_and_numbers_name_a_damaged_index(folder: Path, index: Path) -> None:
    with LiveServer({"small": folder, "other": index}) as server:
        right = _found_damaged(server, folder)
        assert "small" in check_problem(web.get(f"{server.url}/ready"), 503)
        assert _readable(server) == {"small": 0.0, "other": 1.0}
        (event,) = [line for line in server.lines() if line["event"] == "index damaged"]
        assert event["index"] == "small"
        assert any(str(path) in line["message"] for path in right for line in server.lines() if line["event"] == "error")
        assert web.get(f"{server.url}/indexes/other/search?query=pump").status_code == 200
        check_problem(web.get(f"{server.url}/indexes/small/search?query=rotor&k=8"), 500)
        assert len([line for line in server.lines() if line["event"] == "index damaged"]) == 1, "it is reported once"


def test_a_repaired_index_is_ready_without_a_restart(folder: Path) -> None:
    with LiveServer({"small": folder}) as server:
        for path, content in _found_damaged(server, folder).items():
            other = path.with_name("other")
            other.write_bytes(content)
            os.replace(other, path)
        assert web.get(f"{server.url}/ready").status_code == 200
        assert web.get(f"{server.url}/indexes/small/search?query=rotor&k=7").status_code == 200
        assert _readable(server) == {"small": 1.0}


def test_a_replaced_index_is_ready_without_a_restart(folder: Path, tmp_path: Path) -> None:
    with LiveServer({"small": folder}) as server:
        _found_damaged(server, folder)
        shutil.rmtree(folder)
        check_problem(web.get(f"{server.url}/ready"), 503)
        with Index.create(folder) as new:
            new.add({"id": "d", "passages": ["a rotor"]})
        server.app.served.look()
        assert web.get(f"{server.url}/indexes/small/search?query=rotor&k=7").json()["hits"][0]["document"] == "d"
        assert web.get(f"{server.url}/ready").status_code == 200


class _Replaced:
    """An open index whose files were damaged, and have been replaced since."""

    def __getattr__(self, name: str) -> None:
        raise IndexFormatError("a file of the index is damaged")


def test_a_snapshot_from_before_a_repair_is_opened_anew(folder: Path) -> None:
    with LiveServer({"small": folder}) as server:
        generation = server.app.served.by_name["small"].generation
        server.app.pool.handler._open["small"] = generation, _Replaced()  # type: ignore[attr-defined]
        assert web.get(f"{server.url}/indexes/small/search?query=rotor").status_code == 200
        assert web.get(f"{server.url}/ready").status_code == 200
