"""Every model says what a score is made of: which occurrence, section, neighbour, tag, and how much."""

import pytest

from perikope.browse.models import parse_model
from tests.support.collections import index_of, plain_document, structured_document
from tests.support.models import READY


@pytest.fixture(scope="module")
def index():
    return index_of([structured_document(), plain_document("d2", "Valves", "The valve opens.")], [1])


EXPLAINED = {
    "bm25": ["'rotor' occurs 1×", "idf over passages", "weight in the query"],
    "lm": ["'rotor' occurs 1×", "share of the query", "smoothing for length and rarity"],
    "pl2": ["'rotor' occurs 1×", "PL2 of the term"],
    "psg": ["'rotor' occurs 1×", "ln(N ÷ N_t)"],
    "psg_doc": ["'rotor' occurs 1×", "fetch score of the document"],
    "psg_neighbor(neighbors=2)": ["1 to the left", "2 to the left", "1 to the right", "psgDoc of the passage"],
    "plm": ["'rotor' in the document", "inside, at token", "before, at token", "ln(N ÷ N_t)"],
    "prox": ["mean influence of the query", "'rotor' at"],
    "prox_h(weights=tags(b=1.5,title=0.5))": ["'rotor' at"],
    "qsf_v": ["Sim(q, passage)", "Sim(q, document)"],
    "qsf_v_title": ["Sim(q, passage with titles)", "Sim(q, document)"],
    "qsf_section": ["average of what is directly below", "section of passage 2 to 4"],
    "qsf_section_propagate": ["at distance 1", "at distance 2", "weight of the distance"],
    "qsf_passage_propagate": ["at distance 2", "weight of the distance"],
    "position_prior(base=bm25)": ["weight of its position in the description", "'rotor' occurs 1×"],
    "first_section": ["in the first section", "fetch score of the document"],
    "first_matching_section": ["in the first section with a query term", "fetch score of the document"],
    "coverage": ["'rotor' occurs 1×", "is in a title above", "beside", "in the document", "not covered by the passage"],
    "fuse": ["score by bm25", "score by qsf_v_title", "'rotor' occurs 1×"],
    "rrf": ["rank 1 by bm25, whose score is", "idf over passages", "Sim(q, passage with titles)"],
    "learned": ["learned score"],
}
"""What an explanation of each model must name: the occurrence, section, neighbour, tag … that gave something."""


def nodes(node):
    """A node and all below it."""
    yield node
    for child in node.children:
        yield from nodes(child)


@pytest.mark.parametrize("model", EXPLAINED)
def test_an_explanation_names_what_the_score_is_made_of(index, model):
    node = index.explain("rotor seal", "d1#@3", model=model)
    for one in nodes(node):
        assert one.recomputed() == pytest.approx(one.value, rel=1e-9, abs=1e-12), one.label
    labels = [one.label for one in nodes(node)]
    for expected in EXPLAINED[model]:
        assert any(expected in label for label in labels), (expected, labels)
    scores = {hit.name: hit.score for hit in index.search("rotor seal", model=model, k=100)}
    assert node.value == scores["d1#@3"]


def test_an_explanation_names_the_tag_that_weighs():
    index = index_of([structured_document()], stemmer="none", stopwords="none")
    for model, tag in (("prox_h(weights=tags(b=1.5))", "b"), ("prox_hw(weights=tags(p=1.5))", "p")):
        labels = [node.label for node in nodes(index.explain("rotor", "d1#@2", model=model))]
        assert any(f"in <{tag}>" in label for label in labels), labels


@pytest.mark.parametrize("fetch", ["bm25", "bm25(idf=robertson)", "pl2", "dph", "lm", "lm(mu=10)"])
@pytest.mark.parametrize("options", [{}, {"expand": "bo1(terms=3)"}, {"browse_query": "seal"}, {"fetch_parts": {"description": 1.0}}])
def test_the_fetch_score_is_explained_term_by_term(index, fetch, options):
    for passage in ("d1#@1", "d1#@3"):
        found = list(nodes(index.explain("rotor of a pump rotor zeppelin", passage, model="psg_doc", fetch=fetch, **options)))
        for one in found:
            assert one.recomputed() == pytest.approx(one.value, rel=1e-9, abs=1e-12), one.label
        (score,) = [one for one in found if one.label == "fetch score of the document"]
        assert score.operation == "sum"
        terms = [one.label for one in score.children]
        pumps = 1 if "fetch_parts" in options else 3  # two are in titles
        assert {"'rotor' occurs 3×", f"'pump' occurs {pumps}×"} <= {*terms}
        assert ("smoothing for length" in terms) == fetch.startswith("lm")


def test_a_fetch_score_of_somebody_else_is_a_fact(index):
    for options in ({"candidates": {"d1": -3.0, "d2": -5.0}}, {"fetch": "sim"}, {"rescore": "bm25"}):
        found = list(nodes(index.explain("rotor", "d1#@3", model="psg_doc", **options)))
        (score,) = [one for one in found if one.label == "fetch score of the document"]
        assert (score.operation, score.children) == ("fact", ())


def test_every_model_has_its_explanation_tested():
    assert {parse_model(model).definition.name for model in EXPLAINED} | {"prox_hw"} == {*READY}
