"""Models of the passage alone, of the passage with its document, and of the passage with its neighbours."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models import Signals, model
from perikope.browse.models.content import Mu, content_score, fetch_score, okapi, similarity
from perikope.browse.signals import Column, Node, min_max, share, share_within, sum_over_terms
from perikope.core.arrays import Floats
from perikope.core.errors import UsageError
from perikope.core.parameters import Grid, Range
from perikope.fetch.weighting import pl2 as poisson
from perikope.index.reader import Statistics
from perikope.kernels.passages import beside, sum_documents

# Grids hold the published choice only, as in `content`.
CountedIn = Annotated[
    Literal["collection", "candidates"],
    Grid(("collection",)),
    "Where statistics are counted: in the collection, or in the passages of the candidate documents.",
]
CarmelContent = Annotated[
    Literal["psg", "bm25", "lm"],
    Grid(("psg",)),
    "Score of a passage without context: tf·idf (psg), BM25 (bm25) or query likelihood (lm).",
]
Normalize = Annotated[
    Literal["candidates", "document", "minmax"],
    Grid(("candidates",)),
    "Normalisation of scores: by their sum over all candidates or over one document, or min-max.",
]
Lambda = Annotated[float, Range(0, 1), Grid(step=0.1), "Weight λ of the document's score; the passage has weight 1 - λ."]


def counted_in(matches: Matches, statistics: CountedIn) -> Matches:
    """The matches with the statistics of the collection, or with those of the candidates' passages.

    With `candidates`, each passage counts as a document of a small collection (Gobeill and Ruch 2012).
    """
    if statistics == "collection":
        return matches
    frequencies, terms = matches.in_passages, len(matches.query.terms)
    holding = np.bincount(frequencies.term, minlength=terms)
    occurrences = np.bincount(frequencies.term, frequencies.count, minlength=terms).astype(np.int64)
    totals = matches.passages, int(matches.length_of_passage.sum())
    return replace(matches, statistics=Statistics(*totals, *totals, holding, occurrences, holding, occurrences))


def okapi_signals(
    matches: Matches,
    *,
    k1: Annotated[
        float,
        Range(0, 1000),
        Grid((0.6, 0.9, 1.2, 1.6, 2.0)),
        "Saturation of term frequency; larger values give more weight to repeated terms.",
    ] = 1.2,
    b: Annotated[
        float, Range(0, 1), Grid((0.2, 0.4, 0.75)), "Length normalisation, from 0 (none) to 1 (proportional to the passage's length)."
    ] = 0.75,
    statistics: CountedIn = "collection",
) -> Signals:
    """BM25 with the statistics of passages."""
    return {"content": okapi(counted_in(matches, statistics), k1, b)}


@model(okapi_signals, matching_only=True)
def bm25(signals: Signals) -> Column:
    """BM25 of the passage alone, with the statistics of passages: no context.

    `Σ_t w_t · ln(1 + (P - P_t + 0.5) / (P_t + 0.5)) · tf (k1 + 1) / (tf + k1 (1 - b + b l_p / l_avg))`, with P passages
    in the collection or in the candidate documents, P_t of them with t, and w_t the frequency of t in the query
    (Robertson et al. 1994, with Lucene's idf).
    """
    return signals["content"]


def likelihood_signals(matches: Matches, *, mu: Mu = 1000.0, statistics: CountedIn = "collection") -> Signals:
    """The smoothed likelihood of the query, as the geometric mean over its terms."""
    return {"content": similarity(counted_in(matches, statistics), mu)}


@model(likelihood_signals, matching_only=True)
def lm(signals: Signals) -> Column:
    """Query likelihood of the passage alone, with Dirichlet smoothing: no context.

    `exp(Σ_t P(t|q) ln((tf + μ P(t|C)) / (l_p + μ)))`, which ranks as the likelihood does and is not negative; P(t|C) is
    counted over the collection, titles included, or over the passages of the candidate documents (Zhai and Lafferty
    2001).
    """
    return signals["content"]


def poisson_signals(
    matches: Matches,
    *,
    c: Annotated[
        float,
        Range(0, 1000, low_open=True),
        Grid((0.5, 1.0, 2.0, 5.0, 10.0)),
        "Length normalisation c; larger values reduce the effect of the passage's length.",
    ] = 1.0,
    statistics: CountedIn = "collection",
) -> Signals:
    """PL2 with the statistics of passages."""
    counted = counted_in(matches, statistics)
    frequencies, counts = counted.in_passages, counted.statistics
    average = counts.passage_tokens / max(counts.passages, 1)
    occurrences = counts.passage_collection_frequency[frequencies.term]
    length = counted.length_of_passage[frequencies.unit]
    factors = {
        "weight in the query": counted.weights[frequencies.term],
        "PL2 of the term": poisson(frequencies.count, length, average, occurrences, counts.passages, c),
    }
    return {"content": sum_over_terms("PL2 of the passage", counted.query.terms, frequencies, factors)}


@model(poisson_signals, matching_only=True)
def pl2(signals: Signals) -> Column:
    """PL2 of the passage alone, with the statistics of passages: no context.

    `Σ_t w_t · (n log2(1/f) + f log2(e) + log2(2πn)/2 + n (log2(n) - log2(e))) / (n + 1)` with
    `n = tf log2(1 + c l_avg / l_p)` and `f` the mean number of occurrences of t per passage, in the collection or in
    the candidate documents. Uninformative words have a negative weight (Amati and van Rijsbergen 2002; Gobeill and Ruch
    2012 rank passages with it).
    """
    return signals["content"]


def tf_idf_signals(matches: Matches) -> Signals:
    """The tf·idf score of Carmel 2013."""
    return {"content": content_score(matches, "passage", "psg")}


@model(tf_idf_signals, matching_only=True)
def psg(signals: Signals) -> Column:
    """tf·idf of the passage alone: no context.

    `psg(p) = Σ_{t ∈ q ∩ p} ln(occ(t, p) + 1) · ln(N / N_t)`, with N documents in the collection, N_t of them with t
    (Carmel, Shtok and Kurland 2013, equation 1).
    """
    return signals["content"]


def normalized(matches: Matches, passage: Column, normalize: Normalize) -> Signals:
    """A score of passages and the fetch score of their documents, normalised so that they can be mixed.

    The paper's equation divides by the sum over the passages of the same document (`document`). That ranks documents
    with a single matching passage first and contradicts the paper's results; the sum over all candidates agrees with
    them. If fetch scores are negative (log-likelihoods, runs of other systems), the smallest is subtracted first.
    """
    document = fetch_score(matches)
    if normalize == "minmax":
        return {"passage": min_max(passage), "document": min_max(document).at(matches.document_of_passage)}
    if normalize == "document":
        within = share_within(passage, matches.document_of_passage, matches.documents)
    else:
        # Summed document by document and sorted: the order of documents is arbitrary and must not change the last bit.
        total = float(np.sort(sum_documents(passage.values, matches.first_passage_of_document)).sum())
        within = passage.affine(f"{passage.label} ÷ its sum over all", 1 / total if total else 0.0, 0.0)
    return {"passage": within, "document": share(document).at(matches.document_of_passage)}


def passage_and_document(matches: Matches, *, content: CarmelContent = "psg", normalize: Normalize = "candidates") -> Signals:
    """The score of the passage without context and the fetch score of its document, each normalised."""
    return normalized(matches, content_score(matches, "passage", content), normalize)


@model(passage_and_document)
def psg_doc(signals: Signals, *, lam: Lambda = 0.9) -> Column:
    """The tf·idf of the passage mixed with the score of its document.

    `psgDoc(p) = (1 - λ) · psg(p) / Σ psg + λ · doc(d) / Σ doc`, with doc the fetch score of the document, minus the
    smallest fetch score if that is negative (Carmel, Shtok and Kurland 2013, equation 2). With `normalize=candidates`
    sums are over all candidates. With `document`, the sum of psg is over the same document, as in the paper's equation.
    With `minmax`, `(x - min) / (max - min)` replaces both quotients.
    """
    return (1 - lam) * signals["passage"] + lam * signals["document"]


def passage_and_neighbors(
    matches: Matches,
    *,
    neighbors: Annotated[int, Range(1, 100), Grid((1,)), "Number of neighbouring passages on each side."] = 1,
    decay: Annotated[float, Range(0, 1, low_open=True), Grid((0.5,)), "Weight of each neighbour relative to the next nearer one."] = 0.5,
    content: CarmelContent = "psg",
    normalize: Normalize = "candidates",
) -> Signals:
    """The signals of `psg_doc`, for the passage and for the passages before (left) and after (right) it."""
    matches.require_passages("psg_neighbor")
    signals = passage_and_document(matches, content=content, normalize=normalize)
    # The paper has one neighbour per side and says only that weights fall with distance; here, by the factor `decay`.
    weights = decay ** np.arange(neighbors)
    weights = weights / weights.sum()
    beside = {
        f"{side} {name}": _beside(matches, column, side, step, weights)
        for side, step in (("left", -1), ("right", 1))
        for name, column in signals.items()
    }
    return {**signals, **beside}


def _beside(matches: Matches, column: Column, side: str, step: int, weights: Floats) -> Column:
    """The weighted mean over the passages on one side in the same document; a missing passage counts 0."""
    document = matches.document_of_passage
    values: Floats = beside(column.values, matches.first_passage_of_document, step, weights)
    label = f"{column.label}, of the passages on the {side}"

    def explain(row: int) -> Node:
        nodes = []
        for distance, weight in enumerate(weights.tolist(), 1):
            other = row + step * distance
            if 0 <= other < matches.passages and document[other] == document[row]:
                value = weight * float(column.values[other])
                nodes.append(Node(f"{distance} to the {side}", value, "affine", (column.explain(other),), weight))
        return Node(label, float(values[row]), "sum", tuple(nodes)) if nodes else Node(f"{label}: there are none", 0.0)

    return Column(label, values, explain)


@model(passage_and_neighbors)
def psg_neighbor(
    signals: Signals,
    *,
    left: Annotated[float, Range(0, 1), Grid(step=0.25), "Weight λl of the passages before the passage."] = 0.25,
    right: Annotated[float, Range(0, 1), Grid(step=0.25), "Weight λr of the passages after it; λl + λr is at most 1."] = 0.25,
    lam: Lambda = 0.9,
) -> Column:
    """The passage mixed with its document, and then with its neighbours.

    `psgNeighbor(p) = (1 - λl - λr) · psgDoc(p) + λl · psgDoc(p_left) + λr · psgDoc(p_right)`. Of several neighbours on
    one side, each has `decay` times the weight of the next nearer one, and their weights sum to λl or λr. A missing
    neighbour counts 0 (Carmel, Shtok and Kurland 2013, equation 3).
    """
    if left + right > 1 + 1e-9:
        raise UsageError(f"psg_neighbor: left={left:g} and right={right:g} add up to more than 1; reduce one of them")

    def mixed(side: str, label: str) -> Column:
        return ((1 - lam) * signals[f"{side}passage"] + lam * signals[f"{side}document"]).named(label)

    neighbors = left * mixed("left ", "psgDoc on the left") + right * mixed("right ", "psgDoc on the right")
    return (1 - left - right) * mixed("", "psgDoc of the passage") + neighbors
