"""Which passages and elements are results, and what is said if there is nothing to compare them with."""

import pytest

from perikope.browse.models import parse_model
from perikope.document.tree import TreeBuilder
from perikope.search.steps import NOTHING_TO_COMPARE
from tests.support.collections import index_of


def document(id, *passages):
    builder = TreeBuilder(id, title=f"Title of {id}")
    for text in passages:
        builder.passage(text)
    return builder.build()


@pytest.fixture(scope="module")
def index():
    return index_of(
        [
            document("near", "a pump with a coupling", "nothing of the kind"),
            document("apart", "a pump", "a coupling"),
            document("one", "a pump"),
            document("single", "a zeppelin"),
        ]
    )


@pytest.mark.parametrize("model", ["prox", "prox_h", "prox_hw", "position_prior(base=prox)"])
@pytest.mark.parametrize("layout", [{}, {"elements": True}, {"elements": True, "no_overlap": True}, {"group_by_document": "score"}])
def test_a_passage_that_proximity_does_not_match_is_no_result(index, model, layout):
    found = index.search("pump AND coupling", syntax="boolean", model=model, k=100, **layout)
    assert {hit.document for hit in found} >= {"near"}
    assert all(hit.score > 0 for hit in found)
    kept = index.search("pump AND coupling", syntax="boolean", model=model, k=100, keep_unmatched=True, **layout)
    assert {hit.document for hit in kept} == {"near", "apart", "one"}
    assert [hit.name for hit in kept if hit.score] == [hit.name for hit in found]


def test_documents_that_match_nowhere_are_no_results(index):
    assert not index.search("zeppelin AND pump", syntax="boolean", model="prox", elements=True, no_overlap=True)
    assert not index.search("zeppelin AND pump", syntax="boolean", model="prox").document_ranking()


@pytest.mark.parametrize(
    ("model", "unmatched"),
    [
        ("bm25", "no term"), ("fuse(models=[bm25,psg])", "no term"), ("position_prior(base=pl2)", "no term"),
        ("prox", "score 0"), ("position_prior(base=prox)", "score 0"),
        # A normalised score of 0 is the least score, not a missing match.
        ("qsf_v_title", ""), ("fuse(models=[prox,prox_h])", ""), ("position_prior(base=qsf_v)", ""), ("rrf(models=[prox,bm25])", ""),
    ],
)  # fmt: skip
def test_what_does_not_match_a_model(model, unmatched):
    assert parse_model(model).unmatched == unmatched


@pytest.mark.parametrize("model", ["qsf_v", "qsf_v_title", "qsf_section", "fuse(models=[bm25,psg])"])
def test_a_note_says_why_a_single_candidate_scores_0(index, model):
    results = index.search("zeppelin", model=model)
    assert [hit.score for hit in results] == [0]
    assert results.notes == (NOTHING_TO_COMPARE,)
    assert not index.search("pump", model=model).notes


@pytest.mark.parametrize("model", ["bm25", "lm", "pl2", "psg_doc", "psg_neighbor", "plm"])
def test_a_single_candidate_has_a_score_above_zero(index, model):
    results = index.search("zeppelin", model=model)
    assert [hit.score > 0 for hit in results] == [True]
    assert not results.notes


def test_scores_are_compared_as_soon_as_there_are_two(index):
    scores = [hit.score for hit in index.search("pump", model="qsf_v(alpha=1.0)", k=100)]
    assert scores[0] == 1
    assert scores[-1] == 0
