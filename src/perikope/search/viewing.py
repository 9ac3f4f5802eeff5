"""A document as a reader sees it: its titles and passages in reading order, with ids, marks and highlighted words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from perikope.core.names import running_number, split_name
from perikope.document.tree import Document, Kind
from perikope.index.reader import Snapshot
from perikope.index.stored import stored_document
from perikope.query.publications import find_publication
from perikope.query.terms import Query
from perikope.search.asking import read_query
from perikope.search.explaining import find_span
from perikope.search.hits import highlights_in
from perikope.search.options import SearchOptions

KindOfText = Literal["title", "passage", "text"]


@dataclass(frozen=True, slots=True)
class ViewedText:
    """A title, a passage, or a text that is neither, such as a list item that is not indexed as a passage."""

    kind: KindOfText
    """`title`, `passage`, or `text` for a text that is neither."""
    id: str
    """The id of the passage, or of the section that the title belongs to; empty if it has none."""
    depth: int
    """The number of sections around the section that contains the text; 0 directly in the document."""
    text: str
    """The text itself."""
    start: int
    """The first character of the text in the text of the document."""
    end: int
    """The end of the text in the text of the document (exclusive)."""
    part: str
    """The part of the document that the text is in, such as `claims`; empty if it is in no part."""
    tag: str
    """The tag of the text in the source file, such as `p`."""
    language: str
    """The language of the text, as the source states it."""
    citation: str
    """The usual citation, such as `[0042]`; empty if the format has no citations."""
    marked: bool
    """Whether the text is the requested passage, or in the requested element."""
    highlights: tuple[tuple[int, int], ...]
    """Start and end (exclusive) of each word of `text` that matches a query term, in characters."""


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
    return DocumentView(
        document=document.id,
        title=document.title,
        language=document.language,
        metadata=dict(document.metadata),
        cites=document.cites,
        source=document.member or document.source,
        marked=passage,
        texts=tuple(_texts(snapshot, document, marked, asked)),
    )


def _texts(snapshot: Snapshot, document: Document, marked: range, query: Query | None) -> Iterator[ViewedText]:
    spans, labels, depth = document.spans, document.labels, _depths(document)
    with_children = {spans.parent[i] for i in range(len(spans)) if spans.kind[i] != Kind.MARK}
    passages = 0
    for i, kind in enumerate(spans.kind):
        start, end, text = spans.start[i], spans.end[i], document.text_of(i)
        id = document.span_ids.get(i, "")
        if kind == Kind.PASSAGE:
            id = id or running_number(passages)
            passages += 1
        elif kind == Kind.TITLE:
            id = document.span_ids.get(spans.parent[i], "")
        elif kind != Kind.ELEMENT or i in with_children or not text.strip():
            continue
        language = labels[spans.language[i]]
        yield ViewedText(
            kind="passage" if kind == Kind.PASSAGE else "title" if kind == Kind.TITLE else "text",
            id=id,
            depth=depth[i],
            text=text,
            start=start,
            end=end,
            part=labels[spans.part[i]],
            tag=labels[spans.tag[i]],
            language=language,
            citation=document.citations.get(i, ""),
            marked=marked.start <= start and end <= marked.stop and start < marked.stop,
            highlights=tuple(highlights_in(snapshot.analyzer, query, text, language)) if query is not None else (),
        )


def _depths(document: Document) -> list[int]:
    """For each span, the number of sections around the section that contains it; 0 directly in the document."""
    spans = document.spans
    sections = [0] * len(spans)
    for i in range(1, len(spans)):
        parent = spans.parent[i]
        sections[i] = sections[parent] + (spans.kind[parent] == Kind.SECTION)
    return [max(count - 1, 0) for count in sections]
