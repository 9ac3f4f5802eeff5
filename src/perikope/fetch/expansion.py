"""Pseudo-relevance feedback: words that the best documents add to the query, from the token streams of the index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from perikope.core.arrays import Floats
from perikope.core.errors import UsageError
from perikope.core.grammar import Call, parse
from perikope.core.parameters import Grid, Range, bind, parameters_of
from perikope.core.registry import Registry
from perikope.fetch import Candidates
from perikope.index.layout import STOP
from perikope.index.reader import Snapshot
from perikope.query.terms import Query

Count = Annotated[int, Range(1, 1000), Grid((3, 5, 10, 20))]
FeedbackDocuments = Annotated[Count, "Number of top-ranked documents, or passages, that terms are taken from."]
ExpansionTerms = Annotated[Count, "Number of terms with the largest weights that are added to the query."]


@dataclass(frozen=True, slots=True)
class Feedback:
    """The terms of the feedback documents, shape (documents, terms), with their statistics."""

    terms: tuple[str, ...]
    frequency: Floats
    length: Floats
    score: Floats
    occurrences: Floats
    """Occurrences of each term in the collection."""
    documents: int
    """Number of documents in the collection."""


Expansion = Callable[..., Query]
EXPANSIONS: Registry[Expansion] = Registry("expansion", "perikope.fetch")


def expansion(function: Expansion) -> Expansion:
    """Register a function as an expansion under its name."""
    return EXPANSIONS.add(function.__name__, function)


@dataclass(frozen=True, slots=True)
class Expander:
    """An expansion with its parameters."""

    function: Expansion
    parameters: dict[str, object]

    @property
    def depth(self) -> int:
        """Number of the best documents that it uses."""
        depth = self.parameters["documents"]
        assert isinstance(depth, int)
        return depth

    def __call__(self, query: Query, feedback: Feedback) -> Query:
        """The query expanded with words of the feedback documents."""
        return self.function(query, feedback, **self.parameters)


def parse_expansion(text: str) -> Expander:
    """The expansion that a text such as `bo1(terms=20)` names."""
    call = parse(text)
    function = EXPANSIONS[call.name]
    declared = parameters_of(function)
    if call.positional or call.cutoff is not None:
        raise UsageError(f"{call.name} takes its parameters by name: {', '.join(declared)}")
    return Expander(function, bind(call.name, declared, call.arguments))


def expand(snapshot: Snapshot, query: Query, candidates: Candidates, text: str) -> Query:
    """The query with the words that an expansion, named as `bo1(terms=20)`, takes from the best candidates."""
    expander = parse_expansion(text)
    return expander(query, _feedback(snapshot, candidates, expander.depth)) if len(candidates) else query


def canonical(text: str) -> str:
    """The expansion that a text names, with all its parameters.

    >>> canonical("bo1")
    'bo1(documents=3,terms=10)'
    """
    call = parse(text)
    return str(Call(call.name, bind(call.name, parameters_of(EXPANSIONS[call.name]), call.arguments)))


@expansion
def bo1(query: Query, feedback: Feedback, *, documents: FeedbackDocuments = 3, terms: ExpansionTerms = 10) -> Query:
    """Bo1, Bose-Einstein statistics, as in Terrier; the weighting has no parameter.

    `w(t) = tf_x log2((1 + P) / P) + log2(1 + P)`, tf_x the frequency in the feedback documents and `P = cf / N`. The
    best terms get `qtf / qtf_max + w(t) / w_max`, w_max the same with the largest weight's tf_x for cf. A term that is
    not the query's must be in two feedback documents. Amati, Probability models for information retrieval based on
    divergence from randomness, 2003.
    """
    frequency = feedback.frequency.sum(axis=0)
    weight = _bo1(frequency, feedback.occurrences / feedback.documents)
    in_query = np.isin(feedback.terms, query.terms)
    spread = (feedback.frequency > 0).sum(axis=0) >= min(2, len(feedback.length))
    chosen = _best(feedback, np.where(in_query | spread, weight, -np.inf), terms)
    if not chosen:
        return query
    largest = _bo1(frequency[chosen[0]], frequency[chosen[0]] / feedback.documents)
    highest = max(query.weights)
    weights = {term: value / highest for term, value in zip(query.terms, query.weights, strict=True)}
    for i in chosen:
        weights[feedback.terms[i]] = weights.get(feedback.terms[i], 0.0) + float(weight[i] / largest)
    return Query(query.text, tuple(weights), tuple(weights.values()))


def _bo1(frequency: Floats | float, expected: Floats | float) -> Floats:
    result: Floats = frequency * np.log2((1 + expected) / expected) + np.log2(1 + expected)
    return result


@expansion
def rm3(
    query: Query,
    feedback: Feedback,
    *,
    documents: FeedbackDocuments = 10,
    terms: ExpansionTerms = 10,
    original: Annotated[float, Range(0, 1), Grid(step=0.1), "Weight λ of the original query; the added terms have weight 1 - λ."] = 0.5,
) -> Query:
    """RM3: the relevance model of the feedback documents, mixed with the query.

    `P(t|R) = Σ_d s(d)/Σs · tf/l_d` over the best terms, brought to sum 1; then `λ · q + (1 - λ) · R`, λ = `original`, q
    brought to sum 1. Abdul-Jaleel et al., UMass at TREC 2004; the defaults are Anserini's.
    """
    # Scores of some models can be negative; such documents get no weight.
    score = np.maximum(feedback.score, 0)
    share = score / score.sum() if score.sum() > 0 else np.full(score.size, 1 / score.size)
    relevance = share @ (feedback.frequency / np.maximum(feedback.length, 1)[:, None])
    chosen = _best(feedback, relevance, terms)
    total = float(relevance[chosen].sum())
    weights = {term: original * value / sum(query.weights) for term, value in zip(query.terms, query.weights, strict=True)}
    for i in chosen:
        weights[feedback.terms[i]] = weights.get(feedback.terms[i], 0.0) + float((1 - original) * relevance[i] / total)
    positive = {term: value for term, value in weights.items() if value > 0}
    return Query(query.text, tuple(positive), tuple(positive.values()))


def _best(feedback: Feedback, weight: Floats, terms: int) -> list[int]:
    """The terms of largest weight; equal ones in the order of their names."""
    order = sorted(np.flatnonzero(weight > 0).tolist(), key=lambda i: (-weight[i], feedback.terms[i]))
    return order[:terms]


def _feedback(snapshot: Snapshot, candidates: Candidates, depth: int) -> Feedback:
    counts: list[dict[str, int]] = []
    lengths = []
    for document in candidates.documents[:depth].tolist():
        segment, local = snapshot.locate(document)
        numbers, frequency = np.unique(segment.tokens(local), return_counts=True)
        counts.append({segment.terms.text(int(n)): int(f) for n, f in zip(numbers, frequency, strict=True) if n != STOP})
        lengths.append(float(segment["document.length"][local]))
    terms = tuple(sorted({term for count_of_term in counts for term in count_of_term}))
    return Feedback(
        terms,
        np.array([[count_of_term.get(term, 0) for term in terms] for count_of_term in counts], np.float64).reshape(len(counts), len(terms)),
        np.array(lengths),
        candidates.scores[:depth],
        snapshot.statistics(terms).collection_frequency.astype(np.float64),
        snapshot.totals.documents,
    )
