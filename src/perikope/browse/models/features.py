"""Features: a fixed, numbered list of everything that is known of a passage and a query, for combinations that are learned.

A table that was learned says which version of the list it was learned with. Whatever changes the values of a feature, its name or its
meaning makes a new version: weights do not fit other features.
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
from perikope.core.arrays import Floats, Integers
from perikope.core.errors import unknown
from perikope.kernels.join import sum_ancestors

VERSION = 1

LISTS = ("li", "item", "list-item", "dd", "dt", "ul", "ol", "dl", "list")
TABLES = ("table", "table-wrap", "tr", "td", "th", "thead", "tbody")

FeatureNormalization = Literal["minmax", "zscore"]
NORMALIZATIONS: Mapping[str, Callable[[Column], Column]] = {"minmax": min_max, "zscore": z_score}


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature: its name, what it says, and how it is computed."""

    name: str
    meaning: str
    column: Callable[[Sources], Column]


class Sources:
    """What features are made of, each computed when it is first asked for."""

    def __init__(self, matches: Matches) -> None:
        self.matches = matches.shared()

    def content(self, unit: Unit, content: Content, statistics: CountedOver = "documents") -> Column:
        """A text scored by itself."""
        return content_score(self.matches, unit, content, statistics)

    @property
    def titled_lm(self) -> Column:
        """The likelihood with titles, which flows through the tree."""
        return self.content("passage with titles", "lm")

    @property
    def titled_bm25(self) -> Column:
        """BM25 with titles, which flows through the tree."""
        return self.content("passage with titles", "bm25", "passages")

    @cached_property
    def neighbors(self) -> Signals:
        """BM25 of the passages beside each."""
        return passage_and_neighbors(self.matches, content="bm25")

    def document(self, content: Content) -> Column:
        """The score of each passage's document."""
        return self.content("document", content).at(self.matches.document_of_passage)

    def fetched(self) -> Column:
        """The fetch score of each passage's document."""
        return fetch_score(self.matches).at(self.matches.document_of_passage)

    def section(self, passage: Column, *, best: bool = False) -> Column:
        """What the section right above holds on average, or at best."""
        return section_scores(self.matches, passage, "maximum" if best else "average").at(self.matches.section_of_passage)

    def above(self, passage: Column) -> Column:
        """What all sections above pass on by distance."""
        sections = section_scores(self.matches, passage, "average")
        return propagated_from_sections(self.matches, sections, Decay("gauss", 5.0), "average")

    def around(self, passage: Column, sigma: float = 5.0) -> Column:
        """What the other passages of the document pass on by distance."""
        return propagated_from_passages(self.matches, passage, Decay("gauss", sigma), "average")

    def share_of_terms(self, found: Frequencies, label: str) -> Column:
        """The share of the query's distinct terms that a text holds."""
        return fact(label, np.diff(found.first_entry) / max(len(self.matches.query.terms), 1))

    def share_in_titles(self) -> Column:
        """The share of the query's distinct terms that the titles above hold."""
        titles = self.matches.in_titles
        bare = Frequencies(np.zeros(self.matches.passages + 1, np.int64), titles.term[:0], titles.count[:0])
        held = replace(self.matches, in_passages=bare).in_passages_with_titles()
        return self.share_of_terms(held, "share of the query's terms in the titles above")

    def position(self) -> Column:
        """Where in its document the middle of a passage lies, from 0 to 1."""
        matches = self.matches
        end = np.zeros(matches.documents, np.int64)
        np.maximum.at(end, matches.document_of_passage, matches.end_token_of_passage)
        middle = (matches.first_token_of_passage + matches.end_token_of_passage) / 2
        return fact("place in the document", middle / np.maximum(end, 1)[matches.document_of_passage])

    def depth(self) -> Column:
        """How many sections stand above."""
        parent = self.matches.parent_of_section
        above: Integers = sum_ancestors(np.ones(parent.size, np.int64), parent)
        return fact("sections above", above[self.matches.section_of_passage].astype(np.float64))

    def siblings(self) -> Column:
        """How many passages the section right above holds itself."""
        section = self.matches.section_of_passage
        count = np.bincount(section, minlength=self.matches.parent_of_section.size)
        return _logarithm("passages in the section", count[section])

    def part(self, name: str) -> Column:
        """1 in a part of this name."""
        parts = self.matches.parts
        number = parts.index(name) if name in parts else -1
        return fact(f"stands in the part {name}", (self.matches.part_of_passage == number).astype(np.float64))

    def inside(self, tags: Collection[str], label: str) -> Column:
        """1 where the passage, or what holds it, has one of the tags."""
        structure = self.matches.structure()
        tagged = np.append(structure.tagged(tags), False)
        parent = np.append(structure.parent_of_span, -1)
        span = structure.first_span_of_document[self.matches.document_of_passage] + self.matches.span_of_passage
        found = np.zeros(span.size, bool)
        while (span >= 0).any():
            found |= tagged[span]
            span = parent[span]
        return fact(label, found.astype(np.float64))


def _logarithm(label: str, counts: Integers) -> Column:
    values: Floats = np.log1p(counts)
    return fact(f"ln(1 + {label})", values)


_FEATURES = (
    Feature("lm", "likelihood of the query in the passage", lambda s: s.content("passage", "lm")),
    Feature("bm25", "BM25 of the passage among passages", lambda s: s.content("passage", "bm25", "passages")),
    Feature("bm25_long", "BM25 of the passage among documents, where length hardly counts", lambda s: s.content("passage", "bm25")),
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
    Feature("section_lm", "mean likelihood in the section right above", lambda s: s.section(s.titled_lm)),
    Feature("section_bm25", "mean BM25 in the section right above", lambda s: s.section(s.titled_bm25)),
    Feature("section_best", "best BM25 in the section right above", lambda s: s.section(s.titled_bm25, best=True)),
    Feature("above_lm", "likelihood passed on by all sections above", lambda s: s.above(s.titled_lm)),
    Feature("above_bm25", "BM25 passed on by all sections above", lambda s: s.above(s.titled_bm25)),
    Feature("around_lm", "likelihood passed on by the other passages", lambda s: s.around(s.titled_lm)),
    Feature("around_bm25", "BM25 passed on by the other passages", lambda s: s.around(s.titled_bm25)),
    Feature("around_near", "BM25 passed on by the nearest passages of the tree", lambda s: s.around(s.titled_bm25, 1.0)),
    Feature("left", "BM25 of the passage before", lambda s: s.neighbors["left passage"]),
    Feature("right", "BM25 of the passage after", lambda s: s.neighbors["right passage"]),
    Feature("plm", "occurrences in the document by distance, σ 2000", lambda s: positional_signals(s.matches)["passage"]),
    Feature("plm_near", "occurrences in the document by distance, σ 100", lambda s: positional_signals(s.matches, sigma=100.0)["passage"]),
    Feature("prox", "how near all words of the query stand", lambda s: proximity_signals(s.matches)["influence"]),
    Feature("position", "place in the document", lambda s: s.position()),
    Feature("depth", "sections above", lambda s: s.depth()),
    Feature("siblings", "passages in the section", lambda s: s.siblings()),
    Feature("length", "terms in the passage", lambda s: _logarithm("terms in the passage", s.matches.length_of_passage)),
    Feature(
        "document_length",
        "terms in the document",
        lambda s: _logarithm("terms in the document", s.matches.length_of_document[s.matches.document_of_passage]),
    ),
    Feature("in_abstract", "stands in the abstract", lambda s: s.part("abstract")),
    Feature("in_description", "stands in the description", lambda s: s.part("description")),
    Feature("in_claims", "stands in the claims", lambda s: s.part("claims")),
    Feature("in_list", "stands in a list", lambda s: s.inside(LISTS, "stands in a list")),
    Feature("in_table", "stands in a table", lambda s: s.inside(TABLES, "stands in a table")),
)

FEATURES: Mapping[str, Feature] = {feature.name: feature for feature in _FEATURES}


def features(matches: Matches, names: Iterable[str] = FEATURES) -> Signals:
    """Features by name, one value a passage, as they are."""
    sources = Sources(matches)
    found = {}
    for name in names:
        if name not in FEATURES:
            raise unknown("feature", name, FEATURES)
        found[name] = FEATURES[name].column(sources).named(FEATURES[name].meaning)
    return found


def normalized_features(matches: Matches, names: Iterable[str] = FEATURES, normalize: FeatureNormalization = "minmax") -> Signals:
    """Features by name, each normalised over the candidate passages of the query."""
    return {name: NORMALIZATIONS[normalize](column) for name, column in features(matches, names).items()}
