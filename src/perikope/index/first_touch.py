"""Verifies documents and terms of a segment when they are first needed, with one flag per document or term.

Many documents are read at once by kernels, which read columns directly. Checking the blocks of all these rows in every
search would take longer than reading them. So a search that has seen its documents before looks at one flag each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from perikope.core.arrays import Integers
from perikope.index.columns import ColumnFile
from perikope.index.layout import OF_PASSAGE
from perikope.index.ranges import ranges

_JOINED = {
    "document.first_code": ("tokens",),
    "document.first_section": ("section.parent", "section.title_first", "section.title_end", "section.title_length"),
    "document.first_passage": tuple(f"passage.{name}" for name in OF_PASSAGE),
    "document.first_span": ("span.part", "span.tag"),
}
"""The columns that a join reads of its candidates, by the column that has the first row of each document."""
_TREE = {"document.first_span": tuple(f"span.{name}" for name in ("kind", "tag", "parent", "first_token", "end_token"))}
"""The columns of the trees of documents."""


class FirstTouch:
    """Calls `verify` once with every number below `count` that is required. The number -1 stands for nothing."""

    def __init__(self, count: int, verify: Callable[[Integers], None]) -> None:
        self._sound = np.zeros(count + 1, bool)
        self._sound[count] = True  # the flag of the number -1
        self._verify = verify

    def require(self, numbers: Integers) -> None:
        """Verify those of the numbers that were not verified before."""
        sound = self._sound.take(numbers)
        if np.count_nonzero(sound) < sound.size:  # a microsecond faster than `all`
            unverified = np.unique(numbers[~sound])
            self._verify(unverified)
            self._sound[unverified] = True


def joined_documents(columns: ColumnFile, documents: int) -> FirstTouch:
    """Verifies what a join reads of documents: tokens, passages, sections, and parts and tags of spans."""
    return FirstTouch(documents, partial(_verify_rows, columns, _JOINED))


def trees_of_documents(columns: ColumnFile, documents: int) -> FirstTouch:
    """Verifies the trees of documents."""
    return FirstTouch(documents, partial(_verify_rows, columns, _TREE))


def postings_of_terms(columns: ColumnFile, terms: int) -> FirstTouch:
    """Verifies the postings of terms: documents and frequencies."""
    return FirstTouch(terms, partial(_verify_postings, columns))


def _verify_rows(columns: ColumnFile, names_by_offsets: Mapping[str, tuple[str, ...]], documents: Integers) -> None:
    for offsets, names in names_by_offsets.items():
        first, end = (columns.whole(offsets)[documents + i].astype(np.int64) for i in (0, 1))
        columns.require_ranges(names, first, end)


def _verify_postings(columns: ColumnFile, terms: Integers) -> None:
    first_window, end_window = offsets_at(columns, "term.first_window", "window.number", terms)
    columns.require_ranges(("window.number",), first_window, end_window)
    # A kernel reads the offsets of all windows of a term, so each of them must be right.
    first, end = offsets_at(columns, "window.first_posting", "posting.document", ranges(first_window, end_window))
    columns.require_ranges(("posting.document", "posting.frequency"), first, end)


def offsets_at(columns: ColumnFile, name: str, target: str, groups: Integers) -> tuple[Integers, Integers]:
    """Where groups of rows begin and end, verified and checked.

    The column `name` has the first row of each group in the column `target`, and the end of the last group.
    """
    columns.require_offsets(name, groups)
    first, end = (columns[name][groups + i].astype(np.int64) for i in (0, 1))
    if groups.size and (np.any(first > end) or int(first.min()) < 0 or int(end.max()) > columns[target].size):
        raise columns.damaged(f"has damaged offsets ({name})")
    return first, end
