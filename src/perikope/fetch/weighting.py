"""Formulas for the weight of a term in a unit of text, which is a document or a passage.

Each formula is a function of arrays that broadcast: the frequency of the term in the unit (tf), the length of the unit
in tokens (l), and statistics of the term over all units. N is the number of units, n the number of units that contain
the term, cf the number of its occurrences, and l_avg the average length. N, l_avg and the tokens of the collection are
numbers, or arrays if they are counted in the language of each term. Fetch models apply the formulas to documents,
context-free models to passages.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Array, Floats

Factors = tuple[Floats, ...]
"""The factors `a_i`, which depend on the term, or `b_i`, which depend on the unit, of a formula `Σ_i a_i · b_i`."""

TINY = 1e-300
"""A positive number that replaces 0 in logarithms."""


def idf(units: int | Array, holding: Array) -> Floats:
    """Inverse document frequency of BM25 as in Lucene: `ln(1 + (N - n + 0.5) / (n + 0.5))`. It is never negative."""
    result: Floats = np.log1p((units - holding + 0.5) / (holding + 0.5))
    return result


def robertson_idf(units: int | Array, holding: Array) -> Floats:
    """Robertson's inverse document frequency: `ln((N - n + 0.5) / (n + 0.5))`.

    It is negative for terms that more than half of the units contain.
    """
    result: Floats = np.log((units - holding + 0.5) / (holding + 0.5))
    return result


def bm25(frequency: Array, length: Array, average_length: float | Array, k1: float, b: float) -> Floats:
    """Term frequency of BM25 with saturation and length normalisation.

    `tf (k1 + 1) / (tf + k1 (1 - b + b l / l_avg))`; multiply it by `idf` for the weight of a term.

    Robertson, Walker, Jones, Hancock-Beaulieu and Gatford, Okapi at TREC-3, 1994.

    >>> float(bm25(np.array(3), np.array(120), 100.0, 1.2, 0.75).round(6))
    1.506849
    """
    result: Floats = frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * length / np.maximum(average_length, 1e-9)))
    return result


def pl2(frequency: Array, length: Array, average_length: float | Array, occurrences: Array, units: int | Array, c: float) -> Floats:
    """PL2: Poisson estimate of randomness, Laplace's after-effect, normalisation 2 with parameter c.

    `(t log2(1/f) + f log2(e) + log2(2πt)/2 + t (log2(t) - log2(e))) / (t + 1)` with `t = tf log2(1 + c l_avg / l)` and
    `f = cf / N`. Amati and van Rijsbergen, Probabilistic models of information retrieval based on measuring the
    divergence from randomness, TOIS 2002.

    >>> float(pl2(np.array(3), np.array(120), 100.0, np.array(50), 1000, 1.0).round(6))
    3.66984
    """
    return _sum_of_products(pl2_of_term(occurrences, units), pl2_of_unit(frequency, length, average_length, c))


def pl2_of_term(occurrences: Array, units: int | Array) -> Factors:
    """The three factors of PL2 that depend on the term: `log2(1/f)`, `f log2(e)` and 1, with `f = cf / N`."""
    expected = occurrences / np.maximum(units, 1)
    return -np.log2(np.maximum(expected, TINY)), expected * np.log2(np.e), np.ones(np.shape(expected))


def pl2_of_unit(frequency: Array, length: Array, average_length: float | Array, c: float) -> Factors:
    """The three factors of PL2 that depend on the unit, with `t = tf log2(1 + c l_avg / l)`.

    They are `t / (t + 1)`, `1 / (t + 1)` and `(log2(2πt)/2 + t (log2(t) - log2(e))) / (t + 1)`.
    """
    t = np.maximum(frequency * np.log2(1 + c * average_length / np.maximum(length, 1)), TINY)
    return t / (t + 1), 1 / (t + 1), (0.5 * np.log2(2 * np.pi * t) + t * (np.log2(t) - np.log2(np.e))) / (t + 1)


def dph(frequency: Array, length: Array, average_length: float | Array, occurrences: Array, units: int | Array) -> Floats:
    """DPH: hypergeometric randomness, Popper's normalisation, no parameter.

    `(1 - f)² / (tf + 1) · (tf log2(tf l_avg/l · N/cf) + log2(2π tf (1 - f))/2)` with `f = tf / l`.
    Amati, Frequentist and Bayesian approach to information retrieval, ECIR 2006.
    """
    return _sum_of_products(dph_of_term(occurrences, units), dph_of_unit(frequency, length, average_length))


def dph_of_term(occurrences: Array, units: int | Array) -> Factors:
    """The two factors of DPH that depend on the term: `log2(N / cf)` and 1."""
    return np.log2(np.maximum(units, 1) / np.maximum(occurrences, TINY)), np.ones(np.shape(occurrences))


def dph_of_unit(frequency: Array, length: Array, average_length: float | Array) -> Factors:
    """The two factors of DPH that depend on the unit, with `f = tf / l`.

    They are `(1 - f)² / (tf + 1) · tf` and `(1 - f)² / (tf + 1) · (tf log2(tf l_avg / l) + log2(2π tf (1 - f))/2)`.
    """
    # If the unit consists of the term only, 1 - f is 0 and has no logarithm. With this limit, the weight is almost 0.
    f = np.minimum(frequency / np.maximum(length, 1), 1 - 1e-9)
    normal = (1 - f) ** 2 / (frequency + 1)
    information = frequency * np.log2(np.maximum(frequency * average_length / np.maximum(length, 1), TINY))
    return normal * frequency, normal * (information + 0.5 * np.log2(2 * np.pi * np.maximum(frequency, TINY) * (1 - f)))


def _sum_of_products(factors: Factors, others: Factors) -> Floats:
    result: Floats = sum(factor * other for factor, other in zip(factors, others, strict=True))  # type: ignore[assignment]
    return result


def dirichlet(frequency: Array, occurrences: Array, tokens: float | Array, mu: float) -> Floats:
    """The gain in log-likelihood by the occurrences of a term, with Dirichlet smoothing: `ln(1 + tf / (μ cf / |C|))`.

    |C| is the number of tokens in the collection.

    Zhai and Lafferty, A study of smoothing methods for language models applied to ad hoc information retrieval, SIGIR
    2001.
    """
    result: Floats = np.log1p(frequency / (mu * occurrences / np.maximum(tokens, 1)))
    return result
