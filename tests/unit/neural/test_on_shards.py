"""One vector per passage on a cluster: shards compare, and the coordinator gets the scores of a single index."""

import shutil

import numpy as np
import pytest

from perikope.core.errors import UsageError
from perikope.neural import models
from perikope.neural.models import add_vectors, set_query_encoder
from perikope.neural.stores.store import VectorStore
from perikope.search.facade import Index
from tests.support.cluster import coordinator, divide
from tests.support.collections import index_of, plain_document
from tests.unit.neural.test_narrowing import DIMENSION, vector_of

STORE = "dense"

WORDS = ["rotor", "seal", "pump", "magnet", "shaft"]
MODELS = [f"vectors(store={STORE})", f"hybrid(store={STORE})", f"fuse(models=[bm25,vectors(store={STORE})])", ""]
QUERIES = ["rotor seal 3", "pump 4", "the magnet of the shaft 7"]


def documents(first=0, end=90):
    def text(i, j):
        return f"The {WORDS[i % 5]} and the {WORDS[(i + j) % 5]} {i % 17 + j}"

    return [plain_document(f"d{i}", f"Title {WORDS[i % 3]}", *[text(i, j) for j in range(i % 4)]) for i in range(first, end)]


def with_vectors(index, code):
    rows = lambda texts: np.array([vector_of(text) for text in texts]).reshape(-1, DIMENSION)  # noqa: E731
    add_vectors(index, STORE, rows, vector_of, DIMENSION, code=code)
    return index


def found(index, model):
    all_found = [index.search(query, model=model, k=60) if model else index.search(query, k=60) for query in QUERIES]
    return [(one.model, list(map(repr, one)), [one.explain(i) for i in range(5)]) for one in all_found]


@pytest.fixture
def folder():
    made = divide(documents(), 3, cuts=[50])
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("code", ["float16", "residual"])
def test_shards_compare_vectors_as_an_index_does(folder, code, monkeypatch):
    here = with_vectors(Index.open(folder), code)
    cluster = coordinator(folder)
    set_query_encoder(cluster, STORE, vector_of)
    compared, find = [], VectorStore.find
    monkeypatch.setattr(VectorStore, "find", lambda self, snapshot, *given: (compared.append(snapshot), find(self, snapshot, *given))[1])
    for model in MODELS:
        compared.clear()
        on_shards = found(cluster, model)
        assert compared
        assert cluster.snapshot not in compared, "vectors do not travel"
        assert on_shards == found(here, model)
        assert "vectors" in on_shards[0][0] or on_shards[0][0] == 'hybrid(store="dense")'


def test_a_cluster_has_the_scores_of_an_index(folder):
    whole = with_vectors(index_of(documents(), [20, 60]), "float16")
    with_vectors(Index.open(folder), "float16")
    cluster = coordinator(folder)
    set_query_encoder(cluster, STORE, vector_of)
    for model in MODELS:
        assert found(cluster, model) == found(whole, model)


def test_what_a_store_lacks_is_said_by_the_shards(folder, monkeypatch):
    with_vectors(Index.open(folder), "float16")
    more = divide(documents(0, 93), 3, cuts=[50])
    shutil.copytree(folder / "neural", more / "neural")
    cluster = coordinator(more)
    set_query_encoder(cluster, STORE, vector_of)
    results = cluster.search(QUERIES[0])
    assert results.model == "coverage"
    assert "3 documents have no vectors" in results.notes[0]
    with pytest.raises(UsageError, match="has no vectors of document"):
        cluster.search(QUERIES[0], model=MODELS[0], documents="all")
    monkeypatch.setattr(models, "_COMPARED_ON_SHARDS", ())
    assert "compared on one machine only" in cluster.search(QUERIES[0]).notes[0]
    shutil.rmtree(more)
