"""Document rankings equal the maximum, sum, first or mean of the scores of a document's passages."""

import pytest

from perikope.core.errors import UsageError
from tests.support.collections import index_of, plain_document


@pytest.fixture(scope="module")
def index():
    return index_of(
        [
            plain_document("d2", "", "pump rotor", "nothing", "pump"),
            plain_document("d 1", "", "rotor", "pump pump", "pump rotor pump"),
            plain_document("d3", "", "nothing of it", "a rotor"),
        ],
        [2],
    )


def test_each_way(index):
    results = index.search("pump rotor", model="bm25", k=100)
    score = dict(results.names())
    scores_of_document = {
        id: [value for name, value in score.items() if name.startswith(id.replace(" ", "%20"))] for id in ("d 1", "d2", "d3")
    }

    def ranked(method, k=10):
        return dict(results.document_ranking(method, k))

    assert ranked("maxp") == {id: max(values) for id, values in scores_of_document.items()}
    assert ranked("sump") == pytest.approx({id: sum(values) for id, values in scores_of_document.items()})
    assert ranked("meanp(n=2)") == pytest.approx(
        {id: sum(sorted(values)[-2:]) / len(sorted(values)[-2:]) for id, values in scores_of_document.items()}
    )
    # A model without context leaves out passages without a query term: the first of the others counts.
    assert ranked("firstp") == {"d2": score["d2#@1"], "d 1": score["d%201#@1"], "d3": score["d3#@2"]}
    assert list(ranked("maxp")) == sorted(scores_of_document, key=lambda id: -max(scores_of_document[id]))
    assert len(ranked("maxp", 2)) == 2


def test_equal_scores_are_ordered_by_id():
    index = index_of([plain_document(id, "", "pump") for id in ("c", "a", "b")], [1])
    assert [id for id, _ in index.search("pump", k=1).document_ranking()] == ["a", "b", "c"]


def test_filters_of_passages_hold():
    index = index_of([plain_document("d1", "", "pump pump pump", "a pump of a rotor"), plain_document("d2", "", "pump", "rotor")])
    ranking = index.search("pump rotor", model="qsf_v", must_match=True, k=1).document_ranking("firstp")
    everything = dict(index.search("pump rotor", model="qsf_v", k=10).names())
    assert ranking == [("d1", everything["d1#@2"])]


@pytest.mark.parametrize(
    ("method", "complaint"),
    [
        ("minp", "unknown document ranking 'minp'; did you mean 'meanp'\\? valid: maxp, sump, firstp, meanp"),
        ("meanp(n=0)", "n=0 is out of range"),
        ("maxp(n=1)", "unknown parameter of maxp 'n'"),
        ("meanp(2)", "takes its parameters by name"),
    ],
)
def test_a_mistake_is_explained(index, method, complaint):
    with pytest.raises(UsageError, match=complaint):
        index.search("pump").document_ranking(method)


def test_all_documents_cannot_be_ranked_by_the_best_passages_alone(index):
    with pytest.raises(UsageError, match="if all documents are searched"):
        index.search("pump", model="bm25", documents="all").document_ranking()
    assert len(index.search("pump rotor", model="qsf_v", documents="all").document_ranking()) == 3
