"""How Excel shows a number: as a date, a share, or a number with its unit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

_BUILTIN = {9: "0%", 10: "0.00%", **dict.fromkeys((14, 15, 16, 17, *range(27, 37), *range(50, 59)), "yyyy-mm-dd"),
            **dict.fromkeys((18, 19, 20, 21, 45, 46, 47), "hh:mm:ss"), 22: "yyyy-mm-dd hh:mm"}  # fmt: skip
_TOKEN = re.compile(
    r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[([hms]+)\]|\[[^\]]*\]|_.|\*.|(AM/PM|A/P|am/pm|a/p)|([0#?.,/]+)|(.)', re.DOTALL
)
_LAST_DAY = 2_958_465
"""The last day that Excel can show: the end of the year 9999."""


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A format of numbers."""

    is_date: bool = False
    is_time: bool = False
    is_share: bool = False
    before: str = ""
    after: str = ""

    def shown(self, text: str, from_1904: bool) -> str:
        """A stored number as text.

        >>> number_format('0.0 "kg"').shown("4.5", False), number_format("d.m.yy").shown("45000", False)
        ('4.5 kg', '2023-03-15')
        """
        try:
            value = float(text)
        except ValueError:
            return text
        if (self.is_date or self.is_time) and 0 <= value <= _LAST_DAY:
            return self._moment(value, from_1904)
        plain = _plain(value * 100) + "%" if self.is_share else _plain(value)
        return f"{self.before}{plain}{self.after}"

    def _moment(self, value: float, from_1904: bool) -> str:
        if self.is_time and not self.is_date:
            minutes, seconds = divmod(round(value * 86_400), 60)
            return f"{minutes // 60:02}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
        # The first two months of 1900 have a wrong leap day after them.
        start = datetime(1904, 1, 1) if from_1904 else datetime(1899, 12, 31 if value < 60 else 30)
        try:
            moment = start + timedelta(seconds=round(value * 86_400))
        except OverflowError:
            return _plain(value)
        day = moment.date().isoformat()
        return f"{day} {moment.time().isoformat('seconds' if moment.second else 'minutes')}" if self.is_time and value % 1 else day


GENERAL = NumberFormat()
"""The format of numbers that are shown as they are."""


def builtin_format(number: int) -> NumberFormat:
    """A format that has a number only."""
    return number_format(_BUILTIN.get(number, "General"))


@lru_cache(maxsize=4096)
def number_format(code: str) -> NumberFormat:
    """The meaning of a format as its author writes it: `0.0 "kg"`, `[$€-407] #,##0`, `d.m.yy h:mm`."""
    if code.strip().lower() in ("general", "@", ""):
        return GENERAL
    before: list[str] = []
    after: list[str] = []
    letters, texts = "", before
    for quoted, escaped, currency, elapsed, half, digits, other in _TOKEN.findall(code):
        if other == ";":
            break  # The sections that follow are for negative numbers, zero and text.
        if digits:
            texts = after
        elif elapsed or (other and other in "dDmMyYhHsSeE"):
            letters += (elapsed or other).lower()
        elif half:
            letters += "h"
        else:
            texts.append(quoted or escaped or currency or ("" if other in "%+-()" else other))
    is_date = bool(set(letters) & set("dy")) or letters.strip("e") in ("m", "mm", "mmm", "mmmm", "mmmmm")
    is_time = bool(set(letters) & set("hs"))
    if is_date or is_time:
        return NumberFormat(is_date=is_date, is_time=is_time)
    return NumberFormat(is_share="%" in re.sub(r'"[^"]*"', "", code.partition(";")[0]), before="".join(before), after="".join(after))


def _plain(value: float) -> str:
    """A number with the digits that Excel shows.

    >>> _plain(0.1 + 0.2), _plain(3.0), _plain(1e20)
    ('0.3', '3', '1e+20')
    """
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.15g}"
