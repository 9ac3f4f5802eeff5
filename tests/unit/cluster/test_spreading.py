"""Clusters that tasks build and change: as on one machine, whichever task, process or attempt is lost."""

import json
import os
import pickle
import random
import shutil
from dataclasses import replace

import pytest

from perikope.build.indexing import BuildOptions, build
from perikope.cluster import batches, building
from perikope.cluster.spreading import SpreadBuilding
from perikope.cluster.writer import JOURNAL, RECORDS, discard_unfinished
from perikope.core.errors import InputError, UsageError
from perikope.index import manifest as manifests
from perikope.index.check import check
from perikope.index.commit import IndexWriter
from perikope.index.shards import files_of
from perikope.index.writer import SegmentBuilder
from perikope.search.facade import Index
from tests.unit.cluster.test_building import files, lines, runs

__all__ = ["files"]
SHARDS, BATCH, LEAST_BATCH = 3, 300, 1
"""With the smaller size of a batch, each of the 40 documents is a batch, so that segments are merged."""


@pytest.fixture(autouse=True)
def no_wait_for_the_disk(monkeypatch):
    """Processes are lost here, and not power, so nothing depends on when the disk has the data."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class Killed(BaseException):
    """Stands for the end of a process."""


class Workers:
    """Run tasks in this process, some at a time and in any order; those that are killed are repeated."""

    def __init__(self, seed=0, window=5, again=()):
        self._random, self._window, self._again = random.Random(seed), window, again
        self.done, self.repeated = [], 0

    def run(self, function, calls, memory):
        assert memory > 0
        waiting = []
        for call in calls:
            waiting.append(call)
            if len(waiting) >= self._window:
                yield self._one(function, waiting)
        while waiting:
            yield self._one(function, waiting)

    def _one(self, function, waiting):
        number, about, given = waiting.pop(self._random.randrange(len(waiting)))
        assert about
        if (function.__name__, number) in self._again:
            function(*pickle.loads(pickle.dumps(given)))  # an attempt whose answer is lost
        while True:
            try:
                result = pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(given)))))
                break
            except Killed:
                self.repeated += 1
        self.done.append((function.__name__, number))
        return number, result


def spread(**given):
    return SpreadBuilding(Workers(**given))


def assert_only_named_files(folder):
    named = files_of(manifests.load(folder))
    assert {f"{path.parent.name}/{path.name}" for path in folder.glob("shard-*/*") if path.name.startswith((".", "segment"))} == named
    assert not (folder / JOURNAL).exists()
    assert not (folder / RECORDS).exists()
    assert check(folder).problems == ()


@pytest.mark.parametrize("shards", [1, 4])
def test_a_cluster_that_tasks_build_answers_as_an_index(files, tmp_path, shards):
    (files / "9.jsonl").write_text(lines(3, 6, "valve") + lines(60, 62) + lines(60, 61, "valve"))
    (files / "broken.html").write_text("")
    folder = tmp_path / "cluster"
    report = spread(seed=shards).build_cluster(str(folder), [str(files)], shards, batch=BATCH)
    expected = building.build_cluster(str(tmp_path / "other"), [str(files)], shards)
    assert (report.documents, report.passages, report.shards) == (42, expected.passages, shards)
    assert sorted(map(str, report.duplicates)) == sorted(map(str, expected.duplicates))
    assert len(report.duplicates) == 4
    assert [str(one) for one in report.skipped] == [str(one) for one in expected.skipped] != []
    build(str(tmp_path / "index"), [str(files)])
    assert runs(folder) == runs(tmp_path / "other") == runs(tmp_path / "index")
    assert_only_named_files(folder)


def test_archives_and_single_files_are_divided_too(tmp_path, files):
    shutil.make_archive(str(tmp_path / "all"), "zip", files)
    spread().build_cluster(str(tmp_path / "cluster"), [str(tmp_path / "all.zip")], SHARDS, batch=BATCH)
    build(str(tmp_path / "index"), [str(tmp_path / "all.zip")])
    assert runs(tmp_path / "cluster") == runs(tmp_path / "index")


def test_a_task_with_little_memory_writes_more_segments(files, tmp_path, monkeypatch):
    written = []
    write = SegmentBuilder.write
    monkeypatch.setattr(SegmentBuilder, "write", lambda self, path: (written.append(path), write(self, path))[1])
    counts = []
    for memory in (1 << 30, 1):
        written.clear()
        place = tmp_path / f"cluster {memory}"
        spread().build_cluster(str(place), [str(files)], SHARDS, BuildOptions(memory=memory))
        counts.append(len(written))
    assert counts == [SHARDS, 40]
    build(str(tmp_path / "index"), [str(files)])
    assert runs(place) == runs(tmp_path / "index")


STEPS = {
    "segment": (SegmentBuilder, "write"), "record": (batches.TaskRecord, "save"), "commit": (IndexWriter, "commit"),
    "published shard": (manifests, "replace"), "merge": (IndexWriter, "_merge"),
}  # fmt: skip


def killing(monkeypatch, step, at, after, all_later=False):
    """Let a step fail when it is done for the n-th time, before or after its work; -1 is the record of a shard."""
    owner, name = STEPS.get(step, (step, "save"))
    if at < 0:
        owner, at = batches.ShardRecord, 1
    original, made = getattr(owner, name), [0]

    def call(*given, **named):
        made[0] += 1
        is_hit = made[0] >= at if all_later else made[0] == at
        if is_hit and not after:
            raise Killed
        result = original(*given, **named)
        if is_hit:
            raise Killed
        return result

    monkeypatch.setattr(owner, name, call)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    place = tmp_path_factory.mktemp("expected")
    for number in range(4):
        (place / f"{number}.jsonl").write_text(lines(10 * number, 10 * number + 10))
    build(str(place / "index"), [str(place / f"{number}.jsonl") for number in range(4)])
    return runs(place / "index")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("step", "at"), [("segment", 5), ("record", 3), ("record", -1), ("commit", 2), ("published shard", 5), ("merge", 1)]
)
def test_a_task_whose_process_dies_is_repeated(files, tmp_path, monkeypatch, expected, step, at, after):
    folder = tmp_path / "cluster"
    made = spread()
    with monkeypatch.context() as patch:
        killing(patch, step, at, after)
        report = made.build_cluster(str(folder), [str(files)], SHARDS, batch=LEAST_BATCH if step == "merge" else BATCH)
    assert made._workers.repeated == 1
    assert (report.documents, report.duplicates) == (40, [])
    assert runs(folder) == expected
    assert_only_named_files(folder)


def test_a_task_that_runs_twice_counts_once(files, tmp_path, expected):
    again = {("index_batch", 0), ("index_batch", 5), ("finish_shard", 1)}
    spread(again=again).build_cluster(str(tmp_path / "cluster"), [str(files)], SHARDS, batch=BATCH)
    assert runs(tmp_path / "cluster") == expected
    assert_only_named_files(tmp_path / "cluster")


class DyingWorkers(Workers):
    """Workers that die with their driver."""

    def _one(self, function, waiting):
        number, _, given = waiting.pop()
        result = function(*given)
        self.done.append((function.__name__, number))
        return number, result


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("step", "at"),
    [("segment", 1), ("segment", 15), ("record", 1), ("record", 5), ("record", -1), ("commit", 3), ("merge", 1)],
)
def test_a_stopped_build_is_continued_and_indexes_nothing_twice(files, tmp_path, monkeypatch, expected, step, at, after):
    folder = tmp_path / "cluster"
    size = LEAST_BATCH if step == "merge" else BATCH
    first, second = DyingWorkers(), Workers()
    with monkeypatch.context() as patch:
        killing(patch, step, at, after, all_later=True)
        with pytest.raises(Killed):
            SpreadBuilding(first).build_cluster(str(folder), [str(files)], SHARDS, batch=size)
    assert not (folder / manifests.FILE).exists()
    kept = {path.name: path.stat().st_ino for path in folder.glob(f"{RECORDS}/*/*.json")}
    report = SpreadBuilding(second).build_cluster(str(folder), [str(files)], SHARDS, batch=size)
    indexed = {number for function, number in second.done if function == "index_batch"}
    assert {f"batch-{number:08d}.json" for number in indexed}.isdisjoint(kept)
    assert (report.continued > 0) == any(name.startswith("batch") for name in kept)
    assert (report.documents, report.duplicates) == (40, [])
    assert runs(folder) == expected
    assert_only_named_files(folder)


def stopped(folder, files, monkeypatch, step="record", at=6):
    with monkeypatch.context() as patch:
        killing(patch, step, at, after=True, all_later=True)
        with pytest.raises(Killed):
            SpreadBuilding(DyingWorkers()).build_cluster(str(folder), [str(files)], SHARDS, batch=BATCH)


def test_a_stopped_build_is_not_continued_with_other_input(files, tmp_path, monkeypatch, expected):
    folder = tmp_path / "cluster"
    stopped(folder, files, monkeypatch)
    for other in (
        lambda: spread().build_cluster(str(folder), [str(files)], 2, batch=BATCH),
        lambda: spread().build_cluster(str(folder), [str(files)], SHARDS, batch=BATCH + 1),
        lambda: building.build_cluster(str(folder), [str(files)], SHARDS),
    ):
        with pytest.raises(UsageError, match="unfinished build of other input or options"):
            other()
    assert spread().build_cluster(str(folder), [str(files)], SHARDS, batch=BATCH).continued > 0
    assert runs(folder) == expected
    with pytest.raises(UsageError, match="already a cluster of 3 shards"):
        spread().build_cluster(str(folder), [str(files)], SHARDS, batch=BATCH)


def test_batches_of_changed_files_are_indexed_again(files, tmp_path, monkeypatch):
    folder = tmp_path / "cluster"
    stopped(folder, files, monkeypatch, "record", 8)
    (files / "1.jsonl").write_text(lines(10, 15, "valve"))
    (files / "3.jsonl").unlink()
    report = spread().build_cluster(str(folder), [str(files)], SHARDS, batch=BATCH)
    assert 0 < report.continued <= 10
    build(str(tmp_path / "index"), [str(files)])
    assert runs(folder) == runs(tmp_path / "index")
    assert_only_named_files(folder)


@pytest.mark.parametrize("change", ["changed", "longer", "shorter"])
def test_files_must_not_change_when_shards_have_them(files, tmp_path, monkeypatch, expected, change):
    folder = tmp_path / "cluster"
    stopped(folder, files, monkeypatch, "commit", 2)
    last = files / "3.jsonl"
    text = last.read_text()
    if change == "changed":
        last.write_text(text.replace("d35", "d99"))
    elif change == "longer":
        (files / "4.jsonl").write_text(lines(80, 81))
    else:
        last.unlink()
    with pytest.raises(UsageError, match="the input has changed since"):
        spread().build_cluster(str(folder), [str(files)], SHARDS, batch=BATCH)
    last.write_text(text)
    (files / "4.jsonl").unlink(missing_ok=True)
    assert spread().build_cluster(str(folder), [str(files)], SHARDS, batch=BATCH).continued == 40
    assert runs(folder) == expected


def test_changes_by_tasks_are_those_of_an_index(files, tmp_path):
    more, changed = tmp_path / "more.jsonl", tmp_path / "changed.jsonl"
    more.write_text(lines(35, 50, "valve"))
    changed.write_text(lines(0, 5, "valve valve") + lines(50, 60))
    folder, index = str(tmp_path / "cluster"), str(tmp_path / "index")
    spread().build_cluster(folder, [str(files)], SHARDS, batch=BATCH)
    build(index, [str(files)])
    for change_cluster, change_index in (
        (lambda c: c.append(folder, [str(more)], batch=BATCH), lambda: build(index, [str(more)], BuildOptions(append=True))),
        (
            lambda c: c.append(folder, [str(changed)], BuildOptions(replace=True), batch=BATCH),
            lambda: build(index, [str(changed)], BuildOptions(replace=True)),
        ),
        (lambda c: building.delete(folder, ["d1", "d7", "d44"]), lambda: build(index, [], delete=["d1", "d7", "d44"])),
        (lambda c: c.compact(folder), lambda: Index.open(index).compact()),
    ):
        change_cluster(spread())
        change_index()
        assert runs(folder) == runs(index)
        assert_only_named_files(tmp_path / "cluster")
    generation = manifests.load(tmp_path / "cluster").generation
    spread().compact(folder)
    assert manifests.load(tmp_path / "cluster").generation == generation, "nothing changed, so nothing was published"


@pytest.mark.parametrize(("step", "at"), [("segment", 4), ("record", 3), ("commit", 2)])
@pytest.mark.parametrize("then", ["the same", "another", "delete"])
def test_a_stopped_append_has_changed_nothing_and_is_continued_or_discarded(files, tmp_path, monkeypatch, step, at, then):
    folder, index, more = tmp_path / "cluster", str(tmp_path / "index"), tmp_path / "more.jsonl"
    more.write_text(lines(35, 60, "valve"))
    spread().build_cluster(str(folder), [str(files)], SHARDS)
    build(index, [str(files)])
    before = runs(folder)

    def append(made, path=more):
        return made.append(str(folder), [str(path)], BuildOptions(replace=True), batch=BATCH)

    with monkeypatch.context() as patch:
        killing(patch, step, at, after=True, all_later=True)
        with pytest.raises(Killed):
            append(SpreadBuilding(DyingWorkers()))
    assert runs(folder) == before
    if then == "the same":
        append(spread())
        build(index, [str(more)], BuildOptions(replace=True))
    elif then == "another":
        append(spread(), files / "1.jsonl")
        build(index, [str(files / "1.jsonl")], BuildOptions(replace=True))
    else:
        building.delete(str(folder), ["d3"])
        build(index, [], delete=["d3"])
    assert runs(folder) == runs(index)
    assert_only_named_files(folder)


def test_a_node_that_does_not_see_the_files_is_an_error_and_leaves_nothing(files, tmp_path, monkeypatch):
    folder = tmp_path / "cluster"
    index_batch = batches.index_batch

    def blind(job, number, digest, batch):
        for source in batch:
            object.__setattr__(source, "path", source.path + ".elsewhere")
            object.__setattr__(source, "content", None)
        return index_batch(job, number, digest, batch)

    monkeypatch.setattr("perikope.cluster.spreading.index_batch", blind)
    with pytest.raises(UsageError, match="all nodes must see the files under the same path"):
        spread().build_cluster(str(folder), [str(files)], SHARDS)
    assert not folder.exists()
    monkeypatch.setattr(
        "perikope.cluster.spreading.index_batch", lambda job, *given: (discard_unfinished(folder), index_batch(job, *given))
    )
    with pytest.raises(UsageError, match="all nodes must see it under the same path"):
        spread().build_cluster(str(folder), [str(files)], SHARDS)


def test_duplicates_are_an_error_if_they_are_asked_to_be(files, tmp_path):
    (files / "9.jsonl").write_text(lines(3, 4, "valve"))
    with pytest.raises(InputError, match=r"document 'd3' is given twice by 0.jsonl and 9.jsonl"):
        spread().build_cluster(str(tmp_path / "cluster"), [str(files)], SHARDS, BuildOptions(duplicates="error"))


def test_a_build_without_documents_leaves_nothing(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    with pytest.raises(InputError, match="no file in this folder"):
        spread().build_cluster(str(tmp_path / "cluster"), [str(folder)], 2)
    assert not (tmp_path / "cluster").exists()


def test_a_machine_that_sees_an_old_manifest_removes_nothing(files, tmp_path, monkeypatch, expected):
    folder = tmp_path / "cluster"
    stopped(folder, files, monkeypatch, batches.ShardRecord, 3)
    before = {path: path.stat().st_size for path in folder.glob("shard-*/segment*")}
    with monkeypatch.context() as patch:
        patch.setattr(batches, "_WAIT", 0.0)
        patch.setattr(manifests, "load", lambda folder, original=manifests.load: replace(original(folder), generation=0))
        with pytest.raises(UsageError, match="sees an old state of"):
            spread().build_cluster(str(folder), [str(files)], SHARDS, batch=BATCH)
    assert {path: path.stat().st_size for path in folder.glob("shard-*/segment*")} == before
    spread().build_cluster(str(folder), [str(files)], SHARDS, batch=BATCH)
    assert runs(folder) == expected
    assert_only_named_files(folder)


@pytest.mark.parametrize("damage", ["{", "{}", json.dumps({"asked": {}, "checksum": 1})])
def test_a_damaged_journal_or_record_is_not_believed(files, tmp_path, monkeypatch, expected, damage):
    folder = tmp_path / "cluster"
    stopped(folder, files, monkeypatch)
    record = sorted(folder.glob(f"{RECORDS}/*/batch-*.json"))[1]
    record.write_text(damage)
    workers = Workers()
    journal = (folder / JOURNAL).read_bytes()
    (folder / JOURNAL).write_text(damage)
    with pytest.raises(UsageError, match="is damaged"):
        SpreadBuilding(workers).build_cluster(str(folder), [str(files)], SHARDS, batch=BATCH)
    (folder / JOURNAL).write_bytes(journal)
    SpreadBuilding(workers).build_cluster(str(folder), [str(files)], SHARDS, batch=BATCH)
    assert int(record.stem.removeprefix("batch-")) in {number for function, number in workers.done if function == "index_batch"}
    assert runs(folder) == expected
