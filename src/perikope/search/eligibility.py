"""Which passages or elements may be results, and how the results are laid out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.ranking import Presentation, Ranking, rank
from perikope.browse.satisfaction import satisfied
from perikope.browse.signals import Column
from perikope.browse.structure import Units, check_tags
from perikope.core.arrays import Integers, Mask
from perikope.core.errors import UsageError, unknown
from perikope.fetch.filters import known_parts, known_tags, passage_mask
from perikope.fetch.groups import groups_of
from perikope.index.reader import Snapshot
from perikope.search.options import SearchOptions


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The rules that decide which rows of the matches may be results. They restrict a ranking and never change a score."""

    snapshot: Snapshot
    units: Units
    element_tags: frozenset[str] | None
    """The tags of elements that are ranked; None for all."""
    parts: frozenset[str] | None
    tags: frozenset[str] | None
    must_match: bool
    across: bool
    """Whether the query may be satisfied across the borders of passages."""
    presentation: Presentation

    @classmethod
    def of(cls, snapshot: Snapshot, options: SearchOptions) -> Eligibility:
        """The rules that the options state, checked against the index."""
        parts, tags = frozenset(options.part) or None, frozenset(options.tag) or None
        for kind, given, known in (("part", parts, known_parts), ("tag of passages", tags, known_tags)):
            for name in sorted(given or ()):
                if name not in (names := known(snapshot)):
                    raise unknown(kind, name, names) if names else UsageError(f"there is no {kind} in {snapshot.folder}")
        if options.elements and tags is not None:
            raise UsageError("tag is about passages; name the tags of elements with them: elements=['sec', 'p'], or --elements=sec,p")
        element_tags = frozenset(options.elements) if isinstance(options.elements, tuple) else None
        check_tags(snapshot, sorted(element_tags or ()))
        if options.drop_unmatched and not options.no_overlap:
            raise UsageError("drop_unmatched says what becomes of documents with no_overlap (--no-overlap); add that, or leave it out")
        presentation = Presentation(options.no_overlap, options.group_by_document, options.drop_unmatched, options.one_per)
        units: Units = "elements" if options.elements else "passages"
        must_match = options.must_match or options.across_passages
        return cls(snapshot, units, element_tags, parts, tags, must_match, options.across_passages, presentation)

    def allowed(self, matches: Matches) -> Mask | None:
        """The rows that may be results whatever the model; None for all."""
        allowed = satisfied(matches, across=self.across) if self.must_match else None
        if self.parts is None and self.tags is None:
            return allowed
        by_structure = self._allowed_by_structure(matches)
        return by_structure if allowed is None else allowed & by_structure

    def rank(self, matches: Matches, score: Column, k: int, eligible: Mask | None, groups: Integers | None) -> Ranking:
        """The best `k` of the eligible rows, laid out as asked for; `groups` are those of `groups(matches)`."""
        place = matches.id_rank_of_document()
        return rank(matches, score, k, place, allowed=eligible, presentation=self.presentation, group_of_document=groups)

    def groups(self, matches: Matches) -> Integers | None:
        """The group of each document where only one document per group has results; None where all have."""
        field = self.presentation.one_per
        return groups_of(self.snapshot, matches.number_of_document, field) if field else None

    def _allowed_by_structure(self, matches: Matches) -> Mask:
        if self.units != "passages":
            wanted: Mask = np.array([self.parts is None or part in self.parts for part in matches.parts], bool)
            return wanted[matches.part_of_passage]
        allowed = np.zeros(matches.passages, bool)
        row_bounds = matches.document_of_passage.searchsorted(np.arange(matches.documents + 1))
        bounds = matches.number_of_document.searchsorted(self.snapshot.first_document)
        for i, segment in enumerate(self.snapshot.segments):
            rows = slice(int(row_bounds[bounds[i]]), int(row_bounds[bounds[i + 1]]))
            candidate = matches.document_of_passage[rows]
            documents = matches.number_of_document[candidate] - self.snapshot.first_document[i]
            first = segment["document.first_passage"][documents].astype(np.int64)
            passages = first + np.arange(rows.start, rows.stop) - row_bounds[candidate]
            allowed[rows] = passage_mask(segment, documents, passages, self.parts, self.tags)
        return allowed


def matching(matches: Matches, allowed: Mask | None) -> Mask:
    """The allowed rows that hold a query term: the only results of a model without context."""
    found = np.diff(matches.in_passages.first_entry) > 0
    return found if allowed is None else allowed & found
