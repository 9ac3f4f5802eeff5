"""Sums of weighted occurrences at sample points of passages, faster than by adding every pair.

All kernels compute, for each passage, `Σ_o w_o Σ_{j=0..k} f(o, x_j)` over the occurrences o of its document, where w_o
is the weight of o. The sample points x_j are k + 1 equally spaced points from the first to the last position of the
passage. Occurrences are ordered by document and position, and passages by document.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perikope.core.arrays import Floats, Integers
from perikope.kernels.jit import inner, kernel, step
from perikope.kernels.ordered import lower_bound

REACH = 8.5
"""Distance in σ beyond which a Gaussian is ignored: it is less than exp(-36), below the rounding error of a sum."""
ROWS_PER_SIGMA = 2
"""Rows of `QuadratureRules.longest` per σ of distance between an occurrence and the middle of a passage."""
TERMS_AT_ONCE = 4
"""Number of terms of a series that are added per pass over the points. Each pass loads and stores the sums once."""
_LARGEST_EXPONENT = 4.0
"""Largest exponent z of a series for exp(z). A larger one needs more terms, and loses digits if signs alternate."""
_HALF_CELL = (np.sqrt(REACH**2 + 4 * _LARGEST_EXPONENT) - REACH) / 2
"""Half the width h of a cell, in units of σ, such that `h (REACH + h)` is the largest exponent."""
_COST_OF_SOURCE, _COST_OF_POINT, _COST_OF_CELL, _COST_OF_SAMPLE = 12.0, 10.0, 100.0, 2.0
"""Measured costs in nanoseconds, to choose the faster of two methods. They do not affect results."""


class WeightedPositions(NamedTuple):
    """Occurrences of query terms, ordered by document and position."""

    position: Integers
    """Position of each occurrence."""
    weight: Floats
    """Weight of each occurrence, not negative."""
    first_of_document: Integers
    """Index of each document's first occurrence, and at the end the number of occurrences."""


class PassagePositions(NamedTuple):
    """Passages, ordered by document."""

    first: Integers
    """First position of each passage."""
    last: Integers
    """Last position of each passage (inclusive); less than `first` for an empty passage."""
    first_of_document: Integers
    """Index of each document's first passage, and at the end the number of passages."""


class QuadratureRules(NamedTuple):
    """Rules that replace a sum over k + 1 equally spaced points by a weighted sum over fewer nodes.

    Rules are ordered by their number of nodes. The last rule has all k + 1 points as nodes.
    """

    nodes: Floats
    """Shape (rules, k + 1): the nodes of each rule, in [-1, 1]. Only the first `count` values of a rule are set."""
    shares: Floats
    """Shape (rules, k + 1): the weight of each node."""
    count: Integers
    """Number of nodes of each rule."""
    longest: Floats
    """Shape (distances, rules): the largest half-length of a passage, in σ, for which a rule is accurate.

    Row r is for distances of r / `ROWS_PER_SIGMA` σ between occurrence and passage. The last rule has infinity.
    """


class Cells(NamedTuple):
    """The division of a document into cells of equal width."""

    low: int
    """Position of the start of the first cell."""
    width: float
    """Width of all cells together, in σ."""
    count: int
    """Number of cells."""
    sigma: float
    """Width σ of the Gaussian, in positions."""


@kernel
def sum_gauss(occurrences: WeightedPositions, passages: PassagePositions, sigma: float, rules: QuadratureRules) -> Floats:
    """For each passage, the sum of the module's docstring with `f(o, x) = exp(-(o - x)² / 2σ²)`.

    The sum of an empty passage is 0.

    For each document, the faster of two methods is used (`gauss_by_pairs` and `gauss_by_series`). The relative error of
    both is at most 2e-10. In addition, at each point they may omit up to exp(-REACH²/2) of the sum of the document's
    weights.
    """
    position, weight, first_occurrence = occurrences
    first_position, last_position, first_passage = passages
    samples = rules.nodes.shape[1]
    sums = np.zeros(first_position.size)
    rule = np.empty(first_position.size, np.int16)
    workspace = np.empty((4, 1024))
    for document in range(first_passage.size - 1):
        a, b = first_occurrence[document], first_occurrence[document + 1]
        p, e = first_passage[document], first_passage[document + 1]
        if a == b or p == e:
            continue
        low, high = position[a], position[b - 1]
        for passage in range(p, e):
            low = min(low, first_position[passage])
            high = max(high, last_position[passage])
        width = (high - low) / sigma
        row = int(np.ceil(min(width, REACH) * ROWS_PER_SIGMA))
        points = _choose_rules(first_position[p:e], last_position[p:e], sigma, rules.longest[row], rules.count, rule[p:e])
        cells = _count_cells(width)
        in_reach = min(1.0, 2 * REACH / width) if width > 0 else 1.0
        by_series = (b - a) * (cells * in_reach + 1) * _COST_OF_SOURCE + points * _COST_OF_POINT + cells * _COST_OF_CELL
        by_pairs = (b - a) * ((e - p) * in_reach + 1) * samples * _COST_OF_SAMPLE
        if by_pairs < by_series:
            gauss_by_pairs(position[a:b], weight[a:b], first_position[p:e], last_position[p:e], sigma, samples - 1, sums[p:e])
        else:
            if workspace.shape[1] < points:
                workspace = np.empty((4, points))
            gauss_by_series(
                position[a:b], weight[a:b], first_position[p:e], last_position[p:e], rule[p:e],
                Cells(low, width, int(cells), sigma), rules, workspace, sums[p:e],
            )  # fmt: skip
    return sums


@step
def _choose_rules(
    first_position: Integers, last_position: Integers, sigma: float, longest: Floats, count_of_rule: Integers, rule: NDArray[np.int16]
) -> int:
    """Write to `rule` the accurate rule with the fewest nodes for each passage; return the number of all these nodes.

    `longest` is the row of `QuadratureRules.longest` for the document.
    """
    points = 0
    length = np.int64(-1)
    chosen = 0
    for passage in range(first_position.size):
        if last_position[passage] - first_position[passage] != length:  # many passages are as long as the previous one
            length = last_position[passage] - first_position[passage]
            chosen = 0
            while length / (2 * sigma) > longest[chosen]:
                chosen += 1
        rule[passage] = chosen
        points += count_of_rule[chosen]
    return points


@step
def _count_cells(width: float) -> float:
    """The number of cells that a document needs so that no exponent of `gauss_by_series` is too large.

    `width` is the width of the document in σ. The result is a float, because it may be infinite.
    """
    if width >= REACH:
        return np.ceil(width / (2 * _HALF_CELL))
    cells = 1.0
    while width / (2 * cells) * (width - width / (2 * cells)) > _LARGEST_EXPONENT:
        cells += 1
    return cells


@kernel
def gauss_by_series(
    position: Integers, weight: Floats, first_position: Integers, last_position: Integers, rule: NDArray[np.int16],
    cells: Cells, rules: QuadratureRules, workspace: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Set the sums of the passages of one document, with one series per cell that is valid at all points of the cell.

    `rule` is the quadrature rule of each passage. `workspace` has four rows with room for every node of every passage.
    """
    passages = first_position.size
    half = cells.width / (2 * cells.count)
    coefficients = _series_of_cells(position, weight, cells, half)
    low, sigma = cells.low, cells.sigma
    centre, radius = workspace[0], workspace[1]
    for passage in range(passages):
        centre[passage] = (first_position[passage] + last_position[passage] - 2 * low) / (2 * sigma)
        radius[passage] = (last_position[passage] - first_position[passage]) / (2 * sigma)
    cell_of_passage = _cells_of_passages(centre[:passages], radius[:passages], half, cells.count)
    begin = 0
    while begin < passages:
        cell = cell_of_passage[begin] if cells.count > 1 else 0
        end = begin + 1
        while cell >= 0 and end < passages and rule[end] == rule[begin] and (cells.count == 1 or cell_of_passage[end] == cell):
            end += 1
        count = rules.count[rule[begin]]
        _sum_points(
            centre[begin:end], radius[begin:end], cell, half, coefficients,
            rules.nodes[rule[begin], :count], rules.shares[rule[begin], :count], workspace[2], workspace[3], sums[begin:end],
        )  # fmt: skip
        begin = end
    for passage in range(passages):
        if last_position[passage] < first_position[passage]:
            sums[passage] = 0.0


@step
def _series_of_cells(position: Integers, weight: Floats, cells: Cells, half: float) -> Floats:
    """The coefficients of each cell's series, shape (cells, terms); `half` is half the width of a cell, in σ.

    Let u and v be the distances of an occurrence and of a point from the cell's middle, in units of σ. The Gaussian is
    `exp(-u²/2) exp(-v²/2) Σ_n uⁿ vⁿ / n!`, so a cell needs one sum over the occurrences for each n. If |uv| ≤ z,
    omitting the terms from n = N on causes a relative error of at most `z^N e^z / N!`. N is chosen so that this is
    below 1e-11.
    """
    low, sigma = cells.low, cells.sigma
    z = half * min(cells.width - half, REACH + half)
    terms = 1
    bound = z * np.exp(z)
    while bound > 1e-11:
        terms += 1
        bound *= z / terms
    terms += -terms % TERMS_AT_ONCE
    coefficients = np.zeros((cells.count, terms))
    begin = 0
    end = 0
    for cell in range(cells.count):
        middle = low + (2 * cell + 1) * half * sigma
        while begin < position.size and position[begin] < middle - (REACH + half) * sigma:
            begin += 1
        while end < position.size and position[end] <= middle + (REACH + half) * sigma:
            end += 1
        _expand(position[begin:end], weight[begin:end], middle, sigma, coefficients[cell])
    return coefficients


@step
def _cells_of_passages(centre: Floats, radius: Floats, half: float, cells: int) -> Integers:
    """The cell that contains each passage, or -1 if the passage extends over several cells.

    `centre` is the middle and `radius` the half-length of each passage, in σ from the start of the first cell. The
    result is empty if there is only one cell.
    """
    cell_of_passage = np.zeros(centre.size if cells > 1 else 0, np.int64)
    if cells > 1:
        for passage in range(centre.size):
            cell = _cell(centre[passage] - radius[passage], half, cells)
            cell_of_passage[passage] = cell if cell == _cell(centre[passage] + radius[passage], half, cells) else -1
    return cell_of_passage


@inner
def _cell(v: float, half: float, cells: int) -> int:
    """The cell that contains the point at distance `v` from the start of the first cell, in σ."""
    cells_per_sigma = 1 / (2 * half) if half > 0 else 0.0
    return min(max(int(v * cells_per_sigma), 0), cells - 1)


@step
def _sum_points(
    centre: Floats, radius: Floats, cell: int, half: float, coefficients: Floats, nodes: Floats, shares: Floats,
    point: Floats, value: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Set the sums of passages with the same rule in one cell, or of one passage over several cells (`cell` is -1).

    `point` and `value` are buffers with room for all nodes of all passages. They hold the first nodes of all passages,
    then all second nodes, and so on. There are many passages and few nodes, so loops over passages become vector
    instructions.
    """
    size, count = centre.size, nodes.size
    for i in range(count):
        points_of_node = point[i * size : (i + 1) * size]
        for passage in range(size):
            points_of_node[passage] = centre[passage] + radius[passage] * nodes[i]
    if cell >= 0:
        _add_up(coefficients[cell], point[: count * size], (2 * cell + 1) * half, value[: count * size])
    else:
        for i in range(count):
            cell_of_point = _cell(point[i], half, coefficients.shape[0])
            _add_up(coefficients[cell_of_point], point[i : i + 1], (2 * cell_of_point + 1) * half, value[i : i + 1])
    sums[:] = 0.0
    for i in range(count):
        values_of_node = value[i * size : (i + 1) * size]
        for passage in range(size):
            sums[passage] += shares[i] * values_of_node[passage]


@inner
def _expand(position: Integers, weight: Floats, middle: float, sigma: float, coefficients: Floats) -> None:
    """Set `coefficients[n]`, which must be 0, to the sum of `w exp(-u²/2) uⁿ / n!` over the occurrences."""
    for i in range(0, position.size, 4):
        # Four occurrences at a time: their products run in parallel, and each coefficient is loaded and stored once.
        u0, power0 = _distance(position, weight, i, middle, sigma)
        u1, power1 = _distance(position, weight, i + 1, middle, sigma)
        u2, power2 = _distance(position, weight, i + 2, middle, sigma)
        u3, power3 = _distance(position, weight, i + 3, middle, sigma)
        for n in range(coefficients.size):
            coefficients[n] += (power0 + power1) + (power2 + power3)
            power0 *= u0
            power1 *= u1
            power2 *= u2
            power3 *= u3
    factorial = 1.0
    for n in range(1, coefficients.size):
        factorial *= n
        coefficients[n] /= factorial


@inner
def _distance(position: Integers, weight: Floats, at: int, middle: float, sigma: float) -> tuple[float, float]:
    """The distance u of occurrence `at` from the middle, in σ, and `weight · exp(-u²/2)`; 0 and 0 if there is none."""
    if at >= position.size:
        return 0.0, 0.0
    u = (position[at] - middle) / sigma
    return u, weight[at] * np.exp(-u * u / 2)


@inner
def _add_up(coefficients: Floats, point: Floats, middle: float, value: Floats) -> None:
    """Set `value` to `exp(-v²/2) Σ_n c_n vⁿ` at each point, where v is the point's distance from `middle`.

    Afterwards, `point` holds the distances v.
    """
    for i in range(point.size):
        point[i] -= middle
        value[i] = 0.0
    for n in range(coefficients.size - TERMS_AT_ONCE, -1, -TERMS_AT_ONCE):
        c0, c1, c2, c3 = coefficients[n], coefficients[n + 1], coefficients[n + 2], coefficients[n + 3]
        # The inner loop is over points, not over terms, so that it becomes vector instructions.
        for i in range(point.size):
            v = point[i]
            value[i] = c0 + v * (c1 + v * (c2 + v * (c3 + v * value[i])))
    for i in range(point.size):
        value[i] *= _bell(point[i])


@inner
def _bell(v: float) -> float:
    """`exp(-v²/2)` for |v| ≤ 2, with a relative error of at most 3e-11.

    It makes no function call, so that loops with it become vector instructions and take a third of the time. The 16th
    root of the result is a series in x = v²/32 ≤ 1/8, whose first omitted term is x⁸/8!.
    """
    x = v * v * (-1 / 32)
    root = 1 + x * (1 + x * (1 / 2) * (1 + x * (1 / 3) * (1 + x * (1 / 4) * (1 + x * (1 / 5) * (1 + x * (1 / 6) * (1 + x * (1 / 7)))))))
    root *= root
    root *= root
    root *= root
    return root * root


@kernel
def gauss_by_pairs(
    position: Integers,
    weight: Floats,
    first_position: Integers,
    last_position: Integers,
    sigma: float,
    intervals: int,
    sums: Floats,
) -> None:
    """Set the sums of the passages of one document, pair by pair of an occurrence and a passage in its reach.

    The Gaussian is added at the nearest sample point, then outwards until it is negligible. From one point to the next,
    the Gaussian is multiplied by a factor, and this factor by a constant, so a point costs two multiplications.
    """
    reach = REACH * sigma
    for passage in range(first_position.size):
        first, last = first_position[passage], last_position[passage]
        if last < first:
            continue
        at = lower_bound(position, 0, position.size, first - reach)
        step = (last - first) / intervals
        scaled = step / sigma
        change = np.exp(-scaled * scaled)
        total = 0.0
        while at < position.size and position[at] <= last + reach:
            nearest = 0
            if step > 0:
                nearest = min(max(int((position[at] - first) / step + 0.5), 0), intervals)
            distance = (first + nearest * step - position[at]) / sigma
            peak = np.exp(-distance * distance / 2)
            if peak == 0:
                at += 1
                continue
            sum_of_points = peak
            value = peak
            factor = np.exp(-scaled * (distance + scaled / 2))
            for _ in range(nearest, intervals):
                value *= factor
                factor *= change
                sum_of_points += value
                if value < 1e-16:
                    break
            value = peak
            factor = np.exp(scaled * (distance - scaled / 2))
            for _ in range(nearest):
                value *= factor
                factor *= change
                sum_of_points += value
                if value < 1e-16:
                    break
            total += weight[at] * sum_of_points
            at += 1
        sums[passage] = total


@kernel
def unite_passages(
    position: Integers,
    first_occurrence: Integers,
    end_occurrence: Integers,
    first_position: Integers,
    last_position: Integers,
) -> tuple[Integers, Integers]:
    """For each occurrence, the first and the last position (inclusive) of the union of the passages that contain it.

    Both are the position of the occurrence if no passage contains it. `first_occurrence` and `end_occurrence`
    (exclusive) are the range of occurrences in each passage.
    """
    first = position.copy()
    last = position.copy()
    for passage in range(first_occurrence.size):
        for at in range(first_occurrence[passage], end_occurrence[passage]):
            first[at] = min(first[at], first_position[passage])
            last[at] = max(last[at], last_position[passage])
    return first, last


@kernel
def sum_trapezoid(
    first_of_union: Integers, last_of_union: Integers, weight: Floats, first_occurrence: Integers, passages: PassagePositions,
    sigma: float, intervals: int,
) -> Floats:  # fmt: skip
    """For each passage, the sum of the module's docstring, where f is a trapezoid; 0 if the passage is empty.

    f is 1 inside the union of the passages that contain the occurrence (`unite_passages`), and decreases by 1/σ per
    position outside it. The first three arrays have one value per occurrence. `first_occurrence` has the first
    occurrence of each document, and at the end the number of occurrences.

    Both ends of the unions rise with the occurrences, because a passage that begins before the union of an earlier
    occurrence would contain that occurrence too. So the occurrences whose unions lie before, around or after a point
    form ranges, and sums over ranges are differences of running sums. Such a difference is exactly 0 for an empty
    range. Otherwise its rounding error is that of a sum over the whole document.
    """
    first_position, last_position, first_passage = passages
    sums = np.zeros(first_position.size)
    longest = 0
    for document in range(first_occurrence.size - 1):
        longest = max(longest, first_occurrence[document + 1] - first_occurrence[document])
    weights = np.zeros(longest + 1)
    firsts = np.zeros(longest + 1)
    lasts = np.zeros(longest + 1)
    bounds = np.zeros(4, np.int64)
    at_end = np.zeros(4, np.int64)
    for document in range(first_passage.size - 1):
        a, b = first_occurrence[document], first_occurrence[document + 1]
        if a == b:
            continue
        first, last = first_of_union[a:b], last_of_union[a:b]
        for i in range(b - a):
            weights[i + 1] = weights[i] + weight[a + i]
            firsts[i + 1] = firsts[i] + weight[a + i] * first[i]
            lasts[i + 1] = lasts[i] + weight[a + i] * last[i]
        bounds[:] = 0
        for passage in range(first_passage[document], first_passage[document + 1]):
            begin, end = first_position[passage], last_position[passage]
            if end < begin:
                continue
            _find_ranges(first, last, float(begin), sigma, bounds)
            for i in range(4):
                at_end[i] = bounds[i]
            _find_ranges(first, last, float(end), sigma, at_end)
            if bounds[0] == at_end[0] and bounds[1] == at_end[1] and bounds[2] == at_end[2] and bounds[3] == at_end[3]:
                # No trapezoid has a corner in the passage: the sum is a straight line, and its mean is the middle value
                sums[passage] = (intervals + 1) * _height(weights, firsts, lasts, (begin + end) / 2, sigma, bounds)
                continue
            total = 0.0
            for j in range(intervals + 1):
                x = begin + j * (end - begin) / intervals
                _find_ranges(first, last, x, sigma, bounds)
                total += _height(weights, firsts, lasts, x, sigma, bounds)
            sums[passage] = total
    return sums


@inner
def _find_ranges(first: Integers, last: Integers, x: float, sigma: float, bounds: Integers) -> None:
    """Count the unions with last ≤ x - σ, with last < x, with first ≤ x, and with first < x + σ.

    `first` and `last` are the first and last positions of the unions, both in ascending order. The four counts are
    written to `bounds`. On entry, `bounds` has the counts for the previous point, from which the search starts.
    """
    bounds[0] = _advance(last, bounds[0], x - sigma, True)
    bounds[1] = _advance(last, bounds[1], x, False)
    bounds[2] = _advance(first, bounds[2], x, True)
    bounds[3] = _advance(first, bounds[3], x + sigma, False)


@inner
def _advance(values: Integers, at: int, limit: float, inclusive: bool) -> int:
    """The number of values below `limit` or, if `inclusive`, of values that are at most `limit`.

    The values must be in ascending order. `at` is a first guess of the number. It does not change the result.
    """
    while at < values.size and (values[at] < limit or (inclusive and values[at] == limit)):
        at += 1
    while at > 0 and not (values[at - 1] < limit or (inclusive and values[at - 1] == limit)):
        at -= 1
    return at


@inner
def _height(weights: Floats, firsts: Floats, lasts: Floats, x: float, sigma: float, bounds: Integers) -> float:
    """The weighted sum of all trapezoids at x.

    `weights`, `firsts` and `lasts` are running sums of w, w · first and w · last. `bounds` is set by `_find_ranges`.
    """
    gone, ended, begun, reached = bounds[0], bounds[1], bounds[2], bounds[3]
    behind = weights[ended] - weights[gone]
    inside = weights[begun] - weights[ended]
    ahead = weights[reached] - weights[begun]
    falling = (behind * (sigma - x) + lasts[ended] - lasts[gone]) / sigma
    rising = (ahead * (sigma + x) - firsts[reached] + firsts[begun]) / sigma
    # Because of rounding, the differences may be slightly negative.
    return max(falling, 0.0) + inside + max(rising, 0.0)
