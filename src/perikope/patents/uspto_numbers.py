"""Normal forms of the numbers and classes that the US patent office (USPTO) writes, often in fixed width.

The ids of publications are `US-6530116-B2`, `US-D435854-S1`, `US-20010000044-A1`. Cited publications of other offices
are written as in the MAREC collection (`WO-2002025773-A1`, `JP-10168960`).

Applications are written as in MAREC and DOCDB, with serial number and year, so that families agree across sources:
09/832,323 of 2001 is `US-83232301-A`, and the provisional application 60/195,933 of 2000 is `US-19593300-P`.
"""

from __future__ import annotations

import re

from perikope.patents.codes import parse_code

Number = tuple[str, str, str]
"""Country, number and kind; the kind is empty if it is unknown."""

_LETTERED = re.compile(r"(RE|PP|AI|RX|D|H|T|X)0*([1-9][0-9]*)")
"""Numbers that begin with letters.

The letters mean, in order: reissues, plants, additional improvements, reexaminations, designs, statutory invention
registrations, defensive publications, and the first patents (before 1836).
"""
_KINDS = {"D": ("S", "S1"), "RE": ("E", "E1"), "PP": ("P", ""), "H": ("H", "H1"), "": ("A", "")}
"""Kinds of grants before 2001 and from 2001 on, by the letters of the number; empty if the kind is not certain."""
_CHANGED = 2001
"""The first year of the later kinds in `_KINDS`, and of applications published under a year and seven digits."""
_PROVISIONAL = ("60", "61", "62", "63")
"""Series codes of provisional applications: the first two digits of their numbers."""
_INTERNATIONAL = re.compile(r"PCT/?([A-Z]{2})/?([0-9]{4}|[0-9]{2})/?([0-9]{5,6})")


def publication(country: str, number: str, kind: str = "", date: str = "") -> Number | None:
    """The normal form of a publication's number; None if `number` holds none. Without a country it is a US number.

    >>> publication("US", "D0435854", "S", "20010102"), publication("US", "D. 271298", "", "19831100")
    (('US', 'D435854', 'S1'), ('US', 'D271298', 'S'))
    >>> publication("US", "2002/0065828", "A1"), publication("WO", "WO 02/25773", "A1")
    (('US', '20020065828', 'A1'), ('WO', '2002025773', 'A1'))
    >>> publication("JP", "8-93012", "", "19960400")
    ('JP', '8093012', '')
    """
    country, kind = _plain(country) or "US", _plain(kind)
    if country == "US":
        number = us_number(number, kind, date)
        kind = us_kind(number, kind, date)
    else:
        number = _foreign_number(country, number.strip().upper())
    return (country, number, kind if re.fullmatch(r"[A-Z][0-9]?", kind) else "") if number else None


def us_number(number: str, kind: str = "", date: str = "") -> str:
    """The number of a US publication in normal form, without padding zeros."""
    number = re.sub(r"[^A-Z0-9/]", "", number.upper())
    if lettered := _LETTERED.fullmatch(number):
        return f"{lettered[1]}{lettered[2]}"
    year, slash, rest = number.partition("/")
    if slash and len(year) == 4 and year.isdecimal() and rest.isdecimal():
        return year + rest.zfill(7)
    number = number.replace("/", "").lstrip("0")
    # Some files omit the year of a published application: 0193250, published in 2004.
    if re.fullmatch("A[129]", kind) and number.isdecimal() and len(number) <= 7 and _year(date) >= _CHANGED:
        return str(_year(date)) + number.zfill(7)
    return number


def us_kind(number: str, kind: str, date: str = "") -> str:
    """The kind of a US publication: as given, or derived from the letters of the number and the date.

    It is empty if it is unknown. A kind used before 2001 is replaced by the later kind if the date is 2001 or later.

    >>> us_kind("6530116", "B2"), us_kind("D435854", "S", "20010102"), us_kind("5793966", "", "19980811")
    ('B2', 'S1', 'A')
    >>> us_kind("6530116", "", "2003")
    ''
    """
    sort = re.match("[A-Z]*", number)
    before, since = _KINDS.get(sort[0] if sort else "", ("", ""))
    year = _year(date)
    if kind not in ("", before) or not year or len(number) == 11:
        return kind
    return since or kind if year >= _CHANGED else before


def _foreign_number(country: str, number: str) -> str:
    parts: list[str] = re.findall(r"[0-9A-Z]+", number.removeprefix(country))
    joined = "".join(parts)
    if country == "WO" and joined.isdecimal():
        # A year of two or four digits, and a number of five or six digits.
        width = len(parts[0]) if len(parts) > 1 else 4 if len(joined) == 10 else 2
        year, rest = joined[:width], joined[width:]
        return (("19" if year >= "78" else "20") if width == 2 else "") + year + rest.zfill(6)
    if country == "JP" and len(parts) == 2 and parts[1].isdecimal():
        # A year, Gregorian or of a Japanese era, and a number of six digits.
        return (re.sub("[^0-9]", "", parts[0]) + parts[1].zfill(6)).lstrip("0")
    if country == "KR" and len(parts) == 3 and parts[0] == "10":
        return parts[1] + parts[2]
    return joined.lstrip("0")


def application(country: str, number: str, date: str = "") -> Number | None:
    """The normal form of an application's number; None if `number` has no digits. Without a country it is a US number.

    >>> application("US", "09832323", "20010410"), application("US", "60/195,933", "20000410")
    (('US', '83232301', 'A'), ('US', '19593300', 'P'))
    >>> application("US", "16232658", "20181226"), application("US", "PCT/NO98/00107", "19980402")
    (('US', '201816232658', 'A'), ('NO', '9800107', 'W'))
    >>> application("JP", "11-097727", "19990405"), application("DE", "198 40 645.2")
    (('JP', '9772799', 'A'), ('DE', '19840645', 'A'))
    """
    country, number, year = _plain(country) or "US", number.strip().upper(), str(_year(date) or "")
    if international := _INTERNATIONAL.fullmatch(re.sub(r"[\s,.-]", "", number)):
        office, filed, serial = international.groups()
        return office, (filed + (serial.zfill(6) if len(filed) == 4 else serial)).lstrip("0"), "W"
    if country == "DE":
        number = re.sub(r"\.[0-9]$", "", number)  # drop the check digit
    parts = re.findall("[0-9]+", number)
    kind = "A"
    if country == "US" and year and len(digits := "".join(parts)) == 8:
        # Two digits of series and six of serial number. From 2011 on, DOCDB writes the year, then all eight digits.
        kind = "P" if digits[:2] in _PROVISIONAL else "A"
        parts = [year, digits] if int(year) > 2010 else [digits[2:], year[2:]]
    elif country == "JP" and len(parts) == 2:
        parts = [parts[0], parts[1].zfill(6)] if len(parts[0]) == 4 or not year else [parts[1], year[2:]]
    digits = "".join(parts).lstrip("0")
    return (country, digits, kind) if digits else None


def us_class(text: str) -> str:
    """A code of the US classification as `class/subclass`, from a text in fixed width; empty if the text is no code.

    The text has three characters for the class and three for the subclass, both padded on the left. Decimals and
    letters of the subclass follow. Published applications pad with zeros (`002227000`), grants with blanks.

    >>> [us_class(text) for text in (" 15328", " 153276", "379 8802", "D14480", "D 6626", "217 12 R", " 24 305 S")]
    ['15/328', '15/327.6', '379/88.02', 'D14/480', 'D6/626', '217/12R', '24/30.5S']
    >>> [us_class(text) for text in ("002227000", "623001160", "PLT226000", "None")]
    ['2/227', '623/1.16', 'PLT/226', '']
    """
    # In a re-indented file the blanks before the class are lost. Without decimals they follow from the width.
    text = (text.strip() if "\n" in text or len(text.strip()) < 6 else text.rstrip()).upper().rjust(6)
    match = re.fullmatch(r"(PLT|D[ 0-9][0-9]|[ 0-9]{2}[0-9])([ 0-9]{0,2}[0-9])([0-9]*) *([A-Z]{0,3})", text)
    if not match or " " in match[2].lstrip():
        return ""
    name, whole, decimals, letters = match.groups()
    if len(decimals + letters) == 3 and " " not in text:
        decimals = decimals.rstrip("0")
    return f"{name.replace(' ', '').lstrip('0')}/{int(whole)}{'.' + decimals if decimals else ''}{letters}"


def ipc(text: str) -> str:
    """An IPC code in normal form, also from the fixed width of ST.32; empty if the text is no code with a subgroup.

    In fixed width the group has three characters.

    >>> [ipc(text) for text in ("A47L  514", "E03C 104", "G06F 1516", "B08B003/00", "1402")]
    ['A47L5/14', 'E03C1/04', 'G06F15/16', 'B08B3/00', '']
    """
    text = text.strip()
    # In a re-indented file, the two blanks before a group of one digit have become one.
    if fixed := re.fullmatch(r"([A-H][0-9]{2}[A-Z])([ 0-9]{2}[0-9]| [0-9](?=[0-9]{2}$))([0-9]{2,6})", text):
        text = f"{fixed[1]} {fixed[2].strip()}/{fixed[3]}"
    code = parse_code(text)
    return str(code) if code and code.level == "full" else ""


def _plain(text: str) -> str:
    return re.sub("[^A-Z0-9]", "", text.upper())


def _year(date: str) -> int:
    return int(date[:4]) if date[:4].isdecimal() else 0
