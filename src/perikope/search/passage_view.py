"""One passage as a reader sees it: its text and heading path, where it comes from, and the passages around it."""

from __future__ import annotations

from dataclasses import dataclass

from perikope.core.errors import UsageError
from perikope.core.names import passage_name, running_number, split_name
from perikope.core.numbers import check_whole
from perikope.document.placed_text import PlacedText, placed
from perikope.document.tree import Document, Kind
from perikope.index.reader import Snapshot
from perikope.index.stored import stored_document
from perikope.search.explaining import find_span


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageView(PlacedText):
    """A passage or element of a document, with the passages around it."""

    name: str
    """The name of the passage in results and run files: `document#passage`."""
    passage: str
    """The id of the passage within its document, or the path of the element."""
    before: tuple[NeighbourPassage, ...]
    """The passages before the passage, in reading order; the last one is the nearest."""
    after: tuple[NeighbourPassage, ...]
    """The passages after the passage, in reading order; the first one is the nearest."""


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
    before, after = _around(document, span, around)
    return PassageView(
        name=passage_name(document.id, passage),
        passage=passage,
        before=before,
        after=after,
        **placed(document, span, _path(document, span), document.spans.start[span], document.spans.end[span]),
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
