"""Positional model: all occurrences in the document contribute to the score of a passage, weighted by proximity.

Source: Carmel, Shtok and Kurland, CIKM 2013.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Literal

import numpy as np

from perikope.browse.matches import Matches, Positions
from perikope.browse.models import Signals, model
from perikope.browse.models.passage import Lambda, Normalize, normalized
from perikope.browse.signals import Column, Curve, Node, Origins
from perikope.core.arrays import Array, Floats, Integers
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
"""The best σ for each kernel according to the paper."""
_ORIGINS: Mapping[bool, Origins] = {True: (("passage", 1.0),), False: (("neighbors", 1.0),)}
"""The origins of the kernel of an occurrence, by whether it is inside the passage."""
LISTED = 5
"""Number of occurrences of a term that an explanation lists one by one. One more line has the sum of the others."""


def positional_signals(
    matches: Matches,
    *,
    kernel: Annotated[
        Kernel,
        Grid(("gauss", "trapezoid")),
        "Weight of an occurrence by distance: a Gaussian, or a trapezoid that is 1 in the occurrence's passage.",
    ] = "gauss",
    sigma: Annotated[
        float | None,
        Range(0, low_open=True),
        Grid((500.0, 1000.0, 2000.0, 3000.0, 1e4, 1e5, 1e6, 1e7)),
        "Width σ of the kernel, in tokens or characters; if not given, 2000 for gauss and 100,000 for trapezoid.",
    ] = None,
    unit: Annotated[Unit, Grid(("token",)), "Unit of positions and of σ: tokens or characters."] = "token",
    points: Annotated[
        int, Range(1, 1000), Grid((20,)), "Number of equal intervals into which a passage is divided; the kernel is sampled at their ends."
    ] = 20,
    normalize: Normalize = "candidates",
) -> Signals:
    """The signals `passage` and `document`, each normalised.

    They are the kernel sum of the occurrences for each passage, and the fetch score of its document.
    """
    positions = matches.characters() if unit == "char" else matches.tokens()
    source = _Occurrences(matches, positions, kernel, SIGMA[kernel] if sigma is None else sigma, unit, points)
    return normalized(matches, source.column(), normalize)


@model(positional_signals)
def plm(signals: Signals, *, lam: Lambda = 0.9) -> Column:
    """The occurrences in the document, weighted by their distance to the passage, mixed with the score of the document.

    The score is `(1 - λ) · PLM(p) / Σ PLM + λ · doc(d) / Σ doc` (Carmel, Shtok and Kurland 2013, equation 4), with
    `PLM(p) = Σ_{t ∈ q ∩ d} ln(N / N_t) Σ_{o ∈ Occ(t, d)} Σ_{j=0..k} f(o, x_j)`. The sample points are
    `x_j = s + j (e - s) / k`, for a passage p from position s to e and k = `points`. doc and `normalize` are as in
    psg_doc.

    The kernel f is the Gaussian `exp(-(o - x)² / 2σ²)`, or a trapezoid, which is 1 in the passages that contain o and
    decreases by 1/σ per position outside them. σ is in tokens or characters. Its default is 2000 for the Gaussian and
    100,000 for the trapezoid.

    The model has no `content` parameter, because it sums over single occurrences. BM25 and likelihoods are functions of
    the number of occurrences in a text.
    """
    return (1 - lam) * signals["passage"] + lam * signals["document"]


@dataclass(frozen=True, slots=True)
class _Occurrences:
    """Computes and explains the kernel sums of plm for the passages of `matches`."""

    matches: Matches
    positions: Positions
    kernel: Kernel
    sigma: float
    unit: Unit
    points: int

    def column(self) -> Column:
        """The value of PLM for each passage."""
        matches, positions = self.matches, self.positions
        statistics = matches.statistics
        idf = np.log(np.maximum(statistics.documents, 1) / np.maximum(statistics.document_frequency, 1))
        weight, first_occurrence = idf[matches.term_of_occurrence], matches.first_occurrence_of_document
        passages = PassagePositions(positions.first_of_passage, positions.last_of_passage, matches.first_passage_of_document)
        if self.kernel == "gauss":
            occurrences = WeightedPositions(positions.position_of_occurrence, weight, first_occurrence)
            values = sum_gauss(occurrences, passages, self.sigma, quadrature(self.points))
        else:
            values = sum_trapezoid(*self._unions(), weight, first_occurrence, passages, self.sigma, self.points)
        label = f"PLM of the passage ({self.kernel}, σ {self.sigma:g} {self.unit}s)"

        def explain(row: int) -> Node:
            # The values of a curve are by token, so positions in characters have none.
            curves = partial(self._curves, row, idf) if self.unit == "token" else None
            return Node(label, float(values[row]), "sum", tuple(self._explain(row, idf)), curves=curves)

        return Column(label, values, explain)

    def _unions(self) -> tuple[Integers, Integers]:
        """For each occurrence, the first and the last position (inclusive) of the passages that contain it.

        Both are the position of the occurrence if no passage contains it.
        """
        matches, positions = self.matches, self.positions
        first, last = unite_passages(
            positions.position_of_occurrence,
            matches.first_occurrence_of_passage,
            matches.end_occurrence_of_passage,
            positions.first_of_passage,
            positions.last_of_passage,
        )
        return first, last

    def _in_document(self, row: int) -> slice:
        """The occurrences in the document of a passage."""
        document = self.matches.document_of_passage[row]
        return slice(*self.matches.first_occurrence_of_document[document : document + 2].tolist())

    def _curves(self, row: int, idf: Floats) -> tuple[Curve, ...]:
        """The kernel sum of each query term at each token of the document, times the idf, and the sum of all terms."""
        matches = self.matches
        tokens = int(matches.structure().tokens_of_document[matches.document_of_passage[row]])
        of_document, samples = self._in_document(row), np.arange(tokens)
        heights = {number: np.zeros(tokens) for number in np.unique(matches.term_of_occurrence[of_document]).tolist()}
        unions = self._unions() if self.kernel == "trapezoid" else None
        for occurrence in range(of_document.start, of_document.stop):
            term = int(matches.term_of_occurrence[occurrence])
            heights[term] += idf[term] * self._kernel(slice(occurrence, occurrence + 1), samples, unions)[0]
        unit = int(matches.first_token_of_passage[row]), int(matches.end_token_of_passage[row])
        named = [(matches.query.label(matches.query.terms[term]), values) for term, values in heights.items()]
        if len(named) != 1:
            named.append(("query", sum(heights.values(), np.zeros(tokens))))
        return tuple(Curve(name, tuple(values.tolist()), *unit) for name, values in named)

    def _explain(self, row: int, idf: Floats) -> list[Node]:
        """The explanation of one passage: one node per query term that occurs in its document."""
        of_document = self._in_document(row)
        area, term = self._areas(row, of_document), self.matches.term_of_occurrence[of_document]
        nodes = []
        for number in np.unique(term).tolist():
            occurrences = np.flatnonzero(term == number)
            inside = self._largest_first(row, self.positions.position_of_occurrence[of_document][occurrences], area[occurrences])
            weight = Node("ln(N ÷ N_t)", float(idf[number]))
            name = self.matches.query.label(self.matches.query.terms[number])
            word = self.matches.query.written(self.matches.query.terms[number])
            nodes.append(Node(f"{name} in the document", weight.value * inside.value, "product", (weight, inside), word=word))
        return nodes

    def _areas(self, row: int, occurrences: slice) -> Floats:
        """For one passage, the kernel sum of each occurrence in the slice, computed point by point as in the paper."""
        first, last = int(self.positions.first_of_passage[row]), int(self.positions.last_of_passage[row])
        if last < first:
            return np.zeros(occurrences.stop - occurrences.start)
        samples = first + np.arange(self.points + 1) * (last - first) / self.points
        area: Floats = self._kernel(occurrences, samples, self._unions() if self.kernel == "trapezoid" else None).sum(axis=1)
        return area

    def _kernel(self, occurrences: slice, samples: Array, unions: tuple[Integers, Integers] | None) -> Floats:
        """The kernel of each occurrence in the slice at each sample point. `unions` are needed for a trapezoid only."""
        if unions is None:
            distance = (self.positions.position_of_occurrence[occurrences, None] - samples) / self.sigma
            gauss: Floats = np.exp(-(distance**2) / 2)
            return gauss
        begin, end = (side[occurrences, None] for side in unions)
        outside = np.maximum(0, np.maximum(begin - samples, samples - end))
        trapezoid: Floats = np.maximum(0, 1 - outside / self.sigma)
        return trapezoid

    def _largest_first(self, row: int, position: Integers, area: Floats) -> Node:
        order = np.argsort(-area, kind="stable")
        is_inside = (self.positions.first_of_passage[row] <= position) & (position <= self.positions.last_of_passage[row])
        nodes = [Node(self._location(row, int(position[i])), float(area[i]), origins=_ORIGINS[bool(is_inside[i])]) for i in order[:LISTED]]
        for inside in (True, False):
            rest = order[LISTED:][is_inside[order[LISTED:]] == inside]
            if rest.size:
                label = f"the other {rest.size} occurrences {'inside' if inside else 'outside'}"
                nodes.append(Node(label, math.fsum(area[rest]), origins=_ORIGINS[inside]))
        return Node(f"area of {order.size}×, in {self.points + 1} points", math.fsum(node.value for node in nodes), "sum", tuple(nodes))

    def _location(self, row: int, position: int) -> str:
        """A text that says where an occurrence lies relative to a passage."""
        first, last = int(self.positions.first_of_passage[row]), int(self.positions.last_of_passage[row])
        if first <= position <= last:
            return f"inside, at {self.unit} {position}"
        away = f"{first - position} before" if position < first else f"{position - last} after"
        return f"{away}, at {self.unit} {position}"


@lru_cache(maxsize=8)
def quadrature(points: int) -> QuadratureRules:
    """Quadrature rules for `sum_gauss`, which replace a sum over k + 1 equally spaced points by a sum over fewer nodes.

    `points` is k. Each rule has a table entry `longest`, explained in the last paragraph below: the largest half-length
    of a passage for which the rule is accurate.

    The rule with m nodes is the Gauss quadrature of the discrete measure of the k + 1 points. It is exact for
    polynomials up to degree 2m - 1. Its nodes are the eigenvalues of the recurrence matrix of the discrete Chebyshev
    polynomials (Golub and Welsch 1969). The squared norms of these polynomials are products of
    `β_i = i² ((k+1)² - i²) / (4 (4i² - 1)) · (2/k)²`. The error of the rule for a function f is
    `f^(2m)(ξ) / (2m)! · (k+1) β_1 … β_m`.

    Let f be a Gaussian at distance d from the middle of a passage of half-length y, both in units of σ. Then
    `|f^(n)| ≤ yⁿ (d + y + κ)ⁿ f`, where κ is the n-th root of the n-th moment of a normal variable, because a Hermite
    polynomial is, up to signs, a moment of a shifted normal variable. Moreover, no value of f in the passage is more
    than `exp(dy + y²/2)` times the mean of its values there. `longest` has, for each d and each rule, the largest y for
    which these bounds keep the relative error below 1e-10.
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
