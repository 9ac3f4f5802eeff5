"""Order passages or elements by score.

Results with equal scores are ordered by document id, then by position. If two elements begin at the same token, the
longer one comes first. The order is the same in every run and on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.signals import Column
from perikope.core.arrays import Floats, Integers, Mask, frozen
from perikope.kernels.elements import without_overlap
from perikope.kernels.order import best_first, rows_of_largest, ties

Unit = Literal["", "document", "section"]
"""A unit of documents; see `Presentation.one_hit_per`."""
Grouping = Literal["", "score", "fetch"]
"""How results are grouped by document; see `Presentation.group_by_document`."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Results, best first, with their scores."""

    rows: Integers
    """Index of each result in the passage columns of `Matches`."""
    scores: Floats
    """Score of each result, aligned with `rows`."""
    offset: int = 0
    """Number of better results that were left out. The first result has the rank `offset + 1`."""

    def __len__(self) -> int:
        return int(self.rows.size)

    def after(self, offset: int) -> Ranking:
        """The ranking without its best `offset` results."""
        return Ranking(self.rows[offset:], self.scores[offset:], self.offset + offset) if offset else self


@dataclass(frozen=True, slots=True)
class Presentation:
    """How results are laid out: as one list or grouped by document, with or without overlapping results."""

    no_overlap: bool = False
    """Leave out results that overlap a better result of the same document, and results with score 0.

    If all results of a document score 0, its outermost results stay.
    """
    group_by_document: Grouping = ""
    """Whether results are grouped by document, and how the documents are ordered.

    `score` orders documents by their best result. `fetch` orders them by fetch score ("relevant in context"). Empty
    means one list without groups.
    """
    one_document_per: str = ""
    """A metadata field. Among documents with the same value of this field, only the best-ranked one has results."""
    one_hit_per: Unit = ""
    """Whether only the best result of each document, or of each section, stays. The section of a result is the nearest
    section that contains it. Empty means that all results stay."""


FLAT = Presentation()
"""One list by score, in which results may overlap."""


def rank(
    matches: Matches,
    score: Column,
    k: int,
    id_rank_of_document: Callable[[], Integers],
    *,
    matching_only: bool = False,
    allowed: Mask | None = None,
    presentation: Presentation = FLAT,
    group_of_document: Integers | None = None,
) -> Ranking:
    """Rank the rows of the matches (passages or elements) by score, and return the best `k`.

    `score` has one value per row. `id_rank_of_document` returns one value per candidate document: its rank in the order
    of document ids. It is called only if ids decide. `matching_only` leaves out rows without a query term. `allowed`
    has one flag per row; rows whose flag is false are left out.

    `group_of_document` applies `Presentation.one_document_per`. It has one number per candidate: documents with the
    same value of the metadata field share a number, and documents without a value have a negative number.
    """
    values = score.values
    if matching_only:
        has_term = np.diff(matches.in_passages.first_entry) > 0
        allowed = has_term if allowed is None else allowed & has_term
    if presentation != FLAT:
        rows = np.arange(values.size) if allowed is None else np.flatnonzero(allowed)
        return _present(matches, rows, values[rows], k, id_rank_of_document(), presentation, group_of_document)
    # Rows are in reading order within a document, parents first, so they are the last key.
    rows, scores, tied, tie = _in_order(_best_rows(values, allowed, k), values, k)
    if tied.size:
        rank_of_id = id_rank_of_document()[matches.document_of_passage[rows[tied]]]
        if ((rank_of_id[1:] < rank_of_id[:-1]) & (tie[1:] == tie[:-1])).any():
            rows[tied] = rows[tied][np.lexsort((rank_of_id, tie))]
    return Ranking(rows[:k], scores[:k])


_FEW = 4096
"""Of this many rows, `np.partition` finds the best as fast as a kernel, which would have to be compiled."""


def _best_rows(values: Floats, allowed: Mask | None, k: int) -> Integers:
    """The rows of the best `k`, in ascending order, with all that tie with the last of them.

    Only the tie rule can choose between those.
    """
    if values.size > _FEW and k > 0:
        best: Integers = rows_of_largest(frozen(values.view()), _EVERYTHING if allowed is None else frozen(allowed.view()), k)
        return best
    rows = np.arange(values.size) if allowed is None else np.flatnonzero(allowed)
    if rows.size > k:
        among = values[rows]
        rows = rows[among >= np.partition(among, rows.size - k)[rows.size - k]]
    return rows


_EVERYTHING = frozen(np.zeros(0, bool))


def _in_order(rows: Integers, values: Floats, k: int) -> tuple[Integers, Floats, Integers, Integers]:
    """Rows by falling value, their values, and the ties among the first `k`, as `best_first` returns them."""
    scores = values[rows]
    if values.size > _FEW:
        ordered: tuple[Integers, Floats, Integers, Integers] = best_first(rows, scores, k)
        return ordered
    order = np.argsort(-scores, kind="stable")
    rows, scores = rows[order], scores[order]
    return rows, scores, *ties(scores, k)


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
        kept = (values != 0) | unmatched[document]
        rows, values, document = rows[kept], values[kept], document[kept]
    # By document, then by decreasing score.
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
    if presentation.one_hit_per:
        unit = document if presentation.one_hit_per == "document" else matches.section_of_passage[rows]
        order = order[first_of_group(unit[order])]
    return Ranking(rows[order][:k], values[order][:k])


def first_of_group(groups: Integers) -> Mask:
    """One flag per row: whether it is the first row of its group, or has no group (a negative number).

    >>> first_of_group(np.array([4, -1, 4, 2, -1])).tolist()
    [True, True, False, True, True]
    """
    first = groups < 0
    first[np.unique(groups, return_index=True)[1]] = True
    return first
