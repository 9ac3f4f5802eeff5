"""Classification codes of patents (IPC, CPC, ECLA): one form for the many in which they are written, and their levels.

    class G06 · subclass G06F · group G06F17 · full G06F17/30

Offices and editions write the same code as `G06F 17/30`, `G06F017/30`, `G06F  17/30        20060101A I20051008RMEP` or, padded to
fixed width, `G06F0017300000` or `G06F0017300000AFI20051220RMJP`. Digits after a subclass without a slash are a group (`A61K2800` is
one of CPC).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LEVELS = ("class", "subclass", "group", "full")

_PADDED = re.compile(r"([A-HY][0-9]{2}[A-Z])([0-9]{4})([0-9]{6})(?:[A-Z][A-Z0-9 ]{0,40})?")
"""Four digits of group and six of subgroup, filled up with zeros before the one and after the other; then what IPCR adds about it."""
_VERSION = r"\s*/?(?:\s+[12][0-9]{7}.*|\s*[(\[].*|\s*)"
"""What may follow a code that is not a full one: the edition, in one of its forms."""
_CODE = re.compile(
    r"([A-HY][0-9]{2})(?:([A-Z])(?:[\s-]*0*([1-9][0-9]{0,3})"
    r"(?:\s*[/:]\s*([0-9]{1,6})([A-Z+][A-Z0-9+/:.]{0,39})?(?:[\s(\[].*)?|" + _VERSION + r")"
    r"|" + _VERSION + r")|" + _VERSION + r")",
    re.DOTALL,
)
_LONGEST = 200
"""No code, edition and office included, is longer; more is not looked at."""


@dataclass(frozen=True, slots=True)
class Code:
    """A code as far as it was given; `str` is its one form."""

    symbol: str
    """Class or subclass: `G06` or `G06F`."""
    group: str = ""
    subgroup: str = ""
    detail: str = ""
    """What ECLA adds to a subgroup: `B3D1`, `+69/716`."""

    def __str__(self) -> str:
        return self.symbol + self.group + (f"/{self.subgroup}{self.detail}" if self.subgroup else "")

    @property
    def level(self) -> str:
        """How far it was given."""
        if self.group:
            return "full" if self.subgroup else "group"
        return "class" if len(self.symbol) == 3 else "subclass"

    def at(self, level: str) -> str:
        """Its form at a level, or as it is where it does not go so far.

        >>> code = parse_code("G06F 17/30")
        >>> [code.at(level) for level in LEVELS]
        ['G06', 'G06F', 'G06F17', 'G06F17/30']
        """
        if level == "full":
            return str(self)
        return self.symbol + self.group if level == "group" else self.symbol[: 3 if level == "class" else 4]

    def holds(self, other: Code) -> bool:
        """Whether another code is this one or lies inside it.

        >>> [parse_code("G06F1").holds(parse_code(text)) for text in ("G06F 1/16", "G06F 17/30", "G06F")]
        [True, False, False]
        """
        mine, theirs = str(self), str(other)
        return theirs.startswith(mine) and not (mine[-1].isdigit() and theirs[len(mine) : len(mine) + 1].isdigit())


def parse_code(text: str) -> Code | None:
    """The code that a text begins with, or None where it is none.

    >>> [str(parse_code(text)) for text in ("g06f 17/30", "G06F0017300000", "H01R   4/24        20060101C I20051008RMEP", "B28B   7/00F")]
    ['G06F17/30', 'G06F17/30', 'H01R4/24', 'B28B7/00F']
    """
    text = text[:_LONGEST].strip().upper()
    if padded := _PADDED.fullmatch(text):
        symbol, group, subgroup = padded.groups()
        # A subgroup has two digits at least; zeros after those are padding.
        return Code(symbol, str(int(group)), subgroup[:2] + subgroup[2:].rstrip("0")) if int(group) else Code(symbol)
    found = _CODE.fullmatch(text)
    if found is None:
        return None
    number, letter, group, subgroup, detail = (part or "" for part in found.groups())
    return Code(number + letter, group, subgroup, detail)
