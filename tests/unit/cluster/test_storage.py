"""Clusters in an object store, which is moto's server on loopback: built, changed, read, and changed by two at once."""

import os
import shutil
import threading
import time
import urllib.request
from datetime import timedelta

import pytest
from click.testing import CliRunner

from perikope.cli.cluster_command import command
from perikope.cli.opening import open_index
from perikope.cluster import storage
from perikope.cluster.building import append, build_cluster, compact, delete
from perikope.cluster.storage import StoredCluster
from perikope.core.errors import IndexFormatError, LockedError, UsageError
from perikope.index import manifest as manifests
from perikope.index.shards import files_of
from perikope.search.facade import Index
from perikope.server.served import PreparedIndex
from tests.unit.cluster.test_building import lines, runs
from tests.unit.cluster.test_spreading import spread

pytest.importorskip("obstore", reason="object storage is not tested: obstore is not installed")
moto = pytest.importorskip("moto.server", reason="object storage is not tested: moto is not installed (pip install 'moto[s3,server]')")

SHARDS = 3


@pytest.fixture(scope="module")
def service():
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def url(service, monkeypatch, tmp_path):
    for name, value in {
        "ENDPOINT_URL": service, "ENDPOINT": service, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1",
        "ALLOW_HTTP": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("PERIKOPE_CACHE", str(tmp_path / "cache"))
    bucket = tmp_path.name.replace("_", "-").lower()[-60:].strip("-")
    with urllib.request.urlopen(urllib.request.Request(f"{service}/{bucket}", method="PUT")):
        pass
    return f"s3://{bucket}/clusters/one"


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "documents.jsonl"
    path.write_text(lines(0, 30))
    return str(path)


def elsewhere(url, tmp_path, name="elsewhere"):
    """The cluster as another machine sees it, which has no copies."""
    return StoredCluster(url, tmp_path / name)


def built(url, documents):
    return StoredCluster(url).build(lambda folder: build_cluster(folder, [documents], SHARDS), {"documents": documents})


def stored(url):
    return {item["path"]: item["size"] for page in StoredCluster(url)._store.list() for item in page}


def test_a_cluster_in_an_object_store_answers_as_one_in_a_folder(url, documents, tmp_path):
    folder, more = str(tmp_path / "folder"), tmp_path / "more.jsonl"
    more.write_text(lines(30, 45))
    build_cluster(folder, [documents], SHARDS)
    report = built(url, documents)
    assert (report.documents, report.shards) == (30, SHARDS)
    assert runs(elsewhere(url, tmp_path).copied()) == runs(folder)
    for number, change in enumerate((
        lambda place: append(place, [str(more)]),
        lambda place: delete(place, ["d1", "d40"]),
        compact,
    )):  # fmt: skip
        change(folder)
        # The writer is another machine each time.
        elsewhere(url, tmp_path, f"writer {number}").change(change)
        assert runs(elsewhere(url, tmp_path, f"reader {number}").copied()) == runs(folder)
        assert runs(elsewhere(url, tmp_path).copied()) == runs(folder)


def test_tasks_build_and_change_a_cluster_in_an_object_store(url, documents, tmp_path):
    more, folder = tmp_path / "more.jsonl", str(tmp_path / "folder")
    more.write_text(lines(25, 45, "valve"))
    StoredCluster(url).build(lambda place: spread().build_cluster(place, [documents], SHARDS, batch=300), {"documents": documents})
    build_cluster(folder, [documents], SHARDS)
    assert runs(elsewhere(url, tmp_path).copied()) == runs(folder)
    before = files_of(StoredCluster(url).known().manifest)
    assert {name for name in stored(url) if name.startswith("shard-")} == before
    StoredCluster(url).change(lambda place: spread().append(place, [str(more)], batch=300))
    append(folder, [str(more)])
    assert runs(elsewhere(url, tmp_path, "later").copied()) == runs(folder)
    named = files_of(StoredCluster(url).known().manifest)
    assert named <= {name for name in stored(url) if name.startswith("shard-")} <= named | before


def test_only_what_is_missing_is_copied(url, documents, tmp_path):
    built(url, documents)
    other = elsewhere(url, tmp_path)
    manifest = other.known().manifest
    assert other.fetch(manifest, other.read_copy, [1]) == sum(
        entry["size"] for entry in manifest.segments if entry["file"].startswith("shard-001/")
    )
    assert other.fetch(manifest, other.read_copy, [1]) == 0
    assert sorted(path.name for path in other.read_copy.iterdir()) == ["shard-001"]
    other.copied()
    assert other.fetch(manifest, other.read_copy) == 0


def test_the_faster_of_two_writers_wins_and_the_other_has_changed_nothing(url, documents, tmp_path):
    built(url, documents)
    slow, fast = elsewhere(url, tmp_path, "slow"), elsewhere(url, tmp_path, "fast")

    def overtaken(place):
        report = delete(place, ["d1"])
        fast.change(lambda place: delete(place, ["d2"]))
        return report

    with pytest.raises(LockedError, match="another program has changed"):
        slow.change(overtaken)
    index = Index.open(elsewhere(url, tmp_path).copied())
    assert ("d1" in index, "d2" in index) == (True, False)
    slow.change(lambda place: delete(place, ["d1"]))
    index = Index.open(elsewhere(url, tmp_path).copied())
    assert ("d1" in index, "d2" in index) == (False, False)


def test_many_writers_at_once_lose_no_change(url, documents, tmp_path):
    built(url, documents)
    lost = []

    def run(number):
        writer = elsewhere(url, tmp_path, f"writer {number}")
        for _ in range(40):
            try:
                return writer.change(lambda place: delete(place, [f"d{number}"]))
            except LockedError:
                lost.append(number)
        raise AssertionError("another writer was always faster")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index = Index.open(elsewhere(url, tmp_path).copied())
    assert [f"d{number}" in index for number in range(5)] == [False] * 4 + [True]


class Lost(Exception):
    """Stands for a connection that breaks, or a program that is killed."""


@pytest.mark.parametrize("stopped_at", range(8))
def test_a_stopped_build_or_change_is_not_seen_and_can_be_repeated(url, documents, tmp_path, monkeypatch, stopped_at):
    more = tmp_path / "more.jsonl"
    more.write_text(lines(30, 45))
    folder = str(tmp_path / "folder")
    build_cluster(folder, [documents], SHARDS)

    def stopping(cluster):
        put, made = cluster._store.put, []

        class Store:
            def __getattr__(self, name):
                return getattr(cluster_store, name)

            def put(self, *given, **named):
                made.append(given[0])
                if len(made) > stopped_at:
                    raise Lost(given[0])
                return put(*given, **named)

        cluster_store = cluster._store
        cluster._store = Store()
        return cluster

    def attempt(change, expected):
        try:
            change(stopping(StoredCluster(url)))
        except Lost:
            assert expected() is None or runs(elsewhere(url, tmp_path).copied()) == expected()
            change(StoredCluster(url))

    attempt(lambda cluster: cluster.build(lambda place: build_cluster(place, [documents], SHARDS), {}), lambda: None)
    before = runs(folder)
    assert runs(elsewhere(url, tmp_path).copied()) == before
    attempt(lambda cluster: cluster.change(lambda place: append(place, [str(more)])), lambda: before)
    append(folder, [str(more)])
    assert runs(elsewhere(url, tmp_path).copied()) == runs(folder)


def test_a_finished_build_is_stored_without_building_again(url, documents, monkeypatch):
    cluster = StoredCluster(url)
    monkeypatch.setattr(cluster, "_publish", lambda before: (_ for _ in ()).throw(Lost))
    with pytest.raises(Lost):
        cluster.build(lambda place: build_cluster(place, [documents], SHARDS), {"of": documents})
    assert cluster.load() is None

    def never(place):
        raise AssertionError("it was built twice")

    assert StoredCluster(url).build(never, {"of": documents}).documents == 30
    assert len(Index.open(StoredCluster(url).copied())) == 30
    with pytest.raises(UsageError, match="already a cluster of 3 shards"):
        built(url, documents)


def test_the_answer_to_a_put_that_was_lost_is_no_failure(url, documents, monkeypatch):
    built(url, documents)
    cluster = StoredCluster(url)
    put = cluster._store.put

    class Store:
        def __getattr__(self, name):
            return getattr(store, name)

        def put(self, name, *given, **named):
            result = put(name, *given, **named)
            return put(name, *given, **named) if name == manifests.FILE else result  # as a client that sends it again

    store, cluster._store = cluster._store, Store()
    cluster.change(lambda place: delete(place, ["d1"]))
    assert "d1" not in Index.open(StoredCluster(url).copied())


def test_files_without_a_name_are_removed_a_day_later(url, documents, monkeypatch):
    built(url, documents)
    before = files_of(StoredCluster(url).known().manifest)
    change = StoredCluster(url).change
    change(lambda place: delete(place, ["d1", "d2", "d3"]))
    change(compact)
    assert before <= stored(url).keys(), "a reader of an earlier commit may still copy them"
    monkeypatch.setattr(storage, "KEPT", timedelta(seconds=-5))
    change(lambda place: delete(place, ["d4"]))
    named = files_of(StoredCluster(url).known().manifest)
    removed = before - stored(url).keys()
    assert removed
    assert not removed & named
    assert named <= stored(url).keys()


def test_old_copies_are_removed_from_this_machine(url, documents):
    built(url, documents)
    cluster = StoredCluster(url)
    first = files_of(cluster.known().manifest)
    cluster.copied()
    cluster.change(lambda place: delete(place, [f"d{i}" for i in range(30) if i % 2]))
    cluster.change(compact)
    for name in first:
        os.utime(cluster.read_copy / name, (time.time() - 7200,) * 2)
    cluster.copied()
    assert not any((cluster.read_copy / name).exists() for name in first - files_of(cluster.known().manifest))
    assert len(Index.open(cluster.copied())) == 15


def test_damaged_and_missing_files_are_errors_that_name_them(url, documents, tmp_path):
    built(url, documents)
    store = StoredCluster(url)._store
    name = sorted(files_of(StoredCluster(url).known().manifest))[0]
    content = bytearray(bytes(store.get(name).bytes()))
    content[100] ^= 1
    store.put(name, bytes(content))
    with pytest.raises(IndexFormatError, match=f"{name} is damaged"):
        elsewhere(url, tmp_path).copied()
    store.delete(name)
    with pytest.raises(IndexFormatError, match=f"{name} is missing"):
        elsewhere(url, tmp_path).copied()
    with pytest.raises(IndexFormatError, match="is not a cluster: make one"):
        StoredCluster(url + "-other").copied()
    store.put(manifests.FILE, b"{")
    with pytest.raises(IndexFormatError, match=r"the manifest of .* is damaged"):
        StoredCluster(url).copied()


def test_learned_tables_come_along(url, documents, tmp_path):
    def make(place):
        report = build_cluster(place, [documents], SHARDS)
        os.makedirs(f"{place}/tables")
        with open(f"{place}/tables/own.json", "w") as file:
            file.write("{}")
        return report

    StoredCluster(url).build(make, {})
    assert (elsewhere(url, tmp_path).copied() / "tables" / "own.json").read_text() == "{}"


def test_an_error_of_the_service_is_one_line(url, documents):
    with pytest.raises(UsageError, match="s3://bucket-that-is-missing/x cannot be used: ") as error:
        StoredCluster("s3://bucket-that-is-missing/x").build(lambda place: build_cluster(place, [documents], SHARDS), {})
    assert "\n" not in str(error.value)
    with pytest.raises(UsageError, match="s3: cannot be used"):
        StoredCluster("s3://")


def test_the_command_line_takes_addresses(url, documents, tmp_path):
    def run(*arguments):
        done = CliRunner().invoke(command, [*map(str, arguments)], standalone_mode=False)
        assert done.exception is None
        return done.stdout

    assert "30 documents" in run("build", documents, "--to", url, "--shards", 2)
    run("delete", url, "d1")
    run("append", url, documents)
    run("compact", url)
    build_cluster(str(tmp_path / "folder"), [documents], 2)
    assert runs(StoredCluster(url).copied()) == runs(tmp_path / "folder")
    assert len(open_index(url)) == 30
    index = tmp_path / "index"
    shutil.copytree(StoredCluster(url).copied(), index)
    assert "30 documents" in run("from", index, "--to", f"{url}-copy", "--shards", 3)


def test_a_server_notices_commits_in_an_object_store(url, documents, tmp_path):
    pytest.importorskip("ray", reason="clusters on Ray are not tested: ray is not installed (pip install 'perikope[cluster]')")
    from perikope.cluster.serving import copy_manifest

    built(url, documents)
    folder = tmp_path / "looked at"
    folder.mkdir()
    copy_manifest(url, folder)
    index = PreparedIndex("c", folder, states=tmp_path / "states")
    assert index.look()
    copy_manifest(url, folder)
    assert not index.look()
    StoredCluster(url).change(lambda place: delete(place, ["d1"]))
    copy_manifest(url, folder)
    assert index.look()
    assert index.is_behind
    assert manifests.load(folder) == StoredCluster(url).known().manifest
