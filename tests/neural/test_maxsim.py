"""MaxSim of packed passages, in blocks and threads, compared with one pair of vectors at a time."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.neural import maxsim
from perikope.neural.maxsim import max_sim, refined_max_sim
from perikope.neural.stores.codebook import CODES, Codebook, CodedDocument, PackedVectors


def unit(generator, count, dimension=16):
    vectors = generator.normal(size=(count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def packed_vectors(book, vectors, counts, cut):
    """Two documents: `counts` are the vectors per passage, and `cut` is the number of passages of the first."""
    counts = np.array(counts, np.uint16)
    border = int(counts[:cut].sum())
    rows, tokens = book.pack(vectors), np.arange(vectors.shape[0]).astype(np.uint16)
    return PackedVectors.of(
        book, [CodedDocument(rows[:border], tokens[:border], counts[:cut]), CodedDocument(rows[border:], tokens[border:], counts[cut:])]
    )


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(maxsim, "BLOCK", 3)
    monkeypatch.setattr(maxsim, "_WORTH_A_THREAD", 1)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**31),
    st.lists(st.integers(0, 5), max_size=6),
    st.integers(1, 4),
    st.integers(0, 6),
    st.sampled_from(CODES),
    st.sampled_from([1, 2]),
    st.sampled_from([3, 1024]),
)
def test_max_sim_is_the_sum_of_the_best_of_each_token(seed, counts, asked, cut, code, threads, block):
    generator = np.random.default_rng(seed)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    lengths = generator.uniform(0.1, 2, (int(first[-1]), 1)).astype(np.float32)
    vectors, query = unit(generator, int(first[-1])) * lengths, unit(generator, asked)
    book = Codebook.fit(code, 16, vectors)
    unpacked = book.unpack(book.pack(vectors))
    before, worth = maxsim.BLOCK, maxsim._WORTH_A_THREAD
    maxsim.BLOCK, maxsim._WORTH_A_THREAD = block, 1
    try:
        scores = max_sim(query, packed_vectors(book, vectors, counts, cut), threads=threads)
    finally:
        maxsim.BLOCK, maxsim._WORTH_A_THREAD = before, worth
    wanted = [sum(max(float(q @ v) for v in unpacked[a:b]) for q in query) if b > a else 0.0 for a, b in pairwise(first)]
    np.testing.assert_allclose(scores, wanted, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.integers(0, 4), min_size=1, max_size=8), st.integers(1, 9), st.integers(0, 8))
def test_only_the_best_by_centroids_are_compared(seed, counts, refine, cut):
    generator = np.random.default_rng(seed)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    vectors, query = unit(generator, int(first[-1])), unit(generator, 3)
    book = Codebook.fit("residual", 16, vectors)
    packed = packed_vectors(book, vectors, counts, cut)
    exact, (scores, compared) = max_sim(query, packed), refined_max_sim(query, packed, refine)
    np.testing.assert_allclose(scores[compared], exact[compared], atol=1e-6)
    if refine >= len(counts):
        assert compared.all()
        return
    centroid = np.array([int(np.argmax(book.centroids @ v)) for v in vectors], int)
    rough = [sum(max(float(q @ book.centroids[c]) for c in centroid[a:b]) for q in query) if b > a else 0.0 for a, b in pairwise(first)]
    assert compared.sum() >= refine
    if (~compared).any():
        assert np.min(np.array(rough)[compared]) >= np.max(np.array(rough)[~compared]) - 1e-5
        assert scores[~compared].max() <= scores[compared].min()


def test_a_code_without_centroids_is_compared_whole(small_blocks):
    generator = np.random.default_rng(1)
    packed = packed_vectors(Codebook.fit("int8", 16, unit(generator, 4)), unit(generator, 4), [2, 2], 1)
    query = unit(generator, 2)
    scores, compared = refined_max_sim(query, packed, 1)
    assert compared.all()
    assert (scores == max_sim(query, packed)).all()


def test_no_passages():
    book = Codebook.fit("residual", 16, np.zeros((0, 16), np.float32))
    assert max_sim(np.zeros((2, 16), np.float32), PackedVectors.of(book, [])).shape == (0,)
