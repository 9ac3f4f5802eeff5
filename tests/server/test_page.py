"""How the server sends the files of the page."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import perikope
from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import UnreadableQuery
from perikope.page import page_files
from perikope.server.problems import PAGE_POLICY
from tests.server.support import LiveServer, ServerProcess, check_problem


def test_the_page_is_at_the_root_and_runs_nothing_inline(live: LiveServer) -> None:
    with live.client() as client:
        answer = client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == PAGE_POLICY
    assert "unsafe" not in PAGE_POLICY
    assert "<pk-app>" in answer.text


@pytest.mark.parametrize("path", sorted(page_files()))
def test_a_file_is_sent_compressed_and_only_if_it_is_new(live: LiveServer, path: str) -> None:
    file = page_files()[path]
    with live.client() as client:
        answer = client.get(path, headers={"accept-encoding": "gzip"})
        plain = client.get(path, headers={"accept-encoding": "identity"})
        again = client.get(path, headers={"if-none-match": answer.headers["etag"]})
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.content == plain.content == file.data == gzip.decompress(file.packed)
    assert "content-encoding" not in plain.headers
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/page/", "/page/types.d.ts", "/page/%2e%2e/page/app.js", "/page/nothing.js", "/page/%2e%2e/__init__.py"])
def test_no_other_file_is_sent(live: LiveServer, path: str) -> None:
    with live.client() as client:
        check_problem(client.get(path), 404)


def test_an_error_of_a_boolean_query_has_a_place(live: LiveServer) -> None:
    query = "magnetic AND (rotor OR"
    with live.client() as client:
        problem = client.get("/indexes/small/search", params={"query": query, "syntax": "boolean"})
        others = client.get("/indexes/small/search", params={"query": "rotor", "filter": "year>>2"})
    assert (problem.status_code, problem.json()["start"], problem.json()["end"]) == (400, len(query), len(query))
    check_problem(others, 400)
    with perikope.connect(live.url) as index, pytest.raises(UnreadableQuery) as caught:
        index.search(query, syntax="boolean")
    assert (caught.value.start, caught.value.end, str(caught.value)) == (len(query), len(query), problem.json()["detail"])


def test_the_file_of_a_passage_is_shown_only_if_the_operator_allows_it(live: LiveServer, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pump.txt").write_text("First.\n\nA pump.", "utf-8")
    build(str(tmp_path / "index"), [str(tmp_path / "docs")], BuildOptions())
    with live.client() as client:
        assert client.get("/indexes/small").json()["originals"] is False
        check_problem(client.get("/indexes/small/original", params={"passage": "pumps#@1"}), 404)
    with (
        ServerProcess(f"docs={tmp_path / 'index'}", "--originals", str(tmp_path / "docs"), "--workers", "1") as server,
        server.client() as client,
    ):
        assert client.get("/indexes/docs").json()["originals"] is True
        found = client.get("/indexes/docs/original", params={"passage": "pump.txt#@2"}).json()
        assert (found["file"], found["line"], found["text"]) == ("pump.txt", 3, "First.\n\nA pump.")
        (tmp_path / "docs" / "pump.txt").unlink()
        detail = check_problem(client.get("/indexes/docs/original", params={"passage": "pump.txt#@1"}), 404)
    assert str(tmp_path) not in detail
