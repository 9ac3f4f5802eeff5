"""Learn weights of tags from relevance judgements.

The weight of a tag is the share of relevant text that it marks, divided by the share of irrelevant text that it marks.

Source: Beigbeder, Géry and Largeron 2015, sections 3.3 and 4.5.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from perikope.browse.structure import DocumentOutline, known_tags, read_spans
from perikope.core.arrays import Array, Integers, Mask
from perikope.core.errors import UsageError, unknown
from perikope.core.names import is_element_path, split_name
from perikope.document.tree import Kind
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import SavedTable, read_table, table_names
from perikope.index.segments import Segment
from perikope.kernels.elements import count_marked

KIND = "tags"
"""Kind of the saved tables that hold weights of tags."""
LARGEST = 1e6
"""Largest weight accepted from a table. Learned weights are smaller in any real collection."""
_AT_ONCE = 1 << 20
"""Approximate number of spans that are read into memory at once."""


@dataclass(frozen=True, slots=True)
class TagRow:
    """Weight and statistics of a tag. The statistics keep their defaults in a table written by hand."""

    weight: float
    coverage: float = math.nan
    """Share of all tokens that the tag marks; NaN if unknown."""
    occurrences: int = 0
    """Number of spans with the tag; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class TagTable:
    """Tags with their weights, and a list of the tags whose elements are logical."""

    rows: Mapping[str, TagRow]
    """Weight and statistics by tag. In a learned table, the largest weight comes first."""
    logical: tuple[str, ...] = ()
    """Tags of logical elements."""
    queries: int = 0
    """Number of queries that the weights were learned from; 0 if unknown."""

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each tag."""
        return {tag: row.weight for tag, row in self.rows.items()}

    def values(self) -> dict[str, Any]:
        """The table as plain values, for `write_table`."""
        tags = {tag: {"weight": row.weight, "coverage": row.coverage, "occurrences": row.occurrences} for tag, row in self.rows.items()}
        return {"queries": self.queries, "logical": list(self.logical), "tags": tags}


def tag_table(table: SavedTable) -> TagTable:
    """Read and check a saved table of tags.

    Its value `tags` maps each tag to a weight, or to an object with `weight`, `coverage` and `occurrences`.
    """
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


def tags_of_elements(snapshot: Snapshot, names: Iterable[str]) -> frozenset[str]:
    """The tags that names of elements stand for.

    The name of a table of tags stands for its logical tags, and any other name for itself. Raises `UsageError` for a
    name that is neither a table nor a tag of elements in the index, and for a table with no logical tag of the index.
    """
    known = frozenset(known_tags(snapshot))
    tags: set[str] = set()
    for name in names:
        try:
            logical = tag_table(read_table(name, KIND, snapshot.folder)).logical
        except UsageError:
            if name not in known:
                raise unknown("tag of elements", name, sorted({*known, *table_names(KIND, snapshot.folder)})) from None
            logical = (name,)
        if known.isdisjoint(logical):
            raise UsageError(f"no logical tag of the table {name!r} occurs in the index; name tags of elements, or learn a table here")
        tags |= known.intersection(logical)
    return frozenset(tags)


def is_weight(value: object) -> TypeGuard[float]:
    """Whether a value is a number from 0 to `LARGEST`, as weights of tags are."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LARGEST


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions for a tag to get a weight, and for a tag to be logical.

    The defaults are those of the paper, for a collection of 2.6 million articles.
    """

    occurrences: int = 1000
    """A tag gets a weight only if at least this number of spans have it."""
    coverage: float = 0.0001
    """A tag gets a weight only if it marks at least this share of all tokens."""
    logical_coverage: float = 0.01
    """A tag is logical only if it marks at least this share of all tokens."""
    logical_rank: int = 25
    """A tag is logical only if it is one of this number of tags with the most elements that contain relevant text."""
    excluded: Collection[str] = ()
    """Tags that get no weight and are not logical."""
    semantic: bool = False
    """Whether tags that state the meaning of their words (`semantic_tags`) can get a weight and be logical."""

    def __post_init__(self) -> None:
        for name in ("occurrences", "logical_rank"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} must be at least 0, not {getattr(self, name)}")
        for name in ("coverage", "logical_coverage"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} must be a share from 0 to 1, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class LearnedTags:
    """A learned table, and the judgements that could not be used for it."""

    table: TagTable
    without_relevant: tuple[str, ...]
    """Ids of the queries that have no relevant text in the index."""
    unknown: tuple[str, ...]
    """Names of the relevant passages, elements and documents that the index does not contain."""


def learn_tags(
    snapshot: Snapshot,
    judgements: Mapping[str, Mapping[str, int]],
    *,
    tokens: Mapping[str, Mapping[int, list[tuple[int, int]]]] | None = None,
    selection: Selection | None = None,
    smoothing: float = 0.5,
    grade: int = 1,
) -> LearnedTags:
    """Learn a weight for each tag that meets `selection`, and which tags are logical.

    The weight of a tag for a query q is the share of relevant tokens that the tag marks, divided by the share of
    irrelevant tokens that it marks: `w(q) = ((rm + s) / (r + s)) / ((im + s) / (i + s))`. Here r and i are the numbers
    of relevant and irrelevant tokens in the whole collection, rm and im are the numbers of those that the tag marks,
    and s is `smoothing`. The weight of a tag is the mean of w(q) over all queries with relevant tokens.

    `judgements` has, for each query id, a grade for names of passages, elements or documents. A grade of at least
    `grade` means relevant. If `tokens` is given, it says instead which tokens are relevant to a query: ranges of tokens
    by the number of their document, as `relevant_tokens` reads them from judgements of characters.

    The table has no weights if no tag is frequent enough.
    """
    if not 0 < smoothing < math.inf:
        raise UsageError(f"smoothing must be above 0, not {smoothing:g}")
    thresholds = selection or Selection()
    tags: dict[str, int] = {}
    total, marked, occurrences, elements = _count_collection(snapshot, tags)
    names = list(tags)
    excluded = {"", *thresholds.excluded, *(() if thresholds.semantic else semantic_tags(snapshot))}
    allowed: Mask = np.array([tag not in excluded for tag in names], bool)
    locator = _TokenRanges(snapshot)
    sums, relevant_elements = np.zeros(len(tags)), np.zeros(len(tags), np.int64)
    without: list[str] = []
    for query, judged in judgements.items():
        if tokens is None:
            ranges: Mapping[int, list[tuple[int, int]]] = locator.of(name for name, judged_grade in judged.items() if judged_grade >= grade)
        else:
            ranges = {number: relevant_ranges for number, relevant_ranges in tokens.get(query, {}).items() if relevant_ranges}
        relevant = sum(end - first for ranges_of_document in ranges.values() for first, end in ranges_of_document)
        if not relevant:
            without.append(query)
            continue
        relevant_marked, holding = _count_relevant(snapshot, ranges, tags)
        relevant_elements += holding
        sums += weigh(relevant_marked, relevant, marked, total, smoothing)
    queries = len(judgements) - len(without)
    if not queries:
        raise UsageError("no query has relevant text in the index; check that the judgements belong to this collection")
    coverage = marked / total
    weighted = allowed & (occurrences >= max(thresholds.occurrences, 1)) & (coverage >= thresholds.coverage)
    weights = sums / queries
    rows = {
        names[i]: TagRow(float(weights[i]), float(coverage[i]), int(occurrences[i]))
        for i in sorted(np.flatnonzero(weighted).tolist(), key=lambda i: (-weights[i], names[i]))
    }
    # Tags with equally many elements are ordered by name, so that every machine learns the same table.
    relevant_tags = [i for i in sorted(range(len(names)), key=lambda i: (-relevant_elements[i], names[i])) if relevant_elements[i] > 0]
    # The number of occurrences does not matter here: in the paper's collection, any tag with this coverage is frequent.
    enough = allowed & (coverage >= thresholds.logical_coverage) & (elements > 0)
    logical = [names[i] for i in relevant_tags[: thresholds.logical_rank] if enough[i]]
    return LearnedTags(TagTable(rows, tuple(sorted(logical)), queries), tuple(without), tuple(locator.unknown))


def weigh(relevant_marked: Any, relevant: float, marked: Any, total: float, smoothing: float = 0.5) -> Any:
    """The weight of a tag for one query, as in `learn_tags`.

    `relevant` and `total` are the numbers of relevant tokens and of all tokens. `relevant_marked` and `marked` are the
    numbers of those that the tag marks; they may be arrays with one value per tag.

    >>> round(weigh(40, 200, 540, 10_000), 6)
    3.955349
    >>> weigh(200, 200, 10_000, 10_000)
    1.0
    """
    irrelevant = total - relevant
    return ((relevant_marked + smoothing) / (relevant + smoothing)) / ((marked - relevant_marked + smoothing) / (irrelevant + smoothing))


SEMANTIC = "semantic"
"""Field of metadata in which a document lists its semantic tags. The INEX profile fills it from `wordnetid`."""


def semantic_tags(snapshot: Snapshot) -> frozenset[str]:
    """The tags that are semantic wherever they occur: every document with such a tag lists it under `SEMANTIC`.

    A name that also occurs without the attribute, such as a parameter of a template, is not semantic.
    """
    listed: set[str] = set()
    plain: set[str] = set()
    for segment in snapshot.segments:
        facets = segment.facets
        keys = np.array(facets.keys(SEMANTIC), np.int64)
        names = [facets.values.text(key) for key in keys.tolist()]
        documents_of_key = [facets.documents(keys[i : i + 1]).astype(np.int64) for i in range(keys.size)]
        listed |= {*names}
        for documents in _batches(segment, np.flatnonzero(segment.alive)):
            tags: dict[str, int] = {name: number for number, name in enumerate(names)}
            spans = read_spans(segment, documents, tags)
            pairs = np.unique(np.repeat(documents, spans["count"]) * len(tags) + spans["tag"])
            semantic = [documents_with * len(tags) + number for number, documents_with in enumerate(documents_of_key)]
            others = np.setdiff1d(pairs, np.concatenate([np.zeros(0, np.int64), *semantic]))
            ordered = list(tags)
            plain |= {ordered[number] for number in np.unique(others % len(tags)).tolist()}
    return frozenset(listed - plain)


def _count_collection(snapshot: Snapshot, tags: dict[str, int]) -> tuple[int, Integers, Integers, Integers]:
    """Count tokens and spans in the whole index.

    Returns the number of all tokens and three arrays with one value per tag: the tokens that the tag marks, the spans
    with the tag, and the spans with the tag that are not marks. Fills `tags` with the number of each tag.
    """
    total = 0
    sums: tuple[dict[int, int], ...] = ({}, {}, {})
    for segment in snapshot.segments:
        for documents in _batches(segment, np.flatnonzero(segment.alive)):
            spans = read_spans(segment, documents, tags)
            tokens = segment["document.tokens"][documents].astype(np.int64)
            total += int(tokens.sum())
            whole = np.arange(documents.size + 1), np.zeros(documents.size, np.int64), tokens
            tokens_of_tag, _ = count_marked(
                _offsets(spans["count"]), spans["tag"], spans["first_token"], spans["end_token"], len(tags), *whole
            )
            elements = spans["tag"][spans["kind"] != int(Kind.MARK)]
            for totals, counts in zip(sums, (tokens_of_tag, np.bincount(spans["tag"]), np.bincount(elements)), strict=True):
                for tag in np.flatnonzero(counts).tolist():
                    totals[tag] = totals.get(tag, 0) + int(counts[tag])
    marked, occurrences, blocks = (np.array([totals.get(tag, 0) for tag in range(len(tags))], np.int64) for totals in sums)
    return total, marked, occurrences, blocks


def _count_relevant(snapshot: Snapshot, ranges: Mapping[int, list[tuple[int, int]]], tags: dict[str, int]) -> tuple[Integers, Integers]:
    """Two arrays with one value per tag: the relevant tokens that it marks, and its spans with a relevant token.

    `ranges` has the relevant ranges of tokens, by the number of their document.
    """
    marked, elements = np.zeros(len(tags), np.int64), np.zeros(len(tags), np.int64)
    numbers = np.array(sorted(ranges), np.int64)
    bounds = np.searchsorted(numbers, snapshot.first_document)
    for i, segment in enumerate(snapshot.segments):
        documents = numbers[bounds[i] : bounds[i + 1]]
        if documents.size:
            spans = read_spans(segment, documents - snapshot.first_document[i], tags)
            relevant = [ranges[number] for number in documents.tolist()]
            flat = np.array([one_range for ranges_of_document in relevant for one_range in ranges_of_document], np.int64)
            first_range = _offsets(np.array([len(ranges_of_document) for ranges_of_document in relevant]))
            tokens_of_tag, holding = count_marked(
                _offsets(spans["count"]), spans["tag"], spans["first_token"], spans["end_token"], len(tags),
                first_range, np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1]),
            )  # fmt: skip
            marked += tokens_of_tag
            elements += holding
    return marked, elements


def _batches(segment: Segment, documents: Integers) -> Iterator[Integers]:
    first = segment["document.first_span"].astype(np.int64)
    spans = np.cumsum(first[documents + 1] - first[documents])
    yield from (batch for batch in np.split(documents, np.flatnonzero(np.diff(spans // _AT_ONCE)) + 1) if batch.size)


def _offsets(counts: Array) -> Integers:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


class _TokenRanges:
    """Finds the ranges of tokens of passages, elements and documents by name. `unknown` collects unknown names."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.unknown: dict[str, None] = {}
        self._snapshot = snapshot
        self._passages: dict[int, dict[str, tuple[int, int]]] = {}
        self._outlines: dict[int, DocumentOutline] = {}

    def of(self, names: Iterator[str]) -> dict[int, list[tuple[int, int]]]:
        """The ranges of tokens (end exclusive) that the names stand for, by the number of their document.

        The ranges of a document are in ascending order. Overlapping and adjacent ranges are merged.
        """
        ranges: dict[int, list[tuple[int, int]]] = {}
        for name in names:
            document, passage = split_name(name)
            number = self._snapshot.find_document(document)
            tokens = self._range(number, passage) if number >= 0 else None
            if tokens is None:
                self.unknown[name] = None
            elif tokens[0] < tokens[1]:
                ranges.setdefault(number, []).append(tokens)
        return {number: _united(ranges_of_document) for number, ranges_of_document in ranges.items()}

    def _range(self, number: int, passage: str) -> tuple[int, int] | None:
        """First and end token (exclusive) of a passage or element of a document, or None if it is unknown.

        If `passage` is empty, this is the range of the whole document.
        """
        segment, local = self._snapshot.locate(number)
        if not passage:
            return 0, int(segment["document.tokens"][local])
        if number not in self._passages:
            self._passages[number] = {
                segment.passage_id(local, i): (segment.row("passage.first_token", i), segment.row("passage.end_token", i))
                for i in segment.passages_of(local)
            }
        tokens = self._passages[number].get(passage)
        if tokens is None and is_element_path(passage):
            if number not in self._outlines:
                self._outlines[number] = DocumentOutline(segment, local)
            outline = self._outlines[number]
            span = outline.find(passage)
            tokens = (int(outline.first_token[span]), int(outline.end_token[span])) if span >= 0 else None
        return tokens


def _united(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    united: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if united and first <= united[-1][1]:
            united[-1] = united[-1][0], max(end, united[-1][1])
        else:
            united.append((first, end))
    return united
