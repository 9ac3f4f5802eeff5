"""A document as a reader sees it: titles and passages in reading order, with ids, blocks, links and found words."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from perikope.core.names import running_number, split_name
from perikope.document.placed_text import PieceOfText, piece
from perikope.document.tree import Document, Kind
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.index.stored import stored_document
from perikope.query.group_terms import single_terms
from perikope.query.publications import documents_named, find_publication
from perikope.query.terms import Query
from perikope.search.asking import read_query
from perikope.search.explaining import find_span
from perikope.search.options import SearchOptions
from perikope.search.reference_places import descendants, reference_places
from perikope.text.analysis import word_spans

KindOfText = Literal["title", "passage", "text"]
TABLES = ("table", "tgroup", "informaltable", "texttable")
"""Tags of tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewedText(PieceOfText):
    """A title, a passage, or a text that is neither, such as a list item that is not indexed as a passage."""

    kind: KindOfText
    """`title`, `passage`, or `text` for a text that is neither."""
    id: str
    """The id of the passage, or of the section that the title belongs to; empty if it has none."""
    depth: int
    """The number of sections around the section that contains the text; 0 directly in the document."""
    language: str
    """The language of the text, as the source states it."""
    citation: str
    """The usual citation, such as `[0042]`; empty if the format has no citations."""
    marked: bool
    """Whether the text is the requested passage, or in the requested element."""
    highlights: tuple[tuple[int, int], ...]
    """Start and end (exclusive) of each word of `text` that matches a query term, in characters."""
    block: int
    """The innermost list, table or other block around the text, as an index into `DocumentView.blocks`; -1 for none."""
    marks: tuple[tuple[int, int, str], ...]
    """Start and end (exclusive) of each mark in `text`, and its tag, such as `b`, `it` or `code`; outer marks first."""
    links: tuple[tuple[int, int, int], ...]
    """Start and end (exclusive) of words that refer to another text, and its index in `DocumentView.texts`.

    Start and end are both the end of `text` if it is not known which words refer.
    """


@dataclass(frozen=True, slots=True)
class ViewedBlock:
    """A list, a table, a quotation or another block that holds texts and is no section, apart from tables."""

    parent: int
    """The block around this one, as an index into `DocumentView.blocks`; -1 if there is none."""
    tag: str
    """The tag of the block in the source file, such as `ul` or `table`."""
    id: str
    """The id of the block; empty if it has none."""


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A document with its titles and passages in reading order."""

    document: str
    """The id of the document."""
    title: str
    """The title of the document; empty if it has none."""
    language: str
    """The language of the document; single texts may have another one."""
    metadata: dict[str, Any]
    """The metadata of the document."""
    cites: tuple[str, ...]
    """Ids of the documents that this document cites."""
    source: str
    """The file that the document was read from."""
    marked: str
    """The id of the requested passage, or the path of the requested element; empty if none was requested."""
    texts: tuple[ViewedText, ...]
    """The titles and passages in reading order."""
    blocks: tuple[ViewedBlock, ...]
    """The lists, tables and other blocks around the texts, in reading order, parents before children."""
    cites_found: tuple[str, ...]
    """For each document of `cites`, its id in the index; empty if the index does not contain it."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries and lists, for JSON."""
        return {**asdict(self), "cites": list(self.cites), "texts": [asdict(text) for text in self.texts]}


def view_document(snapshot: Snapshot, name: str, query: str = "", language: str = "") -> DocumentView:
    """A document with its texts.

    `name` is the id of a document, a patent number in any spelling, or the name of a passage or element
    (`document#passage`), which is then marked. Words that match the `query` are highlighted. Raises `UsageError` for an
    unknown name.
    """
    id, passage = (name, "") if snapshot.find_document(name) >= 0 else split_name(name)
    segment, local = snapshot.locate(find_publication(snapshot, id))
    document = stored_document(segment, local)
    marked = range(0)
    if passage:
        span = find_span(snapshot, document.id, passage)[2]
        marked = range(document.spans.start[span], document.spans.end[span])
    asked = read_query(snapshot, query, SearchOptions.of({"language": language})) if query else None
    blocks, block_of_span = _blocks(document)
    return DocumentView(
        document=document.id,
        title=document.title,
        language=document.language,
        metadata=dict(document.metadata),
        cites=document.cites,
        source=document.member or document.source,
        marked=passage,
        texts=tuple(_texts(document, marked, _highlights(segment, local, document.text, asked), block_of_span)),
        blocks=blocks,
        cites_found=tuple(_found(snapshot, cited) for cited in document.cites),
    )


def _found(snapshot: Snapshot, cited: str) -> str:
    """The id of a cited document in the index; empty if it is not there. An address is no publication number."""
    numbers = [] if "://" in cited else documents_named(snapshot, cited)
    return snapshot.document_id(numbers[0]) if numbers else ""


def _highlights(segment: Segment, local: int, text: str, query: Query | None) -> list[tuple[int, int]]:
    """Start and end of each word of a document that matches a query term, in reading order."""
    if query is None:
        return []
    terms = segment.find_terms([term.encode() for term in single_terms(query.terms)])
    tokens = segment.tokens(local)
    starts, ends = word_spans(text)
    if starts.size != tokens.size:
        raise segment.columns.damaged(f"has a damaged text (document {local})")
    found = np.isin(tokens, terms[terms > 0])
    return list(zip(starts[found].tolist(), ends[found].tolist(), strict=True))


def _texts(document: Document, marked: range, highlights: Sequence[tuple[int, int]], block_of_span: Sequence[int]) -> Iterator[ViewedText]:
    spans, labels, depth = document.spans, document.labels, _depths(document)
    shown = list(_shown(document))
    places = reference_places(document)
    passages = 0
    for i in shown:
        kind, start, end = spans.kind[i], spans.start[i], spans.end[i]
        id = document.span_ids.get(spans.parent[i] if kind == Kind.TITLE else i, "")
        if kind == Kind.PASSAGE:
            id = id or running_number(passages)
            passages += 1
        yield ViewedText(
            kind="passage" if kind == Kind.PASSAGE else "title" if kind == Kind.TITLE else "text",
            id=id,
            depth=depth[i],
            **piece(document, i, start, end),
            language=labels[spans.language[i]],
            citation=document.citations.get(i, ""),
            marked=marked.start <= start and end <= marked.stop and start < marked.stop,
            highlights=tuple((first - start, last - start) for first, last in _between(highlights, start, end)),
            block=block_of_span[spans.parent[i]],
            marks=tuple(_marks(document, i)),
            links=tuple((place.start, place.end, _first_text(shown, place.target)) for place in places.get(i, ())),
        )


def _between(places: Sequence[tuple[int, int]], start: int, end: int) -> Sequence[tuple[int, int]]:
    return places[bisect_left(places, (start, 0)) : bisect_left(places, (end, 0))]


def _shown(document: Document) -> Iterator[int]:
    """The spans that are shown as texts: titles, passages, and elements with text that hold neither."""
    spans = document.spans
    with_children = {parent for kind, parent in zip(spans.kind, spans.parent, strict=True) if kind != Kind.MARK}
    for i, kind in enumerate(spans.kind):
        if kind in (Kind.PASSAGE, Kind.TITLE) or (kind == Kind.ELEMENT and i not in with_children and document.text_of(i).strip()):
            yield i


def _first_text(shown: Sequence[int], span: int) -> int:
    """The first text in a span, as its number among the shown ones; an empty span leads to the text before it."""
    return min(bisect_left(shown, span), len(shown) - 1)


def _marks(document: Document, text: int) -> Iterator[tuple[int, int, str]]:
    spans, first = document.spans, document.spans.start[text]
    for mark in descendants(document, text):
        if spans.kind[mark] == Kind.MARK:
            yield spans.start[mark] - first, spans.end[mark] - first, document.labels[spans.tag[mark]]


def _blocks(document: Document) -> tuple[tuple[ViewedBlock, ...], list[int]]:
    """The blocks of a document, and for each span its block or the one around it; -1 if there is none.

    A table with a header is a section, so that the header is the title of its rows. For a reader it is a table.
    """
    spans, labels = document.spans, document.labels
    holding = {parent for kind, parent in zip(spans.kind, spans.parent, strict=True) if kind != Kind.MARK}
    blocks, block_of_span = list[ViewedBlock](), list[int]()
    for i, (kind, parent) in enumerate(zip(spans.kind, spans.parent, strict=True)):
        around = block_of_span[parent] if parent >= 0 else -1
        tag = labels[spans.tag[i]]
        if i in holding and (kind == Kind.ELEMENT or (kind == Kind.SECTION and tag in TABLES)):
            blocks.append(ViewedBlock(around, tag, document.span_ids.get(i, "")))
            around = len(blocks) - 1
        block_of_span.append(around)
    return tuple(blocks), block_of_span


def _depths(document: Document) -> list[int]:
    """For each span, the number of sections around the section that contains it; 0 directly in the document."""
    spans = document.spans
    sections = [0] * len(spans)
    for i in range(1, len(spans)):
        parent = spans.parent[i]
        sections[i] = sections[parent] + (spans.kind[parent] == Kind.SECTION)
    return [max(count - 1, 0) for count in sections]
