"""A store of vectors that is updated often has few batches, and merging them changes no vector and no score."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from perikope.neural.stores import update
from perikope.neural.stores.merging import MAX_BATCHES
from perikope.neural.stores.store import VectorStore
from perikope.search.facade import Index
from tests.durability.attachments import MODEL, STORE, make_store, problems, unknown_files
from tests.durability.test_attachment_faults import as_version_3

UPDATES = 1000 if "PERIKOPE_SOAK" in os.environ else 200
KEPT = 30
"""The number of documents; each update adds one and deletes another."""


def _document(number: int) -> dict[str, object]:
    return {"id": f"d{number}", "passages": [f"The pump is number {number}.", f"A seal of kind {number % 7} drives the rotor."]}


def _change(index: Index, number: int) -> None:
    index.add([_document(number)])
    if number >= KEPT:
        index.delete([f"d{number - KEPT}"])
    index.commit()


def _scores(index: Index) -> list[tuple[str, float]]:
    return list(index.search("pump", model=MODEL, documents="all", k=1000).names())


def _vectors(index: Index, store: VectorStore) -> dict[str, bytes]:
    """The packed vectors, positions and counts of each document."""
    snapshot, vectors = index.snapshot, {}
    for number in range(snapshot.numbers):
        segment, local = snapshot.locate(number)
        if segment.alive[local]:
            (coded,) = store.find(snapshot, np.array([number])).documents
            vectors[segment.document_id(local)] = b"".join(part.tobytes() for part in (coded.rows, coded.position, coded.count))
    return vectors


def _never(held, live, new):
    return []


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="the system does not list descriptors")
def test_descriptors_do_not_grow_with_the_number_of_updates(tmp_path):
    index = Index.create(tmp_path / "index")
    descriptors = []
    for number in range(UPDATES):
        _change(index, number)
        store = make_store(index.snapshot, "float16")
        descriptors.append(len(os.listdir("/proc/self/fd")))
        assert len(store.manifest.files) <= MAX_BATCHES
    early, late = descriptors[KEPT : UPDATES // 2], descriptors[UPDATES // 2 :]
    assert max(late) <= max(early) + 2, descriptors
    assert store.tokens <= 2 * KEPT * 2 + MAX_BATCHES  # two passages per document; at most about half are of deleted documents
    assert problems(index.folder) == []
    assert unknown_files(index.folder) == ()


@pytest.mark.parametrize("code", ["float16", "int8", "residual"])
def test_scores_are_those_of_a_store_that_is_never_merged(tmp_path, monkeypatch, code):
    """The twin has the same history without merging: bit for bit the same vectors and scores after every update."""
    merged, plain = Index.create(tmp_path / "merged"), Index.create(tmp_path / "plain")
    most = 0
    for number in range(3 * MAX_BATCHES):
        for index in (merged, plain):
            _change(index, number)
        store = make_store(merged.snapshot, code)
        with monkeypatch.context() as patch:
            patch.setattr(update, "batches_to_merge", _never)
            twin = make_store(plain.snapshot, code)
        assert _vectors(merged, store) == _vectors(plain, twin)
        assert _scores(merged) == _scores(plain)
        most = max(most, len(twin.manifest.files))
    assert len(store.manifest.files) <= MAX_BATCHES < most


def test_a_merge_drops_documents_that_are_gone(tmp_path):
    index = Index.create(tmp_path / "index")
    index.add([_document(number) for number in range(20)])
    index.commit()
    first = make_store(index.snapshot, "float16")
    index.delete([f"d{number}" for number in range(9)])
    index.commit()
    kept = make_store(index.snapshot, "float16")
    assert kept.manifest.files == first.manifest.files  # most of its documents are left
    index.delete([f"d{number}" for number in range(9, 15)])
    index.commit()
    rewritten = make_store(index.snapshot, "float16")
    assert (first.tokens, rewritten.tokens) == (40, 10)
    assert not (rewritten.folder / first.manifest.files[0]).exists()
    assert first.find(index.snapshot, np.array([index.snapshot.find_document("d19")])).passages == 2  # an open store keeps its files


def test_batches_of_the_version_before_are_merged(tmp_path, monkeypatch):
    """Their documents have no checksums. The merged batch has them."""
    index = Index.create(tmp_path / "index")
    with monkeypatch.context() as patch:
        patch.setattr(update, "batches_to_merge", _never)
        for number in range(MAX_BATCHES + 3):
            _change(index, number)
            make_store(index.snapshot, "float16")
    old = as_version_3(index.folder / "neural" / STORE)
    vectors, scores = _vectors(index, old), _scores(index)
    _change(index, MAX_BATCHES + 3)
    store = make_store(index.snapshot, "float16")
    assert len(store.manifest.files) == MAX_BATCHES + 3 - 8 + 2
    assert f"{store.manifest.files[-2]}/checksums.npy" in store.hashes
    assert vectors.items() <= _vectors(index, store).items()
    assert set(scores) <= set(_scores(index))


def test_damage_is_not_copied(tmp_path):
    """A merge verifies what it copies; a copy of damaged vectors would get a right checksum."""
    index = Index.create(tmp_path / "index")
    for number in range(MAX_BATCHES):
        _change(index, number)
        store = make_store(index.snapshot, "float16")
    _flip(store.folder / store.manifest.files[3] / "vectors.npy")
    _change(index, MAX_BATCHES)
    with pytest.raises(Exception, match="vectors"):
        make_store(index.snapshot, "float16")
    assert VectorStore(store.folder).manifest == store.manifest


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
