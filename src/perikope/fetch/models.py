"""The models that rank documents: each gives what one term adds to the documents that hold it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from perikope import weighting
from perikope.errors import UsageError
from perikope.grammar import Call, parse
from perikope.parameters import Parameter, Range, bind, parameters_of
from perikope.registry import Registry

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
    tokens: int

    @property
    def average_length(self) -> float:
        """Of all documents of the collection."""
        return self.tokens / max(self.documents, 1)


Contribution = Callable[..., Floats]


@dataclass(frozen=True, slots=True)
class FetchDefinition:
    """A fetch model as written: what a term adds to the documents that hold it, and what each such document has besides."""

    name: str
    contribution: Contribution
    background: Contribution | None


FETCH_MODELS: Registry[FetchDefinition] = Registry("fetch model", "perikope.fetch")


@dataclass(frozen=True, slots=True)
class FetchModel:
    """A fetch model with its parameters."""

    definition: FetchDefinition
    parameters: dict[str, object]

    def __call__(self, term: Term) -> Floats:
        """What the term adds to the score of each document that holds it."""
        return self.definition.contribution(term, **self.parameters)

    def background(self, length: NDArray[Any], weight: float) -> Floats | float:
        """What documents of these lengths have whatever they hold, for a query whose terms weigh so much in all."""
        if self.definition.background is None:
            return 0.0
        return self.definition.background(length, weight, **self.parameters)

    def __str__(self) -> str:
        return str(Call(self.definition.name, self.parameters))


def fetch_model(name: str, *, background: Contribution | None = None) -> Callable[[Contribution], Contribution]:
    """Register a function as a fetch model."""

    def register(function: Contribution) -> Contribution:
        FETCH_MODELS.add(name, FetchDefinition(name, function, background))
        return function

    return register


def parse_fetch_model(text: str) -> FetchModel:
    """The fetch model that a text names.

    >>> str(parse_fetch_model("bm25(k1=0.6,b=0.2)"))
    'bm25(k1=0.6,b=0.2)'
    """
    call = parse(text)
    definition = FETCH_MODELS[call.name]
    declared: dict[str, Parameter] = parameters_of(definition.contribution)
    if call.positional or call.cutoff is not None:
        raise UsageError(f"{call.name} takes its parameters by name: {', '.join(declared) or 'none'}")
    return FetchModel(definition, bind(call.name, declared, call.arguments))


@fetch_model("bm25")
def bm25(term: Term, *, k1: Annotated[float, Range(0, 1000)] = 1.2, b: Annotated[float, Range(0, 1)] = 0.75) -> Floats:
    """BM25 over whole documents, with Lucene's idf.

    `ln(1 + (N - N_t + 0.5) / (N_t + 0.5)) · tf (k1 + 1) / (tf + k1 (1 - b + b l_d / l_avg))`
    """
    weight = weighting.idf(term.documents, np.array(term.document_frequency))
    return weight * weighting.bm25(term.frequency, term.length, term.average_length, k1, b)


@fetch_model("pl2")
def pl2(term: Term, *, c: Annotated[float, Range(0, 1000, low_open=True)] = 1.0) -> Floats:
    """PL2 of the divergence-from-randomness family (see `weighting.pl2`)."""
    return weighting.pl2(term.frequency, term.length, term.average_length, np.array(term.collection_frequency), term.documents, c)


@fetch_model("dph")
def dph(term: Term) -> Floats:
    """DPH, the parameter-free model of the divergence-from-randomness family (see `weighting.dph`)."""
    return weighting.dph(term.frequency, term.length, term.average_length, np.array(term.collection_frequency), term.documents)


def _unsmoothed(length: NDArray[Any], weight: float, *, mu: float) -> Floats:
    result: Floats = weight * np.log(mu / (length + mu))
    return result


@fetch_model("lm", background=_unsmoothed)
def lm(term: Term, *, mu: Annotated[float, Range(0, low_open=True)] = 1000.0) -> Floats:
    """Query likelihood with Dirichlet smoothing, less what is the same for all documents.

    `Σ_t w_t (ln(1 + tf / (μ P(t|C))) + ln(μ / (l_d + μ)))` over the terms that the collection holds: ranks as the likelihood, and as
    Albarede's `Sim(q, d)`, do.
    """
    return weighting.dirichlet(term.frequency, np.array(term.collection_frequency), term.tokens, mu)
