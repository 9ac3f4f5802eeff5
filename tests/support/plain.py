"""What the index and the models must give, computed slowly and straight from the definitions over documents."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

from perikope.document.tree import Document, Kind
from perikope.text.analysis import Analyzer, language_code, word_spans


@dataclass
class PlainDocument:
    """A document with its terms by span, found without any index."""

    document: Document
    terms: list[str | None]
    starts: list[int]
    ends: list[int]

    def of_span(self, span: int) -> list[str]:
        return [term for term in self.terms[self.tokens(span)] if term is not None]

    def tokens(self, span: int) -> slice:
        """The tokens of a span."""
        start, end = self.document.spans.start[span], self.document.spans.end[span]
        return slice(bisect_left(self.starts, start), bisect_left(self.starts, end))

    @property
    def passages(self) -> list[int]:
        return list(self.document.of_kind(Kind.PASSAGE))

    def ancestors(self, span: int) -> list[int]:
        """The sections above a span, nearest first."""
        found = []
        while (span := self.document.spans.parent[span]) >= 0:
            if self.document.spans.kind[span] == Kind.SECTION:
                found.append(span)
        return found

    def title_terms(self, section: int) -> list[str]:
        titles = [i for i in self.document.of_kind(Kind.TITLE) if self.document.spans.parent[i] == section]
        return self.of_span(titles[0]) if titles else []

    def with_titles(self, passage: int) -> list[str]:
        return self.of_span(passage) + [term for section in self.ancestors(passage) for term in self.title_terms(section)]

    @property
    def all_terms(self) -> list[str]:
        return [term for term in self.terms if term is not None]


def analyse(document: Document, analyzer: Analyzer) -> PlainDocument:
    starts, ends = (span.tolist() for span in word_spans(document.text))
    terms: list[str | None] = []
    for start, end in zip(starts, ends, strict=True):
        holding = [i for i in range(len(document.spans)) if document.spans.start[i] <= start < document.spans.end[i]]
        language = language_code(document.labels[document.spans.language[holding[-1]]])
        term = analyzer.term(document.text[start:end], language)
        terms.append(None if term is None else f"{language}:{term}")
    return PlainDocument(document, terms, starts, ends)


class PlainCollection:
    """A collection with its statistics, counted in Python."""

    def __init__(self, documents: list[Document], analyzer: Analyzer) -> None:
        self.documents = [analyse(document, analyzer) for document in documents]
        self.passages = [(d, p) for d in self.documents for p in d.passages]
        self.occurrences = Counter(term for d in self.documents for term in d.all_terms)
        self.document_frequency = Counter(term for d in self.documents for term in set(d.all_terms))
        self.passage_frequency = Counter(term for d, p in self.passages for term in set(d.of_span(p)))
        self.passage_occurrences = Counter(term for d, p in self.passages for term in d.of_span(p))
        self.tokens = sum(self.occurrences.values())

    def bm25(self, query: dict[str, float], terms: list[str], units: int, frequency: Counter, average: float, k1=1.2, b=0.75) -> float:
        counts = Counter(terms)
        total = 0.0
        for term, weight in query.items():
            if counts[term]:
                idf = math.log(1 + (units - frequency[term] + 0.5) / (frequency[term] + 0.5))
                tf = counts[term]
                total += weight * idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(terms) / max(average, 1e-9)))
        return total

    def document_score(self, query: dict[str, float], d: PlainDocument) -> float:
        return self.bm25(query, d.all_terms, len(self.documents), self.document_frequency, self.tokens / len(self.documents))

    def passage_score(self, query: dict[str, float], terms: list[str]) -> float:
        average = sum(self.passage_occurrences.values()) / len(self.passages)
        return self.bm25(query, terms, len(self.passages), self.passage_frequency, average)

    def psg(self, query: dict[str, float], terms: list[str]) -> float:
        counts = Counter(terms)
        return sum(math.log(counts[t] + 1) * math.log(len(self.documents) / self.document_frequency[t]) for t in query if counts[t])

    def coverage(
        self, query: dict[str, float], d: PlainDocument, passage: int, k1=1.2, b=0.5, titles=1.0, neighbors=0.1, document=0.8
    ) -> float:
        """The score of the model `coverage`: what the passage and its context leave uncovered of each term, from 1."""

        def covered(count: int, length: int, average: float) -> float:
            return count / (count + k1 * (1 - b + b * length / max(average, 1e-9))) if count else 0.0

        def idf(units: int, holding: int) -> float:
            return math.log(1 + (units - holding + 0.5) / (holding + 0.5))

        at = d.passages.index(passage)
        beside = Counter(term for other in d.passages[max(at - 1, 0) : at] + d.passages[at + 1 : at + 2] for term in d.of_span(other))
        above = {term for section in d.ancestors(passage) for term in d.title_terms(section)}
        own, whole = Counter(d.of_span(passage)), Counter(d.all_terms)
        passage_length = sum(self.passage_occurrences.values()) / len(self.passages)
        total = 0.0
        for term, weight in query.items():
            of_passage = idf(len(self.passages), self.passage_frequency[term])
            share = min(1.0, idf(len(self.documents), self.document_frequency[term]) / of_passage)
            by_passage = covered(own[term], sum(own.values()), passage_length)
            by_titles = titles * math.sqrt(share) if term in above else 0.0
            by_neighbors = neighbors * beside[term] / (beside[term] + k1)
            by_document = document * share * covered(whole[term], sum(whole.values()), self.tokens / len(self.documents))
            total += weight * of_passage * (1 - (1 - by_passage) * (1 - by_titles) * (1 - by_neighbors) * (1 - by_document))
        return total

    def sim(self, query: dict[str, float], terms: list[str], mu: float = 1000.0) -> float:
        seen = {term: weight for term, weight in query.items() if self.occurrences[term]}
        counts, total = Counter(terms), sum(seen.values())
        return math.exp(
            sum(
                weight / total * math.log((counts[term] + mu * self.occurrences[term] / self.tokens) / (len(terms) + mu))
                for term, weight in seen.items()
            )
        )


def min_max(values: dict) -> dict:
    low, high = min(values.values()), max(values.values())
    return {key: (value - low) / (high - low) if high - low > 1e-12 * max(abs(low), abs(high)) else 0.0 for key, value in values.items()}
