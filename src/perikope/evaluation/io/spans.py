"""Spans: judgements of ranges of characters in passages, and their conversion to ranges in documents.

A span file has one line `qid document#passage start end` per range of relevant text. Start and end count the characters
of the passage from 0; the end is exclusive. An index has the range of each passage in its document. It is used to
convert spans, and runs of passages, to the ranges in documents that measures of characters need.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from perikope.browse.structure import DocumentOutline
from perikope.core.errors import InputError, PerikopeError, UsageError
from perikope.core.names import document_name, is_element_path, split_name
from perikope.document.tree import Kind, Place
from perikope.evaluation.io.inex import Extract, InexJudgements, RelevantText
from perikope.evaluation.io.lines import columns, number_in, numbered_lines
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment

COLUMNS = "qid document#passage start end"


@dataclass(frozen=True, slots=True)
class Span:
    """A range of relevant characters in a passage or document; `end` is exclusive, and None means up to the end."""

    name: str
    start: int = 0
    end: int | None = None
    line: int = field(default=0, compare=False)


Spans = dict[str, list[Span]]
"""Spans of relevant text by query id."""


def read_spans(path: str | os.PathLike[str]) -> Spans:
    r"""Read the spans of a file with lines `qid document#passage start end`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "spans.tsv")
    ...     _ = file.write_text("q1\td1#p2\t254\t391\n", encoding="utf-8")
    ...     read_spans(file)
    {'q1': [Span(name='d1#p2', start=254, end=391, line=1)]}
    """
    spans: Spans = {}
    for number, line in numbered_lines(path):
        qid, name, start_text, end_text = columns(line, COLUMNS, path, number)
        start = number_in(start_text, int, "the start", path, number)
        end = number_in(end_text, int, "the end", path, number)
        if not 0 <= start <= end:
            raise InputError(f"the start {start} of a span must be 0 or more, and not larger than its end {end}", path=path, line=number)
        spans.setdefault(qid, []).append(Span(name, start, end, number))
    return spans


def is_span(line: str) -> bool:
    """Whether a line looks like a span: its second column has a `#`, unlike TREC judgements, and two numbers follow.

    >>> is_span("q1 d1#p2 254 391"), is_span("q1 0 d1#p2 1")
    (True, False)
    """
    cells = line.split()
    return len(cells) == 4 and "#" in cells[1] and all(re.fullmatch("[0-9]+", cell) for cell in cells[2:])


def is_almost_a_span(line: str) -> bool:
    r"""Whether a line looks like a span with a wrong start or end: it has four columns with tabs, the second a passage.

    >>> is_almost_a_span("q1\td1#p2\tx\t391"), is_almost_a_span("q1\t0\td1#p2\t1")
    (True, False)
    >>> is_almost_a_span("q1\ta#1\td1#p2\t1")
    False
    """
    cells = line.split("\t")
    return len(cells) == 4 and bool(re.fullmatch(r"[^#\s][^\s]*#[^#\s]+", cells[1].strip())) and "#" not in cells[2]


def judged_passages(spans: Mapping[str, Sequence[Span]]) -> dict[str, dict[str, int]]:
    """Convert spans to grades of passages: 1 for a passage with relevant text, 0 if all its spans are empty."""
    judgements: dict[str, dict[str, int]] = {}
    for qid, spans_of_topic in spans.items():
        judged = judgements.setdefault(qid, {})
        for span in spans_of_topic:
            judged[span.name] = max(judged.get(span.name, 0), int(span.end is None or span.end > span.start))
    return judgements


def spans_of_judgements(judgements: Mapping[str, Mapping[str, int]], rel: int = 1) -> Spans:
    """Convert grades to spans: the whole text of each passage or document with grade `rel` or higher."""
    return {qid: [Span(name) for name, grade in judged.items() if grade >= rel] for qid, judged in judgements.items()}


_DocumentRanges = tuple[dict[str, tuple[int, int]], int, Callable[[str], tuple[int, int]]]
"""Start and end of a document's passages by id, its length, and a function from the path of an element to its range."""


class PassageRanges:
    """Finds the range of a passage, element or document by its name, in characters of its document or source file."""

    def __init__(self, index: str | os.PathLike[str], of: Literal["text", "file"] = "text") -> None:
        """Open the index in a folder. With `of="file"`, ranges count characters of the source files, as INEX does."""
        self._snapshot = Snapshot.open(Path(index))
        self._of = of
        self._documents: dict[str, _DocumentRanges] = {}
        self._known: dict[str, tuple[int, int]] = {}

    def __call__(self, name: str) -> tuple[int, int]:
        """Start and end of the passage, element or document with this name. Raises an error if the index lacks it."""
        # Ranges are cached because many topics return the same passages.
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> tuple[int, int]:
        document, passage = split_name(name)
        ranges, length, element = self._document(document)
        if not passage:
            return 0, length
        if passage in ranges:
            return ranges[passage]
        if is_element_path(passage):
            return element(passage)
        raise UsageError(f"the index has no passage {name!r}")

    def length(self, name: str) -> int:
        """Number of characters of the document with this name, or of the document of the passage with this name."""
        return self._document(split_name(name)[0])[1]

    def _document(self, document: str) -> _DocumentRanges:
        if document not in self._documents:
            number = self._snapshot.find_document(document)
            if number < 0:
                raise UsageError(f"the index has no document {document!r}")
            self._documents[document] = self._read(*self._snapshot.locate(number))
        return self._documents[document]

    def _read(self, segment: Segment, local: int) -> _DocumentRanges:
        first = int(segment["document.first_span"][local])
        places = segment.places(local) if self._of == "file" else {}

        def range_of(span: int) -> tuple[int, int]:
            if self._of == "text":
                characters = segment.characters(first + span)
                return characters.start, characters.stop
            place: Place | None = places.get(span)
            if place is None or not place.path:
                raise UsageError(
                    f"document {segment.document_id(local)!r} has no positions in an XML file, which INEX files count in; "
                    "index the XML files themselves"
                )
            return place.start, place.end

        @cache
        def elements() -> dict[str, int]:
            outline = DocumentOutline(segment, local)
            return {outline.path(span): span for span, kind in enumerate(outline.kind.tolist()) if kind != Kind.MARK}

        def element(path: str) -> tuple[int, int]:
            if path not in elements():
                raise UsageError(f"document {segment.document_id(local)!r} has no element {path!r}")
            return range_of(elements()[path])

        ranges = {passage: range_of(span) for passage, span in segment.passage_spans(local).items()}
        return ranges, range_of(0)[1], element


def relevant_text(spans: Mapping[str, Sequence[Span]], ranges: PassageRanges, path: object = None) -> InexJudgements:
    """Convert spans within passages to relevant text of documents. Error messages name the file `path`."""
    judgements: InexJudgements = {}
    for qid, spans_of_topic in spans.items():
        by_document: dict[str, list[tuple[int, int]]] = {}
        for span in spans_of_topic:
            by_document.setdefault(document_name(span.name), []).append(_in_document(span, ranges, path))
        judgements[qid] = {document: _text_of(document, pairs, ranges) for document, pairs in by_document.items()}
    return judgements


def _in_document(span: Span, ranges: PassageRanges, path: object) -> tuple[int, int]:
    try:
        start, end = ranges(span.name)
    except PerikopeError as error:
        raise InputError(str(error), path=path, line=span.line or None) from error
    if span.end is None:
        return start, end
    if span.end > end - start:
        raise InputError(
            f"{span.name} has {end - start} characters, but the span ends at {span.end}; correct the span",
            path=path,
            line=span.line or None,
        )
    return start + span.start, start + span.end


def _text_of(document: str, pairs: Iterable[tuple[int, int]], ranges: PassageRanges) -> RelevantText:
    """The relevant text of a document. `pairs` has the start and end of each range; ranges may overlap."""
    merged: list[list[int]] = []
    for start, end in sorted(pairs):
        if start == end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    stretches = tuple((start, end - start) for start, end in merged)
    entry = stretches[0][0] if stretches else -1
    return RelevantText(stretches, sum(length for _, length in stretches), ranges.length(document), entry)


def extracts_of(ranking: Iterable[tuple[str, float]], ranges: PassageRanges) -> list[Extract]:
    """Convert a ranking of passages (name and score, best first) to ranges in documents.

    Empty passages are left out.
    """
    extracts = []
    for name, score in ranking:
        start, end = ranges(name)
        if end > start:
            extracts.append(Extract(document_name(name), start, end - start, score))
    return extracts
