"""Every occurrence in the document counts for every passage, the nearer the more (Carmel, Shtok and Kurland, CIKM 2013)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np

from perikope.browse.matches import Matches, Positions
from perikope.browse.models import Signals, model
from perikope.browse.models.passage import Lambda, Normalize, normalized
from perikope.browse.signals import Column, Node
from perikope.core.arrays import Floats, Integers
from perikope.core.parameters import Grid, Range
from perikope.kernels.positional import (
    REACH,
    ROWS_PER_SIGMA,
    PassagePositions,
    QuadratureRules,
    WeightedPositions,
    sum_gauss,
    sum_trapezoid,
    unite_passages,
)

Kernel = Literal["gauss", "trapezoid"]
Unit = Literal["token", "char"]

SIGMA = {"gauss": 2000.0, "trapezoid": 1e5}
"""The best of the paper for each kernel."""
LISTED = 5
"""How many occurrences of a term an explanation names one by one; the rest stand together in one line."""


def positional_signals(
    matches: Matches,
    *,
    kernel: Annotated[Kernel, Grid(("gauss", "trapezoid"))] = "gauss",
    sigma: Annotated[float | None, Range(0, low_open=True), Grid((500.0, 1000.0, 2000.0, 3000.0, 1e4, 1e5, 1e6, 1e7))] = None,
    unit: Annotated[Unit, Grid(("token",))] = "token",
    points: Annotated[int, Range(1, 1000), Grid((20,))] = 20,
    normalize: Normalize = "candidates",
) -> Signals:
    """What the occurrences give to each passage, and the fetch score of its document, each normalised."""
    places = matches.characters() if unit == "char" else matches.tokens()
    source = _Occurrences(matches, places, kernel, SIGMA[kernel] if sigma is None else sigma, unit, points)
    return normalized(matches, source.column(), normalize)


@model(positional_signals)
def plm(signals: Signals, *, lam: Lambda = 0.9) -> Column:
    """What all occurrences in the document give to the passage by their distance, mixed with the score of the document.

    `(1 - λ) · PLM(p) / Σ PLM + λ · doc(d) / Σ doc` with `PLM(p) = Σ_{t ∈ q ∩ d} ln(N / N_t) Σ_{o ∈ Occ(t, d)} Σ_{j=0..k} f(o, x_j)` and
    `x_j = s + j (e - s) / k`, p from s to e in k = `points` intervals. The kernel f is `exp(-(o - x)² / 2σ²)`, or a trapezoid: 1 in the
    passages that hold o, falling by 1/σ a position outside. σ is 2000 or 100,000 where not given, in tokens or characters; doc and
    `normalize` are as in psg_doc (Carmel, Shtok and Kurland 2013, equation 4). There is no other content score under it: what is summed is
    single occurrences, each at its place, where BM25 and likelihoods weigh the number of occurrences in a text.
    """
    return (1 - lam) * signals["passage"] + lam * signals["document"]


@dataclass(frozen=True, slots=True)
class _Occurrences:
    """The occurrences of the query's terms as sources of a kernel."""

    matches: Matches
    places: Positions
    kernel: Kernel
    sigma: float
    unit: Unit
    points: int

    def column(self) -> Column:
        """What they give to each passage."""
        matches, places = self.matches, self.places
        statistics = matches.statistics
        idf = np.log(max(statistics.documents, 1) / np.maximum(statistics.document_frequency, 1))
        weight, first_occurrence = idf[matches.term_of_occurrence], matches.first_occurrence_of_document
        passages = PassagePositions(places.first_of_passage, places.last_of_passage, matches.first_passage_of_document)
        if self.kernel == "gauss":
            occurrences = WeightedPositions(places.position_of_occurrence, weight, first_occurrence)
            values = sum_gauss(occurrences, passages, self.sigma, quadrature(self.points))
        else:
            values = sum_trapezoid(*self._unions(), weight, first_occurrence, passages, self.sigma, self.points)
        label = f"PLM of the passage ({self.kernel}, σ {self.sigma:g} {self.unit}s)"
        return Column(label, values, lambda row: Node(label, float(values[row]), "sum", tuple(self._explain(row, idf))))

    def _unions(self) -> tuple[Integers, Integers]:
        """First and last position of the passages that hold each occurrence, taken together."""
        matches, places = self.matches, self.places
        first, last = unite_passages(
            places.position_of_occurrence,
            matches.first_occurrence_of_passage,
            matches.end_occurrence_of_passage,
            places.first_of_passage,
            places.last_of_passage,
        )
        return first, last

    def _explain(self, row: int, idf: Floats) -> list[Node]:
        """One node a term that occurs in the document of a passage."""
        document = self.matches.document_of_passage[row]
        own = slice(*self.matches.first_occurrence_of_document[document : document + 2].tolist())
        area, term = self._areas(row, own), self.matches.term_of_occurrence[own]
        nodes = []
        for number in np.unique(term).tolist():
            occurrences = np.flatnonzero(term == number)
            inside = self._largest_first(row, self.places.position_of_occurrence[own][occurrences], area[occurrences])
            weight = Node("ln(N ÷ N_t)", float(idf[number]))
            name = self.matches.query.terms[number].partition(":")[2]
            nodes.append(Node(f"{name!r} in the document", weight.value * inside.value, "product", (weight, inside)))
        return nodes

    def _areas(self, row: int, occurrences: slice) -> Floats:
        """What occurrences give to one passage, sampled point by point as the paper has it."""
        first, last = int(self.places.first_of_passage[row]), int(self.places.last_of_passage[row])
        if last < first:
            return np.zeros(occurrences.stop - occurrences.start)
        samples = first + np.arange(self.points + 1) * (last - first) / self.points
        if self.kernel == "gauss":
            distance = (self.places.position_of_occurrence[occurrences, None] - samples) / self.sigma
            area: Floats = np.exp(-(distance**2) / 2).sum(axis=1)
        else:
            begin, end = (side[occurrences, None] for side in self._unions())
            outside = np.maximum(0, np.maximum(begin - samples, samples - end))
            area = np.maximum(0, 1 - outside / self.sigma).sum(axis=1)
        return area

    def _largest_first(self, row: int, position: Integers, area: Floats) -> Node:
        order = np.argsort(-area, kind="stable")
        nodes = [Node(self._place(row, int(position[i])), float(area[i])) for i in order[:LISTED]]
        if rest := order.size - LISTED if order.size > LISTED else 0:
            nodes.append(Node(f"the other {rest} occurrences", math.fsum(area[order[LISTED:]])))
        return Node(f"area of {order.size}×, in {self.points + 1} points", math.fsum(node.value for node in nodes), "sum", tuple(nodes))

    def _place(self, row: int, position: int) -> str:
        """Where an occurrence stands, as seen from a passage."""
        first, last = int(self.places.first_of_passage[row]), int(self.places.last_of_passage[row])
        if first <= position <= last:
            return f"inside, at {self.unit} {position}"
        away = f"{first - position} before" if position < first else f"{position - last} after"
        return f"{away}, at {self.unit} {position}"


@lru_cache(maxsize=8)
def quadrature(points: int) -> QuadratureRules:
    """Rules that replace the sum over k + 1 equally spaced points by one over fewer, for `sum_gauss`.

    The rule with m nodes is the Gauss quadrature of the points themselves: exact for polynomials up to degree 2m - 1, its nodes the
    eigenvalues of the matrix of recurrence of the discrete Chebyshev polynomials (Golub and Welsch 1969), whose squared norms are
    products of `β_i = i² ((k+1)² - i²) / (4 (4i² - 1)) · (2/k)²`. It is wrong by `f^(2m)(ξ) / (2m)! · (k+1) β_1 … β_m`.

    Let a Gaussian stand at distance d from the middle of a passage of half-length y, both in σ. Then `|f^(n)| ≤ yⁿ (d + y + κ)ⁿ f`, κ the
    n-th root of the n-th moment of a normal variable (a Hermite polynomial is, but for signs, the moment of a shifted one), and no f in
    the passage is more than `exp(dy + y²/2)` times their mean. The last table has the largest y for which the bound stays below 1e-10,
    by d and rule.
    """
    most = min(points, 24)
    degree = np.arange(1, most + 1)
    recurrence = degree**2 * ((points + 1) ** 2 - degree**2) / (4 * (4 * degree**2 - 1)) * (2 / points) ** 2
    nodes, shares = np.zeros((most + 1, points + 1)), np.zeros((most + 1, points + 1))
    for m in degree.tolist():
        beside = np.sqrt(recurrence[: m - 1])
        nodes[m - 1, :m], vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
        shares[m - 1, :m] = (points + 1) * vectors[0] ** 2
    nodes[most], shares[most] = np.linspace(-1, 1, points + 1), 1.0
    counts = np.append(degree, points + 1)

    distance = np.arange(math.ceil(REACH * ROWS_PER_SIGMA) + 1)[:, None] / ROWS_PER_SIGMA
    log_factorial = np.array([math.lgamma(2 * m + 1) for m in degree.tolist()])
    log_moment = log_factorial - np.array([math.lgamma(m + 1) for m in degree.tolist()]) - degree * math.log(2)
    log_norm = np.cumsum(np.log(recurrence)) - log_factorial
    low, high = np.full((distance.size, most), -50.0), np.full((distance.size, most), 5.0)
    for _ in range(60):
        middle = (low + high) / 2
        y = np.exp(middle)
        bound = 2 * degree * np.log(y * (distance + y + np.exp(log_moment / (2 * degree)))) + log_norm + distance * y + y**2 / 2
        low, high = np.where(bound <= math.log(1e-10), middle, low), np.where(bound <= math.log(1e-10), high, middle)
    return QuadratureRules(nodes, shares, counts, np.append(np.exp(low), np.full((distance.size, 1), np.inf), axis=1))
