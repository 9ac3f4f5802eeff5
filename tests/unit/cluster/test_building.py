"""Clusters in folders: built, divided from an index, changed, and continued after a stop."""

import json

import pytest

import perikope
from perikope.build.indexing import BuildOptions, build
from perikope.cluster import building
from perikope.cluster.building import append, build_cluster, cluster_from, compact, delete
from perikope.cluster.writer import ClusterWriter
from perikope.core.errors import InputError, UsageError
from perikope.index import manifest as manifests
from perikope.index.backup import make_backup
from perikope.index.check import check
from perikope.index.shards import folder_of, shard_of
from perikope.search.facade import Index
from tests.support.collections import plain_document

WORDS = ["rotor", "seal", "pump", "magnet", "shaft"]
QUERIES = ["rotor seal", "pump", "magnet of the shaft", "nothing"]


def lines(first, end, extra=""):
    made = []
    for i in range(first, end):
        passages = [f"{WORDS[i % 5]} {WORDS[(i + j) % 5]} {extra}".strip() for j in range(1 + i % 3)]
        made.append(json.dumps({"id": f"d{i}", "title": WORDS[i % 4], "passages": passages}))
    return "\n".join(made) + "\n"


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.jsonl").write_text(lines(10 * number, 10 * number + 10))
    return folder


def runs(folder):
    with Index.open(folder) as index:
        found = {query: [(hit.to_dict()) for hit in index.search(query, k=100)] for query in QUERIES}
        return found, sorted(document.id for document in index.documents()), index.passages


def test_a_cluster_of_files_answers_as_their_index(files, tmp_path):
    report = build_cluster(str(tmp_path / "cluster"), [str(files)], 3)
    build(str(tmp_path / "index"), [str(files)])
    assert (report.documents, report.shards, report.skipped) == (40, 3, [])
    assert runs(tmp_path / "cluster") == runs(tmp_path / "index")
    assert not (tmp_path / "cluster" / building.JOURNAL).exists()


def test_documents_are_in_the_shard_of_their_id_and_shards_are_indexes(files, tmp_path):
    build_cluster(str(tmp_path / "cluster"), [str(files)], 3)
    held = [{document.id for document in Index.open(tmp_path / "cluster" / folder_of(number)).documents()} for number in range(3)]
    assert held == [{f"d{i}" for i in range(40) if shard_of(f"d{i}", 3) == number} for number in range(3)]
    assert all(held)


def test_changes_of_a_cluster_are_those_of_an_index(files, tmp_path):
    more, changed = tmp_path / "more.jsonl", tmp_path / "changed.jsonl"
    more.write_text(lines(35, 50, "valve"))
    changed.write_text(lines(0, 5, "valve valve"))
    build_cluster(str(tmp_path / "cluster"), [str(files)], 4)
    build(str(tmp_path / "index"), [str(files)])
    for change_cluster, change_index in (
        (lambda c: append(c, [str(more)], BuildOptions(append=True)), lambda i: build(i, [str(more)], BuildOptions(append=True))),
        (lambda c: append(c, [str(changed)], BuildOptions(replace=True)), lambda i: build(i, [str(changed)], BuildOptions(replace=True))),
        (lambda c: delete(c, ["d1", "d7", "d44"]), lambda i: build(i, [], delete=["d1", "d7", "d44"])),
        (lambda c: compact(c), lambda i: Index.open(i).compact()),
    ):
        change_cluster(str(tmp_path / "cluster"))
        change_index(str(tmp_path / "index"))
        assert runs(tmp_path / "cluster") == runs(tmp_path / "index")
    generation = manifests.load(tmp_path / "cluster").generation
    compact(str(tmp_path / "cluster"))
    assert manifests.load(tmp_path / "cluster").generation == generation, "nothing changed, so nothing was published"


def test_duplicates_are_left_out_and_named(files, tmp_path):
    (files / "9.jsonl").write_text(lines(3, 6, "valve"))
    report = build_cluster(str(tmp_path / "cluster"), [str(files)], 2)
    assert sorted(duplicate.id for duplicate in report.duplicates) == ["d3", "d4", "d5"]
    build(str(tmp_path / "index"), [str(files)])
    assert runs(tmp_path / "cluster") == runs(tmp_path / "index")


def test_an_index_is_divided(tmp_path):
    index = Index.create(tmp_path / "index", stemmer="porter", language="fr")
    index.add([plain_document(f"d{i}", "Pumps", "A rotor.", f"The seal {WORDS[i % 5]}.") for i in range(20)])
    index.commit()
    index.delete(["d3"])
    index.commit()
    report = cluster_from(str(tmp_path / "index"), str(tmp_path / "cluster"), 3)
    assert report.documents == 19
    assert runs(tmp_path / "cluster") == runs(tmp_path / "index")
    assert Index.open(tmp_path / "cluster").settings == index.settings


class Stop(BaseException):
    """Stands for a kill."""


@pytest.mark.parametrize("stopped_at", range(1, 12))
def test_a_stopped_build_is_continued_and_builds_nothing_twice(files, tmp_path, monkeypatch, stopped_at):
    folder = tmp_path / "cluster"
    calls = {"made": 0, "documents": 0}

    def counting(original, kind):
        def call(*given, **named):
            calls["made"] += 1
            if calls["made"] == stopped_at:
                raise Stop(kind)
            return original(*given, **named)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(building._Progress, "save", counting(building._Progress.save, "journal"))
        patch.setattr("perikope.index.commit.IndexWriter.commit", counting(perikope.index.commit.IndexWriter.commit, "shard"))
        with pytest.raises(Stop):
            build_cluster(str(folder), [str(files)], 3, batch=200)
    assert not (folder / manifests.FILE).exists()
    with pytest.raises(perikope.PerikopeError, match="is not an index"):
        Index.open(folder)
    count = building._Progress.count
    monkeypatch.setattr(
        building._Progress, "count", lambda self, document: (calls.update(documents=calls["documents"] + 1), count(self, document))
    )
    report = build_cluster(str(folder), [str(files)], 3, batch=200)
    assert (report.documents, report.duplicates) == (40, [])
    assert calls["documents"] == 40, "documents that were committed are read to be compared, and the others are indexed"
    build(str(tmp_path / "index"), [str(files)])
    assert runs(folder) == runs(tmp_path / "index")


def test_a_stopped_build_is_not_continued_with_other_input(files, tmp_path, monkeypatch):
    folder = str(tmp_path / "cluster")
    commit = ClusterWriter.commit
    made = []

    def stop(self, *given):
        made.append(1)
        if len(made) == 3:
            raise Stop
        return commit(self, *given)

    monkeypatch.setattr(ClusterWriter, "commit", stop)
    with pytest.raises(Stop):
        build_cluster(folder, [str(files)], 3, batch=200)
    with pytest.raises(UsageError, match="unfinished build"):
        build_cluster(folder, [str(files)], 2, batch=200)
    first = files / "0.jsonl"
    text = first.read_text()
    first.write_text(text.replace("rotor", "valve"))
    with pytest.raises(UsageError, match="input has changed"):
        build_cluster(folder, [str(files)], 3, batch=200)
    first.write_text(text)
    assert build_cluster(folder, [str(files)], 3, batch=200).continued > 0


@pytest.mark.parametrize("change", ["append", "compact", "delete"])
@pytest.mark.parametrize("committed", [0, 1, 2])
def test_a_change_that_is_stopped_before_it_is_published_was_not_made(files, tmp_path, monkeypatch, change, committed):
    folder, index = tmp_path / "cluster", tmp_path / "index"
    build_cluster(str(folder), [str(files)], 3)
    append(str(folder), [str(files / "0.jsonl")], BuildOptions(replace=True))
    build(str(index), [str(files)])
    before = runs(folder)
    more = tmp_path / "more.jsonl"
    more.write_text(lines(40, 60))
    do = {
        "append": lambda: append(str(folder), [str(more)], BuildOptions(append=True)),
        "compact": lambda: compact(str(folder)),
        "delete": lambda: delete(str(folder), [f"d{i}" for i in range(20)]),
    }[change]
    method = "compact" if change == "compact" else "commit"
    original, made = getattr(perikope.index.commit.IndexWriter, method), []

    def stop(self):
        if len(made) == committed:
            raise Stop
        made.append(1)
        return original(self)

    with monkeypatch.context() as patch:
        patch.setattr(perikope.index.commit.IndexWriter, method, stop)
        with pytest.raises(Stop):
            do()
    assert runs(folder) == before == runs(index), "readers see the published state, whose files are all there"
    do()
    if change == "append":
        build(str(index), [str(more)], BuildOptions(append=True))
    if change == "delete":
        build(str(index), [], delete=[f"d{i}" for i in range(20)])
    assert runs(folder) == runs(index)
    named = {file.name for number in range(3) for file in (folder / folder_of(number)).glob("segment-*")}
    assert named == {entry["file"].partition("/")[2] for entry in manifests.load(folder).segments} | {
        entry["deleted"]["file"].partition("/")[2] for entry in manifests.load(folder).segments if "deleted" in entry
    }, "files that are not needed are removed"


def test_a_cluster_and_its_shards_are_changed_by_the_cluster_only(files, tmp_path):
    folder = tmp_path / "cluster"
    build_cluster(str(folder), [str(files)], 2)
    for place, reason in ((folder, "is a cluster of 2 shards"), (folder / folder_of(1), "is a shard of the cluster")):
        with pytest.raises(UsageError, match=reason):
            Index.open(place).add({"id": "new", "passages": ["A rotor."]})
    with pytest.raises(UsageError, match="already a cluster of 2 shards"):
        build_cluster(str(folder), [str(files)], 2)
    with pytest.raises(UsageError, match="there is no document 'd99'"):
        delete(str(folder), ["d1", "d99"])
    build(str(tmp_path / "index"), [str(files)])
    with pytest.raises(UsageError, match="is an index without shards"):
        append(str(tmp_path / "index"), [str(files)])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    with pytest.raises(UsageError, match="not empty"):
        build_cluster(str(tmp_path / "other"), [str(files)], 2)


def test_a_build_without_documents_leaves_nothing(tmp_path):
    (tmp_path / "files").mkdir()
    with pytest.raises(InputError, match="no file in this folder"):
        build_cluster(str(tmp_path / "cluster"), [str(tmp_path / "files")], 2)
    assert not (tmp_path / "cluster").exists()


def test_an_open_cluster_shows_a_later_commit_when_it_is_refreshed(files, tmp_path):
    folder = tmp_path / "cluster"
    build_cluster(str(folder), [str(files)], 2)
    index = Index.open(folder)
    assert not index.refresh()
    compact_before = len(index)
    delete(str(folder), ["d1"])
    assert len(index) == compact_before
    assert index.refresh()
    assert len(index) == compact_before - 1


def test_a_cluster_is_checked_and_backed_up_as_an_index(files, tmp_path):
    folder, copy = tmp_path / "cluster", tmp_path / "copy"
    build_cluster(str(folder), [str(files)], 2)
    report = check(folder)
    assert (report.problems, report.documents, report.unknown_files) == ((), 40, ())
    make_backup(folder, copy)
    assert runs(copy) == runs(folder)
    for place in (copy, folder):
        delete(str(place), ["d1", "d2"])
    assert runs(copy) == runs(folder)
