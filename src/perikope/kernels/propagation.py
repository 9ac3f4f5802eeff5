"""Sums and maxima along trees of sections, without comparing every pair of sections.

All sections of all documents stand in one array, parents before their children, a root without a parent (-1). Values
are not negative, so that 0 is what an empty sum and an empty maximum give. Nothing is ever subtracted: what a section
gets from the others is put together from those before and those after it, so that small values beside large ones keep
their digits.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Floats, Integers
from perikope.kernels.jit import kernel


@kernel
def aggregate_children(value: Floats, section_of_passage: Integers, parent: Integers, maximum: bool) -> tuple[Floats, Integers]:
    """Average or maximum, from the leaves up, of each section's direct passages and sections; and how many these were.

    A section without a passage anywhere below has no children that count, and does not count itself; its value is 0.
    """
    sections = parent.size
    total = np.zeros(sections)
    count = np.zeros(sections, np.int64)
    for passage in range(value.size):
        _take(total, section_of_passage[passage], value[passage], maximum)
        count[section_of_passage[passage]] += 1
    for section in range(sections - 1, -1, -1):
        if count[section] > 0:
            if not maximum:
                total[section] /= count[section]
            if parent[section] >= 0:
                _take(total, parent[section], total[section], maximum)
                count[parent[section]] += 1
    return total, count


@kernel
def from_ancestors(value: Floats, parent: Integers, weight: Floats, maximum: bool) -> Floats:
    """Sum or maximum of `value · weight[steps]` over each section (0 steps) and its ancestors; later weights are 0.

    Sections × the smaller of depth and number of weights.
    """
    sections = parent.size
    result = np.zeros(sections)
    for section in range(sections):
        above = section
        steps = 0
        while above >= 0 and steps < weight.size:
            _take(result, section, value[above] * weight[steps], maximum)
            above = parent[above]
            steps += 1
    return result


@kernel
def from_ancestors_by_factor(value: Floats, parent: Integers, factor: float, maximum: bool) -> Floats:
    """`from_ancestors` for `weight[steps] = factor ** steps`, in time that grows with the sections alone."""
    result = value.copy()
    for section in range(parent.size):
        if parent[section] >= 0:
            _take(result, section, factor * result[parent[section]], maximum)
    return result


@kernel
def from_others_in_group(value: Floats, group: Integers, groups: int, maximum: bool) -> tuple[Floats, Floats]:
    """Sum or maximum of each group, and for each value that of the others in its group."""
    before = np.empty(value.size)
    others = np.empty(value.size)
    seen = np.zeros(groups)
    behind = np.zeros(groups)
    # From both ends in one loop: each addition waits for the one before it, and the two need not wait for each other.
    for i in range(value.size):
        before[i] = seen[group[i]]
        _take(seen, group[i], value[i], maximum)
        j = value.size - 1 - i
        others[j] = behind[group[j]]
        _take(behind, group[j], value[j], maximum)
    for i in range(value.size):
        others[i] = _either(before[i], others[i], maximum)
    return seen, others


@kernel
def from_other_passages(
    siblings: Floats, nearest: float, elsewhere: Floats, section_of_passage: Integers, others_of_section: Integers, maximum: bool
) -> Floats:
    """Average or maximum over the other passages of a document, from sums of its section and of other sections.

    Siblings weigh `nearest`; an average divides by how many other passages the document of the section has.
    """
    result = np.empty(siblings.size)
    for passage in range(siblings.size):
        section = section_of_passage[passage]
        total = _either(nearest * siblings[passage], elsewhere[section], maximum)
        result[passage] = total if maximum else total / max(others_of_section[section], 1)
    return result


@kernel
def from_other_sections_by_factor(value: Floats, parent: Integers, factor: float, maximum: bool) -> Floats:
    """`from_other_sections` for `weight[distance] = factor ** distance`, in time that grows with the sections alone."""
    sections = parent.size
    below = np.zeros(sections)  # from all sections below, as it arrives at this one
    outside = np.zeros(sections)  # from all sections that are not below
    for section in range(sections - 1, -1, -1):
        above = parent[section]
        if above >= 0:
            outside[section] = below[above]  # so far, the siblings after this one
            _take(below, above, factor * _either(value[section], below[section], maximum), maximum)
    before = np.zeros(sections)
    result = np.zeros(sections)
    for section in range(sections):
        above = parent[section]
        if above >= 0:
            _take(outside, section, _either(value[above], before[above], maximum), maximum)
            outside[section] = factor * _either(outside[section], outside[above], maximum)
            _take(before, above, factor * _either(value[section], below[section], maximum), maximum)
        result[section] = _either(below[section], outside[section], maximum)
    return result


@kernel
def from_other_sections(value: Floats, parent: Integers, weight: Floats, maximum: bool) -> Floats:
    """Sum or maximum of `value · weight[distance]` over all other sections of the tree; later weights are 0.

    A section's profile says what its subtree holds at each depth. What a section sends to another subtree depends only
    on depths there, so subtrees exchange profiles, not sections. The child with the highest subtree, the heir,
    continues its parent's profile in the same array, shifted by one; only the other children's profiles are added, each
    as long as their subtree is high. So all profiles together take one element per section, and the time is sections ×
    the smaller of depth and number of weights, even of a tree that is a chain.
    """
    sections = parent.size
    height = np.zeros(sections, np.int64)
    heir = np.full(sections, -1, np.int64)
    for section in range(sections - 1, -1, -1):
        above = parent[section]
        if above >= 0 and height[section] + 1 >= height[above]:
            height[above] = height[section] + 1
            heir[above] = section
    start, first_branch, branch = _lay_out(parent, height, heir)
    profile = np.zeros(sections)
    outside = np.zeros(sections)  # what arrives from outside a section's subtree, at each depth of it; laid out as profiles
    result = np.zeros(sections)
    side = np.zeros(sections + 2)

    for section in range(sections - 1, -1, -1):
        at = start[section]
        profile[at] = value[section]
        if height[section] == 0:  # most sections have none below
            continue
        # To each branch from the section itself, its heir and the branches before ...
        for i in range(first_branch[section], first_branch[section + 1]):
            other = start[branch[i]]
            size = height[branch[i]] + 1
            for depth in range(min(size, weight.size - 1)):
                outside[other + depth] = _receive(profile, at, height[section] + 1, weight, depth + 1, maximum)
            _merge(profile, at + 1, profile, other, size, maximum)
        # ... and from the branches after it.
        longest = 0
        for i in range(first_branch[section + 1] - 1, first_branch[section] - 1, -1):
            other = start[branch[i]]
            size = height[branch[i]] + 1
            for depth in range(min(size, weight.size - 2)):
                _take(outside, other + depth, _receive(side, 0, longest, weight, depth + 2, maximum), maximum)
            _merge(side, 0, profile, other, size, maximum)
            longest = max(longest, size)
        side[:longest] = 0
        result[section] = _receive(profile, at + 1, height[section], weight, 1, maximum)

    for section in range(sections):
        at = start[section]
        _take(result, section, outside[at], maximum)
        if height[section] == 0:
            continue
        longest = 0
        for i in range(first_branch[section], first_branch[section + 1]):
            other = start[branch[i]]
            size = height[branch[i]] + 1
            _merge(outside, other, outside, at + 1, size, maximum)
            _merge(side, 1, profile, other, size, maximum)
            longest = max(longest, size)
        # The heir's outside is its parent's, and the parent with its other branches.
        side[0] = value[section]
        for depth in range(longest + 1):
            _send(side[depth], outside, at + 1, height[section], weight, depth + 1, maximum)
        side[: longest + 1] = 0
    return result


@kernel
def _lay_out(parent: Integers, height: Integers, heir: Integers) -> tuple[Integers, Integers, Integers]:
    """The first element of each section's profile, and the branches: the children of each section but its heir.

    Returns `start`; `first_branch`, with one value more than there are sections; and `branch`, in reading order. The
    profiles of a chain of heirs share one stretch of elements, as long as the chain.
    """
    sections = parent.size
    start = np.zeros(sections, np.int64)
    first_branch = np.zeros(sections + 1, np.int64)
    free = 0
    for section in range(sections):
        above = parent[section]
        if above >= 0 and heir[above] == section:
            start[section] = start[above] + 1
            continue
        start[section] = free
        free += height[section] + 1
        if above >= 0:
            first_branch[above + 1] += 1
    for section in range(sections):
        first_branch[section + 1] += first_branch[section]
    branch = np.empty(first_branch[sections], np.int64)
    filled = first_branch.copy()
    for section in range(sections):
        above = parent[section]
        if above >= 0 and heir[above] != section:
            branch[filled[above]] = section
            filled[above] += 1
    return start, first_branch, branch


@kernel
def _either(first: float, second: float, maximum: bool) -> float:
    if maximum:
        return max(first, second)
    return first + second


@kernel
def _take(target: Floats, at: int, value: float, maximum: bool) -> None:
    target[at] = _either(target[at], value, maximum)


@kernel
def _receive(source: Floats, first: int, count: int, weight: Floats, distance: int, maximum: bool) -> float:
    """What comes from `count` elements of a profile, the first of them at a distance."""
    result = 0.0
    for i in range(min(count, weight.size - distance)):
        result = _either(result, source[first + i] * weight[distance + i], maximum)
    return result


@kernel
def _send(value: float, target: Floats, first: int, count: int, weight: Floats, distance: int, maximum: bool) -> None:
    """Give a value to `count` elements, the first of them at a distance."""
    if value > 0:
        for i in range(min(count, weight.size - distance)):
            _take(target, first + i, value * weight[distance + i], maximum)


@kernel
def _merge(target: Floats, first: int, source: Floats, begin: int, count: int, maximum: bool) -> None:
    for i in range(count):
        _take(target, first + i, source[begin + i], maximum)
