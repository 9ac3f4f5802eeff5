"""Many texts as one, in which a search finds those that contain a text without looking at each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perikope.core.arrays import Integers
from perikope.index.segments import Segment
from perikope.index.strings import Strings

_SEPARATOR = b"\xff"
"""A byte that UTF-8 never contains. It stands before each text and after the last one."""


@dataclass(frozen=True, slots=True)
class JoinedTexts:
    """Texts that are joined with separators. A text has a number, from 0."""

    data: bytes
    separators: Integers
    """The offset of each separator in `data`; text i stands between the separators i and i + 1."""

    @classmethod
    def of(cls, strings: Strings, numbers: range, *, fold: bool) -> JoinedTexts:
        """Join consecutive strings of a column. With `fold`, upper and lower case become one."""
        strings.require_range(numbers)
        ends = np.concatenate([[0], strings.ends]).astype(np.int64)[numbers.start : numbers.stop + 1]
        data = np.full(int(ends[-1] - ends[0]) + ends.size, 255, np.uint8)
        is_text = np.ones(data.size, bool)
        separators = ends - ends[0] + np.arange(ends.size)
        is_text[separators] = False
        data[is_text] = strings.data[ends[0] : ends[-1]]
        if np.count_nonzero(data == 255) != separators.size:
            raise strings.damaged()
        return cls(data.tobytes(), separators)._folded() if fold else cls(data.tobytes(), separators)

    def _folded(self) -> JoinedTexts:
        lowered = self.data.lower()  # changes ASCII letters only
        if lowered.translate(None, _SEPARATOR).isascii():
            return JoinedTexts(lowered, self.separators)
        texts = [text if text.isascii() else _fold(text) for text in lowered[1:-1].split(_SEPARATOR)]
        data = _SEPARATOR + _SEPARATOR.join(texts) + _SEPARATOR
        return JoinedTexts(data, np.flatnonzero(np.frombuffer(data, np.uint8) == 255))

    def containing(self, text: bytes, *, before: bool, after: bool) -> Integers:
        """The numbers of the texts that contain a text, in ascending order.

        Unless `before` or `after` is set, nothing may stand before or after the text.
        """
        if not text and (before or after):
            return np.arange(self.separators.size - 1)
        wanted = (b"" if before else _SEPARATOR) + text + (b"" if after else _SEPARATOR)
        # The separator at the end of a match begins the next text.
        step = len(wanted) - (not after)
        found, at = [], self.data.find(wanted)
        while at >= 0:
            found.append(at)
            at = self.data.find(wanted, at + step)
        return np.unique(self.separators.searchsorted(np.array(found, np.int64), "right") - 1)

    def compare(self, bound: bytes) -> NDArray[np.int8]:
        """The sign of each text against a bound: -1 if it is below, 0 if both are equal, and 1 if it is above."""
        texts = self.data[1:-1].split(_SEPARATOR) if len(self.separators) > 1 else []
        return np.array([(text > bound) - (text < bound) for text in texts], np.int8)


def _fold(text: bytes) -> bytes:
    try:
        return text.decode("utf-8", "surrogatepass").casefold().encode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # a damaged text is as it is
        return text


def joined_ids(segment: Segment, exact: bool) -> JoinedTexts:
    """The ids of the documents of a segment, folded unless case counts. `Segment.remember` caches the result."""
    return JoinedTexts.of(segment.document_ids, range(segment.documents), fold=not exact)
