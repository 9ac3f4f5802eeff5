"""The models that rank documents: each gives what one term adds to the documents that hold it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from perikope.grammar import Call, parse
from perikope.parameters import Parameter, Range, bind, parameters_of
from perikope.registry import Registry
from perikope.weighting import bm25 as saturation
from perikope.weighting import idf

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Term:
    """A query term as fetch sees it: its postings in one segment and its statistics over the collection."""

    frequency: NDArray[Any]
    """In each document that holds it."""
    length: NDArray[Any]
    """Of each of these documents."""
    document_frequency: int
    collection_frequency: int
    documents: int
    average_length: float


Contribution = Callable[..., Floats]
FETCH_MODELS: Registry[Contribution] = Registry("fetch model", "perikope.fetch")


@dataclass(frozen=True, slots=True)
class FetchModel:
    """A fetch model with its parameters."""

    name: str
    contribution: Contribution
    parameters: dict[str, object]

    def __call__(self, term: Term) -> Floats:
        """What the term adds to the score of each document that holds it."""
        return self.contribution(term, **self.parameters)

    def __str__(self) -> str:
        return str(Call(self.name, self.parameters))


def fetch_model(name: str) -> Callable[[Contribution], Contribution]:
    """Register a function as a fetch model."""
    return lambda function: FETCH_MODELS.add(name, function)


def parse_fetch_model(text: str) -> FetchModel:
    """The fetch model that a text names.

    >>> str(parse_fetch_model("bm25(k1=0.6,b=0.2)"))
    'bm25(k1=0.6,b=0.2)'
    """
    call = parse(text)
    function = FETCH_MODELS[call.name]
    declared: dict[str, Parameter] = parameters_of(function)
    return FetchModel(call.name, function, bind(call.name, declared, call.arguments))


@fetch_model("bm25")
def bm25(term: Term, *, k1: Annotated[float, Range(0, 1000)] = 1.2, b: Annotated[float, Range(0, 1)] = 0.75) -> Floats:
    """BM25 over whole documents, with Lucene's idf.

    `ln(1 + (N - N_t + 0.5) / (N_t + 0.5)) · tf (k1 + 1) / (tf + k1 (1 - b + b l_d / l_avg))`
    """
    weight = idf(term.documents, np.array(term.document_frequency))
    return weight * saturation(term.frequency, term.length, term.average_length, k1, b)
