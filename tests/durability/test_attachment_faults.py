"""A disk that is full or fails while a store of vectors or a learned table is written.

The call reports the error. Store and table are the old or the new ones, and the next attempt succeeds and clears up.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from perikope.core import files
from perikope.core.array_files import hash_of
from perikope.core.errors import PerikopeError
from perikope.neural.stores.store import VectorStore
from perikope.search.facade import Index
from tests.durability.attachments import (
    STORE,
    make_attachments,
    make_store,
    make_table,
    problems,
    store_is_at,
    table_commit,
    unknown_files,
)
from tests.durability.faulty_disk import FAULTS, FaultyDisk
from tests.durability.history import make_commit

BEFORE = 3
"""The commit that store and table are at; the index is one commit ahead."""


@pytest.fixture
def disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # costs time, and no power is lost here
    return FaultyDisk(monkeypatch)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original") / "index"
    index = Index.create(folder)
    for commit in range(1, BEFORE + 1):
        make_commit(index, commit)
        make_attachments(index, commit)
    make_commit(index, BEFORE + 1)
    return folder


@pytest.mark.parametrize("fault", FAULTS)
def test_any_operation_of_an_update_may_fail(tmp_path, original, disk, fault):
    for number in itertools.count():
        folder = Path(shutil.copytree(original, tmp_path / "index"))
        index = Index.open(folder)
        held, snapshot = VectorStore(folder / "neural" / STORE), index.snapshot
        disk.arm(number, **FAULTS[fault])
        error = None
        try:
            make_attachments(index, BEFORE + 1)
        except (PerikopeError, OSError) as raised:
            error = raised.with_traceback(None)
        finally:
            disk.mend()
        where = f"operation {number}: {disk.failed}, {error!r}"
        assert store_is_at(folder, BEFORE) or store_is_at(folder, BEFORE + 1), where
        assert table_commit(folder) in (BEFORE, BEFORE + 1), where
        assert error is not None or (store_is_at(folder, BEFORE + 1) and table_commit(folder) == BEFORE + 1), where
        assert problems(folder) == [], where
        assert held.missing(snapshot) < len(index), where  # reads what an open store keeps of the state before
        make_attachments(index, BEFORE + 1)
        assert store_is_at(folder, BEFORE + 1), where
        assert table_commit(folder) == BEFORE + 1, where
        assert problems(folder) == [], where
        assert unknown_files(folder) == (), where
        shutil.rmtree(folder)
        if not disk.failed:
            break
    assert number > 40


@pytest.mark.parametrize("fault", FAULTS)
def test_any_operation_of_the_first_update_may_fail(tmp_path, disk, fault):
    """What a stopped first update has left is not mixed with a store of another code that is made next."""
    index = Index.create(tmp_path / "index")
    make_commit(index, 1)
    for number in itertools.count():
        shutil.rmtree(index.folder / "neural", ignore_errors=True)
        shutil.rmtree(index.folder / "tables", ignore_errors=True)
        disk.arm(number, **FAULTS[fault])
        made = False
        try:
            make_store(index.snapshot)
            make_table(index.folder, 1)
            made = True
        except (PerikopeError, OSError):
            assert disk.failed
        finally:
            disk.mend()
        where = f"operation {number}: {disk.failed}"
        assert problems(index.folder) == [], where
        if (index.folder / "neural" / STORE / "store.json").exists():
            assert store_is_at(index.folder, 1), where
        else:
            make_store(index.snapshot, "int8")
            assert VectorStore(index.folder / "neural" / STORE).codebook.code == "int8"
        make_table(index.folder, 1)
        assert store_is_at(index.folder, 1), where
        if made:
            break
        make_store(index.snapshot, VectorStore(index.folder / "neural" / STORE).codebook.code)
        assert unknown_files(index.folder) == (), where
    assert number > 20


def test_an_open_store_stays_as_it_is_while_the_store_is_updated(tmp_path, original):
    folder = Path(shutil.copytree(original, tmp_path / "index"))
    index = Index.open(folder)
    old = VectorStore(folder / "neural" / STORE)
    make_store(index.snapshot)
    # Files that an open store reads later are of the state before, although their names are gone.
    known = [old.rows_of(index.snapshot, segment) for segment in index.snapshot.segments]
    assert sum(int((rows[:, 0] >= 0).sum()) for rows in known) > 0
    assert not (folder / "neural" / STORE / old.manifest.keys).exists()
    for file, number in old.known.values():
        assert old._files[file].document(number, "vectors").rows.size


def test_a_store_that_is_updated_while_it_is_opened_is_opened_again(tmp_path, original, monkeypatch):
    folder = Path(shutil.copytree(original, tmp_path / "index"))
    index = Index.open(folder)
    opened = VectorStore._open

    def slow(self, manifest):
        monkeypatch.setattr(VectorStore, "_open", opened)
        make_store(index.snapshot)
        opened(self, manifest)

    monkeypatch.setattr(VectorStore, "_open", slow)
    assert VectorStore(folder / "neural" / STORE).missing(index.snapshot) == 0


def test_a_store_of_the_version_before_is_read_and_updated(tmp_path, original):
    """Version 3 had no checksum, fixed names of codebooks, and single files with locations."""
    folder = Path(shutil.copytree(original, tmp_path / "index"))
    store = as_version_3(folder / "neural" / STORE)
    assert store_is_at(folder, BEFORE)
    assert problems(folder) == []
    index = Index.open(folder)
    updated = make_store(index.snapshot)
    assert store_is_at(folder, BEFORE + 1)
    assert unknown_files(folder) == ()
    assert updated.manifest.codebooks == store.manifest.codebooks == ""


def as_version_3(folder: Path) -> VectorStore:
    """Rewrite a store as the version before wrote it."""
    old = VectorStore(folder)
    content = json.loads((folder / "store.json").read_bytes())
    for name in ("checksum", "encoder", "codebooks"):
        content.pop(name)
    stamp = "0123456789abcdef"
    moved = {f"{old.manifest.codebooks}/vectors-{part}.npy": f"vectors-{part}.npy" for part in ("centroids", "levels")}
    moved |= {old.manifest.keys: f"keys-{stamp}.npy", old.manifest.rows: f"rows-{stamp}.npy"}
    moved |= {entry["rows"]: f"segment-{stamp}-{i}.npy" for i, entry in enumerate(old.manifest.segments.values())}
    for name, new in moved.items():
        np.save(folder / new, np.load(folder / name))
    for entry in content["segments"].values():
        entry["rows"] = moved[entry["rows"]]
    for batch in folder.glob("batch-*"):
        (batch / "checksums.npy").unlink()
    content |= {"version": 3, "keys": moved[old.manifest.keys], "rows": moved[old.manifest.rows]}
    names = [moved.get(name, name) for name in content["hashes"] if not name.endswith("/checksums.npy")]
    content["hashes"] = {name: hash_of(folder / name) for name in names}
    (folder / "store.json").write_text(json.dumps(content))
    for path in (*folder.glob("codebooks-*"), *folder.glob("locations-*")):
        shutil.rmtree(path)
    return VectorStore(folder)


def test_everything_is_durable_before_a_manifest_or_table_names_it(tmp_path, original, monkeypatch):
    """When the manifest is renamed, every file that it names was synced, and so was every folder with its name."""
    folder = Path(shutil.copytree(original, tmp_path / "index"))
    store, tables = folder / "neural" / STORE, folder / "tables"
    synced: set[int] = set()
    named: list[str] = []

    def fsync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)

    def rename(old: Path, new: Path, original=files.rename) -> None:
        if new.name in ("store.json", "mine.json"):
            assert os.stat(old).st_ino in synced, new.name
            content = json.loads(old.read_bytes())
            for name in content["hashes"] if new.name == "store.json" else content["files"]:
                path = new.parent / name
                assert path.stat().st_ino in synced or path.stat().st_ino in before, name
                assert path.parent.stat().st_ino in synced or path.parent.stat().st_ino in before, name
            assert new.parent.stat().st_ino in synced, "the names of new folders and files are not durable"
            named.append(new.name)
        original(old, new)
        synced.discard(new.parent.stat().st_ino)  # its names have changed since

    before = {path.stat().st_ino for path in store.rglob("*")}
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(files, "rename", rename)
    make_attachments(Index.open(folder), BEFORE + 1)
    assert named == ["store.json", "mine.json"]
    assert {store.stat().st_ino, tables.stat().st_ino} <= synced, "the new manifest and table are not durable"


@pytest.mark.parametrize("fault", ["full", "failing"])
def test_an_update_that_cannot_be_written_is_refused_in_one_line(tmp_path, original, disk, fault):
    messages = []
    for number in range(0, 40, 3):
        folder = Path(shutil.copytree(original, tmp_path / str(number)))
        index = Index.open(folder)
        disk.arm(number, **FAULTS[fault])
        try:
            make_store(index.snapshot)
        except PerikopeError as error:
            messages.append(str(error))
        finally:
            disk.mend()
    assert len(messages) > 5
    line = re.compile(r"cannot write \S+own \((No space left on device|Input/output error)\): .+; no change is half done")
    assert [message for message in messages if not line.fullmatch(message)] == []
