"""What every occurrence of a document gives to each of its passages, by distance: sums over sample points, without sampling.

All kernels give, for each passage, `Σ_o w_o Σ_{j=0..k} f(o, x_j)` with the k + 1 equally spaced points x_j from its first to its last
position. They are called with occurrences in order of position within a document, and passages in order of document.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perikope.core.arrays import Floats, Integers
from perikope.kernels.jit import kernel

REACH = 8.5
"""In units of σ: what lies further from an occurrence gets less than exp(-36) of it, below the rounding of a sum."""
ROWS_A_SIGMA = 2
"""Rows of the table of quadratures: one for each half σ of distance between an occurrence and the middle of a passage."""
TERMS_AT_ONCE = 4
"""Of a series that is added up at many places: sums are loaded and stored once for so many terms."""
_LARGEST_EXPONENT = 4.0
"""Of a series: larger ones would need more terms, and lose digits where terms alternate."""
_HALF_CELL = (np.sqrt(REACH**2 + 4 * _LARGEST_EXPONENT) - REACH) / 2
"""In units of σ: with it, `half (REACH + half)` is the largest exponent."""
_COST_OF_SOURCE, _COST_OF_POINT, _COST_OF_CELL, _COST_OF_SAMPLE = 12.0, 10.0, 100.0, 2.0
"""Nanoseconds, as measured; only what they are to each other matters, and only for the time taken."""


@kernel
def sum_gauss(
    position: Integers,
    weight: Floats,
    first_occurrence: Integers,
    first_position: Integers,
    last_position: Integers,
    first_passage: Integers,
    sigma: float,
    nodes: Floats,
    shares: Floats,
    count_of_rule: Integers,
    longest: Floats,
) -> Floats:
    """The sums with `f(o, x) = exp(-(o - x)² / 2σ²)`; a passage that ends before it begins has 0.

    Each document is summed in the cheaper of two ways. Both are exact to 2e-10 of each sum, and besides may leave out, at each point,
    exp(-REACH²/2) of what the document weighs. A rule of quadrature r has `count_of_rule[r]` nodes in [-1, 1], and holds for passages of
    half-length up to `longest[distance, r]` σ; the last rule is the sample points themselves and always holds.
    """
    samples = nodes.shape[1]
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
        row = int(np.ceil(min(width, REACH) * ROWS_A_SIGMA))
        points = 0
        length = np.int64(-1)
        chosen = 0
        for passage in range(p, e):
            if last_position[passage] - first_position[passage] != length:  # many are as long as the one before
                length = last_position[passage] - first_position[passage]
                chosen = 0
                while length / (2 * sigma) > longest[row, chosen]:
                    chosen += 1
            rule[passage] = chosen
            points += count_of_rule[chosen]
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
                position[a:b], weight[a:b], first_position[p:e], last_position[p:e], rule[p:e], workspace,
                low, width, int(cells), sigma, nodes, shares, count_of_rule, sums[p:e],
            )  # fmt: skip
    return sums


@kernel
def _count_cells(width: float) -> float:
    """Into how many cells `gauss_by_series` cuts a document, so that no exponent is too large; may be infinite."""
    if width >= REACH:
        return np.ceil(width / (2 * _HALF_CELL))
    cells = 1.0
    while width / (2 * cells) * (width - width / (2 * cells)) > _LARGEST_EXPONENT:
        cells += 1
    return cells


@kernel
def gauss_by_series(
    position: Integers,
    weight: Floats,
    first_position: Integers,
    last_position: Integers,
    rule: NDArray[np.int16],
    workspace: Floats,
    low: int,
    width: float,
    cells: int,
    sigma: float,
    nodes: Floats,
    shares: Floats,
    count_of_rule: Integers,
    sums: Floats,
) -> None:
    """The document is cut into cells, each with a series that gives the sum over all occurrences at any of its points.

    With u and v the distances of occurrence and point from the cell's middle, in units of σ, the kernel is
    `exp(-u²/2) exp(-v²/2) Σ_n uⁿ vⁿ / n!`, so that a cell needs one sum over the occurrences for each n. Where |uv| ≤ z, leaving off
    all from n = N is wrong by at most `z^N e^z / N!` of the value, and N is taken so that this is below 1e-11. `workspace` has four rows
    with a place for every point of every passage.
    """
    half = width / (2 * cells)
    z = half * min(width - half, REACH + half)
    terms = 1
    bound = z * np.exp(z)
    while bound > 1e-11:
        terms += 1
        bound *= z / terms
    terms += -terms % TERMS_AT_ONCE
    coefficients = np.zeros((cells, terms))
    begin = 0
    end = 0
    for cell in range(cells):
        middle = low + (2 * cell + 1) * half * sigma
        while begin < position.size and position[begin] < middle - (REACH + half) * sigma:
            begin += 1
        while end < position.size and position[end] <= middle + (REACH + half) * sigma:
            end += 1
        _expand(position[begin:end], weight[begin:end], middle, sigma, coefficients[cell])
    passages = first_position.size
    centre, radius, place, value = workspace[0], workspace[1], workspace[2], workspace[3]
    for passage in range(passages):
        centre[passage] = (first_position[passage] + last_position[passage] - 2 * low) / (2 * sigma)
        radius[passage] = (last_position[passage] - first_position[passage]) / (2 * sigma)
    cell_of_passage = np.zeros(passages if cells > 1 else 0, np.int64)
    a_cell = 1 / (2 * half) if half > 0 else 0.0
    if cells > 1:
        for passage in range(passages):
            cell = _cell(centre[passage] - radius[passage], a_cell, cells)
            cell_of_passage[passage] = cell if cell == _cell(centre[passage] + radius[passage], a_cell, cells) else -1
    begin = 0
    while begin < passages:
        cell = cell_of_passage[begin] if cells > 1 else 0
        end = begin + 1
        while cell >= 0 and end < passages and rule[end] == rule[begin] and (cells == 1 or cell_of_passage[end] == cell):
            end += 1
        _sum_points(
            centre[begin:end], radius[begin:end], cell, half, a_cell, coefficients,
            nodes[rule[begin]], shares[rule[begin]], count_of_rule[rule[begin]], place, value, sums[begin:end],
        )  # fmt: skip
        begin = end
    for passage in range(passages):
        if last_position[passage] < first_position[passage]:
            sums[passage] = 0.0


@kernel
def _cell(v: float, a_cell: float, cells: int) -> int:
    """The cell that a point lies in."""
    return min(max(int(v * a_cell), 0), cells - 1)


@kernel
def _sum_points(
    centre: Floats,
    radius: Floats,
    cell: int,
    half: float,
    a_cell: float,
    coefficients: Floats,
    nodes: Floats,
    shares: Floats,
    count: int,
    place: Floats,
    value: Floats,
    sums: Floats,
) -> None:
    """Sum over the points of passages that have the same rule and lie in one cell, or of one passage whose points are of several (-1).

    All first points stand side by side, then all second ones: passages are many and points few, and so all loops are vector instructions.
    """
    size = centre.size
    for i in range(count):
        own = place[i * size : (i + 1) * size]
        for passage in range(size):
            own[passage] = centre[passage] + radius[passage] * nodes[i]
    if cell >= 0:
        _add_up(coefficients[cell], place[: count * size], (2 * cell + 1) * half, value[: count * size])
    else:
        for i in range(count):
            own_cell = _cell(place[i], a_cell, coefficients.shape[0])
            _add_up(coefficients[own_cell], place[i : i + 1], (2 * own_cell + 1) * half, value[i : i + 1])
    sums[:] = 0.0
    for i in range(count):
        given = value[i * size : (i + 1) * size]
        for passage in range(size):
            sums[passage] += shares[i] * given[passage]


@kernel
def _expand(position: Integers, weight: Floats, middle: float, sigma: float, coefficients: Floats) -> None:
    """Add up `w exp(-u²/2) uⁿ / n!` over the occurrences for each n."""
    for i in range(0, position.size, 4):
        # Four at a time: their chains of products run side by side, and a coefficient is loaded and stored once.
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


@kernel
def _distance(position: Integers, weight: Floats, at: int, middle: float, sigma: float) -> tuple[float, float]:
    """Distance of an occurrence from the middle, in units of σ, and what it weighs there; nothing behind the last one."""
    if at >= position.size:
        return 0.0, 0.0
    u = (position[at] - middle) / sigma
    return u, weight[at] * np.exp(-u * u / 2)


@kernel
def _add_up(coefficients: Floats, place: Floats, middle: float, value: Floats) -> None:
    """`exp(-v²/2) Σ_n c_n vⁿ` at each place, v its distance from the middle, which the places are moved to."""
    for i in range(place.size):
        place[i] -= middle
        value[i] = 0.0
    for n in range(coefficients.size - TERMS_AT_ONCE, -1, -TERMS_AT_ONCE):
        c0, c1, c2, c3 = coefficients[n], coefficients[n + 1], coefficients[n + 2], coefficients[n + 3]
        # Vector instructions: this loop is over places and not over terms for their sake.
        for i in range(place.size):
            v = place[i]
            value[i] = c0 + v * (c1 + v * (c2 + v * (c3 + v * value[i])))
    for i in range(place.size):
        value[i] *= _bell(place[i])


@kernel
def _bell(v: float) -> float:
    """`exp(-v²/2)` for |v| ≤ 2, to 3e-11 of it, without a call: loops over it become vector instructions, and take a third of the time.

    The 16th root is a series in x = v²/32 ≤ 1/8, whose first term left out is x⁸/8!.
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
    """Every occurrence with every passage in its reach: from the nearest sample point outwards, until what is added does not count.

    From one point to the next the Gaussian changes by a factor that itself changes by a constant one, so a point costs two products.
    """
    reach = REACH * sigma
    for passage in range(first_position.size):
        first, last = first_position[passage], last_position[passage]
        if last < first:
            continue
        at = np.searchsorted(position, first - reach)
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
            own = peak
            value = peak
            factor = np.exp(-scaled * (distance + scaled / 2))
            for _ in range(nearest, intervals):
                value *= factor
                factor *= change
                own += value
                if value < 1e-16:
                    break
            value = peak
            factor = np.exp(scaled * (distance - scaled / 2))
            for _ in range(nearest):
                value *= factor
                factor *= change
                own += value
                if value < 1e-16:
                    break
            total += weight[at] * own
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
    """First and last position of the union of the passages that hold each occurrence; itself where none does."""
    first = position.copy()
    last = position.copy()
    for passage in range(first_occurrence.size):
        for at in range(first_occurrence[passage], end_occurrence[passage]):
            first[at] = min(first[at], first_position[passage])
            last[at] = max(last[at], last_position[passage])
    return first, last


@kernel
def sum_trapezoid(
    first_of_union: Integers,
    last_of_union: Integers,
    weight: Floats,
    first_occurrence: Integers,
    first_position: Integers,
    last_position: Integers,
    first_passage: Integers,
    sigma: float,
    intervals: int,
) -> Floats:
    """The sums with f = 1 from the first to the last position of an occurrence's union, falling by 1/σ a position outside it.

    Both ends of the unions rise with the occurrences: a passage that reaches before the union of an earlier occurrence would hold that one
    too. So the occurrences that a point lies before, in or behind are ranges, and sums over ranges are differences of
    running sums, exactly 0 where the range is empty and otherwise rounded as a sum over the whole document is.
    """
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
            at_end[:] = bounds
            _find_ranges(first, last, float(end), sigma, at_end)
            if bounds[0] == at_end[0] and bounds[1] == at_end[1] and bounds[2] == at_end[2] and bounds[3] == at_end[3]:
                # No corner of any trapezoid inside: the sum is a straight line, and its mean that of its middle.
                sums[passage] = (intervals + 1) * _height(weights, firsts, lasts, (begin + end) / 2, sigma, bounds)
                continue
            total = 0.0
            for j in range(intervals + 1):
                x = begin + j * (end - begin) / intervals
                _find_ranges(first, last, x, sigma, bounds)
                total += _height(weights, firsts, lasts, x, sigma, bounds)
            sums[passage] = total
    return sums


@kernel
def _find_ranges(first: Integers, last: Integers, x: float, sigma: float, bounds: Integers) -> None:
    """How many unions ended σ or more before x, ended before x, began up to x, and begin before x + σ; the last answer is near this one."""
    bounds[0] = _advance(last, bounds[0], x - sigma, True)
    bounds[1] = _advance(last, bounds[1], x, False)
    bounds[2] = _advance(first, bounds[2], x, True)
    bounds[3] = _advance(first, bounds[3], x + sigma, False)


@kernel
def _advance(values: Integers, at: int, limit: float, inclusive: bool) -> int:
    """How many of the rising values are below the limit, or up to it; points come nearly in order, so the last answer is near."""
    while at < values.size and (values[at] < limit or (inclusive and values[at] == limit)):
        at += 1
    while at > 0 and not (values[at - 1] < limit or (inclusive and values[at - 1] == limit)):
        at -= 1
    return at


@kernel
def _height(weights: Floats, firsts: Floats, lasts: Floats, x: float, sigma: float, bounds: Integers) -> float:
    """The sum of all trapezoids at x."""
    gone, ended, begun, reached = bounds[0], bounds[1], bounds[2], bounds[3]
    behind = weights[ended] - weights[gone]
    inside = weights[begun] - weights[ended]
    ahead = weights[reached] - weights[begun]
    falling = (behind * (sigma - x) + lasts[ended] - lasts[gone]) / sigma
    rising = (ahead * (sigma + x) - firsts[reached] + firsts[begun]) / sigma
    # Differences of sums may fall a last digit below what must not be negative.
    return max(falling, 0.0) + inside + max(rising, 0.0)
