"""Features: a fixed list of signals of a passage and a query, from which combinations are learned.

A learned table records the version of this list. Any change to the values, the name or the meaning of a feature
requires a new `VERSION`, because learned weights are valid only for the features that they were learned with.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from perikope.browse.matches import Frequencies, Matches
from perikope.browse.models import Signals
from perikope.browse.models.content import Content, CountedOver, Unit, content_score, fetch_score
from perikope.browse.models.passage import passage_and_neighbors
from perikope.browse.models.positional import positional_signals
from perikope.browse.models.propagation import Decay, propagated_from_passages, propagated_from_sections, section_scores
from perikope.browse.models.proximity import proximity_signals
from perikope.browse.signals import Column, fact, min_max, z_score
from perikope.core.arrays import Floats, Integers, frozen
from perikope.core.errors import unknown
from perikope.kernels.join import sum_ancestors

VERSION = 1
"""Version of the list of features."""

LISTS = ("li", "item", "list-item", "dd", "dt", "ul", "ol", "dl", "list")
"""Tags of lists and of their items."""
TABLES = ("table", "table-wrap", "tr", "td", "th", "thead", "tbody")
"""Tags of tables and of their parts."""

FeatureNormalization = Literal["minmax", "zscore"]
NORMALIZATIONS: Mapping[str, Callable[[Column], Column]] = {"minmax": min_max, "zscore": z_score}


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature: its name, its meaning, and the function that computes it."""

    name: str
    meaning: str
    column: Callable[[Sources], Column]


class Sources:
    """Computes the columns of features. Shared matches compute content scores that several features use only once."""

    def __init__(self, matches: Matches) -> None:
        self.matches = matches

    def content(self, unit: Unit, content: Content, statistics: CountedOver = "documents") -> Column:
        """The score of each text without context; see `content_score`."""
        return content_score(self.matches, unit, content, statistics)

    @property
    def titled_lm(self) -> Column:
        """The query likelihood of each passage with the titles above it. Other features propagate this score."""
        return self.content("passage with titles", "lm")

    @property
    def titled_bm25(self) -> Column:
        """BM25 of each passage with the titles above it. Other features propagate this score."""
        return self.content("passage with titles", "bm25", "passages")

    @cached_property
    def neighbors(self) -> Signals:
        """The signals of `psg_neighbor` with BM25, such as `left passage`, the BM25 of the passage before."""
        return passage_and_neighbors(self.matches, content="bm25")

    def document(self, content: Content) -> Column:
        """For each passage, the content score of its document."""
        return self.content("document", content).at(self.matches.document_of_passage)

    def fetched(self) -> Column:
        """For each passage, the fetch score of its document."""
        return fetch_score(self.matches).at(self.matches.document_of_passage)

    def section(self, passage: Column, *, best: bool = False) -> Column:
        """For each passage, the score of the section directly above it.

        The score of a section is the average, or if `best` the maximum, of the scores of the passages and sections
        directly below it.
        """
        return section_scores(self.matches, passage, "maximum" if best else "average").at(self.matches.section_of_passage)

    def above(self, passage: Column) -> Column:
        """For each passage, the mean of s · exp(-d² / 2σ²) over all sections above it.

        s is the score of a section, as in `section`. d is the distance from the passage to the section, in edges of the
        tree of sections and passages. σ is 5 edges. The sum is divided by the number of sections, not by the sum of the
        weights.
        """
        sections = section_scores(self.matches, passage, "average")
        return propagated_from_sections(self.matches, sections, Decay("gauss", 5.0), "average")

    def around(self, passage: Column, sigma: float = 5.0) -> Column:
        """For each passage, the mean of s · exp(-d² / 2σ²) over the other passages of its document.

        s is the score of the other passage. d is its distance, in edges of the tree of sections and passages. `sigma`
        is σ, in edges. The sum is divided by the number of other passages, not by the sum of the weights. The value is
        0 if there is no other passage.
        """
        return propagated_from_passages(self.matches, passage, Decay("gauss", sigma), "average")

    def share_of_terms(self, frequencies: Frequencies, label: str) -> Column:
        """For each unit of `frequencies`, the share of the query's distinct terms that occur in it."""
        return fact(label, np.diff(frequencies.first_entry) / max(len(self.matches.query.terms), 1))

    def share_in_titles(self) -> Column:
        """For each passage, the share of the query's distinct terms that occur in the titles above it."""
        titles = self.matches.in_titles
        empty = Frequencies(np.zeros(self.matches.passages + 1, np.int64), titles.term[:0], titles.count[:0])
        frequencies = replace(self.matches, in_passages=empty).in_passages_with_titles()
        return self.share_of_terms(frequencies, "share of the query's terms in the titles above")

    def position(self) -> Column:
        """For each passage, the relative position of its middle: 1 is the end of the last passage of its document."""
        matches = self.matches
        end = np.zeros(matches.documents, np.int64)
        np.maximum.at(end, matches.document_of_passage, matches.end_token_of_passage)
        middle = (matches.first_token_of_passage + matches.end_token_of_passage) / 2
        return fact("position in the document", middle / np.maximum(end, 1)[matches.document_of_passage])

    def depth(self) -> Column:
        """For each passage, the number of sections above it, the document included."""
        parent = self.matches.parent_of_section
        above: Integers = sum_ancestors(frozen(np.ones(parent.size, np.int64)), parent)
        return fact("sections above", above[self.matches.section_of_passage].astype(np.float64))

    def siblings(self) -> Column:
        """For each passage, ln(1 + n), where n is the number of passages directly below the passage's section."""
        section = self.matches.section_of_passage
        count = np.bincount(section, minlength=self.matches.parent_of_section.size)
        return _logarithm("passages in the section", count[section])

    def part(self, name: str) -> Column:
        """For each passage, 1 if it is in the part with this name, else 0."""
        parts = self.matches.parts
        number = parts.index(name) if name in parts else -1
        return fact(f"in the part {name}", (self.matches.part_of_passage == number).astype(np.float64))

    def inside(self, tags: Collection[str], label: str) -> Column:
        """For each passage, 1 if it or an element that contains it has one of the tags, else 0."""
        structure = self.matches.structure()
        tagged = np.append(structure.tagged(tags), False)
        parent = np.append(structure.parent_of_span, -1)
        span = structure.first_span_of_document[self.matches.document_of_passage] + self.matches.span_of_passage
        is_inside = np.zeros(span.size, bool)
        while (span >= 0).any():
            is_inside |= tagged[span]
            span = parent[span]
        return fact(label, is_inside.astype(np.float64))


def _logarithm(label: str, counts: Integers) -> Column:
    values: Floats = np.log1p(counts)
    return fact(f"ln(1 + {label})", values)


_FEATURES = (
    Feature("lm", "likelihood of the query in the passage", lambda s: s.content("passage", "lm")),
    Feature("bm25", "BM25 of the passage among passages", lambda s: s.content("passage", "bm25", "passages")),
    Feature("bm25_long", "BM25 of the passage among documents, with little effect of length", lambda s: s.content("passage", "bm25")),
    Feature("psg", "tf·idf of the passage", lambda s: s.content("passage", "psg")),
    Feature("matched", "share of the query's terms in the passage", lambda s: s.share_of_terms(s.matches.in_passages, "share of terms")),
    Feature("titled_lm", "likelihood, with the titles above", lambda s: s.titled_lm),
    Feature("titled_bm25", "BM25 among passages, with the titles above", lambda s: s.titled_bm25),
    Feature("titled_bm25_long", "BM25 among documents, with the titles above", lambda s: s.content("passage with titles", "bm25")),
    Feature("titled_psg", "tf·idf, with the titles above", lambda s: s.content("passage with titles", "psg")),
    Feature("titles", "share of the query's terms in the titles above", lambda s: s.share_in_titles()),
    Feature("document_lm", "likelihood of the query in the document", lambda s: s.document("lm")),
    Feature("document_bm25", "BM25 of the document", lambda s: s.document("bm25")),
    Feature("document_psg", "tf·idf of the document", lambda s: s.document("psg")),
    Feature("fetch", "score with which the document was fetched", lambda s: s.fetched()),
    Feature("section_lm", "mean likelihood in the section directly above", lambda s: s.section(s.titled_lm)),
    Feature("section_bm25", "mean BM25 in the section directly above", lambda s: s.section(s.titled_bm25)),
    Feature("section_best", "best BM25 in the section directly above", lambda s: s.section(s.titled_bm25, best=True)),
    Feature("above_lm", "likelihood of all sections above, by distance", lambda s: s.above(s.titled_lm)),
    Feature("above_bm25", "BM25 of all sections above, by distance", lambda s: s.above(s.titled_bm25)),
    Feature("around_lm", "likelihood of the other passages, by distance", lambda s: s.around(s.titled_lm)),
    Feature("around_bm25", "BM25 of the other passages, by distance", lambda s: s.around(s.titled_bm25)),
    Feature("around_near", "BM25 of the other passages, by distance, σ 1", lambda s: s.around(s.titled_bm25, 1.0)),
    Feature("left", "BM25 of the passage before", lambda s: s.neighbors["left passage"]),
    Feature("right", "BM25 of the passage after", lambda s: s.neighbors["right passage"]),
    Feature("plm", "occurrences in the document by distance, σ 2000", lambda s: positional_signals(s.matches)["passage"]),
    Feature("plm_near", "occurrences in the document by distance, σ 100", lambda s: positional_signals(s.matches, sigma=100.0)["passage"]),
    Feature("prox", "proximity of the query's words", lambda s: proximity_signals(s.matches)["influence"]),
    Feature("position", "relative position in the document", lambda s: s.position()),
    Feature("depth", "number of sections above", lambda s: s.depth()),
    Feature("siblings", "ln(1 + number of passages in the section)", lambda s: s.siblings()),
    Feature("length", "ln(1 + number of terms in the passage)", lambda s: _logarithm("terms in the passage", s.matches.length_of_passage)),
    Feature(
        "document_length",
        "ln(1 + number of terms in the document)",
        lambda s: _logarithm("terms in the document", s.matches.length_of_document[s.matches.document_of_passage]),
    ),
    Feature("in_abstract", "in the abstract", lambda s: s.part("abstract")),
    Feature("in_description", "in the description", lambda s: s.part("description")),
    Feature("in_claims", "in the claims", lambda s: s.part("claims")),
    Feature("in_list", "in a list", lambda s: s.inside(LISTS, "in a list")),
    Feature("in_table", "in a table", lambda s: s.inside(TABLES, "in a table")),
)

FEATURES: Mapping[str, Feature] = {feature.name: feature for feature in _FEATURES}


def features(matches: Matches, names: Iterable[str] = FEATURES) -> Signals:
    """The features with these names, each with one value per passage, not normalised."""
    columns = {}
    with matches.sharing() as shared:
        sources = Sources(shared)
        for name in names:
            if name not in FEATURES:
                raise unknown("feature", name, FEATURES)
            columns[name] = FEATURES[name].column(sources).named(FEATURES[name].meaning)
    return columns


def normalized_features(matches: Matches, names: Iterable[str] = FEATURES, normalize: FeatureNormalization = "minmax") -> Signals:
    """The features with these names, each with one value per passage, normalised over the candidate passages."""
    return {name: NORMALIZATIONS[normalize](column) for name, column in features(matches, names).items()}
