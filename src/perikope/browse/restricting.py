"""Restricts matches to some of their documents, so that expensive features are computed for these only."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from perikope.browse.matches import Frequencies, Matches, Occurrences, Positions, for_scores
from perikope.browse.structure import Structure, read_structure
from perikope.core.arrays import Array, Integers
from perikope.core.errors import UsageError
from perikope.index.ranges import ranges


def restricted(matches: Matches, documents: Integers) -> Matches:
    """The matches of some candidate documents; `documents` has their indexes in ascending order.

    A document has the same columns as before. Only the indexes of documents, sections and occurrences change. The
    statistics are still those of the collection.
    """
    if matches.all_terms is not None:
        return for_scores(restricted(matches.all_terms, documents), matches.query)
    snapshot, numbers = matches.snapshot, matches.number_of_document[documents]
    passages = _Rows(matches.first_passage_of_document, documents)
    sections = _Rows(np.searchsorted(matches.document_of_section, np.arange(matches.documents + 1)), documents)
    parent = matches.parent_of_section[sections.rows]

    def occurrences() -> Occurrences:
        of_all, rows = matches.occurrences(), _Rows(matches.first_occurrence_of_document, documents)
        moved = rows.moved_in[passages.document]
        bounds = (column[passages.rows] + moved for column in (of_all.first_of_passage, of_all.end_of_passage))
        return Occurrences(of_all.term[rows.rows], of_all.position[rows.rows], rows.first, *bounds)

    def characters() -> Positions:
        of_all = matches.characters()
        position = of_all.position_of_occurrence[_Rows(matches.first_occurrence_of_document, documents).rows]
        return Positions(position, of_all.first_of_passage[passages.rows], of_all.last_of_passage[passages.rows])

    def structure() -> Structure:
        if snapshot is None:
            raise UsageError("these matches have no document trees, because they were not read from an index; make them with join()")
        return read_structure(snapshot, numbers)

    def id_rank_of_document() -> Integers:
        rank = np.empty(documents.size, np.int64)
        rank[np.argsort(matches.id_rank_of_document()[documents])] = np.arange(documents.size)
        return rank

    return replace(
        matches,
        number_of_document=numbers,
        score_of_document=matches.score_of_document[documents],
        length_of_document=matches.length_of_document[documents],
        parent_of_section=np.where(parent < 0, -1, parent + sections.moved),
        document_of_section=sections.document,
        title_length_of_section=matches.title_length_of_section[sections.rows],
        document_of_passage=passages.document,
        section_of_passage=matches.section_of_passage[passages.rows] + sections.moved_in[passages.document],
        first_token_of_passage=matches.first_token_of_passage[passages.rows],
        end_token_of_passage=matches.end_token_of_passage[passages.rows],
        length_of_passage=matches.length_of_passage[passages.rows],
        occurrences=cache(occurrences),
        in_documents=_of_units(matches.in_documents, documents),
        in_passages=_of_units(matches.in_passages, passages.rows),
        in_titles=_of_units(matches.in_titles, sections.rows),
        part_of_passage=matches.part_of_passage[passages.rows],
        span_of_passage=matches.span_of_passage[passages.rows],
        characters=cache(characters),
        structure=cache(structure),
        id_rank_of_document=cache(id_rank_of_document),
        parts_of_score=lambda document: matches.parts_of_score(int(documents[document])),
    )


class _Rows:
    """The rows of some documents in a table that is ordered by document, such as their passages."""

    def __init__(self, first_of_document: Array, documents: Integers) -> None:
        """`first_of_document` has the first row of each document, and at the end the number of rows."""
        first, end = first_of_document[documents].astype(np.int64), first_of_document[documents + 1].astype(np.int64)
        self.rows: Integers = ranges(first, end)
        """The rows in the table of all documents."""
        self.first: Integers = np.concatenate([[0], np.cumsum(end - first)])
        """The first row of each document among these rows, and at the end their number."""
        self.document: Integers = np.repeat(np.arange(documents.size), end - first)
        """The index of the document of each row, in `documents`."""
        self.moved_in: Integers = self.first[:-1] - first
        """For each document, what is added to the number of a row of all documents to get its number among these."""

    @property
    def moved(self) -> Integers:
        """For each row, what is added to its number in the table of all documents."""
        return self.moved_in[self.document]


def _of_units(frequencies: Frequencies, units: Integers) -> Frequencies:
    """The frequencies of some units."""
    first, end = frequencies.first_entry[units], frequencies.first_entry[units + 1]
    entries = ranges(first, end)
    return Frequencies(np.concatenate([[0], np.cumsum(end - first)]), frequencies.term[entries], frequencies.count[entries])
