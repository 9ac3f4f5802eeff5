"""A folder of documents that is served: a broken file does not keep the others from being updated."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from perikope import Index
from perikope.build import indexing
from perikope.server import folders
from perikope.server.folders import BrokenFiles, build_index, problems_of
from tests.server.support import PATIENCE, ServerProcess, wait_until


def _line(id: str, text: str) -> str:
    return json.dumps({"id": id, "passages": [text]}) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "manuals"
    folder.mkdir()
    (folder / "a.jsonl").write_text(_line("a1", "old pump") + _line("a2", "old rotor"))
    (folder / "b.md").write_text("# Brakes\n\nAn old brake.\n")
    return folder


def _texts(index: Path) -> dict[str, str]:
    with Index.open(index) as opened:
        return {document.id: " ".join(text.text for text in opened.view(document.id).texts) for document in opened.documents()}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_broken_file_keeps_its_old_content(folder: Path, tmp_path: Path, workers: int) -> None:
    """All of it: the lines before the broken one are not taken over either. Other files are updated and added."""
    index = tmp_path / "index"
    build_index(folder, index, workers)
    before = _texts(index)
    (folder / "a.jsonl").write_text(_line("a1", "new pump") + '{"id": "a2", "passages"\n' + _line("a3", "new"))
    (folder / "b.md").write_text("# Brakes\n\nA new brake.\n")
    (folder / "c.md").write_text("# Clutches\n\nA clutch.\n")
    report = build_index(folder, index, workers)
    ((path, reason),) = problems_of(report)
    assert path == str(folder / "a.jsonl")
    assert reason.startswith("line 2: ")
    after = _texts(index)
    assert {id: after.get(id) for id in ("a1", "a2", "a3")} == {"a1": before["a1"], "a2": before["a2"], "a3": None}
    assert "new brake" in after["b.md"]
    assert "c.md" in after
    (folder / "a.jsonl").write_text(_line("a1", "new pump"))
    assert not problems_of(build_index(folder, index, workers))
    assert {id: text for id, text in _texts(index).items() if id.startswith("a")} == {"a1": "new pump"}


def test_the_command_still_refuses_a_broken_file(folder: Path, tmp_path: Path) -> None:
    (folder / "a.jsonl").write_text('{"id": "a1", "passages": ["pump"]}\n{\n')
    with pytest.raises(indexing.InputError, match=r"a\.jsonl"):
        indexing.build(str(tmp_path / "index"), [str(folder)], indexing.BuildOptions())


def test_a_problem_is_new_until_it_was_reported(folder: Path) -> None:
    files, problem = BrokenFiles(), (str(folder / "a.jsonl"), "line 2: wrong")
    assert files.new([problem]) == [problem]
    assert files.new([problem]) == []
    (folder / "a.jsonl").write_text("another broken text")
    assert files.new([problem]) == [problem]
    assert files.new([]) == []
    assert files.new([problem]) == [problem]


def test_a_served_folder_with_a_broken_file(folder: Path, own_cache: Path) -> None:
    """Each state of the broken file is logged once, however often the folder is read."""

    def events(name: str) -> list[dict[str, Any]]:
        return [line for line in server.lines() if line["event"] == name]

    def found(word: str) -> set[str]:
        return {hit["document"] for hit in client.get("/indexes/manuals/search", params={"query": word}).json()["hits"]}

    with ServerProcess(str(folder), "--workers", "1") as server, server.client() as client:
        assert found("old") == {"a1", "a2", "b.md"}
        (folder / "a.jsonl").write_text(_line("a1", "new pump") + "{\n")
        wait_until(lambda: events("file not read"))
        for number in range(2):
            (folder / f"c{number}.md").write_text(f"# Clutch\n\nClutch number{number}.\n")
            wait_until(lambda number=number: found(f"number{number}") == {f"c{number}.md"})
        assert found("old") == {"a1", "a2", "b.md"}
        (event,) = events("file not read")
        assert event["file"] == str(folder / "a.jsonl")
        assert "line 2" in event["error"]
        assert not events("folder not read")
        (folder / "a.jsonl").write_text(_line("a1", "new pump"))
        wait_until(lambda: found("pump new") == {"a1"} and found("rotor") == set())
        assert len(events("file not read")) == 1


def test_a_change_while_watching_begins_is_not_missed(tmp_path: Path) -> None:
    """The first reading of the folder comes when it is watched: a file that comes right after it is read too."""
    seen: list[set[str]] = []

    async def watch_for_two() -> None:
        stop = asyncio.Event()

        async def on_change() -> None:
            seen.append({path.name for path in tmp_path.iterdir()})
            if len(seen) == 1:
                (tmp_path / "late.md").write_text("x")
            else:
                stop.set()

        await asyncio.wait_for(folders.watch(tmp_path, on_change, stop), PATIENCE)

    asyncio.run(watch_for_two())
    assert seen[0] == set()
    assert seen[-1] == {"late.md"}
