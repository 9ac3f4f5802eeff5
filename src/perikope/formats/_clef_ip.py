"""CLEF-IP and MAREC: patents of several offices in one schema, with bibliographic data from the offices and from the EPO."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from perikope.formats._patents import Bibliography, PatentWalk, marked_patents
from perikope.formats._profile import Element, Rule, text_of
from perikope.formats._xml import whole_text
from perikope.patents.numbers import PatentNumber, patent_number
from perikope.patents.uspto_numbers import us_class

_ORIGINAL = ("original", "intermediate", "epo", "docdb")
"""Forms of a name, the most original one first."""

_NOTICE = re.compile(r"COPYRIGHT: ?\(C\) ?[0-9]{4}, ?JPO(?: ?& ?[A-Z]{2,8})?", re.IGNORECASE)


class ClefIpWalk(PatentWalk):
    """The walk through a `patent-document`."""

    def bibliography(self) -> Bibliography:
        root = self.root
        data = root.find("bibliographic-data")
        publication = patent_number(*(root.get(name) or "" for name in ("country", "doc-number", "kind", "date")))
        found = Bibliography(publication=publication if publication.number else None, family=root.get("family-id") or "")
        if data is None:
            return found
        if not found.publication:
            found.publication = _first(_numbers(data.iterfind("publication-reference/document-id")))
        found.application = _first(_numbers(data.iterfind("application-reference/document-id")))
        claimed = list(data.iterfind("priority-claims/priority-claim/document-id"))
        # The same priority may be there twice, as the office and as the EPO writes it.
        found.priorities = _numbers([id for id in claimed if id.get("format") == "epo"] or claimed)
        found.titles = [(title.get("lang") or "", title) for title in data.iter("invention-title") if text_of(title)]
        technical = data.find("technical-data")
        if technical is not None:
            found.ipc = [*_texts(technical, "classification-ipc/main-classification", "classification-ipc/further-classification")]
            found.ipc += _texts(technical, "classifications-ipcr/classification-ipcr", "classification-ipcr")
            found.cpc = _texts(technical, "classifications-cpc/classification-cpc", "classification-cpc/classification-symbol")
            found.ecla = _texts(technical, "classification-ecla/classification-symbol")
            for national in technical.iterfind("classification-national[@country='US']"):
                found.uspc += filter(None, (us_class(text) for text in _texts(national, "main-classification", "further-classification")))
            found.cites = _numbers(technical.iterfind("citations/patent-citations/patcit/document-id"))
            found.literature = [_citation(cited) for cited in technical.iterfind("citations/non-patent-citations/nplcit")]
        parties = data.find("parties")
        if parties is not None:
            found.applicants = _people(list(parties.iterfind("applicants/applicant")))
            found.inventors = _people(list(parties.iterfind("inventors/inventor")))
            found.assignees = _people(list(parties.iterfind("assignees/assignee")))
        return found

    def paragraph_number(self, element: Element) -> tuple[str, bool]:
        given = element.get("num") or ""
        if not given or given.isdecimal():
            return super().paragraph_number(element)
        found = re.fullmatch(r"([pP]-?)([0-9]{1,5})", given)
        if not found:
            return super().paragraph_number(element)
        number = int(found[2])
        country = self.patent.publication.country if self.patent.publication else ""
        if country == "US":
            # These count the paragraph of the abstract with those of the description, where it has such a number; the printed ones do not.
            number -= sum(given.startswith(found[1]) for given in self._numbers_in_abstract)
        # International applications are printed without numbers, but where their authors wrote some.
        return (f"{number:04d}", country in ("EP", "US")) if number > 0 else ("", False)

    def _block(self, element: Element, path: str, rule: Rule) -> None:
        if self._is_notice(element):
            self._offset += len(whole_text(element))
        else:
            super()._block(element, path, rule)

    def _is_notice(self, element: Element) -> bool:
        """Whether a paragraph is the copyright notice that Japanese abstracts end with."""
        parent = element.getparent()
        return element.tag == "p" and parent is not None and parent.tag == "abstract" and _NOTICE.fullmatch(text_of(element)) is not None

    def patents_cited_in(self, element: Element) -> Iterator[str]:
        return marked_patents(element, ("ref",))

    @cached_property
    def _numbers_in_abstract(self) -> list[str]:
        return [paragraph.get("num") or "" for paragraph in self.root.iterfind("abstract//p")]


def _texts(element: Element, *paths: str) -> list[str]:
    return [text for path in paths for found in element.iterfind(path) if (text := whole_text(found).strip())]


def _numbers(ids: Iterable[Element]) -> list[PatentNumber]:
    parts = ([id.findtext(tag) or "" for tag in ("country", "doc-number", "kind", "date")] for id in ids)
    return [number for number in (patent_number(*part) for part in parts) if number.country and number.number]


def _first(numbers: Sequence[PatentNumber]) -> PatentNumber | None:
    return numbers[0] if numbers else None


def _citation(cited: Element) -> str:
    text = cited.find("text")
    return text_of(cited if text is None else text)


def _people(parties: Sequence[Element]) -> list[tuple[str, Element]]:
    """Names in the most original form that there is, each with the element that holds it."""
    forms = [form for form in _ORIGINAL if any(party.get("format") == form for party in parties)]
    chosen = [party for party in parties if not forms or party.get("format") == forms[0]]
    found = []
    for party in chosen:
        book = party.find("addressbook")
        place = party if book is None else book
        name = (
            place.findtext("name")
            or ", ".join(filter(None, (place.findtext("last-name"), place.findtext("first-name"))))
            or place.findtext("orgname")
        )
        if name and name.strip():
            found.append((" ".join(name.split()), place))
    return found
