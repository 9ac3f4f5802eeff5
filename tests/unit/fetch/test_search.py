"""Exact top documents, whatever the segments, deletions and filters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.core.errors import IndexFormatError
from perikope.fetch import search
from perikope.fetch.filters import Ids
from perikope.fetch.models import Terms, parse_fetch_model
from perikope.fetch.search import fetch
from perikope.query.terms import Query
from tests.support.collections import index_of, plain_document


def exhaustive(snapshot, query, model, allowed=None):
    """Every document that holds a term with its score, one posting after the other."""
    found = snapshot.statistics(query.terms)
    terms = Terms(found.document_frequency, found.collection_frequency, found.documents, found.tokens)
    order = np.argsort(terms.document_frequency, kind="stable")
    scores = {}
    for base, segment in zip(snapshot.first_document.tolist(), snapshot.segments, strict=False):
        for t in order.tolist():
            number = int(segment.find_terms([query.terms[t].encode()])[0])
            if number < 0:
                continue
            for document, frequency in zip(*(column.tolist() for column in segment.postings(number)), strict=True):
                length = np.array([float(segment["document.length"][document])])
                value = model.contribution(np.array([float(frequency)]), length, terms.at(np.array([t])))[0]
                scores[base + document] = scores.get(base + document, 0.0) + query.weights[t] * value
        for document in [number for number in scores if base <= number < base + segment.documents]:
            background = model.background(segment["document.length"][[document - base]], sum(query.weights))
            scores[document] += 0.0 if background is None else background[0]
    ids = {document: snapshot.document_id(document) for document in scores}
    best = sorted(scores, key=lambda document: (-scores[document], ids[document]))
    return [(ids[document], scores[document]) for document in best if allowed is None or ids[document] in allowed]


words = st.sampled_from(["a1", "b2", "b2", "c3", "c3", "c3", "d4", "d4", "d4", "d4"])


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.lists(words, min_size=1, max_size=20), min_size=1, max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=3),
    deleted=st.sets(st.integers(0, 39), max_size=10),
    allowed=st.none() | st.sets(st.integers(0, 39), max_size=12),
    model=st.sampled_from(["bm25", "bm25(k1=0.6,b=0)", 'bm25(idf="robertson")', "pl2", "dph", "lm"]),
    k=st.sampled_from([1, 3, 10, 100]),
    weights=st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=5, max_size=5),
)
def test_the_best_are_those_of_all_postings_added_up(texts, cuts, deleted, allowed, model, k, weights):
    documents = [
        plain_document(f"x{i:02}" if i % 3 else f"long-name-of-document-{i:02}" * 4, "", " ".join(text)) for i, text in enumerate(texts)
    ]
    index = index_of(documents, [min(cut, len(texts)) for cut in cuts], stemmer="none", stopwords="none")
    if gone := [documents[i].id for i in deleted if i < len(texts)]:
        index.delete(gone)
        index.commit()
    snapshot = index._snapshot
    query = Query("", ("en:a1", "en:b2", "en:c3", "en:d4", "en:absent"), tuple(weights))
    chosen = None if allowed is None else {documents[i].id for i in allowed if i < len(texts)}
    if not snapshot.totals.documents:
        return
    held = [t for t, count in zip(query.terms, snapshot.statistics(query.terms).document_frequency, strict=True) if count]
    kept = Query("", tuple(held), tuple(weights[query.terms.index(t)] for t in held))
    expected = exhaustive(snapshot, kept, parse_fetch_model(model), chosen)[:k]
    found = fetch(snapshot, query, parse_fetch_model(model), k, None if chosen is None else Ids(frozenset(chosen)))
    scores = dict(zip(map(snapshot.document_id, found.documents.tolist()), found.scores.tolist(), strict=True))
    assert scores == pytest.approx(dict(expected), rel=1e-12, abs=1e-12)
    order = [(-score, id) for id, score in scores.items()]
    assert order == sorted(order)


@pytest.mark.parametrize("model", ["bm25", "pl2", "dph", "lm"])
def test_rare_frequencies_are_computed_and_not_looked_up(model, monkeypatch):
    """Frequencies beyond the tables, and those that do not fit a byte."""
    texts = ["pump " * count + "valve " * (count % 7) for count in (1, 2, 15, 16, 40, 254, 255, 256, 700)]
    snapshot = index_of([plain_document(f"d{i}", "", text) for i, text in enumerate(texts)], [4])._snapshot
    query = Query("", ("en:pump", "en:valv"), (1.0, 2.0))
    expected = exhaustive(snapshot, query, parse_fetch_model(model))
    for size in (1, 1 << 22):
        monkeypatch.setattr(search, "TABLE", size)
        for segment in snapshot.segments:
            segment._remembered.cache_clear()
        found = fetch(snapshot, query, parse_fetch_model(model), 10)
        assert [snapshot.document_id(number) for number in found.documents.tolist()] == [id for id, _ in expected]
        assert found.scores == pytest.approx([score for _, score in expected], rel=1e-12)


def test_more_ties_than_there_is_room_for():
    """All documents are alike: the first ids win, however many tie with the last."""
    texts = [plain_document(f"d{(i * 7919) % 5000:04}", "", "pump") for i in range(5000)]
    snapshot = index_of(texts, [2000])._snapshot
    found = fetch(snapshot, Query("", ("en:pump",), (1.0,)), parse_fetch_model("bm25"), 3)
    assert [snapshot.document_id(number) for number in found.documents.tolist()] == ["d0000", "d0001", "d0002"]


def test_damaged_postings_are_refused():
    snapshot = index_of([plain_document(f"d{i}", "", "pump valve") for i in range(3)])._snapshot
    segment = snapshot.segments[0]
    segment.columns._views["window.number"] = np.full_like(segment["window.number"], 7)
    with pytest.raises(IndexFormatError, match="damaged postings"):
        fetch(snapshot, Query("", ("en:pump",), (1.0,)), parse_fetch_model("bm25"), 3)
