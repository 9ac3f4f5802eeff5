"""Byte strings of a segment file. A string and its bounds are verified and checked when they are first read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perikope.core.arrays import Array, Integers
from perikope.core.errors import IndexFormatError
from perikope.index.blocks import Verification


@dataclass(frozen=True, slots=True)
class StringColumns:
    """The columns of strings, and how they are verified."""

    verification: Verification
    ends: str
    """The name of the column that has the end of each string."""
    data: str
    """The name of the column that has the bytes."""
    verifies_data: bool
    """Whether the bytes are verified. The ends always are."""


class Strings:
    """Byte strings, numbered from 0, stored end to end in one array.

    Before `data` or `unverified_ends` are read directly, call `require` or `require_range`.
    """

    __slots__ = ("_columns", "_is_whole", "_name", "data", "unverified_ends")

    def __init__(self, ends: Array, data: Array, name: str, columns: StringColumns | None = None) -> None:
        """`name` names the strings in errors. Without `columns`, nothing is verified, and all ends are checked now."""
        self.unverified_ends, self.data, self._name, self._columns = ends, data, name, columns
        self._is_whole = False
        typed = ends.dtype.kind == "u" and data.dtype == np.uint8
        if not typed or (int(ends[-1]) if ends.size else 0) != data.size:
            raise self.damaged()
        if columns is None:
            self._check_ends()

    @property
    def ends(self) -> Array:
        """The end of each string in `data`, verified and checked."""
        if not self._is_whole:
            if self._columns is not None:
                self._columns.verification.require_column(self._columns.ends)
            self._check_ends()
        return self.unverified_ends

    def __len__(self) -> int:
        return int(self.unverified_ends.size)

    def __getitem__(self, number: int) -> bytes:
        begin, end = self._bounds(number)
        if self._columns is not None and self._columns.verifies_data:
            self._columns.verification.require(self._columns.data, begin, end)
        return self.data[begin:end].tobytes()

    def require(self, numbers: Integers) -> None:
        """Verify the strings with these numbers, and check their bounds."""
        if self._columns is None or not numbers.size:
            return
        verification = self._columns.verification
        if not self._is_whole:
            if verification.by_blocks:
                verification.require_ranges((self._columns.ends,), np.maximum(numbers - 1, 0), numbers + 1)
            else:
                _ = self.ends
        begin, end = self.bounds(numbers)
        if np.any(begin > end) or int(begin.min()) < 0 or int(end.max()) > self.data.size:
            raise self.damaged()
        if self._columns.verifies_data:
            verification.require_ranges((self._columns.data,), begin, end)

    def bounds(self, numbers: Integers) -> tuple[Integers, Integers]:
        """Where each of the strings with these numbers begins and ends in `data`. The strings must be verified."""
        begin = np.where(numbers > 0, self.unverified_ends[np.maximum(numbers, 1) - 1], 0).astype(np.int64)
        return begin, self.unverified_ends[numbers].astype(np.int64)

    def require_range(self, numbers: range) -> None:
        """Verify consecutive strings, and check their bounds."""
        if self._columns is not None and numbers:
            begin = int(self.ends[numbers.start - 1]) if numbers.start else 0
            if self._columns.verifies_data:
                self._columns.verification.require(self._columns.data, begin, int(self.ends[numbers[-1]]))

    def longest(self, numbers: Integers) -> int:
        """The length in bytes of the longest string among those with these numbers; 0 if `numbers` is empty.

        The strings must be verified.
        """
        begin, end = self.bounds(numbers)
        return int((end - begin).max(initial=0))

    def text(self, number: int) -> str:
        """The string with this number, decoded as UTF-8."""
        try:
            return self[number].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise self.damaged() from None

    def texts(self, numbers: Integers) -> list[str]:
        """The strings with these numbers, decoded as UTF-8, in a third of the time of single calls of `text`."""
        chosen = numbers.astype(np.int64)
        self.require(chosen)
        begin, end = self.bounds(chosen)
        data = self.data.data
        try:
            return [str(data[i:j], "utf-8", "surrogatepass") for i, j in zip(begin.tolist(), end.tolist(), strict=True)]
        except UnicodeDecodeError:
            raise self.damaged() from None

    def damaged(self) -> IndexFormatError:
        """Make the error for strings that cannot be read."""
        return IndexFormatError(f"{self._name} is damaged: restore the index from a copy or build it again")

    def _bounds(self, number: int) -> tuple[int, int]:
        """Where a string begins and ends in `data`."""
        if not self._is_whole:
            self._require_bounds(number)
        begin, end = int(self.unverified_ends[number - 1]) if number else 0, int(self.unverified_ends[number])
        if not begin <= end <= self.data.size:
            raise self.damaged()
        return begin, end

    def _require_bounds(self, number: int) -> None:
        assert self._columns is not None, "strings without columns are checked as a whole"
        verification = self._columns.verification
        if not verification.by_blocks:
            _ = self.ends
            return
        verification.require_row(self._columns.ends, number)
        if number:
            verification.require_row(self._columns.ends, number - 1)

    def _check_ends(self) -> None:
        if np.any(self.unverified_ends[:-1] > self.unverified_ends[1:]):
            raise self.damaged()
        self._is_whole = True
