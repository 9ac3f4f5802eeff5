"""The number of results per topic that measures need. Rankings are cut here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from perikope.core.arrays import Integers
from perikope.core.names import document_name
from perikope.evaluation.measures import Measure

LEAST = 1000
"""Number of results per topic if neither the user nor a measure asks for more. It is the usual length of TREC runs."""


@dataclass(frozen=True, slots=True)
class Depth:
    """Where rankings are cut: after `results` results, or later if these come from fewer than `documents` documents.

    In the second case, the ranking ends with the first result of the last of these documents.
    """

    results: int
    documents: int = 0

    def cut(self, document_of_result: Integers) -> int:
        """The number of results to keep. `document_of_result` has the number of the document of each result.

        >>> Depth(2, 3).cut(np.array([7, 7, 4, 7, 9, 9])), Depth(2).cut(np.array([7, 7, 4, 7, 9, 9]))
        (5, 2)
        """
        size = int(document_of_result.size)
        if not self.documents or size <= self.results:
            return min(size, self.results)
        first_results = np.sort(np.unique(document_of_result, return_index=True)[1])
        last = size if first_results.size < self.documents else int(first_results[self.documents - 1]) + 1
        return max(last, self.results)

    def cut_names(self, names: Sequence[str]) -> int:
        """The number of results to keep, as in `cut`, given the names of the results.

        >>> Depth(1, 2).cut_names(["A#1", "A#2", "B#1", "B#2"])
        3
        """
        if not self.documents:
            return min(len(names), self.results)
        number: dict[str, int] = {}
        return self.cut(np.array([number.setdefault(document_name(name), len(number)) for name in names], np.int64))

    def __str__(self) -> str:
        return f"{self.results}, or more until they are from {self.documents} documents" if self.documents else str(self.results)


def too_deep_for(depth: Depth, measures: Iterable[Measure]) -> list[Measure]:
    """The measures whose cutoff is beyond the depth, so that their values are wrong.

    >>> from perikope.evaluation.measures import parse_measures
    >>> [str(measure) for measure in too_deep_for(Depth(10), parse_measures("nDCG@10 P@20 PRES@100 MAP(D)"))]
    ['P@20', 'PRES@100']
    """
    too_deep = []
    for measure in measures:
        enough = max(depth.results, depth.documents) if measure.definition.ranks_documents else depth.results
        if measure.cutoff is not None and not measure.definition.cutoff_is_recall and measure.cutoff > enough:
            too_deep.append(measure)
    return too_deep


def depth_of(measures: Iterable[Measure], k: int | None = None) -> Depth:
    """The depth that the user asks for with `k`, or else the depth that the measures need.

    A measure with a cutoff needs as many results as the cutoff says or, if it ranks documents, results of as many
    documents. Without a cutoff, `LEAST` results are enough.

    >>> from perikope.evaluation.measures import parse_measures
    >>> depth_of(parse_measures("nDCG@10 MAP(D)")), depth_of(parse_measures("P@2000 PRES@100"))
    (Depth(results=1000, documents=0), Depth(results=2000, documents=100))
    >>> depth_of(parse_measures("PRES@100"), 1500)
    Depth(results=1500, documents=0)
    """
    if k is not None:
        return Depth(k)
    with_cutoff = [measure for measure in measures if measure.cutoff is not None and not measure.definition.cutoff_is_recall]
    results = [int(measure.cutoff or 0) for measure in with_cutoff if not measure.definition.ranks_documents]
    documents = [int(measure.cutoff or 0) for measure in with_cutoff if measure.definition.ranks_documents]
    return Depth(max([LEAST, *results]), max(documents, default=0))
