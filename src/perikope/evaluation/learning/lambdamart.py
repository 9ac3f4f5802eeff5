"""Learns regression trees by LambdaMART (Burges 2010) with LightGBM. A search with the trees does not need LightGBM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perikope.browse.models.combination import RegressionTree
from perikope.core.errors import MissingExtra, UsageError
from perikope.evaluation.learning.examples import Group

HIGHEST_GRADE = 30
"""Highest grade that LightGBM accepts. Its gain is 2 to the power of the grade, minus 1."""


def fit_trees(
    groups: Sequence[Group],
    names: Sequence[str],
    *,
    trees: int = 150,
    leaves: int = 15,
    rate: float = 0.05,
    least: int = 20,
    seed: int = 1,
) -> tuple[tuple[RegressionTree, ...], str]:
    """Learn regression trees. Returns the trees, and the model in the text format of LightGBM.

    `trees` is the number of trees, `leaves` the maximum number of leaves of a tree, `rate` the learning rate, and
    `least` the minimum number of examples of a leaf. `names` has the names of the features.

    The weights of sampled examples are not used. These examples are not relevant, and LambdaMART compares each of them
    with every relevant passage of the topic.
    """
    try:
        import lightgbm
    except ImportError:
        raise MissingExtra("lightgbm", "ltr") from None
    useful = [group for group in groups if group.grades.sum() > 0]
    if not useful:
        raise UsageError("no topic has a relevant passage among its candidates; fetch more documents, or check the judgements")
    grades = np.concatenate([group.grades for group in useful])
    if grades.max() > HIGHEST_GRADE:
        raise UsageError(f"LambdaMART takes grades up to {HIGHEST_GRADE}, not {grades.max()}; lower the grades of the judgements")
    data = lightgbm.Dataset(
        np.concatenate([group.features for group in useful]),
        label=grades,
        group=[group.grades.size for group in useful],
        feature_name=list(names),
        free_raw_data=True,
    )
    settings = {
        "objective": "lambdarank", "num_leaves": leaves, "learning_rate": rate, "min_data_in_leaf": least, "lambda_l2": 1.0,
        "feature_fraction": 0.7, "seed": seed, "deterministic": True, "force_row_wise": True, "num_threads": 1, "verbosity": -1,
    }  # fmt: skip
    booster = lightgbm.train(settings, data, num_boost_round=trees)
    learned = tuple(_tree(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"])
    return learned, booster.model_to_string()


def _tree(root: dict[str, Any]) -> RegressionTree:
    """Convert a tree of LightGBM to arrays, in which parents come before their children."""
    rows: list[list[Any]] = []

    def add(node: dict[str, Any]) -> tuple[int, float, int]:
        """Add a node and all nodes below it. Returns its index, its value and the number of its examples."""
        number = len(rows)
        rows.append([-1, 0.0, -1, -1, 0.0])
        if "split_feature" not in node:
            rows[number][4] = float(node["leaf_value"])
            return number, float(node["leaf_value"]), int(node.get("leaf_count", 1))
        if node["decision_type"] != "<=":
            raise UsageError("LightGBM made a split that is not a comparison of numbers; perikope cannot read it")
        left, left_value, left_count = add(node["left_child"])
        right, right_value, right_count = add(node["right_child"])
        count = left_count + right_count
        value = (left_value * left_count + right_value * right_count) / count if count else 0.0
        rows[number] = [int(node["split_feature"]), float(node["threshold"]), left, right, value]
        return number, value, count

    add(root)
    feature, threshold, left, right, value = (tuple(column) for column in zip(*rows, strict=True))
    return RegressionTree(feature, threshold, left, right, value)
