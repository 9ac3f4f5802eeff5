"""Evaluate regression trees."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Floats, Integers
from perikope.kernels.jit import kernel


@kernel
def add_trees(
    features: Floats, first_node: Integers, feature: Integers, threshold: Floats, left: Integers, right: Integers, value: Floats
) -> Floats:
    """The contribution of each feature to the sum of all trees, shape (features + 1, rows).

    `features` has shape (rows, features). The trees are concatenated; `first_node` has the root of each tree, and at
    the end the number of nodes. At an inner node, a row goes to the left child if the node's feature is at most the
    threshold, else to the right child. A leaf has left -1. Children must have larger numbers than their parents.

    Each step from a node to its child changes the value. This change is attributed to the feature that the node tests.
    The last row of the result is the sum of the values of the roots.
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
