"""The fetch models, which rank documents.

The contribution of a term to the score of a document is a sum of products of two factors. The first depends on the
statistics of the term in the collection (`of_term`). The second depends on the frequency of the term in the document
and on the document's length (`of_document`). Document factors do not depend on the query, so they are computed once, in
tables. Query likelihood has no such factors. Its contribution depends on the term and its frequency, but not on the
length (`by_frequency`), so there is one table per term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np

from perikope.core.arrays import Array, Floats, Integers
from perikope.core.errors import UsageError
from perikope.core.grammar import Call, parse
from perikope.core.parameters import Parameter, Range, bind, call, parameters_of
from perikope.core.registry import Registry
from perikope.fetch import weighting

Factors = weighting.Factors


@dataclass(frozen=True, slots=True)
class Terms:
    """Statistics of the query terms in the collection (one value per term), and of the collection.

    If the collection is counted by language, `documents` and `tokens` have one value per term too: the counts in the
    language of the term.
    """

    document_frequency: Array
    collection_frequency: Array
    documents: int | Array
    tokens: float | Array
    """The number of tokens of all documents. It may be fractional if parts are weighted."""
    length: float | None = None
    """The average number of tokens per document, in all languages; None for `tokens / documents`."""

    @property
    def average_length(self) -> float:
        """The average number of tokens per document."""
        if self.length is not None:
            return self.length
        assert not isinstance(self.documents, np.ndarray)
        assert not isinstance(self.tokens, np.ndarray)
        return self.tokens / max(self.documents, 1)

    @property
    def share_of_collection(self) -> Floats:
        """The share of each term in the tokens of the collection, P(t|C)."""
        share: Floats = self.collection_frequency / np.maximum(self.tokens, 1)
        return share

    def at(self, terms: Integers | tuple[slice, None]) -> Terms:
        """The statistics at these indices of the arrays: of terms with these numbers, which may repeat."""
        documents = self.documents[terms] if isinstance(self.documents, np.ndarray) else self.documents
        tokens = self.tokens[terms] if isinstance(self.tokens, np.ndarray) else self.tokens
        return Terms(self.document_frequency[terms], self.collection_frequency[terms], documents, tokens, self.length)


@dataclass(frozen=True, slots=True)
class FetchDefinition:
    """The functions of a fetch model: either `of_term` and `of_document`, or `by_frequency`."""

    name: str
    document: Callable[..., Any]
    """The function whose docstring documents the model."""
    of_term: Callable[..., Factors] | None = None
    """The factors of terms, from `Terms`."""
    of_document: Callable[..., Factors] | None = None
    """The factors of documents, from term frequency, document length and average length."""
    by_frequency: Callable[..., Floats] | None = None
    """The contributions of terms, from term frequency and `Terms`."""
    background: Callable[..., Floats] | None = None
    """The part of the score that depends only on the length of the document, per unit of query weight."""
    finish: Callable[..., Floats] | None = None
    """The final scores, from the sums of contributions. The function must not change the order of documents."""

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """All functions of the model. Each of them may declare parameters."""
        functions = (self.of_document, self.of_term, self.by_frequency, self.background, self.finish)
        return [function for function in functions if function is not None]

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of all functions of the model, by name."""
        return {name: parameter for function in self.functions for name, parameter in parameters_of(function).items()}


FETCH_MODELS: Registry[FetchDefinition] = Registry("fetch model", "perikope.fetch")


@dataclass(frozen=True, slots=True)
class FetchModel:
    """A fetch model with the values of its parameters."""

    definition: FetchDefinition
    parameters: dict[str, object]

    def of_term(self, terms: Terms) -> Factors:
        """The factors that depend on the term, each with one value per term; one factor of 1 if the model has none."""
        return (
            call(self.definition.of_term, [terms], self.parameters)
            if self.definition.of_term
            else (np.ones(terms.document_frequency.shape),)
        )

    def of_document(self, frequency: Array, length: Array, average_length: float) -> Factors:
        """The factors that depend on the document, for arrays of term frequencies and document lengths."""
        assert self.definition.of_document is not None
        result: Factors = call(self.definition.of_document, [frequency, length, average_length], self.parameters)
        return result

    def by_frequency(self, frequency: Array, terms: Terms) -> Floats:
        """The contribution of terms to a score, for models in which it does not depend on the document's length."""
        assert self.definition.by_frequency is not None
        result: Floats = call(self.definition.by_frequency, [frequency, terms], self.parameters)
        return result

    def contribution(self, frequency: Array, length: Array, terms: Terms) -> Floats:
        """The contribution of each posting to the score of its document.

        `frequency`, `length` and the arrays of `terms` have one value per posting.
        """
        if self.definition.by_frequency is not None:
            return self.by_frequency(frequency, terms)
        total = np.zeros(frequency.shape)
        for factor, other in zip(self.of_term(terms), self.of_document(frequency, length, terms.average_length), strict=True):
            total = total + factor * other
        return total

    def background(self, length: Array, weight: float) -> Floats | None:
        """The part of each score that depends only on the document's length; None if the model has no such part.

        `weight` is the sum of the weights of the query terms.
        """
        return None if self.definition.background is None else weight * call(self.definition.background, [length], self.parameters)

    def finish(self, sums: Floats, weights: Floats, terms: Terms) -> Floats:
        """The final scores of documents, from the sums of their contributions."""
        return sums if self.definition.finish is None else call(self.definition.finish, [sums, weights, terms], self.parameters)

    def __str__(self) -> str:
        return str(Call(self.definition.name, self.parameters))


def fetch_model(**functions: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that registers a fetch model under the name of the decorated function.

    The decorated function is the model's `of_document` if `of_term` is given, else its `by_frequency`. The other
    functions are given by keyword; see `FetchDefinition`.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        own = "of_document" if "of_term" in functions else "by_frequency"
        FETCH_MODELS.add(function.__name__, FetchDefinition(function.__name__, function, **{own: function}, **functions), function)
        return function

    return register


def parse_fetch_model(text: str) -> FetchModel:
    """Parse a fetch model in the notation `name(parameter=value, …)`.

    >>> str(parse_fetch_model("bm25(k1=0.6,b=0.2)"))
    'bm25(k1=0.6,b=0.2,idf="lucene")'
    """
    return _parsed(text, FETCH_MODELS.version)


@lru_cache(maxsize=256)
def _parsed(text: str, version: int) -> FetchModel:
    """Parse a fetch model as `parse_fetch_model` does. Results are cached until the registry changes."""
    named = parse(text)
    definition = FETCH_MODELS[named.name]
    if named.cutoff is not None:
        cutoff = text[max(text.rfind("@"), text.rfind("[")) :].strip()
        raise UsageError(f"the fetch model {named.name} has no cutoff; remove {cutoff:.20} at the end")
    if not definition.parameters and (named.positional or named.arguments):
        raise UsageError(f"the fetch model {named.name} has no parameters; write {named.name}")
    if named.positional:
        names = ", ".join(definition.parameters)
        raise UsageError(f"write each parameter of {named.name} as name=value; possible names: {names}")
    return FetchModel(definition, bind(named.name, definition.parameters, named.arguments))


Idf = Annotated[Literal["lucene", "robertson"], "Formula of idf: Lucene's, which is never negative, or Robertson's original."]


def _inverse_frequency(terms: Terms, *, idf: Idf = "lucene") -> Factors:
    rarity = weighting.idf if idf == "lucene" else weighting.robertson_idf
    return (rarity(terms.documents, terms.document_frequency),)


@fetch_model(of_term=_inverse_frequency)
def bm25(
    frequency: Array,
    length: Array,
    average_length: float,
    *,
    k1: Annotated[float, Range(0, 1000), "Saturation of term frequency; larger values give more weight to repeated terms."] = 1.2,
    b: Annotated[float, Range(0, 1), "Length normalisation, from 0 (none) to 1 (proportional to the document's length)."] = 0.75,
) -> Factors:
    """BM25 over whole documents.

    `idf(t) · tf (k1 + 1) / (tf + k1 (1 - b + b l_d / l_avg))`

    The idf is Lucene's, `ln(1 + (N - N_t + 0.5) / (N_t + 0.5))`, or Robertson's, `ln((N - N_t + 0.5) / (N_t + 0.5))`.
    Robertson's is negative for terms that more than half of the documents contain. N is the number of documents, and
    N_t the number of documents that contain the term.
    """
    return (weighting.bm25(frequency, length, average_length, k1, b),)


LengthNormalisation = Annotated[
    float,
    Range(0, 1000, low_open=True),
    "Length normalisation c; larger values reduce the effect of the document's length.",
]


def _of_poisson(terms: Terms) -> Factors:
    return weighting.pl2_of_term(terms.collection_frequency, terms.documents)


@fetch_model(of_term=_of_poisson)
def pl2(frequency: Array, length: Array, average_length: float, *, c: LengthNormalisation = 1.0) -> Factors:
    """PL2 of the divergence-from-randomness family.

    `(t log2(1/f) + f log2(e) + log2(2πt)/2 + t (log2(t) - log2(e))) / (t + 1)` with `t = tf log2(1 + c l_avg / l)` and
    `f = cf / N`.
    """
    return weighting.pl2_of_unit(frequency, length, average_length, c)


def _of_hypergeometric(terms: Terms) -> Factors:
    return weighting.dph_of_term(terms.collection_frequency, terms.documents)


@fetch_model(of_term=_of_hypergeometric)
def dph(frequency: Array, length: Array, average_length: float) -> Factors:
    """DPH, the parameter-free model of the divergence-from-randomness family.

    `(1 - f)² / (tf + 1) · (tf log2(tf l_avg/l · N/cf) + log2(2π tf (1 - f))/2)` with `f = tf / l`.
    """
    return weighting.dph_of_unit(frequency, length, average_length)


Mu = Annotated[float, Range(0, 1e9, low_open=True), "Dirichlet smoothing μ, in tokens; larger values rely more on the collection."]


def _smoothing(length: Array, *, mu: Mu = 1000.0) -> Floats:
    result: Floats = np.log(mu / (length + mu))
    return result


@fetch_model(background=_smoothing)
def lm(frequency: Array, terms: Terms, *, mu: Mu = 1000.0) -> Floats:
    """Query likelihood with Dirichlet smoothing, without the summands that are the same for all documents.

    `Σ_t w_t (ln(1 + tf / (μ P(t|C))) + ln(μ / (l_d + μ)))` over the query terms that occur in the collection.
    """
    return weighting.dirichlet(frequency, terms.collection_frequency, terms.tokens, mu)


def _similarity(sums: Floats, weights: Floats, terms: Terms) -> Floats:
    seen = terms.collection_frequency > 0
    total = float(weights[seen].sum())
    prior = np.log(terms.share_of_collection[seen])
    result: Floats = np.exp((sums + float(np.sum(weights[seen] * prior))) / max(total, 1e-300))
    return result


@fetch_model(background=_smoothing, finish=_similarity)
def sim(frequency: Array, terms: Terms, *, mu: Mu = 1000.0) -> Floats:
    """The similarity of Albarede 2021: 1 / perplexity of the query under the smoothed language model of the document.

    `Sim(q, d) = exp(Σ_t P(t|q) ln((tf + μ P(t|C)) / (l_d + μ)))` over the query terms that occur in the collection.
    The order of documents is the same as with `lm`. Scores are between 0 and 1.
    """
    return weighting.dirichlet(frequency, terms.collection_frequency, terms.tokens, mu)
