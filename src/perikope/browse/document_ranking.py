"""Rank documents by the scores of their passages (Dai and Callan 2019; Callan 1994).

`maxp` takes the best passage, `firstp` the first, `sump` the sum of all, `meanp(n=3)` the mean of the best three.
Equal scores are ordered by document id.
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
    """Numbers of the documents among the candidates of `Matches`."""
    scores: Floats


@dataclass(frozen=True, slots=True)
class _Passages:
    """Eligible passages, document by document in reading order."""

    scores: Floats
    document: Integers
    documents: int


Method = Callable[[_Passages], Floats]
"""Computes one score per document from the scores of its passages. Values of documents without passages are ignored."""


def maxp(passages: _Passages) -> Floats:
    """The score of the best passage."""
    best = np.full(passages.documents, -np.inf)
    np.maximum.at(best, passages.document, passages.scores)
    return best


def firstp(passages: _Passages) -> Floats:
    """The score of the first eligible passage."""
    first = np.zeros(passages.documents)
    first[passages.document[::-1]] = passages.scores[::-1]  # backwards, so that the first passage is written last
    return first


def sump(passages: _Passages) -> Floats:
    """The sum of the scores of all passages."""
    total: Floats = np.bincount(passages.document, passages.scores, minlength=passages.documents).astype(np.float64)
    return total


def meanp(passages: _Passages, *, n: Annotated[int, Range(1), "Number of best passages whose scores are averaged."] = 3) -> Floats:
    """The mean score of the n best passages, or of all passages if there are fewer than n."""
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
    """The method that a text names.

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
    """The best `k` documents by the scores of their `eligible` passages; None makes every passage eligible.

    Documents without an eligible passage are left out.
    """
    rows = np.arange(matches.passages) if eligible is None else np.flatnonzero(eligible)
    document = matches.document_of_passage[rows]
    scores = method(_Passages(score.values[rows], document, matches.documents))
    documents = np.unique(document)
    order = np.lexsort((matches.id_rank_of_document()[documents], -scores[documents]))[:k]
    return DocumentRanking(documents[order], scores[documents[order]])
