"""Hits: results with their text, heading path, neighbours and source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.structure import DocumentOutline
from perikope.core.names import passage_name
from perikope.document.tree import Place
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.query.terms import Query
from perikope.search.context import titles_above
from perikope.text.analysis import Analyzer, word_spans


@dataclass(frozen=True, slots=True)
class Hit:
    """One result, a passage or an element, with its surroundings."""

    rank: int
    """The rank of the hit, from 1."""
    score: float
    document: str
    """The id of the document."""
    passage: str
    """The id of the passage within its document, or the path of the element."""
    path: tuple[str, ...]
    """The heading path: the titles from the document to the section of the hit."""
    text: str
    highlights: tuple[tuple[int, int], ...]
    """Start and end of each word of `text` that matches a query term, in characters."""
    part: str
    """The part of the document, such as `claims`; empty if it has none."""
    tag: str
    """The tag in the source, such as `p`."""
    before: str
    after: str
    """The texts of the passages before and after it in the document; empty if there are none."""
    start: int
    end: int
    """Its characters in the text of the document are `start` to `end` (exclusive)."""
    metadata: dict[str, Any]
    """The metadata of the document."""
    source: str
    """The file it was read from, as the index names it; a member of an archive as `archive.zip/member.xml`."""
    place: Place | None
    """Its location in that file; None if the format records none."""
    citation: str
    """The usual citation, such as `EP1130000B1 [0042]`; empty if the format has none."""

    @property
    def name(self) -> str:
        """`document#passage`, as in run files."""
        return passage_name(self.document, self.passage)


def read_hit(snapshot: Snapshot, matches: Matches, row: int, rank: int, score: float) -> Hit:
    """Read the hit at a row of the matches from the index."""
    candidate = int(matches.document_of_passage[row])
    segment, local = snapshot.locate(int(matches.number_of_document[candidate]))
    passages = segment.passages_of(local)
    before, after = _around(segment, local, matches, row, candidate)
    text = segment.text(local)
    span_in_document = int(matches.span_of_passage[row])
    span = int(segment["document.first_span"][local]) + span_in_document
    characters = segment.characters(span)
    record = segment.record(local)
    metadata, citation = segment.metadata(local, record), segment.citations(local, record).get(span_in_document, "")

    def neighbour(other: int) -> str:
        return text[segment.characters(segment.span_of("passage.span", local, other))] if other in passages else ""

    return Hit(
        rank=rank,
        score=score,
        document=segment.document_id(local),
        passage=_passage_id(segment, local, matches, row, candidate),
        path=tuple(titles_above(snapshot, matches, row, text)),
        text=text[characters],
        highlights=tuple(_highlights(snapshot.analyzer, matches.query, text[characters], segment.label("language", span))),
        part=segment.label("part", span),
        tag=segment.label("tag", span),
        before=neighbour(before),
        after=neighbour(after),
        start=characters.start,
        end=characters.stop,
        metadata=metadata,
        source=str(record.get("member") or segment.source(local)[0]),
        place=segment.places(local, record).get(span_in_document),
        citation=f"{metadata.get('publication', segment.document_id(local))} {citation}" if citation else "",
    )


def _passage_id(segment: Segment, local: int, matches: Matches, row: int, candidate: int) -> str:
    if matches.units != "passages":
        return DocumentOutline(segment, local).path(int(matches.span_of_passage[row]))
    return segment.passage_id(local, segment.passages_of(local).start + _number_in_document(matches, row, candidate))


def _number_in_document(matches: Matches, row: int, candidate: int) -> int:
    """The number of a passage within its document."""
    return row - int(matches.document_of_passage.searchsorted(candidate))


def _around(segment: Segment, local: int, matches: Matches, row: int, candidate: int) -> tuple[int, int]:
    """The numbers of the passages before and after a passage or element; they may be outside the document."""
    passages = segment.passages_of(local)
    if matches.units == "passages":
        passage = passages.start + _number_in_document(matches, row, candidate)
        return passage - 1, passage + 1
    first, end = (segment[f"passage.{name}"][passages.start : passages.stop] for name in ("first_token", "end_token"))
    before = int(np.count_nonzero(end <= matches.first_token_of_passage[row]))
    after = int(np.count_nonzero(first < matches.end_token_of_passage[row]))
    return passages.start + before - 1, passages.start + after


def _highlights(analyzer: Analyzer, query: Query, text: str, language: str) -> Iterator[tuple[int, int]]:
    """Start and end of the words of a text whose terms are in the query."""
    query_terms = set(query.terms)
    starts, ends = word_spans(text)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if f"{language}:{analyzer.term(text[start:end], language)}" in query_terms:
            yield start, end
