"""The nearest documents, by all vectors and by clusters, against a comparison document by document."""

from __future__ import annotations

import json
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from perikope.core.array_files import hash_of, save_array
from perikope.core.checked_json import CHECKSUM, with_checksum
from perikope.core.errors import InputError, PerikopeError, UsageError
from perikope.neural import narrowing, nearest
from perikope.neural.models import add_vectors, open_store
from perikope.neural.stores import clusters as clusters_module
from perikope.neural.stores.check import check_stores
from perikope.neural.stores.codebook import CODES
from tests.support.collections import index_of, plain_document

DIMENSION, STORE = 16, "own"
CENTRES = np.random.default_rng(1).normal(size=(9, DIMENSION))
QUERIES = [f"query {number}" for number in range(12)]
WITH_CLUSTERS = {"clusters_from": 50, "clusters": 30, "cluster_share": 0.15}


def vector_of(text):
    """A vector near one of the centres, which follows from the last word; some passages have the same."""
    generator = np.random.default_rng(zlib.crc32(text.rpartition(" ")[2].encode()))
    return (CENTRES[generator.integers(9)] + 0.4 * generator.normal(size=DIMENSION)).astype(np.float32)


def documents(first, count):
    """Documents with no to four passages, some of which have the vector of another document's."""
    return [plain_document(f"d{i}", "Title", *[f"{i} of {i % 71 * 7 + j}" for j in range(i % 5)]) for i in range(first, first + count)]


def made(index, code="float16", **clusters):
    rows = lambda texts: np.array([vector_of(text) for text in texts]).reshape(-1, DIMENSION)  # noqa: E731
    return add_vectors(index, STORE, rows, vector_of, DIMENSION, code=code, clusters=clusters)


def index_with(code="float16", **clusters):
    index = index_of(documents(0, 300), [100, 220])
    made(index, code, **clusters)
    return index


def found(index, query, most, allowed=None):
    allowed = alive(index) if allowed is None else allowed & alive(index)
    candidates = nearest.nearest(index.snapshot, query, STORE, most, allowed)
    return candidates.documents.tolist(), candidates.scores.tolist()


def alive(index):
    return np.concatenate([segment.alive for segment in index.snapshot.segments])


@pytest.fixture
def plain(monkeypatch):
    """The same search, document by document."""

    def search(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(nearest, "narrowed", lambda snapshot, store, query, most, allowed: np.flatnonzero(allowed))
            return found(*arguments)

    return search


@pytest.fixture
def by_clusters(monkeypatch):
    """Whether each search was answered by clusters."""
    answered = []
    original = narrowing._by_clusters

    def told(*arguments):
        near = original(*arguments)
        answered.append(near is not None)
        return near

    monkeypatch.setattr(narrowing, "_by_clusters", told)
    return answered


needs_faiss = pytest.mark.skipif(not clusters_module.has_faiss(), reason="faiss is not installed")


@pytest.mark.parametrize("code", CODES)
def test_all_vectors_give_what_a_comparison_document_by_document_gives(code, plain, monkeypatch):
    monkeypatch.setattr(narrowing, "_PIECE", 37)
    index = index_with(code)
    index.delete(["d7", "d250", "d3"])
    index.commit()
    made(index, code)
    count = len(alive(index))
    filters = [None, np.arange(count) % 2 == 0, np.arange(count) % 9 == 0, np.zeros(count, bool), np.arange(count) < 60]
    for query in QUERIES:
        for allowed in filters:
            for most in (1, 5, 40, 1000):
                assert found(index, query, most, allowed) == plain(index, query, most, allowed)


@needs_faiss
def test_clusters_give_exact_scores_and_never_too_few(plain, by_clusters):
    index = index_with(**WITH_CLUSTERS)
    assert open_store(index.snapshot, STORE, "own").clusters.vectors == 600
    count, right = len(alive(index)), 0
    for query in QUERIES:
        for allowed in (None, np.arange(count) % 4 > 0, np.arange(count) % 9 == 0):
            for most in (1, 10, 40):
                numbers, scores = found(index, query, most, allowed)
                all_numbers, all_scores = plain(index, query, 1000, allowed)
                assert len(numbers) == min(most, len(all_numbers))
                exact = dict(zip(all_numbers, all_scores, strict=True))
                assert scores == [exact[number] for number in numbers]
                assert scores == sorted(scores, reverse=True)
                right += len({*numbers} & {*all_numbers[:most]}) / most
    assert sum(by_clusters) > 30
    assert right / (len(QUERIES) * 9) > 0.9


@needs_faiss
def test_vectors_that_are_in_no_cluster_are_all_compared(by_clusters):
    index = index_with(**WITH_CLUSTERS)
    before = open_store(index.snapshot, STORE, "own").manifest
    index.add([plain_document("new", "Title", "the passage of 5000")])
    index.delete(["d9"])
    index.commit()
    store = made(index)
    assert (store.manifest.clusters, store.manifest.clustered) == (before.clusters, before.clustered)
    for query in ("the passage of 5000", "d9 of 63"):
        ids = [index.snapshot.document_id(number) for number in found(index, query, 5)[0]]
        assert ("new" in ids) == (query != "d9 of 63")
        assert "d9" not in ids
    assert all(by_clusters)


@needs_faiss
def test_clusters_are_made_again_when_many_vectors_are_in_none_and_dropped_when_they_are_not_wanted():
    index = index_with(**WITH_CLUSTERS)
    first = open_store(index.snapshot, STORE, "own").manifest
    index.add(documents(300, 150))
    index.commit()
    second = made(index).manifest
    assert second.clusters not in ("", first.clusters)
    assert list(second.clustered) == list(second.files)
    assert second.cluster_options == WITH_CLUSTERS
    changed = made(index, cluster_share=0.2)
    assert (changed.manifest.clusters, changed.cluster_options.cluster_share) == (second.clusters, 0.2)
    assert made(index, clusters=10).clusters.count == 10
    dropped = made(index, clusters_from=10_000)
    assert (dropped.manifest.clusters, dropped.manifest.clustered, dropped.clusters) == ("", {}, None)
    assert check_stores(index.folder).unknown_files == ()
    with pytest.raises(UsageError, match="cluster_share"):
        made(index, cluster_share=2)


def test_without_faiss_all_vectors_are_compared(monkeypatch, plain):
    index = index_with(**WITH_CLUSTERS)
    for module in ("stores.store", "stores.update", "stores.clusters"):
        monkeypatch.setattr(f"perikope.neural.{module}.has_faiss", lambda: False)
    index.snapshot.stores.clear()
    assert open_store(index.snapshot, STORE, "own").clusters is None
    assert found(index, QUERIES[0], 20) == plain(index, QUERIES[0], 20)
    other = index_with(**WITH_CLUSTERS)
    assert not open_store(other.snapshot, STORE, "own").manifest.clusters
    assert found(other, QUERIES[0], 20) == plain(other, QUERIES[0], 20)


@needs_faiss
@pytest.mark.parametrize("name", clusters_module.CLUSTER_FILES)
def test_damaged_clusters_are_found_and_never_searched(name):
    index = index_with(**WITH_CLUSTERS)
    store = open_store(index.snapshot, STORE, "own")
    path = store.folder / store.manifest.clusters / name
    whole = path.read_bytes()
    for at in (3, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        refused(index, name)
    for harmed in (whole[:-1], whole[:200], b"", whole + b"\0"):
        path.write_bytes(harmed)
        refused(index, name)
    path.unlink()
    refused(index, name)


def refused(index, name):
    assert any(name in problem for problem in check_stores(index.folder).problems)
    index.snapshot.stores.clear()
    with pytest.raises(InputError, match=r"is a damaged store of vectors \(clusters\)"):
        found(index, QUERIES[0], 5)


@needs_faiss
def test_forged_clusters_with_right_hashes_are_refused_or_harmless(by_clusters):
    index = index_with(**WITH_CLUSTERS)
    store = open_store(index.snapshot, STORE, "own")
    inside = store.folder / store.manifest.clusters
    entries, sizes = (inside / "entries.npy").read_bytes(), np.load(inside / "sizes.npy")
    generator = np.random.default_rng(3)
    ids = entries[:128] + bytes(generator.integers(0, 256, len(entries) - 128, np.uint8))
    for forged in (ids, entries[:128] + b"\xff" * (len(entries) - 128), entries[:128] + bytes(len(entries) - 128)):
        (inside / "entries.npy").write_bytes(forged)
        forge(index, store, "entries.npy")
        for query in QUERIES:
            assert len(found(index, query, 5)[0]) == 5
    (inside / "entries.npy").write_bytes(entries)
    forge(index, store, "entries.npy")
    swapped = sizes.copy()
    swapped[0], swapped[1] = sizes[0] + 8, sizes[1] - 8
    wrong = [sizes + 1, sizes * 0, np.where(np.arange(30) == 0, -8, sizes), np.where(np.arange(30) == 0, 1 << 60, sizes), sizes[:-1]]
    for forged in wrong:
        (inside / "sizes.npy").unlink()
        save_array(inside / "sizes.npy", forged)
        forge(index, store, "sizes.npy")
        with pytest.raises(PerikopeError):
            found(index, QUERIES[0], 5)


def forge(index, store, name):
    """Write the hash of a changed file to the manifest."""
    path = store.folder / "store.json"
    content = {key: value for key, value in json.loads(path.read_text()).items() if key != CHECKSUM}
    content["hashes"][f"{store.manifest.clusters}/{name}"] = hash_of(store.folder / store.manifest.clusters / name)
    path.write_text(json.dumps(with_checksum(content)))
    index.snapshot.stores.clear()


@needs_faiss
def test_threads_find_the_same():
    index = index_with(**WITH_CLUSTERS)
    expected = [found(index, query, 7) for query in QUERIES]
    index.snapshot.stores.clear()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda query: found(index, query, 7), QUERIES * 5)) == expected * 5


def test_a_store_of_the_version_before_has_no_clusters(plain):
    index = index_with()
    path = index.folder / "neural" / STORE / "store.json"
    new = ("clusters", "clustered", "cluster_options", CHECKSUM)
    content = {key: value for key, value in json.loads(path.read_text()).items() if key not in new}
    path.write_text(json.dumps(with_checksum({**content, "version": 4})))
    index.snapshot.stores.clear()
    assert open_store(index.snapshot, STORE, "own").manifest.clusters == ""
    assert found(index, QUERIES[0], 9) == plain(index, QUERIES[0], 9)
    made(index)
    assert json.loads(path.read_text())["version"] == 5
