"""Order, ties, overlap and grouping, as found by looking at all pairs."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.browse.ranking import Presentation, rank
from perikope.browse.signals import fact


@st.composite
def rows(draw):
    """Matches with rows as (document, first, end, score), parents first, and fetch scores of documents."""
    found = []
    documents = draw(st.integers(1, 4))
    for document in range(documents):
        ranges = {(0, 12)} | draw(st.sets(st.sampled_from([(0, 6), (0, 3), (3, 6), (6, 12), (6, 7), (8, 12), (4, 9), (2, 2)])))
        for first, end in sorted(ranges, key=lambda own: (own[0], -own[1])):
            found.append((document, first, end, draw(st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0, -1.0]))))
    fetched = draw(st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=documents, max_size=documents))
    return found, fetched, draw(st.permutations(range(documents)))


def matches_of(found, fetched):
    return SimpleNamespace(
        documents=len(fetched),
        score_of_document=np.array(fetched),
        document_of_passage=np.array([row[0] for row in found], np.int64),
        first_token_of_passage=np.array([row[1] for row in found], np.int64),
        end_token_of_passage=np.array([row[2] for row in found], np.int64),
        in_passages=SimpleNamespace(first_entry=np.arange(len(found) + 1)),
    )


def plain(found, fetched, place, presentation):
    kept = list(range(len(found)))
    if presentation.no_overlap:
        nothing = {document for document in range(len(fetched)) if all(row[3] == 0 for row in found if row[0] == document)}
        kept = [i for i in kept if found[i][3] != 0 or (found[i][0] in nothing and not presentation.drop_unmatched)]
        taken = []
        for i in sorted(kept, key=lambda i: (-found[i][3], i)):
            tokens = {(found[i][0], x) for x in range(found[i][1], found[i][2])}
            if not any(tokens & {(found[j][0], x) for x in range(found[j][1], found[j][2])} for j in taken):
                taken.append(i)
        kept = taken
    best = {document: max((found[i][3] for i in kept if found[i][0] == document), default=0) for document in range(len(fetched))}
    keys = {
        "": lambda i: (-found[i][3], place[found[i][0]], i),
        "score": lambda i: (-best[found[i][0]], place[found[i][0]], -found[i][3], i),
        "fetch": lambda i: (-fetched[found[i][0]], place[found[i][0]], -found[i][3], i),
    }
    return sorted(kept, key=keys[presentation.group_by_document])


@settings(max_examples=300)
@given(
    rows=rows(),
    presentation=st.builds(Presentation, st.booleans(), st.sampled_from(["", "score", "fetch"]), st.booleans()),
    k=st.sampled_from([1, 2, 5, 100]),
)
def test_rank(rows, presentation, k):
    found, fetched, place = rows
    score = fact("score", np.array([row[3] for row in found]))
    ranking = rank(matches_of(found, fetched), score, k, np.array(place), presentation=presentation)
    expected = plain(found, fetched, place, presentation)[:k]
    assert ranking.rows.tolist() == expected
    assert ranking.scores.tolist() == [found[i][3] for i in expected]


def test_equal_elements_come_by_id_then_position_then_the_longer_one_first():
    found = [(0, 0, 12, 1.0), (0, 0, 6, 1.0), (0, 6, 12, 1.0), (1, 0, 12, 1.0)]
    ranking = rank(matches_of(found, [1.0, 1.0]), fact("score", np.ones(4)), 10, np.array([1, 0]))
    assert ranking.rows.tolist() == [3, 0, 1, 2]


def test_what_may_not_be_found_hides_nothing():
    found = [(0, 0, 12, 2.0), (0, 0, 6, 1.0)]
    allowed = np.array([False, True])
    ranking = rank(
        matches_of(found, [1.0]), fact("score", np.array([2.0, 1.0])), 10, np.array([0]), allowed=allowed, presentation=Presentation(True)
    )
    assert ranking.rows.tolist() == [1]


@settings(max_examples=300)
@given(
    rows=rows(),
    groups=st.lists(st.sampled_from([-1, 3, 5]), min_size=4, max_size=4),
    presentation=st.builds(Presentation, st.booleans(), st.sampled_from(["", "score", "fetch"]), st.booleans(), st.just("family")),
    k=st.integers(1, 30),
)
def test_of_each_group_only_the_first_document_has_results(rows, groups, presentation, k):
    found, fetched, place = rows
    matches = matches_of(found, fetched)
    score = fact("score", np.array([row[3] for row in found]))
    ranking = rank(matches, score, k, np.array(place), presentation=presentation, group_of_document=np.array(groups))
    everything = plain(found, fetched, place, presentation)
    # Results are in the order of their documents: the first of a group that has one is the first that is met.
    first = {}
    for i in everything:
        document = found[i][0]
        first.setdefault(groups[document] if groups[document] >= 0 else ("alone", document), document)
    assert ranking.rows.tolist() == [i for i in everything if found[i][0] in first.values()][:k]
