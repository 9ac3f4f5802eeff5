"""Weights of tags: does a tag mark what is relevant? (Beigbeder, Géry and Largeron 2015, sections 3.3 and 4.5)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from perikope.browse.structure import DocumentOutline, read_spans
from perikope.core.arrays import Array, Integers
from perikope.core.errors import UsageError
from perikope.core.names import is_element_path, split_name
from perikope.document.tree import Kind
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import SavedTable
from perikope.index.segments import Segment
from perikope.kernels.elements import count_marked

KIND = "tags"
LARGEST = 1e6
"""A weight: the ratio of two shares is no larger in any collection, and a table may come from anywhere."""
_AT_ONCE = 1 << 20
"""About so many spans are read at a time."""


@dataclass(frozen=True, slots=True)
class TagRow:
    """What is known of a tag; all but the weight may be missing from a table written by hand."""

    weight: float
    coverage: float = math.nan
    """The tokens that it marks ÷ all tokens."""
    occurrences: int = 0


@dataclass(frozen=True, slots=True)
class TagTable:
    """Tags with their weights, heaviest first where they were learned, and which of them are logical elements."""

    rows: Mapping[str, TagRow]
    logical: tuple[str, ...] = ()
    queries: int = 0

    @property
    def weights(self) -> dict[str, float]:
        """Of each tag."""
        return {tag: row.weight for tag, row in self.rows.items()}

    def values(self) -> dict[str, Any]:
        """As `write_table` takes it."""
        tags = {tag: {"weight": row.weight, "coverage": row.coverage, "occurrences": row.occurrences} for tag, row in self.rows.items()}
        return {"queries": self.queries, "logical": list(self.logical), "tags": tags}


def tag_table(table: SavedTable) -> TagTable:
    """The table of a file, checked: `tags` has a weight, or an object with one, for each tag."""
    tags, logical = table.values.get("tags"), table.values.get("logical", [])
    if not isinstance(tags, dict):
        raise table.damaged('"tags" must be an object with a weight for each tag')
    if not isinstance(logical, list) or not all(isinstance(tag, str) for tag in logical):
        raise table.damaged('"logical" must be a list of tags')
    rows = {}
    for tag, value in tags.items():
        given = value if isinstance(value, dict) else {"weight": value}
        weight, coverage, occurrences = given.get("weight"), given.get("coverage", math.nan), given.get("occurrences", 0)
        if not is_weight(weight) or not isinstance(coverage, (int, float)) or not isinstance(occurrences, int):
            raise table.damaged(f"the weight of {tag!r} must be a number from 0 to {LARGEST:g}")
        rows[tag] = TagRow(float(weight), float(coverage), occurrences)
    queries = table.values.get("queries", 0)
    return TagTable(rows, tuple(logical), queries if isinstance(queries, int) else 0)


def is_weight(value: object) -> TypeGuard[float]:
    """Whether something can be the weight of a tag."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LARGEST


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tags get a weight, and which are logical elements; the values of the paper, for 2.6 million articles."""

    occurrences: int = 1000
    """A weighted tag stands in the collection at least so often."""
    coverage: float = 0.0001
    """And marks at least this share of its tokens."""
    logical_coverage: float = 0.01
    """A logical one marks at least this share,"""
    logical_rank: int = 25
    """and is among so many with the most elements that hold something relevant."""
    excluded: Collection[str] = ()
    """Never weighted: the paper leaves out tags that say what their words mean."""

    def __post_init__(self) -> None:
        if not (self.occurrences >= 0 and self.logical_rank >= 0 and 0 <= self.coverage <= 1 and 0 <= self.logical_coverage <= 1):
            raise UsageError("numbers of occurrences must be at least 0, and coverage is a share from 0 to 1")


@dataclass(frozen=True, slots=True)
class LearnedTags:
    """A table, and what of the judgements it was not learned from."""

    table: TagTable
    without_relevant: tuple[str, ...]
    """Queries without any relevant text: they say nothing."""
    unknown: tuple[str, ...]
    """Relevant passages that the index does not hold."""


def learn_tags(
    snapshot: Snapshot,
    judgements: Mapping[str, Mapping[str, int]],
    *,
    selection: Selection | None = None,
    smoothing: float = 0.5,
    grade: int = 1,
) -> LearnedTags:
    """The weights of tags: how much larger the share of relevant tokens that a tag marks is than that of the others, on average.

    `w(q) = ((rm + s) / (rm + r¬m + s)) / ((¬rm + s) / (¬rm + ¬r¬m + s))` for each query, counted over the tokens of the whole collection,
    each once; the weight of a tag is the mean. Judged are passages, elements or documents, by their names; those with at least `grade`
    are relevant.
    """
    if not 0 < smoothing < math.inf:
        raise UsageError(f"smoothing must be above 0, not {smoothing:g}")
    chosen = selection or Selection()
    tags: dict[str, int] = {}
    total, marked, occurrences, elements = _count_collection(snapshot, tags)
    names = list(tags)
    places = _Places(snapshot)
    sums, relevant_elements = np.zeros(len(tags)), np.zeros(len(tags), np.int64)
    without: list[str] = []
    for query, judged in judgements.items():
        ranges = places.of(name for name, own_grade in judged.items() if own_grade >= grade)
        relevant = sum(end - first for own in ranges.values() for first, end in own)
        if not relevant:
            without.append(query)
            continue
        relevant_marked, holding = _count_relevant(snapshot, ranges, tags)
        relevant_elements += holding
        sums += weigh(relevant_marked, relevant, marked, total, smoothing)
    queries = len(judgements) - len(without)
    if not queries:
        raise UsageError("no query has relevant text in the index; check that the judgements are of this collection")
    coverage = marked / total
    kept = (occurrences >= max(chosen.occurrences, 1)) & (coverage >= chosen.coverage)
    kept &= np.array([tag != "" and tag not in chosen.excluded for tag in names], bool)
    if not kept.any():
        raise UsageError("no tag is frequent enough to be weighted; lower --min-occurrences or --min-coverage")
    weights = sums / queries
    rows = {
        names[i]: TagRow(float(weights[i]), float(coverage[i]), int(occurrences[i]))
        for i in sorted(np.flatnonzero(kept).tolist(), key=lambda i: (-weights[i], names[i]))
    }
    # Of tags with as many elements the one whose name comes first: every machine must learn the same table.
    relevant_tags = [i for i in sorted(range(len(names)), key=lambda i: (-relevant_elements[i], names[i])) if relevant_elements[i] > 0]
    enough = (coverage >= chosen.logical_coverage) & (elements > 0)
    logical = [names[i] for i in relevant_tags[: chosen.logical_rank] if enough[i] and names[i] in rows]
    return LearnedTags(TagTable(rows, tuple(sorted(logical)), queries), tuple(without), tuple(places.unknown))


def weigh(relevant_marked: Any, relevant: float, marked: Any, total: float, smoothing: float = 0.5) -> Any:
    """The weight for one query from counts of tokens: relevant and marked, relevant, marked, and all.

    >>> round(weigh(40, 200, 540, 10_000), 6)
    3.955349
    >>> weigh(200, 200, 10_000, 10_000)
    1.0
    """
    irrelevant = total - relevant
    return ((relevant_marked + smoothing) / (relevant + smoothing)) / ((marked - relevant_marked + smoothing) / (irrelevant + smoothing))


def _count_collection(snapshot: Snapshot, tags: dict[str, int]) -> tuple[int, Integers, Integers, Integers]:
    """All tokens, and for each tag how many it marks, how many spans have it, and how many of these are no marks; numbers the tags."""
    total = 0
    sums: tuple[dict[int, int], ...] = ({}, {}, {})
    for segment in snapshot.segments:
        for documents in _batches(segment, np.flatnonzero(segment.alive)):
            spans = read_spans(segment, documents, tags)
            tokens = segment["document.tokens"][documents].astype(np.int64)
            total += int(tokens.sum())
            whole = np.arange(documents.size + 1), np.zeros(documents.size, np.int64), tokens
            found, _ = count_marked(_offsets(spans["count"]), spans["tag"], spans["first_token"], spans["end_token"], len(tags), *whole)
            elements = spans["tag"][spans["kind"] != int(Kind.MARK)]
            for own, counts in zip(sums, (found, np.bincount(spans["tag"]), np.bincount(elements)), strict=True):
                for tag in np.flatnonzero(counts).tolist():
                    own[tag] = own.get(tag, 0) + int(counts[tag])
    marked, occurrences, blocks = (np.array([own.get(tag, 0) for tag in range(len(tags))], np.int64) for own in sums)
    return total, marked, occurrences, blocks


def _count_relevant(snapshot: Snapshot, ranges: Mapping[int, list[tuple[int, int]]], tags: dict[str, int]) -> tuple[Integers, Integers]:
    """For each tag how many relevant tokens it marks, and how many of its elements hold one."""
    marked, elements = np.zeros(len(tags), np.int64), np.zeros(len(tags), np.int64)
    numbers = np.array(sorted(ranges), np.int64)
    bounds = np.searchsorted(numbers, snapshot.first_document)
    for i, segment in enumerate(snapshot.segments):
        own = numbers[bounds[i] : bounds[i + 1]]
        if own.size:
            spans = read_spans(segment, own - snapshot.first_document[i], tags)
            wanted = [ranges[number] for number in own.tolist()]
            flat = np.array([place for places in wanted for place in places], np.int64)
            first_wanted = _offsets(np.array([len(places) for places in wanted]))
            found, holding = count_marked(
                _offsets(spans["count"]), spans["tag"], spans["first_token"], spans["end_token"], len(tags),
                first_wanted, np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1]),
            )  # fmt: skip
            marked += found
            elements += holding
    return marked, elements


def _batches(segment: Segment, documents: Integers) -> Iterator[Integers]:
    first = segment["document.first_span"].astype(np.int64)
    spans = np.cumsum(first[documents + 1] - first[documents])
    yield from (batch for batch in np.split(documents, np.flatnonzero(np.diff(spans // _AT_ONCE)) + 1) if batch.size)


def _offsets(counts: Array) -> Integers:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


class _Places:
    """Where the text of named passages, elements and documents stands."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.unknown: dict[str, None] = {}
        self._snapshot = snapshot
        self._passages: dict[int, dict[str, tuple[int, int]]] = {}
        self._outlines: dict[int, DocumentOutline] = {}

    def of(self, names: Iterator[str]) -> dict[int, list[tuple[int, int]]]:
        """Ranges of tokens by document, in order, where they overlap put together."""
        found: dict[int, list[tuple[int, int]]] = {}
        for name in names:
            document, passage = split_name(name)
            number = self._snapshot.find_document(document)
            place = self._place(number, passage) if number >= 0 else None
            if place is None:
                self.unknown[name] = None
            elif place[0] < place[1]:
                found.setdefault(number, []).append(place)
        return {number: _united(places) for number, places in found.items()}

    def _place(self, number: int, passage: str) -> tuple[int, int] | None:
        segment, local = self._snapshot.locate(number)
        if not passage:
            return 0, int(segment["document.tokens"][local])
        if number not in self._passages:
            self._passages[number] = {
                segment.passage_id(local, i): (int(segment["passage.first_token"][i]), int(segment["passage.end_token"][i]))
                for i in segment.passages_of(local)
            }
        place = self._passages[number].get(passage)
        if place is None and is_element_path(passage):
            if number not in self._outlines:
                self._outlines[number] = DocumentOutline(segment, local)
            outline = self._outlines[number]
            span = outline.find(passage)
            place = (int(outline.first_token[span]), int(outline.end_token[span])) if span >= 0 else None
        return place


def _united(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    united: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if united and first <= united[-1][1]:
            united[-1] = united[-1][0], max(end, united[-1][1])
        else:
            united.append((first, end))
    return united
