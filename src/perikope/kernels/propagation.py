"""Sums and maxima along trees of sections, without comparing every pair of sections.

Arrays hold the sections of all documents, parents before their children. `parent` has the index of each section's
parent, or -1 for a root. With `maximum`, kernels compute maxima, otherwise sums (or averages). Values must not be
negative, so that an empty sum and an empty maximum are both 0. Kernels never subtract, because a small value would lose
its digits beside a large one. Instead, the total over all other sections is the total over the sections before plus the
total over the sections after.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Floats, Integers
from perikope.kernels.jit import inner, kernel, step


@kernel
def aggregate_children(value: Floats, section_of_passage: Integers, parent: Integers, maximum: bool) -> tuple[Floats, Integers]:
    """For each section, the average or maximum over its direct passages and sections; and the number of these.

    `value` has the value of each passage. The values of sections are computed from the leaves up. A section without any
    passage below it has the value 0 and the number 0, and its parent ignores it.
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
    """For each section, the sum or maximum of `value · weight[steps]` over itself (0 steps) and its ancestors.

    Weights beyond the end of `weight` are 0. The time is proportional to the number of sections times the smaller of
    their depth and the number of weights.
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
    """As `from_ancestors` with `weight[steps] = factor ** steps`, in time proportional to the number of sections."""
    result = value.copy()
    for section in range(parent.size):
        if parent[section] >= 0:
            _take(result, section, factor * result[parent[section]], maximum)
    return result


@kernel
def from_others_in_group(value: Floats, group: Integers, groups: int, maximum: bool) -> tuple[Floats, Floats]:
    """The sum or maximum of each group; and for each value, the sum or maximum of the other values in its group.

    `group` has the group of each value, a number from 0 to below `groups`.
    """
    before = np.empty(value.size)
    others = np.empty(value.size)
    seen = np.zeros(groups)
    behind = np.zeros(groups)
    # One loop from both ends: each addition waits for the previous one, but the ends do not wait for each other.
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
    """For each passage, the average or maximum over the other passages of its document.

    `siblings` has, for each passage, the sum or maximum of the other passages of its section. It is multiplied by
    `nearest`, the weight of their distance. `elsewhere` has, for each section, the weighted sum or maximum of the
    passages of all other sections. `others_of_section` has, for each section, the number of passages in its document
    minus one, by which an average divides.
    """
    result = np.empty(siblings.size)
    for passage in range(siblings.size):
        section = section_of_passage[passage]
        total = _either(nearest * siblings[passage], elsewhere[section], maximum)
        result[passage] = total if maximum else total / max(others_of_section[section], 1)
    return result


@kernel
def from_other_sections_by_factor(value: Floats, parent: Integers, factor: float, maximum: bool) -> Floats:
    """As `from_other_sections` with `weight[distance] = factor ** distance`, in time proportional to the sections."""
    sections = parent.size
    below = np.zeros(sections)  # total from all sections below this one, weighted by distance
    outside = np.zeros(sections)  # total from all sections that are neither this one nor below it
    for section in range(sections - 1, -1, -1):
        above = parent[section]
        if above >= 0:
            outside[section] = below[above]  # only from the siblings after this one so far
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
    """For each section, the sum or maximum of `value · weight[distance]` over all other sections of its tree.

    Weights beyond the end of `weight` are 0. The distance between a section and a section of another subtree depends
    only on the depth of the latter. Therefore each section has a *profile*, the sum or maximum of the values at each
    depth of its subtree, and subtrees exchange profiles instead of single sections.

    The child with the highest subtree is called the *heir*. Its profile is stored in the array of its parent's profile,
    shifted by one. The other children are called *branches*; their profiles are added to the parent's. So all profiles
    together take one element per section. The time is proportional to the number of sections times the smaller of their
    depth and the number of weights, even if the tree is a chain.
    """
    sections = parent.size
    height = np.zeros(sections, np.int64)
    heir = np.empty(sections, np.int64)
    heir[:] = -1
    for section in range(sections - 1, -1, -1):
        above = parent[section]
        if above >= 0 and height[section] + 1 >= height[above]:
            height[above] = height[section] + 1
            heir[above] = section
    start, first_branch, branch = _lay_out(parent, height, heir)
    profile = np.zeros(sections)
    outside = np.zeros(sections)  # total from outside a section's subtree, at each depth of the subtree; stored like profiles
    result = np.zeros(sections)
    side = np.zeros(sections + 2)

    for section in range(sections - 1, -1, -1):
        at = start[section]
        profile[at] = value[section]
        if height[section] == 0:  # most sections have no sections below
            continue
        # Each branch receives from the section itself, from the heir and from the branches before it ...
        for i in range(first_branch[section], first_branch[section + 1]):
            other = start[branch[i]]
            size = height[branch[i]] + 1
            for depth in range(min(size, weight.size - 1)):
                outside[other + depth] = _receive(profile, at, height[section] + 1, weight, depth + 1, maximum)
            _merge(profile, at + 1, profile, other, size, maximum)
        # ... and from the branches after it.
        longest = np.int64(0)
        for i in range(first_branch[section + 1] - 1, first_branch[section] - 1, -1):
            other = start[branch[i]]
            size = height[branch[i]] + 1
            for depth in range(min(size, weight.size - 2)):
                _take(outside, other + depth, _receive(side, np.int64(0), longest, weight, depth + 2, maximum), maximum)
            _merge(side, np.int64(0), profile, other, size, maximum)
            longest = max(longest, size)
        side[:longest] = 0.0
        result[section] = _receive(profile, at + 1, height[section], weight, np.int64(1), maximum)

    for section in range(sections):
        at = start[section]
        _take(result, section, outside[at], maximum)
        if height[section] == 0:
            continue
        longest = np.int64(0)
        for i in range(first_branch[section], first_branch[section + 1]):
            other = start[branch[i]]
            size = height[branch[i]] + 1
            _merge(outside, other, outside, at + 1, size, maximum)
            _merge(side, np.int64(1), profile, other, size, maximum)
            longest = max(longest, size)
        # The heir receives what its parent receives from outside, and from the parent and its branches.
        side[0] = value[section]
        for depth in range(longest + 1):
            _send(side[depth], outside, at + 1, height[section], weight, depth + 1, maximum)
        side[: longest + 1] = 0
    return result


@step
def _lay_out(parent: Integers, height: Integers, heir: Integers) -> tuple[Integers, Integers, Integers]:
    """Place the profiles of `from_other_sections`, and list the branches of each section.

    Returns three arrays: `start`, the index of the first element of each section's profile; `first_branch`, the index
    of each section's first branch in `branch`, with the number of branches at the end; and `branch`, the sections that
    are branches. A chain of heirs shares one range of elements, as long as the chain.
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


@inner
def _either(first: float, second: float, maximum: bool) -> float:
    """The maximum or the sum of two values."""
    if maximum:
        return max(first, second)
    return first + second


@inner
def _take(target: Floats, at: int, value: float, maximum: bool) -> None:
    """Add a value to `target[at]`, or raise `target[at]` to the value."""
    target[at] = _either(target[at], value, maximum)


@inner
def _receive(source: Floats, first: int, count: int, weight: Floats, distance: int, maximum: bool) -> float:
    """The weighted sum or maximum of `count` elements of a profile from index `first` on.

    The first element is at `distance`, and each further one is one step farther away.
    """
    result = 0.0
    for i in range(min(count, weight.size - distance)):
        result = _either(result, source[first + i] * weight[distance + i], maximum)
    return result


@inner
def _send(value: float, target: Floats, first: int, count: int, weight: Floats, distance: int, maximum: bool) -> None:
    """Add a weighted value to `count` elements of `target` from index `first` on, or raise them to it.

    The first element is at `distance`, and each further one is one step farther away.
    """
    if value > 0:
        for i in range(min(count, weight.size - distance)):
            _take(target, first + i, value * weight[distance + i], maximum)


@inner
def _merge(target: Floats, first: int, source: Floats, begin: int, count: int, maximum: bool) -> None:
    """Add `count` elements of `source` from `begin` on to those of `target` from `first` on, or raise these to them."""
    for i in range(count):
        _take(target, first + i, source[begin + i], maximum)
