"""Classification codes of patents (IPC, CPC, ECLA): their normal form, and their levels.

    class G06 · subclass G06F · group G06F17 · full G06F17/30

Offices and editions write the same code as `G06F 17/30`, `G06F017/30`, `G06F  17/30        20060101A I20051008RMEP` or,
padded to fixed width, `G06F0017300000` or `G06F0017300000AFI20051220RMJP`. Digits after a subclass without a slash are
a group (`A61K2800` of the CPC).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LEVELS = ("class", "subclass", "group", "full")

_PADDED = re.compile(r"([A-HY][0-9]{2}[A-Z])([0-9]{4})([0-9]{6})(?:[A-Z][A-Z0-9 ]{0,40})?")
"""Four digits of group, padded in front, and six of subgroup, padded at the end; then the additions of the IPCR."""
_VERSION = r"\s*/?(?:\s+[12][0-9]{7}.*|\s*[(\[].*|\s*)"
"""The edition, in one of its forms, which may follow a code without a subgroup."""
_CODE = re.compile(
    r"([A-HY][0-9]{2})(?:([A-Z])(?:[\s-]*0*([1-9][0-9]{0,3})"
    r"(?:\s*[/:]\s*([0-9]{1,6})([A-Z+][A-Z0-9+/:.]{0,39})?(?:[\s(\[].*)?|" + _VERSION + r")"
    r"|" + _VERSION + r")|" + _VERSION + r")",
    re.DOTALL,
)
_LONGEST = 200
"""The most characters of a code with edition and office; the rest of a text is ignored."""


@dataclass(frozen=True, slots=True)
class Code:
    """A code, down to the level that was given; `str` is its normal form."""

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
        """The level of the code: one of `LEVELS`."""
        if self.group:
            return "full" if self.subgroup else "group"
        return "class" if len(self.symbol) == 3 else "subclass"

    def at(self, level: str) -> str:
        """The code at a level; the code itself where its own level is higher.

        >>> code = parse_code("G06F 17/30")
        >>> [code.at(level) for level in LEVELS]
        ['G06', 'G06F', 'G06F17', 'G06F17/30']
        """
        if level == "full":
            return str(self)
        return self.symbol + self.group if level == "group" else self.symbol[: 3 if level == "class" else 4]

    def holds(self, other: Code) -> bool:
        """Whether another code is the same or lies inside this one.

        >>> [parse_code("G06F1").holds(parse_code(text)) for text in ("G06F 1/16", "G06F 17/30", "G06F")]
        [True, False, False]
        """
        mine, theirs = str(self), str(other)
        return theirs.startswith(mine) and not (mine[-1].isdigit() and theirs[len(mine) : len(mine) + 1].isdigit())


def parse_code(text: str) -> Code | None:
    """The code that a text begins with; None where it begins with none.

    >>> [str(parse_code(text)) for text in ("g06f 17/30", "G06F0017300000", "B28B   7/00F")]
    ['G06F17/30', 'G06F17/30', 'B28B7/00F']
    >>> str(parse_code("H01R   4/24        20060101C I20051008RMEP"))
    'H01R4/24'
    """
    text = text[:_LONGEST].strip().upper()
    if padded := _PADDED.fullmatch(text):
        symbol, group, subgroup = padded.groups()
        # A subgroup has two digits at least; zeros after those are padding.
        return Code(symbol, str(int(group)), subgroup[:2] + subgroup[2:].rstrip("0")) if int(group) else Code(symbol)
    match = _CODE.fullmatch(text)
    if match is None:
        return None
    number, letter, group, subgroup, detail = (part or "" for part in match.groups())
    return Code(number + letter, group, subgroup, detail)
