"""The names of all passages of an index as one text, for those who name as many passages as the index has.

A run names a thousand passages per topic. In a small index these are the same passages again and again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perikope.core.arrays import Integers, frozen
from perikope.core.errors import IndexFormatError
from perikope.core.name_lines import NameLines
from perikope.index.reader import Snapshot
from perikope.kernels.names import copy_lines
from perikope.kernels.strings import are_distinct
from perikope.search.segment_names import NamesOfSegment

MOST_PASSAGES = 1 << 20
"""The names of an index with more passages are not kept. The names of this many take 30 to 60 MB."""
_KEY = "names"


@dataclass(frozen=True, slots=True)
class AllNames:
    """The names of all passages, in the order of their numbers in the index. Deleted documents count."""

    lines: NameLines
    first_passage: Integers
    """The number of each document's first passage."""

    def of(self, documents: Integers, numbers: Integers) -> NameLines:
        """The names of passages, given by their documents and by their numbers in these, from 1."""
        text, ends = copy_lines(self.lines.text, self.lines.ends, self.first_passage[documents] + numbers - 1)
        return NameLines(text, ends, self.lines.are_checked)


class _Asked:
    """How many names were asked for, until all are made."""

    def __init__(self, passages: int) -> None:
        self.number = 0
        self.is_worthwhile = 0 < passages <= MOST_PASSAGES
        self.passages = passages


def expect_names(snapshot: Snapshot, number: int) -> None:
    """Announce that so many passages will be named, so that the names of all are made at once if these are fewer.

    This is for an index on this machine. The shards of a cluster count the names that each of them is asked for.
    """
    if not snapshot.is_local:
        return
    asked = snapshot.derived.setdefault(_KEY, _Asked(sum(segment.columns["passage.span"].size for segment in snapshot.segments)))
    if isinstance(asked, _Asked):
        asked.number += number


def all_names(snapshot: Snapshot, number: int) -> AllNames | None:
    """The names of all passages, if at least as many were asked for, with the `number` that are asked for now."""
    expect_names(snapshot, number)
    asked = snapshot.derived[_KEY]
    if isinstance(asked, AllNames):
        return asked
    if not asked.is_worthwhile or asked.number < asked.passages:
        return None
    try:
        made = _make(snapshot)
    except IndexFormatError:  # the names that are asked for may be sound
        made = None
    if made is None:
        asked.is_worthwhile = False
        return None
    snapshot.derived[_KEY] = made
    return made


def _make(snapshot: Snapshot) -> AllNames | None:
    """The names of all passages; None if one of them has a character that must be encoded."""
    texts, ends, firsts = [], [], []
    passages = size = 0
    for segment in snapshot.segments:
        first = segment["document.first_passage"].astype(np.int64)
        count = np.diff(first)
        documents = np.repeat(np.arange(segment.documents), count)
        numbers = np.arange(documents.size) - first[documents] + 1
        names = NamesOfSegment(segment, documents, segment["passage.span"].astype(np.int64), numbers)
        length = names.lengths()
        end = np.cumsum(length)
        text = np.empty(int(end[-1]) if end.size else 0, np.uint8)
        if not names.write(text, end - length).all():
            return None
        texts.append(text)
        ends.append(end + size)
        firsts.append(first[:-1] + passages)
        passages, size = passages + documents.size, size + text.size
    text, end = np.concatenate(texts), frozen(np.concatenate(ends))
    return AllNames(NameLines(text, end, are_distinct(text, end)), frozen(np.concatenate(firsts)))
