"""Measures of documents, computed from ranked passages. Documents are ranked in the order of their first passages.

A document is relevant if the document itself, or one of its passages, is judged relevant. The names of measures that
also exist for passages begin with `doc`: `Recall@100` is about the first 100 passages, `docRecall@100` about the first
100 documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from perikope.core.names import document_name
from perikope.core.parameters import Range
from perikope.evaluation.measures.declaration import measure
from perikope.evaluation.measures.ranked import average_precision, recall, reciprocal_rank

Rel = Annotated[int, Range(1), "Lowest grade that counts as relevant."]


@measure("PRES", ranks_documents=True)
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


@measure("docRecall", aliases=("docR",), ranks_documents=True)
def recall_of_documents(ranked: Sequence[str], judged: Mapping[str, int], cutoff: int | None = None, *, rel: Rel = 1) -> float:
    """Share of all relevant documents that are among the first k documents: `relevant documents@k / R`.

    Recall@100 in the tables of the CLEF-IP passage task. Piroi et al. 2012.

    >>> recall_of_documents(["A#2", "A#3", "B#1"], {"A#1": 1, "B#1": 1, "C#4": 1, "D#1": 1}, 2)
    0.5
    """
    return recall(ranked_documents(ranked), judged_documents(judged), cutoff, rel=rel)


@measure("docAP", aliases=("docMAP",), ranks_documents=True)
def average_precision_of_documents(ranked: Sequence[str], judged: Mapping[str, int], cutoff: int | None = None, *, rel: Rel = 1) -> float:
    """Average precision of the ranked documents, not of their passages: `Σ_i rel_i P@i / R` over documents.

    MAP@100 in the tables of the CLEF-IP passage task. Piroi et al. 2012.

    >>> average_precision_of_documents(["C#1", "A#2", "A#3"], {"A#1": 1}, 100)
    0.5
    """
    return average_precision(ranked_documents(ranked), judged_documents(judged), cutoff, rel=rel)


@measure("docRR", aliases=("docMRR",), ranks_documents=True)
def reciprocal_rank_of_documents(ranked: Sequence[str], judged: Mapping[str, int], cutoff: int | None = None, *, rel: Rel = 1) -> float:
    """One over the rank of the first relevant document among documents, 0 if there is none: `1 / rank`.

    >>> reciprocal_rank_of_documents(["C#1", "C#2", "A#3"], {"A#1": 1})
    0.5
    """
    return reciprocal_rank(ranked_documents(ranked), judged_documents(judged), cutoff, rel=rel)


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
