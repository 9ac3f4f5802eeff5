"""Matches: every occurrence of the query's terms in the candidate documents, joined with the structure it stands in.

The one thing a lexical model sees. *Every* passage of the candidates is in it, matching or not. Array names say what they
align with; documents are in the order of their numbers in the index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from perikope.browse.structure import Structure, Units, read_elements, read_structure
from perikope.core.arrays import Array, Floats, Integers, Integers32
from perikope.core.errors import UsageError
from perikope.fetch import Candidates
from perikope.index.layout import OF_PASSAGE, ranges
from perikope.index.reader import Snapshot, Statistics
from perikope.index.saved_tables import SavedTable, read_table
from perikope.index.segments import Segment
from perikope.kernels.gather import are_below, are_ranges, owners, read_of_owners, read_ranges
from perikope.kernels.join import TermCounts, add_titles, count_terms, occurrences_of_ranges, scan, sum_ancestors
from perikope.query.terms import Query
from perikope.text.analysis import word_spans

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Frequencies:
    """How often each query term occurs in each unit (passage, title or document), without the zeros."""

    first_entry: Integers
    """Where each unit's entries begin; one value more than there are units."""
    term: Integers32
    count: Integers32

    @property
    def unit(self) -> Integers:
        """The unit of each entry."""
        found: Integers = owners(self.first_entry[:-1], self.first_entry[1:])
        return found


@dataclass(frozen=True, slots=True)
class Positions:
    """Where occurrences and passages stand in their document, in tokens or characters; a passage without a token ends before it begins."""

    position_of_occurrence: Integers
    first_of_passage: Integers
    last_of_passage: Integers

    def __post_init__(self) -> None:
        for values in (self.position_of_occurrence, self.first_of_passage, self.last_of_passage):
            values.setflags(write=False)


def _no_characters() -> Positions:
    raise UsageError("these matches were put together without texts, so distances in characters are not known; count in tokens")


def _no_structure() -> Structure:
    raise UsageError("these matches were put together without the trees of their documents")


def _no_parts(document: int) -> Sequence[tuple[str, float]]:
    return ()


def _no_order() -> Integers:
    raise UsageError("these matches were put together without the ids of their documents")


@dataclass(frozen=True, slots=True)
class Matches:
    """Query, candidate documents, their sections and passages, occurrences, and the collection's statistics.

    Where elements or documents are ranked (`units`), they stand in the place of the passages; they may overlap, parents first.
    """

    query: Query
    statistics: Statistics
    number_of_document: Integers
    score_of_document: Floats
    length_of_document: Integers
    parent_of_section: Integers
    document_of_section: Integers
    title_length_of_section: Integers
    document_of_passage: Integers
    section_of_passage: Integers
    first_token_of_passage: Integers
    end_token_of_passage: Integers
    length_of_passage: Integers
    term_of_occurrence: Integers32
    position_of_occurrence: Integers32
    first_occurrence_of_document: Integers
    first_occurrence_of_passage: Integers
    end_occurrence_of_passage: Integers
    in_documents: Frequencies
    in_passages: Frequencies
    in_titles: Frequencies
    part_of_passage: Integers
    """Number in `parts` of the part that each passage stands in."""
    span_of_passage: Integers
    """Number in its document of the span that each passage is."""
    parts: tuple[str, ...]
    units: Units = "passages"
    characters: Callable[[], Positions] = _no_characters
    """As `tokens`, counted in characters. Reads the texts when it is first called: few models ask, and it takes longer than all else."""
    structure: Callable[[], Structure] = _no_structure
    """The spans of the candidate documents, read when it is first called."""
    place_of_document: Callable[[], Integers] = _no_order
    """The place of each document in the order of their ids, which decides between equal scores; found when it is first called."""
    table: Callable[[str, str], SavedTable] = read_table
    """A table by its name and kind, of the index or of those that come with the program, read when it is called."""
    parts_of_score: Callable[[int], Sequence[tuple[str, float]]] = _no_parts
    """What the score of a document is the sum of, in words; nothing where that is not known."""
    snapshot: Snapshot | None = field(default=None, repr=False, compare=False)
    """The index that was looked into: for what is kept beside it, such as vectors. None where matches were put together by hand."""
    all_terms: Matches | None = None
    """The matches of all terms, where some stand only under NOT; see `with_negated`."""
    _made: dict[Hashable, Any] | None = field(default=None, init=False, repr=False, compare=False)
    """What was made `once`, where these matches are `shared`; not taken over by copies, whose columns may be others."""

    def __post_init__(self) -> None:
        for own in fields(self):
            value = getattr(self, own.name)
            for item in [getattr(value, f.name) for f in fields(value)] if is_dataclass(value) else [value]:
                if isinstance(item, np.ndarray):
                    item.setflags(write=False)

    @property
    def documents(self) -> int:
        """How many candidate documents there are."""
        return int(self.number_of_document.size)

    @property
    def passages(self) -> int:
        """How many passages they have in all."""
        return int(self.document_of_passage.size)

    @property
    def first_passage_of_document(self) -> Integers:
        """Where each document's passages begin; one value more than there are documents."""
        return np.searchsorted(self.document_of_passage, np.arange(self.documents + 1))

    @property
    def weights(self) -> Floats:
        """The weight of each query term."""
        return np.array(self.query.weights)

    def shared(self) -> Matches:
        """The same for several models: what more than one of them asks for is made once and kept."""
        if self._made is not None:
            return self
        found = replace(self)
        object.__setattr__(found, "_made", {})
        return found

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` gives; in shared matches only the first with the same key is called."""
        if self._made is None:
            return make()
        if key not in self._made:
            self._made[key] = make()
        found: Made = self._made[key]
        return found

    def with_negated(self) -> Matches:
        """The same with the terms that stand only under NOT: for what reads the tree. They weigh nothing, so no other model sees them."""
        return self if self.all_terms is None else self.all_terms

    def require_passages(self, model: str) -> None:
        """Raise where elements are ranked: for models that need passages side by side, each in its section."""
        if self.units != "passages":
            raise UsageError(f"{model} scores passages by those around them, not {self.units} that hold one another; choose another model")

    def tokens(self) -> Positions:
        """Where occurrences and passages stand, counted in tokens."""
        return Positions(self.position_of_occurrence.astype(np.int64), self.first_token_of_passage, self.end_token_of_passage - 1)

    def in_passages_with_titles(self) -> Frequencies:
        """Counts of each passage with the titles of its section and of every section above it."""
        if not self.in_titles.term.size:
            return self.in_passages
        passages, titles = (TermCounts(own.first_entry, own.term, own.count) for own in (self.in_passages, self.in_titles))
        return Frequencies(*add_titles(passages, self.section_of_passage, self.parent_of_section, titles, len(self.query.terms)))

    def length_with_titles_of_passage(self) -> Integers:
        """Indexed tokens of each passage and of the titles above it."""
        titles: Integers = sum_ancestors(self.title_length_of_section, self.parent_of_section)
        return self.length_of_passage + titles[self.section_of_passage]


def join(
    snapshot: Snapshot, query: Query, candidates: Candidates, *, units: Units = "passages", tags: Collection[str] | None = None
) -> Matches:
    """Look into the candidate documents, at their passages, or at their elements (all logical ones, or those with one of the tags)."""
    order = np.argsort(candidates.documents, kind="stable")
    numbers, scores = candidates.documents[order], candidates.scores[order]
    pieces = []
    parts: dict[str, int] = {}
    terms = snapshot.look_up(query.terms)
    bounds = np.searchsorted(numbers, snapshot.first_document)
    for i, segment in enumerate(snapshot.segments):
        inside = slice(int(bounds[i]), int(bounds[i + 1]))
        if inside.stop > inside.start:
            local = numbers[inside] - snapshot.first_document[i]
            rows = _passages(segment, local) if units == "passages" else read_elements(segment, local, units, tags)
            pieces.append(_join_segment(segment, terms.numbers[i], local, rows, parts))
    column = _concatenate(pieces)
    matches = assemble(query, snapshot.statistics_of(terms), numbers, scores, column, tuple(parts))
    return without_negated(
        replace(
            matches,
            units=units,
            characters=cache(lambda: _read_characters(snapshot, matches)),
            structure=cache(lambda: read_structure(snapshot, numbers)),
            place_of_document=cache(lambda: _places_by_id(snapshot, numbers)),
            table=partial(read_table, folder=snapshot.folder),
            snapshot=snapshot,
            parts_of_score=lambda document: candidates.parts_of_score(int(numbers[document])),
        )
    )


def _places_by_id(snapshot: Snapshot, numbers: Integers) -> Integers:
    place = np.empty(numbers.size, np.int64)
    place[snapshot.by_id(numbers, np.zeros(numbers.size, np.int64))] = np.arange(numbers.size)
    place.setflags(write=False)
    return place


def without_negated(matches: Matches) -> Matches:
    """The matches of the terms that do not stand only under NOT, as if only these had been looked for; `with_negated` gives all back."""
    query = matches.query.positive
    if len(query.terms) == len(matches.query.terms):
        return matches
    number = {term: i for i, term in enumerate(query.terms)}
    number_of_term = np.array([number.get(term, -1) for term in matches.query.terms], np.int32)
    terms = np.flatnonzero(number_of_term >= 0)
    kept = number_of_term[matches.term_of_occurrence] >= 0
    before = np.concatenate([[0], np.cumsum(kept)])

    def only(found: Frequencies) -> Frequencies:
        entries = number_of_term[found.term] >= 0
        first_entry = np.concatenate([[0], np.cumsum(entries)])[found.first_entry]
        return Frequencies(first_entry, number_of_term[found.term[entries]], found.count[entries])

    def characters() -> Positions:
        places = matches.characters()
        return Positions(places.position_of_occurrence[kept], places.first_of_passage, places.last_of_passage)

    counts = matches.statistics
    return replace(
        matches,
        query=query,
        statistics=replace(counts, **{name: getattr(counts, name)[terms] for name in _OF_TERM}),
        term_of_occurrence=number_of_term[matches.term_of_occurrence[kept]],
        position_of_occurrence=matches.position_of_occurrence[kept],
        first_occurrence_of_document=before[matches.first_occurrence_of_document],
        first_occurrence_of_passage=before[matches.first_occurrence_of_passage],
        end_occurrence_of_passage=before[matches.end_occurrence_of_passage],
        in_documents=only(matches.in_documents),
        in_passages=only(matches.in_passages),
        in_titles=only(matches.in_titles),
        characters=cache(characters),
        all_terms=matches,
    )


_OF_TERM = ("document_frequency", "collection_frequency", "passage_frequency", "passage_collection_frequency")


def assemble(
    query: Query, statistics: Statistics, numbers: Integers, scores: Floats, column: dict[str, Array], parts: Sequence[str] = ("",)
) -> Matches:
    """Matches from its plain columns: finds the occurrences of each passage and title and counts them.

    Without a column `part_of_passage` all passages are in the first part.
    """
    terms = len(query.terms)
    first_occurrence = np.concatenate([[0], column.pop("end_occurrence_of_document")]).astype(np.int64)
    term, position = column["term_of_occurrence"], column["position_of_occurrence"]
    first, end = occurrences_of_ranges(
        position, first_occurrence, column["document_of_passage"], column["first_token_of_passage"], column["end_token_of_passage"]
    )
    title_range = column.pop("title_first_of_section"), column.pop("title_end_of_section")
    title_occurrences = occurrences_of_ranges(position, first_occurrence, column["document_of_section"], *title_range)
    for name in ("part_of_passage", "span_of_passage"):
        column.setdefault(name, np.zeros(column["document_of_passage"].size, np.int64))
    return Matches(
        query=query,
        statistics=statistics,
        number_of_document=numbers,
        score_of_document=scores,
        first_occurrence_of_document=first_occurrence,
        first_occurrence_of_passage=first,
        end_occurrence_of_passage=end,
        in_documents=Frequencies(*count_terms(term, first_occurrence[:-1], first_occurrence[1:], terms)),
        in_passages=Frequencies(*count_terms(term, first, end, terms)),
        in_titles=Frequencies(*count_terms(term, *title_occurrences, terms)),
        parts=tuple(parts),
        **column,  # type: ignore[arg-type]
    )


def _join_segment(
    segment: Segment, terms: Integers, documents: Integers, rows: tuple[Integers, dict[str, Integers]], parts: dict[str, int]
) -> dict[str, Array]:
    """The columns of one segment's candidates; numbers of documents and sections count within these candidates.

    `rows` are the passages, or what stands in their place: the document of each, and its columns. Parts that are met for the first time
    get the next number in `parts`.
    """
    codes = segment["document.first_code"]
    term, position, end_occurrence = scan(segment["tokens"], *_bounds(codes, documents), terms)
    first, end = _bounds(segment["document.first_section"], documents)
    document_of_section, first_section, sections = owners(first, end), np.cumsum(end - first) - (end - first), ranges(first, end)
    document_of_passage, passage = rows
    section = {name: segment[f"section.{name}"][sections].astype(np.int64) for name in _GATHERED_OF_SECTION}
    _check_tree(segment, section["parent"], first_section, document_of_section)
    if not are_below(passage["section"], document_of_passage, end - first):
        raise segment.columns.damaged("has a damaged tree of sections")
    tokens = segment["document.tokens"][documents].astype(np.int64)
    _check_ranges(segment, passage["first_token"], passage["end_token"], passage["length"], document_of_passage, tokens)
    _check_ranges(segment, section["title_first"], section["title_end"], section["title_length"], document_of_section, tokens)
    return {
        "length_of_document": segment["document.length"][documents].astype(np.int64),
        "parent_of_section": np.where(section["parent"] >= 0, section["parent"] + first_section[document_of_section], -1),
        "document_of_section": document_of_section,
        "title_length_of_section": section["title_length"],
        "title_first_of_section": section["title_first"],
        "title_end_of_section": section["title_end"],
        "document_of_passage": document_of_passage,
        "section_of_passage": passage["section"] + first_section[document_of_passage],
        "first_token_of_passage": passage["first_token"],
        "end_token_of_passage": passage["end_token"],
        "length_of_passage": passage["length"],
        "part_of_passage": _parts_of_passages(segment, documents, document_of_passage, passage["span"], parts),
        "span_of_passage": passage["span"],
        "term_of_occurrence": term,
        "position_of_occurrence": position,
        "end_occurrence_of_document": end_occurrence,
    }


def _passages(segment: Segment, documents: Integers) -> tuple[Integers, dict[str, Integers]]:
    """The passages of documents: the document of each, and its columns."""
    first, end = _bounds(segment["document.first_passage"], documents)
    columns = {name: segment[f"passage.{name}"] for name in OF_PASSAGE}
    return owners(first, end), {name: read_ranges(column.view(np.uint8), column.itemsize, first, end) for name, column in columns.items()}


def _bounds(offsets: Array, documents: Integers) -> tuple[Integers, Integers]:
    """Where what documents own begins and ends."""
    return offsets[documents].astype(np.int64), offsets[documents + 1].astype(np.int64)


def _parts_of_passages(
    segment: Segment, documents: Integers, document_of_passage: Integers, span: Integers, parts: dict[str, int]
) -> Integers:
    first, end = _bounds(segment["document.first_span"], documents)
    if not are_below(span, document_of_passage, end - first):
        raise segment.columns.damaged("has a damaged column (passage.span)")
    column = segment["span.part"]
    label = read_of_owners(column.view(np.uint8), column.itemsize, first, document_of_passage, span)
    low, high = (int(label.min()), int(label.max())) if label.size else (0, -1)
    if high >= len(segment.labels):
        raise segment.columns.damaged("has a damaged column (span.part)")
    # Each segment numbers its labels for itself.
    number = np.zeros(len(segment.labels), np.int64)
    for i in [low] if low == high else np.flatnonzero(np.bincount(label)).tolist():
        number[i] = parts.setdefault(segment.labels[i], len(parts))
    found: Integers = np.full(label.size, number[low]) if low == high else number[label]  # most collections have no parts
    return found


def _read_characters(snapshot: Snapshot, matches: Matches) -> Positions:
    """Cut the texts of the candidates into words again: offsets of words are not stored."""
    occurrence = np.zeros(matches.position_of_occurrence.size, np.int64)
    first, last = np.zeros(matches.passages, np.int64), np.full(matches.passages, -1, np.int64)
    occurrences = matches.first_occurrence_of_document
    passages = matches.first_passage_of_document
    for document, number in enumerate(matches.number_of_document.tolist()):
        segment, local = snapshot.locate(number)
        starts, ends = word_spans(segment.text(local))
        inside = slice(int(occurrences[document]), int(occurrences[document + 1]))
        positions = matches.position_of_occurrence[inside]
        if starts.size != segment["document.tokens"][local] or int(positions.max(initial=-1)) >= starts.size:
            raise segment.columns.damaged(f"has a damaged text (document {local})")
        occurrence[inside] = starts[positions]
        own = np.arange(passages[document], passages[document + 1])
        own = own[matches.end_token_of_passage[own] > matches.first_token_of_passage[own]]
        first[own] = starts[matches.first_token_of_passage[own]]
        last[own] = ends[matches.end_token_of_passage[own] - 1] - 1
    return Positions(occurrence, first, last)


def _check_tree(segment: Segment, parent: Integers, first_section: Integers, document_of_section: Integers) -> None:
    """Kernels walk up the tree without looking: parents must come before their children."""
    own_number = np.arange(parent.size) - first_section[document_of_section]
    if np.any(parent >= own_number) or np.any(parent < -1):
        raise segment.columns.damaged("has a damaged tree of sections")


def _check_ranges(segment: Segment, first: Integers, end: Integers, length: Integers, document: Integers, tokens: Integers) -> None:
    """Kernels make room by the sizes of ranges: none may end before it begins."""
    if not are_ranges(first, end, length, document, tokens):
        raise segment.columns.damaged("has damaged passages or titles")


_COUNTED_IN = {
    "document_of_section": "length_of_document",
    "document_of_passage": "length_of_document",
    "parent_of_section": "parent_of_section",
    "section_of_passage": "parent_of_section",
    "end_occurrence_of_document": "term_of_occurrence",
}
"""Columns that hold numbers of another column's rows: they shift where segments are put together."""

_GATHERED_OF_SECTION = ("parent", "title_first", "title_end", "title_length")

_EMPTY = {
    name: np.zeros(0, np.int32 if name in ("term_of_occurrence", "position_of_occurrence") else np.int64)
    for name in (
        "length_of_document", "parent_of_section", "document_of_section", "title_length_of_section", "title_first_of_section",
        "title_end_of_section", "document_of_passage", "section_of_passage", "first_token_of_passage", "end_token_of_passage",
        "length_of_passage", "part_of_passage", "span_of_passage", "term_of_occurrence", "position_of_occurrence",
        "end_occurrence_of_document",
    )
}  # fmt: skip


def _concatenate(pieces: list[dict[str, Array]]) -> dict[str, Array]:
    if len(pieces) < 2:
        return dict(pieces[0] if pieces else _EMPTY)
    joined = {}
    for name in pieces[0]:
        counted_in = _COUNTED_IN.get(name)
        shift = 0
        parts = []
        for piece in pieces:
            values = piece[name]
            # A root section has no parent, and stays without one.
            parts.append(np.where(values >= 0, values + shift, values) if counted_in else values)
            if counted_in:
                shift += piece[counted_in].size
        joined[name] = np.concatenate(parts)
    return joined
