"""Tombstones: the deleted documents of a segment, and the counts to subtract from its statistics.

A segment file never changes. Deleting documents writes a second, small file. It contains the numbers of the deleted
documents and, for each of their terms, the counts to subtract. So statistics stay exact without rewriting postings.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perikope.core.arrays import Array, Integers
from perikope.index.columns import ColumnFile, ColumnWriter, narrow


class Counts(NamedTuple):
    """The counts of one term, or of a whole segment. For a segment, occurrences are all tokens except stop words."""

    documents: int
    occurrences: int
    passages: int
    passage_occurrences: int

    def __sub__(self, other: Counts) -> Counts:
        return Counts(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))

    def __add__(self, other: object) -> Counts:
        assert isinstance(other, Counts)
        return Counts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


MOST = 1 << 56
"""The largest count that is accepted from a file, so that sums over segments fit into 64 bits."""


def is_count(value: object) -> bool:
    """Whether a value from a file is an integer from 0 to `MOST`."""
    return type(value) is int and 0 <= value <= MOST


NO_COUNTS = Counts(0, 0, 0, 0)
_OF_TERM = ("documents", "occurrences", "passages", "passage_occurrences")


class Tombstones:
    """The deleted documents of one segment.

    `documents` and `terms` are numbers in the segment, in ascending order. `deltas` has one array per count, aligned
    with `terms`: the count of each term in the deleted documents. `totals` are the counts of all deleted documents.
    """

    def __init__(self, documents: Array, terms: Array, deltas: Mapping[str, Array], totals: Counts) -> None:
        self.documents = documents
        self.terms = terms
        self.deltas = deltas
        self.totals = totals

    @classmethod
    def open(cls, folder: Path, entry: Mapping[str, Any], documents: int, terms: int) -> Tombstones:
        """Read the tombstones that a manifest entry names.

        `documents` and `terms` are how many documents and terms the segment has.
        """
        columns = ColumnFile(folder / entry["file"], entry)
        deleted, term = columns["documents"], columns["term"]
        deltas = {name: columns[f"term.{name}"] for name in _OF_TERM}
        sized = deleted.size == entry["documents"] and all(delta.size == term.size for delta in deltas.values())
        typed = all(values.dtype.kind == "u" for values in columns.values())
        totals: Any = columns.facts.get("totals")
        counted = isinstance(totals, list) and len(totals) == len(_OF_TERM) and all(is_count(total) for total in totals)
        # The file is small, so all checksums are verified: a wrong byte could make a deleted document visible again.
        whole = not columns.damaged_columns()
        if not (whole and sized and typed and counted and _rising(deleted, documents) and _rising(term, terms)):
            raise columns.damaged("has damaged tombstones")
        return cls(deleted, term, deltas, Counts(*totals))

    def counts(self, terms: Integers) -> Integers:
        """Four counts of each term in the deleted documents, as an array (4, terms); 0 for a term that they lack.

        The rows are the counts of documents, of occurrences, of passages, and of occurrences in passages.
        """
        at = np.searchsorted(self.terms, terms)
        known = np.flatnonzero(at < self.terms.size)
        known = known[self.terms[at[known]] == terms[known]]
        counts = np.zeros((len(_OF_TERM), terms.size), np.int64)
        for row, name in enumerate(_OF_TERM):
            counts[row, known] = self.deltas[name][at[known]]
        return counts

    def write(self, path: Path) -> dict[str, Any]:
        """Write the file; returns its entry for the manifest."""
        with ColumnWriter(path) as writer:
            writer.write("documents", self.documents.astype(np.uint32))
            writer.write("term", self.terms.astype(np.uint32))
            for name in _OF_TERM:
                writer.write(f"term.{name}", narrow(self.deltas[name]))
            return {**writer.close({"totals": list(self.totals)}), "documents": int(self.documents.size)}


def _rising(numbers: Array, limit: int) -> bool:
    return not numbers.size or (int(numbers[-1]) < limit and bool(np.all(numbers[:-1] < numbers[1:])))


def bury(segment: Any, documents: Array) -> Tombstones:
    """Make the tombstones of a segment after deleting `documents`, given by their numbers in the segment.

    They also contain all documents that were deleted before.
    """
    before = segment.tombstones.documents if segment.tombstones else np.zeros(0, np.uint32)
    buried = np.union1d(before, documents).astype(np.uint32)
    # All deleted documents are counted anew, so that no error can accumulate over many deletions.
    count = np.zeros((len(_OF_TERM), len(segment.terms)), np.int64)
    totals = NO_COUNTS
    for document in buried.tolist():
        tokens = segment.tokens(document)
        passages = segment.passages_of(document)
        count[0, np.unique(tokens)] += 1
        np.add.at(count[1], tokens, 1)
        for first, end in zip(
            segment.rows("passage.first_token", passages.start, passages.stop).tolist(),
            segment.rows("passage.end_token", passages.start, passages.stop).tolist(),
            strict=True,
        ):
            count[2, np.unique(tokens[first:end])] += 1
            np.add.at(count[3], tokens[first:end], 1)
        lengths = segment.rows("passage.length", passages.start, passages.stop)
        totals += Counts(1, int(segment["document.length"][document]), len(passages), int(lengths.sum(dtype=np.int64)))
    count[:, 0] = 0
    terms = np.flatnonzero(count[0])
    return Tombstones(buried, terms, {name: count[row, terms] for row, name in enumerate(_OF_TERM)}, totals)
