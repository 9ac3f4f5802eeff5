"""The names of passages of one segment, as ranges of bytes that a kernel writes."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Integers, Mask
from perikope.index.segments import Segment
from perikope.kernels.names import write_names

_POWERS = 10 ** np.arange(1, 19)
"""The smallest integers with two digits, three digits and so on."""


class NamesOfSegment:
    """The ids of passages of one segment and of their documents, as ranges of bytes.

    `documents` must be in ascending order. `spans` and `numbers` have the span and the number, from 1, of each passage
    in its document.
    """

    def __init__(self, segment: Segment, documents: Integers, spans: Integers, numbers: Integers) -> None:
        self._segment, self._numbers = segment, numbers
        segment.named.require(documents)
        self._of_document = segment.document_ids.bounds(documents)
        rows = segment.rows_of_ids(documents, spans)
        has_id = rows >= 0
        segment.ids.require(rows[has_id])
        self._of_id = np.full(rows.size, -1), np.full(rows.size, -1)
        for bounds, found in zip(self._of_id, segment.ids.bounds(rows[has_id]), strict=True):
            bounds[has_id] = found
        # An empty id is none, as for a single passage.
        for bounds in self._of_id:
            bounds[self._of_id[0] == self._of_id[1]] = -1

    def lengths(self) -> Integers:
        """The length of each name in bytes, with a line break."""
        digits = np.searchsorted(_POWERS, self._numbers, "right") + 1
        own = np.where(self._of_id[0] < 0, digits + 1, self._of_id[1] - self._of_id[0])
        return self._of_document[1] - self._of_document[0] + own + 2

    def write(self, text: Bytes, at: Integers) -> Mask:
        """Write the names to `text` from the offsets `at` on; returns whether each is right, see `write_names`."""
        data = self._segment.document_ids.data, self._segment.ids.data
        plain: Mask = write_names(text, at, data[0], *self._of_document, data[1], *self._of_id, self._numbers)
        return plain
