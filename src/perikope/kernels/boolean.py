"""Where phrases and proximity operators match, as stretches of tokens.

A stretch is a range of tokens with an inclusive end. In the list of a document no stretch contains another, so starts
and ends both rise (Clarke, Cormack and Burkowski, An algebra for structured text search and a framework for its
implementation, 1995). Every kernel passes once over the lists it is given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Integers, Integers32, Mask
from perikope.kernels.jit import inner, kernel, step
from perikope.kernels.ordered import lower_bound


class Stretches(NamedTuple):
    """Stretches of tokens, ordered by document and start.

    No stretch contains another one of its document, except in the result of `reach`.
    """

    first_of_document: Integers
    """Index of each document's first stretch, and at the end the number of stretches."""
    start: Integers
    """First token of each stretch, in its document."""
    end: Integers
    """Last token of each stretch, inclusive."""


class TermOccurrences(NamedTuple):
    """Occurrences of query terms, ordered by document and position."""

    term: Integers32
    """Term of each occurrence."""
    position: Integers32
    """Position of each occurrence in its document."""
    first_of_document: Integers
    """Index of each document's first occurrence, and at the end the number of occurrences."""


class TokenRanges(NamedTuple):
    """Ranges of tokens, such as passages."""

    document: Integers
    """Document of each range."""
    first: Integers
    """First token of each range, in its document."""
    end: Integers
    """End of each range, exclusive."""


@step
def _room_for(documents: int, stretches: int) -> Stretches:
    """Uninitialised stretches, with room for this many documents and this many stretches in all."""
    return Stretches(np.zeros(documents + 1, np.int64), np.empty(stretches, np.int64), np.empty(stretches, np.int64))


@step
def _first(stretches: Stretches, count: int) -> Stretches:
    """A copy of the first `count` stretches, without the unused room."""
    return Stretches(stretches.first_of_document, stretches.start[:count].copy(), stretches.end[:count].copy())


@inner
def _add(start: Integers, end: Integers, first: int, count: int, new_start: int, new_end: int) -> int:
    """Add a stretch to the stretches from index `first` to below `count`, and return the new count.

    It is not added if it contains one of them, and those that contain it are removed. It must not end before any of
    them.
    """
    while count > first and end[count - 1] == new_end and start[count - 1] <= new_start:
        count -= 1
    if count == first or start[count - 1] < new_start:
        start[count], end[count] = new_start, new_end
        count += 1
    return count


@step
def _is_next(a: Stretches, i: int, b: Stretches, j: int, document: int) -> bool:
    """Whether stretch i of `a` is merged before stretch j of `b`, because it does not end later.

    If one list has no stretches left in this document, the other list is next.
    """
    if j == b.first_of_document[document + 1]:
        return True
    return i < a.first_of_document[document + 1] and a.end[i] <= b.end[j]


@kernel
def phrases(occurrences: TermOccurrences, offsets: Integers, counts: Mask) -> Stretches:
    """The stretches at which a phrase matches.

    Word w of the phrase must be `offsets[w]` tokens after the first word; offsets rise from 0. `counts` has shape
    (words, terms): whether a term matches a word.
    """
    term, position, first_occurrence = occurrences.term, occurrences.position, occurrences.first_of_document
    documents, words = first_occurrence.size - 1, offsets.size
    matches = _room_for(documents, term.size)
    count = 0
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
                matches.start[count], matches.end[count] = here, here + offsets[words - 1]
                count += 1
        matches.first_of_document[document + 1] = count
    return _first(matches, count)


@kernel
def either(a: Stretches, b: Stretches) -> Stretches:
    """The stretches of both lists, without stretches that contain another one."""
    documents = a.first_of_document.size - 1
    merged = _room_for(documents, a.start.size + b.start.size)
    first, start, end = merged
    count = 0
    for document in range(documents):
        i, j = a.first_of_document[document], b.first_of_document[document]
        while i < a.first_of_document[document + 1] or j < b.first_of_document[document + 1]:
            if _is_next(a, i, b, j, document):
                count = _add(start, end, first[document], count, a.start[i], a.end[i])
                i += 1
            else:
                count = _add(start, end, first[document], count, b.start[j], b.end[j])
                j += 1
        first[document + 1] = count
    return _first(merged, count)


@kernel
def both(a: Stretches, b: Stretches) -> Stretches:
    """The shortest stretches that contain a stretch of each list."""
    documents = a.first_of_document.size - 1
    joined = _room_for(documents, a.start.size + b.start.size)
    first, start, end = joined
    count = 0
    for document in range(documents):
        i, j = a.first_of_document[document], b.first_of_document[document]
        while i < a.first_of_document[document + 1] or j < b.first_of_document[document + 1]:
            # At every end, the last stretch of each list that has ended by then is the shortest choice.
            if _is_next(a, i, b, j, document):
                last = a.end[i]
                i += 1
            else:
                last = b.end[j]
                j += 1
            if i > a.first_of_document[document] and j > b.first_of_document[document]:
                count = _add(start, end, first[document], count, min(a.start[i - 1], b.start[j - 1]), last)
        first[document + 1] = count
    return _first(joined, count)


@kernel
def followed(a: Stretches, b: Stretches, distance: int) -> Stretches:
    """The shortest stretches that run from a stretch of `a` to a later stretch of `b`.

    The stretch of `b` must begin at most `distance` tokens after the end of the stretch of `a`.
    """
    documents = a.first_of_document.size - 1
    pairs = _room_for(documents, b.start.size)
    first, start, end = pairs
    count = 0
    for document in range(documents):
        i = a.first_of_document[document]
        for j in range(b.first_of_document[document], b.first_of_document[document + 1]):
            while i < a.first_of_document[document + 1] and a.end[i] < b.start[j]:
                i += 1
            # The last stretch of `a` before it is the nearest one, and begins last.
            if i > a.first_of_document[document] and b.start[j] - a.end[i - 1] <= distance:
                count = _add(start, end, first[document], count, a.start[i - 1], b.end[j])
        first[document + 1] = count
    return _first(pairs, count)


@kernel
def reach(a: Stretches, b: Stretches, distance: int) -> Stretches:
    """As `followed`, but the longest stretches: from each stretch of `a` to the last stretch of `b` in the distance.

    In the result, a stretch may contain another one.
    """
    documents = a.first_of_document.size - 1
    pairs = _room_for(documents, a.start.size)
    first, start, end = pairs
    count = 0
    for document in range(documents):
        j = b.first_of_document[document]
        for i in range(a.first_of_document[document], a.first_of_document[document + 1]):
            while j < b.first_of_document[document + 1] and b.start[j] <= a.end[i] + distance:
                j += 1
            if j > b.first_of_document[document] and b.start[j - 1] > a.end[i]:
                start[count], end[count] = a.start[i], b.end[j - 1]
                count += 1
        first[document + 1] = count
    return _first(pairs, count)


@kernel
def covered(stretches: Stretches, occurrences: TermOccurrences, counts: Mask) -> Mask:
    """One flag per occurrence: whether it lies in a stretch, and its term has a true flag in `counts`.

    The starts of the stretches must rise within a document.
    """
    first, start, end = stretches
    term, position, first_occurrence = occurrences
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
def held(stretches: Stretches, ranges: TokenRanges) -> Mask:
    """One flag per range: whether it contains a whole stretch of its document. Ranges may be in any order."""
    first, start, end = stretches
    contains = np.zeros(ranges.document.size, np.bool_)
    for i in range(ranges.document.size):
        stop = first[ranges.document[i] + 1]
        at = lower_bound(start, first[ranges.document[i]], stop, ranges.first[i])
        contains[i] = at < stop and end[at] < ranges.end[i]
    return contains


@kernel
def holding(stretches: Stretches, ranges: TokenRanges) -> Mask:
    """One flag per stretch: whether a range of its document contains it whole.

    Ranges must be ordered by document and first token.
    """
    first, start, end = stretches
    document_of_range, first_token, end_token = ranges
    inside = np.zeros(start.size, np.bool_)
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
            inside[at] = end[at] < until
    return inside
