"""Ranking: passages or elements in order. Higher scores first; equal scores by document id, then by position. Always the same.

Of elements that begin at the same token the longer one comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.signals import Column
from perikope.core.arrays import Floats, Integers, Mask
from perikope.kernels.elements import without_overlap

Grouping = Literal["", "score", "fetch"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The rows of `Matches` that are the result, best first, with their scores."""

    rows: Integers
    scores: Floats

    def __len__(self) -> int:
        return int(self.rows.size)


@dataclass(frozen=True, slots=True)
class Presentation:
    """How results are laid out: as one list, or by document; with or without those that repeat the text of better ones.

    Documents come in the order of their best result (`score`), or as they were fetched (`fetch`, "relevant in context"). Without overlap,
    what scores 0 is no result, unless a document has nothing else: then the largest of it are, or none where `drop_unmatched`. Of documents
    with the same value of `one_per`, a field of their metadata, only the first has results.
    """

    no_overlap: bool = False
    group_by_document: Grouping = ""
    drop_unmatched: bool = False
    one_per: str = ""


FLAT = Presentation()


def rank(
    matches: Matches,
    score: Column,
    k: int,
    place_of_document: Integers,
    *,
    matching_only: bool = False,
    allowed: Mask | None = None,
    presentation: Presentation = FLAT,
    group_of_document: Integers | None = None,
) -> Ranking:
    """The best `k` passages; `place_of_document` has the place of each candidate document in the order of their ids.

    With `matching_only`, passages without a query term are no results; with `allowed`, only these passages are. `group_of_document` goes
    with `one_per`: a number for each candidate document, the same for those that have the same value, below 0 for those that have none.
    """
    values = score.values
    rows = np.arange(values.size)
    if matching_only or allowed is not None:
        kept = np.ones(values.size, bool) if allowed is None else allowed
        rows = np.flatnonzero(kept & (np.diff(matches.in_passages.first_entry) > 0) if matching_only else kept)
        values = values[rows]
    if presentation != FLAT:
        return _present(matches, rows, values, k, place_of_document, presentation, group_of_document)
    if values.size > k:
        threshold = np.partition(values, values.size - k)[values.size - k]
        # All that tie with the last one stay until the tie rule has decided between them.
        rows, values = rows[values >= threshold], values[values >= threshold]
    # Rows are in reading order within a document, parents first, so they are the last key.
    order = np.lexsort((rows, place_of_document[matches.document_of_passage[rows]], -values))[:k]
    return Ranking(rows[order], values[order])


def _present(
    matches: Matches,
    rows: Integers,
    values: Floats,
    k: int,
    place_of_document: Integers,
    presentation: Presentation,
    group_of_document: Integers | None,
) -> Ranking:
    document = matches.document_of_passage[rows]
    if presentation.no_overlap:
        unmatched = np.bincount(document, values != 0, minlength=matches.documents) == 0
        kept = (values != 0) | (unmatched[document] & (not presentation.drop_unmatched))
        rows, values, document = rows[kept], values[kept], document[kept]
    # Within its document first, best first.
    order = np.lexsort((rows, -values, document))
    rows, values, document = rows[order], values[order], document[order]
    if presentation.no_overlap:
        first_row = np.searchsorted(document, np.arange(matches.documents + 1))
        kept = without_overlap(rows, first_row, matches.first_token_of_passage, matches.end_token_of_passage)
        rows, values, document = rows[kept], values[kept], document[kept]
    place = place_of_document[document]
    if presentation.group_by_document:
        best = np.full(matches.documents, -np.inf)
        np.maximum.at(best, document, values)
        by = matches.score_of_document if presentation.group_by_document == "fetch" else best
        order = np.lexsort((rows, -values, place, -by[document]))
    else:
        order = np.lexsort((rows, place, -values))
    if group_of_document is not None:
        # The document of a group's first result has all of its results.
        group = group_of_document[document[order]]
        _, first, of_group = np.unique(group, return_index=True, return_inverse=True)
        order = order[(group < 0) | (document[order] == document[order][first][of_group])]
    return Ranking(rows[order][:k], values[order][:k])


def first_of_group(groups: Integers) -> Mask:
    """Which things, in order, are the first of their group; those without one, whose number is below 0, all are.

    >>> first_of_group(np.array([4, -1, 4, 2, -1])).tolist()
    [True, True, False, True, True]
    """
    first = groups < 0
    first[np.unique(groups, return_index=True)[1]] = True
    return first
