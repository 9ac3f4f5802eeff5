"""Every model equals a plain implementation written straight from its formula."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.query.terms import parse_query
from perikope.text.analysis import Analyzer
from tests.support.collections import WORDS, collections, index_of
from tests.support.examples import examples
from tests.support.plain import PlainCollection, min_max

queries = (
    st.lists(st.sampled_from([*WORDS, "absent"]), min_size=1, max_size=5).filter(lambda words: set(words) - {"the", "of"}).map(" ".join)
)
ANALYZER = Analyzer()


def plain_scores(documents, text, model):
    """Score by (document id, number of the passage), for the passages of documents that hold a query term."""
    plain = PlainCollection(documents, ANALYZER)
    held = {document.labels[i] for document in documents for i in document.spans.language}
    parsed = parse_query(text, ANALYZER, ["en", "fr"] if "fr" in held else ["en"])
    query = dict(zip(parsed.terms, parsed.weights, strict=True))
    fetched = [d for d in plain.documents if set(query) & set(d.all_terms)]
    passages = {(d.document.id, i): (d, p) for d in fetched for i, p in enumerate(d.passages)}
    document_score = {d.document.id: plain.document_score(query, d) for d in fetched}
    similar = {d.document.id: plain.sim(query, d.all_terms) for d in fetched}
    if not passages:
        return {}
    if model == "bm25":
        return {key: plain.passage_score(query, d.of_span(p)) for key, (d, p) in passages.items() if set(query) & set(d.of_span(p))}
    if model == "coverage":
        return {key: plain.coverage(query, d, p) for key, (d, p) in passages.items()}
    if model.startswith("psg"):
        psg = {key: plain.psg(query, d.of_span(p)) for key, (d, p) in passages.items()}
        if model == "psg":
            return {key: value for key, value in psg.items() if set(query) & set(passages[key][0].of_span(passages[key][1]))}
        total, of_document = sum(psg.values()), {}
        for (document, _), value in psg.items():
            of_document[document] = of_document.get(document, 0.0) + value
        if "minmax" in model:
            first, second = min_max(psg), min_max(document_score)
        else:
            sums = {key: of_document[key[0]] if "document" in model else total for key in psg}
            first = {key: value / sums[key] if sums[key] else 0.0 for key, value in psg.items()}
            second = {key: value / sum(document_score.values()) for key, value in document_score.items()}
        return {key: 0.1 * first[key] + 0.9 * second[key[0]] for key in psg}
    text_of = {"qsf_v": lambda d, p: d.of_span(p), "qsf_v_title": lambda d, p: d.with_titles(p)}[model]
    alpha = {"qsf_v": 0.8, "qsf_v_title": 0.9}[model]
    content = min_max({key: plain.sim(query, text_of(d, p)) for key, (d, p) in passages.items()})
    document = min_max(similar)
    return {key: alpha * content[key] + (1 - alpha) * document[key[0]] for key in content}


@pytest.mark.parametrize(
    "model",
    ["bm25", "psg", "psg_doc", 'psg_doc(normalize="document")', 'psg_doc(normalize="minmax")', "qsf_v", "qsf_v_title", "coverage"],
)
@examples(40)
@given(documents=collections(), query=queries, cuts=st.lists(st.integers(0, 5), max_size=1))
def test_a_model_equals_its_plain_twin(model, documents, query, cuts):
    results = index_of(documents, cuts).search(query, model=model, k=1000, language="all")
    expected = plain_scores(documents, query, model)
    found = {(hit.document, int(hit.passage[1:]) - 1): hit.score for hit in results}
    assert found == pytest.approx(expected, abs=1e-9)
    order = [(-hit.score, hit.document, int(hit.passage[1:])) for hit in results]
    assert order == sorted(order)
