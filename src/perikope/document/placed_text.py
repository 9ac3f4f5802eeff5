"""A piece of a document's text with its place in the document: for chunks, viewed passages and viewed documents."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from perikope.document.tree import Document, Place
from perikope.text.languages import language_code


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceOfText:
    """A piece of a document's text: its characters, its part and its tag."""

    text: str
    """The text itself."""
    start: int
    """The first character of the text in the text of the document."""
    end: int
    """The end of the text in the text of the document (exclusive)."""
    part: str
    """The part of the document that the text is in, such as `claims`; empty if it is in no part."""
    tag: str
    """The tag of the text in the source file, such as `p`; of several passages, the tag of the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedText(PieceOfText):
    """A piece of a document's text with what is known about the document."""

    document: str
    """The id of the document."""
    title: str
    """The title of the document; empty if it has none."""
    path: tuple[str, ...]
    """The heading path: the titles from the document to the section of the text."""
    language: str
    """The language of the text, as a code such as `en`; `und` if it is not known."""
    citation: str
    """The usual citation of the passage, such as `EP1130000B1 [0042]`; empty if the format has no citations."""
    metadata: dict[str, Any]
    """The metadata of the document."""
    source: str
    """The file that the text was read from; in an archive, `archive.zip/member.xml`."""
    place: Place | None
    """The location of the passage in `source`; None if the format records no locations."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries and lists, for JSON."""
        return asdict(self)


def piece(document: Document, span: int, start: int, end: int) -> dict[str, Any]:
    """The fields of `PieceOfText` for the characters `start` to `end` (exclusive), which begin in a span."""
    spans, labels = document.spans, document.labels
    return {
        "text": document.text[start:end], "start": start, "end": end, "part": labels[spans.part[span]], "tag": labels[spans.tag[span]],
    }  # fmt: skip


def placed(document: Document, span: int, path: tuple[str, ...], start: int, end: int) -> dict[str, Any]:
    """The fields of `PlacedText` for the characters `start` to `end` (exclusive), which begin in a span."""
    citation = document.citations.get(span, "")
    return {
        **piece(document, span, start, end),
        "document": document.id,
        "title": document.title,
        "path": path,
        "language": language_code(document.labels[document.spans.language[span]]),
        "citation": f"{document.metadata.get('publication', document.id)} {citation}" if citation else "",
        "metadata": dict(document.metadata),
        "source": document.member or document.source,
        "place": document.places.get(span),
    }
