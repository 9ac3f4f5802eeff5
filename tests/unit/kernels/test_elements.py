"""What holds each token, how long elements are and which overlap, as found by looking at every token."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.elements import are_trees, count_indexed, count_marked, deepest_runs, link_runs, runs_of_positions, without_overlap
from perikope.kernels.tokens import encode_tokens


@st.composite
def spans(draw):
    """Documents of spans as (first, end, tag), in reading order; they may overlap as windows do, and some are empty."""
    documents = []
    for _ in range(draw(st.integers(0, 3))):
        tokens = draw(st.integers(0, 12))
        ranges = [(0, tokens)]
        for _ in range(draw(st.integers(0, 6))):
            first = draw(st.integers(0, tokens))
            ranges.append((first, draw(st.integers(first, tokens))))
        ranges[1:] = sorted(ranges[1:], key=lambda own: (own[0], -own[1]))
        documents.append([(first, end, draw(st.integers(0, 2))) for first, end in ranges])
    return documents


def columns(documents):
    first_span = np.cumsum([0, *(len(document) for document in documents)])
    flat = np.array([span for document in documents for span in document], np.int64).reshape(-1, 3)
    return first_span, flat[:, 0].copy(), flat[:, 1].copy(), flat[:, 2].copy()


def deepest(documents, chosen):
    """For each token of each document the chosen span with the largest number that holds it, or -1."""
    found, number = [], 0
    for document in documents:
        own = [-1] * document[0][1]
        for i, (first, end, _) in enumerate(document):
            if chosen[number + i]:
                own[first:end] = [number + i] * (end - first)
        number += len(document)
        found.append(own)
    return found


@given(spans(), st.randoms(use_true_random=False))
def test_runs_have_the_deepest_span(documents, random):
    first_span, first, end, _ = columns(documents)
    chosen = np.array([random.random() < 0.7 for _ in range(first.size)], bool)
    run_first, run_end, run_span, first_run = deepest_runs(first_span, first, end, chosen)
    expected = deepest(documents, chosen)
    before, after = link_runs(run_span, first.size)
    for document, own in enumerate(expected):
        runs = range(first_run[document], first_run[document + 1])
        spread = [int(run_span[run]) for run in runs for _ in range(run_first[run], run_end[run])]
        assert spread == own[: len(spread)]
        assert set(own[len(spread) :]) <= {-1}
        assert all(run_first[run] < run_end[run] for run in runs)
        positions = np.arange(len(own), dtype=np.int32)
        bounds = np.zeros(len(documents) + 1, np.int64)
        bounds[document + 1 :] = len(own)
        held = runs_of_positions(positions, bounds, run_end, first_run)
        assert [int(run_span[run]) if run >= 0 else -1 for run in held] == own
    for span in range(first.size):
        chain = np.flatnonzero(run_span == span).tolist()
        assert [int(after[run]) for run in chain] == [*chain[1:], -1][: len(chain)]
        assert [int(before[run]) for run in chain] == [-1, *chain][: len(chain)]


@given(st.lists(st.lists(st.sampled_from([0, 0, 5, 70_000]), max_size=8), max_size=3), st.randoms(use_true_random=False))
def test_stop_words_are_not_counted(documents, random):
    tokens = np.array([token for document in documents for token in document], np.uint32)
    codes, first_code = encode_tokens(tokens, np.cumsum([0, *map(len, documents)]).astype(np.int64))
    ranges = []
    for document, own in enumerate(documents):
        for _ in range(3):
            first = random.randint(0, len(own))
            ranges.append((document, first, random.randint(first, len(own))))
    flat = np.array(ranges, np.int64).reshape(-1, 3)
    found = count_indexed(codes, first_code[:-1], first_code[1:], flat[:, 0].copy(), flat[:, 1].copy(), flat[:, 2].copy())
    assert found.tolist() == [sum(token != 0 for token in documents[document][first:end]) for document, first, end in ranges]


@given(spans(), st.randoms(use_true_random=False))
def test_each_token_is_marked_once(documents, random):
    first_span, first, end, tag = columns(documents)
    wanted = [[random.random() < 0.5 for _ in range(document[0][1])] for document in documents]
    ranges, first_wanted = [], [0]
    for own in wanted:
        groups = itertools.groupby(range(len(own)), key=lambda x: own[x])
        ranges += [(min(places), max(places) + 1) for is_wanted, found in groups if is_wanted for places in [list(found)]]
        first_wanted.append(len(ranges))
    flat = np.array(ranges, np.int64).reshape(-1, 2)
    marked, holding = count_marked(first_span, tag, first, end, 3, np.array(first_wanted), flat[:, 0].copy(), flat[:, 1].copy())
    for number in range(3):
        tokens = {
            (d, x) for d, document in enumerate(documents) for a, b, own in document if own == number for x in range(a, b) if wanted[d][x]
        }
        assert marked[number] == len(tokens)
        assert holding[number] == sum(
            own == number and any(wanted[d][a:b]) for d, document in enumerate(documents) for a, b, own in document
        )


@given(spans(), st.randoms(use_true_random=False))
def test_what_overlaps_an_earlier_one_goes(documents, random):
    first_span, first, end, _ = columns(documents)
    rows = []
    for document in range(len(documents)):
        own = list(range(first_span[document], first_span[document + 1]))
        random.shuffle(own)
        rows += own
    kept = without_overlap(np.array(rows, np.int64), first_span, first, end)
    for document in range(len(documents)):
        taken = []
        for i in range(first_span[document], first_span[document + 1]):
            own = set(range(first[rows[i]], end[rows[i]]))
            free = not any(own & other for other in taken)
            assert kept[i] == free
            taken += [own] if free else []


numbers = st.integers(-1, 3)
rows = st.tuples(numbers, numbers, numbers, numbers, numbers)
roots = st.just((0, 0, -1, 0, 2)) | rows


@given(st.lists(st.tuples(roots, st.lists(rows | st.just((1, 0, 0, 0, 1)), max_size=2)) | st.none(), max_size=3))
def test_are_trees(documents):
    """A document is None (no span) or its root and the spans below: kind, tag, parent, first and end token."""
    spans = [[] if document is None else [document[0], *document[1]] for document in documents]
    first_span = np.cumsum([0, *map(len, spans)]).astype(np.int64)
    columns = np.array([span for own in spans for span in own], np.int64).reshape(-1, 5).T.copy()
    tokens, kinds, tags = 2, 3, 2

    def is_tree(own):
        return (
            bool(own)
            and own[0] in [(0, tag, -1, 0, tokens) for tag in range(tags)]
            and all(0 <= kind < kinds and 0 <= tag < tags and 0 <= first <= end <= tokens for kind, tag, _, first, end in own)
            and all(0 <= parent < number for number, (_, _, parent, _, _) in enumerate(own) if number)
        )

    found = are_trees(first_span, *columns, np.full(len(spans), tokens, np.int64), kinds, tags)
    assert found == all(map(is_tree, spans))
