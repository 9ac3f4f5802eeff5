"""Order, ties, overlap and grouping, compared with a plain implementation that compares all pairs."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.browse.ranking import Presentation, rank
from perikope.browse.signals import fact


@st.composite
def rows(draw):
    """Matches with rows as (document, first, end, score), parents first, and fetch scores of documents."""
    results = []
    documents = draw(st.integers(1, 4))
    for document in range(documents):
        ranges = {(0, 12)} | draw(st.sets(st.sampled_from([(0, 6), (0, 3), (3, 6), (6, 12), (6, 7), (8, 12), (4, 9), (2, 2)])))
        for first, end in sorted(ranges, key=lambda bounds: (bounds[0], -bounds[1])):
            results.append((document, first, end, draw(st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0, -1.0]))))
    fetched = draw(st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=documents, max_size=documents))
    return results, fetched, draw(st.permutations(range(documents)))


def matches_of(results, fetched):
    return SimpleNamespace(
        documents=len(fetched),
        score_of_document=np.array(fetched),
        document_of_passage=np.array([row[0] for row in results], np.int64),
        first_token_of_passage=np.array([row[1] for row in results], np.int64),
        end_token_of_passage=np.array([row[2] for row in results], np.int64),
        in_passages=SimpleNamespace(first_entry=np.arange(len(results) + 1)),
    )


def plain(results, fetched, id_rank, presentation):
    remaining = list(range(len(results)))
    if presentation.no_overlap:
        nothing = {document for document in range(len(fetched)) if all(row[3] == 0 for row in results if row[0] == document)}
        remaining = [i for i in remaining if results[i][3] != 0 or (results[i][0] in nothing)]
        chosen = []
        for i in sorted(remaining, key=lambda i: (-results[i][3], i)):
            tokens = {(results[i][0], x) for x in range(results[i][1], results[i][2])}
            if not any(tokens & {(results[j][0], x) for x in range(results[j][1], results[j][2])} for j in chosen):
                chosen.append(i)
        remaining = chosen
    best = {document: max((results[i][3] for i in remaining if results[i][0] == document), default=0) for document in range(len(fetched))}
    keys = {
        "": lambda i: (-results[i][3], id_rank[results[i][0]], i),
        "score": lambda i: (-best[results[i][0]], id_rank[results[i][0]], -results[i][3], i),
        "fetch": lambda i: (-fetched[results[i][0]], id_rank[results[i][0]], -results[i][3], i),
    }
    return sorted(remaining, key=keys[presentation.group_by_document])


@settings(max_examples=300)
@given(
    rows=rows(),
    presentation=st.builds(Presentation, st.booleans(), st.sampled_from(["", "score", "fetch"])),
    k=st.sampled_from([1, 2, 5, 100]),
)
def test_rank(rows, presentation, k):
    results, fetched, id_rank = rows
    score = fact("score", np.array([row[3] for row in results]))
    ranking = rank(matches_of(results, fetched), score, k, lambda: np.array(id_rank), presentation=presentation)
    expected = plain(results, fetched, id_rank, presentation)[:k]
    assert ranking.rows.tolist() == expected
    assert ranking.scores.tolist() == [results[i][3] for i in expected]


def test_equal_elements_come_by_id_then_position_then_the_longer_one_first():
    results = [(0, 0, 12, 1.0), (0, 0, 6, 1.0), (0, 6, 12, 1.0), (1, 0, 12, 1.0)]
    ranking = rank(matches_of(results, [1.0, 1.0]), fact("score", np.ones(4)), 10, lambda: np.array([1, 0]))
    assert ranking.rows.tolist() == [3, 0, 1, 2]


@pytest.mark.parametrize("k", [1, 10, 100, 700])
@pytest.mark.parametrize("allowed", [False, True])
def test_the_best_of_many_rows(k, allowed):
    chance = np.random.default_rng(k)
    values = chance.integers(-50, 50, 5000) / 7
    mask = chance.random(5000) < 0.7 if allowed else None
    results = [(row // 100, row % 100, row % 100 + 1, value) for row, value in enumerate(values.tolist())]
    id_rank = chance.permutation(50)
    ranking = rank(matches_of(results, [1.0] * 50), fact("score", values), k, lambda: id_rank, allowed=mask)
    rows = [row for row in range(5000) if mask is None or mask[row]]
    assert ranking.rows.tolist() == sorted(rows, key=lambda row: (-values[row], id_rank[row // 100], row))[:k]
    assert ranking.scores.tolist() == values[ranking.rows].tolist()


def test_ids_are_not_read_if_no_scores_are_equal():
    results = [(0, 0, 12, 2.0), (1, 0, 6, 1.0)]
    ranking = rank(matches_of(results, [1.0, 1.0]), fact("score", np.array([1.0, 2.0])), 10, lambda: pytest.fail("ids were read"))
    assert ranking.rows.tolist() == [1, 0]


def test_what_may_not_be_found_hides_nothing():
    results = [(0, 0, 12, 2.0), (0, 0, 6, 1.0)]
    allowed = np.array([False, True])
    ranking = rank(
        matches_of(results, [1.0]),
        fact("score", np.array([2.0, 1.0])),
        10,
        lambda: np.array([0]),
        allowed=allowed,
        presentation=Presentation(True),
    )
    assert ranking.rows.tolist() == [1]


@settings(max_examples=300)
@given(
    rows=rows(),
    groups=st.lists(st.sampled_from([-1, 3, 5]), min_size=4, max_size=4),
    presentation=st.builds(Presentation, st.booleans(), st.sampled_from(["", "score", "fetch"]), st.just("family")),
    k=st.integers(1, 30),
)
def test_of_each_group_only_the_first_document_has_results(rows, groups, presentation, k):
    results, fetched, id_rank = rows
    matches = matches_of(results, fetched)
    score = fact("score", np.array([row[3] for row in results]))
    ranking = rank(matches, score, k, lambda: np.array(id_rank), presentation=presentation, group_of_document=np.array(groups))
    everything = plain(results, fetched, id_rank, presentation)
    # `everything` is in order, so the first document of a group is the first that the loop meets.
    first = {}
    for i in everything:
        document = results[i][0]
        first.setdefault(groups[document] if groups[document] >= 0 else ("alone", document), document)
    assert ranking.rows.tolist() == [i for i in everything if results[i][0] in first.values()][:k]
