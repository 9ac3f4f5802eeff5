"""Packed vectors against their definition, one value at a time."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.kernels.vectors import CENTRED, PLAIN, SCALED, best_centroids, best_products, unpack_halves, unpack_integers, unpack_residuals

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
rows_of = st.tuples(st.integers(0, 2**31), st.integers(0, 9), st.integers(1, 6))


def drawn(seed, count, width):
    return np.random.default_rng(seed).integers(0, 256, (count, width), np.uint8)


@settings(max_examples=30, deadline=None)
@given(rows_of)
def test_residuals_are_four_values_a_byte(drawing):
    seed, count, bytes_ = drawing
    rows = drawn(seed, count, CENTRED + bytes_)
    levels = np.array([-0.3, -0.1, 0.1, 0.4], np.float32)
    table = np.array([[levels[byte >> shift & 3] for shift in (0, 2, 4, 6)] for byte in range(256)], np.float32)
    found = np.empty((count, 4 * bytes_), np.float32)
    unpack_residuals(rows, table.view(np.complex128)[:, 0], found.view(np.complex128))
    for row, values in zip(rows, found, strict=True):
        assert values.tolist() == [levels[int(byte) >> shift & 3] for byte in row[CENTRED:] for shift in (0, 2, 4, 6)]


@settings(max_examples=30, deadline=None)
@given(rows_of)
def test_integers_have_a_sign(drawing):
    seed, count, width = drawing
    rows = drawn(seed, count, SCALED + width)
    found = np.empty((count, width), np.float32)
    unpack_integers(rows, found)
    assert found.tolist() == [[float(byte) - 256 * (byte > 127) for byte in row[SCALED:].tolist()] for row in rows]


def test_every_half_is_the_value_that_numpy_gives_it():
    found = np.empty((256, 256), np.float32)
    unpack_halves(np.arange(1 << 16, dtype=np.uint16).reshape(256, 256), found.view(np.uint32), found)
    np.testing.assert_array_equal(found.ravel(), HALVES)


@settings(max_examples=60, deadline=None)
@given(rows_of, st.sampled_from([PLAIN, SCALED, CENTRED]), st.integers(1, 3))
def test_the_best_product_of_each_passage(drawing, head, centroids):
    seed, count, tokens = drawing
    generator = np.random.default_rng(seed)
    rows = drawn(seed, count, 5)
    rows[:, :2] = generator.integers(0, centroids, (count, 1)) * [1, 0] if head == CENTRED else rows[:, :2]
    scale = generator.uniform(0.1, 3, count).astype(np.float16)
    if head:
        rows[:, head - 2 : head] = scale[:, None].view(np.uint8)
    products = generator.normal(size=(count, tokens)).astype(np.float32)
    of_centroid = generator.normal(size=(centroids, tokens)).astype(np.float32)
    passage = np.sort(generator.integers(0, 3, count))
    best = np.full((3, tokens), -np.inf, np.float32)
    assert best_products(products, rows, head, of_centroid, HALVES, passage, best)
    for p in range(3):
        for t in range(tokens):
            values = [
                {PLAIN: products[i, t], SCALED: products[i, t] * np.float32(scale[i]),
                 CENTRED: (products[i, t] + of_centroid[int(rows[i, 0]) % centroids, t]) * np.float32(scale[i])}[head]
                for i in range(count) if passage[i] == p
            ]  # fmt: skip
            np.testing.assert_allclose(best[p, t], max(values, default=-np.inf), rtol=1e-6)


@settings(max_examples=30, deadline=None)
@given(rows_of)
def test_centroids_in_the_place_of_vectors(drawing):
    seed, count, tokens = drawing
    generator = np.random.default_rng(seed)
    rows, of_centroid = drawn(seed, count, 6), generator.normal(size=(300, tokens)).astype(np.float32)
    own = generator.integers(0, 300, count).astype("<u2")
    rows[:, :2] = own[:, None].view(np.uint8)
    passage = np.sort(generator.integers(0, 2, count))
    best = np.full((2, tokens), -np.inf, np.float32)
    assert best_centroids(rows, of_centroid, passage, best)
    for p in range(2):
        for t in range(tokens):
            assert best[p, t] == max((of_centroid[own[i], t] for i in range(count) if passage[i] == p), default=-np.inf)


def test_a_centroid_that_is_not_there_is_told():
    rows, passage, best = np.zeros((2, 6), np.uint8), np.zeros(2, np.int64), np.zeros((1, 1), np.float32)
    rows[1, 0] = 2
    two = np.zeros((2, 1), np.float32)
    assert not best_products(np.zeros((2, 1), np.float32), rows, CENTRED, two, HALVES, passage, best)
    assert not best_centroids(rows, two, passage, best)
