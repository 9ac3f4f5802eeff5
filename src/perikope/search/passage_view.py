"""One passage as a reader sees it: its text and heading path, where it comes from, and the passages around it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from perikope.core.errors import UsageError
from perikope.core.names import passage_name, running_number, split_name
from perikope.core.numbers import check_whole
from perikope.document.tree import Document, Kind, Place
from perikope.index.reader import Snapshot
from perikope.index.stored import stored_document
from perikope.search.explaining import find_span
from perikope.text.analysis import language_code


@dataclass(frozen=True, slots=True)
class NeighbourPassage:
    """A passage near another one in the same document."""

    id: str
    """The id of the passage within its document."""
    text: str
    """The text of the passage."""
    path: tuple[str, ...]
    """The heading path: the titles from the document to the section of the passage."""
    same_section: bool
    """Whether the passage is in the same section as the viewed passage."""


@dataclass(frozen=True, slots=True)
class PassageView:
    """A passage or element of a document, with the passages around it."""

    name: str
    """The name of the passage in results and run files: `document#passage`."""
    document: str
    """The id of the document."""
    passage: str
    """The id of the passage within its document, or the path of the element."""
    title: str
    """The title of the document; empty if it has none."""
    path: tuple[str, ...]
    """The heading path: the titles from the document to the section of the passage."""
    text: str
    """The text of the passage."""
    start: int
    """The first character of the passage in the text of the document."""
    end: int
    """The end of the passage in the text of the document (exclusive)."""
    part: str
    """The part of the document that the passage is in, such as `claims`; empty if it is in no part."""
    tag: str
    """The tag of the passage in the source file, such as `p`."""
    language: str
    """The language of the passage, as a code such as `en`; `und` if it is not known."""
    citation: str
    """The usual citation of the passage, such as `EP1130000B1 [0042]`; empty if the format has no citations."""
    metadata: dict[str, Any]
    """The metadata of the document."""
    source: str
    """The file that the passage was read from, as the index names it; in an archive, `archive.zip/member.xml`."""
    place: Place | None
    """The location of the passage in `source`; None if the format records no locations."""
    before: tuple[NeighbourPassage, ...]
    """The passages before the passage, in reading order; the last one is the nearest."""
    after: tuple[NeighbourPassage, ...]
    """The passages after the passage, in reading order; the first one is the nearest."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries and lists, for JSON."""
        return asdict(self)


def view_passage(snapshot: Snapshot, name: str, *, around: int = 2) -> PassageView:
    """A passage or element, given by its name (`document#passage`), with up to `around` passages on either side.

    The document may be a patent number in any spelling. Raises `UsageError` for an unknown name.
    """
    check_whole("around", around, 0)
    id, passage = split_name(name)
    if not passage:
        raise UsageError(f"{name!r} names no passage; write it as document#passage, as search prints it")
    segment, local, span = find_span(snapshot, id, passage)
    document = stored_document(segment, local)
    spans, citation = document.spans, document.citations.get(span, "")
    before, after = _around(document, span, around)
    return PassageView(
        name=passage_name(document.id, passage),
        document=document.id,
        passage=passage,
        title=document.title,
        path=_path(document, span),
        text=document.text_of(span),
        start=spans.start[span],
        end=spans.end[span],
        part=document.labels[spans.part[span]],
        tag=document.labels[spans.tag[span]],
        language=language_code(document.labels[spans.language[span]]),
        citation=f"{document.metadata.get('publication', document.id)} {citation}" if citation else "",
        metadata=dict(document.metadata),
        source=document.member or document.source,
        place=document.places.get(span),
        before=before,
        after=after,
    )


def _around(document: Document, span: int, around: int) -> tuple[tuple[NeighbourPassage, ...], tuple[NeighbourPassage, ...]]:
    """The passages before and after a span. Those inside an element, and those around a passage, are neither."""
    inside = {span}
    for other in range(span + 1, len(document.spans)):
        if document.spans.parent[other] in inside:
            inside.add(other)
    passages = list(enumerate(document.of_kind(Kind.PASSAGE)))
    before = [one for one in passages if one[1] < span and document.spans.end[one[1]] <= document.spans.start[span]]
    after = [one for one in passages if one[1] > span and one[1] not in inside]
    chosen = before[max(len(before) - around, 0) :], after[:around]
    section = _section(document, span)
    neighbours = [
        [
            NeighbourPassage(
                document.span_ids.get(other, "") or running_number(number),
                document.text_of(other),
                _path(document, other),
                _section(document, other) == section,
            )
            for number, other in some
        ]
        for some in chosen
    ]
    return tuple(neighbours[0]), tuple(neighbours[1])


def _section(document: Document, span: int) -> int:
    """The nearest section around a span; -1 for the document itself."""
    span = document.spans.parent[span]
    while span >= 0 and document.spans.kind[span] != Kind.SECTION:
        span = document.spans.parent[span]
    return span


def _path(document: Document, span: int) -> tuple[str, ...]:
    """The titles of the sections around a span, from the document down."""
    spans = document.spans
    above, section = [], _section(document, span)
    while section >= 0:
        above.append(section)
        section = _section(document, section)
    title_of: dict[int, str] = {}
    wanted = set(above)
    for title in document.of_kind(Kind.TITLE):
        if spans.parent[title] in wanted:
            title_of.setdefault(spans.parent[title], document.text_of(title))
    return tuple(title_of[number] for number in reversed(above) if number in title_of)
