"""Rank documents by the scores of their passages (Dai and Callan 2019; Callan 1994).

The score of a document is the score of its best passage (`maxp`), the score of its first passage (`firstp`), the sum
of the scores of all its passages (`sump`), or the mean score of its three best passages (`meanp(n=3)`). Documents with
equal scores are ordered by document id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.signals import Column
from perikope.core.arrays import Floats, Integers, Mask
from perikope.core.errors import UsageError, unknown
from perikope.core.grammar import parse
from perikope.core.parameters import Range, bind, parameters_of


@dataclass(frozen=True, slots=True)
class DocumentRanking:
    """Candidate documents with at least one eligible passage, best first, with their scores."""

    documents: Integers
    """Index of each document in the document columns of `Matches`."""
    scores: Floats
    """Score of each document, aligned with `documents`."""


@dataclass(frozen=True, slots=True)
class _Passages:
    """Eligible passages, ordered by document and then in reading order."""

    scores: Floats
    """Score of each passage."""
    document: Integers
    """Index of each passage's document."""
    documents: int
    """Number of candidate documents, with or without eligible passages."""


Method = Callable[[_Passages], Floats]
"""Computes one score per candidate document from the scores of its passages.

The caller ignores the scores of documents without eligible passages.
"""


def maxp(passages: _Passages) -> Floats:
    """For each document, the score of its best passage; -infinity if it has none."""
    best = np.full(passages.documents, -np.inf)
    np.maximum.at(best, passages.document, passages.scores)
    return best


def firstp(passages: _Passages) -> Floats:
    """For each document, the score of its first eligible passage; 0 if it has none."""
    first = np.zeros(passages.documents)
    first[passages.document[::-1]] = passages.scores[::-1]  # backwards, so that the first passage is written last
    return first


def sump(passages: _Passages) -> Floats:
    """For each document, the sum of the scores of its eligible passages; 0 if it has none."""
    total: Floats = np.bincount(passages.document, passages.scores, minlength=passages.documents).astype(np.float64)
    return total


def meanp(passages: _Passages, *, n: Annotated[int, Range(1), "Number of best passages whose scores are averaged."] = 3) -> Floats:
    """For each document, the mean score of its n best passages, or of all its passages if it has fewer than n."""
    order = np.lexsort((-passages.scores, passages.document))
    document = passages.document[order]
    rank = np.arange(document.size) - np.searchsorted(document, document)
    best = order[rank < n]
    count = np.bincount(passages.document[best], minlength=passages.documents)
    total = np.bincount(passages.document[best], passages.scores[best], minlength=passages.documents)
    mean: Floats = total / np.maximum(count, 1)
    return mean


METHODS: dict[str, Callable[..., Floats]] = {"maxp": maxp, "sump": sump, "firstp": firstp, "meanp": meanp}


def parse_method(text: str) -> Method:
    """The method that a text such as `meanp(n=2)` names, with its parameters bound.

    >>> parse_method("meanp(n=2)")(_Passages(np.array([1.0, 5.0, 3.0]), np.array([0, 0, 0]), 1)).tolist()
    [4.0]
    """
    call = parse(text)
    if call.name not in METHODS:
        raise unknown("document ranking", call.name, METHODS)
    function = METHODS[call.name]
    if call.positional or call.cutoff is not None:
        raise UsageError(f"{call.name} takes its parameters by name, such as meanp(n=3)")
    parameters: dict[str, Any] = bind(call.name, parameters_of(function), call.arguments)
    return lambda passages: function(passages, **parameters)


def rank_documents(matches: Matches, score: Column, method: Method, k: int, *, eligible: Mask | None = None) -> DocumentRanking:
    """Rank documents by the scores of their eligible passages, and return the best `k`.

    `score` has one value per passage. `eligible` has one flag per passage; None makes every passage eligible. Documents
    without an eligible passage are left out.
    """
    rows = np.arange(matches.passages) if eligible is None else np.flatnonzero(eligible)
    document = matches.document_of_passage[rows]
    scores = method(_Passages(score.values[rows], document, matches.documents))
    documents = np.unique(document)
    order = np.lexsort((matches.id_rank_of_document()[documents], -scores[documents]))[:k]
    return DocumentRanking(documents[order], scores[documents[order]])
