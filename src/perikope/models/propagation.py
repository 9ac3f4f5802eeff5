"""Relevance that flows through the document's tree (Albarede et al., Passage retrieval in context, CORIA 2021)."""

from __future__ import annotations

from typing import Annotated

from perikope.matches import Matches
from perikope.models import Signals, model
from perikope.models.content import similarity
from perikope.parameters import Grid, Range
from perikope.signals import Column, min_max

Mu = Annotated[float, Range(0, low_open=True), Grid((500.0, 1000.0, 2000.0))]
Share = Annotated[float, Range(0, 1), Grid(step=0.1)]


def _document(matches: Matches, mu: float) -> Column:
    column = similarity("Sim(q, document)", matches, matches.in_documents, matches.length_of_document, mu)
    return min_max(column).at(matches.document_of_passage)


def passage_signals(matches: Matches, *, mu: Mu = 1000.0) -> Signals:
    """Similarity of the passage and of its document, normalised each on its own."""
    content = similarity("Sim(q, passage)", matches, matches.in_passages, matches.length_of_passage, mu)
    return {"content": min_max(content), "document": _document(matches, mu)}


@model(passage_signals)
def qsf_v(signals: Signals, *, alpha: Share = 0.8) -> Column:
    """The passage mixed with its document.

    `QSF_v = α · Sim°(q, g) + (1 - α) · Sim°(q, d)`, where `Sim(q, x) = exp(Σ_t P(t|q) ln((tf + μ P(t|C)) / (l_x + μ)))` and ° is min-max
    normalisation over the candidates (Albarede et al. 2021, equations 2 to 4).
    """
    return alpha * signals["content"] + (1 - alpha) * signals["document"]


def titled_signals(matches: Matches, *, mu: Mu = 1000.0) -> Signals:
    """Similarity of the passage with the titles of all sections above it, and of its document."""
    found, length = matches.in_passages_with_titles(), matches.length_with_titles_of_passage()
    content = similarity("Sim(q, passage with titles)", matches, found, length, mu)
    return {"content": min_max(content), "document": _document(matches, mu)}


@model(titled_signals)
def qsf_v_title(signals: Signals, *, alpha: Share = 0.9) -> Column:
    """The passage, read with the titles of the sections it stands in, mixed with its document.

    `QSF_v_title = α · Sim_title°(q, g) + (1 - α) · Sim°(q, d)`, Sim and ° as in qsf_v, the titles appended to the passage
    (Albarede et al. 2021, equations 5 and 6).
    """
    return alpha * signals["content"] + (1 - alpha) * signals["document"]
