"""Build an index from files, with one process or several, and update it."""

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import InputError, UsageError
from perikope.search.facade import Index
from tests.support.collections import plain_document

WORDS = ["pump", "rotor", "magnet", "seal", "shaft", "valve", "impeller", "housing"]


def write_jsonl(path, count, prefix="d"):
    with gzip.open(path, "wt") if path.suffix == ".gz" else open(path, "w") as file:
        for i in range(count):
            words = " ".join(WORDS[(i * 7 + j * j) % len(WORDS)] for j in range(40))
            file.write(json.dumps({"id": f"{prefix}{i}", "title": WORDS[i % 8], "passages": [words, words[:30]]}) + "\n")
    return str(path)


def names(folder, query="pump rotor"):
    return Index.open(folder).search(query, k=500).names()


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serial")
    source = write_jsonl(folder / "docs.jsonl.gz", 1500)
    build(str(folder / "index"), [source], BuildOptions(workers=1))
    return source, folder / "index"


@pytest.mark.parametrize(("workers", "memory"), [(2, 1 << 30), (3, 1), (1, 1)])
def test_any_number_of_processes_gives_the_same_answers(serial, tmp_path, monkeypatch, workers, memory):
    monkeypatch.setattr("perikope.build.workers.TASK_BYTES", 20_000)
    monkeypatch.setattr("perikope.build.indexing._WORKER", 0)
    source, folder = serial
    report = build(str(tmp_path / "index"), [source], BuildOptions(workers=workers, memory=memory))
    assert (report.documents, report.passages, report.added) == (1500, 3000, 1500)
    assert names(tmp_path / "index") == names(folder)


def test_an_error_in_a_worker_is_the_users_error_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("perikope.build.workers.TASK_BYTES", 2000)
    source = write_jsonl(tmp_path / "docs.jsonl", 200)
    with open(source, "a") as file:
        file.write('{"id": "d3", "passages": [}\n')
    with pytest.raises(InputError, match=r"docs\.jsonl:201: not valid JSON"):
        build(str(tmp_path / "index"), [source], BuildOptions(workers=2))
    assert not (tmp_path / "index").exists()


def test_an_id_in_two_segments_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("perikope.build.workers.TASK_BYTES", 2000)
    sources = [write_jsonl(tmp_path / "a.jsonl", 100), write_jsonl(tmp_path / "b.jsonl", 100, prefix="e")]
    with open(sources[1], "a") as file:
        file.write(json.dumps({"id": "d3", "passages": ["again"]}) + "\n")
    for workers in (1, 2):
        with pytest.raises(InputError, match=r"'d3' is given twice by a\.jsonl and b\.jsonl"):
            build(str(tmp_path / "index"), sources, BuildOptions(workers=workers, duplicates="error"))
    build(str(tmp_path / "index"), sources[:1])
    with pytest.raises(InputError, match="'d3' is already in the index"):
        build(str(tmp_path / "index"), sources[1:], BuildOptions(workers=2, append=True, duplicates="error"))
    report = build(str(tmp_path / "index"), sources[1:], BuildOptions(workers=2, replace=True))
    assert (report.documents, report.added, report.changed, report.removed) == (200, 100, 1, 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_sync_follows_a_folder(tmp_path, workers):
    folder, options = tmp_path / "docs", BuildOptions(sync=True, workers=workers)
    folder.mkdir()
    for name, text in {"a.md": "# A\n\npump", "b.md": "# B\n\nrotor", "c.txt": "seal"}.items():
        (folder / name).write_text(text)
    write_jsonl(folder / "d.jsonl", 3)
    index = str(tmp_path / "index")
    report = build(index, [str(folder)], options)
    assert (report.added, report.changed, report.removed, report.unchanged) == (6, 0, 0, 0)
    report = build(index, [str(folder)], options)
    assert (report.added, report.changed, report.removed, report.unchanged) == (0, 0, 0, 6)
    (folder / "a.md").write_text("# A\n\nimpeller")
    (folder / "b.md").unlink()
    (folder / "e.md").write_text("valve")
    write_jsonl(folder / "d.jsonl", 2)
    report = build(index, [str(folder)], options)
    # a.md and the two remaining documents of d.jsonl are read again; b.md and a document of d.jsonl are gone.
    assert (report.documents, report.added, report.changed, report.removed, report.unchanged) == (5, 1, 3, 2, 1)
    rebuilt = str(tmp_path / "rebuilt")
    build(rebuilt, [str(folder)])
    assert names(index, "impeller pump rotor valve seal") == names(rebuilt, "impeller pump rotor valve seal")


@pytest.mark.parametrize("workers", [1, 2])
def test_sync_keeps_what_cannot_be_read_just_now(tmp_path, workers):
    docs, options = tmp_path / "docs", BuildOptions(sync=True, workers=workers)
    docs.mkdir()
    (docs / "a.md").write_text("pump")
    (docs / "b.md").write_text("pump")
    build(str(tmp_path / "index"), [str(docs)], options)
    (docs / "a.md").write_bytes(b"half\0written")
    (docs / "b.md").unlink()
    report = build(str(tmp_path / "index"), [str(docs)], options)
    assert len(report.skipped) == 1
    assert [hit.document for hit in Index.open(tmp_path / "index").search("pump")] == ["a.md"]


def test_a_killed_build_leaves_no_worker_that_keeps_the_lock(tmp_path):
    source = write_jsonl(tmp_path / "docs.jsonl", 40_000)
    Index.create(tmp_path / "index")
    command = [sys.executable, "-m", "perikope", "index", source, "--to", str(tmp_path / "index"), "--append", "--workers", "3"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children: list[str] = []
    while len(children) < 2 and process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        time.sleep(0.01)
    process.kill()
    process.wait()
    index = Index.open(tmp_path / "index", wait=20)
    index.add(plain_document("after", "", "pump"))
    index.commit()
    assert [hit.document for hit in index.search("pump")] == ["after"]


def test_sync_leaves_what_came_from_no_file(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("pump")
    build(str(tmp_path / "index"), [str(tmp_path / "docs")], BuildOptions(sync=True))
    index = Index.open(tmp_path / "index")
    index.add(plain_document("by hand", "", "pump"))
    index.commit()
    build(str(tmp_path / "index"), [str(tmp_path / "docs")], BuildOptions(sync=True))
    assert {hit.document for hit in Index.open(tmp_path / "index").search("pump")} == {"a.txt", "by hand"}


def test_a_document_may_move_to_another_file(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.jsonl").write_text('{"id": "x", "passages": ["pump"]}\n{"id": "y", "passages": ["pump"]}\n')
    build(str(tmp_path / "index"), [str(docs)], BuildOptions(sync=True))
    (docs / "a.jsonl").write_text('{"id": "x", "passages": ["pump"]}\n')
    (docs / "b.jsonl").write_text('{"id": "y", "passages": ["rotor"]}\n')
    build(str(tmp_path / "index"), [str(docs)], BuildOptions(sync=True))
    assert {(hit.document, hit.text) for hit in Index.open(tmp_path / "index").search("pump rotor")} == {("x", "pump"), ("y", "rotor")}


def test_deleting_by_id(tmp_path):
    source = write_jsonl(tmp_path / "a.jsonl", 5)
    build(str(tmp_path / "index"), [source])
    report = build(str(tmp_path / "index"), [], delete=["d1", "d2"])
    assert (report.documents, report.removed, report.unchanged) == (3, 2, 3)
    with pytest.raises(UsageError, match="no document 'd1'"):
        build(str(tmp_path / "index"), [], delete=["d1"])


def test_adding_with_another_analysis_is_refused(tmp_path):
    build(str(tmp_path / "index"), [write_jsonl(tmp_path / "a.jsonl", 2)], BuildOptions(stemmer="porter"))
    more = write_jsonl(tmp_path / "b.jsonl", 2, prefix="e")
    with pytest.raises(UsageError, match="another setting"):
        build(str(tmp_path / "index"), [more], BuildOptions(append=True, stemmer="none"))
    build(str(tmp_path / "index"), [more], BuildOptions(append=True, stemmer="porter"))
    assert len(Index.open(tmp_path / "index")) == 4


def test_many_small_commits_are_merged(tmp_path):
    from perikope.index.commit import MAX_SEGMENTS

    index = Index.create(tmp_path / "index")
    for i in range(40):
        index.add(plain_document(f"d{i:02}", "", f"pump number{i}"))
        index.commit()
        assert len(index._snapshot.segments) <= MAX_SEGMENTS
    assert [hit.document for hit in index.search("pump", k=100)] == [f"d{i:02}" for i in range(40)]


def test_a_build_does_not_touch_what_another_is_building(tmp_path):
    from perikope.core.errors import IndexFormatError
    from perikope.index.commit import IndexWriter

    Index.create(tmp_path / "index")
    source = write_jsonl(tmp_path / "a.jsonl", 5)
    with IndexWriter(tmp_path / "index") as other:
        other.add([plain_document("theirs", "", "pump")])
        other._flush()
        with pytest.raises(IndexFormatError, match="has unfinished changes in this process"):
            build(str(tmp_path / "index"), [source])
        other.commit()
    assert [hit.document for hit in Index.open(tmp_path / "index").search("pump")] == ["theirs"]


def test_a_build_that_was_stopped_before_its_commit_can_be_started_again(tmp_path):
    Index.create(tmp_path / "index")
    (tmp_path / "index" / "segment-00000001-w0.columns").write_bytes(b"left behind")
    assert build(str(tmp_path / "index"), [write_jsonl(tmp_path / "a.jsonl", 5)]).documents == 5
    assert not (tmp_path / "index" / "segment-00000001-w0.columns").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_document_among_many_of_a_file_is_left_out_and_named(tmp_path: Path, workers: int) -> None:
    good = '<?xml version="1.0"?>\n<rfc number="{}"><middle><section title="Pumps"><t>A magnet.</t></section></middle></rfc>\n'
    broken = '<?xml version="1.0"?>\n<rfc><middle></rfc>\n'
    foreign = '<?xml version="1.0"?>\n<sequence><t>A magnet.</t></sequence>\n'
    (tmp_path / "bulk.xml").write_text(good.format(1) + broken + good.format(2) + foreign + good.format(3), "utf-8")
    report = build(str(tmp_path / "idx"), [str(tmp_path / "bulk.xml")], BuildOptions(workers=workers))
    assert report.documents == 3
    [problem] = map(str, report.skipped)
    assert f"{tmp_path}/bulk.xml:4: cannot be read as XML" in problem
    assert problem.endswith("(2 of the 5 documents in this file are left out)")
    (tmp_path / "bad.xml").write_text(broken, "utf-8")
    with pytest.raises(InputError, match="cannot be read as XML"):
        build(str(tmp_path / "other"), [str(tmp_path / "bad.xml")])
