"""Pseudo-relevance feedback: expand a query with words of the best documents or passages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import numpy as np

from perikope.core.arrays import Array, Floats, Integers
from perikope.core.errors import UsageError
from perikope.core.grammar import Call, parse
from perikope.core.parameters import Grid, Range, bind, parameters_of
from perikope.core.registry import Registry
from perikope.fetch import Candidates
from perikope.fetch.parts import Parts, occurrences_in_parts
from perikope.index.layout import STOP
from perikope.index.reader import CountOrCounts, Snapshot, of_terms
from perikope.index.segments import Segment
from perikope.patents.codes import CODE_FIELDS
from perikope.query.code_terms import code_weights
from perikope.query.terms import Query

Value = TypeVar("Value")

Count = Annotated[int, Range(1, 1000), Grid((3, 5, 10, 20))]
FeedbackDocuments = Annotated[Count, "Number of top-ranked documents, or passages, that terms are taken from."]
ExpansionTerms = Annotated[Count, "Number of terms with the largest weights that are added to the query."]


@dataclass(frozen=True, slots=True)
class Feedback:
    """The feedback documents (or passages) and their terms, with statistics."""

    terms: tuple[str, ...]
    """The distinct terms of all feedback documents."""
    frequency: Floats
    """Shape (documents, terms): the frequency of each term in each feedback document."""
    length: Floats
    """The length of each feedback document, in tokens."""
    score: Floats
    """The score of each feedback document."""
    occurrences: Floats
    """The number of occurrences of each term in the collection."""
    documents: CountOrCounts
    """The number of documents in the collection or, if it is counted by language, in the language of each term."""


Expansion = Callable[..., Query]
"""A function of a query, its `Feedback` and parameters that returns the expanded query."""
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
        """The number of best documents or passages that the expansion uses."""
        depth = self.parameters["documents"]
        assert isinstance(depth, int)
        return depth

    def __call__(self, query: Query, feedback: Feedback) -> Query:
        """The query expanded with words of the feedback documents."""
        return self.function(query, feedback, **self.parameters)


def parse_expansion(text: str) -> Expander:
    """Parse the name of an expansion with parameters, such as `bo1(terms=20)`."""
    call = parse(text)
    function = EXPANSIONS[call.name]
    declared = parameters_of(function)
    if call.positional or call.cutoff is not None:
        raise UsageError(f"write the parameters of {call.name} as name=value; it has {', '.join(declared)}")
    return Expander(function, bind(call.name, declared, call.arguments))


def expand(snapshot: Snapshot, query: Query, candidates: Candidates, text: str, parts: Parts | None = None) -> Query:
    """Expand a query with words of the best candidates, by an expansion such as `bo1(terms=20)`.

    If documents are ranked by parts, the words and codes of these parts are used, without the weights of the parts.
    Words in languages that are not searched are left out. Without candidates, the query is returned unchanged.
    """
    expander = parse_expansion(text)
    if not len(candidates):
        return query
    if parts:
        feedback = _feedback_of_parts(snapshot, query, candidates, expander.depth, parts)
    else:
        feedback = _feedback(snapshot, query, candidates, expander.depth)
    return expander(query, feedback)


def canonical(text: str) -> str:
    """The name of an expansion with the values of all its parameters.

    >>> canonical("bo1")
    'bo1(documents=3,terms=10)'
    """
    call = parse(text)
    return str(Call(call.name, bind(call.name, parameters_of(EXPANSIONS[call.name]), call.arguments)))


@expansion
def bo1(query: Query, feedback: Feedback, *, documents: FeedbackDocuments = 3, terms: ExpansionTerms = 10) -> Query:
    """Bo1, Bose-Einstein statistics, as in Terrier; the weighting has no parameter.

    The weight of a term is `w(t) = tf_x log2((1 + P) / P) + log2(1 + P)` with `P = cf / N`. Here tf_x is the frequency
    of t in all feedback documents, cf its frequency in the collection, and N the number of documents.

    A term of the new query has weight `qtf / qtf_max + w(t) / w_max`. The second summand is 0 for terms that are not
    among the best. w_max is `w` of the best term, computed with `P = tf_x / N`. A term that is not in the query must
    occur in at least two feedback documents, unless there is only one.

    Amati, Probability models for information retrieval based on divergence from randomness, 2003.
    """
    frequency = feedback.frequency.sum(axis=0)
    weight = _bo1(frequency, feedback.occurrences / feedback.documents)
    in_query = np.isin(feedback.terms, query.terms)
    spread = (feedback.frequency > 0).sum(axis=0) >= min(2, len(feedback.length))
    chosen = _best(feedback, np.where(in_query | spread, weight, -np.inf), terms)
    if not chosen:
        return query
    largest = _bo1(frequency[chosen[0]], frequency[chosen[0]] / of_terms(feedback.documents, np.array(chosen[0])))
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

    The relevance model is `P(t|R) = Σ_d s(d)/Σs · tf/l_d`, where s(d) is the score of a feedback document and l_d its
    length. Only the best terms are kept, and their values are normalised to sum 1. The weight of a term in the new
    query is `λ · P(t|q) + (1 - λ) · P(t|R)` with λ = `original`. P(t|q) are the weights of the query, normalised to
    sum 1.

    Abdul-Jaleel et al., UMass at TREC 2004; the defaults are Anserini's.
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
    """The column numbers of the `terms` terms with the largest positive weights; equal weights are ordered by term."""
    order = sorted(np.flatnonzero(weight > 0).tolist(), key=lambda i: (-weight[i], feedback.terms[i]))
    return order[:terms]


def terms_to_add(query: Query, counts: Sequence[Mapping[str, int]]) -> tuple[str, ...]:
    """The terms of feedback documents or passages that may expand a query, in order: those in a searched language."""
    terms = sorted({term for count_of_term in counts for term in count_of_term})
    if not query.languages:
        return tuple(terms)
    searched, own = frozenset(query.languages), frozenset(query.terms)
    return tuple(term for term in terms if term in own or ":" not in term or term.partition(":")[0] in searched)


def in_given_order(snapshot: Snapshot, documents: Integers, question: Callable[..., list[Value]], *given: Any) -> list[Value]:
    """The answers to a question about documents, one per document, in the order in which the documents are given."""
    order = np.argsort(documents, kind="stable")
    answers = [answer for _, of_shard in snapshot.ask_about(question, documents[order], *given) for answer in of_shard]
    return [answers[at] for at in np.argsort(order).tolist()]


def _read_documents(snapshot: Snapshot, documents: Integers) -> list[tuple[dict[str, int], float]]:
    """The frequency of each term in each document, and the length of each document."""
    located = map(snapshot.locate, documents.tolist())
    return [(_counts(segment, segment.tokens(local)), float(segment["document.length"][local])) for segment, local in located]


def _read_parts(snapshot: Snapshot, documents: Integers, parts: Parts) -> list[dict[str, int]]:
    """The frequency of each term and code in some parts of each document."""
    return [_counts_in_parts(*snapshot.locate(document), parts) for document in documents.tolist()]


def _feedback(snapshot: Snapshot, query: Query, candidates: Candidates, depth: int) -> Feedback:
    read = in_given_order(snapshot, candidates.documents[:depth], _read_documents)
    counts, lengths = [count_of_term for count_of_term, _ in read], [length for _, length in read]
    terms = terms_to_add(query, counts)
    occurrences = snapshot.statistics(terms).collection_frequency.astype(np.float64)
    return _feedback_with(counts, terms, np.array(lengths), occurrences, candidates, _documents(snapshot, query, terms))


def _feedback_of_parts(snapshot: Snapshot, query: Query, candidates: Candidates, depth: int, parts: Parts) -> Feedback:
    counts = in_given_order(snapshot, candidates.documents[:depth], _read_parts, parts)
    terms = terms_to_add(query, counts)
    lengths = np.array([float(sum(count_of_term.values())) for count_of_term in counts])
    occurrences = occurrences_in_parts(snapshot, terms, dict.fromkeys(parts, 1.0))
    return _feedback_with(counts, terms, lengths, occurrences, candidates, _documents(snapshot, query, terms))


def _documents(snapshot: Snapshot, query: Query, terms: Sequence[str]) -> CountOrCounts:
    """The number of documents in the collection or, if it is counted by language, in the language of each term."""
    return snapshot.totals_of(terms)[0] if query.languages else snapshot.totals.documents


def _feedback_with(
    counts: Sequence[dict[str, int]],
    terms: tuple[str, ...],
    lengths: Floats,
    occurrences: Floats,
    candidates: Candidates,
    documents: CountOrCounts,
) -> Feedback:
    frequency = np.array([[count_of_term.get(term, 0) for term in terms] for count_of_term in counts], np.float64)
    return Feedback(
        terms,
        frequency.reshape(len(counts), len(terms)),
        lengths,
        candidates.scores[: len(counts)],
        occurrences,
        documents,
    )


def _counts(segment: Segment, tokens: Array) -> dict[str, int]:
    """The frequency of each term among tokens, without stop words."""
    numbers, frequency = np.unique(tokens, return_counts=True)
    return {segment.terms.text(int(n)): int(f) for n, f in zip(numbers, frequency, strict=True) if n != STOP}


def _counts_in_parts(segment: Segment, local: int, parts: Parts) -> dict[str, int]:
    """The frequency of each term in the passages and titles of some parts of a document, and of each of its codes."""
    inside = np.zeros(int(segment["document.tokens"][local]), bool)
    first_span = int(segment["document.first_span"][local])
    passages, sections = segment.passages_of(local), segment.sections_of(local)
    titled = [section for section in sections if segment.row("section.title_span", section) >= 0]
    columns = (
        ("passage.span", "passage.first_token", "passage.end_token", passages),
        ("section.title_span", "section.title_first", "section.title_end", titled),
    )
    for span, first, end, numbers in columns:
        for number in numbers:
            if segment.label("part", first_span + int(segment[span][number])) in parts:
                inside[int(segment[first][number]) : int(segment[end][number])] = True
    codes = code_weights(segment.metadata(local), [part for part in parts if part in CODE_FIELDS], "full")
    return {**_counts(segment, segment.tokens(local)[inside]), **{term: int(count) for term, count in codes.items()}}
