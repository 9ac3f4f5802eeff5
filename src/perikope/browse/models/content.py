"""Content scores: scores of texts without their context, on which contextual models build.

`content_score` returns a content score by its name. Scores are available for passages, for passages with the titles
above them, and for documents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated, Literal

import numpy as np

from perikope.browse.bounds import HeldTerms
from perikope.browse.matches import Frequencies, Matches
from perikope.browse.signals import Column, Node, Origin, Origins, fact, sum_over_terms
from perikope.core.arrays import Array, Floats, Integers, frozen
from perikope.core.parameters import Grid, Range
from perikope.fetch.weighting import bm25, idf
from perikope.index.reader import CountOrCounts, of_terms
from perikope.kernels.passages import likelihoods, okapi_scores

Unit = Literal["passage", "passage with titles", "document"]
"""The kind of text that is scored."""

# Grids contain only the published choice: users who want another content score or other statistics name it.
Content = Annotated[
    Literal["lm", "bm25", "psg"],
    Grid(("lm",)),
    "Score of a text without context: query likelihood (lm), BM25 (bm25) or tf·idf (psg).",
]
CountedOver = Annotated[
    Literal["documents", "passages"],
    Grid(("documents",)),
    "Texts over which P(t|C), idf and average length are computed: documents with titles, or passages.",
]
Mu = Annotated[
    float,
    Range(0, 1e9, low_open=True),
    Grid((500.0, 1000.0, 2000.0)),
    "Dirichlet smoothing μ of lm, in tokens; larger values give more weight to the collection's term frequencies.",
]


def content_score(
    matches: Matches, unit: Unit, content: Content = "lm", statistics: CountedOver = "documents", *, mu: Mu = 1000.0
) -> Column:
    """The score of each text without context, one value per passage or document.

    `content` selects the function: `lm` is `similarity`, `bm25` is `okapi` and `psg` is `tf_idf`. Only `lm` uses `mu`.
    """

    def score() -> Column:
        if content == "lm":
            return similarity(matches, mu, unit=unit, statistics=statistics)
        if content == "bm25":
            return okapi(matches, unit=unit, statistics=statistics)
        return tf_idf(matches, unit=unit, statistics=statistics)

    return matches.once(("content", unit, content, statistics, mu), score)


def fetch_score(matches: Matches) -> Column:
    """The score with which each document was fetched, one value per document."""
    label, values = "fetch score of the document", matches.score_of_document

    def explain(document: int) -> Node:
        parts = tuple(Node(name, value, word=written(term)) for name, value, term in matches.parts_of_score(document))
        return Node(label, float(values[document]), "sum", parts) if parts else Node(label, float(values[document]))

    def written(term: str) -> str:
        return matches.query.written(term) if term else ""

    return Column(label, values, explain).of("document")


def okapi(matches: Matches, k1: float = 1.2, b: float = 0.75, *, unit: Unit = "passage", statistics: CountedOver = "passages") -> Column:
    """BM25: `Σ_t w_t · idf(t) · tf (k1 + 1) / (tf + k1 (1 - b + b l / l_avg))`, with w_t the weight of t in the query.

    `statistics` selects whether idf and the average length l_avg are computed over documents or over passages,
    independently of `unit`. Compared with the average document, all passages are short, so differences of their lengths
    hardly matter. This helps if long passages are relevant. On Evidence Inference, qsf_v_title reaches nDCG@10 0.48
    with the average document, and 0.32 with the average passage and the same idf.
    """
    text, counted = _texts(matches, unit), background(matches, statistics)
    frequencies, rarity = text.frequencies, idf(counted.units, counted.holding)
    average = np.ascontiguousarray(np.broadcast_to(np.maximum(counted.average_length, 1e-9), rarity.shape), np.float64)
    values: Floats = okapi_scores(
        frequencies.unit, frequencies.term, frequencies.count, frozen(text.length), matches.weights * rarity, average, k1, b
    )

    @cache
    def by_formula() -> Column:
        factors = {
            "weight in the query": matches.weights[frequencies.term],
            f"idf over {statistics}": rarity[frequencies.term],
            "frequency by length": bm25(
                frequencies.count, text.length[frequencies.unit], of_terms(counted.average_length, frequencies.term), k1, b
            ),
        }
        return sum_over_terms(f"BM25 of the {unit}", matches.query, frequencies, factors, text.origins)

    return text.known(Column(f"BM25 of the {unit}", values, lambda row: by_formula().explain(row)))


def tf_idf(matches: Matches, *, unit: Unit = "passage", statistics: CountedOver = "documents") -> Column:
    """tf·idf: `Σ_t ln(tf + 1) · ln(N / N_t)` over the distinct query terms t in each text (Carmel 2013, equation 1).

    The sum is over the terms that occur in the text: a passage, a passage with titles or a document (`unit`). N is the
    number of documents or passages (`statistics`) in the collection, and N_t is the number of those with t.
    """
    text, counted = _texts(matches, unit), background(matches, statistics)
    # A term that occurs in no text has no entry below, so its weight does not matter. A term that occurs only in titles
    # is in no passage; its N_t is set to 1.
    weight = np.log(np.maximum(counted.units, 1) / np.maximum(counted.holding, 1))
    frequencies = text.frequencies
    factors = {"ln(occurrences + 1)": np.log1p(frequencies.count), "ln(N ÷ N_t)": weight[frequencies.term]}
    return text.known(sum_over_terms(f"tf·idf of the {unit}", matches.query, frequencies, factors, text.origins))


def similarity(matches: Matches, mu: float = 1000.0, *, unit: Unit = "passage", statistics: CountedOver = "documents") -> Column:
    """Query likelihood: `Sim(q, x) = exp(Σ_t P(t|q) ln((tf + μ P(t|C)) / (l_x + μ)))` (Albarede 2021, equation 2).

    P(t|C) is computed over the documents with their titles, or over the passages alone. Query terms that do not occur
    in the collection are left out, and P(t|q) is renormalised over the other terms. To save time, the sum is split into
    `P(t|q) ln(1 + tf / μP(t|C))` per term that occurs in x, and one smoothing summand per text.
    """
    text, counted = _texts(matches, unit), background(matches, statistics)
    frequencies = text.frequencies
    seen = counted.occurrences > 0
    share = np.where(seen, matches.weights, 0.0)
    share = share / max(share.sum(), 1e-300)
    prior = mu * counted.occurrences / np.maximum(counted.tokens, 1)
    smoothed = float(np.sum(share[seen] * np.log(prior[seen])))
    # A term that occurs only in titles has no occurrences in passages. Its share is 0, so any prior will do.
    prior = np.where(seen, prior, 1.0)
    factors = {"share of the query": share[frequencies.term], "ln(1 + tf ÷ μP(t|C))": np.log1p(frequencies.count / prior[frequencies.term])}
    label = f"Sim(q, {unit})"

    @cache
    def by_formula() -> Column:
        matched = sum_over_terms("terms that occur", matches.query, frequencies, factors, text.origins)
        smoothing = fact("smoothing for length and rarity", smoothed - float(seen.any()) * np.log(text.length + mu))
        return (matched + smoothing).named(f"ln {label}").exp(label)

    if not seen.any():
        return text.known(by_formula())
    values: Floats = likelihoods(frequencies.first_entry, np.multiply(*factors.values()), text.length, mu, smoothed)

    def explain(row: int) -> Node:
        return replace(by_formula().explain(row), value=float(values[row]))

    return text.known(Column(label, values, explain))


@dataclass(frozen=True, slots=True)
class _Texts:
    """The texts to score: the frequencies of the query's terms in each text, and its length in indexed tokens."""

    frequencies: Frequencies
    length: Integers
    origin: Origin | None = None
    """What the texts are; None for passages with titles."""
    origins: Callable[[int, int], Origins] | None = None
    """For passages with titles, the origins of an entry of a text."""

    def known(self, column: Column) -> Column:
        """A score of the texts that says where it comes from."""
        return column if self.origin is None else column.of(self.origin)


def _texts(matches: Matches, unit: Unit) -> _Texts:
    if unit == "document":
        return _Texts(matches.in_documents, matches.length_of_document, "document")
    if unit == "passage with titles":
        titled = "counts and lengths with titles", lambda: (matches.in_passages_with_titles(), matches.length_with_titles_of_passage())
        frequencies, length = matches.once(*titled)
        return _Texts(frequencies, length, origins=partial(_in_passage_or_titles, matches.in_passages, frequencies))
    return _Texts(matches.in_passages, matches.length_of_passage, "passage")


def _in_passage_or_titles(in_passages: Frequencies, with_titles: Frequencies, row: int, entry: int) -> Origins:
    """The share of the occurrences of a term that are in the passage itself, and of those in the titles above it."""
    of_passage = slice(*in_passages.first_entry[row : row + 2].tolist())
    here = in_passages.term[of_passage] == with_titles.term[entry]
    inside = float(in_passages.count[of_passage][here].sum() / with_titles.count[entry])
    shares: Origins = (("passage", inside), ("titles", 1 - inside))
    return tuple(share for share in shares if share[1])


@dataclass(frozen=True, slots=True)
class Background:
    """Statistics of the collection, computed over all its documents (with titles) or over all its passages.

    If the collection is counted by language, `units`, `tokens` and `average_length` have one value per query term.
    """

    units: CountOrCounts
    """Number of documents or passages."""
    tokens: CountOrCounts
    """Number of indexed tokens in all of them."""
    holding: Array
    """Number of documents or passages that contain each query term."""
    occurrences: Array
    """Number of occurrences of each query term in all of them."""
    average_length: float | Floats
    """Average length of a document or passage, in indexed tokens."""


def background(matches: Matches | HeldTerms, statistics: CountedOver) -> Background:
    """The statistics of the collection of these matches, computed over documents or over passages."""
    counts = matches.statistics
    if statistics == "documents":
        length = counts.tokens / np.maximum(counts.documents, 1) if counts.length_of_documents is None else counts.length_of_documents
        return Background(counts.documents, counts.tokens, counts.document_frequency, counts.collection_frequency, length)
    length = counts.passage_tokens / np.maximum(counts.passages, 1)
    return Background(counts.passages, counts.passage_tokens, counts.passage_frequency, counts.passage_collection_frequency, length)
