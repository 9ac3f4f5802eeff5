"""Patent numbers: the normal form of numbers of publications and applications."""

from __future__ import annotations

import re
from typing import NamedTuple

from perikope.core.dates import iso_date


class PatentNumber(NamedTuple):
    """The number of a publication or an application in normal form; see `patent_number`."""

    country: str
    number: str
    kind: str = ""
    date: str = ""
    """The date as `2001-03-15`, `2001-03` or `2001`, as far as it is known; empty if it is unknown."""

    @property
    def id(self) -> str:
        """The id of the document with this number: `EP-1000000-A1`."""
        return "-".join(filter(None, (self.country, self.number, self.kind)))

    @property
    def written(self) -> str:
        """The number with country and kind, as people write it: `EP0680812A1`."""
        return self.patent + self.kind

    @property
    def patent(self) -> str:
        """The number with its country but without its kind, as people write it: `EP0680812`."""
        return self.country + (self.number.zfill(7) if self.country == "EP" else self.number)


def patent_number(country: str, number: str, kind: str = "", date: str = "") -> PatentNumber:
    """The normal form of a number, from its parts as a file writes them.

    Leading zeros are dropped. A WO number becomes a year of four digits and a number of six digits. The number of a
    published US application becomes a year of four digits and a number of seven digits.

    >>> patent_number("EP", "0680812", "A1").id, patent_number("US", "D0435854", "S1").id
    ('EP-680812-A1', 'US-D435854-S1')
    >>> patent_number("WO", "9511968", "A1").id, patent_number("US", "2004248206", "A1").id
    ('WO-1995011968-A1', 'US-20040248206-A1')
    """
    country, kind = country.strip().upper(), kind.strip().upper()
    number = re.sub(r"[^A-Z0-9]", "", number.upper())
    digits = number.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    letters = number[: len(number) - len(digits)]
    if not letters and country == "WO" and len(digits) in (7, 8):
        digits = ("19" if digits[:2] >= "78" else "20") + digits[:2] + digits[2:].zfill(6)
    elif not letters and country == "US" and len(digits) == 10 and digits[:2] == "20" and len(kind) == 2 and kind[0] == "A":
        digits = digits[:4] + "0" + digits[4:]
    else:
        digits = digits.lstrip("0")
    return PatentNumber(country, letters + digits, kind, iso_date(date))


def number_of_id(id: str, date: str = "") -> PatentNumber:
    """The number of a publication, parsed from a document id such as `US-6530116-B2`; `date` is added to it.

    >>> number_of_id("US-6530116-B2")
    PatentNumber(country='US', number='6530116', kind='B2', date='')
    """
    country, _, rest = id.partition("-")
    number, _, kind = rest.partition("-")
    return PatentNumber(country, number, kind, iso_date(date))
