"""Learned combinations of features: a weighted sum, or a sum of regression trees.

Saved tables of the kind `fusion` store combinations in one of these forms:

    {"method": "linear", "weights": [0.7, …], "features": …, "training": {…}}
    {"method": "lambdamart", "trees": [TREE, …], "features": …, "training": {…}}

`features` is `{"version": 1, "normalize": "minmax", "names": ["bm25", …], "shortlist": …}`, with a shortlist such as
`{"documents": 50, "passages": 4000}`. Without it, all candidate passages get all features, as in tables of earlier
versions.

A TREE is `{"feature": […], "threshold": […], "left": […], "right": […], "value": […]}`, where each list has one value
per node. Node 0 is the root, and children have larger numbers than their parents. `left` and `right` are the numbers of
the children; in a leaf, `left` is -1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeGuard, get_args

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models import Signals
from perikope.browse.models.features import FEATURES, NORMALIZATIONS, VERSION, FeatureNormalization, features
from perikope.browse.models.shortlist import ListedPassages, Shortlist, score_of
from perikope.browse.signals import Column, Node, fact
from perikope.core.arrays import Floats, Integers
from perikope.index.saved_tables import SavedTable
from perikope.kernels.regression_trees import add_trees

LABEL = "learned score"
"""Label of the score of a combination."""
KIND = "fusion"
"""Kind of the saved tables that hold combinations."""
LARGEST = 1e9
"""Largest absolute weight or leaf value accepted from a table."""
MOST_NODES = 1 << 20
"""Largest number of nodes in all trees of a table together."""
LONGEST = 1 << 40
"""Largest number of documents or passages on a shortlist that is accepted from a table."""


@dataclass(frozen=True, slots=True)
class LinearCombination:
    """The weighted sum of normalised features, `Σ w_f · f`."""

    features: tuple[str, ...]
    """Names of the features."""
    normalize: FeatureNormalization
    """How features are normalised over the passages on the shortlist."""
    weights: tuple[float, ...]
    """Weight of each feature, aligned with `features`."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Notes on how the combination was learned."""
    shortlist: Shortlist | None = None
    """The passages whose features are computed; None for all candidate passages."""

    @property
    def used(self) -> tuple[str, ...]:
        """The features with a weight other than 0; the first feature if there are none."""
        return tuple(name for name, weight in zip(self.features, self.weights, strict=True) if weight) or self.features[:1]

    def contributions(self, features: Signals) -> Signals:
        """The contribution of each used feature to the score, by feature; `features` are the normalised features."""
        weight = dict(zip(self.features, self.weights, strict=True))
        return {name: weight[name] * features[name] for name in self.used}

    def values(self) -> dict[str, Any]:
        """The combination as plain values, for `write_table`."""
        return {"method": "linear", "features": _described(self), "weights": list(self.weights), "training": dict(self.training)}


@dataclass(frozen=True, slots=True)
class RegressionTree:
    """A regression tree, in tuples with one value per node; node 0 is the root.

    A passage goes to the left child if its feature is at most the threshold, otherwise to the right child.
    """

    feature: tuple[int, ...]
    """Index of the feature that an inner node tests, in the combination's list of features; ignored in leaves."""
    threshold: tuple[float, ...]
    """Threshold of an inner node; ignored in leaves."""
    left: tuple[int, ...]
    """Number of the left child; -1 in leaves."""
    right: tuple[int, ...]
    """Number of the right child; ignored in leaves."""
    value: tuple[float, ...]
    """Score of a leaf; in an inner node, the mean over the training examples that reach it."""


TreeNodes = tuple[Integers, Integers, Floats, Integers, Integers, Floats]
"""The nodes of several trees: arrays as `add_trees` takes them."""


@dataclass(frozen=True, slots=True)
class TreeCombination:
    """The sum of regression trees over normalised features."""

    features: tuple[str, ...]
    """Names of the features."""
    normalize: FeatureNormalization
    """How features are normalised over the passages on the shortlist."""
    trees: tuple[RegressionTree, ...]
    training: Mapping[str, Any] = field(default_factory=dict)
    """Notes on how the combination was learned."""
    shortlist: Shortlist | None = None
    """The passages whose features are computed; None for all candidate passages."""

    used: tuple[str, ...] = field(init=False, compare=False)
    """The features that a tree tests; the first feature if there are none."""
    _nodes: TreeNodes = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        tested = {feature for tree in self.trees for feature, left in zip(tree.feature, tree.left, strict=True) if left >= 0}
        object.__setattr__(self, "used", tuple(name for i, name in enumerate(self.features) if i in tested) or self.features[:1])
        object.__setattr__(self, "_nodes", _nodes_of(self.trees, self.features, self.used))

    def contributions(self, features: Signals) -> Signals:
        """The contribution of each used feature to the score, and `base`, the sum of the values of the roots.

        Each step of a passage from a node to its child changes the value. This change is attributed to the feature that
        the node tests (Saabas 2014).
        """
        columns = [features[name] for name in self.used]
        matrix = np.ascontiguousarray(np.stack([column.values for column in columns], axis=1))
        added: Floats = add_trees(matrix, *self._nodes)
        by_feature = {name: _decided(added[i], column) for i, (name, column) in enumerate(zip(self.used, columns, strict=True))}
        return {**by_feature, "base": fact("mean of the training examples", added[-1])}

    def values(self) -> dict[str, Any]:
        """The combination as plain values, for `write_table`."""
        trees = [{name: list(getattr(tree, name)) for name in _OF_NODE} for tree in self.trees]
        return {"method": "lambdamart", "features": _described(self), "trees": trees, "training": dict(self.training)}


def _nodes_of(trees: Sequence[RegressionTree], features: Sequence[str], used: Sequence[str]) -> TreeNodes:
    """The nodes of all trees, as `add_trees` takes them. Features are numbered as in `used`."""
    first = np.concatenate([[0], np.cumsum([len(tree.value) for tree in trees])]).astype(np.int64)

    def joined(name: str, kind: type) -> Any:
        return np.array([value for tree in trees for value in getattr(tree, name)], kind)

    base = np.repeat(first[:-1], np.diff(first))
    left, right = joined("left", np.int64), joined("right", np.int64)
    inner = left >= 0
    column_of_feature = np.array([used.index(name) if name in used else -1 for name in features], np.int64)
    feature = column_of_feature[np.where(inner, joined("feature", np.int64), 0)]
    threshold, value = joined("threshold", np.float64), joined("value", np.float64)
    return first, feature, threshold, np.where(inner, left + base, -1), np.where(inner, right + base, -1), value


Combination = LinearCombination | TreeCombination
_OF_SHORTLIST = ("documents", "passages")
_OF_NODE = ("feature", "threshold", "left", "right", "value")


def _decided(added: Floats, feature: Column) -> Column:
    """The column of what trees add because of a feature. The feature decides without being a factor: its slope is 0."""
    label, values, of_feature = feature.label, feature.values, feature.explain

    def explain(row: int) -> Node:
        value = float(added[row])
        return Node(f"{label} is {values[row]:.3g}", value, "affine", (of_feature(row),), 0.0, value)

    return Column(label, added, explain)


def _described(combination: Combination) -> dict[str, Any]:
    shortlist = combination.shortlist
    described = {"version": VERSION, "normalize": combination.normalize, "names": list(combination.features)}
    return described if shortlist is None else {**described, "shortlist": {name: getattr(shortlist, name) for name in _OF_SHORTLIST}}


def listed_passages(combination: Combination, matches: Matches) -> ListedPassages:
    """The passages whose features a combination takes, among all passages of some matches."""
    return ListedPassages(matches) if combination.shortlist is None else combination.shortlist.of(matches)


def contributions(combination: Combination, listed: ListedPassages, raw: Signals | None = None) -> Signals:
    """The contribution of each feature to the score of all passages, by feature.

    `listed` are the `listed_passages` of the combination. `raw` are their features, not normalised; if they are not
    given, those that the combination uses are computed.
    """
    used = combination.used
    raw = features(listed.matches, used) if raw is None else raw
    normalize = NORMALIZATIONS[combination.normalize]
    return listed.for_all(combination.contributions({name: normalize(raw[name]) for name in used}))


class CombinationScorer:
    """Scores matches by several combinations, and computes the features of each shortlist only once."""

    def __init__(self, matches: Matches) -> None:
        self._matches = matches
        self._listed: dict[Shortlist | None, tuple[ListedPassages, Signals]] = {}

    def score(self, combination: Combination) -> Column:
        """The score of each passage by a combination."""
        if combination.shortlist not in self._listed:
            listed = listed_passages(combination, self._matches)
            self._listed[combination.shortlist] = listed, features(listed.matches)
        return score_of(contributions(combination, *self._listed[combination.shortlist]), LABEL)


@lru_cache(maxsize=4)
def combination_of(table: SavedTable) -> Combination:
    """Read and check the combination of a saved table, once per table, because every search uses the same tables.

    Raises an error if it was learned with another version of the features.
    """
    method, described = table.values.get("method"), table.values.get("features")
    if not isinstance(described, dict):
        raise table.damaged('"features" must be an object with version, normalize and names')
    if described.get("version") != VERSION:
        version = described.get("version")
        raise table.damaged(f"it was learned with version {version!r} of the features, but this program has version {VERSION}")
    names, normalize = described.get("names"), described.get("normalize")
    if not _is_normalization(normalize):
        raise table.damaged(f'"normalize" must be one of {", ".join(get_args(FeatureNormalization))}')
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise table.damaged('"names" must be a list of different features')
    for name in names:
        if name not in FEATURES:
            raise table.damaged(f"there is no feature {name!r}")
    training = table.values.get("training", {})
    if not isinstance(training, dict):
        raise table.damaged('"training" must be an object')
    shortlist = _shortlist(table, described.get("shortlist"))
    if method == "linear":
        weights = table.values.get("weights")
        if not _are_numbers(weights) or len(weights) != len(names):
            raise table.damaged(f'"weights" must be a list of {len(names)} numbers, one per feature')
        return LinearCombination(tuple(names), normalize, tuple(map(float, weights)), training, shortlist)
    if method == "lambdamart":
        return TreeCombination(tuple(names), normalize, _trees(table, len(names)), training, shortlist)
    raise table.damaged('"method" must be linear or lambdamart')


def _shortlist(table: SavedTable, given: object) -> Shortlist | None:
    """The shortlist that a table describes; None if it describes none."""
    if given is None:
        return None
    if not isinstance(given, dict) or set(given) != set(_OF_SHORTLIST):
        raise table.damaged(f'"shortlist" must be an object with {" and ".join(_OF_SHORTLIST)}')
    if not all(type(value) is int and 0 < value <= LONGEST for value in given.values()):
        raise table.damaged(f'the numbers of "shortlist" must be between 1 and {LONGEST}')
    return Shortlist(**given)


def _is_normalization(value: object) -> TypeGuard[FeatureNormalization]:
    return value in get_args(FeatureNormalization)


def _are_numbers(values: object) -> TypeGuard[list[float]]:
    return isinstance(values, list) and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST for value in values
    )


def _trees(table: SavedTable, features: int) -> tuple[RegressionTree, ...]:
    given = table.values.get("trees")
    if not isinstance(given, list) or not given:
        raise table.damaged('"trees" must be a list of trees')
    if sum(len(tree.get("value") or ()) for tree in given if isinstance(tree, dict)) > MOST_NODES:
        raise table.damaged(f"its trees have more than {MOST_NODES} nodes")
    return tuple(_tree(table, number, tree, features) for number, tree in enumerate(given, 1))


def _tree(table: SavedTable, number: int, tree: object, features: int) -> RegressionTree:
    # A kernel follows the numbers of children without checks, so they must exist and be larger than those of parents.
    wrong = table.damaged(f"tree {number} is not a valid tree")
    if not isinstance(tree, dict) or not all(_are_numbers(tree.get(name)) for name in _OF_NODE):
        raise wrong
    nodes = len(tree["value"])
    if not nodes or any(len(tree[name]) != nodes for name in _OF_NODE):
        raise wrong
    whole: Sequence[str] = ("feature", "left", "right")
    if not all(isinstance(value, int) for name in whole for value in tree[name]):
        raise wrong
    for node, (feature, threshold, left, right) in enumerate(zip(*(tree[name] for name in _OF_NODE[:4]), strict=True)):
        if left == -1:
            continue
        if not (node < left < nodes and node < right < nodes and 0 <= feature < features and math.isfinite(threshold)):
            raise wrong
    columns = {name: tuple(tree[name]) for name in whole}
    return RegressionTree(**columns, threshold=tuple(map(float, tree["threshold"])), value=tuple(map(float, tree["value"])))
