"""Full text of the EPO: as its Open Patent Services give it (fulltext-document) and as it publishes it (ST.36, ep-patent-document)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perikope.formats._patents import Bibliography, PatentWalk, marked_patents
from perikope.formats._profile import Element, text_of
from perikope.patents.mentions import cited_patents
from perikope.patents.numbers import PatentNumber, patent_number


class FulltextWalk(PatentWalk):
    """The walk through a `fulltext-document`: little but paragraphs, and all claims as lines of one."""

    def bibliography(self) -> Bibliography:
        ids = self.root.iterfind("bibliographic-data/publication-reference/document-id")
        numbers = [patent_number(*(id.findtext(tag) or "" for tag in ("country", "doc-number", "kind", "date"))) for id in ids]
        return Bibliography(publication=next((number for number in numbers if number.number), None))

    def patents_cited_in(self, element: Element) -> Iterator[str]:
        return marked_patents(element, ("bibl", "ref"))


class PublishedWalk(PatentWalk):
    """The walk through an `ep-patent-document`, whose bibliographic data are fields with the numbers of ST.9 (B110, B540 …)."""

    bibliographies = frozenset(("SDOBI",))

    def bibliography(self) -> Bibliography:
        root = self.root
        publication = patent_number(*(root.get(name) or "" for name in ("country", "doc-number", "kind", "date-publ")))
        found = Bibliography(publication=publication if publication.number else None)
        data = root.find("SDOBI")
        if data is None:
            return found
        if not found.publication and data.findtext(".//B110"):
            parts = (data.findtext(path) or "" for path in (".//B190", ".//B110", ".//B130", ".//B140/date"))
            found.publication = patent_number(*parts)
        if number := data.findtext(".//B210"):
            found.application = patent_number("EP", _without_check_digit(number), "A", data.findtext(".//B220/date") or "")
        found.priorities = list(_priorities(data))
        found.titles = list(_titles(data))
        found.ipc = [text_of(text) for path in (".//B510EP//text", ".//B511", ".//B512", ".//B516") for text in data.iterfind(path)]
        found.cpc = [text_of(text) for text in data.iterfind(".//B520EP//text")]
        found.applicants = _people(data.iterfind(".//B711"))
        found.inventors = _people(data.iterfind(".//B721"))
        found.assignees = _people(data.iterfind(".//B731"))
        found.cites = list(_cited(data))
        found.literature = [text_of(text) for text in data.iterfind(".//B562/text")]
        return found

    def patents_cited_in(self, element: Element) -> Iterator[str]:
        yield from marked_patents(element, ("ref",))
        for number in element.iterfind(".//patcit/document-id"):
            parts = [number.findtext(tag) or "" for tag in ("country", "doc-number", "kind")]
            if parts[0] and parts[1]:
                yield patent_number(*parts).id
        for cited in element.iterfind(".//patcit/text"):
            yield from (patent_number(*parts).id for parts in cited_patents(text_of(cited)))


def _without_check_digit(number: str) -> str:
    """An application number without what follows its point: `99203729.4`."""
    return number.partition(".")[0]


def _priorities(data: Element) -> Iterator[PatentNumber]:
    for claimed in data.iterfind(".//B300"):
        # One field for each, in parallel.
        numbers, dates, countries = ([text_of(field) for field in claimed.iterfind(path)] for path in ("B310", "B320/date", "B330/ctry"))
        for number, date, country in zip(numbers, dates, countries, strict=False):
            yield patent_number(country, number, "A", date)


def _titles(data: Element) -> Iterator[tuple[str, Element]]:
    language = ""
    for field in data.iterfind(".//B540/*"):
        if field.tag == "B541":
            language = text_of(field)
        elif field.tag == "B542" and text_of(field):
            yield language, field


def _people(fields: Iterable[Element]) -> list[tuple[str, Element]]:
    return [(name, place) for field in fields for place in field.iterfind("snm") if (name := text_of(place))]


def _cited(data: Element) -> Iterator[PatentNumber]:
    for text in data.iterfind(".//B561/text"):
        for country, number, kind in cited_patents(text_of(text)):
            yield patent_number(country, number, kind)
