"""The best documents of a segment: whatever is skipped, they are those of the plain sums."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perikope.kernels.accumulate import DAMAGED, FULL, SMALL, SOUND, best_of_segment, best_of_small_segment
from perikope.kernels.contributions import rare_frequencies
from perikope.kernels.fetch_inputs import (
    WINDOW,
    BestDocuments,
    ContributionTables,
    SegmentPostings,
    WeightedTerms,
    WindowBuffers,
    allowed_documents,
)
from perikope.kernels.postings import cut_windows

ROWS = 6
NOTHING = np.empty(0, np.int64), np.empty(0)
LENGTHS = 5


class Postings:
    """Random postings of a segment with several windows, frequent terms and rare ones."""

    def __init__(self, random, documents, terms, layers):
        self.documents = documents
        sizes = np.minimum((documents * random.random(terms) ** random.choice([1, 4, 12])).astype(int) + 1, documents)
        sizes[random.random(terms) < 0.1] = 0
        self.lists = [np.sort(random.choice(documents, size, replace=False)) for size in sizes]
        self.frequency = [random.choice(ROWS + 2, size, p=[0, 0.6, 0.2, 0.1, 0.05, 0.03, 0.01, 0.01]) for size in sizes]
        first_posting = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        joined = np.concatenate([*self.lists, np.zeros(0, int)]).astype(np.uint32)
        self.first_window, self.window_number, self.first_of_window, self.low = cut_windows(first_posting, joined)
        self.first_posting = np.append(self.first_of_window, joined.size).astype(np.uint32)
        self.posting_frequency = np.concatenate([*self.frequency, np.zeros(0, int)]).astype(np.uint8)
        self.classes = np.zeros(-(-documents // WINDOW) * WINDOW, np.uint16)
        self.classes[:documents] = random.integers(0, LENGTHS, documents)
        # Few different values, so that many scores are equal.
        self.tables = random.integers(1, 9, (layers, ROWS, LENGTHS)) / 8.0
        self.factors = random.integers(1, 9, (terms, layers)) / 4.0
        self.rare_at, self.first_rare = rare_frequencies(self.posting_frequency, first_posting[:-1], first_posting[1:], ROWS)
        self.rare = random.integers(1, 20, (layers, self.rare_at.size)) / 8.0

    def segment(self):
        return SegmentPostings(
            self.low, self.posting_frequency, self.window_number, self.first_posting.view(np.uint8), 4, self.classes, self.documents
        )

    def contribution(self, term):
        """What a term adds to each of its documents."""
        rare = iter(self.rare.T[self.first_rare[term] : self.first_rare[term + 1]] @ self.factors[term])
        layers = range(self.tables.shape[0])
        for document, frequency in zip(self.lists[term].tolist(), self.frequency[term].tolist(), strict=True):
            if frequency >= ROWS:
                yield document, next(rare)
            else:
                yield document, sum(self.factors[term, j] * self.tables[j, frequency, self.classes[document]] for j in layers)

    def plain(self, sign, background):
        sums = {}
        for term in range(len(self.lists)):
            for document, value in self.contribution(term):
                sums[document] = sums.get(document, 0.0) + sign * value
        return {document: value + (background[self.classes[document]] if background.size else 0.0) for document, value in sums.items()}

    def best(self, k, *, sign=1, background, allowed, base=0, held=NOTHING, threshold=None, kernel=best_of_segment):
        positive = sign > 0 and not background.size
        largest = np.maximum(self.tables.max(axis=(1, 2)), self.rare.max(axis=1, initial=0.0))
        held, room = (held[0].copy(), held[1].copy()), k + len(held[0]) + 3
        threshold = (0.0 if positive else -np.inf) if threshold is None else threshold
        buffers = WindowBuffers(
            np.zeros(WINDOW), np.zeros(WINDOW, np.uint8), np.empty(WINDOW, np.int64), np.empty(WINDOW), np.empty(WINDOW, np.uint8)
        )
        state = FULL
        while state == FULL:
            found, scores = np.empty(room, np.int64), np.empty(room)
            found[: len(held[0])], scores[: len(held[0])] = held
            # The terms are in a table with other columns, and in another order.
            shuffled = np.random.default_rng(k).permutation(len(self.lists))
            table = np.full((len(self.lists), 5), -7)
            table[shuffled, 2], table[shuffled, 3] = self.first_window[:-1], self.first_window[1:]
            terms = WeightedTerms(table, shuffled, 2, sign * self.factors, background)
            tables = ContributionTables(self.tables, ROWS, self.classes, self.rare_at, self.rare, largest, 0, True)
            best = BestDocuments(found, scores, k, len(held[0]), threshold)
            arguments = (self.segment(), terms, tables, allowed_documents(allowed)), (best, buffers)
            count, threshold, state = kernel(*map(tuple, arguments[0]), base, *map(tuple, arguments[1]))
            assert not buffers.sums.any()
            assert not buffers.seen.any()
            room *= 2
            if state == FULL:
                before = found[:count] < base
                held = found[:count][before], scores[:count][before]
        return found[:count], scores[:count], threshold, state


def check(found, scores, expected, k):
    """The best k of the expected ones, and all that tie with the last."""
    assert len(set(found.tolist())) == found.size
    assert all(
        expected[document] == pytest.approx(score, rel=1e-12) for document, score in zip(found.tolist(), scores.tolist(), strict=True)
    )
    if len(expected) <= k:
        assert set(found.tolist()) == set(expected)
    else:
        last = sorted(expected.values())[-k]
        assert {document for document, score in expected.items() if score > last + 1e-9} <= set(found.tolist())
        assert {document for document, score in expected.items() if abs(score - last) < 1e-9} <= set(found.tolist())
        assert found.size >= k


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    documents=st.sampled_from([1, 300, 4_000, 70_000, 140_000]),
    terms=st.sampled_from([1, 2, 4, 12]),
    k=st.sampled_from([1, 10, 1000]),
    layers=st.sampled_from([1, 3]),
    sign=st.sampled_from([1, 1, -1]),
    smoothed=st.booleans(),
    share=st.sampled_from([None, None, 0.5, 0.01, 0.0002]),
)
@example(seed=1, documents=140_000, terms=4, k=10, layers=1, sign=1, smoothed=False, share=None)
@example(seed=2, documents=140_000, terms=12, k=10, layers=1, sign=1, smoothed=False, share=0.0002)
def test_the_best_documents_are_those_of_the_plain_sums(seed, documents, terms, k, layers, sign, smoothed, share):
    random = np.random.default_rng(seed)
    postings = Postings(random, documents, terms, layers)
    background = -random.random(LENGTHS) if smoothed else np.zeros(0)
    allowed = np.zeros(0, np.uint8) if share is None else (random.random(documents) < share).astype(np.uint8)
    expected = postings.plain(sign, background)
    if share is not None:
        expected = {document: score for document, score in expected.items() if allowed[document]}
    found, scores, _, state = postings.best(k, sign=sign, background=background, allowed=allowed)
    assert state == SOUND
    check(found, scores, expected, k)
    if documents <= SMALL:
        same, same_scores, _, state = postings.best(k, sign=sign, background=background, allowed=allowed, kernel=best_of_small_segment)
        assert state == SOUND
        assert dict(zip(same.tolist(), same_scores.tolist(), strict=True)) == dict(zip(found.tolist(), scores.tolist(), strict=True))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), k=st.sampled_from([1, 10, 500]))
def test_the_best_of_two_segments_are_those_of_both(seed, k):
    random = np.random.default_rng(seed)
    first, second = Postings(random, 3_000, 4, 1), Postings(random, 70_000, 4, 1)
    none = {"background": np.zeros(0), "allowed": np.zeros(0, np.uint8)}
    found, scores, threshold, _ = first.best(k, **none)
    found, scores, _, _ = second.best(k, **none, base=3_000, held=(found, scores), threshold=threshold)
    expected = first.plain(1, np.zeros(0)) | {3_000 + document: score for document, score in second.plain(1, np.zeros(0)).items()}
    check(found, scores, expected, k)


@pytest.mark.parametrize("damage", ["window", "order", "document"])
def test_damaged_postings_are_noticed(damage):
    postings = Postings(np.random.default_rng(3), 70_000, 4, 1)
    if damage == "window":
        postings.window_number[-1] = 9
    elif damage == "order":
        postings.window_number[:] = 0
    else:
        postings.low[postings.first_of_window[postings.window_number == 1]] = 60_000
        postings.factors[:] = 1e-3
    assert postings.best(10, background=np.zeros(0), allowed=np.zeros(0, np.uint8))[-1] == DAMAGED


@pytest.mark.parametrize("damage", ["window", "order", "document"])
def test_damaged_postings_of_a_small_segment_are_noticed(damage):
    postings = Postings(np.random.default_rng(3), 300, 4, 1)
    if damage == "window":
        postings.window_number[-1] = 1
    elif damage == "order":
        postings.first_window[1:-1] = postings.first_window[-1]
    else:
        postings.low[-1] = 300
    assert postings.best(10, background=np.zeros(0), allowed=np.zeros(0, np.uint8), kernel=best_of_small_segment)[-1] == DAMAGED


@given(st.integers(0, 2**32))
def test_frequencies_without_a_row_are_found(seed):
    random = np.random.default_rng(seed)
    frequencies = np.where(random.random(5_000) < 0.01, 255, random.integers(1, 20, 5_000)).astype(np.uint8)
    cuts = np.sort(random.integers(0, 5_000, 8))
    first, end = cuts[0::2], cuts[1::2]
    for rows in (12, 255):
        places, of_term = rare_frequencies(frequencies, first, end, rows)
        expected = [first[t] + np.flatnonzero(frequencies[first[t] : end[t]] >= rows) for t in range(4)]
        assert places.tolist() == np.concatenate(expected).tolist()
        assert np.diff(of_term).tolist() == [len(found) for found in expected]
