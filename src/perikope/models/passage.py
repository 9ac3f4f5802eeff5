"""Passages scored by themselves, and mixed with the score of their document."""

from __future__ import annotations

from typing import Annotated, Literal

from perikope.matches import Matches
from perikope.models import Signals, model
from perikope.models.content import okapi, tf_idf
from perikope.parameters import Grid, Range
from perikope.signals import Column, fact, min_max, share, share_within


def okapi_signals(
    matches: Matches,
    *,
    k1: Annotated[float, Range(0, 1000), Grid((0.6, 0.9, 1.2, 1.6, 2.0))] = 1.2,
    b: Annotated[float, Range(0, 1), Grid((0.2, 0.4, 0.75))] = 0.75,
) -> Signals:
    """BM25 with the statistics of passages."""
    return {"content": okapi(matches, k1, b)}


@model(okapi_signals, matching_only=True)
def bm25(signals: Signals) -> Column:
    """BM25 of the passage alone, with the statistics of passages: no context.

    `Σ_t w_t · ln(1 + (P - P_t + 0.5) / (P_t + 0.5)) · tf (k1 + 1) / (tf + k1 (1 - b + b l_p / l_avg))`, P passages in the
    collection, P_t of them with t, w_t how often the query has t (Robertson et al. 1994, with Lucene's idf).
    """
    return signals["content"]


def tf_idf_signals(matches: Matches) -> Signals:
    """The tf·idf score of Carmel 2013."""
    return {"content": tf_idf(matches)}


@model(tf_idf_signals, matching_only=True)
def psg(signals: Signals) -> Column:
    """tf·idf of the passage alone: no context.

    `psg(p) = Σ_{t ∈ q ∩ p} ln(occ(t, p) + 1) · ln(N / N_t)`, N documents in the collection, N_t of them with t
    (Carmel, Shtok and Kurland 2013, equation 1).
    """
    return signals["content"]


def passage_and_document(matches: Matches, *, normalize: Literal["candidates", "document", "minmax"] = "candidates") -> Signals:
    """Psg and the fetch score of the document, each normalised.

    The paper prints the sum over the passages of the same document (`document`), which puts documents with a single matching
    passage first and contradicts the paper's own result; the sum over all candidates behaves as it reports.
    """
    passage, document = tf_idf(matches), fact("fetch score of the document", matches.score_of_document)
    if normalize == "minmax":
        return {"passage": min_max(passage), "document": min_max(document).at(matches.document_of_passage)}
    within = share_within(passage, matches.document_of_passage, matches.documents) if normalize == "document" else share(passage)
    return {"passage": within, "document": share(document).at(matches.document_of_passage)}


@model(passage_and_document)
def psg_doc(signals: Signals, *, lam: Annotated[float, Range(0, 1), Grid(step=0.1)] = 0.9) -> Column:
    """The tf·idf of the passage mixed with the score of the document.

    `psgDoc(p) = (1 - λ) · psg(p) / Σ psg + λ · doc(d) / Σ doc`, doc the score with which the document was fetched
    (Carmel, Shtok and Kurland 2013, equation 2).
    """
    return (1 - lam) * signals["passage"] + lam * signals["document"]
