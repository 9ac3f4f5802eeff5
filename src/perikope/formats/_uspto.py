"""Patents of the US office in its three schemas: ST.32 (PATDOC) and pap of 2001 to 2004, and its ST.36 since then (v4.0 to v4.5)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar

from perikope.core.dates import iso_date
from perikope.document.tree import Place
from perikope.formats._inline import Run
from perikope.formats._patents import Bibliography, PatentWalk
from perikope.formats._profile import Element, Rule, text_of
from perikope.formats._xml import whole_text
from perikope.patents.headings import LONGEST, is_capitals, is_main
from perikope.patents.numbers import PatentNumber
from perikope.patents.uspto_numbers import application, ipc, publication, us_class


class GrantOrApplication(PatentWalk):
    """us-patent-grant and us-patent-application, v4.0 to v4.5."""

    bibliographies = frozenset(("us-bibliographic-data-grant", "us-bibliographic-data-application"))
    earlier: ClassVar[tuple[str, ...]] = (
        "priority-claims/priority-claim",
        "us-related-documents/us-provisional-application/document-id",
        "us-related-documents/*/relation/parent-doc/document-id",
        "us-related-documents/*/relation/parent-doc/parent-pct-document/document-id",
        "pct-or-regional-filing-data/document-id",
    )
    """Where the applications stand whose date it has: priorities, provisional ones, those it continues or divides."""

    _statement: tuple[Element, str, int] | None = None
    """`What is claimed is:` with its path and offset, until the claims come."""
    _has_levels: bool | None = None

    def bibliography(self) -> Bibliography:
        """What us-bibliographic-data-grant or -application says."""
        data = next(self.root.iterchildren(*self.bibliographies), None)
        if data is None:
            return Bibliography()
        filed = _one(_all(map(_filed, data.iterfind("application-reference/document-id"))))
        return Bibliography(
            publication=_one(_all(map(_published, data.iterfind("publication-reference/document-id")))),
            application=filed,
            priorities=_all((_filed(document) for path in self.earlier for document in data.iterfind(path)), but=filed),
            titles=[(self.root.get("lang") or "EN", title) for title in data.iterfind("invention-title")],
            ipc=[
                *_ipc(data, "classification-ipc/main-classification"),
                *_ipc(data, "classification-ipc/further-classification"),
                *map(_joined, data.iterfind("classifications-ipcr/classification-ipcr")),
            ],
            cpc=[_joined(code) for code in data.iterfind("classifications-cpc//classification-cpc")],
            uspc=[
                *_uspc(data, "classification-national/main-classification"),
                *_uspc(data, "classification-national/further-classification"),
            ],
            applicants=[*_people(data, "parties/applicants/applicant"), *_people(data, "us-parties/us-applicants/us-applicant")],
            inventors=[
                # Until 2012 the inventors applied themselves.
                *_people(data, "parties/applicants/applicant[@app-type='applicant-inventor']"),
                *_people(data, "us-parties/us-applicants/us-applicant[@app-type='applicant-inventor']"),
                *_people(data, "us-parties/inventors/*"),
                *_people(data, "parties/inventors/*"),
            ],
            assignees=_people(data, "assignees/assignee"),
            cites=_all(map(_published, data.iterfind(".//patcit/document-id"))),
            literature=[text_of(cited) for cited in data.iterfind(".//nplcit/othercit")],
        )

    def paragraph_number(self, element: Element) -> tuple[str, bool]:
        """As in `num`; only applications are printed with it."""
        number = _number(element.get("num"))
        return (f"{number:04d}", self.root.tag == "us-patent-application") if number else ("", False)

    def level_of_tag(self, element: Element) -> int:
        """As in `level`, unless all headings have the same."""
        if self._has_levels is None:
            self._has_levels = len({heading.get("level") for heading in self.root.iter("heading")}) > 1
        return min(9, _number(element.get("level"))) if self._has_levels else 0

    def finish(self) -> None:
        self._leave_statement()
        super().finish()

    def _title(self, element: Element, path: str) -> None:
        # `What is claimed is:` stands before the claims, whose title it is.
        self._leave_statement()
        self._statement = element, path, self._offset
        self._offset += len(whole_text(element))

    def _blocks(self, element: Element, path: str) -> None:
        if element.tag in self.claim_sets and self._statement:
            statement, statement_path, statement_offset = self._statement
            after, self._offset = self._offset, statement_offset
            super()._title(statement, statement_path)
            self._offset, self._statement = after, None
        super()._blocks(element, path)

    def _leave_statement(self) -> None:
        """One that no claims followed is text all the same."""
        if self._statement and (text := text_of(self._statement[0])):
            element, path, start = self._statement
            number = self.builder.passage(text, str(element.tag), part="claims")
            self.builder.places[number] = Place(path, start, start + len(whole_text(element)))
        self._statement = None


class _Renamed(PatentWalk):
    """An early schema, whose spans get the tags of the later one."""

    tags: ClassVar[dict[str, str]] = {}

    def tag_of(self, element: Element) -> str:
        return self.tags.get(str(element.tag)) or super().tag_of(element)


class Grant2(_Renamed):
    """PATDOC v2.4 and v2.5, whose tags are the numbers that ST.32 gives to bibliographic data (INID codes)."""

    bibliographies = frozenset(("SDOBI",))
    descriptions = frozenset(("SDODE",))
    claims = frozenset(("CLM",))
    claim_sets = frozenset(("SDOCL",))
    paragraphs = frozenset(("PARA",))
    tags: ClassVar[dict[str, str]] = {
        "SDOAB": "abstract", "SDODE": "description", "SDOCL": "claims", "H": "heading", "PARA": "p", "CWU": "p", "CLM": "claim",
    }  # fmt: skip

    def bibliography(self) -> Bibliography:
        """What SDOBI says."""
        data = self.root.find("SDOBI")
        if data is None:
            return Bibliography()
        filed = _application("US", _text(data, "B200/B210"), _text(data, "B200/B220"))
        return Bibliography(
            publication=_publication(*(_text(data, f"B100/{tag}") for tag in ("B190", "B110", "B130", "B140"))),
            application=filed,
            priorities=_all(
                (
                    *(_application(_text(one, "B330"), _text(one, "B310"), _text(one, "B320")) for one in data.iterfind("B300")),
                    *map(_filed, data.iterfind("B600//PARENT-US/PDOC/DOC")),
                    *map(_filed, data.iterfind("B600/B680US/DOC")),
                    *map(_filed, data.iterfind("B800/B860/B861/DOC")),
                ),
                but=filed,
            ),
            titles=[("EN", title) for title in data.iterfind("B500/B540")],
            ipc=[*_ipc(data, "B500/B510/B511/PDAT"), *_ipc(data, "B500/B510/B512/PDAT")],
            uspc=[*_uspc(data, "B500/B520/B521/PDAT"), *_uspc(data, "B500/B520/B522/PDAT")],
            applicants=_people(data, "B700/B710/B711/PARTY-US/NAM"),
            inventors=_people(data, "B700/B720/B721/PARTY-US/NAM"),
            assignees=_people(data, "B700/B730/B731/PARTY-US/NAM"),
            cites=_all(map(_published, data.iterfind("B500/B560/B561/PCIT/DOC"))),
            literature=[text_of(cited) for cited in data.iterfind("B500/B560/B562/NCIT")],
        )

    def claim_number(self, element: Element) -> int:
        """As in the id: CLM-00003."""
        return _number(element.get("ID"))

    def paragraph_number(self, element: Element) -> tuple[str, bool]:
        """As in the id; grants are not printed with it."""
        number = _number(element.get("ID"))
        return (f"{number:04d}" if number else "", False)

    def heading_level(self, element: Element, rule: Rule, run: Run) -> int:
        """`LVL` of a heading is always 1; a paragraph of level 7 is a line by itself, in the middle, and most of those are headings."""
        if element.tag != "PARA":
            return super().heading_level(element, rule, run)
        text = run.text
        is_line = element.get("LVL") == "7" and len(text) <= LONGEST and not text.endswith(_ENDS) and not text[:1].islower()
        return self._headings.level(text) if self._in_description() and (is_line or is_main(text) or is_capitals(text)) else 0


class Application1(_Renamed):
    """patent-application-publication v1.5 and v1.6 (pap)."""

    bibliographies = frozenset(("subdoc-bibliographic-information",))
    descriptions = frozenset(("subdoc-description",))
    claim_sets = frozenset(("subdoc-claims",))
    paragraphs = frozenset(("paragraph",))
    tags: ClassVar[dict[str, str]] = {
        "subdoc-abstract": "abstract", "subdoc-description": "description", "subdoc-claims": "claims", "paragraph": "p",
    }  # fmt: skip

    def bibliography(self) -> Bibliography:
        """What subdoc-bibliographic-information says."""
        data = self.root.find("subdoc-bibliographic-information")
        if data is None:
            return Bibliography()
        filing = "domestic-filing-data/"
        filed = _application("US", _text(data, f"{filing}application-number/doc-number"), _text(data, f"{filing}filing-date"))
        return Bibliography(
            publication=_one(_all(map(_published, data.iterfind("document-id")))),
            application=filed,
            priorities=_all(
                (
                    *(
                        _application(
                            _text(one, "country-code"), _text(one, "priority-application-number/doc-number"), _text(one, "filing-date")
                        )
                        for one in data.iterfind("foreign-priority-data")
                    ),
                    *map(_filed, data.iterfind("continuity-data/non-provisional-of-provisional/document-id")),
                    *map(_filed, data.iterfind("continuity-data//parent/document-id")),
                ),
                but=filed,
            ),
            titles=[("EN", title) for title in data.iterfind("technical-information/title-of-invention")],
            ipc=_ipc(data, "technical-information/classification-ipc//ipc"),
            uspc=[
                us_class(_text(code, "class").zfill(3) + _text(code, "subclass"))
                for code in data.iterfind("technical-information/classification-us//uspc")
            ],
            inventors=_people(data, "inventors/*"),
            assignees=_people(data, "assignee"),
        )

    def claim_number(self, element: Element) -> int:
        """As in the id: CLM-00003."""
        return _number(element.get("id"))

    def paragraph_number(self, element: Element) -> tuple[str, bool]:
        """As printed before it: `[0042]` or `42.`, which is left out of its text."""
        number = _number(element.findtext("number"))
        return (f"{number:04d}", True) if number else ("", False)


_ORGANISATION = ("orgname", "ONM", "organization-name")
_PERSON = ("first-name", "given-name", "FNM", "middle-name", "last-name", "family-name", "SNM", "suffix", "name-suffix", "SFX")
"""The parts of a name in the three schemas, as they are spoken."""
_ENDS = (".", ",", ";", ":")


def _text(element: Element, path: str) -> str:
    found = element.find(path)
    return "" if found is None else text_of(found)


def _number(text: str | None) -> int:
    """The number in an attribute such as `00003`, `CLM-00003` or `[0042]`; 0 where there is none."""
    found = re.search("[0-9]{1,9}", text or "")
    return int(found[0]) if found else 0


def _publication(country: str, number: str, kind: str, date: str) -> PatentNumber | None:
    parts = publication(country, number, kind, date)
    return PatentNumber(*parts, iso_date(date)) if parts else None


def _application(country: str, number: str, date: str) -> PatentNumber | None:
    parts = application(country, number, date)
    return PatentNumber(*parts, iso_date(date)) if parts else None


def _published(document: Element) -> PatentNumber | None:
    """A `document-id` of a publication, in the tags of either schema that has it, or a `DOC`."""
    return _publication(*_parts(document))


def _filed(document: Element) -> PatentNumber | None:
    """A `document-id`, `priority-claim` or `DOC` of an application."""
    country, number, _, date = _parts(document)
    return _application(country, number, date)


def _parts(document: Element) -> tuple[str, str, str, str]:
    def either(*tags: str) -> str:
        return next(filter(None, (_text(document, tag) for tag in tags)), "")

    return (
        either("country", "country-code", "CTRY"),
        either("doc-number", "DNUM"),
        either("kind", "kind-code", "KIND"),
        either("date", "document-date", "DATE"),
    )


def _all(documents: Iterable[PatentNumber | None], but: PatentNumber | None = None) -> list[PatentNumber]:
    """Those that have a number, without one of them."""
    return [document for document in documents if document and document != but]


def _one(documents: list[PatentNumber]) -> PatentNumber | None:
    return documents[0] if documents else None


def _people(data: Element, path: str) -> list[tuple[str, Element]]:
    """The names of those whom a path finds, an organisation or a person, with their elements."""
    people = []
    for element in data.iterfind(path):
        names = {str(part.tag): text_of(part) for part in element.iter(*_ORGANISATION, *_PERSON)}
        name = next((names[tag] for tag in _ORGANISATION if names.get(tag)), "")
        name = name or " ".join(names[tag] for tag in _PERSON if names.get(tag))
        if name:
            people.append((name, element))
    return people


def _ipc(data: Element, path: str) -> list[str]:
    # Not `text_of`: in fixed width blanks count.
    return [code for element in data.iterfind(path) if (code := ipc(element.text or ""))]


def _uspc(data: Element, path: str) -> list[str]:
    return [code for element in data.iterfind(path) if (code := us_class(element.text or ""))]


def _joined(code: Element) -> str:
    """A code whose parts are elements."""
    section, group, subgroup = (
        "".join(_text(code, tag) for tag in tags) for tags in (("section", "class", "subclass"), ("main-group",), ("subgroup",))
    )
    return f"{section}{group}/{subgroup}" if subgroup else section + group
