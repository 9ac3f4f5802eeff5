"""Convert rows of the matches to names of passages and elements (`document#passage`), and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from perikope.browse.matches import Matches
from perikope.browse.structure import DocumentOutline
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
    candidates = matches.document_of_passage[rows]
    first_row = matches.document_of_passage.searchsorted(candidates)
    columns = (rows - first_row, candidates, matches.span_of_passage[rows])
    # Many hits may be in one document: each document is looked up once.
    name_of = {candidate: _names_in(snapshot, matches, candidate) for candidate in np.unique(candidates).tolist()}
    return [name_of[d](number, span) for number, d, span in zip(*(c.tolist() for c in columns), strict=True)]


def lines_of_names(snapshot: Snapshot, matches: Matches, rows: Integers) -> NameLines:
    """The names of the given rows of the matches, in the same order, as lines. No row may be given twice."""
    if matches.units != "passages" or rows.size <= _FEW:
        return NameLines.of(_names_one_by_one(snapshot, matches, rows))
    candidates = matches.document_of_passage[rows]
    numbers = matches.number_of_document[candidates]
    number_in_document = rows - matches.first_passage_of_document[candidates] + 1
    known = all_names(snapshot, rows.size)
    if known is not None:
        return known.of(numbers, number_in_document)
    segments = np.searchsorted(snapshot.first_document, numbers, "right") - 1
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(segments[order], np.arange(len(snapshot.segments) + 1))
    length = np.empty(rows.size, np.int64)
    chosen = []
    for i, segment in enumerate(snapshot.segments):
        inside = order[bounds[i] : bounds[i + 1]]
        if inside.size:
            local = numbers[inside] - snapshot.first_document[i]
            ids = NamesOfSegment(segment, local, matches.span_of_passage[rows[inside]], number_in_document[inside])
            length[inside] = ids.lengths()
            chosen.append((inside, ids))
    ends = np.cumsum(length)
    text = np.empty(int(ends[-1]) if ends.size else 0, np.uint8)
    plain = np.empty(rows.size, bool)
    for inside, ids in chosen:
        plain[inside] = ids.write(text, ends[inside] - length[inside])
    if plain.all():
        return NameLines(text, ends)
    names, others = NameLines(text, ends).pieces(), np.flatnonzero(~plain)
    for row, name in zip(others.tolist(), _names_one_by_one(snapshot, matches, rows[others]), strict=True):
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
    candidates = matches.document_of_passage[rows].tolist()
    spans = matches.span_of_passage[rows].tolist()
    located = {candidate: snapshot.locate(int(matches.number_of_document[candidate])) for candidate in set(candidates)}
    places = {candidate: segment.places(local) for candidate, (segment, local) in located.items()}
    return [places[candidate].get(span) for candidate, span in zip(candidates, spans, strict=True)]


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


def _names_in(snapshot: Snapshot, matches: Matches, candidate: int) -> Callable[[int, int], str]:
    """A function that names the passages or elements of one candidate document.

    It takes the number of a passage in its document and the number of its span, and returns `document#passage`.
    """
    segment, local = snapshot.locate(int(matches.number_of_document[candidate]))
    document = encode(segment.document_id(local))
    if matches.units != "passages":
        outline = DocumentOutline(segment, local)
        return lambda number, span: f"{document}#{encode(outline.path(span))}"
    id_of = segment.span_namer(local)
    return lambda number, span: f"{document}#{encode(id_of(span) or running_number(number))}"
