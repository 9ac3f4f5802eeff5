"""The influence of words on the positions of one document."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Floats, Integers
from perikope.kernels.jit import kernel


@kernel
def add_nearest(position: Integers, first: Integers, weight: Floats, by_distance: Floats, tokens: int) -> Floats:
    """For each position x of a document, `Σ_w weight_w · by_distance[|x - o|]`, o the occurrence of w nearest to x.

    The occurrences of word w are `position[first[w] : first[w + 1]]`, in ascending order. Beyond the end of
    `by_distance` a word has no influence. The time is proportional to the number of positions that occurrences reach.
    """
    influence = np.zeros(tokens, np.float64)
    reach = by_distance.size - 1
    for word in range(first.size - 1):
        begin = 0
        for i in range(first[word], first[word + 1]):
            at = position[i]
            # A position in the middle between two occurrences belongs to the first; both are equally near.
            end = tokens if i + 1 == first[word + 1] else (at + position[i + 1]) // 2 + 1
            for x in range(max(begin, at - reach), min(end, at + reach + 1)):
                influence[x] += weight[word] * by_distance[abs(x - at)]
            begin = end
    return influence
