"""Hits: results with their text, heading path, neighbouring passages and source file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.structure import DocumentOutline, Units
from perikope.core.arrays import Array, Floats, Integers
from perikope.core.names import passage_name
from perikope.document.tree import Place
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.query.group_terms import single_terms
from perikope.query.terms import Query
from perikope.search.context import sections_above, titles_of
from perikope.search.views import hit_html, hit_text
from perikope.text.analysis import Analyzer, language_code, word_spans


@dataclass(frozen=True, slots=True, repr=False)
class Hit:
    """One result: a passage or an element, with its text, heading path, neighbours and source file."""

    rank: int
    """The rank of the hit, from 1."""
    score: float
    """The score of the hit; larger is better."""
    document: str
    """The id of the document."""
    passage: str
    """The id of the passage within its document, or the path of the element."""
    title: str
    """The title of the document; empty if it has none."""
    path: tuple[str, ...]
    """The heading path: the titles from the document to the section of the hit."""
    text: str
    """The text of the hit."""
    highlights: tuple[tuple[int, int], ...]
    """Start and end (exclusive) of each word of `text` that matches a query term, in characters."""
    part: str
    """The part of the document that the hit is in, such as `claims`; empty if it is in no part."""
    tag: str
    """The tag of the hit in the source file, such as `p`."""
    language: str
    """The language of the hit, as a code such as `en`; `und` if it is not known."""
    before: str
    """The text of the passage before the hit; empty if the hit is the first in its document.

    It is also empty if that passage is in another language; so is `after`.
    """
    after: str
    """The text of the passage after the hit; empty if the hit is the last in its document."""
    start: int
    """The first character of the hit in the text of the document."""
    end: int
    """The end of the hit in the text of the document (exclusive)."""
    metadata: dict[str, Any]
    """The metadata of the document."""
    source: str
    """The file that the hit was read from, as the index names it; in an archive, `archive.zip/member.xml`."""
    place: Place | None
    """The location of the hit in `source`; None if the format records no locations."""
    citation: str
    """The usual citation of the hit, such as `EP1130000B1 [0042]`; empty if the format has no citations."""

    @property
    def name(self) -> str:
        """The name of the hit in run files: `document#passage`."""
        return passage_name(self.document, self.passage)

    def to_dict(self) -> dict[str, Any]:
        """The hit as a dictionary that can be written as JSON, with the same keys as `perikope search --json`."""
        return asdict(self)

    def __repr__(self) -> str:
        return hit_text(self)

    def _repr_html_(self) -> str:
        """The hit as a notebook shows it."""
        return hit_html(self)


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document, ranked by its passages."""

    rank: int
    """The rank of the document, from 1."""
    score: float
    """The score of the document; larger is better."""
    document: str
    """The id of the document."""
    title: str
    """The title of the document; empty if it has none."""
    metadata: dict[str, Any]
    """The metadata of the document."""
    source: str
    """The file that the document was read from, as the index names it; in an archive, `archive.zip/member.xml`."""

    def to_dict(self) -> dict[str, Any]:
        """The document as a dictionary that can be written as JSON."""
        return asdict(self)


def read_document(snapshot: Snapshot, id: str, rank: int, score: float) -> RankedDocument:
    """Read the title and metadata of a document from the index, as a result with this rank and score."""
    segment, local = snapshot.locate(snapshot.find_document(id))
    record = segment.record(local)
    return RankedDocument(
        rank=rank,
        score=score,
        document=id,
        title=document_title(segment, local, segment.text(local)),
        metadata=segment.metadata(local, record),
        source=str(record.get("member") or segment.source(local)[0]),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a passage or element is in its document."""

    units: Units
    number: int
    """The number of a passage in its document, from 0."""
    span: int
    """The number of its span in the document."""
    first_token: int
    end_token: int
    sections: tuple[int, ...]
    """The sections that hold it, outermost first, by their number in the document."""


def read_hits(snapshot: Snapshot, matches: Matches, rows: Integers, ranks: Integers, scores: Floats) -> list[Hit]:
    """Read the passages or elements of rows of the matches from the index, as hits with these ranks and scores.

    Each shard of a cluster is asked once.
    """
    candidates = matches.document_of_passage[rows]
    places, hits = np.empty(rows.size, object), np.empty(rows.size, object)
    for i, (row, candidate) in enumerate(zip(rows.tolist(), candidates.tolist(), strict=True)):
        places[i] = _Place(
            matches.units,
            row - int(matches.document_of_passage.searchsorted(candidate)),
            int(matches.span_of_passage[row]),
            int(matches.first_token_of_passage[row]),
            int(matches.end_token_of_passage[row]),
            tuple(sections_above(matches, row)),
        )
    documents = matches.number_of_document[candidates]
    for at, read in snapshot.ask_about(_hits_of_shard, documents, matches.query, beside=(places, ranks, scores)):
        hits[at] = read
    listed: list[Hit] = hits.tolist()
    return listed


def _hits_of_shard(snapshot: Snapshot, documents: Integers, places: Array, ranks: Integers, scores: Floats, query: Query) -> list[Hit]:
    """The hits in documents of one shard."""
    all_of_them = zip(documents.tolist(), places.tolist(), ranks.tolist(), scores.tolist(), strict=True)
    return [_read_hit(snapshot, document, place, query, rank, score) for document, place, rank, score in all_of_them]


def _read_hit(snapshot: Snapshot, document: int, place: _Place, query: Query, rank: int, score: float) -> Hit:
    segment, local = snapshot.locate(document)
    passages = segment.passages_of(local)
    before, after = _around(segment, local, place)
    text = segment.text(local)
    span_in_document = place.span
    span = int(segment["document.first_span"][local]) + span_in_document
    characters = segment.characters(span)
    record = segment.record(local)
    language = language_code(segment.label("language", span))
    metadata, citation = segment.metadata(local, record), segment.citations(local, record).get(span_in_document, "")

    def neighbour(other: int) -> str:
        if other not in passages:
            return ""
        beside = segment.span_of("passage.span", local, other)
        return text[segment.characters(beside)] if language_code(segment.label("language", beside)) == language else ""

    return Hit(
        rank=rank,
        score=score,
        document=segment.document_id(local),
        passage=_passage_id(segment, local, place),
        title=document_title(segment, local, text),
        path=tuple(titles_of(segment, local, place.sections, text)),
        text=text[characters],
        highlights=tuple(highlights_in(snapshot.analyzer, query, text[characters], language)),
        part=segment.label("part", span),
        tag=segment.label("tag", span),
        language=language,
        before=neighbour(before),
        after=neighbour(after),
        start=characters.start,
        end=characters.stop,
        metadata=metadata,
        source=str(record.get("member") or segment.source(local)[0]),
        place=segment.places(local, record).get(span_in_document),
        citation=f"{metadata.get('publication', segment.document_id(local))} {citation}" if citation else "",
    )


def document_title(segment: Segment, local: int, text: str) -> str:
    """The title of a document (numbered in the segment); empty if it has none. `text` is the text of the document."""
    title = segment.span_of("section.title_span", local, segment.sections_of(local).start)
    return text[segment.characters(title)] if title >= 0 else ""


def _passage_id(segment: Segment, local: int, place: _Place) -> str:
    if place.units != "passages":
        return DocumentOutline(segment, local).path(place.span)
    return segment.passage_id(local, segment.passages_of(local).start + place.number)


def _around(segment: Segment, local: int, place: _Place) -> tuple[int, int]:
    """The numbers of the passages before and after a passage or element, counted in the segment.

    A number is outside the document if there is no such passage.
    """
    passages = segment.passages_of(local)
    if place.units == "passages":
        passage = passages.start + place.number
        return passage - 1, passage + 1
    first, end = (segment.rows(f"passage.{name}", passages.start, passages.stop) for name in ("first_token", "end_token"))
    before = int(np.count_nonzero(end <= place.first_token))
    after = int(np.count_nonzero(first < place.end_token))
    return passages.start + before - 1, passages.start + after


def highlights_in(analyzer: Analyzer, query: Query, text: str, language: str) -> Iterator[tuple[int, int]]:
    """The start and end of each word of a text whose term is in the query."""
    code = language_code(language)
    wanted, term_of = _wanted_terms(query.terms, code), _terms_of_words(analyzer, code)
    starts, ends = word_spans(text)
    words = zip(starts.tolist(), ends.tolist(), strict=True)
    return iter([(start, end) for start, end in words if term_of(text[start:end]) in wanted])


@lru_cache(maxsize=16)
def _wanted_terms(terms: tuple[str, ...], language: str) -> frozenset[str | None]:
    """The terms of a query in a language, without the language."""
    prefix = f"{language}:"
    return frozenset(term.removeprefix(prefix) for term in single_terms(terms) if term.startswith(prefix))


@lru_cache(maxsize=8)
def _terms_of_words(analyzer: Analyzer, language: str) -> Callable[[str], str | None]:
    """A function that returns the term of a word, or None. Hits share most of their words, whatever the query."""
    return lru_cache(maxsize=1 << 15)(lambda word: analyzer.term(word, language))
