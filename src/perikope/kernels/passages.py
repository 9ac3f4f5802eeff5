"""Scores of passages from the frequencies of terms, sums over their neighbours, and sums over documents."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Floats, Integers, Integers32
from perikope.kernels.jit import kernel


@kernel
def likelihoods(first_entry: Integers, contribution: Floats, length: Integers, mu: float, smoothed: float) -> Floats:
    """For each text, `exp(smoothed + Σ contributions) / (length + mu)`.

    The contributions of text i are `contribution[first_entry[i] : first_entry[i + 1]]`. Most texts have none, and share
    one exponential.
    """
    texts = length.size
    unmatched = np.exp(smoothed)
    values = np.empty(texts)
    for text in range(texts):
        values[text] = unmatched / (length[text] + mu)
    for text in range(texts):
        if first_entry[text] < first_entry[text + 1]:
            total = 0.0
            for entry in range(first_entry[text], first_entry[text + 1]):
                total += contribution[entry]
            values[text] = np.exp(smoothed + total) / (length[text] + mu)
    return values


@kernel
def okapi_scores(
    unit: Integers, term: Integers32, count: Integers32, length: Integers, weight: Floats, average: Floats, k1: float, b: float
) -> Floats:
    """For each text, `Σ_t weight(t) · tf (k1 + 1) / (tf + k1 (1 - b + b l / average(t)))`, in the order of its entries.

    Each entry has the index of a text (`unit`), the number of a term, and its frequency tf in the text. `length` has
    the length l of each text. The operations are those of `fetch.weighting.bm25`, in their order, so every digit is the
    same. The loop is over entries, not over texts, since it cannot be predicted how many a text has.
    """
    values, rest = np.zeros(length.size), np.empty(length.size)
    is_one = True
    for t in range(average.size):
        is_one &= average[t] == average[0]
    if is_one and average.size:
        for text in range(length.size):
            rest[text] = k1 * (1 - b + b * length[text] / average[0])
    for entry in range(unit.size):
        text, t, tf = np.uintp(unit[entry]), np.uintp(term[entry]), np.float64(count[entry])
        by_length = rest[text] if is_one else k1 * (1 - b + b * length[text] / average[t])
        values[text] += weight[t] * (tf * (k1 + 1) / (tf + by_length))
    return values


@kernel
def beside(value: Floats, first_passage: Integers, step: int, weight: Floats) -> Floats:
    """For each passage, the weighted sum of the values of its neighbours on one side, in the same document.

    `step` is -1 for the passages before and 1 for the passages after. The neighbour at distance i has the weight
    `weight[i - 1]`. `first_passage` has the first passage of each document, and at the end the number of passages.
    """
    sums = np.zeros(value.size)
    for document in range(first_passage.size - 1):
        first, end = first_passage[document], first_passage[document + 1]
        for i in range(min(weight.size, end - first - 1)):
            distance = i + 1
            # Handles all passages that have a neighbour at this distance at once, in vector instructions.
            to, given = sums[first + distance : end], value[first : end - distance]
            if step > 0:
                to, given = sums[first : end - distance], value[first + distance : end]
            for passage in range(to.size):
                to[passage] += weight[i] * given[passage]
    return sums


@kernel
def sum_documents(value: Floats, first_passage: Integers) -> Floats:
    """For each document, the sum of the values of its passages, added in reading order.

    `first_passage` has the first passage of each document, and at the end the number of passages.
    """
    sums = np.zeros(first_passage.size - 1)
    for document in range(sums.size):
        total = 0.0
        for passage in range(first_passage[document], first_passage[document + 1]):
            total += value[passage]
        sums[document] = total
    return sums
