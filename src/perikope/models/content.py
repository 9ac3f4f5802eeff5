"""What a text itself says of its relevance: the content scores that the models build on, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perikope.matches import Frequencies, Matches
from perikope.signals import Column, fact, sum_over_terms
from perikope.weighting import bm25, idf


def okapi(matches: Matches, k1: float, b: float) -> Column:
    """BM25 of each passage among all passages of the collection."""
    found, statistics = matches.in_passages, matches.statistics
    average = statistics.passage_tokens / max(statistics.passages, 1)
    factors = {
        "weight in the query": matches.weights[found.term],
        "idf over passages": idf(statistics.passages, statistics.passage_frequency)[found.term],
        "frequency by length": bm25(found.count, matches.length_of_passage[found.unit], average, k1, b),
    }
    return sum_over_terms("BM25 of the passage", matches.query.terms, found, factors)


def tf_idf(matches: Matches) -> Column:
    """`Σ ln(occurrences + 1) · ln(N / N_t)` over the distinct query terms of each passage (Carmel 2013, equation 1)."""
    found, statistics = matches.in_passages, matches.statistics
    # A term that no document holds weighs nothing, since it is in no passage.
    weight = np.log(max(statistics.documents, 1) / np.maximum(statistics.document_frequency, 1))
    factors = {"ln(occurrences + 1)": np.log1p(found.count), "ln(N ÷ N_t)": weight[found.term]}
    return sum_over_terms("tf·idf of the passage", matches.query.terms, found, factors)


def similarity(label: str, matches: Matches, found: Frequencies, length: NDArray[Any], mu: float) -> Column:
    """`Sim(q, x) = exp(Σ_t P(t|q) ln((tf + μ P(t|C)) / (l_x + μ)))` (Albarede 2021, equation 2).

    Terms that the collection does not hold are left out and the query model is renormalised over the rest. The sum is split
    so that only terms that occur cost anything: `ln(1 + tf / μP(t|C))` each, and one smoothing term a text.
    """
    statistics = matches.statistics
    seen = statistics.collection_frequency > 0
    share = np.where(seen, matches.weights, 0.0)
    share = share / max(share.sum(), 1e-300)
    prior = mu * statistics.collection_frequency / max(statistics.tokens, 1)
    background = float(np.sum(share[seen] * np.log(prior[seen])))
    factors = {"share of the query": share[found.term], "ln(1 + tf ÷ μP(t|C))": np.log1p(found.count / prior[found.term])}
    matched = sum_over_terms("terms that occur", matches.query.terms, found, factors)
    smoothing = fact("smoothing for length and rarity", background - np.log(length + mu))
    return (matched + smoothing).named(f"ln {label}").exp(label)
