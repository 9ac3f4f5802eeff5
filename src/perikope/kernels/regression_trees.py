"""Regression trees over rows of features."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Floats, Integers
from perikope.kernels.jit import kernel


@kernel
def add_trees(
    features: Floats, first_node: Integers, feature: Integers, threshold: Floats, left: Integers, right: Integers, value: Floats
) -> Floats:
    """What each feature adds to the sum of all trees: shape (features + 1, rows); the last row is what the roots add.

    From a node a row goes left where its feature is at most the threshold, else right; a leaf has left -1. What a step
    changes in the value is put down to the feature that decided it. Children must come behind their parents.
    """
    rows, columns = features.shape
    added = np.zeros((columns + 1, rows))
    for tree in range(first_node.size - 1):
        root = first_node[tree]
        for row in range(rows):
            node = root
            added[columns, row] += value[root]
            while left[node] >= 0:
                decided_by = feature[node]
                child = left[node] if features[row, decided_by] <= threshold[node] else right[node]
                added[decided_by, row] += value[child] - value[node]
                node = child
    return added
