"""Columns: one value per passage (or per document), and for each value a tree that explains it.

A model is arithmetic over columns. This arithmetic computes the values of all passages at once, and builds the
explanation of a single value on demand. Values and explanations come from the same expression, so they cannot disagree.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from perikope.browse.matches import Frequencies
from perikope.core.arrays import Floats, Integers
from perikope.kernels.sums import exact_squares, exact_sum
from perikope.query.group_terms import terms_in
from perikope.query.terms import Query

ROUNDING = 1e-12
"""Largest relative difference between two sums of the same numbers in different orders."""

SMALLEST = sys.float_info.min
"""A sum below this value is treated as 0, because its reciprocal overflows."""

Operation = Literal["fact", "sum", "product", "min", "max", "affine", "exp"]
"""How the value of a node is computed from its children. A `fact` is given, not computed."""

Origin = Literal["passage", "titles", "sections", "document", "neighbors", "references"]
"""The text that a value comes from: the passage itself; the titles above it; the sections around it; its document as a
whole; other text of the document, the less the farther away it is; or texts that the passage refers to."""
Origins = tuple[tuple[Origin, float], ...]
"""Origins of a value, each with its share. The shares add up to 1. Empty if the origin is not known."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A value on each token of a document, for a plot."""

    label: str
    values: tuple[float, ...]
    first_token: int
    """First token of the unit of text whose score is explained."""
    end_token: int
    """End of this unit (exclusive)."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of an explanation: a labelled value, and the operation that computes it from the node's children.

    `slope` and `intercept` belong to the operation `affine`, whose value is `slope · child + intercept`. The origins
    and the word of a node hold for all nodes below it, whatever these say.
    """

    label: str
    value: float
    operation: Operation = "fact"
    children: tuple[Node, ...] = ()
    slope: float = 1.0
    intercept: float = 0.0
    curves: Callable[[], tuple[Curve, ...]] | None = field(default=None, compare=False, repr=False)
    """Computes curves: one per word of the query, and last that of the query. None for nodes without curves."""
    origins: Origins = ()
    """The texts that the value comes from; `perikope.browse.reasons` adds them up."""
    word: str = ""
    """The word of the query that the value is due to, as the query writes it; empty if it is due to several or none."""

    def recomputed(self) -> float:
        """The value, computed again from the children. Tests compare it with `value`."""
        values = [child.value for child in self.children]
        return _RECOMPUTE[self.operation](self, values)


_RECOMPUTE: Mapping[Operation, Callable[[Node, list[float]], float]] = {
    "fact": lambda node, values: node.value,
    "sum": lambda node, values: math.fsum(values),
    "product": lambda node, values: math.prod(values),
    "min": lambda node, values: min(values),
    "max": lambda node, values: max(values),
    "affine": lambda node, values: node.slope * values[0] + node.intercept,
    "exp": lambda node, values: math.exp(values[0]),
}


@dataclass(frozen=True, slots=True)
class Column:
    """Values with their explanations. `+` adds two columns, and `*` multiplies a column by a number."""

    label: str
    values: Floats
    """One value per row."""
    explain: Callable[[int], Node]
    """Returns the explanation of the value at a row."""

    def __add__(self, other: Column) -> Column:
        # The closure refers to `explain` only: a sum must not keep the values of its summands in memory.
        label, first, second = f"{self.label} + {other.label}", self.explain, other.explain

        def explain(i: int) -> Node:
            nodes = first(i), second(i)
            return Node(label, nodes[0].value + nodes[1].value, "sum", nodes)

        return Column(label, self.values + other.values, explain)

    def __mul__(self, factor: float) -> Column:
        return self.affine(f"{factor:g} · {self.label}", factor, 0.0)

    __rmul__ = __mul__

    def affine(self, label: str, slope: float, intercept: float) -> Column:
        """The column of `slope · x + intercept` for each value x, with this label."""
        of_child = self.explain

        def explain(i: int) -> Node:
            child = of_child(i)
            return Node(label, slope * child.value + intercept, "affine", (child,), slope, intercept)

        values = slope * self.values
        if intercept:
            values += intercept
        return Column(label, values, explain)

    def exp(self, label: str) -> Column:
        """The column of `exp(x)` for each value x, with this label."""

        def explain(i: int) -> Node:
            return Node(label, float(values[i]), "exp", (self.explain(i),))

        values = np.exp(self.values)
        return Column(label, values, explain)

    def named(self, label: str) -> Column:
        """The same column with another label."""
        of_column = self.explain

        def explain(i: int) -> Node:
            node = of_column(i)
            return replace(node, label=label)

        return Column(label, self.values, explain)

    def of(self, origin: Origin) -> Column:
        """The same column; its explanations say that the values come from this text."""
        of_column = self.explain
        return Column(self.label, self.values, lambda i: replace(of_column(i), origins=((origin, 1.0),)))

    def at(self, rows: Integers) -> Column:
        """The column with the value of row `rows[i]` at row i.

        For example, a column of documents and the document of each passage give a column of passages.
        """
        of_row = self.explain
        return Column(self.label, self.values.take(rows), lambda i: of_row(int(rows[i])))


def fact(label: str, values: Floats) -> Column:
    """A column of given values. The explanation of a value is a single node with the label."""
    return Column(label, values, lambda i: Node(label, float(values[i])))


def sum_over_terms(
    label: str, query: Query, frequencies: Frequencies, factors: Mapping[str, Floats], origins: Callable[[int, int], Origins] | None = None
) -> Column:
    """For each unit of `frequencies`, the product of the factors, summed over the query terms that occur in the unit.

    Each factor has one value per entry of `frequencies`, and its key is its label in explanations. `frequencies` count
    the terms of `query`. `origins` is a function from a unit and one of its entries to the origins of the summand.
    """
    contributions = np.ones(frequencies.term.size)
    for factor in factors.values():
        contributions = contributions * factor
    units = frequencies.first_entry.size - 1
    values = np.bincount(frequencies.unit, contributions, minlength=units).astype(np.float64)

    def explain(unit: int) -> Node:
        terms = []
        for entry in range(int(frequencies.first_entry[unit]), int(frequencies.first_entry[unit + 1])):
            facts = tuple(Node(name, float(factor[entry])) for name, factor in factors.items())
            label_of_entry, word = _occurs(query, frequencies, unit, entry), query.written(query.terms[frequencies.term[entry]])
            of_entry = origins(unit, entry) if origins is not None else ()
            terms.append(Node(label_of_entry, float(contributions[entry]), "product", facts, origins=of_entry, word=word))
        return Node(label, float(values[unit]), "sum", tuple(terms))

    return Column(label, values, explain)


def _occurs(query: Query, frequencies: Frequencies, unit: int, entry: int) -> str:
    """How often the term of an entry occurs in its unit. Of a group term, the single terms that occur are named."""
    term = query.terms[frequencies.term[entry]]
    if frequencies.single_terms_in is None or len(terms_in(term)) == 1:
        return f"{query.label(term)} occurs {int(frequencies.count[entry])}×"
    counts = frequencies.single_terms_in(unit)
    return ", ".join(f"{query.label(name)} occurs {counts[name]}×" for name in terms_in(term) if name in counts)


def min_max(column: Column) -> Column:
    """The column of `(x - min) / (max - min)` for each value x; all 0 if all values are equal.

    Values that differ only by rounding are treated as equal. Otherwise rounding errors would be spread over 0 to 1 and
    decide the ranking.
    """
    low, high = (float(column.values.min()), float(column.values.max())) if column.values.size else (0.0, 0.0)
    slope = 1 / (high - low) if high - low > ROUNDING * max(abs(low), abs(high)) else 0.0
    return column.affine(f"{column.label}, min-max normalised", slope, -low * slope)


def z_score(column: Column) -> Column:
    """The column shifted and scaled to mean 0 and standard deviation 1; all 0 if values differ only by rounding."""
    values, count = column.values, max(column.values.size, 1)
    mean = exact_sum(values, 0.0) / count
    deviation = math.sqrt(exact_squares(values, mean) / count)
    slope = 1 / deviation if deviation > ROUNDING * float(np.abs(values).max(initial=0.0)) else 0.0
    return column.affine(f"{column.label}, in standard deviations from the mean", slope, -mean * slope)


def share_above_least(column: Column) -> Column:
    """The column of `(x - min) / Σ (x - min)` for each value x; all 0 if all values are equal up to rounding."""
    low, high = (float(column.values.min()), float(column.values.max())) if column.values.size else (0.0, 0.0)
    total = exact_sum(column.values, low)
    slope = 1 / total if total >= SMALLEST and high - low > ROUNDING * max(abs(low), abs(high)) else 0.0
    return column.affine(f"{column.label}, above the least ÷ its sum over all", slope, -low * slope)


def share(column: Column) -> Column:
    """The column of `x / Σ x` for each value x; all 0 if the sum is 0.

    If a value is negative, `share_above_least` is used instead.

    A sum of values with mixed signs may be near 0 or negative, and dividing by a negative sum would reverse the order.
    """
    if (column.values < 0).any():
        return share_above_least(column)
    # Sorted before adding: the order of documents in the index is arbitrary and must not change the sum's last bit.
    total = float(np.sort(column.values[column.values != 0]).sum())
    return column.affine(f"{column.label} ÷ its sum over all", 1 / total if total >= SMALLEST else 0.0, 0.0)


def share_within(column: Column, group: Integers, groups: int) -> Column:
    """The column of each value divided by the sum over its group, such as the passages of one document.

    `group` has the group of each value, a number from 0 to below `groups`. Values of a group with sum 0 become 0.
    """
    totals = np.bincount(group, column.values, minlength=groups).astype(np.float64)[group]
    slopes = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals != 0)
    values = column.values * slopes
    label = f"{column.label} ÷ its sum over the document"
    return Column(label, values, lambda i: Node(label, float(values[i]), "affine", (column.explain(i),), float(slopes[i])))


def product(label: str, first: Column, second: Column) -> Column:
    """The column of the products of two columns, row by row, with this label."""
    values = first.values * second.values
    return Column(label, values, lambda i: Node(label, float(values[i]), "product", (first.explain(i), second.explain(i))))


def sum_of(label: str, columns: Sequence[Column]) -> Column:
    """The column of the sums of one or more columns, row by row, added in the given order, with this label."""
    values = columns[0].values.copy()
    for column in columns[1:]:
        values += column.values
    return Column(label, values, lambda i: Node(label, float(values[i]), "sum", tuple(column.explain(i) for column in columns)))
