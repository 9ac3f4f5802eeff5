"""Find the score of the best passage of each document, without the columns of a join."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Floats, Integers, Integers32
from perikope.kernels.jit import kernel


class SaturatedTerms(NamedTuple):
    """A score of passages, `Σ_t weight · tf / (tf + fixed + by_length · l)`: three values per term.

    tf is the frequency of the term in the passage, and l the length of the passage.
    """

    weight: Floats
    fixed: Floats
    by_length: Floats


@kernel
def best_passages(
    term: Integers32, position: Integers32, end_of_document: Integers, passages: Integers, end_passage: Integers,
    score: SaturatedTerms,
) -> tuple[Floats, Floats]:  # fmt: skip
    """The score of the best passage of each document, or 0 if that is larger, and the score of each passage.

    `term` and `position` are those of the occurrences, ordered by document and position, and `end_of_document` has the
    end of each document's occurrences. `passages` has three rows: first token, end token and length of each passage;
    `end_passage` has the end of each document's passages.
    """
    best, scores = np.zeros(end_of_document.size), np.empty(passages.shape[1])
    score = SaturatedTerms(*score)
    count = np.zeros(score.weight.size, np.int64)
    occurrence = np.int64(0)
    passage = np.int64(0)
    for document in range(end_of_document.size):
        first, end = occurrence, end_of_document[document]
        while passage < end_passage[document]:
            if occurrence > first and position[occurrence - 1] >= passages[0, passage]:
                occurrence = first  # passages are not in the order of their text
            while occurrence < end and position[occurrence] < passages[0, passage]:
                occurrence += 1
            begin = occurrence
            while occurrence < end and position[occurrence] < passages[1, passage]:
                count[term[occurrence]] += 1
                occurrence += 1
            value = 0.0
            for at in range(begin, occurrence):
                i = term[at]
                if count[i] > 0:
                    rest = score.fixed[i] + score.by_length[i] * passages[2, passage]
                    value += score.weight[i] * count[i] / (count[i] + rest)
                    count[i] = 0
            scores[passage] = value
            best[document] = max(best[document], value)
            passage += 1
        occurrence = end
    return best, scores
