"""What the patent formats share: numbers and codes in one form, headings that are only paragraphs, and references by words.

A schema gives a `Bibliography` and a profile; the walk makes of them a document with the sections bibliography, abstract, description
and claims, one claim a passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from lxml import etree

from perikope.codes import parse_code
from perikope.document import Document, Kind, Place
from perikope.formats._inline import Run
from perikope.formats._profile import Element, Profile, Role, Rule, Walk, iso_date, text_of
from perikope.formats._source import Source, language_or_nothing
from perikope.formats._xml import Tree


class PatentNumber(NamedTuple):
    """A publication or an application by its number, in one form whoever wrote it; see `patent_number`."""

    country: str
    number: str
    kind: str = ""
    date: str = ""
    """As 2001-03-15, or as much of it as is known."""

    @property
    def id(self) -> str:
        """The id of its document: `EP-1000000-A1`."""
        return "-".join(filter(None, (self.country, self.number, self.kind)))

    @property
    def written(self) -> str:
        """As people write it: `EP0680812A1`."""
        return self.patent + self.kind

    @property
    def patent(self) -> str:
        """The same without the kind: `EP0680812`."""
        return self.country + (self.number.zfill(7) if self.country == "EP" else self.number)


def patent_number(country: str, number: str, kind: str = "", date: str = "") -> PatentNumber:
    """A number from its parts as a file has them.

    Zeros in front are dropped. A WO number gets a year of four digits and six more, one of a US application a year and seven more.

    >>> patent_number("EP", "0680812", "A1").id, patent_number("US", "D0435854", "S1").id
    ('EP-680812-A1', 'US-D435854-S1')
    >>> patent_number("WO", "9511968", "A1").id, patent_number("US", "2004248206", "A1").id
    ('WO-1995011968-A1', 'US-20040248206-A1')
    """
    country, kind = country.strip().upper(), kind.strip().upper()
    number = re.sub(r"[^A-Z0-9]", "", number.upper())
    letters = re.match(r"[A-Z]*", number)[0]  # type: ignore[index]
    digits = number[len(letters) :]
    if not letters and country == "WO" and len(digits) == 7:
        digits = ("19" if digits[:2] >= "78" else "20") + digits[:2] + "0" + digits[2:]
    elif not letters and country == "US" and len(digits) == 10 and digits[:2] == "20" and kind.startswith("A"):
        digits = digits[:4] + "0" + digits[4:]
    elif digits.isdecimal():
        digits = str(int(digits))
    return PatentNumber(country, letters + digits, kind, iso_date(date))


class Shown(NamedTuple):
    """What of the bibliographic data is a passage of its own."""

    tag: str
    text: str
    part: str = ""
    language: str = ""


@dataclass(slots=True)
class Bibliography:
    """What a schema says about a patent, in whatever tags; all lists in the order of the file."""

    publication: PatentNumber
    application: PatentNumber | None = None
    priorities: list[PatentNumber] = field(default_factory=list)
    family: str = ""
    titles: list[tuple[str, Element]] = field(default_factory=list)
    """Language, as the file writes it, and element of each title."""
    ipc: list[str] = field(default_factory=list)
    """Classification codes as the file writes them."""
    cpc: list[str] = field(default_factory=list)
    ecla: list[str] = field(default_factory=list)
    uspc: list[str] = field(default_factory=list)
    applicants: list[tuple[str, Element]] = field(default_factory=list)
    """Name and the element that holds it."""
    inventors: list[tuple[str, Element]] = field(default_factory=list)
    assignees: list[tuple[str, Element]] = field(default_factory=list)
    cites: list[PatentNumber] = field(default_factory=list)
    literature: list[str] = field(default_factory=list)

    def metadata(self) -> dict[str, object]:
        """The metadata of the document, without what is not known."""
        raise NotImplementedError


def codes(texts: Iterable[str]) -> list[str]:
    """Classification codes in their one form, without doubles; what is none is left out."""
    parsed = (parse_code(text) for text in texts)
    return list(dict.fromkeys(str(code) for code in parsed if code))


class PatentWalk(Walk):
    """The walk through a patent; a schema says where its bibliographic data are."""

    bibliographies: ClassVar[frozenset[str]] = frozenset(("bibliographic-data",))
    """Tags of the element that holds the bibliographic data; it becomes the section `bibliography`."""
    claims: ClassVar[frozenset[str]] = frozenset(("claim",))
    """Tags of a claim, a passage in the profile."""
    paragraphs: ClassVar[frozenset[str]] = frozenset(("p",))
    """Tags of a paragraph of the description, a passage in the profile; it may be a heading that looks like one."""

    patent: Bibliography

    def __init__(self, profile: Profile, tree: Tree, source: Source) -> None:
        self.root = tree.root
        self.patent = self.bibliography()
        super().__init__(profile, tree, source)

    # What a schema does in its own way.

    def bibliography(self) -> Bibliography:
        """What the file says about the patent; `self.root` is set, nothing else."""
        raise NotImplementedError

    def claim_number(self, element: Element) -> int:
        """The number of a claim, from its attribute `num`; 0 where it has none and is counted."""
        raise NotImplementedError

    def paragraph_number(self, element: Element) -> tuple[str, bool]:
        """The number of a paragraph, as `0042`, and whether readers of the printed patent know it by that number."""
        raise NotImplementedError

    def level_of_tag(self, element: Element) -> int:
        """The level that the tags say of a heading; 0 where they do not."""
        return 0
