"""Convert rows of the matches to names of passages and elements (`document#passage`), and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from perikope.browse.matches import Matches
from perikope.browse.structure import DocumentOutline
from perikope.core.arrays import Integers
from perikope.core.names import encode, running_number, split_name
from perikope.document.tree import Place
from perikope.index.reader import Snapshot


def names_of(snapshot: Snapshot, matches: Matches, rows: Integers) -> list[str]:
    """The names of the given rows of the matches, in the same order."""
    candidates = matches.document_of_passage[rows]
    first_row = matches.document_of_passage.searchsorted(candidates)
    columns = (rows - first_row, candidates, matches.span_of_passage[rows])
    # Many hits may be in one document: each document is looked up once.
    name_of = {candidate: _names_in(snapshot, matches, candidate) for candidate in np.unique(candidates).tolist()}
    return [name_of[d](number, span) for number, d, span in zip(*(c.tolist() for c in columns), strict=True)]


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
