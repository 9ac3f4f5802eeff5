"""Read the columns of `Matches` from the segments of an index.

Every column is allocated once for all segments, and each segment is read into its part of it. Concatenating the columns
of several segments would take as long as reading them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from perikope.browse.candidate_set import CandidateSet, candidate_set
from perikope.browse.listed_terms import Listed, TokensOfSegment
from perikope.browse.structure import Units, read_elements
from perikope.core.arrays import Array, Integers, frozen
from perikope.core.checkpoints import checkpoint
from perikope.core.memory import keep_freed_memory
from perikope.index.layout import OF_PASSAGE
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.kernels.gather import read_ranges_to
from perikope.kernels.join import scan
from perikope.kernels.joined_rows import (
    BAD_PART,
    BAD_RANGE,
    BAD_SPAN,
    BAD_TREE,
    JoinedDocuments,
    PassageRows,
    SectionRows,
    number_passages,
    number_sections,
)

_OF_SECTION = {
    "document": "document_of_section",
    "parent": "parent_of_section",
    "title_first": "title_first_of_section",
    "title_end": "title_end_of_section",
    "title_length": "title_length_of_section",
}
"""The columns of sections that are read, by the fields of `SectionRows`."""
_OF_PASSAGE = {
    "document": "document_of_passage",
    "section": "section_of_passage",
    "first_token": "first_token_of_passage",
    "end_token": "end_token_of_passage",
    "length": "length_of_passage",
    "span": "span_of_passage",
    "part": "part_of_passage",
}
"""The columns of passages that are read, by the fields of `PassageRows`."""
_OF_OCCURRENCE = ("term_of_occurrence", "position_of_occurrence", "end_occurrence_of_document")
"""The columns that depend on the query."""
_READ_OF_SECTION = ("parent", "title_first", "title_end", "title_length")
_DAMAGE = {
    BAD_TREE: "has a damaged tree of sections",
    BAD_RANGE: "has damaged passages or titles",
    BAD_SPAN: "has a damaged column (passage.span)",
    BAD_PART: "has a damaged column (span.part)",
}


Columns = dict[str, Array]
"""Columns of `Matches` by name, as `assemble` takes them."""


class ReadColumns(NamedTuple):
    """What is read of some documents for a query."""

    documents: CandidateSet
    """The documents, with the columns that do not depend on the query."""
    occurrences: Callable[[], Columns]
    """Reads the columns of occurrences."""
    frequencies: dict[str, Listed] | None = None
    """The frequencies of the query's terms, by kind of units; None if they must be counted from the occurrences."""


def read_columns(snapshot: Snapshot, terms: Sequence[str], numbers: Integers, units: Units, tags: Collection[str] | None) -> ReadColumns:
    """Read the columns of `Matches` for some documents.

    `terms` are those of the query. `numbers` are those of the documents in the index, in ascending order. For `units`
    and `tags` see `join`.
    """
    if not snapshot.is_local:
        answers = [answer for _, answer in snapshot.ask_about(_columns_of_shard, numbers, terms, units, tags)]
        columns, parts = _of_shards(answers)
        occurrences = {name: columns.pop(name) for name in _OF_OCCURRENCE}
        return ReadColumns(CandidateSet(numbers, units, tags, columns, parts, []), lambda: occurrences)
    keep_freed_memory()
    found = candidate_set(snapshot, numbers, units, tags, _read_set)
    numbers_of_terms = snapshot.numbers_of_terms(terms)
    return ReadColumns(found, lambda: _occurrences(found, numbers_of_terms), found.frequencies(numbers_of_terms))


def _columns_of_shard(
    snapshot: Snapshot, numbers: Integers, terms: Sequence[str], units: Units, tags: Collection[str] | None
) -> tuple[Columns, tuple[str, ...]]:
    """The columns of the documents of one shard, and the names of parts."""
    read = read_columns(snapshot, terms, numbers, units, tags)
    return {**read.documents.columns, **read.occurrences()}, read.documents.parts


def _of_shards(answers: Sequence[tuple[Columns, tuple[str, ...]]]) -> tuple[Columns, tuple[str, ...]]:
    """The columns of the documents of several shards, one shard after the other."""
    number_of_part: dict[str, int] = {}
    documents = sections = occurrences = 0
    for columns, parts in answers:
        number = np.array([number_of_part.setdefault(part, len(number_of_part)) for part in parts], np.int64)
        columns["part_of_passage"] = number[columns["part_of_passage"]] if parts else columns["part_of_passage"]
        parent = columns["parent_of_section"]
        columns["parent_of_section"] = np.where(parent >= 0, parent + sections, parent)
        columns["section_of_passage"] = columns["section_of_passage"] + sections
        columns["end_occurrence_of_document"] = columns["end_occurrence_of_document"] + occurrences
        for name in ("document_of_section", "document_of_passage"):
            columns[name] = columns[name] + documents
        documents += columns["length_of_document"].size
        sections += columns["document_of_section"].size
        occurrences += columns["term_of_occurrence"].size
    return {name: np.concatenate([columns[name] for columns, _ in answers]) for name in answers[0][0]}, tuple(number_of_part)


def _read_set(snapshot: Snapshot, numbers: Integers, units: Units, tags: Collection[str] | None) -> CandidateSet:
    """Read the sections and passages of documents from the index."""
    bounds = np.searchsorted(numbers, snapshot.first_document).tolist()
    pieces = []
    for i, segment in enumerate(snapshot.segments):
        if bounds[i] < bounds[i + 1]:
            checkpoint("matches")
            local = numbers[bounds[i] : bounds[i + 1]] - snapshot.first_document[i]
            pieces.append(_SegmentPart.of(segment, i, local, units, tags))
    sections, passages = (np.empty((width, sum(counts)), np.int64) for width, counts in (
        (len(_OF_SECTION), [piece.sections for piece in pieces]),
        (len(_OF_PASSAGE), [piece.passages for piece in pieces]),
    ))  # fmt: skip
    parts: dict[str, int] = {}
    document = section = passage = 0
    for piece in pieces:
        of_sections = SectionRows(*sections[:, section : section + piece.sections])
        of_passages = PassageRows(*passages[:, passage : passage + piece.passages])
        piece.read(of_sections, of_passages, document, section, parts)
        document, section, passage = document + piece.documents.size, section + piece.sections, passage + piece.passages
    columns = {
        **dict(zip(_OF_SECTION.values(), sections, strict=True)),
        **dict(zip(_OF_PASSAGE.values(), passages, strict=True)),
        "length_of_document": _joined([piece.lengths() for piece in pieces], np.int64),
    }
    return CandidateSet(numbers, units, tags, columns, tuple(parts), [piece.tokens() for piece in pieces])


def _occurrences(documents: CandidateSet, terms: Integers) -> dict[str, Array]:
    """The columns of occurrences."""
    found, positions, ends = [], [], []
    count = 0
    for tokens in documents.tokens:
        term, position, end = scan(tokens.codes, tokens.first_code, tokens.end_code, terms[tokens.segment])
        found.append(term)
        positions.append(position)
        ends.append(end + count if count else end)
        count += term.size
    columns = _joined(found, np.int32), _joined(positions, np.int32), _joined(ends, np.int64)
    return dict(zip(_OF_OCCURRENCE, columns, strict=True))


def _joined(pieces: list[Array], kind: type[np.integer]) -> Array:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else np.zeros(0, kind)


@dataclass(frozen=True, slots=True)
class _SegmentPart:
    """The candidates of one segment. They are verified (`Segment.joined`)."""

    segment: Segment
    number: int
    """The number of the segment in the index."""
    documents: Integers
    """Numbers of the candidates in the segment."""
    first_section: Integers
    end_section: Integers
    elements: tuple[Integers, dict[str, Integers]] | None
    """The document and the columns of each element, if elements are ranked."""
    first_passage: Integers
    end_passage: Integers
    """The passages of each document, or its range of elements."""

    @classmethod
    def of(cls, segment: Segment, number: int, documents: Integers, units: Units, tags: Collection[str] | None) -> _SegmentPart:
        """The given documents of a segment."""
        segment.joined.require(documents)
        sections = _bounds(segment["document.first_section"], documents)
        if units == "passages":
            return cls(segment, number, documents, *sections, None, *_bounds(segment["document.first_passage"], documents))
        elements = read_elements(segment, documents, units, tags)
        end = np.cumsum(np.bincount(elements[0], minlength=documents.size))
        return cls(segment, number, documents, *sections, elements, np.concatenate([[0], end[:-1]]), end)

    @property
    def sections(self) -> int:
        """Number of sections."""
        return int((self.end_section - self.first_section).sum())

    @property
    def passages(self) -> int:
        """Number of passages or elements."""
        return int((self.end_passage - self.first_passage).sum())

    def read(self, sections: SectionRows, passages: PassageRows, base: int, base_of_sections: int, parts: dict[str, int]) -> None:
        """Read the sections and passages. New parts are added to `parts`, which has the number of each part."""
        columns, tokens = self.segment.columns, self.segment["document.tokens"][self.documents].astype(np.int64)
        first_span, end_span = _bounds(self.segment["document.first_span"], self.documents)
        documents = JoinedDocuments(
            self.end_passage - self.first_passage, self.end_section - self.first_section, end_span - first_span, first_span, tokens,
            base, base_of_sections,
        )  # fmt: skip
        read_ranges_to(
            sections[1:], [columns.numbers(f"section.{name}") for name in _READ_OF_SECTION], self.first_section, self.end_section
        )
        self._read_passages(passages)
        seen = np.zeros(len(self.segment.labels), bool)
        for state in (
            number_sections(documents, sections),
            number_passages(documents, passages, columns.numbers("span.part"), seen),
        ):
            if state in _DAMAGE:
                raise columns.damaged(_DAMAGE[state])
        # Each segment has its own numbering of labels.
        labels = np.flatnonzero(seen).tolist()
        number = np.zeros(seen.size, np.int64)
        for label in labels:
            number[label] = parts.setdefault(self.segment.labels[label], len(parts))
        passages.part[:] = number[labels[0]] if len(labels) == 1 else number[passages.part]

    def _read_passages(self, passages: PassageRows) -> None:
        if self.elements is not None:
            for name, values in self.elements[1].items():
                getattr(passages, name)[:] = values
            return
        columns = [self.segment.columns.numbers(f"passage.{name}") for name in OF_PASSAGE]
        read_ranges_to([getattr(passages, name) for name in OF_PASSAGE], columns, self.first_passage, self.end_passage)

    def tokens(self) -> TokensOfSegment:
        """Where the tokens of the documents are."""
        codes = _bounds(self.segment["document.first_code"], self.documents)
        return TokensOfSegment(self.number, len(self.segment.terms), self.segment.columns["tokens"], *codes)

    def lengths(self) -> Integers:
        """The length of each document in indexed tokens."""
        return self.segment["document.length"][self.documents].astype(np.int64)


def _bounds(offsets: Array, documents: Integers) -> tuple[Integers, Integers]:
    """The first and the end offset (exclusive) of each document's entries."""
    return frozen(offsets[documents].astype(np.int64)), frozen(offsets[documents + 1].astype(np.int64))
