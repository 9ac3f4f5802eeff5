"""The common measures, as trec_eval defines them (https://github.com/usnistgov/trec_eval).

A result is relevant if its grade is at least `rel`; a result without a judgement is not relevant. A query without
relevant results has the value 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from perikope.core.parameters import Range
from perikope.evaluation.measures.declaration import measure

Rel = Annotated[int, Range(1), "Lowest grade that counts as relevant."]


@measure("nDCG", aliases=("NDCG",))
def normalised_discounted_cumulative_gain(ranked: Sequence[str], judged: Mapping[str, int], cutoff: int | None = None) -> float:
    """Discounted cumulative gain, `Σ_i grade_i / log2(i + 1)`, divided by the gain of the ideal ranking.

    Negative grades are treated as 0. Järvelin and Kekäläinen 2002, with the grade itself as gain.

    >>> round(normalised_discounted_cumulative_gain(["a", "b", "c"], {"a": 1, "c": 3}), 6)
    0.688529
    """
    ideal = _discounted(sorted(judged.values(), reverse=True)[:cutoff])
    return _discounted(judged.get(name, 0) for name in ranked[:cutoff]) / ideal if ideal else 0.0


@measure("AP", aliases=("MAP",))
def average_precision(ranked: Sequence[str], judged: Mapping[str, int], cutoff: int | None = None, *, rel: Rel = 1) -> float:
    """Sum of the precisions at the ranks of relevant results, divided by their total number R: `Σ_i rel_i P@i / R`.

    Harman 1992.

    >>> average_precision(["a", "b", "c", "d"], {"a": 1, "d": 1})
    0.75
    """
    relevant = sum(grade >= rel for grade in judged.values())
    relevant_so_far, total = 0, 0.0
    for rank, name in enumerate(ranked[:cutoff], start=1):
        if judged.get(name, 0) >= rel:
            relevant_so_far += 1
            total += relevant_so_far / rank
    return total / relevant if relevant else 0.0


@measure("RR", aliases=("MRR",))
def reciprocal_rank(ranked: Sequence[str], judged: Mapping[str, int], cutoff: int | None = None, *, rel: Rel = 1) -> float:
    """One over the rank of the first relevant result, 0 if there is none: `1 / rank`. Kantor and Voorhees 2000.

    >>> reciprocal_rank(["a", "b"], {"b": 1})
    0.5
    """
    return next((1 / rank for rank, name in enumerate(ranked[:cutoff], start=1) if judged.get(name, 0) >= rel), 0.0)


@measure("P", aliases=("Precision",))
def precision(ranked: Sequence[str], judged: Mapping[str, int], cutoff: int, *, rel: Rel = 1) -> float:
    """Share of relevant results among the first k: `relevant / k`.

    The divisor is k even if there are fewer results. van Rijsbergen 1979.

    >>> precision(["a", "b"], {"a": 1}, 5)
    0.2
    """
    return _count_relevant(ranked[:cutoff], judged, rel) / cutoff


@measure("Recall", aliases=("R",))
def recall(ranked: Sequence[str], judged: Mapping[str, int], cutoff: int | None = None, *, rel: Rel = 1) -> float:
    """Share of all relevant results that are among the first k: `relevant@k / R`. van Rijsbergen 1979.

    >>> recall(["a", "b"], {"a": 1, "z": 1}, 1)
    0.5
    """
    relevant = sum(grade >= rel for grade in judged.values())
    return _count_relevant(ranked[:cutoff], judged, rel) / relevant if relevant else 0.0


@measure("Success")
def success(ranked: Sequence[str], judged: Mapping[str, int], cutoff: int, *, rel: Rel = 1) -> float:
    """1 if a relevant result is among the first k, else 0. Craswell and Hawking 2004.

    >>> success(["a", "b"], {"b": 1}, 1), success(["a", "b"], {"b": 1}, 2)
    (0.0, 1.0)
    """
    return float(_count_relevant(ranked[:cutoff], judged, rel) > 0)


@measure("Judged")
def judged_rate(ranked: Sequence[str], judged: Mapping[str, int], cutoff: int | None = None) -> float:
    """Share of the first k results, or of all if there are fewer, that have a judgement: `judged / min(k, length)`.

    >>> judged_rate(["a", "b"], {"a": 0}, 10)
    0.5
    """
    first = ranked[:cutoff]
    return sum(name in judged for name in first) / len(first) if first else 0.0


def _discounted(grades: Iterable[int]) -> float:
    return sum(max(grade, 0) / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def _count_relevant(names: Sequence[str], judged: Mapping[str, int], rel: int) -> int:
    return sum(judged.get(name, 0) >= rel for name in names)
