"""The worked numbers of the papers' formulas, through the real code."""

import math

import numpy as np
import pytest

from perikope.browse.matches import assemble
from perikope.browse.models import parse_model
from perikope.document.tree import Kind, TreeBuilder
from perikope.index.reader import Statistics
from perikope.query.terms import Query
from tests.support.collections import index_of

# Carmel 2013: two documents, passages as (first, last) tokens, occurrences by term, 1000 documents in the collection.
PASSAGES = {"A": [(0, 9), (10, 14), (15, 34)], "B": [(0, 7), (8, 19)]}
OCCURRENCES = {"A": {2: 0, 12: 1, 30: 0, 31: 1, 33: 1}, "B": {10: 0}}


@pytest.fixture
def carmel():
    query = Query("t1 t2", ("en:t1", "en:t2"), (1.0, 1.0))
    statistics = Statistics(1000, 100_000, 5000, 100_000, *(np.array([10, 100]) for _ in range(4)))
    ranges = [(d, first, last + 1) for d, document in enumerate(PASSAGES.values()) for first, last in document]
    numbers = lambda values: np.array(values, np.int64)  # noqa: E731
    column = {
        "length_of_document": numbers([35, 20]),
        "parent_of_section": numbers([-1, -1]),
        "document_of_section": numbers([0, 1]),
        "title_length_of_section": numbers([0, 0]),
        "title_first_of_section": numbers([0, 0]),
        "title_end_of_section": numbers([0, 0]),
        "document_of_passage": numbers([d for d, _, _ in ranges]),
        "section_of_passage": numbers([d for d, _, _ in ranges]),
        "first_token_of_passage": numbers([first for _, first, _ in ranges]),
        "end_token_of_passage": numbers([end for _, _, end in ranges]),
        "length_of_passage": numbers([end - first for _, first, end in ranges]),
        "term_of_occurrence": np.array([t for o in OCCURRENCES.values() for t in o.values()], np.int32),
        "position_of_occurrence": np.array([p for o in OCCURRENCES.values() for p in o], np.int32),
        "end_occurrence_of_document": numbers([5, 6]),
    }
    return assemble(query, statistics, numbers([0, 1]), np.array([6.0, 4.0]), column)


def test_psg(carmel):
    idf1, idf2, two, three = math.log(100), math.log(10), math.log(2), math.log(3)
    expected = [two * idf1, two * idf2, two * idf1 + three * idf2, 0, two * idf1]
    assert parse_model("psg").score(carmel).values == pytest.approx(expected)
    assert parse_model("psg").score(carmel).values == pytest.approx([3.192061, 1.596030, 5.721709, 0, 3.192061], abs=1e-6)


def test_psg_doc_over_all_candidates(carmel):
    values = parse_model("psg_doc").score(carmel).values
    assert values == pytest.approx([0.563297, 0.551648, 0.581759, 0.360000, 0.383297], abs=1e-6)


def test_psg_doc_within_the_document_as_printed(carmel):
    values = parse_model('psg_doc(normalize="document")').score(carmel).values
    assert values == pytest.approx([0.570372, 0.555186, 0.594442, 0.360000, 0.460000], abs=1e-6)


# Albarede 2021: root{s1{g1,g2}, s2{s3{g3,g4}, s4{g5}, s5{g6}}} and a second document with one passage; μ = 10.
TREE = ("pump system", [
    ("field", ["the invention relates to pumps", "a pump moves fluid"]),
    ("detailed description", [
        ("rotor", ["rotor with magnet", "the magnet drives the rotor shaft"]),
        ("magnetic coupling", ["the coupling transmits torque"]),
        ("seal", ["a seal ring"]),
    ]),
])  # fmt: skip


@pytest.fixture
def albarede():
    def fill(builder, children):
        for child in children:
            if isinstance(child, str):
                builder.passage(child)
            else:
                with builder.span(Kind.SECTION, "sec"):
                    builder.title(child[0])
                    fill(builder, child[1])

    first, second = TreeBuilder("d1", title=TREE[0]), TreeBuilder("d2", title="valve")
    fill(first, TREE[1])
    second.passage("a valve with magnetic actuator")
    return index_of([first.build(), second.build()], stemmer="none", stopwords="none")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("qsf_v(mu=10,alpha=0.8)", [0.200000, 0.286041, 0.838915, 0.493260, 0.286041, 1.000000, 0.532723]),
        ("qsf_v_title(mu=10,alpha=0.9)", [0.100000, 0.174568, 0.787093, 0.507844, 0.477790, 1.000000, 0.789150]),
    ],
)
def test_qsf(albarede, model, expected):
    results = albarede.search("magnetic rotor seal zzz", model=model)
    found = {(hit.document, hit.passage): hit.score for hit in results}
    order = [("d1", f"@{i}") for i in range(1, 7)] + [("d2", "@1")]
    assert [found[key] for key in order] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("qsf_section(mu=10,alpha=0.6,beta=0.1)", [0.040000, 0.089712, 0.710955, 0.524789, 0.433949, 1.000000, 0.839844]),
        ("qsf_section_propagate(mu=10,sigma=2,alpha=0.6,beta=0.3)", [0.128150, 0.177862, 0.595987, 0.409821, 0.371860, 0.775168, 0.806100]),
        ("qsf_passage_propagate(mu=10,sigma=2,alpha=0.5,beta=0.2)", [0.351306, 0.382772, 0.844418, 0.726580, 0.507938, 0.782490, 0.438417]),
    ],
)
def test_qsf_through_the_tree(albarede, model, expected):
    test_qsf(albarede, model, expected)


def test_what_qsf_propagates_before_it_is_normalised(albarede):
    def context(model):
        return parse_model(model).signals(albarede.search("magnetic rotor seal zzz").matches)["context"].explain

    def propagated(model):
        return [context(model)(passage).children[0].value for passage in range(7)]

    sections = [0.032733, 0.032733, 0.045530, 0.045530, 0.041274, 0.054373, 0.051593]
    assert propagated("qsf_section(mu=10)") == pytest.approx(sections, abs=1e-6)
    from_sections = [0.026542, 0.026542, 0.027225, 0.027225, 0.025973, 0.029826, 0.045530]
    assert propagated("qsf_section_propagate(mu=10,sigma=2)") == pytest.approx(from_sections, abs=1e-6)
    from_passages = [0.005725, 0.005498, 0.008262, 0.009112, 0.004512, 0.004157, 0.000000]
    assert propagated("qsf_passage_propagate(mu=10,sigma=2)") == pytest.approx(from_passages, abs=1e-6)
