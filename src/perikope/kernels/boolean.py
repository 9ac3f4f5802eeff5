"""Where phrases and operators of proximity hold, as stretches of tokens.

The stretches of each document are a list in which none holds another, so that starts and ends both rise (Clarke, Cormack and Burkowski, An
algebra for structured text search and a framework for its implementation, 1995). Every kernel passes once over the lists it is given.
Ends are inclusive; `first` says where each document's stretches begin, with one value more than there are documents.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Integers, Integers32, Mask
from perikope.kernels.jit import kernel

Lists = tuple[Integers, Integers, Integers]


@kernel
def phrases(
    term: Integers32,
    position: Integers32,
    first_occurrence: Integers,
    offsets: Integers,
    counts: Mask,
) -> Lists:
    """Where words stand side by side: word w, `offsets[w]` tokens behind the first one, is any term for which `counts[w]` is true."""
    documents, words = first_occurrence.size - 1, offsets.size
    first = np.zeros(documents + 1, np.int64)
    start, end = np.empty(term.size, np.int64), np.empty(term.size, np.int64)
    found = 0
    for document in range(documents):
        stop = first_occurrence[document + 1]
        for occurrence in range(first_occurrence[document], stop):
            here = np.int64(position[occurrence])
            at = occurrence
            word = 0
            while word < words:
                while at < stop and position[at] < here + offsets[word]:
                    at += 1
                if at == stop or position[at] != here + offsets[word] or not counts[word, term[at]]:
                    break
                word += 1
            if word == words:
                start[found], end[found] = here, here + offsets[words - 1]
                found += 1
        first[document + 1] = found
    return first, start[:found].copy(), end[:found].copy()


@kernel
def _add(start: Integers, end: Integers, first: int, found: int, new_start: int, new_end: int) -> int:
    """Add a stretch to those from `first` on, unless it holds one of them; it must not end before them. Returns how many there are."""
    while found > first and end[found - 1] == new_end and start[found - 1] <= new_start:
        found -= 1
    if found == first or start[found - 1] < new_start:
        start[found], end[found] = new_start, new_end
        found += 1
    return found


@kernel
def either(first_a: Integers, start_a: Integers, end_a: Integers, first_b: Integers, start_b: Integers, end_b: Integers) -> Lists:
    """The stretches of both lists, without those that hold another."""
    documents = first_a.size - 1
    first = np.zeros(documents + 1, np.int64)
    start, end = np.empty(start_a.size + start_b.size, np.int64), np.empty(start_a.size + start_b.size, np.int64)
    found = 0
    for document in range(documents):
        a, b = first_a[document], first_b[document]
        while a < first_a[document + 1] or b < first_b[document + 1]:
            if b == first_b[document + 1] or (a < first_a[document + 1] and end_a[a] <= end_b[b]):
                found = _add(start, end, first[document], found, start_a[a], end_a[a])
                a += 1
            else:
                found = _add(start, end, first[document], found, start_b[b], end_b[b])
                b += 1
        first[document + 1] = found
    return first, start[:found].copy(), end[:found].copy()


@kernel
def both(first_a: Integers, start_a: Integers, end_a: Integers, first_b: Integers, start_b: Integers, end_b: Integers) -> Lists:
    """The shortest stretches that hold one of each list."""
    documents = first_a.size - 1
    first = np.zeros(documents + 1, np.int64)
    start, end = np.empty(start_a.size + start_b.size, np.int64), np.empty(start_a.size + start_b.size, np.int64)
    found = 0
    for document in range(documents):
        a, b = first_a[document], first_b[document]
        while a < first_a[document + 1] or b < first_b[document + 1]:
            # At every end the last of each list that has ended by then is the shortest choice.
            if b == first_b[document + 1] or (a < first_a[document + 1] and end_a[a] <= end_b[b]):
                here = end_a[a]
                a += 1
            else:
                here = end_b[b]
                b += 1
            if a > first_a[document] and b > first_b[document]:
                found = _add(start, end, first[document], found, min(start_a[a - 1], start_b[b - 1]), here)
        first[document + 1] = found
    return first, start[:found].copy(), end[:found].copy()


@kernel
def followed(
    first_a: Integers, start_a: Integers, end_a: Integers, first_b: Integers, start_b: Integers, end_b: Integers, distance: int
) -> Lists:
    """The shortest stretches of one of the first list and, behind it, one of the second that begins at most `distance` after its end."""
    documents = first_a.size - 1
    first = np.zeros(documents + 1, np.int64)
    start, end = np.empty(start_b.size, np.int64), np.empty(start_b.size, np.int64)
    found = 0
    for document in range(documents):
        a = first_a[document]
        for b in range(first_b[document], first_b[document + 1]):
            while a < first_a[document + 1] and end_a[a] < start_b[b]:
                a += 1
            # The last one before it: the nearest, and the one that begins last.
            if a > first_a[document] and start_b[b] - end_a[a - 1] <= distance:
                found = _add(start, end, first[document], found, start_a[a - 1], end_b[b])
        first[document + 1] = found
    return first, start[:found].copy(), end[:found].copy()


@kernel
def reach(
    first_a: Integers, start_a: Integers, end_a: Integers, first_b: Integers, start_b: Integers, end_b: Integers, distance: int
) -> Lists:
    """As `followed`, but the longest: of each of the first list with the last of the second that is near enough."""
    documents = first_a.size - 1
    first = np.zeros(documents + 1, np.int64)
    start, end = np.empty(start_a.size, np.int64), np.empty(start_a.size, np.int64)
    found = 0
    for document in range(documents):
        b = first_b[document]
        for a in range(first_a[document], first_a[document + 1]):
            while b < first_b[document + 1] and start_b[b] <= end_a[a] + distance:
                b += 1
            if b > first_b[document] and start_b[b - 1] > end_a[a]:
                start[found], end[found] = start_a[a], end_b[b - 1]
                found += 1
        first[document + 1] = found
    return first, start[:found].copy(), end[:found].copy()


@kernel
def covered(
    first: Integers,
    start: Integers,
    end: Integers,
    term: Integers32,
    position: Integers32,
    first_occurrence: Integers,
    counts: Mask,
) -> Mask:
    """Of each occurrence, whether it is of a term that counts and stands in a stretch; starts must rise."""
    inside = np.zeros(term.size, np.bool_)
    for document in range(first_occurrence.size - 1):
        at, until = first[document], np.int64(-1)
        for occurrence in range(first_occurrence[document], first_occurrence[document + 1]):
            while at < first[document + 1] and start[at] <= position[occurrence]:
                until = max(until, end[at])
                at += 1
            inside[occurrence] = position[occurrence] <= until and counts[term[occurrence]]
    return inside


@kernel
def held(first: Integers, start: Integers, end: Integers, document_of_range: Integers, first_token: Integers, end_token: Integers) -> Mask:
    """Of each range of tokens, whether it holds a whole stretch of its document."""
    found = np.zeros(document_of_range.size, np.bool_)
    for i in range(document_of_range.size):
        low, stop = first[document_of_range[i]], first[document_of_range[i] + 1]
        high = stop
        while low < high:
            middle = (low + high) // 2
            if start[middle] < first_token[i]:
                low = middle + 1
            else:
                high = middle
        found[i] = low < stop and end[low] < end_token[i]
    return found


@kernel
def holding(
    first: Integers, start: Integers, end: Integers, document_of_range: Integers, first_token: Integers, end_token: Integers
) -> Mask:
    """Of each stretch, whether some range of tokens of its document holds it whole; ranges are in the order of document and first token."""
    found = np.zeros(start.size, np.bool_)
    i = 0
    for document in range(first.size - 1):
        until = np.int64(-1)
        for at in range(first[document], first[document + 1]):
            while i < document_of_range.size and (
                document_of_range[i] < document or (document_of_range[i] == document and first_token[i] <= start[at])
            ):
                if document_of_range[i] == document:
                    until = max(until, end_token[i])
                i += 1
            found[at] = end[at] < until
    return found
