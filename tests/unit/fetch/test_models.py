"""Every fetch model equals its formula written out, term by term and document by document."""

import math
from collections import Counter

import bm25s
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.fetch.models import FETCH_MODELS, parse_fetch_model
from perikope.fetch.search import fetch
from perikope.query.terms import parse_query
from perikope.text.analysis import Analyzer
from tests.support.collections import WORDS, collections, index_of, plain_document
from tests.support.plain import PlainCollection

ANALYZER = Analyzer()


def bm25(tf, length, average, df, cf, n, tokens):
    return math.log(1 + (n - df + 0.5) / (df + 0.5)) * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / average))


def pl2(tf, length, average, df, cf, n, tokens):
    t, f = tf * math.log2(1 + average / length), cf / n
    return (t * math.log2(1 / f) + f * math.log2(math.e) + 0.5 * math.log2(2 * math.pi * t) + t * (math.log2(t) - math.log2(math.e))) / (
        t + 1
    )


def dph(tf, length, average, df, cf, n, tokens):
    f = min(tf / length, 1 - 1e-9)
    inside = tf * math.log2(tf * average / length * n / cf) + 0.5 * math.log2(2 * math.pi * tf * (1 - f))
    return (1 - f) ** 2 / (tf + 1) * inside


def lm(tf, length, average, df, cf, n, tokens):
    return math.log((tf + 1000 * cf / tokens) / (1000 * cf / tokens))


def robertson(tf, length, average, df, cf, n, tokens):
    return math.log((n - df + 0.5) / (df + 0.5)) * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / average))


PLAIN = {"bm25": bm25, 'bm25(idf="robertson")': robertson, "pl2": pl2, "dph": dph, "lm": lm, "sim": lm}


def test_every_model_has_a_twin():
    assert {name.partition("(")[0] for name in PLAIN} == set(FETCH_MODELS.names())


@pytest.mark.parametrize("name", sorted(PLAIN))
@settings(max_examples=40)
@given(
    documents=collections(), words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), cuts=st.lists(st.integers(0, 5), max_size=1)
)
def test_a_model_equals_its_formula(name, documents, words, cuts):
    snapshot = index_of(documents, cuts)._snapshot
    plain = PlainCollection(documents, ANALYZER)
    text = " ".join([*words, "pump"])
    query = parse_query(text, ANALYZER, ["en"])
    found = fetch(snapshot, query, parse_fetch_model(name), 100)
    n, average = len(documents), plain.tokens / len(documents)
    expected = {}
    for document in plain.documents:
        counts, length = Counter(document.all_terms), len(document.all_terms)
        matching = [(term, weight) for term, weight in zip(query.terms, query.weights, strict=True) if counts[term]]
        if matching:
            score = sum(
                weight * PLAIN[name](counts[t], length, average, plain.document_frequency[t], plain.occurrences[t], n, plain.tokens)
                for t, weight in matching
            )
            if name in ("lm", "sim"):
                seen = [(term, weight) for term, weight in zip(query.terms, query.weights, strict=True) if plain.occurrences[term]]
                total = sum(weight for _, weight in seen)
                score += total * math.log(1000 / (length + 1000))
                if name == "sim":
                    score = plain.sim(dict(seen), document.all_terms)
            expected[document.document.id] = score
    scores = {snapshot.document_id(number): score for number, score in zip(found.documents.tolist(), found.scores.tolist(), strict=True)}
    assert scores == pytest.approx(expected, abs=1e-9)
    order = [(-score, snapshot.document_id(number)) for number, score in zip(found.documents.tolist(), found.scores.tolist(), strict=True)]
    assert order == sorted(order)


def test_bm25_equals_bm25s():
    texts = ["pump rotor", "rotor rotor magnet", "seal of the pump", "magnet", "pump pump pump rotor seal valve"]
    snapshot = index_of([plain_document(f"d{i}", "", text) for i, text in enumerate(texts)], stemmer="none", stopwords="none")._snapshot
    peer = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    peer.index([text.split() for text in texts], show_progress=False)
    query = parse_query("pump magnet rotor", snapshot.analyzer, ["en"])
    found = fetch(snapshot, query, parse_fetch_model("bm25"), 10)
    theirs = peer.get_scores(["pump", "magnet", "rotor"])
    # bm25s leaves out the constant (k1 + 1) as Lucene does since version 8; it changes no order.
    assert found.scores / 2.2 == pytest.approx([float(theirs[number]) for number in found.documents], rel=1e-5)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("bm24", "unknown fetch model 'bm24'; did you mean 'bm25'"),
        ("pl2(c=0)", "must be in \\(0, 1000\\]"),
        ("bm25(1)", "^write each parameter of bm25 as name=value; possible names: k1, b, idf$"),
        ("pl2(1)", "^write each parameter of pl2 as name=value; possible names: c$"),
        ("dph(1)", "^the fetch model dph has no parameters; write dph$"),
        ("dph(c=1)", "^the fetch model dph has no parameters; write dph$"),
        ("bm25@10", "^the fetch model bm25 has no cutoff; remove @10 at the end$"),
        ("bm25(k1=0.6)[10]", r"^the fetch model bm25 has no cutoff; remove \[10\] at the end$"),
        ("dph(1)@10", "^the fetch model dph has no cutoff; remove @10 at the end$"),
    ],
)
def test_mistakes_are_named(text, complaint):
    with pytest.raises(UsageError, match=complaint):
        parse_fetch_model(text)
