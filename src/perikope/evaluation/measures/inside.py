"""Measures of passages within each relevant document: MAP(D) and PREC(D) of the CLEF-IP passage task.

A document is relevant if it has a relevant passage. The value of a relevant document is computed from its returned
passages, in the order of the run. It is 0 if no passage of the document was returned. The value of a query is the mean
over its relevant documents. Judgements and results that name whole documents are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated

from perikope.core.names import document_name
from perikope.core.parameters import Range
from perikope.evaluation.measures.declaration import measure

Rel = Annotated[int, Range(1), "Lowest grade that counts as relevant."]


@measure("APD", aliases=("MAP(D)",))
def average_precision_inside(ranked: Sequence[str], judged: Mapping[str, int], *, rel: Rel = 1) -> float:
    """Average precision of passages within each relevant document d, as a mean over all D of them: `1/|D| Σ_d AP(d)`.

    Piroi et al. 2012.

    >>> average_precision_inside(["A#2", "B#1", "A#1"], {"A#1": 1, "B#1": 1})
    0.75
    """
    return _mean_over_documents(_average_precision, ranked, judged, rel)


@measure("PD", aliases=("PREC(D)",))
def precision_inside(ranked: Sequence[str], judged: Mapping[str, int], *, rel: Rel = 1) -> float:
    """Precision of passages within each relevant document d, as a mean: `1/|D| Σ_d relevant(d) / returned(d)`.

    Piroi et al. 2012.

    >>> precision_inside(["A#2", "B#1", "A#1"], {"A#1": 1, "B#1": 1})
    0.75
    """
    return _mean_over_documents(_precision, ranked, judged, rel)


def _mean_over_documents(
    value: Callable[[Sequence[str], set[str]], float], ranked: Sequence[str], judged: Mapping[str, int], rel: int
) -> float:
    relevant = _by_document(name for name, grade in judged.items() if grade >= rel)
    returned = _by_document(ranked)
    values = [value(returned.get(document, []), set(passages)) for document, passages in relevant.items()]
    return sum(values) / len(values) if values else 0.0


def _by_document(names: Iterable[str]) -> dict[str, list[str]]:
    passages: dict[str, list[str]] = {}
    for name in names:
        if "#" in name:
            passages.setdefault(document_name(name), []).append(name)
    return passages


def _average_precision(returned: Sequence[str], relevant: set[str]) -> float:
    relevant_so_far, total = 0, 0.0
    for rank, name in enumerate(returned, start=1):
        if name in relevant:
            relevant_so_far += 1
            total += relevant_so_far / rank
    return total / len(relevant)


def _precision(returned: Sequence[str], relevant: set[str]) -> float:
    return sum(name in relevant for name in returned) / len(returned) if returned else 0.0
