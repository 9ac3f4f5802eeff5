"""A snapshot of an index: the segments of one commit, with documents numbered through and exact statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perikope.errors import IndexFormatError
from perikope.index import manifest as manifests
from perikope.index.columns import MissingFileError
from perikope.index.manifest import Manifest
from perikope.index.segments import Segment
from perikope.index.tombstones import NO_COUNTS, Counts
from perikope.text import ANALYSIS_VERSION, Analyzer


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the whole collection says of the query's terms; the arrays have one value a term."""

    documents: int
    tokens: int
    passages: int
    passage_tokens: int
    document_frequency: NDArray[np.int64]
    collection_frequency: NDArray[np.int64]
    passage_frequency: NDArray[np.int64]
    passage_collection_frequency: NDArray[np.int64]
    """Occurrences inside passages; the collection frequency also counts titles."""


class Snapshot:
    """What a reader sees: it stays the same whatever a writer does meanwhile."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        if manifest.analysis.get("version") != ANALYSIS_VERSION:
            found = manifest.analysis.get("version")
            raise IndexFormatError(
                f"{folder} was made with text analysis {found}, this program has {ANALYSIS_VERSION}: build the index again"
            )
        stemmer, stopwords = (manifest.analysis.get(name) for name in ("stemmer", "stopwords"))
        if not all(isinstance(word, str) for word in [stemmer, *(stopwords if isinstance(stopwords, list) else [stopwords])]):
            raise IndexFormatError(f"{folder / manifests.FILE} is damaged: restore it from a copy or build the index again")
        self.analyzer = Analyzer.from_settings(manifest.analysis)
        self.segments = [Segment(folder, entry) for entry in manifest.segments]
        self.first_document = np.cumsum([0, *(segment.documents for segment in self.segments)])
        held = {language for segment in self.segments for language in segment.columns.facts["languages"]}
        self.languages = [manifest.language, *sorted(held - {manifest.language})]
        self.totals: Counts = sum((segment.totals for segment in self.segments), NO_COUNTS)

    @classmethod
    def open(cls, folder: Path) -> Snapshot:
        """The snapshot of the last commit."""
        while True:
            manifest = manifests.load(folder)
            try:
                return cls(folder, manifest)
            except MissingFileError:
                # A merge may have replaced the segments between reading their names and opening them.
                if manifests.load(folder).generation == manifest.generation:
                    raise

    @property
    def numbers(self) -> int:
        """How many document numbers there are; deleted documents keep theirs until a merge."""
        return int(self.first_document[-1])

    def locate(self, document: int) -> tuple[Segment, int]:
        """The segment of a document and its local number there."""
        number = int(np.searchsorted(self.first_document, document, "right")) - 1
        return self.segments[number], document - int(self.first_document[number])

    def document_id(self, document: int) -> str:
        """The id of a document."""
        segment, local = self.locate(document)
        return segment.document_id(local)

    def find_document(self, id: str) -> int:
        """The number of a document, or -1."""
        for base, segment in zip(self.first_document.tolist(), self.segments, strict=False):
            local = segment.document_number(id)
            if local >= 0:
                return int(base) + local
        return -1

    def statistics(self, terms: Sequence[str]) -> Statistics:
        """Exact counts over all segments."""
        counts = np.zeros((len(terms), 4), np.int64)
        for segment in self.segments:
            for row, name in enumerate(terms):
                number = segment.term_number(name)
                if number >= 0:
                    counts[row] += segment.counts(number)
        return Statistics(*self.totals, counts[:, 0], counts[:, 1], counts[:, 2], counts[:, 3])

    def part_statistics(self, terms: Sequence[str], part: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each term: how many documents hold it in a part, and how often they do there in all."""
        counts = np.zeros((2, len(terms)), np.int64)
        for segment in self.segments:
            for column, name in enumerate(terms):
                number = segment.term_number(name)
                if number >= 0:
                    documents, frequencies = segment.part_postings(number, part)
                    counts[:, column] += documents.size, int(frequencies.sum())
        return counts[0], counts[1]
