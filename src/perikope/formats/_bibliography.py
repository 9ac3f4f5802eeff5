"""Bibliographic data of patents: read from XML as the profile says, and converted to one form for all schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape

from lxml import etree

from perikope.core.dates import iso_date
from perikope.formats._patent_keys import NumberField, Parts, PatentKeys
from perikope.formats._source import language_or_nothing
from perikope.formats._xpaths import Element, Field, elements
from perikope.patents.codes import parse_code
from perikope.patents.numbers import PatentNumber, patent_number
from perikope.patents.uspto_numbers import application, publication


@dataclass(slots=True)
class Bibliography:
    """The bibliographic data of one patent. Lists are in the order of the profile's fields, then of the file."""

    publication: PatentNumber | None = None
    application: PatentNumber | None = None
    priorities: list[PatentNumber] = field(default_factory=list)
    family: str = ""
    titles: list[tuple[str, Element]] = field(default_factory=list)
    """For each title: its language as the file writes it, and its element."""
    ipc: list[str] = field(default_factory=list)
    """IPC codes as the file writes them; `metadata` normalises the codes of `ipc`, `cpc` and `ecla`."""
    cpc: list[str] = field(default_factory=list)
    ecla: list[str] = field(default_factory=list)
    uspc: list[str] = field(default_factory=list)
    """Codes of the US classification in the form 15/327.6; they need no normalisation."""
    applicants: list[tuple[str, Element]] = field(default_factory=list)
    """For each applicant: the name, and the element that holds it. Inventors and assignees have the same form."""
    inventors: list[tuple[str, Element]] = field(default_factory=list)
    assignees: list[tuple[str, Element]] = field(default_factory=list)
    cites: list[PatentNumber] = field(default_factory=list)
    literature: list[str] = field(default_factory=list)

    def metadata(self) -> dict[str, object]:
        """The metadata of the patent's document; fields without a value are left out."""
        publication, application = self.publication, self.application
        dated = sorted((priority for priority in self.priorities if priority.date), key=lambda priority: priority.date)
        earliest = dated[0] if dated else None
        fields: dict[str, object] = {}
        if publication and publication.number:
            fields |= {"publication": publication.written, "patent": publication.patent, "country": publication.country}
            fields |= {"kind": publication.kind, "date": publication.date}
        if application:
            fields["application_date"] = application.date
        fields["priority_date"] = earliest.date if earliest else application.date if application else ""
        fields["priorities"] = list(dict.fromkeys(priority.id for priority in self.priorities))
        fields["family"] = self.family or (earliest.id if earliest else application.id if application else "")
        for name, codes in (("ipc", self.ipc), ("cpc", self.cpc), ("ecla", self.ecla)):
            fields[name] = normal_codes(codes)
        fields["uspc"] = list(dict.fromkeys(self.uspc))
        for name, people in (("applicant", self.applicants), ("inventor", self.inventors), ("assignee", self.assignees)):
            fields[name] = list(dict.fromkeys(person for person, _ in people))
        fields["literature"] = list(dict.fromkeys(self.literature))
        return {key: value for key, value in fields.items() if value}

    def title_in(self, language: str) -> Element | None:
        """The element of the title in a language, else in English, else the first one; None if there is no title."""
        titles = [(language_or_nothing(written), element) for written, element in self.titles]
        for wanted in (language_or_nothing(language), "en"):
            for code, element in titles:
                if code == wanted:
                    return element
        return titles[0][1] if titles else None


def bibliography(keys: PatentKeys, root: Element) -> Bibliography:
    """Read the bibliographic data below `root`, as `keys` (the table `[patent]` of the profile) says."""
    filed = next(_applications(keys, keys.application, root), None)
    return Bibliography(
        publication=next(publications(keys, keys.publication, root), None),
        application=filed,
        priorities=list(_priorities(keys, root, filed)),
        family=next(iter(_values(keys.family, root)), ""),
        titles=[title for titles in keys.titles for title in titles.values(root)],
        ipc=_values(keys.ipc, root),
        cpc=_values(keys.cpc, root),
        ecla=_values(keys.ecla, root),
        uspc=_values(keys.uspc, root),
        applicants=_people(keys.applicants, keys.name, root),
        inventors=_people(keys.inventors, keys.name, root),
        assignees=_people(keys.assignees, keys.name, root),
        cites=list(publications(keys, keys.cites, root)),
        literature=_values(keys.literature, root),
    )


def publications(keys: PatentKeys, fields: Sequence[NumberField], element: Element) -> Iterator[PatentNumber]:
    """Yield the numbers of publications that the fields find in an element, in normal form."""
    for numbers in fields:
        for found in elements(numbers.path, element):
            yield from publications_of(keys, numbers, found)


def publications_of(keys: PatentKeys, numbers: NumberField, found: Element) -> Iterator[PatentNumber]:
    """Yield the numbers of publications in an element that a field has found, in normal form."""
    for parts in numbers.of(found):
        if number := _in_words(parts) if numbers.words else _publication(keys, parts):
            yield number


def normal_codes(texts: Iterable[str]) -> list[str]:
    """Classification codes in normal form, each code once; texts that are no codes are left out.

    >>> normal_codes(["B28B   1/29        20060101A I20051008RMEP", "B28B 1/29", "B28B   5/02B2", "x"])
    ['B28B1/29', 'B28B5/02B2']
    """
    parsed = (parse_code(text) for text in texts)
    return list(dict.fromkeys(str(code) for code in parsed if code))


def _publication(keys: PatentKeys, parts: Parts) -> PatentNumber | None:
    if keys.numbers == "uspto":
        number = publication(*parts)
        return PatentNumber(*number, iso_date(parts[3])) if number else None
    return _in_words(parts)


def _in_words(parts: Parts) -> PatentNumber | None:
    number = patent_number(*parts)
    return number if number.country and number.number else None


def _applications(keys: PatentKeys, fields: Sequence[NumberField], root: Element) -> Iterator[PatentNumber]:
    for numbers in fields:
        for parts in numbers.values(root):
            if number := _application(keys, parts):
                yield number


def _application(keys: PatentKeys, parts: Parts) -> PatentNumber | None:
    if keys.numbers == "uspto":
        country, written, _, date = parts
        number = application(country, written, date)
        return PatentNumber(*number, iso_date(date)) if number else None
    return _in_words(parts)


def _priorities(keys: PatentKeys, root: Element, filed: PatentNumber | None) -> Iterator[PatentNumber]:
    for number in _applications(keys, keys.priorities, root):
        # The US office lists the application itself among the earlier applications.
        if keys.numbers != "uspto" or number != filed:
            yield number


def _values(fields: Sequence[Field], root: Element) -> list[str]:
    return [value for values in fields for value in values.values(root)]


def _people(paths: Sequence[etree.XPath], name: Sequence[Field], root: Element) -> list[tuple[str, Element]]:
    """Pairs of a name and the element that holds it, from the first XPath that finds any name."""
    for path in paths:
        people = [person for element in elements(path, root) if (person := _person(name, element))]
        if people:
            return people
    return []


def _person(name: Sequence[Field], element: Element) -> tuple[str, Element] | None:
    for values in name:
        for text, holder in values.located(element):
            return _ESCAPED.sub(lambda match: unescape(match[0]), text), element if holder is None else holder
    return None


_ESCAPED = re.compile(r"&(?:amp|lt|gt|quot|apos);")
"""A character that the file escaped twice, as in `Smith &amp;amp; Co`; this is what is left after parsing."""
