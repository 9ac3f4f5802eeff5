"""Order passages or elements by score.

Equal scores are ordered by document id, then by position; of elements that begin at the same token, the longer comes
first. The order is the same on every run and every machine.
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
    """Rows of `Matches`, best first, with their scores."""

    rows: Integers
    scores: Floats

    def __len__(self) -> int:
        return int(self.rows.size)


@dataclass(frozen=True, slots=True)
class Presentation:
    """How results are laid out: as one list or grouped by document, with or without overlapping results."""

    no_overlap: bool = False
    """Leave out results that overlap a better one, and results with score 0.

    If all results of a document score 0, its largest ones stay, unless `drop_unmatched`.
    """
    group_by_document: Grouping = ""
    """Order of documents: by best result (`score`) or as fetched (`fetch`, "relevant in context"); empty: no groups."""
    drop_unmatched: bool = False
    one_per: str = ""
    """A metadata field. Of documents with the same value of it, only the first one has results."""


FLAT = Presentation()


def rank(
    matches: Matches,
    score: Column,
    k: int,
    id_rank_of_document: Integers,
    *,
    matching_only: bool = False,
    allowed: Mask | None = None,
    presentation: Presentation = FLAT,
    group_of_document: Integers | None = None,
) -> Ranking:
    """The best `k` passages.

    `id_rank_of_document` has one value per candidate document: its rank in the order of document ids. `matching_only`
    leaves out passages without a query term, and `allowed` (one flag per passage) leaves out passages whose flag is
    false. `group_of_document` has one number per candidate document, for `one_per`: documents with the same value share
    a number, and documents without a value have a number below 0.
    """
    values = score.values
    rows = np.arange(values.size)
    if matching_only or allowed is not None:
        eligible = np.ones(values.size, bool) if allowed is None else allowed
        rows = np.flatnonzero(eligible & (np.diff(matches.in_passages.first_entry) > 0) if matching_only else eligible)
        values = values[rows]
    if presentation != FLAT:
        return _present(matches, rows, values, k, id_rank_of_document, presentation, group_of_document)
    if values.size > k:
        threshold = np.partition(values, values.size - k)[values.size - k]
        # Rows that tie with the last one stay until the tie rule has decided between them.
        rows, values = rows[values >= threshold], values[values >= threshold]
    # Rows are in reading order within a document, parents first, so they are the last key.
    order = np.lexsort((rows, id_rank_of_document[matches.document_of_passage[rows]], -values))[:k]
    return Ranking(rows[order], values[order])


def _present(
    matches: Matches,
    rows: Integers,
    values: Floats,
    k: int,
    id_rank_of_document: Integers,
    presentation: Presentation,
    group_of_document: Integers | None,
) -> Ranking:
    document = matches.document_of_passage[rows]
    if presentation.no_overlap:
        unmatched = np.bincount(document, values != 0, minlength=matches.documents) == 0
        kept = (values != 0) | (unmatched[document] & (not presentation.drop_unmatched))
        rows, values, document = rows[kept], values[kept], document[kept]
    # First by document, then by falling score.
    order = np.lexsort((rows, -values, document))
    rows, values, document = rows[order], values[order], document[order]
    if presentation.no_overlap:
        first_row = np.searchsorted(document, np.arange(matches.documents + 1))
        kept = without_overlap(rows, first_row, matches.first_token_of_passage, matches.end_token_of_passage)
        rows, values, document = rows[kept], values[kept], document[kept]
    id_rank = id_rank_of_document[document]
    if presentation.group_by_document:
        best = np.full(matches.documents, -np.inf)
        np.maximum.at(best, document, values)
        by = matches.score_of_document if presentation.group_by_document == "fetch" else best
        order = np.lexsort((rows, -values, id_rank, -by[document]))
    else:
        order = np.lexsort((rows, id_rank, -values))
    if group_of_document is not None:
        # Only the document that has the group's first result keeps its results.
        group = group_of_document[document[order]]
        _, first, of_group = np.unique(group, return_index=True, return_inverse=True)
        order = order[(group < 0) | (document[order] == document[order][first][of_group])]
    return Ranking(rows[order][:k], values[order][:k])


def first_of_group(groups: Integers) -> Mask:
    """A mask of the first row of each group; rows without a group (number below 0) are all true.

    >>> first_of_group(np.array([4, -1, 4, 2, -1])).tolist()
    [True, True, False, True, True]
    """
    first = groups < 0
    first[np.unique(groups, return_index=True)[1]] = True
    return first
