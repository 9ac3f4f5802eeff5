"""The proximity models equal their definitions, on random documents and random trees."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.browse.matches import join
from perikope.browse.models import parse_model
from perikope.document.tree import Kind
from perikope.fetch import Candidates
from perikope.query.boolean import words_of
from perikope.query.terms import Query
from tests.support.collections import index_of
from tests.support.examples import examples
from tests.support.proximity import PlainInfluence, structured_documents, trees

WEIGHTS = {"b": 1.4, "p": 0.9, "title": 1.5, "sec": 0.5, "list": 0.0}
MODELS = {"prox": "none", "prox_h": "height", "prox_hw": "both"}


def query_of(tree):
    terms = tuple(dict.fromkeys(term for word, _ in words_of(tree) for term in word.terms))
    return Query("", terms, (1.0,) * len(terms), tree)


def matches_of(documents, tree, cuts=(), stopwords="none", **options):
    index = index_of(documents, cuts, stemmer="none", stopwords=stopwords)
    numbers = np.arange(len(documents))
    return join(index._snapshot, query_of(tree), Candidates(numbers, np.ones(numbers.size)), **options)


@pytest.mark.parametrize("model", MODELS)
@examples(120)
@given(
    documents=st.integers(1, 3).flatmap(lambda n: st.tuples(*(structured_documents(f"d{i}") for i in range(n)))).map(list),
    tree=trees(),
    k=st.sampled_from([1, 2, 3, 7, 200]),
    shape=st.sampled_from(["triangle", "triangle", "gauss", "cosine", "circle", "rectangle"]),
    logical=st.sampled_from([None, None, ("sec", "p"), ("bdy", "title", "b")]),
    titles=st.booleans(),
    cuts=st.lists(st.integers(0, 1), max_size=1),
    units=st.sampled_from(["elements", "elements", "passages", "documents"]),
)
def test_scores_are_those_of_the_definition(model, documents, tree, k, shape, logical, titles, cuts, units):
    matches = matches_of(documents, tree, cuts, units=units)
    written = f"{model}(k={k},shape={shape},titles={str(titles).lower()}"
    written += f",logical=[{','.join(logical)}]" if logical else ""
    written += f",weights=tags({','.join(f'{tag}={weight}' for tag, weight in WEIGHTS.items())})" if model != "prox" else ""
    score = parse_model(f"{written})").score(matches)
    weights = WEIGHTS if model != "prox" else {}
    plain = [
        PlainInfluence(document, k=k, shape=shape, weighs=MODELS[model], weights=weights, logical=logical, titles=titles)
        for document in documents
    ]
    rows = list(zip(matches.document_of_passage.tolist(), matches.span_of_passage.tolist(), strict=True))
    assert score.values.tolist() == pytest.approx([plain[document].score(tree, span) for document, span in rows], abs=1e-9)
    for row in range(matches.passages):
        check(score.explain(row))
        assert score.explain(row).value == score.values[row]


def check(node):
    assert math.isclose(node.recomputed(), node.value, rel_tol=1e-9, abs_tol=1e-12), node.label
    for child in node.children:
        check(child)


@examples(40)
@given(document=structured_documents(), tree=trees())
def test_units_are_what_they_are_called(document, tree):
    spans = document.spans
    of_kind = {
        "passages": [Kind.PASSAGE],
        "elements": [Kind.SECTION, Kind.ELEMENT, Kind.PASSAGE],
    }
    for units, kinds in of_kind.items():
        matches = matches_of([document], tree, units=units)
        wanted = [i for i in range(len(spans)) if spans.kind[i] in kinds and (units == "passages" or document.text_of(i).strip())]
        assert matches.span_of_passage.tolist() == wanted
        lengths = [len(document.text_of(i).split()) for i in wanted]
        assert (matches.end_token_of_passage - matches.first_token_of_passage).tolist() == lengths
        assert matches.length_of_passage.tolist() == lengths
        stopped = matches_of([document], tree, units=units, stopwords="default")
        assert stopped.length_of_passage.tolist() == [sum(word != "the" for word in document.text_of(i).split()) for i in wanted]
    tagged = matches_of([document], tree, units="elements", tags=["p", "title", "b"])
    wanted = [i for i in range(len(spans)) if document.labels[spans.tag[i]] in ("p", "title") and document.text_of(i).strip()]
    assert tagged.span_of_passage.tolist() == wanted
    assert matches_of([document], tree, units="documents").span_of_passage.tolist() == [0]


@examples(40)
@given(documents=st.tuples(structured_documents("d0"), structured_documents("d1")).map(list), tree=trees())
def test_segments_change_no_bit(documents, tree):
    for model in ("prox(k=3)", "prox_h", "prox_hw(titles=true)"):
        whole, cut = (parse_model(model).score(matches_of(documents, tree, cuts, units="elements")).values for cuts in ((), (1,)))
        assert whole.tolist() == cut.tolist()


@examples(40)
@given(document=structured_documents(), tree=trees())
def test_other_models_score_elements_as_they_score_passages(document, tree):
    """A passage has the same score among passages and among elements, where no other row matters."""
    query = replace(query_of(tree), tree=None)
    for model in ("bm25", "lm", "psg", "pl2"):
        rows = {}
        for units in ("passages", "elements"):
            index = index_of([document], stemmer="none", stopwords="none")
            matches = join(index._snapshot, query, Candidates(np.array([0]), np.ones(1)), units=units)
            score = parse_model(model).score(matches)
            rows[units] = dict(zip(matches.span_of_passage.tolist(), score.values.tolist(), strict=True))
        assert all(rows["elements"][span] == value for span, value in rows["passages"].items() if span in rows["elements"])
