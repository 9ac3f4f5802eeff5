"""Likelihoods of passages, sums over their neighbours, and sums over documents."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Floats, Integers
from perikope.kernels.jit import kernel


@kernel
def likelihoods(first_entry: Integers, contribution: Floats, length: Integers, mu: float, smoothed: float) -> Floats:
    """`exp(smoothed + Σ contributions) / (length + μ)` of each text.

    Most texts contain no term, and need no exponential of their own.
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
def beside(value: Floats, first_passage: Integers, step: int, weight: Floats) -> Floats:
    """`Σ weight[i] · value` of the passages 1, 2, … before (step -1) or after (step 1) each, in the same document."""
    sums = np.zeros(value.size)
    for document in range(first_passage.size - 1):
        first, end = first_passage[document], first_passage[document + 1]
        for i in range(min(weight.size, end - first - 1)):
            distance = i + 1
            # All passages that have one at this distance at once, in vector instructions.
            to, given = sums[first + distance : end], value[first : end - distance]
            if step > 0:
                to, given = sums[first : end - distance], value[first + distance : end]
            for passage in range(to.size):
                to[passage] += weight[i] * given[passage]
    return sums


@kernel
def sum_documents(value: Floats, first_passage: Integers) -> Floats:
    """The sum over the passages of each document, added up in reading order."""
    sums = np.zeros(first_passage.size - 1)
    for document in range(sums.size):
        total = 0.0
        for passage in range(first_passage[document], first_passage[document + 1]):
            total += value[passage]
        sums[document] = total
    return sums
