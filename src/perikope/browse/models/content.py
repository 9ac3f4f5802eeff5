"""What a text itself says of its relevance: the content scores that the models build on, as columns.

`content_score` gives any of them by name, for passages, for passages read with the titles above them, and for documents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Literal

import numpy as np

from perikope.browse.matches import Frequencies, Matches
from perikope.browse.signals import Column, Node, fact, sum_over_terms
from perikope.core.arrays import Array, Floats, Integers
from perikope.core.parameters import Grid, Range
from perikope.fetch.weighting import bm25, idf
from perikope.kernels.passages import likelihoods

Unit = Literal["passage", "passage with titles", "document"]
"""The texts that are scored."""

# Tuning stays with the published choices: another content score, or other statistics, is another model, to be named.
Content = Annotated[Literal["lm", "bm25", "psg"], Grid(("lm",))]
CountedOver = Annotated[Literal["documents", "passages"], Grid(("documents",))]
Mu = Annotated[float, Range(0, 1e9, low_open=True), Grid((500.0, 1000.0, 2000.0))]


def content_score(
    matches: Matches, unit: Unit, content: Content = "lm", statistics: CountedOver = "documents", *, mu: Mu = 1000.0
) -> Column:
    """The score of each text by itself: `lm` is `similarity`, `bm25` is `okapi` and `psg` is `tf_idf`, each with its formula there."""

    def score() -> Column:
        if content == "lm":
            return similarity(matches, mu, unit=unit, statistics=statistics)
        if content == "bm25":
            return okapi(matches, unit=unit, statistics=statistics)
        return tf_idf(matches, unit=unit, statistics=statistics)

    return matches.once(("content", unit, content, statistics, mu), score)


def fetch_score(matches: Matches) -> Column:
    """The score with which each document was fetched."""
    label, values = "fetch score of the document", matches.score_of_document

    def explain(document: int) -> Node:
        parts = tuple(Node(name, value) for name, value in matches.parts_of_score(document))
        return Node(label, float(values[document]), "sum", parts) if parts else Node(label, float(values[document]))

    return Column(label, values, explain)


def okapi(matches: Matches, k1: float = 1.2, b: float = 0.75, *, unit: Unit = "passage", statistics: CountedOver = "passages") -> Column:
    """BM25: `Σ_t w_t · idf(t) · tf (k1 + 1) / (tf + k1 (1 - b + b l / l_avg))`, w_t how often the query has t.

    Idf and average length are counted over documents or over passages, whatever is scored. Among documents all passages are short, so that
    their length hardly matters; that pays where long passages are the relevant ones (Evidence Inference, qsf_v_title: nDCG@10 0.48
    with the average document, 0.32 with the same idf and the average passage).
    """
    text, background = _texts(matches, unit), _background(matches, statistics)
    factors = {
        "weight in the query": matches.weights[text.found.term],
        f"idf over {statistics}": idf(background.units, background.holding)[text.found.term],
        "frequency by length": bm25(text.found.count, text.length[text.found.unit], background.average_length, k1, b),
    }
    return sum_over_terms(f"BM25 of the {unit}", matches.query.terms, text.found, factors)


def tf_idf(matches: Matches, *, unit: Unit = "passage", statistics: CountedOver = "documents") -> Column:
    """`Σ ln(occurrences + 1) · ln(N / N_t)` over the distinct query terms of each text (Carmel 2013, equation 1)."""
    text, background = _texts(matches, unit), _background(matches, statistics)
    # A term that nothing holds weighs nothing, since it does not occur; one that only titles hold counts as held once.
    weight = np.log(max(background.units, 1) / np.maximum(background.holding, 1))
    factors = {"ln(occurrences + 1)": np.log1p(text.found.count), "ln(N ÷ N_t)": weight[text.found.term]}
    return sum_over_terms(f"tf·idf of the {unit}", matches.query.terms, text.found, factors)


def similarity(matches: Matches, mu: float = 1000.0, *, unit: Unit = "passage", statistics: CountedOver = "documents") -> Column:
    """`Sim(q, x) = exp(Σ_t P(t|q) ln((tf + μ P(t|C)) / (l_x + μ)))` (Albarede 2021, equation 2).

    P(t|C) is counted over the documents with their titles, or over the passages alone. Terms that were not counted are left out and
    the query model is renormalised over the rest. The sum is split so that only terms that occur cost anything: `ln(1 + tf / μP(t|C))`
    each, and one smoothing term a text. A text without any takes a division: the formula as it is written is only there to explain.
    """
    text, background = _texts(matches, unit), _background(matches, statistics)
    found = text.found
    seen = background.occurrences > 0
    share = np.where(seen, matches.weights, 0.0)
    share = share / max(share.sum(), 1e-300)
    prior = mu * background.occurrences / max(background.tokens, 1)
    smoothed = float(np.sum(share[seen] * np.log(prior[seen])))
    # A term that only titles hold is not counted among passages: its share is 0, whatever its prior.
    prior = np.where(seen, prior, 1.0)
    factors = {"share of the query": share[found.term], "ln(1 + tf ÷ μP(t|C))": np.log1p(found.count / prior[found.term])}
    label = f"Sim(q, {unit})"

    @cache
    def by_formula() -> Column:
        matched = sum_over_terms("terms that occur", matches.query.terms, found, factors)
        smoothing = fact("smoothing for length and rarity", smoothed - float(seen.any()) * np.log(text.length + mu))
        return (matched + smoothing).named(f"ln {label}").exp(label)

    if not seen.any():
        return by_formula()
    values: Floats = likelihoods(found.first_entry, np.multiply(*factors.values()), text.length, mu, smoothed)

    def explain(row: int) -> Node:
        return replace(by_formula().explain(row), value=float(values[row]))

    return Column(label, values, explain)


@dataclass(frozen=True, slots=True)
class _Texts:
    """The texts to be scored: what they hold of the query, and how long they are."""

    found: Frequencies
    length: Integers


def _texts(matches: Matches, unit: Unit) -> _Texts:
    if unit == "document":
        return _Texts(matches.in_documents, matches.length_of_document)
    if unit == "passage with titles":
        titled = "counts and lengths with titles", lambda: (matches.in_passages_with_titles(), matches.length_with_titles_of_passage())
        return _Texts(*matches.once(*titled))
    return _Texts(matches.in_passages, matches.length_of_passage)


@dataclass(frozen=True, slots=True)
class _Background:
    """What the collection says of the query's terms, counted over all its documents (with titles) or over all its passages."""

    units: int
    tokens: int
    holding: Array
    occurrences: Array

    @property
    def average_length(self) -> float:
        return self.tokens / max(self.units, 1)


def _background(matches: Matches, statistics: CountedOver) -> _Background:
    counts = matches.statistics
    if statistics == "documents":
        return _Background(counts.documents, counts.tokens, counts.document_frequency, counts.collection_frequency)
    return _Background(counts.passages, counts.passage_tokens, counts.passage_frequency, counts.passage_collection_frequency)
