"""Hits: passages that were found, with what surrounds them."""

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
    """A passage that was found, with what surrounds it."""

    rank: int
    score: float
    document: str
    passage: str
    path: tuple[str, ...]
    """The titles above the passage, from the document's own to that of its section."""
    text: str
    highlights: tuple[tuple[int, int], ...]
    """Where the query's terms stand in the text, in characters."""
    part: str
    tag: str
    before: str
    after: str
    """The passages next to it in the document, or empty texts."""
    start: int
    end: int
    """Where it stands in the document's text, in characters."""
    metadata: dict[str, Any]
    source: str
    """The file it was read from, as the index names it; a member of an archive as `archive.zip/member.xml`."""
    place: Place | None
    """Where it stands in that file, for formats whose files can be opened at a place."""
    citation: str
    """How people cite it: `EP1130000B1 [0042]`; empty where its format does not say."""

    @property
    def name(self) -> str:
        """`document#passage`, as in run files."""
        return passage_name(self.document, self.passage)


def read_hit(snapshot: Snapshot, matches: Matches, row: int, rank: int, score: float) -> Hit:
    """The hit at a row of the matches."""
    candidate = int(matches.document_of_passage[row])
    segment, local = snapshot.locate(int(matches.number_of_document[candidate]))
    passages = segment.passages_of(local)
    before, after = _around(segment, local, matches, row, candidate)
    text = segment.text(local)
    own_span = int(matches.span_of_passage[row])
    span = int(segment["document.first_span"][local]) + own_span
    here = segment.characters(span)
    record = segment.record(local)
    metadata, citation = segment.metadata(local, record), segment.citations(local, record).get(own_span, "")

    def neighbour(other: int) -> str:
        return text[segment.characters(segment.span_of("passage.span", local, other))] if other in passages else ""

    return Hit(
        rank=rank,
        score=score,
        document=segment.document_id(local),
        passage=_passage_id(segment, local, matches, row, candidate),
        path=tuple(titles_above(snapshot, matches, row, text)),
        text=text[here],
        highlights=tuple(_highlights(snapshot.analyzer, matches.query, text[here], segment.label("language", span))),
        part=segment.label("part", span),
        tag=segment.label("tag", span),
        before=neighbour(before),
        after=neighbour(after),
        start=here.start,
        end=here.stop,
        metadata=metadata,
        source=str(record.get("member") or segment.source(local)[0]),
        place=segment.places(local, record).get(own_span),
        citation=f"{metadata.get('publication', segment.document_id(local))} {citation}" if citation else "",
    )


def _passage_id(segment: Segment, local: int, matches: Matches, row: int, candidate: int) -> str:
    if matches.units != "passages":
        return DocumentOutline(segment, local).path(int(matches.span_of_passage[row]))
    return segment.passage_id(local, segment.passages_of(local).start + _position(matches, row, candidate))


def _position(matches: Matches, row: int, candidate: int) -> int:
    """The number of a passage within its document."""
    return row - int(matches.document_of_passage.searchsorted(candidate))


def _around(segment: Segment, local: int, matches: Matches, row: int, candidate: int) -> tuple[int, int]:
    """The passages before and after a passage or element; there may be none of this number."""
    passages = segment.passages_of(local)
    if matches.units == "passages":
        passage = passages.start + _position(matches, row, candidate)
        return passage - 1, passage + 1
    first, end = (segment[f"passage.{name}"][passages.start : passages.stop] for name in ("first_token", "end_token"))
    before = int(np.count_nonzero(end <= matches.first_token_of_passage[row]))
    after = int(np.count_nonzero(first < matches.end_token_of_passage[row]))
    return passages.start + before - 1, passages.start + after


def _highlights(analyzer: Analyzer, query: Query, text: str, language: str) -> Iterator[tuple[int, int]]:
    wanted = set(query.terms)
    starts, ends = word_spans(text)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if f"{language}:{analyzer.term(text[start:end], language)}" in wanted:
            yield start, end
