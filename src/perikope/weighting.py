"""How much does a term say about a unit of text that holds it? The formulas, for documents and passages alike.

Each is a function of arrays that broadcast: frequency of the term in the unit, length of the unit, and the statistics of
the term over all units of the same sort. Fetch applies them to documents, the context-free models to passages.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def idf(units: int, holding: NDArray[Any]) -> Floats:
    """BM25's inverse document frequency as Lucene has it, never negative: `ln(1 + (N - n + 0.5) / (n + 0.5))`."""
    result: Floats = np.log1p((units - holding + 0.5) / (holding + 0.5))
    return result


def bm25(frequency: NDArray[Any], length: NDArray[Any], average_length: float, k1: float, b: float) -> Floats:
    """BM25's saturation of frequency by length: `tf (k1 + 1) / (tf + k1 (1 - b + b l / avg))`.

    Robertson, Walker, Jones, Hancock-Beaulieu and Gatford, Okapi at TREC-3, 1994.

    >>> float(bm25(np.array(3), np.array(120), 100.0, 1.2, 0.75).round(6))
    1.506849
    """
    result: Floats = frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * length / max(average_length, 1e-9)))
    return result


def pl2(frequency: NDArray[Any], length: NDArray[Any], average_length: float, occurrences: NDArray[Any], units: int, c: float) -> Floats:
    """PL2: Poisson estimate of randomness, Laplace's after-effect, normalisation 2 with parameter c.

    `(t log2(1/f) + f log2(e) + log2(2πt)/2 + t (log2(t) - log2(e))) / (t + 1)` with `t = tf log2(1 + c l_avg / l)` and `f = cf / N`.
    Amati and van Rijsbergen, Probabilistic models of information retrieval based on measuring the divergence from randomness, TOIS 2002.

    >>> float(pl2(np.array(3), np.array(120), 100.0, np.array(50), 1000, 1.0).round(6))
    3.66984
    """
    t = frequency * np.log2(1 + c * average_length / np.maximum(length, 1))
    f = occurrences / units
    information = -t * np.log2(f) + f * np.log2(np.e) + 0.5 * np.log2(2 * np.pi * t) + t * (np.log2(t) - np.log2(np.e))
    result: Floats = information / (t + 1)
    return result


def dph(frequency: NDArray[Any], length: NDArray[Any], average_length: float, occurrences: NDArray[Any], units: int) -> Floats:
    """DPH: hypergeometric randomness, Popper's normalisation, no parameter.

    `(1 - f)² / (tf + 1) · (tf log2(tf l_avg/l · N/cf) + log2(2π tf (1 - f))/2)` with `f = tf / l`.
    Amati, Frequentist and Bayesian approach to information retrieval, ECIR 2006.
    """
    # A document that is nothing but the term would have a logarithm of zero; its weight is zero all the same.
    f = np.minimum(frequency / np.maximum(length, 1), 1 - 1e-9)
    randomness = frequency * np.log2(frequency * average_length / np.maximum(length, 1) * units / occurrences)
    result: Floats = (1 - f) ** 2 / (frequency + 1) * (randomness + 0.5 * np.log2(2 * np.pi * frequency * (1 - f)))
    return result


def dirichlet(frequency: NDArray[Any], occurrences: NDArray[Any], tokens: int, mu: float) -> Floats:
    """What an occurring term adds to the log-likelihood under Dirichlet smoothing: `ln(1 + tf / (μ cf / |C|))`.

    Zhai and Lafferty, A study of smoothing methods for language models applied to ad hoc information retrieval, SIGIR 2001.
    """
    result: Floats = np.log1p(frequency / (mu * occurrences / max(tokens, 1)))
    return result
