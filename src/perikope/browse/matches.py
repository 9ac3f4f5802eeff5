"""Matches: the occurrences of the query's terms in the candidate documents, joined with the documents' structure.

Matches are all that a lexical model sees. They contain *every* passage of the candidates, with or without a query term.
The names of arrays say what their elements align with. Documents are in the order of their numbers in the index.
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

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The frequency of each query term in each unit (passage, title or document), as a sparse matrix without zeros."""

    first_entry: Integers
    """Index of each unit's first entry, and at the end the number of entries; one value more than there are units."""
    term: Integers32
    count: Integers32

    @property
    def unit(self) -> Integers:
        """The unit of each entry."""
        units: Integers = owners(self.first_entry[:-1], self.first_entry[1:])
        return units


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions of occurrences and passages in their document, in tokens or characters; ends are inclusive.

    A passage without tokens has a last position before its first.
    """

    position_of_occurrence: Integers
    first_of_passage: Integers
    last_of_passage: Integers

    def __post_init__(self) -> None:
        for values in (self.position_of_occurrence, self.first_of_passage, self.last_of_passage):
            values.setflags(write=False)


def _no_characters() -> Positions:
    raise UsageError("these matches were assembled without texts, so positions in characters are unknown; use unit=token")


def _no_structure() -> Structure:
    raise UsageError("these matches were assembled without the trees of their documents; join them with an index")


def _no_parts(document: int) -> Sequence[tuple[str, float]]:
    return ()


def _no_order() -> Integers:
    raise UsageError("these matches were assembled without the ids of their documents; join them with an index")


@dataclass(frozen=True, slots=True)
class Matches:
    """Query, candidate documents, their sections and passages, occurrences, and the collection's statistics.

    If elements or documents are ranked (`units`), they take the role of the passages. Elements may overlap; parents
    come first.
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
    """Index in `parts` of the part that contains each passage."""
    span_of_passage: Integers
    """Number of each passage's span in its document."""
    parts: tuple[str, ...]
    units: Units = "passages"
    characters: Callable[[], Positions] = _no_characters
    """As `tokens`, counted in characters. The first call reads the texts, which is slow; few models need it."""
    structure: Callable[[], Structure] = _no_structure
    """The spans of the candidate documents; the first call reads them."""
    id_rank_of_document: Callable[[], Integers] = _no_order
    """The rank of each document by id, which decides between equal scores; the first call computes it."""
    table: Callable[[str, str], SavedTable] = read_table
    """Reads a table, by name and kind, from the index or from those that come with the program."""
    parts_of_score: Callable[[int], Sequence[tuple[str, float]]] = _no_parts
    """Names and values of the parts that a document's score is the sum of; empty if they are unknown."""
    snapshot: Snapshot | None = field(default=None, repr=False, compare=False)
    """The index that was joined, for data stored beside it, such as vectors; None if matches were assembled by hand."""
    all_terms: Matches | None = None
    """The matches of all terms, if some terms occur only under NOT, else None; see `with_negated`."""
    _memo: dict[Hashable, Any] | None = field(default=None, init=False, repr=False, compare=False)
    """Results of `once` by key, or None unless `shared`. Copies start empty, as their columns may differ."""

    def __post_init__(self) -> None:
        for declared in fields(self):
            value = getattr(self, declared.name)
            for item in [getattr(value, f.name) for f in fields(value)] if is_dataclass(value) else [value]:
                if isinstance(item, np.ndarray):
                    item.setflags(write=False)

    @property
    def documents(self) -> int:
        """The number of candidate documents."""
        return int(self.number_of_document.size)

    @property
    def passages(self) -> int:
        """The number of passages in all candidate documents."""
        return int(self.document_of_passage.size)

    @property
    def first_passage_of_document(self) -> Integers:
        """Row of each document's first passage, and at the end the number of passages; `documents + 1` values."""
        return np.searchsorted(self.document_of_passage, np.arange(self.documents + 1))

    @property
    def weights(self) -> Floats:
        """The weight of each query term."""
        return np.array(self.query.weights)

    def shared(self) -> Matches:
        """The same matches for several models: columns that they request with `once` are computed once."""
        if self._memo is not None:
            return self
        copy = replace(self)
        object.__setattr__(copy, "_memo", {})
        return copy

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The result of `make`; shared matches call it once per key and remember the result."""
        if self._memo is None:
            return make()
        if key not in self._memo:
            self._memo[key] = make()
        value: Value = self._memo[key]
        return value

    def with_negated(self) -> Matches:
        """The same matches with the terms that occur only under NOT, for code that evaluates the query's tree."""
        return self if self.all_terms is None else self.all_terms

    def require_passages(self, model: str) -> None:
        """Raise `UsageError` unless passages are ranked: for models that read neighbouring passages or sections."""
        if self.units != "passages":
            raise UsageError(f"{model} ranks passages only, not {self.units}; choose another model, or rank passages")

    def tokens(self) -> Positions:
        """The positions of occurrences and passages, counted in tokens."""
        return Positions(self.position_of_occurrence.astype(np.int64), self.first_token_of_passage, self.end_token_of_passage - 1)

    def in_passages_with_titles(self) -> Frequencies:
        """Term frequencies of each passage together with the titles of its section and of all sections above."""
        if not self.in_titles.term.size:
            return self.in_passages
        passages, titles = (TermCounts(own.first_entry, own.term, own.count) for own in (self.in_passages, self.in_titles))
        return Frequencies(*add_titles(passages, self.section_of_passage, self.parent_of_section, titles, len(self.query.terms)))

    def length_with_titles_of_passage(self) -> Integers:
        """The number of indexed tokens of each passage together with the titles above it."""
        titles: Integers = sum_ancestors(self.title_length_of_section, self.parent_of_section)
        return self.length_of_passage + titles[self.section_of_passage]


def join(
    snapshot: Snapshot, query: Query, candidates: Candidates, *, units: Units = "passages", tags: Collection[str] | None = None
) -> Matches:
    """Join the query's occurrences in the candidate documents with their structure.

    The rows are passages, whole documents or elements; of elements all logical ones, or only those with one of the
    `tags`.
    """
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
            id_rank_of_document=cache(lambda: _ranks_by_id(snapshot, numbers)),
            table=partial(read_table, folder=snapshot.folder),
            snapshot=snapshot,
            parts_of_score=lambda document: candidates.parts_of_score(int(numbers[document])),
        )
    )


def _ranks_by_id(snapshot: Snapshot, numbers: Integers) -> Integers:
    rank = np.empty(numbers.size, np.int64)
    rank[snapshot.by_id(numbers, np.zeros(numbers.size, np.int64))] = np.arange(numbers.size)
    rank.setflags(write=False)
    return rank


def without_negated(matches: Matches) -> Matches:
    """The matches without the terms that occur only under NOT; `with_negated` of the result returns all terms again."""
    query = matches.query.positive
    if len(query.terms) == len(matches.query.terms):
        return matches
    number = {term: i for i, term in enumerate(query.terms)}
    number_of_term = np.array([number.get(term, -1) for term in matches.query.terms], np.int32)
    terms = np.flatnonzero(number_of_term >= 0)
    positive = number_of_term[matches.term_of_occurrence] >= 0
    before = np.concatenate([[0], np.cumsum(positive)])

    def only(frequencies: Frequencies) -> Frequencies:
        entries = number_of_term[frequencies.term] >= 0
        first_entry = np.concatenate([[0], np.cumsum(entries)])[frequencies.first_entry]
        return Frequencies(first_entry, number_of_term[frequencies.term[entries]], frequencies.count[entries])

    def characters() -> Positions:
        positions = matches.characters()
        return Positions(positions.position_of_occurrence[positive], positions.first_of_passage, positions.last_of_passage)

    counts = matches.statistics
    return replace(
        matches,
        query=query,
        statistics=replace(counts, **{name: getattr(counts, name)[terms] for name in _OF_TERM}),
        term_of_occurrence=number_of_term[matches.term_of_occurrence[positive]],
        position_of_occurrence=matches.position_of_occurrence[positive],
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
    """Matches from plain columns: finds and counts the occurrences of each passage and title.

    Without a column `part_of_passage`, all passages belong to the first part.
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
    """The columns of one segment's candidates; documents and sections are numbered within these candidates.

    `rows` are the passages or elements: the document of each, and its columns. New parts get the next number in
    `parts`.
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
    """The document of each passage, and the columns of the passages."""
    first, end = _bounds(segment["document.first_passage"], documents)
    columns = {name: segment[f"passage.{name}"] for name in OF_PASSAGE}
    return owners(first, end), {name: read_ranges(column.view(np.uint8), column.itemsize, first, end) for name, column in columns.items()}


def _bounds(offsets: Array, documents: Integers) -> tuple[Integers, Integers]:
    """First and end offset of each document's entries."""
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
    # Each segment has its own numbering of labels.
    number = np.zeros(len(segment.labels), np.int64)
    for i in [low] if low == high else np.flatnonzero(np.bincount(label)).tolist():
        number[i] = parts.setdefault(segment.labels[i], len(parts))
    part: Integers = np.full(label.size, number[low]) if low == high else number[label]  # most collections have no parts
    return part


def _read_characters(snapshot: Snapshot, matches: Matches) -> Positions:
    """Positions in characters, from splitting the texts into words again: word offsets are not stored."""
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
        rows = np.arange(passages[document], passages[document + 1])
        rows = rows[matches.end_token_of_passage[rows] > matches.first_token_of_passage[rows]]
        first[rows] = starts[matches.first_token_of_passage[rows]]
        last[rows] = ends[matches.end_token_of_passage[rows] - 1] - 1
    return Positions(occurrence, first, last)


def _check_tree(segment: Segment, parent: Integers, first_section: Integers, document_of_section: Integers) -> None:
    """Raise unless every parent comes before its children: kernels walk up the tree without checks."""
    number_in_document = np.arange(parent.size) - first_section[document_of_section]
    if np.any(parent >= number_in_document) or np.any(parent < -1):
        raise segment.columns.damaged("has a damaged tree of sections")


def _check_ranges(segment: Segment, first: Integers, end: Integers, length: Integers, document: Integers, tokens: Integers) -> None:
    """Raise if a range ends before it begins: kernels allocate memory by the sizes of ranges."""
    if not are_ranges(first, end, length, document, tokens):
        raise segment.columns.damaged("has damaged passages or titles")


_COUNTED_IN = {
    "document_of_section": "length_of_document",
    "document_of_passage": "length_of_document",
    "parent_of_section": "parent_of_section",
    "section_of_passage": "parent_of_section",
    "end_occurrence_of_document": "term_of_occurrence",
}
"""Columns that hold row numbers of another column: these numbers shift when segments are concatenated."""

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
            # A root section has no parent (-1), which must not shift.
            parts.append(np.where(values >= 0, values + shift, values) if counted_in else values)
            if counted_in:
                shift += piece[counted_in].size
        joined[name] = np.concatenate(parts)
    return joined
