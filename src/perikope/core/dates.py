"""Converts dates of many forms to ISO 8601."""

from __future__ import annotations

import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = re.compile(
    r"\b(jan(?=uary\b|\b)|feb(?=ruary\b|\b)|mar(?=ch\b|\b)|apr(?=il\b|\b)|may\b|jun(?=e\b|\b)|jul(?=y\b|\b)|aug(?=ust\b|\b)"
    r"|sep(?=t?\b|tember\b)|oct(?=ober\b|\b)|nov(?=ember\b|\b)|dec(?=ember\b|\b))",
    re.IGNORECASE,
)


def iso_date(text: str) -> str:
    """Convert a date to ISO 8601: 2001-03-15, or 2001-03 or 2001 if the rest is missing or out of range.

    A text that is not a date gives an empty text.

    >>> iso_date("20010315"), iso_date("2004 7 1"), iso_date("19420300"), iso_date("2008-09-25T02:04:44Z")
    ('2001-03-15', '2004-07-01', '1942-03', '2008-09-25')
    >>> iso_date("May")
    ''
    >>> iso_date("2012 May"), iso_date("2004 June 1"), iso_date("7 Sept. 1998"), iso_date("March 3, 2001")
    ('2012-05', '2004-06-01', '1998-09-07', '2001-03-03')
    """
    if month := _MONTH.search(text):
        # The name of the month may be before, between or after year and day. The year is the number with four digits.
        year, day = (re.search(rf"(?<![0-9])[0-9]{{{size}}}(?![0-9])", text) for size in ("4", "1,2"))
        number = _MONTHS.index(month[1].lower()) + 1
        text = f"{year[0]} {number} {day[0] if day else ''}" if year else ""
    digits = re.findall(r"[0-9]+", re.sub(r"(?<=-[0-9]{2})T.*", "", text))
    if len(digits) == 1 and len(digits[0]) == 8:
        digits = [digits[0][:4], digits[0][4:6], digits[0][6:]]
    if not digits or len(digits[0]) != 4 or len(digits) > 3:
        return ""
    pieces = [digits[0]]
    for number, largest in zip(digits[1:], (12, 31), strict=False):
        if len(number) > 2 or not 1 <= int(number) <= largest:
            break
        pieces.append(f"{int(number):02d}")
    return "-".join(pieces)
