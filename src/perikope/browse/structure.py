"""Read the trees of spans of candidate documents.

They tell which element contains each token, and which elements may be results.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from perikope.core.arrays import Array, Integers, Integers32, Mask, frozen
from perikope.core.names import element_path
from perikope.document.tree import Kind
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.kernels.elements import are_trees, count_indexed, deepest_runs, link_runs, runs_of_positions
from perikope.kernels.gather import read_ranges
from perikope.kernels.structure import derive_structure

Units = Literal["passages", "elements", "documents"]
"""The unit that is scored and ranked."""

LOGICAL = (Kind.SECTION, Kind.ELEMENT, Kind.PASSAGE)
"""Kinds of spans that are logical elements by default.

Titles are logical elements only if the user names their tag. Marks never are.
"""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs: ranges of adjacent tokens that have the same deepest span among some chosen spans.

    Runs are ordered by document, then by position.
    """

    first_token: Integers
    """First token of each run, counted in its document."""
    end_token: Integers
    """One more than the last token of each run."""
    span: Integers
    """Index of each run's deepest chosen span, or -1 if no chosen span contains its tokens."""
    first_run_of_document: Integers
    """Index of each document's first run, and at the end the number of runs."""

    def of(self, position: Integers32, first_position_of_document: Integers) -> Integers:
        """For each position, the index of the run that contains it, or -1 if it is after the document's last run.

        Positions rise within a document. `first_position_of_document` has the index of each document's first position,
        and at the end the number of positions.
        """
        runs: Integers = runs_of_positions(position, first_position_of_document, self.end_token, self.first_run_of_document)
        return runs

    def spans_of(self, position: Integers32, first_position_of_document: Integers) -> Integers:
        """For each position, the index of the deepest chosen span that contains it, or -1; parameters as in `of`."""
        runs = self.of(position, first_position_of_document)
        return np.where(runs >= 0, self.span[runs], -1) if self.span.size else runs

    def linked(self, spans: int) -> tuple[Integers32, Integers32]:
        """Two arrays aligned with the runs: the previous and the next run of the same span, or -1 if there is none.

        `spans` is the number of all spans, chosen or not.
        """
        before, after = link_runs(self.span, spans)
        return before, after


@dataclass(frozen=True, slots=True)
class Structure:
    """The spans of several documents, ordered by document, then in reading order with parents before children.

    The first span of a document is the document itself. Tokens are numbered within their document.
    """

    first_span_of_document: Integers
    """Index of each document's first span, and at the end the number of spans."""
    kind_of_span: Integers
    """Kind of each span, as a number of `Kind`."""
    tag_of_span: Integers
    """Index of each span's tag in `tags`."""
    parent_of_span: Integers
    """Index of each span's parent, or -1 if the span is a document."""
    first_token_of_span: Integers
    """First token of each span."""
    end_token_of_span: Integers
    """One more than the last token of each span."""
    tags: tuple[str, ...]
    """The distinct tags."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def spans(self) -> int:
        """The number of spans."""
        return int(self.kind_of_span.size)

    @property
    def tokens_of_document(self) -> Integers:
        """The number of tokens of each document, stop words and titles included."""
        tokens: Integers = self.end_token_of_span[self.first_span_of_document[:-1]]
        return tokens

    def tagged(self, tags: Collection[str]) -> Mask:
        """One flag per span: whether it has one of these tags."""
        flags: Mask = np.array([tag in tags for tag in self.tags], bool)[self.tag_of_span]
        return flags

    def logical(self, tags: Collection[str] | None = None) -> Mask:
        """One flag per span: whether it is a logical element.

        Without `tags`, the kind decides (`LOGICAL`). With `tags`, all spans with one of these tags are, except marks.
        Documents always are logical elements.
        """
        flags = logical_of(self.kind_of_span, None if tags is None else self.tagged(tags))
        flags[self.first_span_of_document[:-1]] = True
        return flags

    def runs(self, chosen: Mask) -> Runs:
        """The runs of tokens that have the same deepest chosen span; `chosen` has one flag per span."""
        columns = deepest_runs(self.first_span_of_document, self.first_token_of_span, self.end_token_of_span, chosen)
        return Runs(*columns)


def logical_of(kind: Array, tagged: Mask | None) -> Mask:
    """One flag per span: whether it is a logical element.

    `kind` has the kind of each span. Without `tagged`, the kind decides (`LOGICAL`). Otherwise a span is logical if its
    flag in `tagged` is set and it is not a mark.
    """
    flags: Mask = np.array([each in LOGICAL for each in Kind])[kind] if tagged is None else tagged & (kind != int(Kind.MARK))
    return flags


def read_structure(snapshot: Snapshot, documents: Integers) -> Structure:
    """Read the spans of documents, given by their numbers in the index, which must be in ascending order."""
    tags: dict[str, int] = {}
    pieces: list[dict[str, Integers]] = []
    for _, (found, names) in snapshot.ask_about(_spans_of_shard, documents):
        number = np.array([tags.setdefault(name, len(tags)) for name in names], np.int64)
        pieces += found if not pieces else [{**piece, "tag": number[piece["tag"]]} for piece in found]
    counts = [piece["count"] for piece in pieces]
    first = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *counts]))]).astype(np.int64)
    columns = {name: _joined([piece[name] for piece in pieces]) for name in _READ}
    base = np.repeat(first[:-1], np.diff(first))
    parent = np.where(columns["parent"] >= 0, columns["parent"] + base, -1)
    return Structure(first, columns["kind"], columns["tag"], parent, columns["first_token"], columns["end_token"], tuple(tags))


def _spans_of_shard(snapshot: Snapshot, documents: Integers) -> tuple[list[dict[str, Integers]], list[str]]:
    """The columns of `read_spans` for the documents of each segment, and the names of tags by number."""
    bounds = np.searchsorted(documents, snapshot.first_document)
    tags: dict[str, int] = {}
    pieces = []
    for i, segment in enumerate(snapshot.segments):
        local = documents[bounds[i] : bounds[i + 1]] - snapshot.first_document[i]
        if local.size:
            pieces.append(read_spans(segment, local, tags))
    return pieces, list(tags)


def _joined(pieces: list[Integers]) -> Integers:
    return pieces[0] if len(pieces) == 1 else np.concatenate([np.zeros(0, np.int64), *pieces])


_READ = ("kind", "tag", "parent", "first_token", "end_token")


def read_spans(segment: Segment, documents: Integers, tags: dict[str, int]) -> dict[str, Integers]:
    """Read and check the spans of documents of one segment.

    Returns the columns `kind`, `tag`, `parent`, `first_token` and `end_token`, with one value per span, and `count`,
    the number of spans of each document. Parents are numbered within their document. Tags are numbered as in `tags`, to
    which new tags are added.
    """
    offsets = segment["document.first_span"]
    first, end = frozen(offsets[documents].astype(np.int64)), frozen(offsets[documents + 1].astype(np.int64))
    count = end - first
    first_span = np.concatenate([[0], np.cumsum(count)])
    segment.trees.require(documents)
    read = read_ranges([segment.columns.numbers(f"span.{name}") for name in _READ], first, end)
    column: dict[str, Integers] = dict(zip(_READ, read, strict=True))
    tokens = segment["document.tokens"][documents].astype(np.int64)
    # Kernels follow parents without checks, so a damaged tree must be found here.
    if not are_trees(first_span, *(column[name] for name in _READ), tokens, len(Kind), len(segment.labels)):
        raise segment.columns.damaged("has a damaged tree of spans")
    # Each segment has its own numbering of labels.
    number = np.zeros(len(segment.labels), np.int64)
    seen = np.zeros(len(segment.labels), bool)
    seen[column["tag"]] = True
    for label in np.flatnonzero(seen).tolist():
        number[label] = tags.setdefault(segment.labels[label], len(tags))
    column["tag"] = number[column["tag"]]
    return {**column, "count": count}


def read_elements(
    segment: Segment, documents: Integers, units: Units, tags: Collection[str] | None = None
) -> tuple[Integers, dict[str, Integers]]:
    """Read the elements of documents of one segment: the spans that can be results.

    Returns the index in `documents` of each element's document, and the columns that passages have: span, section,
    first and end token, and length. If `units` is `documents`, the elements are the documents themselves. Otherwise
    they are the spans of the kinds in `LOGICAL`. If `tags` is given, they are instead all spans with one of these tags,
    except marks. In both of these cases, spans without a token are left out. The section of an element is the nearest
    section above it; the section of a document is the document itself.
    """
    numbers_of_tags: dict[str, int] = {}
    column = read_spans(segment, documents, numbers_of_tags)
    document = np.repeat(np.arange(documents.size), column["count"])
    first_span = np.concatenate([[0], np.cumsum(column["count"])]).astype(np.int64)
    if units == "documents":
        spans = first_span[:-1]
    else:
        tagged = None if tags is None else np.array([tag in tags for tag in numbers_of_tags], bool)[column["tag"]]
        spans = np.flatnonzero(logical_of(column["kind"], tagged) & (column["end_token"] > column["first_token"]))
    document = document[spans]
    section_of_span, *_ = derive_structure(column["kind"].astype(np.uint8), column["parent"].astype(np.int32), first_span)
    parent = np.maximum(column["parent"][spans], 0)
    first, end = column["first_token"][spans], column["end_token"][spans]
    length = end - first
    if np.any(segment["document.length"][documents] != segment["document.tokens"][documents]):
        # Lengths leave out stop words, and the index does not store lengths of elements: count the other tokens.
        codes = segment["document.first_code"]
        bounds = codes[documents].astype(np.int64), codes[documents + 1].astype(np.int64)
        segment.joined.require(documents)
        length = count_indexed(segment.columns["tokens"], *bounds, document, first, end)
    section = section_of_span[first_span[document] + parent].astype(np.int64)
    return document, {"span": spans - first_span[document], "section": section, "first_token": first, "end_token": end, "length": length}


def known_tags(snapshot: Snapshot) -> list[str]:
    """The tags of all spans of the index except marks, sorted."""
    return sorted(snapshot.ask_all(_tags_of_shard) - {""})


def _tags_of_shard(snapshot: Snapshot) -> set[str]:
    return {segment.labels[label] for segment in snapshot.segments for label in segment.remember(_tags_of_elements, "")}


def _tags_of_elements(segment: Segment, _: str) -> list[int]:
    labels = segment["span.tag"][segment["span.kind"] != int(Kind.MARK)]
    count = np.bincount(labels, minlength=len(segment.labels))
    if count.size > len(segment.labels):
        raise segment.columns.damaged("has a damaged column (span.tag)")
    return np.flatnonzero(count).tolist()


def tags_of_passages(snapshot: Snapshot) -> list[str]:
    """The tags of all passages of the index, sorted. Passages without a tag have an empty one."""
    return sorted(snapshot.ask_all(_tags_of_passages))


def _tags_of_passages(snapshot: Snapshot) -> set[str]:
    tags: set[str] = set()
    for segment in snapshot.segments:
        labels = np.unique(segment["span.tag"][segment["span.kind"] == int(Kind.PASSAGE)]).tolist()
        if labels and labels[-1] >= len(segment.labels):
            raise segment.columns.damaged("has a damaged column (span.tag)")
        tags |= {segment.labels[label] for label in labels}
    return tags


def _spans_of_document(segment: Segment, document: int) -> tuple[dict[str, Integers], dict[str, int]]:
    tags: dict[str, int] = {}
    return read_spans(segment, np.array([document]), tags), tags


class DocumentOutline:
    """The tree of one document, to convert between the paths and the span numbers of its elements."""

    def __init__(self, segment: Segment, document: int) -> None:
        column, tags = segment.ask(_spans_of_document, document)
        self.first_token, self.end_token, self.kind = column["first_token"], column["end_token"], column["kind"]
        self._tag, self._parent, self._names = column["tag"], column["parent"], list(tags)

    def tag(self, span: int) -> str:
        """The tag of a span, given by its number in the document."""
        return self._names[int(self._tag[span])]

    def path(self, span: int) -> str:
        """The path of an element, given by the number of its span in the document."""
        steps = []
        while span >= 0:
            tag, parent = int(self._tag[span]), int(self._parent[span])
            number = np.count_nonzero((self._tag[: span + 1] == tag) & (self._parent[: span + 1] == parent))
            steps.append((self._names[tag], int(number)))
            span = parent
        return element_path(reversed(steps))

    def find(self, path: str) -> int:
        """The span number of the element with this path, or -1 if there is none. Marks are not elements."""
        return next((span for span in np.flatnonzero(self.kind != int(Kind.MARK)).tolist() if self.path(span) == path), -1)
