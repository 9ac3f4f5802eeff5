"""Models of the passage alone, of the passage with its document, and of the passage with its neighbours."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from perikope.browse.bounds import HeldTerms, ScoreBound
from perikope.browse.languages import rows_by_language
from perikope.browse.matches import Matches
from perikope.browse.models import Signals, model
from perikope.browse.models.content import Mu, background, content_score, fetch_score, okapi, similarity
from perikope.browse.signals import Column, Node, min_max, share, share_within, sum_over_terms
from perikope.core.arrays import Floats
from perikope.core.errors import UsageError
from perikope.core.parameters import Grid, Range
from perikope.fetch.weighting import idf
from perikope.fetch.weighting import pl2 as poisson
from perikope.index.reader import CountOrCounts, Statistics, of_terms
from perikope.kernels.best_passages import SaturatedTerms
from perikope.kernels.passages import beside, sum_documents

# Grids contain only the published choice; users who want another one name it.
CountedIn = Annotated[
    Literal["collection", "candidates"],
    Grid(("collection",)),
    "Texts over which statistics are computed: the whole collection, or the passages of the candidate documents.",
]
CarmelContent = Annotated[
    Literal["psg", "bm25", "lm"],
    Grid(("psg",)),
    "Score of a passage without context: tf·idf (psg), BM25 (bm25) or query likelihood (lm).",
]
Normalize = Annotated[
    Literal["candidates", "document", "minmax"],
    Grid(("candidates",)),
    "How scores are normalised: divided by their sum over all candidates or over one document, or min-max.",
]
Lambda = Annotated[float, Range(0, 1), Grid(step=0.1), "Weight λ of the document's score; the passage has weight 1 - λ."]


def counted_in(matches: Matches, statistics: CountedIn) -> Matches:
    """The matches with the statistics of the collection, or with statistics computed over the candidates' passages.

    With `candidates`, the passages of the candidate documents serve as a small collection, in which each passage is a
    document (Gobeill and Ruch 2012). It is counted by language if the whole collection is.
    """
    if statistics == "collection":
        return matches
    frequencies, terms = matches.in_passages, len(matches.query.terms)
    holding = np.bincount(frequencies.term, minlength=terms)
    occurrences = np.bincount(frequencies.term, frequencies.count, minlength=terms).astype(np.int64)
    totals: tuple[CountOrCounts, CountOrCounts] = matches.passages, int(matches.length_of_passage.sum())
    length = None
    if matches.query.languages:
        length = int(matches.length_of_passage.sum()) / max(matches.passages, 1)
        totals = rows_by_language(matches, matches.query.terms)
    return replace(matches, statistics=Statistics(*totals, *totals, holding, occurrences, holding, occurrences, length))


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
    """The signal `content`: BM25 of each passage, with statistics computed over passages."""
    return {"content": okapi(counted_in(matches, statistics), k1, b)}


def most_okapi(held: HeldTerms, *, k1: float, b: float, statistics: CountedIn) -> ScoreBound:
    """A bound of the scores in a document: that of a passage of length 0 with all occurrences of the document."""
    counted, count = background(held, "passages"), held.frequency
    weight = held.weights * idf(counted.units, counted.holding) * (k1 + 1)
    fixed, by_length = k1 * (1 - b), k1 * b / np.maximum(counted.average_length, 1e-9)
    terms = SaturatedTerms(*(np.broadcast_to(value, weight.shape).astype(np.float64) for value in (weight, fixed, by_length)))
    return ScoreBound(np.maximum(weight, 0.0) @ (count / np.maximum(count + fixed, 1e-300)), terms)


@model(okapi_signals, matching_only=True, bound=most_okapi)
def bm25(signals: Signals) -> Column:
    """BM25 of the passage alone, with the statistics of passages: no context.

    `Σ_t w_t · ln(1 + (P - P_t + 0.5) / (P_t + 0.5)) · tf (k1 + 1) / (tf + k1 (1 - b + b l_p / l_avg))`
    (Robertson et al. 1994, with Lucene's idf). P is the number of passages in the collection or in the candidate
    documents (`statistics`), P_t is the number of those that contain t, and w_t is the weight of t in the query.
    """
    return signals["content"]


def likelihood_signals(matches: Matches, *, mu: Mu = 1000.0, statistics: CountedIn = "collection") -> Signals:
    """The signal `content`: the smoothed query likelihood of each passage, as a geometric mean over query terms."""
    return {"content": similarity(counted_in(matches, statistics), mu)}


@model(likelihood_signals, matching_only=True)
def lm(signals: Signals) -> Column:
    """Query likelihood of the passage alone, with Dirichlet smoothing: no context.

    `exp(Σ_t P(t|q) ln((tf + μ P(t|C)) / (l_p + μ)))`, which gives the same ranking as the likelihood (Zhai and Lafferty
    2001). P(t|C) is computed over the collection, titles included, or over the passages of the candidate documents
    (`statistics`).
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
    """The signal `content`: PL2 of each passage, with statistics computed over passages."""
    counted = counted_in(matches, statistics)
    frequencies, counts = counted.in_passages, counted.statistics
    average = of_terms(counts.passage_tokens / np.maximum(counts.passages, 1), frequencies.term)
    occurrences, passages = counts.passage_collection_frequency[frequencies.term], of_terms(counts.passages, frequencies.term)
    length = counted.length_of_passage[frequencies.unit]
    factors = {
        "weight in the query": counted.weights[frequencies.term],
        "PL2 of the term": poisson(frequencies.count, length, average, occurrences, passages, c),
    }
    return {"content": sum_over_terms("PL2 of the passage", counted.query, frequencies, factors).of("passage")}


@model(poisson_signals, matching_only=True)
def pl2(signals: Signals) -> Column:
    """PL2 of the passage alone, with the statistics of passages: no context.

    `Σ_t w_t · (n log2(1/f) + f log2(e) + log2(2πn)/2 + n (log2(n) - log2(e))) / (n + 1)` with
    `n = tf log2(1 + c l_avg / l_p)` (Amati and van Rijsbergen 2002; used for passages by Gobeill and Ruch 2012). f is
    the mean number of occurrences of t per passage, in the collection or in the candidate documents (`statistics`), and
    w_t is the weight of t in the query. The summand of an uninformative word is negative.
    """
    return signals["content"]


def tf_idf_signals(matches: Matches) -> Signals:
    """The signal `content`: the tf·idf of each passage (Carmel 2013)."""
    return {"content": content_score(matches, "passage", "psg")}


@model(tf_idf_signals, matching_only=True)
def psg(signals: Signals) -> Column:
    """tf·idf of the passage alone: no context.

    `psg(p) = Σ_{t ∈ q ∩ p} ln(occ(t, p) + 1) · ln(N / N_t)` (Carmel, Shtok and Kurland 2013, equation 1). occ(t, p) is
    the number of occurrences of t in p, N is the number of documents in the collection, and N_t is the number of
    documents that contain t.
    """
    return signals["content"]


def normalized(matches: Matches, passage: Column, normalize: Normalize) -> Signals:
    """The signals `passage` and `document`: the given score and the fetch score of the document, both normalised.

    The paper's equation divides by the sum over the passages of the same document (`document`). This ranks documents
    with a single matching passage first, which contradicts the paper's results. Dividing by the sum over all candidates
    (`candidates`) agrees with these results. If some fetch scores are negative, as log-likelihoods are, the smallest
    fetch score is subtracted first.
    """
    document = fetch_score(matches)
    if normalize == "minmax":
        return {"passage": min_max(passage), "document": min_max(document).at(matches.document_of_passage)}
    if normalize == "document":
        within = share_within(passage, matches.document_of_passage, matches.documents)
    else:
        # Summed per document, then sorted before adding: the order of documents is arbitrary and must not change the
        # last bit of the sum.
        total = float(np.sort(sum_documents(passage.values, matches.first_passage_of_document)).sum())
        within = passage.affine(f"{passage.label} ÷ its sum over all", 1 / total if total else 0.0, 0.0)
    return {"passage": within, "document": share(document).at(matches.document_of_passage)}


def passage_and_document(matches: Matches, *, content: CarmelContent = "psg", normalize: Normalize = "candidates") -> Signals:
    """The signals `passage` and `document`: the score without context and the document's fetch score, normalised."""
    return normalized(matches, content_score(matches, "passage", content), normalize)


@model(passage_and_document)
def psg_doc(signals: Signals, *, lam: Lambda = 0.9) -> Column:
    """The tf·idf of the passage mixed with the score of its document.

    `psgDoc(p) = (1 - λ) · psg(p) / Σ psg + λ · doc(d) / Σ doc` (Carmel, Shtok and Kurland 2013, equation 2). doc is the
    fetch score of the document. If some fetch scores are negative, the smallest one is subtracted from all.

    With `normalize=candidates`, the sums are over all candidates. With `document`, the sum of psg is over the passages
    of the same document, as in the paper's equation. With `minmax`, `(x - min) / (max - min)` replaces both quotients.
    `content` replaces psg by `bm25` or `lm`, as in the models of these names.
    """
    return (1 - lam) * signals["passage"] + lam * signals["document"]


def passage_and_neighbors(
    matches: Matches,
    *,
    neighbors: Annotated[int, Range(1, 100), Grid((1,)), "Number of neighbouring passages on each side."] = 1,
    decay: Annotated[
        float,
        Range(0, 1, low_open=True),
        Grid((0.5,)),
        "Factor by which the weight of a neighbour decreases with each step away from the passage.",
    ] = 0.5,
    content: CarmelContent = "psg",
    normalize: Normalize = "candidates",
) -> Signals:
    """The signals `passage` and `document` of `psg_doc`, and the same for the neighbours on both sides.

    The names of the latter are `left passage`, `left document`, `right passage` and `right document`. They are weighted
    means over the passages before (left) and after (right) each passage.
    """
    matches.require_passages("psg_neighbor")
    signals = passage_and_document(matches, content=content, normalize=normalize)
    # The paper has one neighbour per side, and says only that weights decrease with distance; here, by `decay`.
    weights = decay ** np.arange(neighbors)
    weights = weights / weights.sum()
    beside = {
        f"{side} {name}": _beside(matches, column.of("neighbors") if name == "passage" else column, side, step, weights)
        for side, step in (("left", -1), ("right", 1))
        for name, column in signals.items()
    }
    return {**signals, **beside}


def _beside(matches: Matches, column: Column, side: str, step: int, weights: Floats) -> Column:
    """For each passage, the weighted mean of a column over its neighbours on one side, in the same document.

    `step` is -1 for the left and 1 for the right side. `weights` has one weight per distance; they sum to 1. If a
    neighbour is missing, its value is 0.
    """
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
    left: Annotated[float, Range(0, 1), Grid(step=0.25), "Weight λl of the neighbours before the passage."] = 0.25,
    right: Annotated[
        float, Range(0, 1), Grid(step=0.25), "Weight λr of the neighbours after the passage; left + right must be at most 1."
    ] = 0.25,
    lam: Lambda = 0.9,
) -> Column:
    """The passage mixed with its document, and then with its neighbours.

    `psgNeighbor(p) = (1 - λl - λr) · psgDoc(p) + λl · psgDoc(p_left) + λr · psgDoc(p_right)` (Carmel, Shtok and Kurland
    2013, equation 3). With several neighbours per side, the weights on one side sum to λl or λr, and each neighbour has
    `decay` times the weight of the neighbour that is one step nearer. If a neighbour is missing, its psgDoc is 0.
    """
    if left + right > 1 + 1e-9:
        raise UsageError(f"psg_neighbor: left={left:g} and right={right:g} add up to more than 1; reduce one of them")

    def mixed(side: str, label: str) -> Column:
        return ((1 - lam) * signals[f"{side}passage"] + lam * signals[f"{side}document"]).named(label)

    neighbors = left * mixed("left ", "psgDoc on the left") + right * mixed("right ", "psgDoc on the right")
    return (1 - left - right) * mixed("", "psgDoc of the passage") + neighbors
