"""Fusion of a run with scores of all passages."""

import numpy as np
import pytest

from perikope.evaluation.folds import fold_of_groups
from perikope.evaluation.fusion import SHARES, choose_shares, fused_rankings, min_max

NAMES = ["a", "b", "c"]
NUMBER = {name: passage for passage, name in enumerate(NAMES)}


def test_without_a_share_the_run_decides_alone():
    scores = np.array([3.0, 2.0, 1.0], np.float32)
    # (1 - w) · run + w · scores; at a half: a 0 + 0.5, b 0 + 0.25, c 0.5 + 0
    rankings = fused_rankings(scores, {"c": 2.0, "b": 1.0}, NAMES, NUMBER, 200, (0.0, 0.5, 1.0))
    assert rankings[0][0] == "c"
    assert rankings[1] == ["a", "c", "b"]
    assert rankings[2] == ["a", "b", "c"]
    assert fused_rankings(scores, {}, NAMES, NUMBER, 200, (0.5,)) == [["a", "b", "c"]]


def test_passages_that_cannot_be_results_come_from_the_run_alone():
    scores = np.array([1.0, -np.inf, -np.inf], np.float32)
    assert fused_rankings(scores, {"b": 1.0, "unknown": 2.0}, NAMES, NUMBER, 200, (0.5,)) == [["a", "b"]]
    assert fused_rankings(np.full(3, -np.inf, np.float32), {"b": 2.0, "c": 1.0}, NAMES, NUMBER, 1, (0.0, 1.0)) == [["b"], ["b"]]


@pytest.mark.parametrize("seed", range(5))
def test_the_ends_are_the_two_systems(seed):
    draw = np.random.default_rng(seed)
    names = [f"p{number}" for number in range(300)]
    number = {name: passage for passage, name in enumerate(names)}
    scores = draw.normal(size=300).astype(np.float32)
    run = {names[passage]: float(score) for passage, score in zip(draw.permutation(300)[:50].tolist(), draw.random(50), strict=True)}
    by_run, *_, by_scores = fused_rankings(scores, run, names, number, 20, SHARES)
    assert by_run == sorted(run, key=lambda name: -run[name])[:20]
    # The last of the best has 0, as all passages of the run have that are not among the best.
    assert by_scores[:19] == [names[passage] for passage in np.argsort(-scores)[:19]]


def test_min_max_spreads_over_a_range_of_other_values():
    assert min_max(np.array([0.0, 2.0, 3.0, 9.0]), np.array([2.0, 4.0])).tolist() == [0.0, 0.0, 0.5, 1.0]
    assert min_max(np.array([1.0, 2.0]), np.array([2.0, 2.0])).tolist() == [0.0, 0.0]


def test_a_share_is_chosen_on_the_topics_of_other_folds():
    values = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.5]])
    assert choose_shares(values, np.array([0, 0, 1])).tolist() == [1, 1, 0]


def test_topics_that_share_a_document_are_in_one_fold():
    documents = ["a", "a", "b", "c", "c", "c", "d", "e"]
    qids = [f"q{number}" for number in range(8)]
    judgements = {qid: {f"{document}#p{number}": 1} for number, (qid, document) in enumerate(zip(qids, documents, strict=True))}
    folds = fold_of_groups(qids, judgements, 3, 1)
    assert folds[0] == folds[1]
    assert len(set(folds[3:6])) == 1
    assert sorted(np.bincount(folds).tolist()) == [2, 3, 3]
    # Five groups are five folds at most.
    assert np.bincount(fold_of_groups(qids, judgements, 9, 1)).size == 5
