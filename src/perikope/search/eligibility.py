"""Which passages or elements may be results, and how results are grouped and ordered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from perikope.browse.languages import in_searched_languages
from perikope.browse.matches import Matches
from perikope.browse.models import Model
from perikope.browse.models.content import fetch_score
from perikope.browse.ranking import Presentation, Ranking, Unit, rank
from perikope.browse.satisfaction import satisfied
from perikope.browse.signals import Column
from perikope.browse.structure import Units
from perikope.browse.tags import tags_of_elements
from perikope.core.arrays import Integers, Mask
from perikope.core.errors import UsageError, unknown
from perikope.document.pieces import CODE
from perikope.fetch.filters import known_parts, known_tags, passage_mask
from perikope.fetch.groups import STRUCTURE, field_named, groups_of
from perikope.index.reader import Snapshot
from perikope.query.patent import PARTS
from perikope.search.options import SearchOptions

NO_WORDS = "fetch score of the document: no passage contains a word of the query"
"""The label of the score by which `by_documents` ranks."""


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The rules that decide which rows of the matches may be results. They never change a score."""

    snapshot: Snapshot
    units: Units
    element_tags: frozenset[str] | None
    """The tags of elements that are ranked; None for all tags."""
    parts: frozenset[str] | None
    """The parts of documents that results must be in; None for all parts."""
    tags: frozenset[str] | None
    """The tags of passages that may be results; None for all tags."""
    must_match: bool
    """Whether only passages that satisfy the query may be results."""
    across: bool
    """Whether a match of the query may span several passages."""
    keep_unmatched: bool
    """Whether rows with score 0 may be results of a model in which this score means that the query does not match."""
    presentation: Presentation
    """How results are grouped, and which results are left out."""

    @classmethod
    def of(cls, snapshot: Snapshot, options: SearchOptions) -> Eligibility:
        """The rules that the options set. Raises `UsageError` for unknown parts or tags, or options that conflict."""
        parts, tags = frozenset(options.part) or None, _passage_tags(snapshot, options)
        for name in sorted(parts or ()):
            known = known_parts(snapshot)
            # A usual part of patents may be missing if the documents have another one of the parts.
            if name not in PARTS or frozenset(options.part).isdisjoint(known):
                _refuse_unknown(snapshot, "part", name, known)
        if options.elements and tags is not None:
            raise UsageError(
                "tag and without_tag restrict passages, not elements; to restrict elements, write elements=['sec', 'p'] or --elements=sec,p"
            )
        element_tags = tags_of_elements(snapshot, options.elements) if isinstance(options.elements, tuple) else None
        field, unit = _one_per(snapshot, options.one_per)
        presentation = Presentation(options.no_overlap, options.group_by_document, field, unit)
        units: Units = "elements" if options.elements else "passages"
        must_match = options.must_match or options.across_passages
        across, keep = options.across_passages, options.keep_unmatched
        return cls(snapshot, units, element_tags, parts, tags, must_match, across, keep, presentation)

    @property
    def restricts_rows(self) -> bool:
        """Whether the options leave out rows, whatever their scores are."""
        return self.must_match or self.parts is not None or self.tags is not None

    def allowed(self, matches: Matches) -> Mask | None:
        """The mask of rows that may be results with any model; None if all rows may be results."""
        masks = [
            satisfied(matches, across=self.across) if self.must_match else None,
            self._allowed_by_structure(matches) if self.parts is not None or self.tags is not None else None,
            in_searched_languages(matches),
        ]
        return reduce(np.logical_and, given) if (given := [mask for mask in masks if mask is not None]) else None

    def results_by(self, matches: Matches, score: Column, model: Model | None, allowed: Mask | None) -> tuple[Column, Mask | None]:
        """The score by which rows are ranked, and the mask of rows that may be results; None if all rows may be.

        `score` is the score of `model`, or a learned score if `model` is None. `allowed` is the result of
        `allowed(matches)`.
        """
        unmatched = model.unmatched if model is not None else ""
        eligible = matching(matches, allowed) if unmatched == "no term" else allowed
        if not matches.in_documents.term.size:
            score, eligible = by_documents(matches, score, eligible)
        if unmatched != "score 0" or self.keep_unmatched:
            return score, eligible
        above_zero = score.values != 0
        return score, above_zero if eligible is None else eligible & above_zero

    def rank(self, matches: Matches, score: Column, k: int, eligible: Mask | None, groups: Integers | None) -> Ranking:
        """The best `k` of the eligible rows, grouped as the options say.

        `eligible` is a mask of rows, or None for all rows. `groups` is the result of `groups(matches)`.
        """
        by_id = matches.id_rank_of_document
        return rank(matches, score, k, by_id, allowed=eligible, presentation=self.presentation, group_of_document=groups)

    def groups(self, matches: Matches) -> Integers | None:
        """The group number of each candidate, if the option `one_per` has a metadata field; else None.

        Only one document per group may have results.
        """
        field = self.presentation.one_document_per
        return groups_of(self.snapshot, matches.number_of_document, field) if field else None

    def _allowed_by_structure(self, matches: Matches) -> Mask:
        if self.units != "passages":
            allowed_part: Mask = np.array([self.parts is None or part in self.parts for part in matches.parts], bool)
            return allowed_part[matches.part_of_passage]
        allowed = np.zeros(matches.passages, bool)
        candidate = matches.document_of_passage
        number_in_document = np.arange(matches.passages) - matches.first_passage_of_document[candidate]
        documents = matches.number_of_document[candidate]
        for rows, answer in self.snapshot.ask_about(_passage_mask, documents, self.parts, self.tags, beside=(number_in_document,)):
            allowed[rows] = answer
        return allowed


def _passage_mask(
    snapshot: Snapshot, documents: Integers, numbers: Integers, parts: frozenset[str] | None, tags: frozenset[str] | None
) -> Mask:
    """The mask of passages with one of the parts and one of the tags, given by document and number in the document."""
    allowed = np.zeros(documents.size, bool)
    bounds = documents.searchsorted(snapshot.first_document)
    for i, segment in enumerate(snapshot.segments):
        rows = slice(int(bounds[i]), int(bounds[i + 1]))
        local = documents[rows] - snapshot.first_document[i]
        passages = segment["document.first_passage"][local].astype(np.int64) + numbers[rows]
        allowed[rows] = passage_mask(segment, local, passages, parts, tags)
    return allowed


def _one_per(snapshot: Snapshot, names: tuple[str, ...]) -> tuple[str, Unit]:
    """The metadata field and the unit of the option `one_per`; either is empty if it is not given."""
    fields = [field_named(snapshot, name, STRUCTURE) for name in names if name not in STRUCTURE]
    if len(fields) > 1:
        raise UsageError(f"one_per takes one metadata field, not {' and '.join(fields)}; leave out all but one")
    # One result per document is also one per section.
    unit: Unit = "document" if "document" in names else "section" if "section" in names else ""
    return fields[0] if fields else "", unit


def _passage_tags(snapshot: Snapshot, options: SearchOptions) -> frozenset[str] | None:
    """The tags of passages that may be results; None for all tags. Raises `UsageError` for an unknown tag."""
    if not options.tag and not options.without_tag:
        return None
    known = known_tags(snapshot)
    for name in sorted({*options.tag, *options.without_tag}):
        # Code can be left out of an index that has none.
        if name != CODE or name in options.tag:
            _refuse_unknown(snapshot, "tag of passages", name, known)
    return frozenset(options.tag or ("", *known)) - frozenset(options.without_tag)


def _refuse_unknown(snapshot: Snapshot, kind: str, name: str, known: list[str]) -> None:
    if name not in known:
        raise unknown(kind, name, known) if known else UsageError(f"no document in {snapshot.folder} has a {kind}; leave out the option")


def by_documents(matches: Matches, score: Column, eligible: Mask | None) -> tuple[Column, Mask | None]:
    """The score and the eligible rows for a query of codes, which no passage contains.

    If no score tells passages apart, documents are ranked by their fetch scores, each with its first eligible row.
    """
    rows = np.arange(matches.passages) if eligible is None else np.flatnonzero(eligible)
    if not rows.size or np.ptp(score.values[rows]) > 0:
        return score, eligible
    first = np.zeros(matches.passages, bool)
    first[rows[np.unique(matches.document_of_passage[rows], return_index=True)[1]]] = True
    return fetch_score(matches).at(matches.document_of_passage).named(NO_WORDS), first


def matching(matches: Matches, allowed: Mask | None) -> Mask:
    """The mask of allowed rows that contain a query term.

    Only these rows may be results of a model with `matching_only`. If `allowed` is None, all rows are allowed.
    """
    has_term = np.diff(matches.in_passages.first_entry) > 0
    return has_term if allowed is None else allowed & has_term
