"""`coverage`: how far a passage and its context cover the terms of the query. It is the default of a search.

The file has the model first, then the columns that it adds up, then their explanations.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from perikope.browse.bounds import HeldTerms, ScoreBound
from perikope.browse.matches import Frequencies, Matches
from perikope.browse.models import Signals, model
from perikope.browse.models.content import CountedOver, background
from perikope.browse.signals import Column, Node, Origin
from perikope.core.arrays import Floats, Integers
from perikope.core.parameters import Grid, Range
from perikope.fetch.weighting import idf
from perikope.index.reader import of_terms
from perikope.kernels.coverage import CoveredTexts, Covering, cover
from perikope.kernels.join import TermCounts

Share = Annotated[float, Range(0, 1)]


def coverage_signals(
    matches: Matches,
    *,
    k1: Annotated[
        float, Range(0, 1000, low_open=True), Grid((0.6, 1.2, 2.0)), "Saturation; with larger values, repeated terms cover more."
    ] = 1.2,
    b: Annotated[
        float, Range(0, 1), Grid((0.25, 0.5, 0.75)), "Length normalisation, from 0 (none) to 1 (proportional to the length of the text)."
    ] = 0.5,
    titles: Annotated[Share, Grid((0.5, 0.75, 1.0)), "Weight τ of the titles above the passage."] = 1.0,
    neighbors: Annotated[Share, Grid((0.0, 0.1, 0.2)), "Weight ν of the passages directly before and after."] = 0.1,
    document: Annotated[Share, Grid((0.0, 0.4, 0.8)), "Weight δ of the document."] = 0.8,
) -> Signals:
    """The signals `passage`, `titles`, `neighbors` and `document`: what each covers that those before it do not."""
    if matches.units != "passages":
        neighbors = 0.0  # elements overlap, so the rows beside them are no neighbours
    texts = _Coverage(matches, k1, b, titles, neighbors, document)
    covered = cover(texts.as_arrays(), texts.covering())
    return {name: _column(texts, level, covered[level]) for level, name in enumerate(_NAMES)}


def most_covered(held: HeldTerms, *, k1: float, b: float, titles: float, neighbors: float, document: float) -> ScoreBound:
    """A bound of the scores in each document.

    It is the score of a passage of length 0 that has all occurrences of the document, as have its neighbours and the
    titles above it.
    """
    information, average = Information.of(held), np.asarray(background(held, "documents").average_length)
    share, count = information.share_of_document[:, None], held.frequency
    relative = held.length_of_document / np.maximum(average[..., None], 1e-9)
    not_covered = (
        (1 - count / np.maximum(count + k1 * (1 - b), 1e-300))
        * (1 - titles * np.sqrt(share) * (count > 0))
        * (1 - neighbors * count / (count + k1))
        * (1 - document * share * count / (count + k1 * (1 - b + b * relative)))
    )
    weight = np.maximum(held.weights * information.of_passage, 0.0)
    return ScoreBound(weight @ (1 - not_covered))


@model(coverage_signals, bound=most_covered)
def coverage(signals: Signals) -> Column:
    """How far the passage, and what it lacks its titles, neighbours and document, cover the terms of the query.

    `Σ_t w_t · idf_P(t) · (1 - (1 - p)(1 - g)(1 - n)(1 - d))`, where p, g, n and d are the shares of a term t that are
    covered

    - by the passage: `p = tf / (tf + k1 (1 - b + b l / l_avg))`, the term frequency of BM25, between 0 and 1;
    - by the titles of the sections that contain it: `g = τ √ρ` if one of them contains t, else 0;
    - by the two passages beside it, with m occurrences: `n = ν m / (m + k1)`;
    - by its document: `d = δ ρ tf / (tf + k1 (1 - b + b l / l_avg))`, for the document with its titles.

    `ρ = idf_D(t) / idf_P(t)` is the share of the information about t that its occurrence in a *document* gives. A term
    of few documents identifies its document, and all its passages are about it. A term of most documents says nothing
    about a passage that does not contain it. The information of a title lies between both, at their geometric mean.
    idf is `ln(1 + (N - n + 0.5) / (n + 0.5))` over passages (P) or documents (D), w_t is the weight of t in the query.

    Context counts where the passage lacks a term. The form is a noisy-or, as in inference networks (Turtle and Croft
    1991). The score does not depend on the other candidates.
    """
    return signals["passage"] + signals["titles"] + signals["neighbors"] + signals["document"]


@dataclass(frozen=True, slots=True)
class Information:
    """The information of each query term, in natural units (nats)."""

    of_passage: Floats
    """idf over passages: the information that a passage contains the term."""
    share_of_document: Floats
    """ρ: idf over documents divided by idf over passages, at most 1."""

    @classmethod
    def of(cls, matches: Matches | HeldTerms) -> Information:
        """The information of the query terms in the collection of these matches."""
        passages, documents = background(matches, "passages"), background(matches, "documents")
        of_passage = idf(passages.units, passages.holding)
        share = idf(documents.units, documents.holding) / np.maximum(of_passage, 1e-9)
        return cls(of_passage, np.minimum(share, 1.0))


class _Coverage:
    """What the texts of some matches cover of the query terms, with the parameters of the model."""

    def __init__(self, matches: Matches, k1: float, b: float, titles: float, neighbors: float, document: float) -> None:
        self.matches, self.k1, self.b, self.neighbors = matches, k1, b, neighbors
        self.information = Information.of(matches)
        share = self.information.share_of_document
        self.weight: Floats = matches.weights * self.information.of_passage
        """The weight of each term: its weight in the query times its information."""
        self.by_passage = self._saturated(matches.in_passages, matches.length_of_passage, "passages")
        """What the passage covers (p), for each entry of the frequencies in passages."""
        of_document = self._saturated(matches.in_documents, matches.length_of_document, "documents")
        self.by_document: Floats = document * share[matches.in_documents.term] * of_document
        """What the document covers (d), for each entry of the frequencies in documents."""
        self.by_title: Floats = titles * np.sqrt(share)
        """What a title covers that contains the term (g), for each term."""

    def _saturated(self, frequencies: Frequencies, length: Integers, statistics: CountedOver) -> Floats:
        average = background(self.matches, statistics).average_length
        relative = length[frequencies.unit] / np.maximum(of_terms(average, frequencies.term), 1e-9)
        result: Floats = frequencies.count / (frequencies.count + self.k1 * (1 - self.b + self.b * relative))
        return result

    def as_arrays(self) -> CoveredTexts:
        """The texts as the kernel takes them."""
        matches = self.matches
        counts = [TermCounts(f.first_entry, f.term, f.count) for f in (matches.in_passages, matches.in_titles, matches.in_documents)]
        first_section = np.searchsorted(matches.document_of_section, np.arange(matches.documents + 1))
        return CoveredTexts(
            matches.first_passage_of_document, first_section, matches.section_of_passage, matches.parent_of_section, *counts
        )

    def covering(self) -> Covering:
        """What the texts cover, as the kernel takes it."""
        return Covering(self.weight, self.by_passage, self.by_document, self.by_title, self.neighbors, self.k1)


_NAMES: tuple[Origin, ...] = ("passage", "titles", "neighbors", "document")
"""Names of the signals, in the order of the rows of `cover`. They are also the origins of their values."""
_LABELS = ("covered by the passage", "covered by the titles above", "covered by the neighbours", "covered by the document")
_REST = ("", "not covered by the passage", "not covered by passage and titles", "not covered by passage, titles and neighbours")


def _column(texts: _Coverage, level: int, values: Floats) -> Column:
    """What a level covers in each row: the level is passage, titles, neighbours or document."""

    def explain(row: int) -> Node:
        # The kernel adds the same numbers in another order, so its last digit may differ.
        return replace(_explain(texts, row, level), value=float(values[row]))

    return Column(_LABELS[level], values, explain).of(_NAMES[level])


def _explain(texts: _Coverage, row: int, level: int) -> Node:
    """The terms that a level covers in a row, each as a product: weight, information, what is left, and its share."""
    matches = texts.matches
    levels = [_in_passage(texts, row), _in_titles(texts, row), _beside(texts, row), _in_document(texts, row)]
    nodes = []
    for term, (where, share) in sorted(levels[level].items()):
        left = math.prod(1 - before[term][1] for before in levels[:level] if term in before)
        facts = (
            Node("weight in the query", float(matches.weights[term])),
            Node("idf over passages", float(texts.information.of_passage[term])),
            *((Node(_REST[level], left),) if level else ()),
            Node(_LABELS[level], share),
        )
        label = f"{matches.query.label(matches.query.terms[term])} {where}"
        word = matches.query.written(matches.query.terms[term])
        nodes.append(Node(label, math.prod(fact.value for fact in facts), "product", facts, word=word))
    return Node(_LABELS[level], math.fsum(node.value for node in nodes), "sum", tuple(nodes))


Covered = dict[int, tuple[str, float]]
"""Where a term occurs, in words, and how much of it is covered there, by term. Terms that do not occur are missing."""


def _in_passage(texts: _Coverage, row: int) -> Covered:
    counts = _counts(texts.matches.in_passages, row)
    first = int(texts.matches.in_passages.first_entry[row])
    return {term: (f"occurs {count}×", float(texts.by_passage[first + i])) for i, (term, count) in enumerate(counts.items())}


def _in_titles(texts: _Coverage, row: int) -> Covered:
    matches = texts.matches
    section = int(matches.section_of_passage[row])
    covered: Covered = {}
    while section >= 0:
        covered |= {term: ("is in a title above", float(texts.by_title[term])) for term in _counts(matches.in_titles, section)}
        section = int(matches.parent_of_section[section])
    return covered


def _beside(texts: _Coverage, row: int) -> Covered:
    matches = texts.matches
    counts: Counter[int] = Counter()
    for other in (row - 1, row + 1):
        inside = 0 <= other < matches.passages and matches.document_of_passage[other] == matches.document_of_passage[row]
        if texts.neighbors and inside:
            counts.update(_counts(matches.in_passages, other))
    return {term: (f"occurs {count}× beside", texts.neighbors * count / (count + texts.k1)) for term, count in counts.items()}


def _in_document(texts: _Coverage, row: int) -> Covered:
    document = int(texts.matches.document_of_passage[row])
    counts = _counts(texts.matches.in_documents, document)
    first = int(texts.matches.in_documents.first_entry[document])
    return {
        term: (f"occurs {count}× in the document", float(texts.by_document[first + i])) for i, (term, count) in enumerate(counts.items())
    }


def _counts(frequencies: Frequencies, unit: int) -> dict[int, int]:
    """The frequency of each term that occurs in a unit, by term, in the order of the entries."""
    entries = slice(*frequencies.first_entry[unit : unit + 2].tolist())
    return dict(zip(frequencies.term[entries].tolist(), frequencies.count[entries].tolist(), strict=True))
