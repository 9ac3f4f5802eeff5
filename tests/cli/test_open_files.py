"""Commands work with few open files, or say in one line what they need."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perikope.search.facade import Index
from tests.support.collections import plain_document

resource = pytest.importorskip("resource", reason="there are no limits on open files")


def limited(most: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command that may have `most` files open."""
    program = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most}))\nfrom perikope.cli import main; main()"
    return subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    docs = folder / "docs"
    for number in range(80):
        (docs / f"{number}" / "sub").mkdir(parents=True)
        (docs / f"{number}" / "sub" / "a.md").write_text(f"The pump {number}.\n")
    deep = docs.joinpath(*["d"] * 100)
    deep.mkdir(parents=True)
    (deep / "a.md").write_text("The pump.\n")
    (docs / "all.jsonl").write_text("".join(json.dumps({"id": f"x{n}", "passages": ["The pump."]}) + "\n" for n in range(500)))
    return folder


@pytest.mark.parametrize("workers", [1, 8])
def test_a_build_with_few_open_files(folder: Path, workers: int) -> None:
    done = limited(64, "index", folder / "docs", "--to", folder / f"index-{workers}", "--workers", workers)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(Index.open(folder / f"index-{workers}")) == 581


def test_an_index_of_many_segments_with_few_open_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perikope.index.commit.MAX_SEGMENTS", 100)
    index = Index.create(folder / "many")
    for number in range(12):
        index.add(plain_document(f"d{number}", "", "The pump."))
        index.commit()
    assert len(index.snapshot.segments) == 12
    index.close()
    assert limited(64, "search", folder / "many", "pump").returncode == 0
    for command in ("check", "compact"):
        assert limited(64, command, folder / "many").returncode == 0, command


def test_too_many_processes_for_the_limit_are_one_line(folder: Path) -> None:
    done = limited(14, "index", folder / "docs", "--to", folder / "small", "--workers", 8)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Too many open files: raise the limit of this shell (ulimit -n 1024), or use fewer --workers" in done.stderr
    assert not (folder / "small").exists()
