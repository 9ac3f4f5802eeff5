"""A store of vectors and a learned table in an index, whose content after commit n follows from n alone.

The vectors of a passage follow from its text, so a store is at commit n if it has the documents of this commit with
their vectors. The functions `problems`, `look` and `change` are those of a module for the probe.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from perikope.core.arrays import Floats32
from perikope.index.check import check
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import check_tables, read_table, write_table
from perikope.neural.models import add_vectors, open_store, set_query_encoder
from perikope.neural.stores.check import check_stores
from perikope.neural.stores.store import VectorStore, document_key, written_passages
from perikope.search.facade import Index
from tests.durability.history import QUERY, content, document, make_commit

STORE, TABLE, DIMENSION = "own", "mine", 8
MODEL = f'vectors(store="{STORE}")'


def vectors_of(texts: Sequence[str]) -> Floats32:
    """One vector per text, drawn from its hash."""
    rows = [np.random.default_rng(zlib.crc32(text.encode())).normal(size=DIMENSION) for text in texts]
    return np.array(rows, np.float32).reshape(-1, DIMENSION)


def query_vector(text: str) -> Floats32:
    return vectors_of([text])[0]


def make_store(snapshot: Snapshot, code: str = "residual") -> VectorStore:
    """Make the store of a snapshot, or update it."""
    return add_vectors(snapshot, STORE, vectors_of, query_vector, DIMENSION, code=code, clusters={"clusters_from": 1})


def make_table(folder: Path, commit: int) -> None:
    """Write the table of a commit, with a further file."""
    write_table(folder, TABLE, "tags", {"queries": commit, "tags": {f"t{commit}": 1.5}}, {"lightgbm.txt": f"trees {commit}\n" * 50})


def make_attachments(index: Index, commit: int) -> None:
    """Bring store and table to a commit, which the index is at."""
    make_store(index.snapshot)
    make_table(index.folder, commit)


def store_is_at(folder: Path, commit: int) -> bool:
    """Whether the store has exactly the documents of a commit; asserts that all vectors are those of their texts."""
    return commit_of_store(VectorStore(folder / "neural" / STORE), [commit]) == commit


def commit_of_store(store: VectorStore, commits: Iterable[int]) -> int | None:
    """The first of these commits whose documents a store has; asserts that all vectors are those of their texts."""
    for commit in commits:
        texts_of_key = _texts_of_key(commit)
        if set(store.known) == set(texts_of_key):
            for key, (file, number) in store.known.items():
                coded = store._files[file].document(number, "vectors")
                vectors = vectors_of(texts_of_key[key])
                assert coded.rows.tobytes() == b"".join(store.codebook.pack(vector[None]).tobytes() for vector in vectors)
                assert coded.count.tolist() == [1] * len(vectors)
            return commit
    return None


@lru_cache(maxsize=256)
def _texts_of_key(commit: int) -> dict[bytes, tuple[str, ...]]:
    """The encoded texts of each document of a commit, by the document's key."""
    from tests.support.collections import index_of

    if not content(commit):
        return {}
    snapshot = index_of([document(id, writer) for id, writer in content(commit).items()]).snapshot
    texts = {}
    for number in range(len(content(commit))):
        segment, local = snapshot.locate(number)
        texts[document_key(snapshot, segment, local, "own", True)] = tuple(written_passages(snapshot, number, True))
    return texts


def table_commit(folder: Path) -> int:
    """The commit that the table is at; asserts that its file is of the same commit."""
    table = read_table(TABLE, "tags", folder)
    commit = int(table.values["queries"])
    assert table.values["tags"] == {f"t{commit}": 1.5}
    ((name, known),) = table.files.items()
    text = (folder / "tables" / name).read_bytes()
    assert text == f"trees {commit}\n".encode() * 50
    assert hashlib.sha256(text).hexdigest() == known
    return commit


def small_attachments(folder: Path) -> None:
    """An index with a store of two updates, and a table."""
    index = Index.create(folder)
    for commit in range(1, 4):
        make_commit(index, commit)
        make_attachments(index, commit)
    assert len(list((folder / "neural" / STORE).glob("batch-*"))) > 1


def problems(folder: Path) -> list[str]:
    return [*check(folder).problems, *check_tables(folder).problems, *check_stores(folder).problems]


def unknown_files(folder: Path) -> tuple[str, ...]:
    return (*check(folder).unknown_files, *check_tables(folder).unknown_files, *check_stores(folder).unknown_files)


def look(folder: Path) -> str:
    """A checksum of everything that a search reads of store and table; raises the errors of reading."""
    index = Index.open(folder)
    snapshot = index.snapshot
    set_query_encoder(snapshot, STORE, query_vector)
    results = index.search(QUERY, model=MODEL, documents="all", k=100)
    store = open_store(snapshot, STORE, "own")
    packed = store.find(snapshot, np.flatnonzero(np.concatenate([segment.alive for segment in snapshot.segments])))
    vectors = [[part.tolist() for part in packed.vectors(passage)] for passage in range(packed.passages)]
    table = read_table(TABLE, "tags", folder)
    seen = [
        results.names(),
        vectors,
        store.missing(snapshot),
        store.documents,
        store.facts,
        json.dumps(dict(table.values)),
        dict(table.files),
    ]
    return f"{zlib.crc32(repr(seen).encode()):08x}"


def change(folder: Path) -> None:
    """Update index, store and table."""
    os.fsync = lambda descriptor: None  # costs most of the time of the probe, which loses no power
    index = Index.open(folder)
    make_commit(index, 4)
    make_attachments(index, 4)
