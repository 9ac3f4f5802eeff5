"""Many names as one text with a line per name, which kernels write, hash and copy without an object per name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import overload

import numpy as np

from perikope.core.arrays import Bytes, Floats, Integers, frozen


@dataclass(frozen=True, slots=True)
class NameLines:
    """Names in UTF-8, each followed by a line break."""

    text: Bytes
    ends: Integers
    """The offset after the line break of each name. A name that is not encoded yet may contain line breaks itself."""

    are_checked: bool = False
    """Whether it is known that the names are distinct, and that none is empty or holds white space."""

    def __post_init__(self) -> None:
        frozen(self.text)

    @classmethod
    def of(cls, names: Sequence[str]) -> NameLines:
        """The lines of some names."""
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        ends = np.cumsum([len(name) + 1 for name in encoded], dtype=np.int64)
        return cls(np.frombuffer(b"".join([name + b"\n" for name in encoded]), np.uint8), ends)

    def __len__(self) -> int:
        return int(self.ends.size)

    def to_list(self) -> list[str]:
        """The names, none of which contains a line break."""
        return self.text.tobytes().decode("utf-8", "surrogatepass").split("\n")[:-1]

    def pieces(self) -> list[str]:
        """The names, which may contain anything."""
        data, ends = self.text.tobytes(), [0, *self.ends.tolist()]
        return [data[begin : end - 1].decode("utf-8", "surrogatepass") for begin, end in pairwise(ends)]


class RankedNames(Sequence[tuple[str, float]]):
    """Pairs of a name and its score, best first, which are made when they are used."""

    def __init__(self, lines: NameLines, scores: Floats) -> None:
        self.lines, self.scores = lines, scores

    @classmethod
    def of(cls, ranking: Iterable[tuple[str, float]]) -> RankedNames:
        """The same pairs. They are returned themselves if they are ranked names."""
        if isinstance(ranking, RankedNames):
            return ranking
        pairs = list(ranking)
        return cls(NameLines.of([name for name, _ in pairs]), np.array([score for _, score in pairs], np.float64))

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return zip(self.lines.pieces(), self.scores.tolist(), strict=True)

    @overload
    def __getitem__(self, number: int) -> tuple[str, float]: ...
    @overload
    def __getitem__(self, number: slice) -> list[tuple[str, float]]: ...
    def __getitem__(self, number: int | slice) -> tuple[str, float] | list[tuple[str, float]]:
        return list(self)[number]
