"""Classification codes of patents (IPC, CPC, ECLA): the normal form of a code, and its levels.

The levels of a code, most general first:

    class G06 · subclass G06F · group G06F17 · full G06F17/30

Offices and editions write the same code as `G06F 17/30`, `G06F017/30`, `G06F  17/30        20060101A I20051008RMEP` or,
padded to fixed width, `G06F0017300000` or `G06F0017300000AFI20051220RMJP`. Without a slash, the digits after a subclass
are a group (`A61K2800` in the CPC).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LEVELS = ("class", "subclass", "group", "full")
CODE_FIELDS = ("ipc", "ipcr", "cpc", "ecla")
"""Metadata fields that contain classification codes."""

_PADDED = re.compile(r"([A-HY][0-9]{2}[A-Z])([0-9]{4})([0-9]{6})(?:[A-Z][A-Z0-9 ]{0,40})?")
"""A code in fixed width: a group of four digits, zeros in front, and a subgroup of six digits, zeros at the end.

The attributes that the IPCR adds may follow.
"""
_VERSION = r"\s*/?(?:\s+[12][0-9]{7}.*|\s*[(\[].*|\s*)"
"""The edition of the classification, which may follow a code without a subgroup."""
_CODE = re.compile(
    r"([A-HY][0-9]{2})(?:([A-Z])(?:[\s-]*0*([1-9][0-9]{0,3})"
    r"(?:\s*[/:]\s*([0-9]{1,6})([A-Z+][A-Z0-9+/:.]{0,39})?(?:[\s(\[].*)?|" + _VERSION + r")"
    r"|" + _VERSION + r")|" + _VERSION + r")",
    re.DOTALL,
)
_LONGEST = 200
"""Number of characters of a text that are read; a code with its edition and office is shorter."""


@dataclass(frozen=True, slots=True)
class Code:
    """A classification code of any level. `str(code)` is its normal form. Missing levels are empty."""

    symbol: str
    """Class or subclass: `G06` or `G06F`."""
    group: str = ""
    subgroup: str = ""
    detail: str = ""
    """The ending that ECLA adds to a subgroup: `B3D1`, `+69/716`."""

    def __str__(self) -> str:
        return self.symbol + self.group + (f"/{self.subgroup}{self.detail}" if self.subgroup else "")

    @property
    def level(self) -> str:
        """The level of the code: one of `LEVELS`."""
        if self.group:
            return "full" if self.subgroup else "group"
        return "class" if len(self.symbol) == 3 else "subclass"

    def at(self, level: str) -> str:
        """The code shortened to a level; the whole code if it is already as general or more general.

        >>> code = parse_code("G06F 17/30")
        >>> [code.at(level) for level in LEVELS]
        ['G06', 'G06F', 'G06F17', 'G06F17/30']
        """
        if level == "full":
            return str(self)
        return self.symbol + self.group if level == "group" else self.symbol[: 3 if level == "class" else 4]

    def holds(self, other: Code) -> bool:
        """Whether another code equals this code or is a subdivision of it.

        >>> [parse_code("G06F1").holds(parse_code(text)) for text in ("G06F 1/16", "G06F 17/30", "G06F")]
        [True, False, False]
        """
        mine, theirs = str(self), str(other)
        return theirs.startswith(mine) and not (mine[-1].isdigit() and theirs[len(mine) : len(mine) + 1].isdigit())


def parse_code(text: str) -> Code | None:
    """The code in a text, which an edition may follow; None if the text is not a code.

    >>> [str(parse_code(text)) for text in ("g06f 17/30", "G06F0017300000", "B28B   7/00F")]
    ['G06F17/30', 'G06F17/30', 'B28B7/00F']
    >>> str(parse_code("H01R   4/24        20060101C I20051008RMEP"))
    'H01R4/24'
    """
    text = text[:_LONGEST].strip().upper()
    if padded := _PADDED.fullmatch(text):
        symbol, group, subgroup = padded.groups()
        # A subgroup has at least two digits; zeros after the second digit are padding.
        return Code(symbol, str(int(group)), subgroup[:2] + subgroup[2:].rstrip("0")) if int(group) else Code(symbol)
    match = _CODE.fullmatch(text)
    if match is None:
        return None
    number, letter, group, subgroup, detail = (part or "" for part in match.groups())
    return Code(number + letter, group, subgroup, detail)
