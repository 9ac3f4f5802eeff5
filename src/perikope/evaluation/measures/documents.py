"""Measures of documents, computed from ranked passages. Documents are ranked in the order of their first passages.

A document is relevant if the document itself, or one of its passages, is judged relevant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from perikope.core.names import document_name
from perikope.core.parameters import Range
from perikope.evaluation.measures.declaration import measure

Rel = Annotated[int, Range(1), "Lowest grade that counts as relevant."]


@measure("PRES")
def patent_retrieval_evaluation_score(ranked: Sequence[str], judged: Mapping[str, int], cutoff: int = 100, *, rel: Rel = 1) -> float:
    """Patent retrieval evaluation score: recall among the first n documents, combined with the ranks of relevant ones.

    The value is `1 - (Σ_i r_i / R - (R + 1) / 2) / n`, where r_i are the ranks of the R relevant documents. The m
    relevant documents among the first n have their ranks. The other relevant documents get the ranks n + m + 1 … n + R.
    Magdy and Jones 2010.

    >>> patent_retrieval_evaluation_score(["A#2", "B#1", "A#1"], {"A#1": 1, "C#4": 1}, 10)
    0.5
    """
    relevant = {document for document, grade in judged_documents(judged).items() if grade >= rel}
    if not relevant:
        return 0.0
    documents = ranked_documents(ranked)[:cutoff]
    ranks = [rank for rank, document in enumerate(documents, start=1) if document in relevant]
    missed = range(cutoff + len(ranks) + 1, cutoff + len(relevant) + 1)
    return 1 - ((sum(ranks) + sum(missed)) / len(relevant) - (len(relevant) + 1) / 2) / cutoff


def ranked_documents(ranked: Iterable[str]) -> list[str]:
    """The documents of ranked passages, in the order of their first passages.

    >>> ranked_documents(["A#2", "B#1", "A#1"])
    ['A', 'B']
    """
    return list(dict.fromkeys(map(document_name, ranked)))


def judged_documents(judged: Mapping[str, int]) -> dict[str, int]:
    """The grade of each judged document: the highest grade of the document and its passages.

    >>> judged_documents({"A#1": 0, "A#2": 2, "B": 1})
    {'A': 2, 'B': 1}
    """
    grades: dict[str, int] = {}
    for name, grade in judged.items():
        document = document_name(name)
        grades[document] = max(grade, grades.get(document, grade))
    return grades
