"""Convert rows of the matches to names of passages and elements (`document#passage`), and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from perikope.browse.matches import Matches
from perikope.browse.structure import DocumentOutline, Units
from perikope.core.arrays import Integers
from perikope.core.name_lines import NameLines
from perikope.core.names import encode, running_number, split_name
from perikope.document.tree import Place
from perikope.index.reader import Snapshot
from perikope.search.all_names import all_names
from perikope.search.segment_names import NamesOfSegment

_FEW = 64
"""This many passages are named in Python, which need not compile a kernel."""


def names_of(snapshot: Snapshot, matches: Matches, rows: Integers) -> list[str]:
    """The names of the given rows of the matches, in the same order."""
    if matches.units != "passages" or rows.size <= _FEW:
        return _names_one_by_one(snapshot, matches, rows)
    return lines_of_names(snapshot, matches, rows).to_list()


def _names_one_by_one(snapshot: Snapshot, matches: Matches, rows: Integers) -> list[str]:
    names = np.empty(rows.size, object)
    documents, *beside = _places(matches, rows)
    for at, answer in snapshot.ask_about(_names_of_shard, documents, matches.units, beside=beside):
        names[at] = answer
    listed: list[str] = names.tolist()
    return listed


def _places(matches: Matches, rows: Integers) -> tuple[Integers, Integers, Integers]:
    """The document, the span and the number in the document, from 0, of each row of the matches."""
    candidates = matches.document_of_passage[rows]
    if rows.size > matches.documents:
        number = rows - matches.first_passage_of_document[candidates]
    else:
        number = rows - matches.document_of_passage.searchsorted(candidates)
    return matches.number_of_document[candidates], matches.span_of_passage[rows], number


def _names_of_shard(snapshot: Snapshot, documents: Integers, spans: Integers, numbers: Integers, units: Units) -> list[str]:
    # Many hits may be in one document: each document is looked up once.
    name_of = {document: _names_in(snapshot, document, units) for document in np.unique(documents).tolist()}
    columns = (column.tolist() for column in (documents, numbers, spans))
    return [name_of[document](number, span) for document, number, span in zip(*columns, strict=True)]


def lines_of_names(snapshot: Snapshot, matches: Matches, rows: Integers) -> NameLines:
    """The names of the given rows of the matches, in the same order, as lines. No row may be given twice."""
    if matches.units != "passages" or rows.size <= _FEW:
        return NameLines.of(_names_one_by_one(snapshot, matches, rows))
    documents, *beside = _places(matches, rows)
    answers = snapshot.ask_about(_lines_of_shard, documents, beside=beside)
    if len(answers) == 1:
        return answers[0][1]
    names = np.empty(rows.size, object)
    for at, lines in answers:
        names[at] = lines.pieces()
    return NameLines.of(names.tolist())


def _lines_of_shard(snapshot: Snapshot, numbers: Integers, spans: Integers, number_in_document: Integers) -> NameLines:
    """The names of passages, given by document, span and number in the document, as lines."""
    known = all_names(snapshot, numbers.size)
    if known is not None:
        return known.of(numbers, number_in_document + 1)
    segments = np.searchsorted(snapshot.first_document, numbers, "right") - 1
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(segments[order], np.arange(len(snapshot.segments) + 1))
    length = np.empty(numbers.size, np.int64)
    chosen = []
    for i, segment in enumerate(snapshot.segments):
        inside = order[bounds[i] : bounds[i + 1]]
        if inside.size:
            local = numbers[inside] - snapshot.first_document[i]
            ids = NamesOfSegment(segment, local, spans[inside], number_in_document[inside] + 1)
            length[inside] = ids.lengths()
            chosen.append((inside, ids))
    ends = np.cumsum(length)
    text = np.empty(int(ends[-1]) if ends.size else 0, np.uint8)
    plain = np.empty(numbers.size, bool)
    for inside, ids in chosen:
        plain[inside] = ids.write(text, ends[inside] - length[inside])
    if plain.all():
        return NameLines(text, ends)
    names, others = NameLines(text, ends).pieces(), np.flatnonzero(~plain)
    one_by_one = _names_of_shard(snapshot, numbers[others], spans[others], number_in_document[others], "passages")
    for row, name in zip(others.tolist(), one_by_one, strict=True):
        names[row] = name
    return NameLines.of(names)


def rows_of(snapshot: Snapshot, matches: Matches, names: Iterable[str]) -> dict[str, int]:
    """A dictionary from the given names to rows of the matches.

    Names of passages whose documents are not candidates are left out.
    """
    requested = set(names)
    documents = {document for document, _ in map(split_name, requested)}
    numbers = np.array([snapshot.find_document(document) for document in documents], np.int64)
    candidates = np.flatnonzero(np.isin(matches.number_of_document, numbers))
    rows = np.flatnonzero(np.isin(matches.document_of_passage, candidates))
    return {name: row for name, row in zip(names_of(snapshot, matches, rows), rows.tolist(), strict=True) if name in requested}


def places_of(snapshot: Snapshot, matches: Matches, rows: Integers) -> list[Place | None]:
    """The location of each given row in the file that it was read from; None if no location was recorded."""
    places = np.empty(rows.size, object)
    documents, spans, _ = _places(matches, rows)
    for at, answer in snapshot.ask_about(_places_of_shard, documents, beside=(spans,)):
        places[at] = answer
    listed: list[Place | None] = places.tolist()
    return listed


def _places_of_shard(snapshot: Snapshot, documents: Integers, spans: Integers) -> list[Place | None]:
    located = {document: snapshot.locate(document) for document in np.unique(documents).tolist()}
    places = {document: segment.places(local) for document, (segment, local) in located.items()}
    return [places[document].get(span) for document, span in zip(documents.tolist(), spans.tolist(), strict=True)]


class PassageNames:
    """A cache of passage names, so that each document is looked up once for all topics."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._of_document: dict[int, NDArray[np.object_]] = {}

    def of(self, matches: Matches) -> NDArray[np.object_]:
        """The names of all rows of the matches, in order, as an array of strings."""
        first = matches.first_passage_of_document
        names = [np.zeros(0, object)]
        for candidate, number in enumerate(matches.number_of_document.tolist()):
            if number not in self._of_document:
                rows = np.arange(first[candidate], first[candidate + 1])
                self._of_document[number] = np.array(names_of(self._snapshot, matches, rows), object)
            names.append(self._of_document[number])
        return np.concatenate(names)


def _names_in(snapshot: Snapshot, number: int, units: Units) -> Callable[[int, int], str]:
    """A function that names the passages or elements of one document.

    It takes the number of a passage in its document and the number of its span, and returns `document#passage`.
    """
    segment, local = snapshot.locate(number)
    document = encode(segment.document_id(local))
    if units != "passages":
        outline = DocumentOutline(segment, local)
        return lambda number, span: f"{document}#{encode(outline.path(span))}"
    id_of = segment.span_namer(local)
    return lambda number, span: f"{document}#{encode(id_of(span) or running_number(number))}"
