"""Fusion, document rankings and trees equal plain versions written from their formulas."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.browse.signals import fact, min_max, share_above_least, sum_of, z_score
from perikope.kernels.regression_trees import add_trees
from tests.properties.test_models import queries
from tests.support.collections import collections, index_of
from tests.support.examples import examples

MODELS = ["bm25", "psg_doc", "qsf_section", "pl2", "prox"]
chosen = st.lists(st.sampled_from(MODELS), min_size=1, max_size=3)
cuts = st.lists(st.integers(0, 5), max_size=1)


def values_by_name(results):
    """The score of every candidate passage."""
    return dict(zip(results.names_of(np.arange(results.matches.passages)), results.score.values.tolist(), strict=True))


def plain_normal(values, how):
    low, high = min(values), max(values)
    equal = high - low <= 1e-12 * max(abs(low), abs(high))
    if how == "none":
        return values
    if how == "zscore":
        deviation = statistics.pstdev(values)
        return [0.0 if equal else (value - statistics.fmean(values)) / deviation for value in values]
    divisor = high - low if how == "minmax" else math.fsum(value - low for value in values)
    return [0.0 if equal else (value - low) / divisor for value in values]


@examples(30)
@given(collections(), queries, chosen, st.sampled_from(["minmax", "zscore", "sum", "none"]), st.booleans(), cuts)
def test_fuse_is_the_weighted_sum_of_normalised_scores(documents, query, models, normalize, weighted, places):
    index = index_of(documents, places)
    weights = [0.5 + i for i in range(len(models))] if weighted else None
    text = f"fuse(models=[{','.join(models)}],normalize={normalize}" + (f",weights={weights})" if weighted else ")")
    fused = values_by_name(index.search(query, model=text))
    if not fused:
        return
    columns = [values_by_name(index.search(query, model=model)) for model in models]
    normal = [dict(zip(column, plain_normal(list(column.values()), normalize), strict=True)) for column in columns]
    shares = weights or [1 / len(models)] * len(models)
    for name, score in fused.items():
        expected = sum(weight * column[name] for weight, column in zip(shares, normal, strict=True))
        assert score == pytest.approx(expected, rel=1e-6, abs=1e-6)


@examples(40)
@given(collections(), queries, chosen, st.sampled_from([0, 10, 60]), cuts)
def test_rrf_fuses_the_rankings_that_its_models_give(documents, query, models, k, places):
    index = index_of(documents, places)
    results = index.search(query, model=f"rrf(models=[{','.join(models)}],k={k})", k=1000, language="all")
    # Proximity ranks the passages that it does not match last.
    rankings = [
        [name for name, _ in index.search(query, model=model, k=1000, keep_unmatched=True, language="all").names()] for model in models
    ]
    expected = {}
    for ranking in rankings:
        for rank, name in enumerate(ranking, start=1):
            expected[name] = expected.get(name, 0.0) + 1 / (k + rank)
    fused = values_by_name(results)
    assert {name: value for name, value in fused.items() if value} == pytest.approx(expected)
    assert {name for name, _ in results.names()} >= expected.keys()


@examples(25)
@given(collections(min_size=2), queries, st.lists(st.integers(0, 5), min_size=1, max_size=2))
def test_how_an_index_came_to_be_changes_no_bit(documents, query, places):
    one, other = index_of(documents), index_of(documents[::-1], places)
    for model in ("rrf", "fuse(normalize=zscore)", "fuse(normalize=sum)", "learned"):
        assert one.search(query, model=model, k=1000).names() == other.search(query, model=model, k=1000).names()
    for method in ("maxp", "sump", "firstp", "meanp(n=2)"):
        first, second = (index.search(query, model="qsf_section").document_ranking(method) for index in (one, other))
        assert first == second


@examples(40)
@given(collections(), queries, st.sampled_from(["bm25", "qsf_section"]), st.integers(1, 3), cuts)
def test_document_rankings_follow_from_the_ranking_of_passages(documents, query, model, n, places):
    results = index_of(documents, places).search(query, model=model, k=1000)
    passages = {}
    for name, score in results.names():
        document, number = name.split("#@")
        passages.setdefault(document, {})[int(number)] = score
    plain = {
        "maxp": lambda own: max(own.values()),
        "sump": lambda own: math.fsum(own.values()),
        "firstp": lambda own: own[min(own)],
        f"meanp(n={n})": lambda own: statistics.fmean(sorted(own.values())[-n:]),
    }
    for method, function in plain.items():
        expected = {document: function(own) for document, own in passages.items()}
        found = results.document_ranking(method)
        assert dict(found) == pytest.approx(expected)
        assert found == sorted(found, key=lambda pair: (-pair[1], pair[0]))


numbers = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=30)


@given(numbers)
def test_normalised_columns_follow_from_their_explanations(values):
    column = fact("x", np.array(values))
    for normal in (min_max(column), z_score(column), share_above_least(column), sum_of("sum", [column, 2 * column])):
        assert np.isfinite(normal.values).all()
        for i in range(len(values)):
            node = normal.explain(i)
            assert node.recomputed() == pytest.approx(node.value, rel=1e-9, abs=1e-9)


@given(numbers)
def test_normalised_values_are_what_they_should_be(values):
    column = fact("x", np.array(values))
    shares = share_above_least(column).values
    assert shares.sum() == pytest.approx(1 if shares.any() else 0)
    assert (shares >= -1e-9).all()
    z = z_score(column).values
    assert z.any() == (z.std() > 0.5)
    for normal in (z_score, share_above_least):
        assert normal(fact("x", np.array(values[::-1]))).values[::-1].tolist() == normal(column).values.tolist()


@st.composite
def trees(draw, features=3):
    """Nodes as (feature, threshold, left, right, value), parents first."""
    nodes = []

    def add(depth):
        number = len(nodes)
        nodes.append(None)
        value = draw(st.floats(-5, 5))
        if depth == 0 or draw(st.booleans()):
            nodes[number] = (-1, 0.0, -1, -1, value)
        else:
            feature, threshold = draw(st.integers(0, features - 1)), draw(st.sampled_from([0.0, 0.25, 0.5]))
            nodes[number] = (feature, threshold, add(depth - 1), add(depth - 1), value)
        return number

    add(3)
    return nodes


@given(st.lists(trees(), min_size=1, max_size=4), st.lists(st.tuples(*[st.sampled_from([0.0, 0.2, 0.25, 0.6, 1.0])] * 3), max_size=6))
def test_the_kernel_of_trees_equals_a_plain_walk(forest, rows):
    features = np.array(rows, np.float64).reshape(len(rows), 3)
    first = np.concatenate([[0], np.cumsum([len(tree) for tree in forest])]).astype(np.int64)
    flat = [
        (feature, threshold, left + base if left >= 0 else -1, right + base if right >= 0 else -1, value)
        for tree, base in zip(forest, first.tolist(), strict=False)
        for feature, threshold, left, right, value in tree
    ]
    feature, threshold, left, right, value = (np.array(column) for column in zip(*flat, strict=True))
    whole = [column.astype(np.int64) for column in (feature, left, right)]
    added = add_trees(features, first, whole[0], threshold.astype(float), whole[1], whole[2], value.astype(float))
    for i, row in enumerate(rows):
        expected = [0.0] * 4
        leaves = 0.0
        for tree in forest:
            node = tree[0]
            expected[3] += node[4]
            while node[2] >= 0:
                child = tree[node[2]] if row[node[0]] <= node[1] else tree[node[3]]
                expected[node[0]] += child[4] - node[4]
                node = child
            leaves += node[4]
        assert added[:, i].tolist() == pytest.approx(expected)
        assert added[:, i].sum() == pytest.approx(leaves, abs=1e-9)
